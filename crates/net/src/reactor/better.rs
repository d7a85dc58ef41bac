// SPDX-License-Identifier: Apache-2.0
//! A channel that a gateway carries moves to a connection of its own when one can be had: what was in the way may have
//! gone.

use std::time::Duration;

use isthmus_link::channel::Lane;
use isthmus_transport::Peer;
use isthmus_wire::gateway::Way;
use isthmus_wire::hello::Purpose;

use super::Reactor;
use super::channels::{Channel, State};
use isthmus_link::line::By;

/// Pause before a better way is looked for, doubled each time up to the second. Whoever is in the way drops a few
/// packets a minute.
const LOOK: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(60));
/// Addresses of the peer that are tried each time.
const ADDRESSES: usize = 4;

impl Channel {
    /// All that there is for everybody's messages goes through a gateway.
    fn is_relayed(&self) -> bool {
        self.common() > 0
            && self
                .connections
                .values()
                .all(|c| c.line.is_apart() || c.line.via.is_relayed())
    }
}

impl Reactor {
    /// Looks for a better way from time to time, as long as the channel is used.
    pub(super) fn want_better(&mut self, peer: Peer) {
        let (now, settling) = (self.now(), self.settling);
        let Some(channel) = self.channels.get_mut(&peer) else {
            return;
        };
        if settling || channel.state != State::Open || !channel.is_relayed() {
            channel.better_at = None;
            return;
        }
        let (at, pause) = *channel.better_at.get_or_insert((now + LOOK.0, LOOK.0));
        if now < at || self.ladder.way(self.places.area(peer)) == Way::OnlyGateway {
            return;
        }
        let pause = (pause * 2).min(LOOK.1);
        channel.better_at = Some((now + pause, pause));
        let (addresses, _) = self.places.candidates(peer);
        for address in addresses.into_iter().take(ADDRESSES) {
            self.dial_beside(peer, address, By::Direct, Purpose::Better);
        }
    }

    /// The peer has spoken on this connection: where it is a better one those that gateways carry are not needed any
    /// more. Had they been closed before, the peer might have learnt of that first and thought the link broken.
    pub(super) fn has_spoken(&mut self, peer: Peer, lane: Lane) {
        let Some(channel) = self.channels.get_mut(&peer) else {
            return;
        };
        if !channel.connections.get(&lane).is_some_and(|c| c.line.is_better()) {
            return;
        }
        let worse = channel.connections.iter().filter(|(_, c)| c.line.is_worse());
        let worse: Vec<Lane> = worse.map(|(lane, _)| *lane).collect();
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
