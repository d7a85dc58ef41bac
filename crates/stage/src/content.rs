// SPDX-License-Identifier: Apache-2.0
//! Hashes of files, and what machine a program is for.

use isthmus_wire::grid::Hash;
use isthmus_wire::service::{Manifest, PIECE};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Largest file that is staged, bytes.
pub const MAX_FILE: u64 = 1 << 40;

/// Takes the content of a file in pieces of any length and makes its manifest.
#[derive(Debug, Default)]
pub struct Hasher {
    piece: Sha256,
    filled: usize,
    size: u64,
    pieces: Vec<Hash>,
}

impl Hasher {
    /// The next bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.size += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - self.filled));
            self.piece.update(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == PIECE {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.pieces.push(self.piece.finalize_reset().into());
        self.filled = 0;
    }

    /// The manifest of all of it.
    pub fn finish(mut self) -> Manifest {
        if self.filled > 0 {
            self.close();
        }
        Manifest {
            hash: root(self.size, &self.pieces),
            size: self.size,
            pieces: self.pieces,
        }
    }
}

/// Hash of a file's size and of the hashes of its pieces: what a cache calls it.
pub fn root(size: u64, pieces: &[Hash]) -> Hash {
    let mut hasher = Sha256::new_with_prefix(b"isthmus file 1\0");
    hasher.update(size.to_le_bytes());
    pieces.iter().for_each(|piece| hasher.update(piece));
    hasher.finalize().into()
}

/// Whether a manifest from outside agrees with itself.
pub fn is_sound(manifest: &Manifest) -> bool {
    manifest.size <= MAX_FILE
        && manifest.count() == manifest.pieces.len() as u64
        && root(manifest.size, &manifest.pieces) == manifest.hash
}

/// Whether these bytes are this piece of the file.
pub fn is_piece(manifest: &Manifest, number: u32, bytes: &[u8]) -> bool {
    let piece = manifest.pieces.get(number as usize);
    piece.is_some_and(|hash| bytes.len() == manifest.length(number) && Sha256::digest(bytes)[..] == hash[..])
}

/// Opens a regular file. Opening a pipe that nobody writes into would wait for ever, and what comes out of a device has
/// no end.
pub fn regular(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path)? {
        found if found.is_file() => File::open(path),
        found if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::other("it is a pipe, a socket or a device, and no file")),
    }
}

/// The manifest of a file.
pub fn manifest_of(path: &Path) -> io::Result<Manifest> {
    manifest(&mut regular(path)?)
}

/// The manifest of what is read.
pub fn manifest(file: &mut impl Read) -> io::Result<Manifest> {
    let mut hasher = Hasher::default();
    read_all(file, |bytes| hasher.update(bytes))?;
    Ok(hasher.finish())
}

/// SHA-256 and size of a file, for sites that have nothing but `sha256sum`.
pub fn sha256(path: &Path) -> io::Result<(Hash, u64)> {
    let mut hasher = Sha256::new();
    let size = read_all(&mut regular(path)?, |bytes| hasher.update(bytes))?;
    Ok((hasher.finalize().into(), size))
}

fn read_all(file: &mut impl Read, mut each: impl FnMut(&[u8])) -> io::Result<u64> {
    let mut buffer = vec![0; 256 << 10];
    let mut size = 0;
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok(size);
        }
        size += n as u64;
        if size > MAX_FILE {
            return Err(io::Error::other(format!("the file is larger than {MAX_FILE} bytes")));
        }
        each(&buffer[..n]);
    }
}

/// A hash in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Machine hardware name (as `uname -m`) that an ELF file is for; `None` for anything else, such as a script.
pub fn architecture_of(path: &Path) -> io::Result<Option<&'static str>> {
    let mut head = [0; 20];
    match regular(path)?.read_exact(&mut head) {
        Ok(()) => Ok(architecture_of_header(&head)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// From the first bytes of a file: magic number, class (byte 4), byte order (byte 5), machine (bytes 18, 19).
fn architecture_of_header(head: &[u8; 20]) -> Option<&'static str> {
    if head[..4] != *b"\x7fELF" {
        return None;
    }
    let little = head[5] == 1;
    let machine = if little {
        u16::from_le_bytes([head[18], head[19]])
    } else {
        u16::from_be_bytes([head[18], head[19]])
    };
    Some(match (machine, head[4], little) {
        (3, ..) => "i386",
        (21, _, true) => "ppc64le",
        (21, _, false) => "ppc64",
        (22, ..) => "s390x",
        (40, ..) => "arm",
        (62, ..) => "x86_64",
        (183, _, true) => "aarch64",
        (183, _, false) => "aarch64_be",
        (243, 2, _) => "riscv64",
        (243, ..) => "riscv32",
        (258, ..) => "loongarch64",
        _ => "another architecture",
    })
}

/// Whether a machine runs programs of an architecture by itself.
pub fn runs(machine: &str, architecture: &str) -> bool {
    machine == architecture
        || matches!(
            (machine, architecture),
            ("x86_64", "i386") | ("i486" | "i586" | "i686", "i386")
        )
        || (machine.starts_with("arm") && architecture == "arm")
}

/// The hash that is written so in hexadecimal.
pub(crate) fn unhex(text: &str) -> Option<Hash> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let directory = std::env::temp_dir().join(format!("isthmus-regular-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let pipe = directory.join("pipe");
        std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        for path in [&pipe, Path::new("/dev/zero")] {
            for told in [regular(path).err(), manifest_of(path).err(), sha256(path).err()] {
                assert!(told.unwrap().to_string().contains("no file"));
            }
            assert!(architecture_of(path).is_err());
        }
        assert_eq!(regular(&directory).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn own_binary_is_for_this_machine() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(architecture_of(&own).unwrap(), Some(std::env::consts::ARCH));
    }

    #[test]
    fn headers_are_told_apart() {
        let mut head = [0; 20];
        assert_eq!(architecture_of_header(&head), None);
        head[..6].copy_from_slice(b"\x7fELF\x02\x02");
        head[19] = 22;
        assert_eq!(architecture_of_header(&head), Some("s390x"));
        assert!(!runs("x86_64", "s390x"));
        assert!(runs("x86_64", "i386"));
    }

    #[test]
    fn hash_of_a_file() {
        let file = std::env::temp_dir().join(format!("isthmus-hash-{}", std::process::id()));
        std::fs::write(&file, b"").unwrap();
        let found = sha256(&file);
        std::fs::remove_file(&file).unwrap();
        let (hash, size) = found.unwrap();
        assert_eq!(size, 0);
        assert!(hex(&hash).starts_with("e3b0c44298fc1c14"));
        // What comes out of a device has no end.
        assert!(sha256(Path::new("/dev/zero")).is_err());
    }

    #[test]
    fn a_manifest_does_not_depend_on_how_the_bytes_come() {
        let bytes: Vec<u8> = (0..PIECE * 2 + 5).map(|i| ((i * 7) >> 3) as u8).collect();
        let whole = manifest(&mut &bytes[..]).unwrap();
        let mut parts = Hasher::default();
        bytes.chunks(100_003).for_each(|part| parts.update(part));
        assert_eq!(parts.finish(), whole);
        assert!(is_sound(&whole) && whole.pieces.len() == 3);
        assert!(is_piece(&whole, 2, &bytes[2 * PIECE..]) && !is_piece(&whole, 1, &bytes[1..=PIECE]));
        assert!(!is_sound(&Manifest {
            size: whole.size - 1,
            ..whole
        }));
        assert!(is_sound(&manifest(&mut &b""[..]).unwrap()));
    }
}
