// SPDX-License-Identifier: Apache-2.0
//! What arrivals and completions ask for. A transport is borrowed while it reports arrivals, so nothing is sent from
//! there: what has to be sent is put on a list of [`Work`], which the engine does right afterwards.

use std::sync::Arc;

use isthmus_transport::Peer;
use isthmus_wire::frame::Header;

use crate::base::parcels::Outcome;
use crate::base::request::CompletedPart;
use crate::{Channel, Request};

/// Bytes moved at a time where data cannot go straight from memory to memory.
pub(crate) const CHUNK: usize = 256 << 10;

/// What has to be done as soon as the transports are free.
#[derive(Debug)]
pub(crate) enum Work {
    Control(Peer, Header),
    /// The receive has matched a request to send.
    Answer(u32),
    /// The receiver of this send wants its data.
    Data(u32),
    /// The peer may take frames again.
    Flush(Peer),
    /// This send ends for the program, though not for its receiver.
    LetGo(Request),
    /// The sender of this message wants it back.
    SetAside(Peer, u64),
    /// A part of a request of a machine is over.
    Part(CompletedPart),
    /// The peer has gone.
    Lost(Peer, Arc<str>),
    /// It has been lost: machines are to be told.
    Gone(Peer),
    /// It has ended its communication in order.
    Ended(Peer),
    /// A communicator was revoked. Boxed, as below.
    Revoked(Box<Channel>),
    /// Something of a machine has left, or will not any more. Boxed: other work is short.
    Sent(Box<Outcome>),
}
