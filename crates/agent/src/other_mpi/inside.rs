// SPDX-License-Identifier: Apache-2.0
//! Programs that contain another MPI, linked from an archive: the dynamic linker knows nothing of it, its texts do.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes that are read at a time, and most that are looked at.
const PIECE: usize = 1 << 20;
const MOST: u64 = 512 << 20;

/// An MPI, how the names of its settings or functions begin, and how many of them no other program has.
const MARKS: [(&str, &[u8], u32); 3] = [
    ("MPICH", b"MPIR_CVAR_", 16),
    ("Open MPI", b"ompi_mpi_", 16),
    ("Intel MPI", b"I_MPI_ADJUST_", 8),
];

/// The MPI that an ELF file contains.
pub(super) fn contained(file: &Path) -> Option<&'static str> {
    let mut file = File::open(file).ok()?.take(MOST);
    let longest = MARKS.map(|(_, mark, _)| mark.len()).into_iter().max().unwrap_or(1);
    let (mut bytes, mut found, mut first) = (Vec::new(), [0_u32; MARKS.len()], true);
    loop {
        let kept = bytes.len();
        (&mut file).take(PIECE as u64).read_to_end(&mut bytes).ok()?;
        if first && !bytes.starts_with(b"\x7fELF") || bytes.len() == kept {
            return None;
        }
        first = false;
        for ((mpi, mark, enough), found) in MARKS.iter().zip(&mut found) {
            // What begins in the part that is kept is counted with the next piece.
            let end = bytes.len().saturating_sub(longest - mark.len());
            *found += occurrences(&bytes[..end], mark);
            if *found >= *enough {
                return Some(mpi);
            }
        }
        bytes.drain(..bytes.len().saturating_sub(longest - 1));
    }
}

/// How often `mark` begins in these bytes and ends there too.
fn occurrences(bytes: &[u8], mark: &[u8]) -> u32 {
    let (mut rest, mut count) = (bytes, 0);
    while let Some(at) = rest.iter().position(|byte| *byte == mark[0]) {
        count += u32::from(rest[at..].starts_with(mark));
        rest = &rest[at + 1..];
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_of_another_mpi_leaves_its_names() {
        let place = std::env::temp_dir().join(format!("isthmus-inside-{}", std::process::id()));
        let look = |begin: &[u8], before: usize, names: usize| {
            let mut bytes = begin.to_vec();
            bytes.resize(bytes.len() + before, b'x');
            (0..names).for_each(|_| bytes.extend(b"MPIR_CVAR_X\0"));
            bytes.resize(bytes.len() + 64, 0);
            std::fs::write(&place, bytes).unwrap();
            contained(&place)
        };
        assert_eq!(look(b"\x7fELF", 5, 16), Some("MPICH"));
        // Wherever the first piece ends.
        for before in PIECE - 30..PIECE - 2 {
            assert_eq!(look(b"\x7fELF", before, 16), Some("MPICH"), "{before}");
        }
        assert_eq!(look(b"\x7fELF", PIECE - 30, 15), None);
        assert_eq!(look(b"\x7fELF", PIECE - 14, 15), None);
        assert_eq!(look(b"#!/bin/sh\n", 5, 16), None);
        std::fs::remove_file(&place).unwrap();
        assert_eq!(contained(&place), None);
    }
}
