// SPDX-License-Identifier: Apache-2.0
//! What processes of a subjob are started with, and what is looked at before.

use crate::other_mpi;
use crate::program::{self, Refusal};
use crate::too_new;
use isthmus_sched::fork::Template;
use isthmus_stage::{own, words};
use isthmus_wire::boot;
use isthmus_wire::grid::{Reach, Section, Start};
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Variables that are the launcher's own business.
const HIDDEN: [&str; 10] = [
    isthmus_settings::PROCESSORS.name,
    isthmus_settings::VENDOR.name,
    isthmus_settings::VENDOR_RANK.name,
    isthmus_settings::RENDEZVOUS.name,
    isthmus_settings::TOKEN.name,
    isthmus_settings::INDEX.name,
    isthmus_settings::SSH.name,
    isthmus_settings::NODE_SECRET.name,
    isthmus_settings::NODE.name,
    isthmus_settings::SPOOL.name,
];

/// Where the user wants shared memory.
pub(crate) fn place_of_memory(start: &Start) -> Option<PathBuf> {
    isthmus_settings::SHM_DIRECTORY.read(|name| variable(start, name))
}

/// Whether so many processes fit on a node.
pub(crate) fn check_count(count: u32) -> Result<(), Refusal> {
    if count > boot::MAX_NODE_PROCESSES {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        return Err(Refusal::new(
            format!(
                "{count} processes on node {host} are above the limit of {} per node",
                boot::MAX_NODE_PROCESSES
            ),
            "spread them over more nodes or sites",
        ));
    }
    Ok(())
}

/// Four descriptors a process: two pipes, the rendezvous connection, and what tells of its end.
pub(crate) fn check_descriptors(count: u32) -> Result<(), Refusal> {
    let need = 4 * u64::from(count) + 64;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match limit {
        Some(limit) if limit < need => Err(Refusal::new(
            match count {
                1 => format!("a process needs {need} open files, the limit there is {limit}"),
                count => format!("{count} processes need {need} open files, the limit there is {limit}"),
            },
            "raise the limit (ulimit -n) or ask for fewer processes",
        )),
        _ => Ok(()),
    }
}

/// A variable as the processes will see it.
pub(crate) fn variable(start: &Start, name: &str) -> Option<OsString> {
    let given = start.environment.iter().rev().find(|(n, _)| n == name);
    given.map(|(_, v)| words::os(v)).or_else(|| std::env::var_os(name))
}

/// Whether the user means processes that know nothing of each other.
pub(crate) fn means_alone(start: &Start) -> bool {
    isthmus_settings::ALONE.read(|name| variable(start, name))
}

/// What the processes of each program are started with.
#[derive(Debug)]
pub(crate) struct Templates {
    /// With the index of the first process.
    all: Vec<(u32, Template)>,
    /// Number of processes.
    count: u32,
    /// Where those work whose program has no directory of its own.
    pub(crate) directory: PathBuf,
}

impl Templates {
    /// Looks at what is to be started.
    pub(crate) fn new(start: &Start, binary: &Path) -> Result<Self, Refusal> {
        let mut all = Vec::with_capacity(start.sections.len());
        for section in &start.sections {
            all.push((section.first, template(&of_section(start, section), section, binary)?));
        }
        Ok(Self {
            all,
            count: start.count,
            directory: program::directory(start)?,
        })
    }

    /// That of the process with this index.
    pub(crate) fn of(&self, index: u32) -> &Template {
        let begun = self.all.iter().rev().find(|(first, _)| *first <= index);
        &begun.unwrap_or(&self.all[0]).1
    }

    /// Where processes work, first those whose program has no directory of its own.
    pub(crate) fn directories(&self) -> Vec<&Path> {
        let own = self.all.iter().map(|(_, template)| template.directory.as_path());
        std::iter::once(self.directory.as_path()).chain(own).collect()
    }

    /// All of them, with the indices of their processes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<u32>, &Template)> {
        let ends = self.all.iter().skip(1).map(|(first, _)| *first).chain([self.count]);
        self.all.iter().zip(ends).map(|((first, one), end)| (*first..end, one))
    }

    /// All of them begin with these variables, which what is said of them replaces, and end with another one.
    pub(crate) fn surround(&mut self, before: &[(String, OsString)], name: &str, value: &OsStr) {
        for (_, template) in &mut self.all {
            template.environment.splice(0..0, before.iter().cloned());
            template.environment.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// What is to be started if this program were the only one.
fn of_section(start: &Start, section: &Section) -> Start {
    let environment = start.environment.iter().chain(&section.environment).cloned();
    let directory = match &*section.directory {
        "" => start.directory.clone(),
        own if own.starts_with(['/', '~']) || start.directory.is_empty() => own.to_owned(),
        own => words::text(words::path(&start.directory).join(words::path(own))),
    };
    Start {
        environment: environment.collect(),
        directory,
        ..start.clone()
    }
}

/// What all processes are started with, as far as it is the same: for what starts them.
pub(crate) fn shared(start: &Start, templates: &Templates) -> Template {
    let first = &templates.all[0].1;
    Template {
        environment: environment(start, &start.sections[0]).0,
        directory: templates.directory.clone(),
        ..first.clone()
    }
}

fn template(start: &Start, section: &Section, binary: &Path) -> Result<Template, Refusal> {
    let directory = program::directory(start)?;
    let program = program::find(&section.program, &directory, variable(start, "PATH"))?;
    if !means_alone(start) {
        other_mpi::check(&program)?;
    }
    let (environment, library_path) = environment(start, section);
    too_new::check(&program, &library_path)?;
    Ok(Template {
        trampoline: own::found(binary),
        program,
        name: section.program.clone(),
        arguments: section.arguments.clone(),
        environment,
        hidden: HIDDEN.map(str::to_owned).to_vec(),
        directory,
    })
}

/// Variables, and among them where libraries are looked for.
fn environment(start: &Start, section: &Section) -> (Vec<(String, OsString)>, OsString) {
    let mut environment: Vec<(String, OsString)> = start
        .environment
        .iter()
        .map(|(n, v)| (n.clone(), words::os(v)))
        .collect();
    let reach = match start.reach {
        Reach::Node => "node",
        Reach::Wide => "wide",
        Reach::Gateway => "gateway",
    };
    environment.push((isthmus_settings::REACH.name.to_owned(), reach.into()));
    let mut library_path = variable(start, "LD_LIBRARY_PATH").unwrap_or_default();
    if !section.library.is_empty() {
        let mut path = words::os(&section.library);
        if !library_path.is_empty() {
            path.push(":");
            path.push(library_path);
        }
        environment.push(("LD_LIBRARY_PATH".to_owned(), path.clone()));
        library_path = path;
    }
    (environment, library_path)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use isthmus_wire::grid::Input;

    fn section(first: u32, directory: &str) -> Section {
        Section {
            first,
            program: "sh".into(),
            arguments: vec![first.to_string()],
            environment: vec![("B".into(), first.to_string())],
            directory: directory.into(),
            library: String::new(),
        }
    }

    /// An order to start six processes of these programs.
    pub(crate) fn start(sections: Vec<Section>) -> Start {
        Start {
            job: "j".into(),
            subjob: 0,
            first: 0,
            count: 6,
            of: 6,
            sections,
            environment: vec![("A".into(), "1".into()), ("B".into(), "all".into())],
            directory: "/usr".into(),
            directory_optional: false,
            below: String::new(),
            input: Input::Nobody,
            stdin: String::new(),
            stdout: String::new(),
            stderr: String::new(),
            silence: 0,
            reach: Reach::Node,
            allocation: None,
            vendor: String::new(),
            files: String::new(),
            shared: vec![],
        }
    }

    #[test]
    fn each_program_has_its_own_words_variables_and_directory() {
        let start = start(vec![section(0, ""), section(2, "bin"), section(5, "/")]);
        let templates = Templates::new(&start, Path::new("/isthmus")).unwrap();
        let shown = |index| {
            let one = templates.of(index);
            let last = one.environment.iter().rev().find(|(name, _)| name == "B");
            let value = last.map(|(_, value)| value.to_string_lossy().into_owned());
            (one.arguments.concat(), value.unwrap(), words::text(&one.directory))
        };
        let wanted = |first: &str, directory: &str| (first.to_owned(), first.to_owned(), directory.to_owned());
        assert_eq!([shown(0), shown(1)], [wanted("0", "/usr"), wanted("0", "/usr")]);
        assert_eq!([shown(2), shown(4)], [wanted("2", "/usr/bin"), wanted("2", "/usr/bin")]);
        assert_eq!(shown(5), wanted("5", "/"));
        let ranges: Vec<_> = templates.iter().map(|(range, _)| range).collect();
        assert_eq!(ranges, [0..2, 2..5, 5..6]);
        // What starts them has the variables of all.
        let shared = shared(&start, &templates);
        assert!(shared.environment.contains(&("B".to_owned(), "all".into())));
        assert!(!shared.environment.contains(&("B".to_owned(), "0".into())));
    }

    #[test]
    fn the_program_that_is_missing_is_named() {
        let mut missing = section(2, "");
        missing.program = "./ocean".into();
        let refusal = Templates::new(&start(vec![section(0, ""), missing]), Path::new("/isthmus")).unwrap_err();
        assert!(refusal.reason.contains("'./ocean'"), "{}", refusal.reason);
        let elsewhere = start(vec![section(0, ""), section(2, "none/such")]);
        let refusal = Templates::new(&elsewhere, Path::new("/isthmus")).unwrap_err();
        assert!(refusal.reason.contains("/usr/none/such"), "{}", refusal.reason);
    }
}
