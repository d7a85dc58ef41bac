// SPDX-License-Identifier: Apache-2.0
//! What becomes of channels: silence, connections that break, peers that stay away, the end.

use std::time::Duration;

use isthmus_link::channel::ConnectionId;
use isthmus_link::life::{Down, End, Gone, Moment, Unreached, Upkeep};
use isthmus_transport::Peer;
use isthmus_wire::hello::Purpose;

use super::connection::Connection;
use super::hands::Hands;
use super::wide::Wide;
use crate::link::Arrival;
use crate::receiver::Fault;

impl Wide {
    /// A connection is dead.
    pub(super) fn connection_down(&mut self, hands: &mut Hands, peer: Peer, id: ConnectionId, why: Down<'_>) {
        let Self { channels, .. } = self;
        let channel = channels.to(peer);
        if !channel.life.lines.contains_key(&id) {
            return;
        }
        let end = channel.life.end_of(id, why);
        channel.drop_connection(hands, id);
        let last_word = channel.receiver.farewell || self.closing;
        match channel.life.handle_lost(end, why.to_string(), last_word, hands.now()) {
            Gone::Nothing => {}
            Gone::Resend => drop(channels.want_to_send(peer)),
            Gone::End => self.end(hands, peer, false),
            Gone::Dial(end) => {
                hands.will_report();
                let name = hands.places.name(peer);
                hands.link.note_connection(match end {
                    End::Handed => format!("the gateway has ended the connection to {name}: it is made again"),
                    End::Silent | End::Closed => format!("the connection to {name} broke: {why}"),
                });
                self.dials.dial(hands, peer, Purpose::Resume);
                let end = hands.now() + self.away_time;
                hands.alarm(end);
            }
        }
    }

    /// Dialling has come to nothing for this time. True: the channel goes on waiting, or was given up.
    pub(super) fn unreached(&mut self, hands: &mut Hands, peer: Peer, report: &str, refused: bool) -> bool {
        let Self { channels, dials, .. } = self;
        let life = &channels.to(peer).life;
        match life.handle_unreached(hands.now(), self.away_time, refused) {
            Unreached::NotAway => return false,
            Unreached::Lost(why) => {
                let reason = format!("lost {}: {why}. {report}", hands.places.name(peer));
                self.lose(hands, peer, reason);
                hands.deliver();
            }
            Unreached::Again => {
                dials.stop(hands, peer);
                dials.dial(hands, peer, Purpose::Resume);
            }
        }
        true
    }

    /// Goes on with all that is being dialled.
    pub(super) fn dial_on(&mut self, hands: &mut Hands, now: Duration) {
        let Self { dials, .. } = self;
        let went = dials.handle_timeout(hands, now);
        went.failed
            .into_iter()
            .for_each(|peer| self.attempt_failed(hands, peer));
        for peer in went.over {
            let Some(reason) = self.dials.fail(hands, peer) else {
                continue;
            };
            // Dialled only to be measured or because it called: whoever has something to say may try again.
            if !self.unreached(hands, peer, &reason, false) && !self.channels.to(peer).forget_unused() {
                self.lose(hands, peer, reason);
                hands.deliver();
            }
        }
    }

    pub(super) fn broken_rules(&mut self, hands: &mut Hands, peer: Peer, fault: &Fault) {
        let reason = format!(
            "closed the connection to {}: {fault}. The two run different versions of Isthmus, or one has a bug",
            hands.places.name(peer)
        );
        self.lose(hands, peer, reason);
    }

    /// The channel is gone and the program must know.
    pub(super) fn lose(&mut self, hands: &mut Hands, peer: Peer, reason: String) {
        if !self.channels.to(peer).life.has_ended() {
            self.end(hands, peer, true);
            hands.arrivals.push(Arrival::Lost { peer, reason });
        }
    }

    /// The program does not rely on the peer any more, and knows why.
    pub(super) fn give_up(&mut self, hands: &mut Hands, peer: Peer, reason: &str) {
        if !self.channels.to(peer).life.has_ended() {
            let text = format!("gave up {}: {reason}", hands.places.name(peer));
            hands.link.note_connection(text);
            self.end(hands, peer, true);
        }
    }

    /// The channel ends. A peer that is lost hears so when it calls; where it had been dialled it is dialled to be
    /// told.
    fn end(&mut self, hands: &mut Hands, peer: Peer, lost: bool) {
        let Self { channels, dials, .. } = self;
        dials.stop(hands, peer);
        let channel = channels.to(peer);
        channel.end(hands, lost);
        if lost && channel.life.address().is_some() && !self.closing {
            dials.dial(hands, peer, Purpose::Resume);
        }
    }

    /// Acknowledgements that are due, silence, peers that stay away.
    pub(super) fn upkeep(&mut self, hands: &mut Hands, now: Duration) {
        for peer in self.channels.peers() {
            self.upkeep_of(hands, peer, now);
        }
    }

    fn upkeep_of(&mut self, hands: &mut Hands, peer: Peer, now: Duration) {
        let Self { channels, .. } = self;
        let Some(channel) = channels.get_mut(peer) else { return };
        let (receiver, out) = (&channel.receiver, &channel.out);
        let moment = Moment {
            now,
            patience: self.away_time,
            listens: !hands.paused,
            unended: receiver.unended,
        };
        let awaited = |c: &Connection| c.reading.is_awaited(receiver);
        let upkeep = channel.life.handle_timeout(moment, |id| out.in_flight(id), awaited);
        let (mut next, say, dead) = match upkeep {
            Upkeep::Away(end) => return hands.alarm(end),
            Upkeep::AwayTooLong => {
                let report = self.dials.explain(peer);
                self.unreached(hands, peer, &report, false);
                return;
            }
            Upkeep::NeverEnds(time) => return self.never_ends(hands, peer, time),
            Upkeep::Connections { next, say, dead } => (next, say, dead),
        };
        // All alarms were forgotten: whatever is to come must be said again.
        let waits = channel.queues.next_at(now);
        next = next.min(waits.filter(|at| *at > now).unwrap_or(Duration::MAX));
        // Without a connection there is nothing to look at: many processes that wait for one would keep the machine
        // busy.
        if !channel.is_idle() && !channel.life.lines.is_empty() {
            next = next.min(channel.filling.poll_timeout().max(now + Duration::from_millis(1)));
        }
        if say || waits.is_some_and(|at| at <= now) {
            self.send(hands, peer);
        }
        for (id, time) in dead {
            self.connection_down(hands, peer, id, Down::Silent(time));
        }
        self.look(hands, peer, now);
        if next < Duration::MAX {
            hands.alarm(next.max(now + Duration::from_millis(1)));
        }
    }

    /// The peer has begun something and keeps this process waiting for its end, for so long.
    fn never_ends(&mut self, hands: &mut Hands, peer: Peer, time: Duration) {
        let reason = format!(
            "lost {}: it has begun to send something and has not ended it for {} s, longer than ISTHMUS_AWAY allows ({} s)",
            hands.places.name(peer),
            time.as_secs(),
            self.away_time.as_secs()
        );
        self.lose(hands, peer, reason);
        hands.deliver();
    }

    /// Acknowledgements leave at once from now on, for others wait for them to settle.
    pub(super) fn settle(&mut self, hands: &mut Hands) {
        self.channels.settling = true;
        for peer in self.channels.peers() {
            self.channels.to(peer).gauge.stop();
            self.send(hands, peer);
        }
        hands.deliver();
    }

    /// All processes have settled, so that nobody will miss what a connection that breaks now still carries.
    pub(super) fn close(&mut self, hands: &mut Hands) {
        self.closing = true;
        let away = self.channels.iter().filter(|c| c.life.away().is_some());
        let away: Vec<Peer> = away.map(|c| c.peer).collect();
        away.into_iter().for_each(|peer| self.end(hands, peer, false));
        self.settle(hands);
    }
}
