// SPDX-License-Identifier: Apache-2.0
//! How processes get to run at a machine: by [`fork`] on the machine of the agent, or through the site's scheduler,
//! which is asked for nodes on which agents then start them.
//!
//! A scheduler is an [`Adaptor`]: four verbs, each a command line as data and a reader of what the command said.
//! Nothing in an adaptor touches the system; [`run`] is the one place that does.
//!
//! ```text
//!  verb     gives                       reads
//!  submit   command, script on stdin    the job's identifier, or why it was refused
//!  poll     command                     State: queued (when it is expected to start), running, ending, ended, unknown
//!  cancel   command                     whether the job is gone
//!  nodes    lines of the script that start an agent on every allocated node
//! ```
#![forbid(unsafe_code)]

mod adaptor;
mod command;
pub mod fork;
mod grid_engine;
pub mod launching;
mod lsf;
mod pbs;
mod run;
mod schedulers;
mod script;
mod slurm;

pub use adaptor::{Adaptor, Cause, JobId, Refusal, Request, State, Verified, Wait};
pub use command::{Command, Output};
pub use run::run;
pub use schedulers::adaptor;
pub use script::{FETCH, NodeAgent, slots};

/// Fuzz entry: whatever a scheduler prints is read without panic and in linear time.
pub fn fuzz(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (first, second) = text.split_once('\0').unwrap_or((&text, ""));
    for status in [Some(0), Some(1), None] {
        let said = Output {
            status,
            output: first.to_owned(),
            errors: second.to_owned(),
        };
        for scheduler in isthmus_wire::grid::Scheduler::ALL {
            let adaptor = adaptor(scheduler);
            if let Ok(id) = adaptor.submitted(&said) {
                assert!(!id.as_str().is_empty() && id.as_str().len() <= adaptor::MAX_ID);
                let _ = adaptor.cancelled(&id, &said);
            }
            let id = JobId::new("17").unwrap_or_else(|| unreachable!("a number is an identifier"));
            let _ = adaptor.polled(&id, &said);
            let _ = adaptor.cause(&said);
        }
    }
    let _ = slots(first, 3);
}
