// SPDX-License-Identifier: Apache-2.0
//! Who may import whom: `layers.txt` against the manifests.

use std::process::Command;

use super::Finding;
use crate::tree::{self, Result};

/// One line of `layers.txt`.
struct Room {
    name: String,
    floor: u8,
    tower: String,
    imports: Vec<String>,
    test_imports: Vec<String>,
}

/// All of `layers.txt`.
pub(super) struct Layers {
    rooms: Vec<Room>,
}

impl Layers {
    /// Reads `layers.txt`.
    pub(super) fn load() -> Result<Self> {
        let text = tree::read("layers.txt")?;
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let rooms =
            lines.map(|(number, line)| Room::parse(line).ok_or_else(|| format!("layers.txt:{}: `{line}`", number + 1)));
        Ok(Self {
            rooms: rooms.collect::<Result<_>>()?,
        })
    }

    /// Floor of a room.
    pub(super) fn floor(&self, name: &str) -> Option<u8> {
        self.room(name).map(|room| room.floor)
    }

    fn room(&self, name: &str) -> Option<&Room> {
        self.rooms.iter().find(|room| room.name == name)
    }

    /// An arrow must go down or stay on its floor, and never from one tower to the other.
    fn arrow_problem(&self, from: &Room, to: &str) -> Option<String> {
        let Some(target) = self.room(to) else {
            return Some(format!("layers.txt: {}: imports {to}, which is no room", from.name));
        };
        let across = from.tower != target.tower && from.tower != "all" && target.tower != "common";
        if target.floor > from.floor {
            return Some(format!("layers.txt: {}: imports {to} from a higher floor", from.name));
        }
        across.then(|| format!("layers.txt: {}: imports {to} from another tower", from.name))
    }
}

impl Room {
    /// `FLOOR TOWER NAME: imports… | imports of tests…`
    fn parse(line: &str) -> Option<Self> {
        let (head, tail) = line.split_once(':')?;
        let mut head = head.split_whitespace();
        let (floor, tower, name) = (
            head.next()?.parse().ok()?,
            head.next()?.to_owned(),
            head.next()?.to_owned(),
        );
        let (imports, test_imports) = tail.split_once('|').unwrap_or((tail, ""));
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        Some(Self {
            name,
            floor,
            tower,
            imports: list(imports),
            test_imports: list(test_imports),
        })
    }
}

pub(super) fn check() -> Result<Vec<Finding>> {
    let layers = Layers::load()?;
    let mut findings = Vec::new();
    for room in &layers.rooms {
        findings.extend(room.imports.iter().filter_map(|to| layers.arrow_problem(room, to)));
    }
    for manifest in tree::files("crates", "Cargo.toml")? {
        check_manifest(&layers, &manifest, &mut findings)?;
    }
    findings.extend(forbidden_package("isthmus-mpi", |p| p == "tokio")?);
    let library: Vec<String> = layers
        .rooms
        .iter()
        .filter(|r| r.tower == "library")
        .map(|r| package(&r.name))
        .collect();
    findings.extend(forbidden_package("isthmus-cli", |p| library.iter().any(|l| l == p))?);
    Ok(findings)
}

/// Package name of a room.
fn package(room: &str) -> String {
    if room == "mpi-core" {
        "isthmus-core".to_owned()
    } else {
        format!("isthmus-{room}")
    }
}

fn check_manifest(layers: &Layers, manifest: &str, findings: &mut Vec<Finding>) -> Result<()> {
    let name = manifest.split('/').nth(1).unwrap_or_default();
    let text = tree::read(manifest)?;
    let Some(room) = layers.room(name) else {
        findings.push(format!("{manifest}: layers.txt has no line for this room"));
        return Ok(());
    };
    if !text.contains("[lints]\nworkspace = true") {
        findings.push(format!("{manifest}: does not take the lints of the workspace"));
    }
    for (section, dependency) in dependencies(&text) {
        let Some(target) = layers.rooms.iter().find(|r| package(&r.name) == dependency) else {
            continue;
        };
        let for_tests = section.contains("dev-dependencies");
        let listed = room.imports.contains(&target.name) || (for_tests && room.test_imports.contains(&target.name));
        if !listed {
            let whose = if for_tests { "its tests " } else { "" };
            findings.push(format!(
                "{manifest}: {whose}may not import {}: layers.txt does not list it",
                target.name
            ));
        }
    }
    Ok(())
}

/// Section and name of every dependency in a manifest.
fn dependencies(manifest: &str) -> Vec<(&str, &str)> {
    let mut section = "";
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section.contains("dependencies") {
            if let Some(name) = line
                .split(['.', ' ', '='])
                .next()
                .filter(|n| !n.is_empty() && !n.starts_with('#'))
            {
                found.push((section, name));
            }
        }
    }
    found
}

/// Names a package that `root` links although it must not.
fn forbidden_package(root: &str, is_forbidden: impl Fn(&str) -> bool) -> Result<Option<Finding>> {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    cargo
        .current_dir(tree::root())
        .args(["tree", "--package", root, "--edges", "normal", "--prefix", "none"]);
    let output = cargo.output().map_err(|e| format!("cargo tree: cannot run: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .find(|p| is_forbidden(p));
    Ok(found.map(|p| format!("{root}: links {p}, which belongs to the other tower")))
}
