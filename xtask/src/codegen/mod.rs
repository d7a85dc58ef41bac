// SPDX-License-Identifier: Apache-2.0
//! Files made from the tables of `spec/` and from the bodies found in `crates/mpi/src`.

mod beyond;
mod bodies;
mod book;
mod collectives;
mod entry;
mod fortran;
mod header;
mod manual;
mod profiler;
mod rust;
mod settings;

use std::path::Path;

use crate::spec::Spec;
use crate::tree::{self, Result};

/// A generated file: path relative to the top, text.
type Generated = (&'static str, String);

/// Writes what has changed and says so.
pub(crate) fn write() -> Result<()> {
    from_tables()?;
    book::of_the_command()
}

/// As [`write()`], without the pages that the command itself makes: they need it built for this machine.
pub(crate) fn from_tables() -> Result<()> {
    for (path, text) in generate()? {
        if tree::write(path, &text)? {
            println!("wrote {path}");
        }
    }
    Ok(())
}

/// Fails with the names of stale files.
pub(crate) fn check() -> Result<()> {
    let stale = stale()?;
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!(
        "stale generated files: {}; run `cargo xtask codegen` and commit",
        stale.join(", ")
    ))
}

/// Names of the generated files that are not as they would be generated now.
pub(crate) fn stale() -> Result<Vec<&'static str>> {
    let files = generate()?;
    Ok(files
        .into_iter()
        .filter(|(path, text)| !tree::read(path).is_ok_and(|old| old == *text))
        .map(|(path, _)| path)
        .collect())
}

/// Prints the profiling library.
pub(crate) fn profiler() -> Result<()> {
    print!("{}", profiler::generate(&Spec::load()?));
    Ok(())
}

/// Writes a manual page for every function of MPI, and of `isthmus.h`, into a directory `man3`.
pub(crate) fn manual(directory: &Path) -> Result<()> {
    let spec = Spec::load()?;
    let collectives = collectives::generate(&spec)?;
    let bodies = bodies::find(&spec, (COLLECTIVES, &collectives))?;
    manual::write(&spec, &bodies, directory)?;
    beyond::write(directory)
}

const COLLECTIVES: &str = "crates/mpi/generated/collectives.rs";

fn generate() -> Result<Vec<Generated>> {
    let spec = Spec::load()?;
    let collectives = collectives::generate(&spec)?;
    let bodies = bodies::find(&spec, (COLLECTIVES, &collectives))?;
    let [exit, files] = book::small()?;
    let mut all = vec![
        ("docs/reference/settings.md", book::settings(&spec)?),
        ("docs/reference/functions.md", book::functions(&spec, &bodies)),
        ("docs/reference/hints.md", book::hints()?),
        ("docs/reference/collectives.md", book::collectives()?),
        ("docs/reference/exit-status.md", exit),
        ("docs/reference/files.md", files),
        ("include/mpi.h", header::generate(&spec)),
        ("include/mpi-ext.h", header::extensions(&spec)),
        (COLLECTIVES, collectives),
        ("crates/mpi/generated/entry.c", entry::generate(&spec, &bodies)),
        ("crates/abi/src/generated/constants.rs", rust::constants(&spec)),
        ("crates/abi/src/generated/handles.rs", rust::handles(&spec)),
        ("crates/abi/src/generated/callbacks.rs", rust::callbacks(&spec)?),
        ("crates/abi/src/generated/errors.rs", rust::errors(&spec)),
        ("crates/abi/src/generated/functions.rs", rust::functions(&spec, &bodies)),
        ("crates/settings/src/generated/table.rs", settings::table(&spec)?),
        ("crates/settings/src/generated/hints.rs", settings::hints()?),
    ];
    all.extend(fortran::generate(&spec)?);
    Ok(all)
}
