// SPDX-License-Identifier: Apache-2.0
//! A launcher for what a program without one spawns: `isthmus spawned` is asked over its standard input, answers
//! there, and is then the launcher of a job of its own, whose processes connect to a port of this one.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::asking::check_length;
use isthmus_wire::boot::Message;
use isthmus_wire::codec::Deframer;
use isthmus_wire::question::{Ask, Question, Said};

/// What that launcher is called.
const LAUNCHER: &str = "isthmus";
/// How long it may take to begin.
const PATIENCE: Duration = Duration::from_secs(60);

/// It runs as long as its processes do.
pub struct Helper {
    child: Child,
}

impl Helper {
    /// Starts one that starts these. What it says of them, before they are there.
    ///
    /// # Errors
    /// There is none, or it refuses: a sentence.
    pub fn start(ask: Ask) -> Result<(Self, Said), String> {
        let launcher = beside_library().unwrap_or_else(|| PathBuf::from(LAUNCHER));
        let failed = |error: std::io::Error| {
            format!(
                "this program was started without a launcher, and '{}' cannot be started for it: {error}; put the bin \
                 directory of Isthmus into PATH, or start the program with isthmus run",
                launcher.display()
            )
        };
        let (mut own, its) = UnixStream::pair().map_err(failed)?;
        own.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let child = Command::new(&launcher)
            .arg("spawned")
            .stdin(Stdio::from(OwnedFd::from(its)))
            .spawn()
            .map_err(failed)?;
        let mut helper = Self { child };
        match helper.ask(&mut own, ask) {
            Ok(said) => Ok((helper, said)),
            Err(why) => {
                // Nobody needs it any more; it may have ended.
                let _ = helper.child.kill();
                let _ = helper.child.wait();
                Err(why)
            }
        }
    }

    fn ask(&mut self, line: &mut UnixStream, ask: Ask) -> Result<Said, String> {
        let question = Message::Question(Question { number: 1, ask });
        check_length(&question).map_err(|refusal| refusal.why)?;
        let lost =
            |error: std::io::Error| format!("the launcher that was started for this program does not answer: {error}");
        line.write_all(&question.encode()).map_err(lost)?;
        let mut deframer = Deframer::default();
        let mut buffer = [0; 4096];
        loop {
            let body = deframer.next_body().map_err(|error| error.to_string())?;
            if let Some(body) = body {
                return match Message::decode(&body) {
                    Ok(Message::Answer(answer)) => answer.said.map_err(|refusal| refusal.why),
                    _ => Err("the launcher that was started for this program is of another version".to_owned()),
                };
            }
            match line.read(&mut buffer) {
                Ok(0) => {
                    return Err(self
                        .has_ended()
                        .unwrap_or_else(|| lost(ErrorKind::UnexpectedEof.into())));
                }
                Ok(n) => deframer.feed(&buffer[..n]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(error)),
            }
        }
    }

    /// That it has ended, if it has.
    pub fn has_ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!(
            "the launcher that was started for this program has ended ({status}); it has said why"
        ))
    }
}

/// The launcher of the installation that the library of this process is of.
fn beside_library() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let library = maps.lines().find_map(|line| {
        let path = Path::new(line.get(line.find('/')?..)?);
        let name = path.file_name()?.to_str()?;
        name.starts_with("libmpi_abi.so").then_some(path)
    })?;
    let launcher = library.parent()?.parent()?.join("bin").join(LAUNCHER);
    launcher.is_file().then_some(launcher)
}
