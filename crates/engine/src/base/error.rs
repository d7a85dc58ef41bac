// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with a communication.

use std::fmt;
use std::sync::Arc;

use isthmus_datatype::ConversionError;
use isthmus_transport::{NotTaken, Peer};

/// Why a communication failed. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// The user's mistake: a message longer than the buffer posted for it (MPI_ERR_TRUNCATE). The buffer was filled.
    Truncate {
        /// Rank of the sender in the communicator.
        source: u32,
        /// Tag of the message.
        tag: i32,
        /// Bytes of the message; [`u64::MAX`]: more than fit, a vendor MPI does not say how many.
        message: u64,
        /// Bytes that fit.
        buffer: u64,
    },
    /// The user's mistake: a member takes nothing where this process gives it something (MPI_ERR_TRUNCATE).
    Untaken {
        /// Its rank in the communicator.
        member: u32,
    },
    /// Data that cannot be converted between the representations of the two machines (MPI_ERR_TYPE, MPI_ERR_TRUNCATE).
    /// All other elements were delivered.
    Conversion {
        /// Rank of the sender in the communicator; collective operations do not say.
        source: u32,
        /// Tag of the message; -1 in collective operations.
        tag: i32,
        /// Which type and value.
        what: ConversionError,
    },
    /// The user's mistake: a message of another type was received as MPI_PACKED, but packed data have another form in a
    /// communicator whose members represent data differently (MPI_ERR_TYPE).
    NotPacked {
        /// Rank of the sender in the communicator.
        source: u32,
        /// Tag of the message.
        tag: i32,
    },
    /// The other process cannot be reached any more (MPIX_ERR_PROC_FAILED or MPI_ERR_OTHER). The text says what was
    /// tried.
    PeerLost {
        /// Who.
        peer: Peer,
        /// The same for people.
        who: Arc<str>,
        /// For people.
        reason: Arc<str>,
        /// The job goes on without it, so the program may, too ([`set_goes_on`](crate::set_goes_on)).
        goes_on: bool,
    },
    /// Somebody from whom a receive may wait for a message is lost, and the program has not acknowledged that. The
    /// receive goes on (MPIX_ERR_PROC_FAILED_PENDING).
    Pending {
        /// Who.
        peer: Peer,
        /// The same for people.
        who: Arc<str>,
        /// For people.
        reason: Arc<str>,
    },
    /// Processes that were introduced cannot be taken in (MPI_ERR_INTERN).
    NotTaken {
        /// Why not.
        why: NotTaken,
    },
    /// The other process broke the protocol: its library is another version, or there is a bug (MPI_ERR_INTERN).
    Protocol {
        /// Who.
        peer: Peer,
        /// What it did.
        what: Arc<str>,
    },
    /// The user's mistake: members of a communicator called different collective operations, or one with different
    /// arguments (MPI_ERR_TRUNCATE if only lengths differ, else MPI_ERR_OTHER). No collective operation is possible on
    /// it any more.
    Disagreement {
        /// What the two called.
        what: Arc<str>,
        /// Whether only lengths differ.
        lengths: bool,
    },
    /// There is no memory for what processes of a node share (MPI_ERR_NO_MEM).
    Memory {
        /// For people: which memory, and what to do.
        reason: Arc<str>,
    },
    /// The vendor MPI failed (MPI_ERR_OTHER).
    Vendor {
        /// Its text.
        text: Arc<str>,
    },
    /// Something that an [`Activity`](crate::Activity) did besides communication failed. The text names the object that
    /// it is about.
    Elsewhere {
        /// Error class of MPI.
        class: i32,
        /// For people.
        text: Arc<str>,
    },
    /// The communicator was revoked (MPIX_ERR_REVOKED).
    Revoked,
    /// The caller used a name that does not exist any more (MPI_ERR_REQUEST).
    Misuse {
        /// What was wrong.
        what: &'static str,
    },
    /// A plan broke its own rules: a bug (MPI_ERR_INTERN).
    Plan {
        /// Which rule.
        what: &'static str,
    },
}

impl EngineError {
    /// Whether it ends an operation at once. Otherwise the data are delivered as far as they can be, and what was begun
    /// with others goes on, so that they do not wait for this process.
    pub(crate) fn is_fatal(&self) -> bool {
        !matches!(
            self,
            Self::Truncate { .. } | Self::Untaken { .. } | Self::Conversion { .. } | Self::NotPacked { .. }
        )
    }
}

/// What may still be done, for the program's next step.
const REVOKED: &str = "the communicator was revoked (MPIX_Comm_revoke): nothing but MPIX_Comm_shrink, MPIX_Comm_agree, questions about \
                       it and MPI_Comm_free is possible on it any more";

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncate {
                source,
                tag,
                message: u64::MAX,
                buffer,
            } => write!(
                f,
                "a message from rank {source} with tag {tag} was truncated: the receive buffer has room for {buffer} bytes; give the \
                 receive a larger count, or find the size with MPI_Probe first"
            ),
            Self::Truncate {
                source,
                message,
                buffer,
                ..
            } if message < buffer => write!(
                f,
                "rank {source} gave {message} bytes where this process expects {buffer}; give the same count and \
                 datatype at all processes"
            ),
            Self::Truncate {
                source,
                tag,
                message,
                buffer,
            } => write!(
                f,
                "message of {message} bytes from rank {source} with tag {tag} was truncated: the receive buffer has room for \
                 {buffer} bytes; give the receive a larger count, or find the size with MPI_Probe first"
            ),
            Self::Untaken { member } => write!(
                f,
                "rank {member} takes no data where this process gives it some; give the same count and datatype at all processes"
            ),
            Self::Conversion { source, tag, what } if *tag >= 0 => {
                write!(f, "message from rank {source} with tag {tag}: {what}")
            }
            Self::Conversion { what, .. } => what.fmt(f),
            Self::NotPacked { source, tag } => write!(
                f,
                "the message from rank {source} with tag {tag} was not sent as MPI_PACKED but is received as such; the machines of \
                 this communicator represent data differently, so receive it with the datatype it was sent with, or pack it with \
                 MPI_Pack before it is sent"
            ),
            Self::NotTaken { why } => why.fmt(f),
            Self::PeerLost { who, reason, .. } => write!(f, "{who} is lost: {reason}"),
            Self::Pending { who, reason, .. } => write!(
                f,
                "the receive from any source waits on, but {who} is lost: {reason}; wait for it again after MPIX_Comm_ack_failed, or cancel it"
            ),
            Self::Protocol { peer, what } => write!(
                f,
                "process {peer} of MPI_COMM_WORLD broke the message protocol ({what}); do all processes use the same version of Isthmus?"
            ),
            Self::Disagreement { what, .. } => write!(
                f,
                "the members of this communicator call different operations: {what}; no further collective operation is possible on it"
            ),
            Self::Memory { reason } => f.write_str(reason),
            Self::Vendor { text } | Self::Elsewhere { text, .. } => f.write_str(text),
            Self::Revoked => f.write_str(REVOKED),
            Self::Misuse { what } => f.write_str(what),
            Self::Plan { what } => write!(f, "bug in a collective operation: {what}"),
        }
    }
}

impl std::error::Error for EngineError {}
