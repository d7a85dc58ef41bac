// SPDX-License-Identifier: Apache-2.0
//! Programs that a job file names, and what they read at home as standard input, are looked for beside that file, and
//! then from the current directory.

use crate::reach;
use isthmus_job::forms::Described;
use isthmus_job::{Contact, Job, JobError};
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
    let job = placed(&described.job, &mut |what, named| {
        let (name, found) = match what {
            What::Program => place(named, directory),
            What::Input => place_input(named, directory),
        };
        if found == Found::Here {
            notes.push(match what {
                What::Program => {
                    format!("program '{named}' is not beside '{file}': the one in the current directory is run")
                }
                What::Input => {
                    format!("stdin '{named}' is not beside '{file}': the one in the current directory is read")
                }
            });
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

/// What a job file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Program,
    Input,
}

fn placed(job: &Job, place: &mut dyn FnMut(What, &str) -> Option<String>) -> Result<Job, JobError> {
    let mut subjobs = job.subjobs().to_vec();
    for subjob in &mut subjobs {
        let at_home = match &subjob.contact {
            Contact::Home => true,
            contact => reach::is_home(&contact.to_string()),
        };
        // What is not copied is a file of its site.
        let is_ours = subjob.stage || at_home;
        for name in subjob.programs_mut().filter(|_| is_ours) {
            if let Some(placed) = place(What::Program, name) {
                *name = placed;
            }
        }
        if at_home {
            subjob.place_text("stdin", &mut |name| place(What::Input, name));
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

/// The same for a file that is read: what is in neither place is missed where the processes work.
fn place_input(name: &str, directory: &Path) -> (Option<String>, Found) {
    let path = words::path(name);
    if path.is_absolute() || name.contains("://") || name.starts_with("~/") {
        return (None, Found::Elsewhere);
    }
    let beside = directory.join(path.strip_prefix(".").unwrap_or(&path));
    match () {
        () if beside.exists() => {
            let beside = std::path::absolute(&beside).unwrap_or(beside);
            (Some(words::text(beside)), Found::Beside)
        }
        () if path.exists() => (None, Found::Here),
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
