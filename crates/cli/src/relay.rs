// SPDX-License-Identifier: Apache-2.0
//! `isthmus relay`: runs a command of ours for whoever typed it at another site, and ends it when that one is gone.

use isthmus_stage::{own, words};
use isthmus_wire::codec::{DecodeError, Deframer};
use isthmus_wire::relay::{Begin, MAX_BEGIN, MAX_PIECE, Said};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a command that has closed its output is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Serves over standard input and output. Returns when the command has ended, or whoever asked for it is gone.
pub(crate) fn serve() -> io::Result<()> {
    let Some(begin) = request(&mut io::stdin().lock())? else {
        return Ok(());
    };
    let mut child = match start(&begin) {
        Ok(child) => child,
        Err(error) => {
            let why = format!("isthmus: error: cannot run the command at this site: {error}\n");
            send(&Said::Errors(why.into_bytes()))?;
            return send(&Said::Ended(1));
        }
    };
    let passing = [
        child.stdout.take().map(|pipe| pass_on(pipe, Said::Output)),
        child.stderr.take().map(|pipe| pass_on(pipe, Said::Errors)),
    ];
    let child = Arc::new(Mutex::new(child));
    end_with_input(Arc::clone(&child));
    passing.into_iter().flatten().for_each(|thread| drop(thread.join()));
    loop {
        // It has closed its output: it is about to end.
        let ended = child.lock().unwrap_or_else(PoisonError::into_inner).try_wait()?;
        if let Some(ended) = ended {
            return send(&Said::Ended(shown(ended)));
        }
        std::thread::sleep(LOOK);
    }
}

/// What is asked for; nothing when nobody asks.
fn request(input: &mut impl Read) -> io::Result<Option<Begin>> {
    let invalid = |error: DecodeError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    let mut deframer = Deframer::default();
    let mut buffer = [0; 4096];
    let mut received = 0;
    loop {
        if let Some(body) = deframer.next_body().map_err(invalid)? {
            return Begin::decode(&body).map(Some).map_err(invalid);
        }
        let n = input.read(&mut buffer)?;
        received += n;
        if n == 0 {
            return Ok(None);
        }
        if received > MAX_BEGIN {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the request is too long"));
        }
        deframer.feed(&buffer[..n]);
    }
}

fn start(begin: &Begin) -> io::Result<Child> {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from("/"));
    Command::new(own::found(&std::env::current_exe()?))
        .args(begin.words.iter().map(|word| words::path(word)))
        .envs(begin.environment.iter().map(|(name, value)| (name, words::path(value))))
        .current_dir(home.join(words::path(&begin.directory)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Passes on what a pipe gives until it is closed.
fn pass_on(mut pipe: impl Read + Send + 'static, said: fn(Vec<u8>) -> Said) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = vec![0; MAX_PIECE];
        while let Ok(n @ 1..) = pipe.read(&mut buffer) {
            // Whoever is gone needs nothing more: the end of our input says so too.
            if send(&said(buffer[..n].to_vec())).is_err() {
                return;
            }
        }
    })
}

/// Whoever asked is gone when our input ends: so is the command then. A job that it has started is not.
fn end_with_input(child: Arc<Mutex<Child>>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 256];
        while matches!(io::stdin().lock().read(&mut buffer), Ok(1..)) {}
        let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    });
}

fn send(said: &Said) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(&said.encode())?;
    output.flush()
}

/// The exit status as a shell tells it.
fn shown(ended: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let status = ended.code().or_else(|| ended.signal().map(|signal| 128 + signal));
    status.and_then(|status| u8::try_from(status).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_bounded_and_whole() {
        let begin = Begin {
            words: vec!["ps".into()],
            ..Begin::default()
        };
        let bytes = begin.encode();
        assert_eq!(request(&mut &*bytes).unwrap(), Some(begin));
        assert_eq!(request(&mut &bytes[..5]).unwrap(), None);
        let endless = [&[0, 0, 0, 1_u8][..], &vec![7; 2 << 20]].concat();
        assert!(request(&mut &*endless).is_err());
    }
}
