// SPDX-License-Identifier: Apache-2.0
//! What comes of connections that were on their way: channels that open, peers that are not reached or ask to be.

use std::time::Duration;

use isthmus_link::life::{Called, Opening};
use isthmus_link::line::{By, Line, Via};
use isthmus_transport::Peer;
use isthmus_wire::hello::Purpose;

use super::hands::Hands;
use super::wide::Wide;
use crate::secure::Secure;
use crate::socket;

impl Wide {
    /// A connection that is proven to be the peer's, and how we dialled it if we did. `early`: what the peer sent right
    /// behind its part of the handshake.
    pub(super) fn open_connection(
        &mut self,
        hands: &mut Hands,
        peer: Peer,
        (secure, by): (Secure, Option<By>),
        early: &[u8],
        purpose: Purpose,
    ) {
        let Self {
            channels,
            dials,
            probing,
            ..
        } = self;
        let now = hands.now();
        let channel = channels.to(peer);
        if channel.life.has_ended() {
            return;
        }
        let address = socket::peer_address(&secure.socket);
        let via = Via::of(purpose, by, || dials.caller(hands, peer, address));
        let how = Opening {
            dialled: by.is_some(),
            address,
            by_gateway: channel.life.address().is_some_and(|a| dials.is_gateway(a)),
        };
        let id = channel.open(hands, secure, Line::new(purpose, via, now), how);
        dials.want_kinds(hands, channel);
        channels.busy.push(peer);
        if purpose == Purpose::First {
            probing.handle_opened(hands, channels, peer);
        }
        let came = channels.to(peer).take_early(hands, id, early);
        self.take(hands, peer, id, came);
        hands.deliver();
        hands.alarm(now + Duration::from_millis(100));
    }

    /// An attempt to reach this peer has come to nothing.
    pub(super) fn attempt_failed(&mut self, hands: &mut Hands, peer: Peer) {
        let Self { channels, dials, .. } = self;
        let Some(channel) = channels.get(peer) else { return };
        if channel.life.is_given_up() {
            // It is told if it calls.
            return dials.stop(hands, peer);
        }
        if let Some(report) = dials.refused(peer, channel.life.last_seen()) {
            self.unreached(hands, peer, &report, true);
        }
    }

    /// A peer that cannot reach us asks to be dialled.
    pub(super) fn called(&mut self, hands: &mut Hands, peer: Peer) {
        if self.closing {
            return;
        }
        match self.channels.to(peer).life.handle_called() {
            Called::Dial(purpose) => self.dials.dial(hands, peer, purpose),
            Called::Tell => self.dials.dial(hands, peer, Purpose::Resume),
            Called::Nothing => {}
        }
    }
}
