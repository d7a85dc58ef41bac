// SPDX-License-Identifier: Apache-2.0
//! Who may import whom: `layers.txt` against the manifests.

use std::collections::BTreeSet;
use std::process::Command;

use super::source::Finding;
use crate::tree::{self, Result};

/// Says of every outside crate what it is for.
const EXPLAINED: &str = "ARCHITECTURE.md";

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
    /// Outside crates that the rooms of a floor and tower may use.
    outside: Vec<(u8, String, Vec<String>)>,
}

impl Layers {
    /// Reads `layers.txt`.
    pub(super) fn load() -> Result<Self> {
        Self::parse(&tree::read("layers.txt")?)
    }

    fn parse(text: &str) -> Result<Self> {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (outside, lines): (Vec<_>, Vec<_>) = lines.partition(|(_, line)| line.starts_with("outside "));
        let lines = lines.into_iter();
        let allowed = outside.into_iter().map(|(number, line)| {
            let room = line.strip_prefix("outside ").and_then(Room::parse);
            let room = room.ok_or_else(|| format!("layers.txt:{}: `{line}`", number + 1))?;
            Ok((room.floor, room.tower, room.imports))
        });
        let outside = allowed.collect::<Result<_>>()?;
        let rooms =
            lines.map(|(number, line)| Room::parse(line).ok_or_else(|| format!("layers.txt:{}: `{line}`", number + 1)));
        Ok(Self {
            rooms: rooms.collect::<Result<_>>()?,
            outside,
        })
    }

    /// Whether a room may use this crate, which is none of ours, outside tests.
    fn may_use(&self, room: &Room, name: &str) -> bool {
        let same = |(floor, tower, _): &&(u8, String, Vec<String>)| *floor == room.floor && *tower == room.tower;
        let listed = self.outside.iter().filter(same).flat_map(|(_, _, names)| names);
        listed.into_iter().any(|listed| listed == name)
    }

    /// Outside crates without a word about why.
    fn unexplained(&self, document: &str) -> Vec<Finding> {
        let names: BTreeSet<&String> = self.outside.iter().flat_map(|(_, _, names)| names).collect();
        let rows = document
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
        let plain = |c: char| !c.is_alphanumeric() && c != '-' && c != '_';
        let explained: BTreeSet<&str> = rows.flat_map(|cell| cell.split(plain)).collect();
        let missing = names.into_iter().filter(|name| !explained.contains(name.as_str()));
        missing
            .map(|name| format!("{EXPLAINED}: does not say what the outside crate `{name}` is for"))
            .collect()
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
    findings.extend(layers.unexplained(&tree::read(EXPLAINED)?));
    for manifest in tree::files("crates", "Cargo.toml")? {
        check_text(&layers, &manifest, &tree::read(&manifest)?, &mut findings);
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

fn check_text(layers: &Layers, manifest: &str, text: &str, findings: &mut Vec<Finding>) {
    let name = manifest.split('/').nth(1).unwrap_or_default();
    let Some(room) = layers.room(name) else {
        findings.push(format!("{manifest}: layers.txt has no line for this room"));
        return;
    };
    if !text.contains("[lints]\nworkspace = true") {
        findings.push(format!("{manifest}: does not take the lints of the workspace"));
    }
    for (section, dependency) in dependencies(text) {
        let for_tests = section.contains("dev-dependencies");
        let Some(target) = layers.rooms.iter().find(|r| package(&r.name) == dependency) else {
            if !for_tests && !layers.may_use(room, dependency) {
                findings.push(format!(
                    "{manifest}: {dependency} is not among the outside crates of floor {} {} in layers.txt",
                    room.floor, room.tower
                ));
            }
            continue;
        };
        let listed = room.imports.contains(&target.name) || (for_tests && room.test_imports.contains(&target.name));
        if !listed {
            let whose = if for_tests { "its tests " } else { "" };
            findings.push(format!(
                "{manifest}: {whose}may not import {}: layers.txt does not list it",
                target.name
            ));
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(manifest: &str) -> Vec<Finding> {
        let layers =
            Layers::parse("outside 1 common x: rustc-hash\n0 common wire:\n1 common schedule: wire\n").unwrap();
        let mut found = Vec::new();
        let text = format!("[lints]\nworkspace = true\n{manifest}");
        check_text(&layers, "crates/schedule/Cargo.toml", &text, &mut found);
        found
    }

    #[test]
    fn an_outside_crate_that_the_floor_does_not_list_is_found() {
        assert!(findings("[dependencies]\nrustc-hash.workspace = true\nisthmus-wire.workspace = true\n").is_empty());
        assert_eq!(findings("[dependencies]\nrustix.workspace = true\n").len(), 1);
        assert!(findings("[dev-dependencies]\nproptest.workspace = true\n").is_empty());
    }

    #[test]
    fn an_outside_crate_without_a_reason_is_found() {
        let layers = Layers::parse("outside 1 common x: rustc-hash toml_edit\n").unwrap();
        let all = "| rustc-hash | maps |\n| serde, toml_edit | job files |";
        assert!(layers.unexplained(all).is_empty());
        assert_eq!(layers.unexplained("| rustc-hash | maps | toml_edit |").len(), 1);
    }

    #[test]
    fn an_arrow_up_or_across_is_found() {
        let layers = Layers::parse("1 common low:\n3 library mpi:\n3 grid cli:\n").unwrap();
        let problem = |from: &str, to| layers.arrow_problem(layers.room(from).unwrap(), to).is_some();
        assert!(problem("low", "mpi") && problem("mpi", "cli") && problem("mpi", "nowhere"));
        assert!(!problem("mpi", "low"));
    }

    #[test]
    fn a_room_under_another_name_is_found() {
        let alias = "[dependencies]\nwires = { package = \"isthmus-wire\", path = \"../wire\" }\n";
        assert_eq!(findings(alias).len(), 1);
    }
}
