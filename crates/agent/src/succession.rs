// SPDX-License-Identifier: Apache-2.0
//! The place where a coordinator reaches an agent again whose connection has ended:
//! `$XDG_CACHE_HOME/isthmus/held/JOB-SUBJOB`, a socket for its owner alone. Whoever comes there proves the secret of
//! the job first.

use crate::event::{Event, Resumed};
use isthmus_wire::codec::Deframer;
use isthmus_wire::grid::{Hold, MAX_RESUME, ToAgent};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Whoever comes has so long to prove the secret.
const PROVING: Duration = Duration::from_secs(5);
/// Longest name of a job.
const MAX_NAME: usize = 64;

/// Where a successor comes in; nobody does any more when this is dropped.
#[derive(Debug)]
pub(crate) struct Succession {
    /// For how long the agent does without a coordinator.
    pub(crate) patience: Duration,
    path: PathBuf,
    accepting: JoinHandle<()>,
}

impl Drop for Succession {
    fn drop(&mut self) {
        self.accepting.abort();
        let _ = fs::remove_file(&self.path);
    }
}

impl Succession {
    /// Opens the place of a subjob.
    pub(crate) fn open(name: &str, hold: &Hold, events: &mpsc::Sender<Event>) -> io::Result<Self> {
        let (directory, path) = place(name)?;
        // The place of an agent that was killed.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(short(&directory, name))?;
        let secret = hold.secret;
        let events = events.clone();
        let accepting = tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    // One at a time: they are short, and nobody waits long for a silent one.
                    Ok((stream, _)) => {
                        let proven = tokio::time::timeout(PROVING, prove(stream, &secret)).await;
                        if let Ok(Some(resumed)) = proven {
                            let _ = events.send(Event::Resumed(Box::new(resumed))).await;
                        }
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        });
        Ok(Self {
            patience: Duration::from_secs(u64::from(hold.seconds)),
            path,
            accepting,
        })
    }
}

/// The name of a subjob's place, if that may be a name of a file.
pub(crate) fn name(job: &str, subjob: u32) -> Option<String> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (!job.is_empty() && job.len() <= MAX_NAME && job.bytes().all(fine)).then(|| format!("{job}-{subjob}"))
}

/// The directory of all places, and the path of one in it.
fn place(name: &str) -> io::Result<(File, PathBuf)> {
    let directory = crate::place_for_files().map_err(io::Error::other)?.join("held");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    let path = directory.join(name);
    Ok((File::open(&directory)?, path))
}

/// A path that is short enough for a socket, whatever the path of its directory: through a descriptor of that.
fn short(directory: &File, name: &str) -> PathBuf {
    format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()).into()
}

/// Takes the first message; nothing: it is not from a successor.
async fn prove(mut stream: UnixStream, secret: &[u8; 32]) -> Option<Resumed> {
    if stream.peer_cred().ok()?.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let (mut deframer, mut buffer, mut received) = (Deframer::default(), [0; MAX_RESUME], 0);
    let body = loop {
        if let Some(body) = deframer.next_body().ok()? {
            break body;
        }
        if received >= MAX_RESUME {
            return None;
        }
        let n = stream.read(&mut buffer).await.ok().filter(|n| *n > 0)?;
        received += n;
        deframer.feed(&buffer[..n]);
    };
    match ToAgent::decode(&body) {
        Ok(ToAgent::Resume(resume)) if is_same(&resume.secret, secret) => Some(Resumed {
            stream,
            deframer,
            resume,
        }),
        _ => None,
    }
}

/// Takes as long for one that is nearly right as for one that is all wrong.
fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

/// `isthmus agent --resume JOB SUBJOB`: carries a connection to the agent that is there, over what the coordinator
/// reads and writes.
///
/// # Errors
/// There is none.
pub fn carry(job: &str, subjob: u32, mut input: impl Read + Send + 'static, output: &mut impl Write) -> io::Result<()> {
    // Neither a Ctrl-C at the coordinator's terminal nor its end may reach us other than through the connection.
    let _ = rustix::process::setsid();
    let gone = || {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        io::Error::other(format!("no agent of this job waits on host {host}"))
    };
    let name = name(job, subjob).ok_or_else(gone)?;
    let (directory, _) = place(&name)?;
    let stream = BlockingStream::connect(short(&directory, &name)).map_err(|_| gone())?;
    let mut back = stream.try_clone()?;
    std::thread::spawn(move || {
        let _ = pass(&mut input, &mut back);
        let _ = back.shutdown(Shutdown::Write);
    });
    pass(&mut &stream, output)
}

fn pass(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(&buffer[..n])?;
        to.flush()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_wire::grid::Resume;
    use tokio::io::AsyncWriteExt;

    fn resume(secret: u8) -> ToAgent {
        ToAgent::Resume(Resume {
            secret: [secret; 32],
            launcher: 1,
            standings: 2,
            outputs: 3,
        })
    }

    #[tokio::test]
    async fn only_who_knows_the_secret_follows() {
        let long = vec![0; 2 * MAX_RESUME];
        let refused = [
            resume(8).encode(),
            ToAgent::End.encode(),
            long,
            vec![255; 4],
            Vec::new(),
        ];
        for first in refused {
            let (mut one, other) = UnixStream::pair().unwrap();
            one.write_all(&first).await.unwrap();
            drop(one);
            assert!(prove(other, &[7; 32]).await.is_none(), "{first:?}");
        }
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(&resume(7).encode()).await.unwrap();
        one.write_all(&ToAgent::Ping(1).encode()[..5]).await.unwrap();
        let mut resumed = prove(other, &[7; 32]).await.unwrap();
        assert_eq!((resumed.resume.standings, resumed.resume.outputs), (2, 3));
        // What comes behind it is not lost.
        one.write_all(&ToAgent::Ping(1).encode()[5..]).await.unwrap();
        let mut rest = [0; 64];
        let n = resumed.stream.read(&mut rest).await.unwrap();
        resumed.deframer.feed(&rest[..n]);
        let body = resumed.deframer.next_body().unwrap().unwrap();
        assert_eq!(ToAgent::decode(&body), Ok(ToAgent::Ping(1)));
    }

    #[test]
    fn names_are_names_of_files() {
        assert_eq!(name("isthmus-12ab", 3).as_deref(), Some("isthmus-12ab-3"));
        for wrong in ["", "..", "a/b", "a b", &"x".repeat(65)] {
            assert_eq!(name(wrong, 0), None);
        }
    }
}
