// SPDX-License-Identifier: Apache-2.0
//! Why a process could not join the shared memory of its node.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why [`ShmTransport::join`](crate::ShmTransport::join) failed. The text names the file and what to do.
#[derive(Debug)]
pub enum ShmError {
    /// A call of ours makes no sense: a bug in the caller.
    Usage(String),
    /// The operating system refused something.
    System {
        /// What was being done, as in "failed to ...".
        doing: &'static str,
        /// The file concerned.
        path: PathBuf,
        /// What it answered.
        source: io::Error,
    },
    /// The file exists but is not the segment of this job.
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Another process has this slot already.
    Taken {
        /// The file.
        path: PathBuf,
        /// The slot.
        slot: usize,
    },
}

impl fmt::Display for ShmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => write!(f, "internal error: {what}"),
            Self::System { doing, path, source } => {
                write!(f, "failed to {doing} {}: {source}{}", path.display(), hint(source))
            }
            Self::Foreign { path, what } => write!(
                f,
                "{} is not the shared memory of this job: {what}; another job may be using the same name: \
                 remove the file if no such job is running",
                path.display()
            ),
            Self::Taken { path, slot } => write!(
                f,
                "slot {slot} of {} is taken: two processes were started with the same place in the job",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ShmError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            Self::Usage(_) | Self::Foreign { .. } | Self::Taken { .. } => None,
        }
    }
}

pub(crate) fn hint(error: &io::Error) -> &'static str {
    use rustix::io::Errno;
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC) => isthmus_transport::slabs::ENLARGE,
        Some(Errno::FBIG) => {
            "; the limit on the size of files (ulimit -f) counts for shared memory too: raise it, or remove it"
        }
        Some(Errno::NOMEM) => "; the limit on virtual memory (ulimit -v) may be too low for the processes on this node",
        Some(Errno::ACCESS | Errno::PERM) => "; the directory must be writable by the user who runs the job",
        _ => "",
    }
}
