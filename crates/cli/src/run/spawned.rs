// SPDX-License-Identifier: Apache-2.0
//! `isthmus spawned`: the launcher of what a program without one spawns. The program asks over the standard input, a
//! socket, and is answered there before anything starts. What goes wrong later it learns from the end of this process.

use super::how::Launch;
use super::{losing, session};
use crate::diagnostic::refuse;
use crate::{job, reach};
use isthmus_job::model::goes_on;
use isthmus_job::{Job, JobError};
use isthmus_launch::spawned_alone;
use isthmus_wire::boot::Message;
use isthmus_wire::codec::Deframer;
use isthmus_wire::question::{Answer, Ask, Kind, Question, Refusal, Said, Started};
use std::io::{Error, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// Hears the question, answers it, and launches.
pub(crate) fn spawned() -> ExitCode {
    let asked = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    match asked.and_then(|mut program| take(&mut program)) {
        // The program has the sentence.
        Ok(None) => ExitCode::FAILURE,
        Ok(Some(job)) => {
            let how = Launch {
                stdin: Some("none".to_owned()),
                ..Launch::default()
            };
            match job::runnable(&job) {
                Ok(()) => session::launch(job.clone(), job, &how),
                Err(errors) => refuse(&errors),
            }
        }
        Err(error) => refuse(&JobError::new(format!(
            "isthmus spawned is started by programs that spawn without a launcher, and cannot talk to its own: {error}"
        ))),
    }
}

/// The job that is asked for; `None`: it was refused.
fn take(program: &mut UnixStream) -> std::io::Result<Option<Job>> {
    let Question { number, ask } = hear(program)?;
    let made = made(ask);
    let said = match &made {
        Ok((job, processes)) => Ok(Said::Started(Started {
            world: [0; 16],
            goes_on: goes_on(job.subjobs()),
            carried: false,
            processes: processes.clone(),
        })),
        Err(refusal) => Err(refusal.clone()),
    };
    program.write_all(&Message::Answer(Answer { number, said }).encode())?;
    Ok(made.ok().map(|(job, _)| job))
}

fn hear(program: &mut UnixStream) -> std::io::Result<Question> {
    let mut deframer = Deframer::default();
    let mut buffer = [0; 4096];
    loop {
        if let Some(body) = deframer.next_body().map_err(Error::other)? {
            return match Message::decode(&body).map_err(Error::other)? {
                Message::Question(question) => Ok(question),
                _ => Err(Error::other("it does not ask for anything")),
            };
        }
        match program.read(&mut buffer)? {
            0 => return Err(Error::other("it has asked nothing")),
            n => deframer.feed(&buffer[..n]),
        }
    }
}

fn made(ask: Ask) -> Result<(Job, Vec<u32>), Refusal> {
    let refused = |why: String| Refusal::new(Kind::NotStarted, why);
    let Ask::Spawn { port, parts } = ask else {
        return Err(refused(
            "this launcher was started to spawn, and for nothing else".to_owned(),
        ));
    };
    if !isthmus_settings::SPAWN.read(std::env::var_os) {
        return Err(refused("ISTHMUS_SPAWN=0 lets no process start others".to_owned()));
    }
    let catalogue = reach::catalogue().map_err(|errors| refused(errors.to_string()))?;
    let (job, counts) = spawned_alone(&port, &parts, &catalogue)?;
    Ok((losing::as_set(job.at_home(reach::is_home)), counts))
}
