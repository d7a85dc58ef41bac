// SPDX-License-Identifier: Apache-2.0
//! Programs that a job file names are looked for beside that file, and then from the current directory.

use isthmus_job::form::Described;
use isthmus_job::{Job, JobError};
use isthmus_stage::words;
use std::path::Path;

/// The job with its programs where they are.
pub(super) fn programs(described: Described, file: &str) -> Result<Described, JobError> {
    let path = words::path(file);
    let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty() && file != "-") else {
        return Ok(described);
    };
    let here = std::env::current_dir().unwrap_or_default();
    if directory.canonicalize().is_ok_and(|directory| directory == here) {
        return Ok(described);
    }
    let mut notes = Vec::new();
    let job = placed(&described.job, &mut |program| {
        let (name, found) = place(program, directory);
        if found == Found::Here {
            notes.push(format!(
                "program '{program}' is not beside '{file}': the one in the current directory is run"
            ));
        }
        name
    })?;
    notes.sort();
    notes.dedup();
    let told = notes.into_iter().map(JobError::new);
    let notes = described.notes.into_iter().chain(told).collect();
    Ok(Described {
        notes,
        job,
        ..described
    })
}

fn placed(job: &Job, place: &mut dyn FnMut(&str) -> Option<String>) -> Result<Job, JobError> {
    let mut subjobs = job.subjobs().to_vec();
    for subjob in &mut subjobs {
        let program = &mut subjob.program;
        for name in program.any.iter_mut().chain(program.by_architecture.values_mut()) {
            if let Some(placed) = place(name) {
                *name = placed;
            }
        }
    }
    job.with_subjobs(subjobs)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Beside,
    Here,
    Elsewhere,
}

/// Another name for a program, if it is to have one. What is in neither place is missed beside the file.
fn place(program: &str, directory: &Path) -> (Option<String>, Found) {
    let name = words::path(program);
    if name.is_absolute() || program.contains("://") || program.starts_with("~/") {
        return (None, Found::Elsewhere);
    }
    let beside = directory.join(name.strip_prefix(".").unwrap_or(&name));
    let is_path = program.contains('/');
    let in_path = || {
        let all = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&all).any(|place| place.join(&name).is_file())
    };
    match () {
        () if !is_path && in_path() => (None, Found::Elsewhere),
        () if beside.exists() => (Some(words::text(beside)), Found::Beside),
        () if name.exists() => (None, Found::Here),
        () if is_path => (Some(words::text(beside)), Found::Elsewhere),
        () => (None, Found::Elsewhere),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_files_of_ours_stay() {
        let directory = Path::new("/no/such");
        for program in ["/bin/true", "https://x/app", "~/app", "sh", "app"] {
            assert_eq!(place(program, directory), (None, Found::Elsewhere), "{program}");
        }
        let missed = place("./no-such-app", directory);
        assert_eq!(missed, (Some("/no/such/no-such-app".to_owned()), Found::Elsewhere));
    }
}
