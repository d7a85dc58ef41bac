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

/// What is read, as text, within the bound; without the mark that editors of Windows put in front.
pub(crate) fn text(source: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it is larger than {MAX_BYTES} bytes")));
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(io::Error::other("it is text in UTF-16; save it in UTF-8"));
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let line = e.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
        io::Error::other(format!("line {line} is not text in UTF-8"))
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

fn through_pipe(file: PathBuf, patience: Duration) -> io::Result<String> {
    let (tell, told) = mpsc::channel();
    // Where nothing comes, this thread waits until the command ends.
    thread::Builder::new().spawn(move || {
        let _ = tell.send(File::open(file).and_then(text));
    })?;
    told.recv_timeout(patience).unwrap_or_else(|_| {
        Err(io::Error::other(format!(
            "it is a pipe, and its writer has not finished within {} s",
            patience.as_secs()
        )))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_windows_is_text() {
        assert_eq!(text(&b"\xef\xbb\xbflab:2\r\n"[..]).unwrap(), "lab:2\r\n");
        for (bytes, part) in [(&b"\xff\xfel\0"[..], "UTF-16"), (b"lab\n\xe9\n", "line 2 is not text")] {
            let error = text(bytes).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

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
