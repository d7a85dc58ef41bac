// SPDX-License-Identifier: Apache-2.0
//! A channel that a gateway carries moves to a connection of its own when one can be had: what was in the way may have
//! gone.

use isthmus_link::channel::Lane;
use isthmus_transport::Peer;
use isthmus_wire::gateway::Way;
use isthmus_wire::hello::Purpose;

use super::Reactor;
use isthmus_link::line::By;

/// Addresses of the peer that are tried each time.
const ADDRESSES: usize = 4;

impl Reactor {
    /// Looks for a better way from time to time, as long as the channel is used.
    pub(super) fn want_better(&mut self, peer: Peer) {
        let (now, settling) = (self.now(), self.settling);
        let Some(channel) = self.channels.get_mut(&peer) else {
            return;
        };
        let allowed = self.ladder.way(self.places.area(peer)) != Way::OnlyGateway;
        if !channel.life.wants_better(now, allowed, !settling) {
            return;
        }
        let (addresses, _) = self.places.candidates(peer);
        for address in addresses.into_iter().take(ADDRESSES) {
            self.dial_beside(peer, address, By::Direct, Purpose::Better);
        }
    }

    /// The peer has spoken on this connection.
    pub(super) fn has_spoken(&mut self, peer: Peer, lane: Lane) {
        let Some(channel) = self.channels.get_mut(&peer) else {
            return;
        };
        let worse = channel.life.handle_hello(lane);
        if !worse.is_empty() {
            channel.traffic.moved += 1;
            let name = self.places.name(peer);
            self.link.note_connection(format!(
                "{name} is reached directly now; until now gateways carried what it was sent"
            ));
        }
        for lane in worse {
            self.drop_lane(peer, lane);
        }
    }
}
