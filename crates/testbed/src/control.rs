// SPDX-License-Identifier: Apache-2.0
//! Speaking to a running testbed from another process, also from inside its hosts.
//!
//! A Unix socket in the testbed's directory, which only its owner may enter; one request and one reply in
//! JSON, a line each.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bed::{Testbed, find_host};
use crate::error::Error;
use crate::host::Host;
use crate::state::{self, Description};
use crate::stats::Report;
use crate::units;

/// Longest line either side accepts.
const MAX_LINE: u64 = 1 << 20;
/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);

/// What can be asked of a running testbed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// Cut the link between two sites.
    Cut(String, String),
    /// Restore it.
    Restore(String, String),
    /// Change what is given of the link between two sites: round trip, rate (as in topology files).
    Set {
        /// The sites.
        between: (String, String),
        /// The new round trip.
        round_trip: Option<String>,
        /// The new rate.
        rate: Option<String>,
    },
    /// What crossed the links?
    Report,
    /// End everything.
    Down,
}

/// Its answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// Done.
    Done,
    /// Refused, and why.
    Refused(String),
    /// The report.
    Report(Report),
}

/// Answers requests on threads of its own while `bed` lives; says so on `down` when asked to end.
///
/// # Errors
/// [`Error::System`] when the socket cannot be made.
pub fn serve(bed: &std::sync::Arc<Testbed>, down: Sender<()>) -> Result<(), Error> {
    let listener =
        UnixListener::bind(bed.directory().join("control")).map_err(Error::system("make the control socket"))?;
    let bed = std::sync::Arc::downgrade(bed);
    let serve = move || {
        for stream in listener.incoming().flatten() {
            // One at a time: every request is answered at once, and a silent client is given up.
            let Ok(line) = hear(&stream) else { continue };
            let Some(bed) = bed.upgrade() else { return };
            let _ = answer(&stream, &line, &bed, &down);
        }
    };
    std::thread::Builder::new()
        .name("control".to_owned())
        .spawn(serve)
        .map_err(Error::system("start a thread"))?;
    Ok(())
}

fn hear(stream: &UnixStream) -> std::io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_LINE)).read_line(&mut line)?;
    Ok(line)
}

fn answer(stream: &UnixStream, line: &str, bed: &Testbed, down: &Sender<()>) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let reply = match serde_json::from_str(line) {
        Ok(Request::Cut(a, b)) => done(bed.cut(&a, &b)),
        Ok(Request::Restore(a, b)) => done(bed.restore(&a, &b)),
        Ok(Request::Set {
            between: (a, b),
            round_trip,
            rate,
        }) => done(set(bed, &a, &b, round_trip.as_deref(), rate.as_deref())),
        Ok(Request::Report) => Reply::Report(bed.report()),
        Ok(Request::Down) => {
            // A receiver that is gone is ending already.
            let _ = down.send(());
            Reply::Done
        }
        Err(error) => Reply::Refused(format!("not a request: {error}")),
    };
    let mut text = serde_json::to_string(&reply)?;
    text.push('\n');
    (&mut &*stream).write_all(text.as_bytes())
}

fn set(bed: &Testbed, a: &str, b: &str, round_trip: Option<&str>, rate: Option<&str>) -> Result<(), Error> {
    let round_trip = round_trip.map(units::duration).transpose()?;
    let rate = rate.map(units::rate).transpose()?;
    bed.change(a, b, |link| {
        link.round_trip = round_trip.unwrap_or(link.round_trip);
        link.rate = rate.unwrap_or(link.rate);
    })
}

fn done(result: Result<(), Error>) -> Reply {
    match result {
        Ok(()) => Reply::Done,
        Err(error) => Reply::Refused(error.to_string()),
    }
}

/// A running testbed of another process.
#[derive(Debug)]
pub struct Client {
    state: PathBuf,
    description: Description,
}

impl Client {
    /// Finds the testbed in the directory `state`.
    ///
    /// # Errors
    /// [`Error::System`] when there is none.
    pub fn open(state: &Path) -> Result<Self, Error> {
        Ok(Self {
            state: state.to_owned(),
            description: state::read(state)?,
        })
    }

    /// What it is.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Its host called `name`; not from inside another host, which cannot see it.
    ///
    /// # Errors
    /// [`Error::Unknown`] with the names there are; [`Error::System`] when it cannot be reached.
    pub fn host(&self, name: &str) -> Result<Host, Error> {
        find_host(&self.description, name, &self.state)
    }

    /// Asks for something.
    ///
    /// # Errors
    /// [`Error::System`] when it does not answer or refuses.
    pub fn ask(&self, request: &Request) -> Result<Reply, Error> {
        let reply = self.exchange(request).map_err(Error::system("ask the testbed"))?;
        match reply {
            Reply::Refused(why) => Err(Error::System {
                doing: "ask the testbed".to_owned(),
                source: std::io::Error::other(why),
            }),
            reply => Ok(reply),
        }
    }

    fn exchange(&self, request: &Request) -> std::io::Result<Reply> {
        let mut stream = UnixStream::connect(self.state.join("control"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut text = serde_json::to_string(request)?;
        text.push('\n');
        stream.write_all(text.as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream.take(MAX_LINE)).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}
