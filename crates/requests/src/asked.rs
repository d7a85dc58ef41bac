// SPDX-License-Identifier: Apache-2.0
//! A question to another process.

use isthmus_datatype::raw::WriteMemory;
use isthmus_engine::{Completion, EngineError, Peer, Port, Request};
use isthmus_wire::rma::Failure;

/// A question.
pub(crate) struct OpenQuestion {
    pub(crate) peer: Peer,
    /// As the program calls the process; for the status.
    pub(crate) rank: u32,
    /// Where the reply goes.
    pub(crate) to: WriteMemory,
    /// Bytes that fit there; `None`: no reply has any.
    pub(crate) room: Option<u64>,
    pub(crate) got: u64,
    pub(crate) request: Request,
}

impl OpenQuestion {
    /// Takes bytes of the reply from `at` on; what does not fit is left out.
    pub(crate) fn take(&mut self, at: u64, bytes: &[u8]) {
        let left = self.room.unwrap_or(0).saturating_sub(at);
        let fit = (bytes.len() as u64).min(left) as usize;
        if fit > 0 {
            self.to.write(at as isize, &bytes[..fit]);
        }
    }

    /// The reply has come whole.
    pub(crate) fn complete(self, port: &mut Port<'_>, bytes: u64) {
        let room = self.room.unwrap_or(0);
        let error = (bytes > room).then(|| EngineError::Elsewhere {
            class: isthmus_abi::constants::MPI_ERR_TRUNCATE,
            text: format!(
                "the reply of rank {} to a remote service request has {bytes} bytes, but only {room} fit",
                self.rank
            )
            .into(),
        });
        let completion = Completion {
            source: self.rank,
            tag: 0,
            bytes: bytes.min(room),
            error,
            ..Completion::default()
        };
        port.complete(self.request, completion);
    }

    /// The request has failed.
    pub(crate) fn fail(self, port: &mut Port<'_>, failure: Failure) {
        let error = EngineError::Elsewhere {
            class: failure.class as i32,
            text: failure.text.into(),
        };
        let completion = Completion {
            source: self.rank,
            error: Some(error),
            ..Completion::default()
        };
        port.complete(self.request, completion);
    }
}
