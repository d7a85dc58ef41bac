// SPDX-License-Identifier: Apache-2.0
//! Running jobs, on this machine or over a testbed, and reading their results.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use isthmus_testbed::{Testbed, Topology};

use crate::error::Error;
use crate::peers::{Peer, Placed};
use crate::program::Program;
use crate::samples::Sample;
use crate::sets::{Beside, Run, Set};

/// No job of a set takes longer when it works.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs a program of a peer over hosts of a testbed to its end.
pub(crate) fn over(
    bed: &Testbed,
    peer: &Peer,
    hosts: &[Placed],
    program: Program,
    arguments: &[&str],
    patience: Duration,
) -> Result<Outcome, Error> {
    let mut command = peer.over(hosts, program, arguments)?;
    let first = hosts.first().map_or("", |placed| placed.host.as_str());
    let child = bed.host(first)?.spawn(quiet(&mut command))?;
    Ok(finish(child, &peer.name, patience))
}

/// Where jobs run.
#[derive(Debug)]
pub(crate) enum Field {
    Here,
    Wide(Box<Testbed>),
    /// Two hosts of one site, with these names of their local areas.
    Near(Box<Testbed>, [&'static str; 2]),
}

/// Processors of this machine.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One of the processors that this program may use.
fn a_processor() -> usize {
    // "0-1,4": the first of the list. Without the file there is at least the first.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = list.and_then(|list| list.trim().split([',', '-']).next());
    first.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Nanoseconds between two processors of this machine as they mostly are; `None` where that is not to be known.
pub(crate) fn distance(peer: &Peer) -> Option<f64> {
    const PROBE: Run = Run {
        program: Program::Messages,
        ranks: 2,
        arguments: &["-t", "5", "distance"],
        beside: Beside::Nothing,
    };
    // Without an answer times are compared as they come.
    let samples = Field::Here.run(peer, &PROBE, None).ok()?;
    let found = samples.first().map(|sample| sample.value);
    found.filter(|&nanoseconds| nanoseconds > 0.0)
}

impl Field {
    /// Makes what a set needs.
    pub(crate) fn prepare(set: Set, rtt: &str, rate: &str) -> Result<Self, Error> {
        let topology = match set {
            Set::Wide => Topology::grid("2x1")?.round_trip(rtt)?.rate(rate)?,
            Set::Tcp | Set::Tls | Set::BusyTcp | Set::BusyTls => Topology::grid("1x2")?,
            _ => return Ok(Self::Here),
        };
        let bed = Box::new(Testbed::start(&topology)?);
        for limit in bed.limits() {
            eprintln!("isthmus-bench: note: {limit}");
        }
        Ok(match set {
            Set::Tcp | Set::BusyTcp => Self::Near(bed, ["a", "a"]),
            Set::Tls | Set::BusyTls => Self::Near(bed, ["a", "b"]),
            _ => Self::Wide(bed),
        })
    }

    /// Runs one job of a peer to its end, on processors as far from each other as is said, where it minds that.
    pub(crate) fn run(&self, peer: &Peer, run: &Run, distance: Option<f64>) -> Result<Vec<Sample>, Error> {
        let distance = distance.filter(|_| run.minds_distance(processors()));
        let before = match (distance, run.beside) {
            (_, Beside::OneProcessor) => vec!["-c".to_owned(), a_processor().to_string()],
            (Some(ns), _) => vec!["-d".to_owned(), ns.to_string()],
            (None, _) => vec![],
        };
        let _worker = Worker::beside(run)?;
        let start = Instant::now();
        let output = match self {
            Self::Here => {
                let mut command = peer.local(run, &before);
                let child = quiet(&mut command).spawn();
                let child = child.map_err(Error::system(format!("start {}", peer.name)))?;
                finish(child, &peer.name, PATIENCE).complete()?
            }
            Self::Near(bed, areas) => {
                let hosts = [("a1", areas[0]), ("a2", areas[1])];
                halves(bed, peer, run, hosts, &before)?.complete()?
            }
            Self::Wide(bed) => halves(bed, peer, run, [("a1", "a"), ("b1", "b")], &[])?.complete()?,
        };
        if run.arguments.is_empty() {
            return Ok(vec![Sample {
                test: "job".to_owned(),
                bytes: 0,
                value: start.elapsed().as_secs_f64(),
                unit: "s".to_owned(),
            }]);
        }
        let mut samples: Vec<Sample> = output.lines().filter_map(Sample::parse).collect();
        for sample in &mut samples {
            sample.test.push_str(run.beside.suffix());
        }
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
            Self::Wide(bed) | Self::Near(bed, _) => bed.report().distrust(),
        }
    }
}

/// Computes while the process lives whose number is given: also one that is killed leaves no busy process behind.
const BUSY_WHILE: &str = "while kill -0 $0 2>/dev/null; do i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; done";

/// A process that computes until this is dropped, or this program is gone.
struct Worker(Child);

impl Worker {
    fn beside(run: &Run) -> Result<Option<Self>, Error> {
        if run.beside != Beside::Worker {
            return Ok(None);
        }
        let own = std::process::id().to_string();
        let child = quiet(Command::new("sh").args(["-c", BUSY_WHILE, &own])).spawn();
        child
            .map(|child| Some(Self(child)))
            .map_err(Error::system("start a busy process".to_owned()))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that is gone already cannot be ended, and there is nobody to tell.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
}

/// Runs a job with one half of its ranks on each of two hosts, given with the names of their local areas.
fn halves(
    bed: &Testbed,
    peer: &Peer,
    run: &Run,
    hosts: [(&str, &str); 2],
    before: &[String],
) -> Result<Outcome, Error> {
    let ranks = run.ranks / 2;
    let hosts = hosts.map(|(host, lan)| Placed {
        host: host.to_owned(),
        lan: lan.to_owned(),
        ranks,
    });
    // The program checks that they are there.
    let places = format!("{ranks},{ranks}");
    let mut arguments = vec!["-p", &places];
    arguments.extend(before.iter().map(String::as_str));
    arguments.extend_from_slice(run.arguments);
    over(bed, peer, &hosts, run.program, &arguments, PATIENCE)
}

/// What a job printed, also when it failed.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) output: String,
    /// It failed, or did not end and was killed: its other ranks may still be there.
    pub(crate) failure: Option<Error>,
}

impl Outcome {
    fn complete(self) -> Result<String, Error> {
        self.failure.map_or(Ok(self.output), Err)
    }
}

/// What a stream gave so far. A stream that breaks off has told what it could.
fn collect(stream: Option<impl Read + Send + 'static>) -> (Arc<Mutex<Vec<u8>>>, JoinHandle<()>) {
    let text = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&text);
    let thread = std::thread::spawn(move || {
        let Some(mut stream) = stream else { return };
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            let mut text = shared.lock().unwrap_or_else(PoisonError::into_inner);
            text.extend_from_slice(&piece[..length]);
        }
    });
    (text, thread)
}

fn finish(mut child: Child, name: &str, patience: Duration) -> Outcome {
    let (out, out_thread) = collect(child.stdout.take());
    let (err, err_thread) = collect(child.stderr.take());
    let status = await_end(&mut child, name, patience);
    if status.is_ok() {
        // Nobody of an ended job writes any more; a panic has been reported by the thread itself.
        let _ = (out_thread.join(), err_thread.join());
    }
    let text = |bytes: &Mutex<Vec<u8>>| {
        String::from_utf8_lossy(&bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    };
    let failure = match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(Error::Run {
            what: format!("{name} ended with {status}"),
            said: last_lines(&text(&err), 5),
        }),
        Err(error) => Some(error),
    };
    Outcome {
        output: text(&out),
        failure,
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("; ")
}

fn await_end(child: &mut Child, name: &str, patience: Duration) -> Result<ExitStatus, Error> {
    let deadline = Instant::now() + patience;
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
                said: format!("no end after {} s", patience.as_secs()),
            });
        }
        // Short against every job that is timed as a whole (a second and more).
        std::thread::sleep(Duration::from_millis(2));
    }
}
