// SPDX-License-Identifier: Apache-2.0
//! Connections between sites, and the making of all connections: what there is to do when descriptors are ready or
//! deadlines have come. Who does it is the driver's affair.

mod accept;
mod better;
mod channels;
mod dial;
mod early;
mod failure;
mod handshake;
mod lane;
mod lanes;
mod last_word;
mod looking;
mod moving;
mod pieces;
mod probe;
mod sharing;
mod slots;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use isthmus_identity::Identity;
use isthmus_link::channel::Lane;
use isthmus_link::gauge::Rounds;
use isthmus_link::ladder::Ladder;
use isthmus_link::lived::Lived;
use isthmus_transport::{Peer, Rates, Tuning};
use isthmus_wire::hello::Purpose;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::io::Errno;

use crate::config::Config;
use crate::hello::Prover;
use crate::link::{Arrival, Command, Early, Link};
use crate::places::Places;
use crate::secure::Scratch;
use crate::socket::{self, Interest, Poller, Ready};

use accept::Door;
use channels::Channel;
use dial::Dialling;
use early::Handing;
use failure::Failure;
use handshake::{Context, Handshake, Outcome, Proven};
use isthmus_link::line::By;
use looking::{Looks, time_of};
use slots::{BELL, LISTENER, Slots};

/// Most connections that may be in a handshake at once, having dialled us. When more come, the oldest that has
/// said nothing yet is dropped, else the oldest.
pub const MAX_HANDSHAKES: usize = 64;

/// How often it is said what has passed, while something does.
const REPORT: Duration = Duration::from_secs(1);

/// Missing so much, the process had been stopped.
const STOPPED: Duration = Duration::from_secs(2);

/// How long a stranger has to prove that it belongs to the job.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(4);

/// What a descriptor belongs to.
enum Task {
    Handshake(Handshake),
    /// A connection of a wide-area channel.
    Wide(Peer, Lane),
    /// A plain connection on which the first frames are sent before the main thread gets it.
    Handing(Handing),
}

/// Who does the reactor's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worker {
    /// The I/O thread.
    Thread,
    /// A thread of the program that has something to send.
    Sending,
    /// One that looks for arrivals, and takes them afterwards.
    Looking,
}

pub(crate) struct Reactor {
    places: Arc<Places>,
    prover: Prover,
    ladder: Ladder,
    /// Proves connections with gateways.
    gate: Prover,
    identity: Option<Identity>,
    dial_time: Duration,
    /// How long a peer may stay away.
    away_time: Duration,
    /// All times of deadlines are since then.
    began: Instant,
    lived: Lived,
    door: Door,
    link: Arc<Link>,
    poller: Arc<Poller>,
    slots: Slots<Task>,
    dials: FxHashMap<Peer, Dialling>,
    /// Peers that have their connection, or will never have one again: another first one is refused.
    taken: FxHashSet<Peer>,
    /// First frames of plain channels that are being dialled.
    early: FxHashMap<Peer, Arc<Early>>,
    channels: FxHashMap<Peer, Channel>,
    /// By queue.
    tunings: FxHashMap<u8, Tuning>,
    rates: Option<Rates>,
    /// Channels, of all processes, that use each link at the same time.
    sharers: u32,
    rounds: Rounds<Peer>,
    /// Channels with something to send.
    busy: Vec<Peer>,
    scratch: Scratch,
    arrivals: Vec<Arrival>,
    /// Who is at work, and since when.
    worker: Worker,
    turned: Duration,
    looks: Looks,
    /// Reading has stopped because the main thread does not take what has arrived.
    paused: bool,
    /// The program has nothing more to say, and wants to know when it was heard.
    settling: bool,
    closing: bool,
    /// When to look at deadlines next.
    timer: Option<Duration>,
    /// When to say next what has passed; `None`: nothing has since the last time.
    report_at: Option<Duration>,
}

impl Reactor {
    pub(crate) fn new(config: Config, places: Arc<Places>, link: Arc<Link>) -> Result<Self, Errno> {
        let poller = Arc::new(Poller::new()?);
        poller.add(link.thread_bell(), BELL, Interest::READ)?;
        poller.add(&config.listener, LISTENER, Interest::READ)?;
        let job = config.processes.job_name(config.job).unwrap_or_default();
        Ok(Self {
            places,
            prover: Prover::new(&config.secret, &job),
            ladder: Ladder::new(&config.paths),
            gate: Prover::new(&config.paths.secret, &job),
            identity: config.identity,
            dial_time: config.dial_time,
            away_time: config.away_time,
            began: Instant::now(),
            lived: Lived::default(),
            door: Door::new(config.listener),
            link,
            poller,
            slots: Slots::new(),
            dials: FxHashMap::default(),
            taken: FxHashSet::default(),
            early: FxHashMap::default(),
            channels: FxHashMap::default(),
            tunings: FxHashMap::default(),
            rates: None,
            sharers: 1,
            rounds: Rounds::default(),
            busy: Vec::new(),
            scratch: Scratch::new(),
            arrivals: Vec::new(),
            worker: Worker::Thread,
            turned: Duration::ZERO,
            looks: Looks::default(),
            paused: false,
            settling: false,
            closing: false,
            timer: None,
            report_at: None,
        })
    }

    /// What is readable or writable when there is something to do.
    pub(crate) fn poller(&self) -> Arc<Poller> {
        self.poller.clone()
    }

    /// Does what there is to do: what these events, commands and deadlines ask for. `commands`: empty memory for them.
    /// One who looks finds the events out first.
    pub(crate) fn turn(&mut self, ready: &mut Vec<Ready>, commands: &mut Vec<Command>, by: Worker) {
        if by == Worker::Looking {
            looking::look(self, ready);
        }
        self.worker = by;
        self.turned = self.began.elapsed();
        self.looks.found = by != Worker::Looking;
        self.wakes();
        for event in &*ready {
            self.event(*event);
        }
        self.commands(commands);
        self.send_all();
        // Who only sends has not seen what has arrived: whether others are silent it cannot say.
        if by != Worker::Sending {
            self.timers();
        }
        self.after();
        // A look in vain has noted nothing that is later than its beginning.
        let until = if self.looks.found {
            self.began.elapsed()
        } else {
            self.turned
        };
        self.lived.rests(until);
    }

    /// Zero when there is work that no descriptor tells of.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        if !self.busy.is_empty() || !self.link.may_sleep() {
            return Some(Duration::ZERO);
        }
        self.timer.map(|t| t.saturating_sub(self.now()))
    }

    fn event(&mut self, event: Ready) {
        // What a reading finds it says itself.
        self.looks.found |= event.write || !matches!(self.slots.get(event.number), Some(Task::Wide(..)));
        match event.number {
            // It is for the thread.
            BELL if self.worker == Worker::Thread => self.link.thread_bell().quiet(),
            BELL => {}
            LISTENER => self.accept(),
            number => match self.slots.get(number) {
                Some(Task::Handshake(_)) => self.handshake(number),
                Some(Task::Wide(peer, lane)) => {
                    let (peer, lane) = (*peer, *lane);
                    if event.read {
                        self.receive(peer, lane);
                    }
                    if event.write {
                        self.send(peer);
                    }
                    self.deliver();
                }
                // What the peer says is for the main thread. Both may wait for room, which only reading makes.
                Some(Task::Handing(_)) if event.read => self.handed(number),
                Some(Task::Handing(_)) => self.hand_on(number),
                // Removed by an earlier event of the same round.
                None => {}
            },
        }
    }

    fn commands(&mut self, commands: &mut Vec<Command>) {
        self.link.take_commands(commands);
        self.looks.found |= !commands.is_empty();
        for command in commands.drain(..) {
            match command {
                Command::Dial { peer, early } => self.dial_plain(peer, early),
                Command::Frame { flow, queue, bytes } => self.frame(flow, queue, bytes),
                Command::Long { peer, queue, long } => self.long(peer, queue, long),
                Command::Tune { queue, tuning } => self.tune(queue, tuning),
                Command::Know(rates) => self.know(rates),
                Command::Share(sharers) => self.share(sharers),
                Command::Expect {
                    peer,
                    token,
                    memory,
                    length,
                } => self.expect(peer, token, memory, length),
                Command::Lose { peer, reason } => self.give_up(peer, &reason),
                Command::Probe { dial, rounds } => self.probe(&dial, &rounds),
                Command::Settle => self.settle(),
                Command::Close => self.close(),
            }
        }
    }

    fn send_all(&mut self) {
        if !self.busy.is_empty() {
            self.looks.found = true;
            for peer in std::mem::take(&mut self.busy) {
                self.send(peer);
            }
        }
        self.deliver();
    }

    /// Hands arrivals over and says so. May run the engine, in the hook.
    fn deliver(&mut self) {
        if self.arrivals.is_empty() {
            return;
        }
        if self.link.deliver(&mut self.arrivals) && !self.paused {
            self.paused = true;
            self.watch_all();
        }
        self.link.announce(self.worker == Worker::Looking);
    }

    fn after(&mut self) {
        if self.paused && !self.link.is_full() {
            self.paused = false;
            self.watch_all();
        }
        if self.settling && !self.link.settled.load(Ordering::Relaxed) && self.all_settled() {
            self.note_all_traffic();
            self.confirm(|link| &link.settled);
        }
        if self.closing && !self.link.closed.load(Ordering::Relaxed) && self.all_closed() {
            self.confirm(|link| &link.closed);
        }
    }

    /// Lets the main thread see that this is so.
    fn confirm(&self, word: impl FnOnce(&Link) -> &AtomicBool) {
        word(&self.link).store(true, Ordering::SeqCst);
        self.link.deliver(&mut Vec::new());
        self.link.announce(self.worker == Worker::Looking);
    }

    /// Time since the thread began that it has lived through.
    fn now(&self) -> Duration {
        self.lived.at(self.began.elapsed())
    }

    /// Finds out whether it should have been here earlier. After a long stop nobody can be blamed for silence.
    fn wakes(&mut self) {
        let Some(due) = self.timer else { return };
        if self.lived.woke(due, self.turned) > STOPPED {
            self.forgive();
        }
    }

    fn timers(&mut self) {
        let now = time_of(self);
        if self.timer.is_none_or(|due| due > now) {
            return;
        }
        self.looks.found = true;
        self.timer = None;
        self.upkeep(now);
        self.open_door(now);
        self.expire_handshakes(now);
        self.dial_timers(now);
        self.round_timer(now);
        self.report(now);
    }

    /// Something passes: it is to be said soon.
    fn will_report(&mut self) {
        if self.report_at.is_none() {
            let at = self.now() + REPORT;
            self.report_at = Some(at);
            self.alarm(at);
        }
    }

    /// Says what has passed.
    fn report(&mut self, now: Duration) {
        let Some(at) = self.report_at else { return };
        if now < at {
            return self.alarm(at);
        }
        self.report_at = None;
        self.note_all_traffic();
        self.link.report();
    }

    /// Makes sure that deadlines are looked at at this time.
    fn alarm(&mut self, at: Duration) {
        self.timer = Some(self.timer.map_or(at, |t| t.min(at)));
    }

    /// Drops handshakes that took too long.
    fn expire_handshakes(&mut self, now: Duration) {
        let mut late = Vec::new();
        let mut next: Option<Duration> = None;
        for (number, task) in self.slots.iter() {
            let Task::Handshake(handshake) = task else { continue };
            if handshake.deadline <= now {
                late.push(number);
            } else {
                next = Some(next.map_or(handshake.deadline, |n| n.min(handshake.deadline)));
            }
        }
        for number in late {
            self.handshake_ended(number, Failure::NoAnswer);
        }
        if let Some(next) = next {
            self.alarm(next);
        }
    }

    /// Goes on with a handshake.
    fn handshake(&mut self, number: u64) {
        let now = self.now();
        let Some(Task::Handshake(handshake)) = self.slots.get_mut(number) else {
            return;
        };
        let (taken, channels) = (&self.taken, &self.channels);
        let places = &*self.places;
        let admits = |peer: Peer, purpose: Purpose| match (purpose, channels.get(&peer)) {
            (Purpose::First, _) => !taken.contains(&peer),
            (Purpose::Resume, None) => !taken.contains(&peer),
            (_, None) => false,
            (_, Some(channel)) => {
                let deciding = places.rank(peer).is_some_and(|rank| places.me() < rank);
                channel.life.admits(purpose, deciding, now)
            }
        };
        let mut context = Context {
            places,
            prover: &self.prover,
            gate: (!self.ladder.gateway().is_empty()).then_some(&self.gate),
            identity: self.identity.as_ref(),
            admits: &admits,
            given_up: &|peer| channels.get(&peer).is_some_and(|c| c.life.is_given_up()),
            scratch: &mut self.scratch,
        };
        match handshake.advance(&mut context) {
            Outcome::Wait => {
                let interest = handshake.interest();
                if let Some(socket) = handshake.socket() {
                    if interest != handshake.watched && self.poller.change(socket, number, interest).is_ok() {
                        handshake.watched = interest;
                    }
                }
            }
            Outcome::Failed(reason) => self.handshake_ended(number, reason),
            Outcome::Asked => {
                if let Some(dialled) = self.forget(number) {
                    self.attempt_ended(dialled, None);
                }
            }
            Outcome::Called(peer) => {
                self.forget(number);
                self.called(peer);
            }
            Outcome::Over(peer) => {
                self.forget(number);
                self.give_up_dial(peer);
            }
            Outcome::Proven(peer, proven) => {
                let by = handshake.by;
                let dialled = self.forget(number).is_some();
                self.adopt(peer, proven, dialled, by);
            }
        }
    }

    /// A handshake came to nothing.
    fn handshake_ended(&mut self, number: u64, reason: Failure) {
        let more = matches!(self.slots.get(number), Some(Task::Handshake(h)) if h.purpose.is_more());
        match self.forget(number) {
            Some((peer, _)) if more => self.channel(peer).life.handle_not_coming(),
            Some(dialled) => self.attempt_ended(dialled, Some(reason)),
            None => {}
        }
    }

    /// Removes a handshake; its socket is closed unless it was taken out. Says whom it had dialled.
    fn forget(&mut self, number: u64) -> Option<(Peer, usize)> {
        let Some(Task::Handshake(handshake)) = self.slots.remove(number) else {
            return None;
        };
        if let Some(socket) = handshake.socket() {
            self.poller.remove(socket);
        }
        self.door.forget(number);
        handshake.dialled
    }

    /// This connection carries the channel from now on; all other attempts are given up. However it came about, here
    /// what makes connections ends and the channel begins.
    fn adopt(&mut self, peer: Peer, proven: Proven, dialled: bool, by: By) {
        let (more, better) = match &proven {
            Proven::Wide { purpose, .. } => (purpose.is_more(), *purpose == Purpose::Better),
            Proven::Plain(_) => (false, false),
        };
        if dialled && (!more || better) {
            self.ladder.learn(self.places.area(peer), by);
        }
        if !more {
            self.taken.insert(peer);
            self.give_up_dial(peer);
        }
        let (way, socket) = match &proven {
            Proven::Plain(socket) => ("tcp", socket),
            Proven::Wide { secure, .. } => ("tls", &secure.socket),
        };
        self.link.note_connection(format!(
            "{way} to {} at {}{}",
            self.places.name(peer),
            socket::describe(socket),
            if by == By::Gateway { ", the gateway" } else { "" }
        ));
        match proven {
            Proven::Plain(socket) => {
                self.poller.remove(&socket);
                self.hand_over(peer, socket);
            }
            Proven::Wide { secure, early, purpose } => {
                self.poller.remove(&secure.socket);
                self.open_lane(peer, (*secure, dialled.then_some(by)), &early, purpose);
            }
        }
    }
}
