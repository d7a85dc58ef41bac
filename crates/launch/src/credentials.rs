// SPDX-License-Identifier: Apache-2.0
//! Secret, authority and certificates of a job. They live in memory and end with the coordinator.

use isthmus_identity::{Authority, MAX_VALIDITY};
use isthmus_wire::grid::Arrival;
use std::io;

/// What is made once per job.
pub(crate) struct Credentials {
    pub(crate) secret: [u8; 32],
    authority: Option<Authority>,
}

impl Credentials {
    /// New ones; an authority only when processes of different nodes connect.
    pub(crate) fn new(job: &str, connects: bool) -> io::Result<Self> {
        let authority = connects
            .then(|| Authority::new(job))
            .transpose()
            .map_err(io::Error::other)?;
        Ok(Self {
            secret: isthmus_stage::guarded::random()?,
            authority,
        })
    }

    /// Certificate of the authority (DER), empty without one.
    pub(crate) fn authority(&self) -> Vec<u8> {
        self.authority
            .as_ref()
            .map(|a| a.certificate().to_vec())
            .unwrap_or_default()
    }

    /// Certificate for a process (DER), empty when the job needs none or the process asked for none.
    pub(crate) fn certificate(&self, rank: u32, arrival: &Arrival) -> Result<Vec<u8>, String> {
        match &self.authority {
            Some(authority) if !arrival.signing_request.is_empty() => {
                let signed = authority.sign(&arrival.signing_request, rank, MAX_VALIDITY);
                signed.map_err(|error| format!("rank {rank}: {error}"))
            }
            _ => Ok(Vec::new()),
        }
    }
}
