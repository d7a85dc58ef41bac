// SPDX-License-Identifier: Apache-2.0
//! What processes of a subjob are started with, and what is looked at before.

use crate::other_mpi;
use crate::program::{self, Refusal};
use crate::too_new;
use isthmus_sched::fork::Template;
use isthmus_stage::words;
use isthmus_wire::boot;
use isthmus_wire::grid::{Reach, Start};
use std::ffi::OsString;
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

/// What processes of a subjob are started with, once that has been looked at.
pub(crate) fn template(start: &Start, binary: &Path) -> Result<Template, Refusal> {
    let directory = program::directory(start)?;
    let program = program::find(start, &directory, variable(start, "PATH"))?;
    if !means_alone(start) {
        other_mpi::check(&program)?;
    }
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
    if !start.library.is_empty() {
        let mut path = words::os(&start.library);
        if !library_path.is_empty() {
            path.push(":");
            path.push(library_path);
        }
        environment.push(("LD_LIBRARY_PATH".to_owned(), path.clone()));
        library_path = path;
    }
    too_new::check(&program, &library_path)?;
    Ok(Template {
        trampoline: binary.to_owned(),
        program,
        name: start.program.clone(),
        arguments: start.arguments.clone(),
        environment,
        hidden: HIDDEN.map(str::to_owned).to_vec(),
        directory,
    })
}
