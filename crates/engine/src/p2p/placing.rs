// SPDX-License-Identifier: Apache-2.0
//! Payloads that a transport reads straight into the memory of their receive.

use isthmus_datatype::raw::WriteMemory;
use isthmus_transport::{Lease, Peer, Placement};
use isthmus_wire::frame::Header;

use crate::base::requests::ReceiveStage;
use crate::base::state::State;
use crate::p2p::send::envelope;

impl State {
    /// Lends memory of a receive for the payload of one frame.
    pub(crate) fn lend(&mut self, index: u32, memory: WriteMemory) -> Placement {
        let lease = Lease::new(memory);
        let lent = lease.lent();
        if let Some(task) = self.requests.receive(index) {
            task.lease = Some(lease);
        }
        Placement::Into(lent)
    }

    /// Memory for an eager message that a posted receive can take as it is.
    pub(crate) fn place_eager(&mut self, peer: Peer, header: &Header) -> Placement {
        let envelope = envelope(header);
        if self.matcher.expect(&envelope).is_none() {
            self.post_direct(peer, &envelope);
        }
        let Some((posted, &index)) = self.matcher.expect(&envelope) else {
            return Placement::Collect;
        };
        if !self.requests.is_for(index, peer, envelope.source) {
            // Whose it is not is told apart when all of it is here.
            return Placement::Collect;
        }
        if !self.representations.is_empty() && self.is_prepared_first(index, (peer, header.common)) {
            return Placement::Collect;
        }
        let fitting = self
            .requests
            .receive(index)
            .filter(|task| task.buffer.length() >= header.length);
        let Some(memory) = fitting.and_then(|task| task.buffer.memory()) else {
            return Placement::Collect;
        };
        self.matcher.cancel(posted);
        self.matched(index, &envelope, header.length);
        if let Some(task) = self.requests.receive(index) {
            task.peer = peer;
            task.stage = ReceiveStage::Placing;
        }
        self.placing.insert(peer, index);
        self.lend(index, memory)
    }
}
