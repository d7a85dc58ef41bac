// SPDX-License-Identifier: Apache-2.0
//! Ending shared connections of ssh at once: a master that nobody uses would stay for some seconds after its command,
//! and whoever waits for all processes of that would wait for it.
//!
//! What is said over a control socket is in OpenSSH's `PROTOCOL.mux`: packets of a length, a type and a word.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long a master may take to hang up. One that does not ends by itself.
const PATIENCE: Duration = Duration::from_millis(500);

/// Pieces of its answer that are waited for.
const ANSWERS: u32 = 8;

const HELLO: u32 = 1;
const VERSION: u32 = 4;
const TERMINATE: u32 = 0x1000_0005;

/// Ends the masters whose control sockets, whose names are numbers, are in a directory.
pub(crate) fn end(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !name.is_empty() && name.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            // One that is gone, or no master, needs nothing.
            let _ = end_one(&entry.path());
        }
    }
}

fn end_one(socket: &Path) -> std::io::Result<()> {
    let mut master = UnixStream::connect(socket)?;
    master.set_read_timeout(Some(PATIENCE))?;
    master.set_write_timeout(Some(PATIENCE))?;
    master.write_all(&[packet(HELLO, VERSION), packet(TERMINATE, 0)].concat())?;
    // It answers, or hangs up before its answer has left.
    let mut answers = [0; 64];
    for _ in 0..ANSWERS {
        if master.read(&mut answers)? == 0 {
            break;
        }
    }
    Ok(())
}

fn packet(kind: u32, word: u32) -> Vec<u8> {
    [8, kind, word].iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn masters_are_told_to_end_and_nothing_else_is_touched() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let master = UnixListener::bind(at("0")).unwrap();
        let other = UnixListener::bind(at("asking")).unwrap();
        other.set_nonblocking(true).unwrap();
        // One that has gone, and what is no socket at all.
        drop(UnixListener::bind(at("1")).unwrap());
        std::fs::write(at("2"), "").unwrap();
        let heard = std::thread::spawn(move || {
            let (mut client, _) = master.accept().unwrap();
            client.write_all(&packet(HELLO, VERSION)).unwrap();
            let mut heard = [0; 24];
            client.read_exact(&mut heard).unwrap();
            heard
        });
        end(directory.path());
        let wanted = [packet(HELLO, VERSION), packet(TERMINATE, 0)].concat();
        assert_eq!(heard.join().unwrap().as_slice(), wanted);
        assert!(other.accept().is_err(), "nobody has come to it");
    }
}
