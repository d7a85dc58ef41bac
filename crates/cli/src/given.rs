// SPDX-License-Identifier: Apache-2.0
//! Files that the user names, read whole: never more than a bound, and never a wait without end.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Most bytes of one file.
pub(crate) const MAX_BYTES: u64 = 4 << 20;
/// How long whoever writes into a pipe may take. Opening one that nobody writes into waits for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// The text of a file: a regular one, or one that something comes through, as `/dev/stdin` and `<(command)`.
pub(crate) fn read(file: &Path) -> io::Result<String> {
    let is_pipe = std::fs::metadata(file)?.file_type().is_fifo();
    match is_pipe {
        true => through_pipe(file.to_owned(), PATIENCE),
        false => text(File::open(file)?),
    }
}

/// What is read, as text, within the bound.
pub(crate) fn text(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other(format!("it is larger than {MAX_BYTES} bytes"))),
        false => Ok(text),
    }
}

fn through_pipe(file: PathBuf, patience: Duration) -> io::Result<String> {
    let (tell, told) = mpsc::channel();
    // Where nothing comes, this thread waits until the command ends.
    thread::Builder::new().spawn(move || {
        let _ = tell.send(File::open(file).and_then(text));
    })?;
    told.recv_timeout(patience).unwrap_or_else(|_| {
        Err(io::Error::other(format!(
            "it is a pipe, and whoever writes into it has not finished within {} s",
            patience.as_secs()
        )))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_not_read_for_ever() {
        let error = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 4194304 bytes");
        assert!(read(Path::new("/")).is_err());
        let place = std::env::temp_dir().join(format!("isthmus-given-{}", std::process::id()));
        std::fs::create_dir(&place).unwrap();
        let (silent, written) = (place.join("silent"), place.join("written"));
        let made = std::process::Command::new("mkfifo").args([&silent, &written]).status();
        assert!(made.unwrap().success());
        let error = through_pipe(silent, Duration::ZERO).unwrap_err();
        assert!(error.to_string().starts_with("it is a pipe, "), "{error}");
        // Whoever writes is waited for.
        let into = written.clone();
        let writer = thread::spawn(move || std::fs::write(into, "a line\n"));
        let text = read(&written).unwrap();
        writer.join().unwrap().unwrap();
        std::fs::remove_dir_all(&place).unwrap();
        assert_eq!(text, "a line\n");
    }
}
