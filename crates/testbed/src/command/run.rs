// SPDX-License-Identifier: Apache-2.0
//! `run` and `exec`: a command on a host.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use clap::Args;
use isthmus_testbed::{Client, Error, Host, Options, Report, Testbed, serve};
use rustix::process::{Pid, Signal, kill_process};

use super::events::{Event, exit_of, signals};
use super::shape::Shape;

/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    shape: Shape,
    /// Run the command on this host instead of the first.
    #[arg(long)]
    host: Option<String>,
    /// Afterwards say on standard error what crossed the links.
    #[arg(long)]
    stats: bool,
    /// Afterwards write that as JSON to this file.
    #[arg(long, value_name = "FILE")]
    stats_json: Option<std::path::PathBuf>,
    /// The command and its arguments.
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Error> {
    let (events, inbox) = channel();
    signals(events.clone())?;
    let options = Options {
        capture: arguments.shape.capture.clone(),
        ..Options::default()
    };
    let bed = Arc::new(Testbed::start_with(&arguments.shape.topology()?, &options)?);
    for limit in bed.limits() {
        eprintln!("isthmus-testbed: note: {limit}");
    }
    serve(&bed, downs(events.clone())?)?;
    let first = bed.hosts().first().map(|name| (*name).to_owned()).unwrap_or_default();
    let host = bed.host(arguments.host.as_deref().unwrap_or(&first))?;
    let code = supervise(&host, &arguments.command, events, &inbox);
    finish(bed, arguments)?;
    code
}

/// Runs a command on a host of a testbed that another process holds.
pub(crate) fn exec(client: &Client, host: &str, command: &[String]) -> Result<ExitCode, Error> {
    let (events, inbox) = channel();
    signals(events.clone())?;
    supervise(&client.host(host)?, command, events, &inbox)
}

/// Takes the testbed back from the control thread.
pub(crate) fn sole(mut bed: Arc<Testbed>) -> Testbed {
    loop {
        match Arc::try_unwrap(bed) {
            Ok(bed) => return bed,
            Err(shared) => bed = shared,
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A sender for requests to end that arrive as events.
pub(crate) fn downs(events: Sender<Event>) -> Result<Sender<()>, Error> {
    let (sender, receiver) = channel();
    let forward = move || {
        while receiver.recv().is_ok() && events.send(Event::Down).is_ok() {}
    };
    let started = std::thread::Builder::new().name("down".to_owned()).spawn(forward);
    started.map(|_| sender).map_err(|source| Error::System {
        doing: "start a thread".to_owned(),
        source,
    })
}

fn finish(bed: Arc<Testbed>, arguments: &RunArguments) -> Result<(), Error> {
    let report = sole(bed).stop()?;
    if arguments.stats {
        eprintln!("{report}");
    } else if let Some(reason) = report.distrust() {
        eprintln!("isthmus-testbed: note: do not trust times of this run: {reason}");
    }
    if report.capture_missed > 0 {
        eprintln!(
            "isthmus-testbed: note: the capture misses {} frames",
            report.capture_missed
        );
    }
    arguments
        .stats_json
        .as_ref()
        .map_or(Ok(()), |path| write_json(path, &report))
}

fn write_json(path: &std::path::Path, report: &Report) -> Result<(), Error> {
    let failed = |source| Error::System {
        doing: format!("write {}", path.display()),
        source,
    };
    let text = serde_json::to_string_pretty(report).map_err(|e| failed(e.into()))?;
    std::fs::write(path, text + "\n").map_err(failed)
}

/// Starts the command and waits for its end; hands signals on to it.
fn supervise(
    host: &Host,
    command: &[String],
    events: Sender<Event>,
    inbox: &Receiver<Event>,
) -> Result<ExitCode, Error> {
    let (program, arguments) = command.split_first().map_or(("", command), |(p, a)| (p.as_str(), a));
    let child = host.spawn(Command::new(program).args(arguments))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    exit_of(child, events)?;
    let mut deadline: Option<Instant> = None;
    loop {
        let wait = deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        let event = if deadline.is_some() {
            inbox.recv_timeout(wait).ok()
        } else {
            inbox.recv().ok()
        };
        match event {
            Some(Event::Exited(status)) => return exit_code(status),
            // Out of patience: the end of the testbed kills whatever is left.
            None => return Ok(ExitCode::from(137)),
            Some(Event::Signal(signal)) => {
                hand_on(pid, signal);
                deadline = deadline.or_else(|| Some(Instant::now() + GRACE));
            }
            Some(Event::Down) => {
                hand_on(pid, Signal::TERM);
                deadline = deadline.or_else(|| Some(Instant::now() + GRACE));
            }
        }
        if deadline.is_some() && interactive() {
            // At a terminal people decide themselves when to lose patience.
            deadline = None;
        }
    }
}

/// Passes a signal to the command, except Ctrl-C at a terminal, which it got from there.
fn hand_on(pid: Option<Pid>, signal: Signal) {
    if signal == Signal::INT && interactive() {
        return;
    }
    if let Some(pid) = pid {
        // It may have ended in between.
        let _ = kill_process(pid, signal);
    }
}

fn interactive() -> bool {
    rustix::termios::isatty(std::io::stdin())
}

fn exit_code(status: std::io::Result<ExitStatus>) -> Result<ExitCode, Error> {
    let status = status.map_err(|source| Error::System {
        doing: "wait for the command".to_owned(),
        source,
    })?;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
