// SPDX-License-Identifier: Apache-2.0
//! The ways of most short messages, and messages of machines.

use crate::p2p::Core;
use crate::p2p::Outbound;
use crate::p2p::{receive, send};
use crate::{Channel, Mode, ReceiveBuffer, Request, SendBuffer, Sent};

impl Core {
    /// Sends a message that lies in one piece, if nothing stands in its way: what nearly all short messages take.
    /// False: nothing was done; [`Engine::send`](crate::Engine::send) knows all other cases. Only where all processes
    /// represent data alike.
    #[inline]
    pub fn send_at_once(&mut self, channel: &Channel, to: u32, tag: i32, data: &[u8]) -> bool {
        send::send_at_once(self, channel, to, tag, data)
    }

    /// The same for a send that can be cancelled afterwards.
    #[inline]
    pub fn isend_at_once(&mut self, channel: &Channel, to: u32, tag: i32, data: &[u8]) -> Option<Sent> {
        send::isend_at_once(self, channel, to, tag, data)
    }

    /// Starts a message of a machine; the next progress moves it. `channel`: nothing of a vendor MPI underneath.
    pub fn post_send(&mut self, channel: &Channel, to: u32, tag: i32, buffer: SendBuffer) -> Request {
        send::isend(self, Outbound::new(channel, to, tag, Mode::Standard, buffer))
    }

    /// Starts a receive of a machine; the next progress moves it. `channel`: as for [`Core::post_send`].
    pub fn post_receive(&mut self, channel: &Channel, from: Option<u32>, tag: i32, buffer: ReceiveBuffer) -> Request {
        receive::irecv(self, channel, from, Some(tag), buffer)
    }
}
