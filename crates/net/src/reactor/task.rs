// SPDX-License-Identifier: Apache-2.0
//! What a descriptor that is watched belongs to.

use isthmus_link::channel::ConnectionId;
use isthmus_transport::Peer;

use super::handing::Handing;
use super::handshake::Handshake;

pub(super) enum Task {
    Handshake(Handshake),
    /// A connection of a wide-area channel.
    Wide(Peer, ConnectionId),
    /// A plain connection on which the first frames are sent before the main thread gets it.
    Handing(Handing),
}
