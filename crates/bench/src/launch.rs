// SPDX-License-Identifier: Apache-2.0
//! Running jobs, on this machine or over a testbed, and reading their results.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use isthmus_testbed::{Testbed, Topology};

use crate::error::Error;
use crate::peers::Peer;
use crate::samples::Sample;
use crate::sets::{Run, Set};

/// No job of a set takes longer when it works.
const PATIENCE: Duration = Duration::from_secs(180);

/// Where jobs run.
#[derive(Debug)]
pub(crate) enum Field {
    Here,
    Wide(Box<Testbed>),
}

impl Field {
    /// Makes what a set needs.
    pub(crate) fn prepare(set: Set, rtt: &str, rate: &str) -> Result<Self, Error> {
        if set != Set::Wide {
            return Ok(Self::Here);
        }
        let bed = Testbed::start(&Topology::grid("2x1")?.round_trip(rtt)?.rate(rate)?)?;
        for limit in bed.limits() {
            eprintln!("isthmus-bench: note: {limit}");
        }
        Ok(Self::Wide(Box::new(bed)))
    }

    /// Runs one job of a peer to its end.
    pub(crate) fn run(&self, peer: &Peer, run: &Run) -> Result<Vec<Sample>, Error> {
        let start = Instant::now();
        let child = match self {
            Self::Here => {
                let mut command = peer.local(run);
                quiet(&mut command)
                    .spawn()
                    .map_err(Error::system(format!("start {}", peer.name)))?
            }
            Self::Wide(bed) => {
                let mut command = peer.wide(["a1", "b1"], run);
                bed.host("a1")?.spawn(quiet(&mut command))?
            }
        };
        let output = finish(child, &peer.name)?;
        if run.arguments.is_empty() {
            return Ok(vec![Sample {
                test: "job".to_owned(),
                bytes: 0,
                value: start.elapsed().as_secs_f64(),
                unit: "s".to_owned(),
            }]);
        }
        let samples: Vec<Sample> = output.lines().filter_map(Sample::parse).collect();
        if samples.is_empty() {
            return Err(Error::Run {
                what: peer.name.clone(),
                said: format!("no results in: {output}"),
            });
        }
        Ok(samples)
    }

    /// Why what was measured here should be thrown away, if it should.
    pub(crate) fn distrust(&self) -> Option<String> {
        match self {
            Self::Here => None,
            Self::Wide(bed) => bed.report().distrust(),
        }
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
}

/// What the job printed; an error when it failed or did not end.
fn finish(mut child: Child, name: &str) -> Result<String, Error> {
    let reader = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            // A stream that breaks off has told what it could.
            let _ = stream.map(|mut stream| stream.read_to_string(&mut text));
            text
        })
    };
    let out = reader(child.stdout.take().map(|s| Box::new(s) as Box<dyn Read + Send>));
    let err = reader(child.stderr.take().map(|s| Box::new(s) as Box<dyn Read + Send>));
    let status = await_end(&mut child, name);
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    let status = status?;
    if status.success() {
        return Ok(out);
    }
    let said = err
        .lines()
        .rev()
        .take(5)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect::<Vec<_>>()
        .join("; ");
    Err(Error::Run {
        what: format!("{name} ended with {status}"),
        said,
    })
}

fn await_end(child: &mut Child, name: &str) -> Result<ExitStatus, Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let failed = || Error::system(format!("wait for {name}"));
        if let Some(status) = child.try_wait().map_err(failed())? {
            return Ok(status);
        }
        if Instant::now() > deadline {
            child.kill().map_err(failed())?;
            child.wait().map_err(failed())?;
            return Err(Error::Run {
                what: name.to_owned(),
                said: format!("no end after {} s", PATIENCE.as_secs()),
            });
        }
        // Short against every job that is timed as a whole (a second and more).
        std::thread::sleep(Duration::from_millis(2));
    }
}
