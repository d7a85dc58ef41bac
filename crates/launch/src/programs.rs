// SPDX-License-Identifier: Apache-2.0
//! The programs of a subjob: brought home, and named as its site knows them.

use crate::shared::Shared;
use isthmus_job::scratch::MARK;
use isthmus_job::transfer::Location;
use isthmus_job::{Program, Section, Subjob};
use isthmus_reach::Failure;
use isthmus_reach::fetch;
use isthmus_stage::words;
use isthmus_wire::grid;
use std::path::{Path, PathBuf};

/// The programs of the sections, those that are elsewhere after they have been brought home.
pub(crate) async fn fetched(
    subjob: &Subjob,
    shared: &Shared,
    tell: &(dyn Fn(String) + Sync),
) -> Result<Vec<Program>, Failure> {
    let mut programs: Vec<Program> = subjob.sections.iter().map(|s| s.program.clone()).collect();
    let (access, options) = (&shared.access, &shared.options);
    for program in programs.iter_mut().flat_map(Program::paths_mut) {
        if !program.contains("://") || shared.examine {
            continue;
        }
        let place = Location::parse(program).map_err(|e| Failure::new(e.problem, e.hint.unwrap_or_default()))?;
        let fetched = fetch::to_home(access, &options.catalogue, &options.directory, &place, tell).await?;
        let here = fetched.path;
        if !matches!(place, Location::Home(_)) {
            fetch::make_executable(&here)?;
        }
        *program = words::text(here);
    }
    Ok(programs)
}

/// A program for machines of this architecture.
pub(crate) fn for_architecture<'p>(
    program: &'p Program,
    architecture: &str,
    section: &Section,
) -> Result<&'p str, Failure> {
    program.for_architecture(architecture).ok_or_else(|| {
        let known: Vec<_> = section.program.by_architecture.keys().map(String::as_str).collect();
        Failure::new(
            format!(
                "the job has no program for {architecture}, only for {}",
                known.join(", ")
            ),
            format!("add program.{architecture} = \"...\" to the job file"),
        )
    })
}

/// A relative name belongs to where the user stands, also when the processes work elsewhere, as on a node that a
/// scheduler has allocated; what is not there may be where they work.
pub(crate) fn at_home(program: &str, subjob: &Subjob, section: &Section, directory: &Path) -> String {
    let here = directory.join(words::path(program));
    let named = subjob.directory.is_some() || section.directory.is_some();
    let elsewhere = named || !subjob.files.is_empty() || subjob.allocation.is_some();
    if elsewhere && program.contains('/') && here.is_file() {
        // `.` in front says no more than the directory does.
        return words::text(here.components().collect::<PathBuf>());
    }
    program.to_owned()
}

/// Where the program looks for libraries first, as far as the job says.
pub(crate) fn library_path(subjob: &Subjob, section: &Section, directory: &Path) -> Vec<PathBuf> {
    let mut given = subjob.environment.iter().chain(&section.environment).rev();
    let named = given.find(|(name, _)| name == "LD_LIBRARY_PATH");
    named.map_or_else(Vec::new, |(_, list)| {
        isthmus_stage::elf::library_path(&words::os(list), directory)
    })
}

/// A section as an agent starts it.
pub(crate) fn staged(section: &Section, program: String, library: String) -> grid::Section {
    grid::Section {
        first: section.first,
        program,
        arguments: section.arguments.clone(),
        environment: section.environment.clone(),
        directory: section.directory.clone().unwrap_or_default(),
        library,
    }
}

/// What sections say with the path of the scratch directory, which is known now.
pub(crate) fn place(sections: Vec<grid::Section>, subjob: &Subjob, scratch: Option<&str>) -> Vec<grid::Section> {
    let Some(path) = scratch else { return sections };
    let sections = sections.into_iter().zip(&subjob.sections);
    sections
        .map(|(one, section)| staged(section, one.program.replace(MARK, path), one.library))
        .collect()
}
