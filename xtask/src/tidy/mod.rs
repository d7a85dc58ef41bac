// SPDX-License-Identifier: Apache-2.0
//! House rules that no compiler checks. Each rule is a function from the tree to findings.

mod absence;
mod c;
mod circles;
mod documents;
mod folders;
mod layers;
mod methods;
mod prose;
mod settings;
mod shrinking;
mod sizes;
mod source;

use crate::codegen;
use crate::tree::Result;

/// Prints which imports close the circles of a room.
pub(crate) fn circles_of(room: &str) -> Result<()> {
    let sources = source::load()?;
    for line in circles::of_room(&sources, room)
        .into_iter()
        .chain(folders::of_room(&sources, room))
    {
        println!("{line}");
    }
    Ok(())
}

/// Runs every rule, prints the report of sizes, and fails if anything was found.
pub(crate) fn run() -> Result<()> {
    let sources = source::load()?;
    let mut findings = Vec::new();
    findings.extend(layers::check()?);
    findings.extend(absence::check(&sources)?);
    findings.extend(settings::check(&sources)?);
    findings.extend(c::check()?);
    findings.extend(documents::check(&sources)?);
    findings.extend(
        codegen::stale()?
            .into_iter()
            .map(|f| format!("{f}: stale: run `cargo xtask codegen` and commit")),
    );
    let sizes = sizes::measure(&sources)?;
    let shrinking = shrinking::check(&sources)?;
    println!("{}\n{}", sizes.summary, shrinking.summary);
    findings.extend(sizes.findings);
    findings.extend(shrinking.findings);
    if findings.is_empty() {
        println!("tidy: nothing found");
        return Ok(());
    }
    Err(format!("{}\ntidy: {} findings", findings.join("\n"), findings.len()))
}
