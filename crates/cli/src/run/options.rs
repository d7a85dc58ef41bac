// SPDX-License-Identifier: Apache-2.0
//! How this machine runs jobs: what the environment and the options about the launcher say.

use super::how::Launch;
use crate::variables::settings;
use crate::{background, reach, streams};
use isthmus_job::JobError;
use isthmus_launch::Options;
use isthmus_schedule::Overrides;
use isthmus_stage::{own, words};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Variables of this launcher that processes do not get.
pub(crate) const INTERNAL: [&str; 6] = [
    isthmus_settings::RENDEZVOUS.name,
    isthmus_settings::TOKEN.name,
    isthmus_settings::INDEX.name,
    isthmus_settings::SSH.name,
    isthmus_settings::TRACE.name,
    background::VARIABLE,
];

/// All of them.
pub(super) fn options(launch: &Launch) -> Result<Options, JobError> {
    let binary =
        std::env::current_exe().map_err(|e| JobError::new(format!("cannot find the isthmus binary itself: {e}")))?;
    let directory = std::env::current_dir().map_err(|e| {
        let error = JobError::new(format!("the current directory cannot be used: {e}")).accident();
        error.hint("go to one that is there (cd): this one may have been removed")
    })?;
    overrides()?;
    Ok(Options {
        library: library(&binary),
        binary,
        ssh: reach::ssh_command(launch.ssh.as_deref()),
        detach: background::is(),
        terminal: std::fs::File::open("/dev/tty").is_ok(),
        stage: !launch.no_stage,
        patience: isthmus_settings::START_TIMEOUT.read(std::env::var_os),
        environment: settings(launch.trace.is_some(), &INTERNAL),
        directory,
        input: streams::input(launch.stdin.as_deref())?,
        output: streams::output(launch.output_dir.as_deref(), launch.outfile_pattern.as_deref())?,
        limit: launch.time.as_deref().map(limit).transpose()?,
        hang: launch.hang.as_deref().map(limit).transpose()?,
        silence: isthmus_settings::AWAY.read(std::env::var_os),
        lease: isthmus_settings::LEASE.read(std::env::var_os),
        session: None,
        trace: launch.trace.as_deref().map(words::path),
        links: crate::links::options(),
        catalogue: reach::catalogue().unwrap_or_default(),
        described: Vec::new(),
        held: None,
        meet: launch.meets()?,
        world: launch.world()?,
    })
}

/// For what starts no processes.
pub(crate) fn plain_options(ssh: Option<&str>) -> Result<Options, JobError> {
    options(&Launch {
        ssh: ssh.map(str::to_owned),
        ..Launch::default()
    })
}

fn limit(text: &str) -> Result<Duration, JobError> {
    isthmus_job::allocation::limit(text).map(|seconds| Duration::from_secs(u64::from(seconds)))
}

/// The user's word about the choice of collective algorithms, as the processes will read it.
pub(crate) fn overrides() -> Result<Overrides, JobError> {
    let text = isthmus_settings::COLL.read(std::env::var_os).unwrap_or_default();
    Overrides::parse(&text).map_err(|error| {
        JobError::new(format!("the environment variable ISTHMUS_COLL is '{text}': {error}"))
            .hint("rules are OPERATION[@LEVEL][:SIZES]=NAME[,seg=SIZE][,lanes=N], separated by ;")
    })
}

/// The MPI library: beside the binary in an installed tree (`../lib`) or in a build tree.
pub(crate) fn library(binary: &Path) -> Option<PathBuf> {
    const NAME: &str = "libmpi_abi.so.1";
    let here = own::installed(binary).parent()?;
    let places = [
        here.join("../lib"),
        here.join("../lib64"),
        here.to_owned(),
        here.join("lib"),
    ];
    let named = isthmus_settings::LIBRARY_DIRECTORY.read(std::env::var_os);
    let found = named
        .into_iter()
        .chain(places)
        .map(|place| place.join(NAME))
        .find(|file| file.is_file());
    found.and_then(|file| {
        file.canonicalize()
            .ok()
            .map(|real| if real.ends_with(NAME) { real } else { file })
    })
}
