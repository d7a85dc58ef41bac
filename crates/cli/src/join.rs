// SPDX-License-Identifier: Apache-2.0
//! `isthmus join`: takes part in a world that others have begun on another machine.

use crate::diagnostic::refuse;
use crate::run::{self, Run};
use clap::Args;
use isthmus_job::{JobError, JobErrors};
use std::path::PathBuf;
use std::process::ExitCode;

/// Join a world whose first part waits on another machine
///
/// The parts share one MPI_COMM_WORLD. The first part was started with isthmus run --world and has written the ticket
/// file.
#[derive(Args, Debug)]
#[command(override_usage = "isthmus join TICKET [OPTIONS] PROGRAM [ARGUMENT]...")]
pub(crate) struct Join {
    /// File with the ticket that the first part names, which nobody else may read; - to type it. Which part this is
    /// says --world; without it, it is the first that is missing
    ticket: PathBuf,
    #[command(flatten)]
    run: Run,
}

/// `isthmus join`.
pub(crate) fn join(arguments: Join) -> ExitCode {
    let Join { ticket, mut run } = arguments;
    if run.launch.leaves_terminal() && ticket.as_os_str() == "-" {
        let error = JobError::new("a ticket that is typed cannot be read in the background (--detach)");
        return refuse(&JobErrors::from(
            error.hint("write it into a file that only you may read, and name that"),
        ));
    }
    let found = isthmus_launch::read_ticket(&ticket).map_err(|why| {
        JobError::new(format!("'{}' is not a ticket: {why}", ticket.display()))
            .hint("copy the file that the part which was started first names, with its rights: scp -p")
    });
    match found.and_then(|ticket| run.launch.take_ticket(ticket)) {
        Ok(()) => run::run(&run),
        Err(error) => refuse(&JobErrors::from(error)),
    }
}
