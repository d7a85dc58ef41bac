// SPDX-License-Identifier: Apache-2.0
//! Where the output of processes goes: to the coordinator, or into a file of the machine.

use crate::link::Outbox;
use crate::program::Refusal;
use isthmus_stage::words;
use isthmus_wire::grid::{FromAgent, Start, Stream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex;

/// One place for output. Pieces of whole lines stay whole.
#[derive(Clone, Debug)]
pub(crate) enum Sink {
    /// The coordinator.
    Coordinator(Outbox),
    /// A file; when it takes no more, the coordinator is told once.
    File(Arc<Mutex<OutputFile>>),
}

impl Sink {
    /// Takes a piece of output; false: nobody takes any more.
    pub(crate) async fn write(&self, index: u32, stream: Stream, bytes: Vec<u8>) -> bool {
        match self {
            Self::Coordinator(outbox) => {
                let length = bytes.len();
                let message = FromAgent::Output { index, stream, bytes };
                outbox.send_output(&message, length).await
            }
            Self::File(file) => {
                let mut file = file.lock().await;
                file.write(&bytes).await
            }
        }
    }
}

/// A file that gets output.
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    file: tokio::fs::File,
    outbox: Outbox,
}

impl OutputFile {
    /// False: it takes no more. Lost output ends the job, as it does where the launcher writes.
    async fn write(&mut self, bytes: &[u8]) -> bool {
        let written = match self.file.write_all(bytes).await {
            Ok(()) => self.file.flush().await,
            Err(error) => Err(error),
        };
        let Err(error) = written else { return true };
        let reason = format!("output cannot be written: {}: {error}", self.path.display());
        self.outbox.send(&Refusal::new(reason, "").into());
        false
    }
}

/// Where what processes print goes.
#[derive(Clone, Debug)]
pub(crate) struct Sinks {
    /// Standard output.
    pub(crate) output: Sink,
    /// Standard error.
    pub(crate) error: Sink,
}

/// The places for standard output and standard error; two names of one file are one place.
pub(crate) fn open(start: &Start, directory: &Path, outbox: &Outbox) -> Result<Sinks, Refusal> {
    let place = |name: &str| match name {
        "" => Ok(Sink::Coordinator(outbox.clone())),
        name => create(&directory.join(words::path(name)), outbox),
    };
    let output = place(&start.stdout)?;
    let error = if start.stderr == start.stdout {
        output.clone()
    } else {
        place(&start.stderr)?
    };
    Ok(Sinks { output, error })
}

fn create(path: &Path, outbox: &Outbox) -> Result<Sink, Refusal> {
    let file = std::fs::File::create(path).map_err(|error| {
        Refusal::new(
            format!("cannot write the output file '{}': {error}", path.display()),
            "its directory must exist there",
        )
    })?;
    Ok(Sink::File(Arc::new(Mutex::new(OutputFile {
        path: path.to_owned(),
        file: tokio::fs::File::from_std(file),
        outbox: outbox.clone(),
    }))))
}
