// SPDX-License-Identifier: Apache-2.0
//! Bytes between the connections of channels and the program, and what comes of them.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use isthmus_link::channel::ConnectionId;
use isthmus_link::life::{Down, MAX_STREAMS, Wanted};
use isthmus_transport::Peer;
use isthmus_wire::hello::Purpose;
use isthmus_wire::segment::{Kind, Segment};

use super::hands::{Hands, Worker};
use super::probing::{measure_used, publish};
use super::reading::{Came, Heard, Read};
use super::wide::Wide;
use crate::link::{Arrival, Round};

/// Reads from one connection before others get their turn. With four times as many the slowest tenth of short messages
/// beside a long one waits four times as long; with one read the long one loses up to a fifth where processors are
/// scarce (`docs/measured/connections.md`).
const READS: usize = 4;

impl Wide {
    pub(super) fn receive(&mut self, hands: &mut Hands, peer: Peer, id: ConnectionId) {
        let (mut used, mut emptied) = (None, false);
        for _ in 0..READS {
            // The poller tells of what has come since.
            if hands.paused || emptied {
                break;
            }
            let Self { channels, .. } = self;
            let read = channels.get_mut(peer).map_or(Read::Nothing, |c| c.read(hands, id));
            match read {
                // Somebody looked, and nobody had said that there is anything.
                Read::Nothing if used.is_none() && hands.worker == Worker::Looking => return,
                Read::Nothing => break,
                Read::Some { came, read, inside } => {
                    hands.looks.found = true;
                    emptied = read.emptied;
                    if inside.0 || inside.1 {
                        hands.link.moved.store(true, Ordering::Relaxed);
                    }
                    if channels.to(peer).meter(read, inside, *used.insert(Instant::now())) {
                        publish(hands, channels, peer);
                    }
                    self.take(hands, peer, id, came);
                }
                Read::End(why) => {
                    hands.looks.found = true;
                    self.connection_down(hands, peer, id, Down::Ended(&why));
                    break;
                }
                Read::Fault(fault) => {
                    hands.looks.found = true;
                    return self.broken_rules(hands, peer, &fault);
                }
            }
            hands.deliver();
        }
        self.after_receiving(hands, peer, id, used);
    }

    /// Says what is due and looks at deadlines again. `used`: when something came.
    fn after_receiving(&mut self, hands: &mut Hands, peer: Peer, id: ConnectionId, used: Option<Instant>) {
        let Self { channels, dials, .. } = self;
        if let Some(now) = used {
            hands.will_report();
            measure_used(channels, peer, now);
            let used = !channels.settling;
            if let Some(channel) = channels.get_mut(peer) {
                dials.want_better(hands, channel, used);
            }
        }
        let now = hands.now();
        let Some(reading) = channels.get(peer).and_then(|c| c.reading(id)) else {
            return;
        };
        let (due, unended) = (reading.receipts.due_at(), reading.begun.due(self.away_time));
        let at_once = reading.receipts.is_due(now) || channels.settling;
        unended.into_iter().for_each(|at| hands.alarm(at));
        if at_once {
            self.send(hands, peer);
        } else if let Some(at) = due {
            hands.alarm(at);
        }
        let Self { channels, .. } = self;
        if let Some(channel) = channels.get_mut(peer) {
            channel.watch(hands);
        }
    }

    /// Takes what has come beside arrivals.
    pub(super) fn take(&mut self, hands: &mut Hands, peer: Peer, id: ConnectionId, came: Came) {
        let Self { channels, probing, .. } = self;
        if !came.probes.is_empty() {
            let at = Instant::now();
            for header in &came.probes {
                probing.handle_frame(hands, channels, peer, header, at);
            }
        }
        for told in came.told {
            let Self { channels, dials, .. } = self;
            let channel = channels.to(peer);
            match channel.handle_told(hands, id, told) {
                Heard::Nothing => {}
                Heard::MaySend => self.want_to_send(hands, peer),
                Heard::Streams(count) => {
                    // It cannot dial, as it was dialled.
                    let count = usize::try_from(count).unwrap_or(MAX_STREAMS).min(MAX_STREAMS);
                    dials.dial_more(hands, channel, count);
                }
                // Said on each connection, once all that it has sent was acknowledged.
                Heard::Farewell => {
                    if !self.closing {
                        hands.arrivals.push(Arrival::Ended { peer });
                    }
                }
                Heard::GivenUp => {
                    let name = hands.places.name(peer);
                    let reason = format!(
                        "{name} has given this process up and accepts nothing from it any more; its own messages say why"
                    );
                    self.lose(hands, peer, reason);
                }
                Heard::Fault(fault) => self.broken_rules(hands, peer, &fault),
            }
        }
        if let Some(fault) = came.fault {
            self.broken_rules(hands, peer, &fault);
        }
    }

    /// There is something to send to this peer.
    pub(super) fn want_to_send(&mut self, hands: &mut Hands, peer: Peer) {
        if self.channels.want_to_send(peer) == Wanted::Dial {
            self.dials.dial(hands, peer, Purpose::First);
        }
    }

    /// Sends what can be sent, for one turn. When closing: says farewell once all is acknowledged.
    pub(super) fn send(&mut self, hands: &mut Hands, peer: Peer) {
        let Self { channels, .. } = self;
        let Some(channel) = channels.get_mut(peer) else { return };
        let sent = channel.send(hands);
        if sent.has_more {
            channels.busy.push(peer);
        }
        for (id, why) in sent.broken {
            self.connection_down(hands, peer, id, Down::Ended(&why));
        }
        let Self { channels, .. } = self;
        let Some(channel) = channels.get_mut(peer) else { return };
        if self.closing && channel.is_idle() && channel.life.handle_idle() {
            channel.loose.clear();
            channel.note_traffic(hands);
            return self.send(hands, peer);
        }
        channel.watch(hands);
    }

    /// Looks whether the link is full.
    pub(super) fn look(&mut self, hands: &mut Hands, peer: Peer, now: Duration) {
        let Self { channels, dials, .. } = self;
        let used = !channels.settling;
        let channel = channels.to(peer);
        if !channel.filling.is_due(now) || channel.life.lines.is_empty() {
            return;
        }
        let looked = channel.look(now);
        let (again, busy) = (channel.filling.poll_timeout(), !channel.is_idle());
        let asks = looked.connections.filter(|_| channel.life.address().is_none());
        match looked.connections {
            // Where there is always something to send no connection has room for it now.
            Some(count) if asks.is_some() => {
                let word = Segment::control(Kind::Streams, count as u64);
                channel.loose.extend_from_slice(&word.encode());
            }
            Some(count) => dials.dial_more(hands, channel, count),
            None => {}
        }
        dials.want_kinds(hands, channel);
        dials.want_better(hands, channel, used);
        if busy {
            hands.alarm(again);
        }
        channel.note_traffic(hands);
        if asks.is_some() {
            self.want_to_send(hands, peer);
        }
    }

    /// Makes connections and measures them.
    pub(super) fn probe(&mut self, hands: &mut Hands, dial: &[Peer], rounds: &[Round]) {
        dial.iter().for_each(|peer| self.want_to_send(hands, *peer));
        self.probing.add(hands, &mut self.channels, rounds);
    }

    pub(super) fn send_all(&mut self, hands: &mut Hands) {
        if !self.channels.busy.is_empty() {
            hands.looks.found = true;
            for peer in std::mem::take(&mut self.channels.busy) {
                self.send(hands, peer);
            }
        }
        hands.deliver();
    }
}
