// SPDX-License-Identifier: Apache-2.0
//! What lets an agent and its processes outlive a connection to the coordinator, or the coordinator itself.

use super::{FromAgent, fixed};
use crate::codec::{DecodeError, Reader, Writer};

/// Longest [`Resume`] with its length prefix, bytes.
pub const MAX_RESUME: usize = 64;

/// The agent keeps what runs for a while when its connection ends, for whoever proves this secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Hold {
    /// What a successor has to know.
    pub secret: [u8; 32],
    /// For how long, seconds.
    pub seconds: u32,
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hold")
            .field("seconds", &self.seconds)
            .finish_non_exhaustive()
    }
}

/// First message on a connection that follows another one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Resume {
    /// The secret of [`Hold`].
    pub secret: [u8; 32],
    /// Process of the coordinator, for an agent on its machine.
    pub launcher: u32,
    /// How many messages that tell how the subjob stands ([`FromAgent::is_standing`]) have been received before.
    pub standings: u64,
    /// How many pieces of output.
    pub outputs: u64,
}

impl std::fmt::Debug for Resume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resume")
            .field("standings", &self.standings)
            .field("outputs", &self.outputs)
            .finish_non_exhaustive()
    }
}

impl FromAgent {
    /// Whether this tells how the subjob stands: an agent keeps such messages and repeats them to a successor.
    pub fn is_standing(&self) -> bool {
        matches!(
            self,
            Self::Started(_)
                | Self::Refused { .. }
                | Self::Arrived(_)
                | Self::Exited(_)
                | Self::Finished { .. }
                | Self::Aborted { .. }
                | Self::Suspended(_)
        )
    }
}

impl Hold {
    pub(super) fn write(&self, w: &mut Writer) {
        fixed(w, &self.secret).u32(self.seconds);
    }

    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            secret: r.fixed("secret")?,
            seconds: r.u32("seconds")?,
        })
    }
}

impl Resume {
    pub(super) fn write(&self, w: &mut Writer) {
        fixed(w, &self.secret)
            .u32(self.launcher)
            .u64(self.standings)
            .u64(self.outputs);
    }

    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            secret: r.fixed("secret")?,
            launcher: r.u32("launcher")?,
            standings: r.u64("standings")?,
            outputs: r.u64("outputs")?,
        })
    }
}
