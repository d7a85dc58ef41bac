// SPDX-License-Identifier: Apache-2.0
//! Connections between sites, and the making of all connections: what there is to do when descriptors are ready or
//! deadlines have come. Who does it is the driver's affair.
//!
//! ```text
//!   Reactor                 events, commands and deadlines, and whose they are
//!    └─ Wide                what comes of them between sites      (what it does then: the room `link`)
//!        ├─ Channels  Probing   all channels; measuring them
//!        ├─ Dials               peers that are being reached
//!        └─ Hands               descriptors, the way to the main thread, the clock
//! ```
//! Each line knows those below it and none above.

mod channel;
mod channels;
mod clock;
mod coming;
mod connection;
mod connections;
mod dials;
mod early;
mod failure;
mod handing;
mod hands;
mod handshake;
mod lives;
mod looking;
mod looks;
mod moving;
mod opening;
mod probing;
mod reading;
mod sending;
mod sharing;
mod slots;
mod task;
mod wide;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use isthmus_identity::Identity;
use isthmus_link::door::Door;
use rustix::io::Errno;

use crate::config::Config;
use crate::hello::Prover;
use crate::link::{Command, Link};
use crate::listener::Listener;
use crate::places::Places;
use crate::socket::{Interest, Poller, Ready};

use failure::Failure;
use hands::Hands;
use slots::{BELL, LISTENER};
use task::Task;
use wide::Wide;

pub(crate) use hands::Worker;

/// What this process proves itself with.
struct Keys {
    prover: Prover,
    /// Of connections with gateways.
    gate: Prover,
    identity: Option<Identity>,
}

pub(crate) struct Reactor {
    hands: Hands,
    wide: Wide,
    keys: Keys,
    listener: Listener,
    door: Door,
    /// Connections are watched as if reading had stopped.
    watches_paused: bool,
}

impl Reactor {
    pub(crate) fn new(config: Config, places: Arc<Places>, link: Arc<Link>) -> Result<Self, Errno> {
        let hands = Hands::new(places, link)?;
        hands.poller.add(hands.link.thread_bell(), BELL, Interest::READ)?;
        hands.poller.add(&config.listener, LISTENER, Interest::READ)?;
        let job = config.processes.job_name(config.job).unwrap_or_default();
        Ok(Self {
            hands,
            wide: Wide::new(&config),
            keys: Keys {
                prover: Prover::new(&config.secret, &job),
                gate: Prover::new(&config.paths.secret, &job),
                identity: config.identity,
            },
            listener: config.listener,
            door: Door::default(),
            watches_paused: false,
        })
    }

    /// What is readable or writable when there is something to do.
    pub(crate) fn poller(&self) -> Arc<Poller> {
        self.hands.poller.clone()
    }

    /// Does what there is to do: what these events, commands and deadlines ask for. `commands`: empty memory for them.
    /// One who looks finds the events out first.
    pub(crate) fn turn(&mut self, ready: &mut Vec<Ready>, commands: &mut Vec<Command>, by: Worker) {
        if by == Worker::Looking {
            looking::look(&mut self.hands, &self.wide.channels, ready);
        }
        self.hands.worker = by;
        self.hands.looks.found = by != Worker::Looking;
        if self.hands.clock.turns() {
            self.wide.channels.forgive(self.hands.now());
        }
        for event in &*ready {
            self.event(*event);
        }
        self.commands(commands);
        self.wide.send_all(&mut self.hands);
        // Who only sends has not seen what has arrived: whether others are silent it cannot say.
        if by != Worker::Sending {
            self.timers();
        }
        self.after();
        self.hands.clock.rests(!self.hands.looks.found);
    }

    /// Zero when there is work that no descriptor tells of.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        if !self.wide.channels.busy.is_empty() || !self.hands.link.may_sleep() {
            return Some(Duration::ZERO);
        }
        self.hands.clock.left()
    }

    fn event(&mut self, event: Ready) {
        let hands = &mut self.hands;
        // What a reading finds it says itself.
        hands.looks.found |= event.write || !matches!(hands.slots.get(event.number), Some(Task::Wide(..)));
        match event.number {
            // It is for the thread.
            BELL if hands.worker == Worker::Thread => hands.link.thread_bell().quiet(),
            BELL => {}
            LISTENER => self.accept(),
            number => match hands.slots.get(number) {
                Some(Task::Handshake(_)) => self.handshake(number),
                Some(Task::Wide(peer, id)) => {
                    let (peer, id) = (*peer, *id);
                    if event.read {
                        self.wide.receive(&mut self.hands, peer, id);
                    }
                    if event.write {
                        self.wide.send(&mut self.hands, peer);
                    }
                    self.hands.deliver();
                }
                // What the peer says is for the main thread. Both may wait for room, which only reading makes.
                Some(Task::Handing(_)) if event.read => hands.handed(number),
                Some(Task::Handing(_)) => hands.hand_on(number),
                // Removed by an earlier event of the same round.
                None => {}
            },
        }
    }

    fn commands(&mut self, commands: &mut Vec<Command>) {
        self.hands.link.take_commands(commands);
        self.hands.looks.found |= !commands.is_empty();
        for command in commands.drain(..) {
            match command {
                Command::Dial { peer, early } => self.wide.dials.dial_plain(&mut self.hands, peer, early),
                Command::Frame { flow, queue, bytes } => {
                    let peer = flow.peer;
                    self.wide.channels.to(peer).push_frame(flow, queue, bytes);
                    self.wide.want_to_send(&mut self.hands, peer);
                }
                Command::Long { peer, queue, long } => {
                    self.wide.channels.to(peer).push_long(queue, long);
                    self.wide.want_to_send(&mut self.hands, peer);
                }
                Command::Tune { queue, tuning } => {
                    self.wide.channels.tune(queue, tuning);
                    let asks = self.wide.channels.iter_mut().filter(|_| tuning.path.is_some());
                    asks.for_each(|channel| self.wide.dials.want_kinds(&mut self.hands, channel));
                }
                Command::Know(rates) => self.wide.channels.know(rates),
                Command::Share(sharers) => self.wide.channels.share(sharers),
                Command::Expect {
                    peer,
                    token,
                    memory,
                    length,
                } => self.wide.channels.to(peer).expect(token, memory, length),
                Command::Lose { peer, reason } => self.wide.give_up(&mut self.hands, peer, &reason),
                Command::Probe { dial, rounds } => self.wide.probe(&mut self.hands, &dial, &rounds),
                Command::Settle => self.wide.settle(&mut self.hands),
                Command::Close => self.wide.close(&mut self.hands),
            }
        }
    }

    fn after(&mut self) {
        let Self { hands, wide, .. } = self;
        let channels = &mut wide.channels;
        hands.paused &= hands.link.is_full();
        if hands.paused != self.watches_paused {
            self.watches_paused = hands.paused;
            channels.watch(hands);
        }
        let settled = || channels.iter().all(channel::Channel::has_settled);
        if channels.settling && !hands.link.settled.load(Ordering::Relaxed) && settled() {
            channels.note_traffic(hands);
            hands.confirm(|link| &link.settled);
        }
        let closed = || channels.iter().all(channel::Channel::has_closed);
        if wide.closing && !hands.link.closed.load(Ordering::Relaxed) && closed() {
            hands.confirm(|link| &link.closed);
        }
    }

    fn timers(&mut self) {
        let now = self.hands.time();
        if !self.hands.clock.rings(now) {
            return;
        }
        self.hands.looks.found = true;
        self.wide.upkeep(&mut self.hands, now);
        self.open_door(now);
        let (late, next) = self.hands.late(now);
        next.into_iter().for_each(|at| self.hands.alarm(at));
        late.into_iter()
            .for_each(|number| self.handshake_ended(number, Failure::NoAnswer));
        self.wide.dial_on(&mut self.hands, now);
        let Self { hands, wide, .. } = self;
        let Wide { channels, probing, .. } = wide;
        probing.handle_timeout(hands, channels, now);
        if hands.reports(now) {
            channels.note_traffic(hands);
            hands.link.report();
        }
    }
}
