// SPDX-License-Identifier: Apache-2.0
//! `up`: a testbed held by a process in the background.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use clap::Args;
use isthmus_testbed::{Error, Options, Testbed};
use rustix::process::{Pid, test_kill_process};

use super::events::signals;
use super::run::{downs, sole};
use super::shape::Shape;

/// How long `down` waits for the holding process to go.
const END: Duration = Duration::from_secs(10);

#[derive(Args, Debug)]
pub(crate) struct UpArguments {
    #[command(flatten)]
    shape: Shape,
    /// Name of the testbed.
    #[arg(long, default_value = "default")]
    name: String,
}

/// Starts the holding process and waits until the testbed is ready.
pub(crate) fn up(arguments: &UpArguments) -> Result<ExitCode, Error> {
    // Mistakes of the user are told here, not in a log.
    let hosts = arguments.shape.topology()?;
    let failed = |source| Error::System {
        doing: "start the process that holds the testbed".to_owned(),
        source,
    };
    let log = std::env::temp_dir().join(format!(
        "isthmus-testbed-{}-{}.log",
        arguments.name.replace('/', "_"),
        std::process::id()
    ));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("serve");
    command
        .args(std::env::args_os().skip(2))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(&log).map_err(failed)?);
    let mut child = command.spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
    }
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    // The holding process keeps it open; nobody needs its name.
    let _ = std::fs::remove_file(&log);
    eprint!("{said}");
    if line != "ready\n" {
        child.wait().map_err(failed)?;
        return Ok(ExitCode::from(125));
    }
    println!("testbed \"{}\" is up: {} sites", arguments.name, hosts.sites.len());
    println!("next: isthmus-testbed exec a1 -- bash; isthmus-testbed status; isthmus-testbed down");
    Ok(ExitCode::SUCCESS)
}

/// Holds a testbed until `down` or a signal.
pub(crate) fn serve(arguments: &UpArguments) -> Result<ExitCode, Error> {
    // A session of its own, so that the terminal's Ctrl-C is not for us; refused only for a group leader.
    let _ = rustix::process::setsid();
    let (events, inbox) = channel();
    signals(events.clone())?;
    let options = Options {
        name: Some(arguments.name.clone()),
        capture: arguments.shape.capture.clone(),
        ..Options::default()
    };
    let bed = Arc::new(Testbed::start_with(&arguments.shape.topology()?, &options)?);
    for limit in bed.limits() {
        eprintln!("isthmus-testbed: note: {limit}");
    }
    isthmus_testbed::serve(&bed, downs(events)?)?;
    println!("ready");
    // Any event asks for the end.
    let _ = inbox.recv();
    sole(bed).stop()?;
    Ok(ExitCode::SUCCESS)
}

/// Waits until the holding process is gone.
pub(crate) fn await_end(server: u32) {
    let deadline = Instant::now() + END;
    let Some(pid) = i32::try_from(server).ok().and_then(Pid::from_raw) else {
        return;
    };
    while test_kill_process(pid).is_ok() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
}
