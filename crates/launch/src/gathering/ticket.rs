// SPDX-License-Identifier: Apache-2.0
//! Tickets: how a part on another machine finds those that wait. A file of the user that nobody else can read, since
//! whoever has it can be a part.

use isthmus_stage::cache;
use isthmus_wire::port::{MAX_NAME, NotAPort, PortName};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A ticket in its file, which goes when the world is complete.
#[derive(Debug)]
pub(super) struct Note(PathBuf);

impl Note {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Where tickets are.
///
/// # Errors
/// There is no place for them.
pub fn tickets() -> io::Result<PathBuf> {
    Ok(cache::directory().map_err(io::Error::other)?.join("tickets"))
}

/// Puts a ticket into a file; nothing: there is no place for it, and parts are found on this machine only.
pub(super) fn write(world: &str, ticket: &PortName) -> Option<Note> {
    let place = tickets().ok()?;
    DirBuilder::new().recursive(true).mode(0o700).create(&place).ok()?;
    let path = place.join(world);
    let _ = fs::remove_file(&path);
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .ok()?;
    let note = Note(path);
    file.write_all(format!("{}\n", ticket.encode()).as_bytes()).ok()?;
    Some(note)
}

/// A ticket from a file, or from what is typed where the file is `-`.
///
/// # Errors
/// There is none, or others can read it.
pub fn read(path: &Path) -> Result<PortName, String> {
    let mut text = Vec::new();
    let most = MAX_NAME as u64 + 64;
    let read = if path == Path::new("-") {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| text = line.into_bytes())
    } else {
        File::open(path).and_then(|file| {
            let found = file.metadata()?;
            if found.is_file() && found.mode() & 0o077 != 0 {
                return Err(io::Error::other(
                    "others can read or change it: whoever has a ticket can take part in the job (chmod 600)",
                ));
            }
            file.take(most).read_to_end(&mut text).map(drop)
        })
    };
    read.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&text);
    let said = |why| match why {
        _ if text.trim().is_empty() => "it is empty",
        NotAPort::Foreign => "it does not begin as tickets of this version of isthmus do",
        NotAPort::Damaged => "it was changed or cut off on its way here",
    };
    PortName::decode(text.trim()).map_err(|why| said(why).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_ticket_that_others_can_read_is_none() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ocean");
        let ticket = PortName {
            secret: [1; 16],
            fingerprint: [2; 32],
            port: 5,
            addresses: vec!["10.0.0.1".parse().unwrap()],
            entry: None,
            gate: None,
            proofs: false,
        };
        fs::write(&path, format!("{}\n", ticket.encode())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read(&path).unwrap_err().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&path), Ok(ticket.clone()));
        let whole = ticket.encode();
        for (text, why) in [
            ("x".repeat(5000).as_bytes(), "does not begin as tickets"),
            (b"\xff\xfe", "does not begin as tickets"),
            (&whole.as_bytes()[..whole.len() - 3], "cut off"),
            (b" \n", "it is empty"),
        ] {
            fs::write(&path, text).unwrap();
            assert!(read(&path).unwrap_err().contains(why), "{why}");
        }
        assert!(read(&place.path().join("none")).is_err());
    }
}
