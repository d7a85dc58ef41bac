// SPDX-License-Identifier: Apache-2.0
//! Bringing outputs to where the user wants them.

use crate::left::Before;
use isthmus_job::transfer::{Pattern, Transfers};
use isthmus_job::{Job, JobError};
use isthmus_reach::Failure;
use isthmus_reach::transfer::{Line, progress};
use isthmus_stage::words;
use isthmus_wire::service::{Entry, File, Root};
use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};

/// Where outputs go unless the job says so: below it each job has a directory of its own.
const RESULTS: &str = "isthmus-results";

/// Fetches these files of a subjob's directory to a directory here.
pub(crate) async fn fetch_listed(
    line: &mut Line<'_>,
    files: &[&Entry],
    top: &Path,
    tell: &(dyn Fn(String) + Sync),
) -> Result<(), Failure> {
    let total: u64 = files.iter().map(|e| e.size).sum();
    let mut before = 0;
    for entry in files {
        isthmus_job::transfer::check_relative(&entry.path)
            .map_err(|why| Failure::new(format!("the site names a file '{}': {why}", entry.path), ""))?;
        let here: PathBuf = top.join(words::path(&entry.path));
        let parent = here.parent().unwrap_or(top);
        std::fs::create_dir_all(parent)
            .map_err(|e| Failure::new(format!("cannot create '{}': {e}", parent.display()), ""))?;
        let file = File {
            root: Root::Job,
            path: entry.path.clone(),
        };
        let shown = |done: u64, _| tell(progress(before + done, total));
        line.get(&file, &here, entry.executable, &shown).await?;
        before += entry.size;
    }
    Ok(())
}

/// Fetches the files that have places of their own here.
pub(crate) async fn fetch_taken(
    transfers: &Transfers,
    line: &mut Line<'_>,
    home: &Path,
    tell: &(dyn Fn(String) + Sync),
) -> Result<(), Failure> {
    for taken in &transfers.taken {
        let file = File {
            root: if taken.at_site { Root::Site } else { Root::Job },
            path: taken.path.clone(),
        };
        let here = isthmus_reach::here(home, &taken.target)?;
        if let Some(parent) = here.parent() {
            std::fs::create_dir_all(parent)
                .map_err(|e| Failure::new(format!("cannot create '{}': {e}", parent.display()), ""))?;
        }
        line.get(&file, &here, false, &|done, total| tell(progress(done, total)))
            .await?;
    }
    Ok(())
}

/// Copies outputs from the user's own directory to where those of other sites are. Gives their paths.
pub(crate) fn copy_own(before: &Before, patterns: &[Pattern], top: &Path) -> Result<Vec<String>, Failure> {
    let cannot = |what: &Path, e: std::io::Error| Failure::new(format!("cannot create '{}': {e}", what.display()), "");
    let changed = before.changed(patterns).map_err(|e| cannot(top, e))?;
    for path in &changed {
        let here = top.join(words::path(path));
        let parent = here.parent().unwrap_or(top);
        std::fs::create_dir_all(parent).map_err(|e| cannot(parent, e))?;
        std::fs::copy(before.directory().join(words::path(path)), &here).map_err(|e| cannot(&here, e))?;
    }
    Ok(changed)
}

/// Whether there is a place for the outputs of a job below this directory of the user: at its end it would be too late
/// to hear that there is none.
pub fn check_results(job: &Job, directory: &Path) -> Result<(), JobError> {
    for subjob in job.subjobs().iter().filter(|subjob| !subjob.files.outputs.is_empty()) {
        let named = subjob.files.results.as_deref();
        let place = named.map_or_else(|| PathBuf::from(RESULTS), words::path);
        let whole = directory.join(&place);
        let above = whole.ancestors().find(|above| above.exists()).unwrap_or(directory);
        let usable = match above.is_dir() {
            true => access(above, Access::WRITE_OK | Access::EXEC_OK),
            false => Err(rustix::io::Errno::NOTDIR),
        };
        usable.map_err(|error| {
            let why = std::io::Error::from(error);
            JobError::new(format!("outputs cannot be put into '{}': {why}", place.display()))
                .hint("name a directory in which you may write with --results")
        })?;
    }
    Ok(())
}

/// Where the outputs of a job go, below the user's directory.
pub(crate) fn results(transfers: &Transfers, job: &str) -> PathBuf {
    match &transfers.results {
        Some(named) => words::path(named),
        None => Path::new(RESULTS).join(job.strip_prefix("isthmus-").unwrap_or(job)),
    }
}
