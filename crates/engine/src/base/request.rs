// SPDX-License-Identifier: Apache-2.0
//! Names of operations in flight and how they ended.

use std::num::NonZeroU64;

use isthmus_datatype::Representation;

use crate::EngineError;

/// Names an operation in flight. Stale names are recognised. The upper half is a generation, which is odd, the lower
/// one an index; one number, so that it comes and goes in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request(NonZeroU64);

impl Request {
    pub(crate) fn new(index: u32, generation: u32) -> Self {
        Self::from_raw(u64::from(generation) << 32 | u64::from(index))
    }

    pub(crate) fn index(self) -> u32 {
        self.0.get() as u32
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0.get() >> 32) as u32
    }

    /// As one number, never zero: for handle tables and as token in frames.
    pub fn to_raw(self) -> u64 {
        self.0.get()
    }

    /// The reverse; whether it names anything, the engine finds out when it is used.
    pub fn from_raw(raw: u64) -> Self {
        // One without a generation names nothing.
        Self(NonZeroU64::new(raw).unwrap_or(NonZeroU64::MIN))
    }
}

/// A part of a request that is over: a message of a plan, for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedPart {
    /// The request.
    pub of: Request,
    /// Which of its parts, as the machine numbers them.
    pub number: u32,
    /// Bytes, if it was a receive.
    pub bytes: u64,
}

/// Gives names to messages without requests.
#[derive(Debug, Default)]
pub(crate) struct Tokens(u64);

impl Tokens {
    /// Not zero, and not that of a request, whose upper half is odd.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 += 1;
        ((self.0 >> 32) << 33) | (self.0 & 0xffff_ffff)
    }
}

/// A message taken off the queue by [`Engine::improbe`](crate::Engine::improbe), not yet received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatchedMessage(pub(crate) u32);

/// Mode of a send (MPI 5.0, section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// MPI_Send. MPI_Rsend too: ready mode gains nothing here.
    Standard,
    /// MPI_Ssend: complete only when the receiver has matched it.
    Synchronous,
    /// MPI_Bsend: the data are copied at once if they cannot leave at once; the request completes at once. The room
    /// mpi-core accounts for the attached buffer.
    Buffered,
}

/// What a probe finds: an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Rank of the sender in the communicator.
    pub source: u32,
    /// Tag.
    pub tag: i32,
    /// Bytes of the message, in its form.
    pub bytes: u64,
    /// How the data are represented; `None`: as in this process.
    pub form: Option<Representation>,
}

/// How an operation ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Receives: rank of the sender in the communicator.
    pub source: u32,
    /// Receives: tag.
    pub tag: i32,
    /// Receives: bytes delivered; at most what the buffer holds.
    pub bytes: u64,
    /// Cancelled before it matched.
    pub cancelled: bool,
    /// What went wrong, if anything.
    pub error: Option<EngineError>,
}

impl Completion {
    /// Something goes wrong. The first error counts, but for one that leaves nothing to go on with: nobody may take an
    /// operation that has come to nothing for one that goes on.
    pub(crate) fn goes_wrong(&mut self, error: EngineError) {
        if self
            .error
            .as_ref()
            .is_none_or(|first| error.is_fatal() && !first.is_fatal())
        {
            self.error = Some(error);
        }
    }
}
