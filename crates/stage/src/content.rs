// SPDX-License-Identifier: Apache-2.0
//! Hashes of files, and what machine a program is for.

use isthmus_wire::grid::Hash;
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::path::Path;

/// Largest file that is staged, bytes.
pub const MAX_FILE: u64 = 8 << 30;

/// Hash and size of a file.
pub fn hash_file(path: &Path) -> io::Result<(Hash, u64)> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 128 << 10];
    let mut size = 0;
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok((hasher.finalize().into(), size));
        }
        size += n as u64;
        if size > MAX_FILE {
            return Err(io::Error::other(format!("the file is larger than {MAX_FILE} bytes")));
        }
        hasher.update(&buffer[..n]);
    }
}

/// A hash in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Machine hardware name (as `uname -m`) that an ELF file is for; `None` for anything else, such as a script.
pub fn architecture_of(path: &Path) -> io::Result<Option<&'static str>> {
    let mut head = [0; 20];
    match std::fs::File::open(path)?.read_exact(&mut head) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let (hash, size) = hash_file(Path::new("/dev/null")).unwrap();
        assert_eq!(size, 0);
        assert!(hex(&hash).starts_with("e3b0c44298fc1c14"));
    }
}
