// SPDX-License-Identifier: Apache-2.0
//! The coordinator's ends of its connections to agents. A subjob has one at a time; one that was replaced is told to
//! end and watched until it is gone.

use crate::claims::MOST_OUTPUT;
use crate::happening::Event;
use crate::hold::{Again, Received};
use crate::neighbours::{Beside, Neighbours};
use crate::paths::{MOST_RELAYED, Messages, Opening};
use crate::piece::Piece;
use crate::shared::Shared;
use crate::site::Site;
use isthmus_job::{Contact, Subjob};
use isthmus_reach::Failure;
use isthmus_wire::gateway::ToGateway;
use isthmus_wire::grid::{AgentHello, FromAgent, Hold, Input, OUTPUT_WINDOW, ToAgent};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// One connection.
struct Connection {
    subjob: usize,
    commands: mpsc::UnboundedSender<Vec<u8>>,
    /// For what goes when nothing else waits.
    last: mpsc::UnboundedSender<Piece>,
    /// Bytes that wait there.
    waiting: Arc<AtomicUsize>,
    leaving: watch::Sender<bool>,
    lost: watch::Sender<bool>,
    open: bool,
    /// Ticks since the agent was last heard.
    silent: u32,
    /// Whether the user knows that it is silent.
    told: bool,
    /// Whether the agent has to answer: it does so once it has been told to start.
    serving: bool,
    /// Where the agent is, and what is done there before it starts.
    contact: Contact,
    setup: Vec<String>,
    /// What the agent has said of its machine.
    hello: Option<AgentHello>,
    /// Agents of other subjobs that are reached through this one.
    neighbours: Neighbours,
    /// What has been received from the agent, over this connection and those that it follows.
    received: Received,
    /// Messages that the agent must not miss, for a connection that follows this one.
    lasting: Vec<Vec<u8>>,
    /// The agent was there before.
    again: bool,
    /// The agent waits when this connection breaks, for one that follows it.
    held: bool,
    /// Why the connection before this one ended.
    follows: Option<Failure>,
    /// Bytes of output that are not printed.
    unprinted: usize,
}

impl Connection {
    /// Name of the host of the agent, which is empty until that is known.
    fn host(&self) -> &str {
        self.hello.as_ref().map_or("", |hello| &hello.host)
    }

    /// The agent is on this machine: its end closes the connection, so silence only means that the machine is busy.
    fn is_home(&self) -> bool {
        self.contact == Contact::Home
    }

    fn give_up(&mut self) {
        self.open = false;
        self.lost.send_replace(true);
    }
}

/// Ticks after which silence means something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The user is told.
    pub(crate) told: u32,
    /// An agent that has to answer is lost.
    pub(crate) serving: u32,
    /// An agent that files are staged to is lost.
    pub(crate) staging: u32,
}

/// What silence means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// The user should know.
    Long,
    /// The same of an agent on this machine.
    Busy,
    /// The site is lost.
    Lost,
}

/// All connections of a job.
pub(crate) struct Connections {
    shared: Arc<Shared>,
    events: mpsc::UnboundedSender<Event>,
    all: Vec<Connection>,
    /// By subjob: its connection.
    current: Vec<usize>,
}

impl Connections {
    pub(crate) fn new(shared: Arc<Shared>, events: mpsc::UnboundedSender<Event>) -> Self {
        Self {
            shared,
            events,
            all: Vec::new(),
            current: Vec::new(),
        }
    }

    /// Begins to reach a site for a subjob; one that it has is told to end.
    /// `gateway`: the first message to the gateway that its agent shall start.
    pub(crate) fn start(&mut self, number: usize, subjob: Subjob, input: Input, gateway: Option<Opening>) {
        self.open(number, subjob, input, gateway, None);
    }

    /// Begins to reach the agent of a subjob again. It hears what it may have missed.
    pub(crate) fn start_again(&mut self, number: usize, subjob: Subjob, again: Again, why: Option<Failure>) {
        let before = self.current.get(number).map(|&c| &self.all[c]);
        let (received, lasting) = before.map(|c| (c.received, c.lasting.clone())).unwrap_or_default();
        let again = Again { received, ..again };
        self.open(number, subjob, Input::Nobody, None, Some(again));
        let connection = &mut self.all[self.current[number]];
        for message in &lasting {
            let _ = connection.commands.send(message.clone());
        }
        (connection.received, connection.lasting, connection.follows) = (received, lasting, why);
    }

    fn open(&mut self, number: usize, subjob: Subjob, input: Input, gateway: Option<Opening>, again: Option<Again>) {
        let (commands, queue) = mpsc::unbounded_channel();
        let (last, rest) = mpsc::unbounded_channel();
        let (leaving, seen) = watch::channel(false);
        let (lost, lost_seen) = watch::channel(false);
        let connection = self.all.len();
        let is_again = again.is_some();
        let beside = self.beside(number, &subjob).filter(|_| !is_again);
        let neighbours = Neighbours::default();
        let (contact, setup) = (subjob.contact.clone(), subjob.setup.clone());
        let site = Site {
            number,
            connection,
            subjob,
            input,
            shared: Arc::clone(&self.shared),
            events: self.events.clone(),
            leaving: seen,
            gateway,
            last: rest,
            lost: lost_seen,
            again,
            beside,
            neighbours: neighbours.clone(),
        };
        self.all.push(Connection {
            subjob: number,
            commands,
            last,
            waiting: Arc::default(),
            leaving,
            lost,
            open: true,
            silent: 0,
            told: false,
            serving: false,
            contact,
            setup,
            hello: None,
            neighbours,
            received: Received::default(),
            lasting: Vec::new(),
            again: is_again,
            held: is_again,
            follows: None,
            unprinted: 0,
        });
        match self.current.get_mut(number) {
            Some(current) => {
                let old = std::mem::replace(current, connection);
                self.end(old);
            }
            None => self.current.push(connection),
        }
        tokio::spawn(site.run(queue));
    }

    /// The agent that can start one beside itself for a subjob that is added: that of a subjob that the job began with,
    /// as it stays until the end. It was reached in the same way, and prepared alike.
    fn beside(&self, number: usize, subjob: &Subjob) -> Option<Beside> {
        if number < self.shared.planned || !matches!(subjob.contact, Contact::Ssh(_)) {
            return None;
        }
        let planned = self.current.iter().take(self.shared.planned);
        let fits = |c: &&Connection| {
            c.open
                && c.serving
                && !*c.leaving.borrow()
                && (&c.contact, &c.setup) == (&subjob.contact, &subjob.setup)
                && c.neighbours.have_room()
        };
        let other = planned.map(|&current| &self.all[current]).find(fits)?;
        Some(Beside {
            // Each connection has one of its own.
            number: u32::try_from(self.all.len()).ok()?,
            commands: other.commands.clone(),
            neighbours: other.neighbours.clone(),
            hello: other.hello.clone()?,
        })
    }

    /// The subjob of a connection, if that is its current one.
    pub(crate) fn subjob(&self, connection: usize) -> Option<usize> {
        let subjob = self.all[connection].subjob;
        (self.current[subjob] == connection).then_some(subjob)
    }

    /// The subjob of a connection, now or once.
    pub(crate) fn former_subjob(&self, connection: usize) -> usize {
        self.all[connection].subjob
    }

    /// Something was heard. How many ticks there was nothing, if that was told.
    pub(crate) fn hear(&mut self, connection: usize) -> Option<u32> {
        let connection = &mut self.all[connection];
        let silent = std::mem::take(&mut connection.silent);
        std::mem::take(&mut connection.told).then_some(silent)
    }

    /// For how many ticks nothing has been heard of a subjob, where that is told or its connection is gone.
    pub(crate) fn unheard(&self, subjob: usize) -> Option<u32> {
        let connection = &self.all[*self.current.get(subjob)?];
        let gone = connection.again && !connection.serving || connection.serving && !connection.open;
        (connection.told || gone).then_some(connection.silent)
    }

    /// The agent has said something.
    pub(crate) fn note(&mut self, connection: usize, message: &FromAgent) {
        self.all[connection].received.note(message);
    }

    /// Output has come. False: more than the agent may send before some of it is printed.
    pub(crate) fn takes_output(&mut self, connection: usize, bytes: usize) -> bool {
        let unprinted = &mut self.all[connection].unprinted;
        *unprinted = unprinted.saturating_add(bytes);
        *unprinted <= MOST_OUTPUT + bytes.min(OUTPUT_WINDOW as usize)
    }

    /// Output has been printed.
    pub(crate) fn printed(&mut self, connection: usize, bytes: usize) {
        let unprinted = &mut self.all[connection].unprinted;
        *unprinted = unprinted.saturating_sub(bytes);
    }

    /// Nothing that the agent says is heard any more.
    pub(crate) fn give_up(&mut self, connection: usize) {
        self.all[connection].give_up();
    }

    /// Whether the connection has ended before it reached the agent that it was to reach again.
    pub(crate) fn was_in_vain(&self, connection: usize) -> bool {
        self.all[connection].again && self.all[connection].hello.is_none()
    }

    /// Why the connection before this one ended.
    pub(crate) fn why_before(&self, connection: usize) -> Option<&Failure> {
        self.all[connection].follows.as_ref()
    }

    /// Whether the agent was there before this connection.
    pub(crate) fn is_again(&self, connection: usize) -> bool {
        self.all[connection].again
    }

    /// The agent runs, on this machine.
    pub(crate) fn set_hello(&mut self, connection: usize, hello: AgentHello) {
        self.all[connection].hello = Some(hello);
    }

    /// The agent has been told to start and answers from here on.
    pub(crate) fn set_serving(&mut self, connection: usize) {
        self.all[connection].serving = true;
        self.all[connection].silent = 0;
    }

    /// The connection is closed.
    pub(crate) fn close(&mut self, connection: usize) {
        self.all[connection].open = false;
    }

    /// Where the agent of a subjob is.
    pub(crate) fn host(&self, subjob: usize) -> &str {
        self.all[self.current[subjob]].host()
    }

    /// Time passes: what there is to say of connections from which nothing is heard. Lost ones are closed.
    pub(crate) fn tick(&mut self, limits: Limits) -> Vec<(usize, Silence)> {
        let mut silent = Vec::new();
        for (number, connection) in self.all.iter_mut().enumerate().filter(|(_, c)| c.open) {
            connection.silent += 1;
            let limit = if connection.serving {
                limits.serving
            } else {
                limits.staging
            };
            let reached = connection.serving || connection.hello.is_some();
            if reached && connection.silent > limit && !connection.is_home() {
                connection.give_up();
                silent.push((number, Silence::Lost));
            } else if connection.serving && connection.silent > limits.told && !connection.told {
                connection.told = true;
                let silence = if connection.is_home() {
                    Silence::Busy
                } else {
                    Silence::Long
                };
                silent.push((number, silence));
            }
        }
        silent
    }

    /// Those whose agents answer.
    pub(crate) fn serving(&self) -> impl Iterator<Item = usize> + '_ {
        let all = self.all.iter().enumerate();
        all.filter(|(_, c)| c.open && c.serving && c.silent == 0)
            .map(|(number, _)| number)
    }

    /// Subjobs whose agents have not confirmed their end.
    pub(crate) fn unconfirmed(&self) -> Vec<usize> {
        let subjobs = (0..self.current.len()).filter(|&subjob| {
            let connection = &self.all[self.current[subjob]];
            let lost = *connection.lost.borrow();
            !connection.is_home() && connection.hello.is_some() && (connection.open || lost)
        });
        subjobs.collect()
    }

    /// Whether a subjob's agent was given up because it was silent.
    pub(crate) fn is_lost(&self, subjob: usize) -> bool {
        *self.all[self.current[subjob]].lost.borrow()
    }

    pub(crate) fn send_on(&self, connection: usize, message: &ToAgent) {
        // A closed link has been or will be told by its task.
        let _ = self.all[connection].commands.send(message.encode());
    }

    pub(crate) fn send(&self, subjob: usize, message: &ToAgent) {
        self.send_on(self.current[subjob], message);
    }

    pub(crate) fn send_some(&self, subjobs: &[usize], message: &ToAgent) {
        subjobs.iter().for_each(|subjob| self.send(*subjob, message));
    }

    /// Sends what the agent must hear even if this connection breaks.
    pub(crate) fn send_lasting(&mut self, subjob: usize, message: &ToAgent) {
        self.send(subjob, message);
        self.all[self.current[subjob]].lasting.push(message.encode());
    }

    /// The agent waits from now on when its connection breaks.
    pub(crate) fn hold(&mut self, subjob: usize, hold: &Hold) {
        self.send(subjob, &ToAgent::Hold(hold.clone()));
        self.all[self.current[subjob]].held = true;
    }

    /// Whether the agent of a connection waits for another one: it has not been told to end.
    pub(crate) fn is_held(&self, connection: usize) -> bool {
        let connection = &self.all[connection];
        connection.held && !*connection.leaving.borrow()
    }

    /// Sends messages of gateways; data of processes go when nothing else waits. Gives the subjobs for which more data
    /// wait than their gateway can have let others send.
    pub(crate) fn send_gateways(&self, messages: &Messages) -> Vec<usize> {
        let deaf = messages
            .iter()
            .filter(|(subjob, message)| !self.send_gateway(*subjob, message));
        deaf.map(|(subjob, _)| *subjob).collect()
    }

    fn send_gateway(&self, subjob: usize, message: &ToGateway) -> bool {
        let to = &self.all[self.current[subjob]];
        let bytes = ToAgent::Gateway(message.encode()).encode();
        let ToGateway::Relay(relay) = message else {
            let _ = to.commands.send(bytes);
            return true;
        };
        // One window for each gateway that may send. A life of one that has ended may have left another.
        if to.waiting.load(Ordering::Relaxed) > 2 * MOST_RELAYED * self.current.len() {
            return false;
        }
        let _ = to.last.send(Piece::new(bytes, relay.bytes.len(), &to.waiting));
        true
    }

    /// Tells all agents, those that are about to leave as well.
    pub(crate) fn send_all(&self, message: &ToAgent) {
        (0..self.all.len()).for_each(|connection| self.send_on(connection, message));
    }

    /// Ends what a subjob has at its site.
    pub(crate) fn end_subjob(&self, subjob: usize) {
        self.end(self.current[subjob]);
    }

    /// Ends everything. Sites that are not there yet are given up.
    pub(crate) fn end_all(&self) {
        (0..self.all.len()).for_each(|connection| self.end(connection));
    }

    fn end(&self, connection: usize) {
        self.send_on(connection, &ToAgent::End);
        self.all[connection].leaving.send_replace(true);
    }

    /// Whether a connection that was replaced is still open.
    pub(crate) fn some_depart(&self) -> bool {
        let mut all = self.all.iter().enumerate();
        all.any(|(number, c)| c.open && self.current[c.subjob] != number)
    }
}

/// How many ticks a time is, at least one.
pub(crate) fn ticks(time: Duration, tick: Duration) -> u32 {
    u32::try_from(time.as_millis() / tick.as_millis().max(1))
        .unwrap_or(u32::MAX)
        .max(1)
}
