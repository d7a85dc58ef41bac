// SPDX-License-Identifier: Apache-2.0
//! All wide-area channels of a process, and what is said to all of them.

use std::time::Duration;

use isthmus_link::life::Wanted;
use isthmus_transport::{Peer, Rates, Tuning};
use rustc_hash::FxHashMap;

use super::channel::Channel;
use super::hands::Hands;

pub(super) struct Channels {
    all: FxHashMap<Peer, Channel>,
    /// By queue.
    tunings: FxHashMap<u8, Tuning>,
    rates: Option<Rates>,
    /// Channels, of all processes, that use each link at the same time.
    sharers: u32,
    /// Channels with something to send.
    pub(super) busy: Vec<Peer>,
    /// The program has nothing more to say, and wants to know when it was heard.
    pub(super) settling: bool,
}

impl Channels {
    pub(super) fn new() -> Self {
        Self {
            all: FxHashMap::default(),
            tunings: FxHashMap::default(),
            rates: None,
            sharers: 1,
            busy: Vec::new(),
            settling: false,
        }
    }

    /// That to this peer, if there is one.
    pub(super) fn get(&self, peer: Peer) -> Option<&Channel> {
        self.all.get(&peer)
    }

    /// As [`Channels::get`].
    pub(super) fn get_mut(&mut self, peer: Peer) -> Option<&mut Channel> {
        self.all.get_mut(&peer)
    }

    /// That to this peer, which is made if there is none.
    pub(super) fn to(&mut self, peer: Peer) -> &mut Channel {
        let (tunings, rates, sharers) = (&self.tunings, &self.rates, self.sharers);
        self.all.entry(peer).or_insert_with(|| {
            let mut channel = Channel::new(peer);
            channel.filling.know(rates.as_ref().and_then(|rate| rate(peer)));
            channel.filling.share(sharers);
            tunings
                .iter()
                .for_each(|(id, tuning)| channel.queues.tune(*id, *tuning));
            channel
        })
    }

    /// Whom there are channels to.
    pub(super) fn peers(&self) -> Vec<Peer> {
        self.all.keys().copied().collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.all.values()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Channel> {
        self.all.values_mut()
    }

    /// There is something to send to this peer.
    pub(super) fn want_to_send(&mut self, peer: Peer) -> Wanted {
        let wanted = self.to(peer).life.handle_wanted();
        if wanted == Wanted::Send && !self.busy.contains(&peer) {
            self.busy.push(peer);
        }
        wanted
    }

    /// A communicator wants its traffic treated so.
    pub(super) fn tune(&mut self, queue: u8, tuning: Tuning) {
        self.tunings.insert(queue, tuning);
        for channel in self.all.values_mut() {
            channel.queues.tune(queue, tuning);
        }
    }

    /// What the links carry.
    pub(super) fn know(&mut self, rates: Rates) {
        for (peer, channel) in &mut self.all {
            channel.filling.know(rates(*peer));
            channel.pace();
        }
        self.rates = Some(rates);
    }

    /// So many channels use each link.
    pub(super) fn share(&mut self, sharers: u32) {
        self.sharers = sharers;
        for channel in self.all.values_mut() {
            channel.filling.share(sharers);
            channel.pace();
        }
    }

    /// This process had been stopped: whoever was silent or away meanwhile has as much time as at first.
    pub(super) fn forgive(&mut self, now: Duration) {
        for channel in self.all.values_mut() {
            channel.life.forgive(now);
        }
    }

    /// Watches for what matters now.
    pub(super) fn watch(&mut self, hands: &Hands) {
        self.all.values_mut().for_each(|channel| channel.watch(hands));
    }

    /// Lets the main thread see what has passed on all channels.
    pub(super) fn note_traffic(&mut self, hands: &Hands) {
        self.all.values_mut().for_each(|channel| channel.note_traffic(hands));
    }
}
