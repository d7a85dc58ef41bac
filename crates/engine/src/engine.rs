// SPDX-License-Identifier: Apache-2.0
//! The engine of one process: its core, the machines that stand on it, and how they come together.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use isthmus_datatype::Representation;
use isthmus_transport::native::Native;
use isthmus_transport::{Job, Peer, Processes, Transport};

use crate::base::activity::{Activity, Running};
use crate::base::peers::Acquaintance;
use crate::base::request::CompletedPart;
use crate::base::requests::Owner;
use crate::base::retired;
use crate::base::work::Work;
use crate::groups::disagreement::look_at_amounts;
use crate::groups::state::{Groups, messages};
use crate::groups::strays::Strays;
use crate::machine::{Machine, Port};
use crate::machines::Machines;
use crate::mismatch::Host;
use crate::mismatch::asking::{answer_over, give_up, knock, messages_of};
use crate::p2p::Core;
use crate::p2p::Inbound;
use crate::p2p::State;
use crate::p2p::arrivals::Arrivals;
use crate::p2p::cancel::{ask_no_longer, let_go, set_aside};
use crate::p2p::long::answer_request;
use crate::p2p::loss::{self, goes_on};
use crate::p2p::queue::control;
use crate::p2p::receive::{start_receive, waiting_of};
use crate::p2p::revoke::end_messages;
use crate::p2p::send::{flush, start_data};
use crate::p2p::state::represent;
use crate::p2p::waits::next_to_knock_at;
use crate::partitioned::Partitioned;
use crate::plans::{Hands, Plans};
use crate::vendor::Vendor;
use crate::{Channel, EngineError, ReceiveBuffer, Request};

/// Everything an engine is made of.
pub struct Setup {
    /// This process.
    pub me: Peer,
    /// The processes that it knows, which may become more ([`Engine::take_in`]).
    pub processes: Arc<Processes>,
    /// The transports.
    pub transports: Vec<Box<dyn Transport>>,
    /// Per peer the index of its transport. The entry of this process itself is ignored.
    pub routes: Vec<u8>,
    /// Per peer the highest level of the network shared with it, for the counters: 0 wide area … 4 node.
    pub levels: Vec<u8>,
    /// Per peer how it represents data; empty if all do as this process.
    pub representations: Vec<Representation>,
}

/// Processes that an engine comes to know while it runs, with what [`Setup`] says of the first ones: one entry of each
/// list for each of them.
pub struct Newcomers {
    /// Their job.
    pub job: Job,
    /// Their ranks there.
    pub ranks: Range<u32>,
    /// Whose contexts they name towards this process: their job's where this process is a member of it. Who meets this
    /// process only in communicators over both their jobs names contexts of its own job. The numbers of such
    /// communicators are agreed on, so that messages of all members, of whichever job, are in one context.
    pub contexts: Job,
    /// Which of them this process is itself, by its place among them.
    pub me: Option<u32>,
    /// As [`Setup::routes`].
    pub routes: Vec<u8>,
    /// As [`Setup::levels`].
    pub levels: Vec<u8>,
    /// As [`Setup::representations`].
    pub representations: Vec<Representation>,
}

/// The engine of one process: see the crate.
pub struct Engine {
    /// What concerns requests, tools and transports alone.
    pub core: Core,
    pub(super) groups: Groups,
    pub(super) vendor: Vendor,
    pub(super) plans: Plans,
    pub(super) partitioned: Partitioned,
    pub(super) machines: Machines,
    /// Peers that were taken in, by the numbers of the transports that reach them.
    guests: BTreeMap<u8, Vec<Peer>>,
    activities: Vec<Running<Self>>,
}

/// The machine that executes plans, and what it works with.
macro_rules! plans {
    ($engine:expr) => {{
        let Engine {
            core,
            groups,
            vendor,
            plans,
            ..
        } = $engine;
        (plans, Hands { core, groups, vendor })
    }};
}
pub(crate) use plans;

impl Engine {
    /// An engine over these transports.
    pub fn new(setup: Setup) -> Self {
        let mut transports = setup.transports;
        let mut state = State::new(setup.me, setup.processes);
        for (peer, (&route, level)) in (0..).zip(setup.routes.iter().zip(levels(&setup.levels))) {
            let own = Peer::new(peer) == setup.me;
            state.meet(met(&transports, Peer::new(peer), route, level, own, Job::OWN));
        }
        represent(&mut state, setup.routes.len(), setup.representations);
        Self {
            groups: Groups::new(&mut transports),
            core: Core { transports, state },
            vendor: Vendor::default(),
            plans: Plans::default(),
            partitioned: Partitioned::default(),
            machines: Machines::default(),
            guests: BTreeMap::new(),
            activities: Vec::new(),
        }
    }

    /// The same engine on top of a vendor MPI; `alone`: all processes of the job are.
    #[must_use]
    pub fn with_native(mut self, native: Box<dyn Native>, alone: bool) -> Self {
        self.vendor.attach(native, alone);
        self
    }

    /// Another transport, for peers that are to be taken in; its number among routes. Where threads may sleep, call
    /// [`Shared::add_transport`](crate::Shared::add_transport), which wakes them.
    pub fn add_transport(&mut self, transport: Box<dyn Transport>) -> Result<u8, EngineError> {
        let transports = &mut self.core.transports;
        let free = transports
            .iter()
            .position(|transport| retired::is_retired(&**transport));
        let number = u8::try_from(free.unwrap_or(transports.len())).ok();
        let number = number.filter(|&at| at < u8::MAX).ok_or(EngineError::Misuse {
            what: "more transports than there are numbers for",
        })?;
        match free.and_then(|at| transports.get_mut(at)) {
            Some(place) => *place = transport,
            None => transports.push(transport),
        }
        Ok(number)
    }

    /// From now on this process can talk to these processes too; the first of them. Contexts of different jobs are kept
    /// apart, whatever their numbers.
    pub fn take_in(&mut self, newcomers: Newcomers) -> Result<Peer, EngineError> {
        let Newcomers {
            job,
            ranks,
            me,
            contexts,
            ..
        } = &newcomers;
        let count = ranks.len();
        let routes = newcomers.routes.iter().map(|&route| usize::from(route));
        let has_routes = routes.len() == count
            && (0..)
                .zip(routes)
                .all(|(at, route)| *me == Some(at) || route < self.core.transports.len());
        let alike = newcomers.representations.is_empty();
        if !has_routes || !alike && newcomers.representations.len() != count {
            return Err(EngineError::Misuse {
                what: "processes without a way to reach them, or of which nobody knows how they represent data",
            });
        }
        let state = &mut self.core.state;
        let first = state.processes().take_in(*job, ranks.clone());
        let first = first.map_err(|why| EngineError::NotTaken { why })?;
        let own = me.map_or(Peer::NONE, |me| first.plus(me));
        for (at, (&route, level)) in (0..).zip(newcomers.routes.iter().zip(levels(&newcomers.levels))) {
            let peer = first.plus(at);
            let transport = self.core.transports.get_mut(usize::from(route));
            if let Some(transport) = transport.filter(|_| peer != own) {
                transport.meet(peer, ranks.start + at);
                self.guests.entry(route).or_default().push(peer);
            }
            let known = met(&self.core.transports, peer, route, level, peer == own, *contexts);
            state.meet(known);
        }
        represent(state, count, newcomers.representations);
        Ok(first)
    }

    /// A machine of another room takes part from now on: frames of the kind
    /// [`Protocol`](isthmus_wire::frame::Kind::Protocol) with this number are its own.
    pub fn register(&mut self, protocol: u8, machine: Box<dyn Machine>) {
        self.machines.add(protocol, machine);
    }

    // ---- progress -------------------------------------------------------------------------------------------------

    /// Moves everything that can be moved without waiting; true if anything happened.
    #[inline]
    pub fn progress(&mut self) -> bool {
        let (plans, mut hands) = plans!(self);
        let mut any = plans.advance(&mut hands);
        let Core { transports, state } = &mut self.core;
        let mut arrivals = Arrivals::at(state, &mut self.machines);
        for transport in transports {
            any |= transport.poll(&mut arrivals);
        }
        if !self.groups.is_idle() {
            any |= self.groups.advance(&mut self.core);
            self.groups.pass_turn(&mut self.core);
            self.end_in_vain();
            see_to_strays(self);
        }
        any | self.progress_of_others()
    }

    /// Progress of what is neither plan, nor group, nor message.
    #[inline(always)]
    fn progress_of_others(&mut self) -> bool {
        let mut any = self.vendor.advance(&mut self.core);
        if !self.core.state.asked().is_empty() {
            any |= ask_no_longer(&mut self.core);
        }
        if !self.machines.is_empty() {
            any |= self
                .machines
                .each(&mut self.core, |machine, core| machine.advance(core));
        }
        if !self.activities.is_empty() {
            any |= self.advance_activities();
        }
        if self.core.state.agreement().has_found() {
            end_at_odds(self);
        }
        any | self.work()
    }

    /// Progress on a thread that is not the user's: plans whose reductions might call the user's code stay where they
    /// are until a thread of the user makes progress.
    pub(crate) fn progress_without_callbacks(&mut self) {
        self.core.state.set_foreign(true);
        let Core { transports, state } = &mut self.core;
        let mut arrivals = Arrivals::at(state, &mut self.machines);
        for transport in transports {
            transport.poll(&mut arrivals);
        }
        self.groups.advance(&mut self.core);
        see_to_strays(self);
        self.progress_of_others();
        self.core.state.set_foreign(false);
    }

    /// Starts an activity; its completion is that of the request.
    pub fn start_activity(&mut self, activity: Box<dyn Activity<Self>>) -> Request {
        let request = self.core.user_request();
        let mut running = Running::new(request, activity);
        match running.advance(self, false) {
            Some(completion) => self.core.complete_user(request, completion),
            None => self.activities.push(running),
        }
        self.work();
        request
    }

    /// Lets all of them go on; true if anything happened.
    fn advance_activities(&mut self) -> bool {
        let before = self.core.state.events();
        let foreign = self.core.state.is_foreign();
        // Those that are started meanwhile come behind the others.
        let all = std::mem::take(&mut self.activities);
        let mut left = Vec::with_capacity(all.len());
        for mut running in all {
            match running.advance(self, foreign) {
                Some(completion) => self.core.complete_user(running.request(), completion),
                None => left.push(running),
            }
        }
        left.append(&mut self.activities);
        self.activities = left;
        before != self.core.state.events()
    }

    /// Ends operations in messages whose members do not all take part.
    fn end_in_vain(&mut self) {
        while let Some(vain) = self.groups.next_in_vain(&mut self.core) {
            let (plans, mut hands) = plans!(self);
            let (request, error) = vain.into_error();
            plans.fail(&mut hands, request, error);
        }
    }

    /// Nothing has come for a while: those for whom collective operations in messages wait are asked, once, whether
    /// they are in the same. What differs ends with [`EngineError::Disagreement`]. Processes of other jobs whose
    /// messages are waited for are reached, so that their loss is noticed.
    #[cold]
    pub fn ask_others(&mut self) {
        for (peer, header) in self.plans.questions(&self.core.state) {
            self.core.state.agreement_mut().asks(peer);
            control(&mut self.core, peer, header);
        }
        for peer in next_to_knock_at(&mut self.core.state) {
            control(&mut self.core, peer, knock());
        }
        look_at_amounts(&mut self.groups, &mut self.core);
        self.work();
        self.end_in_vain();
    }

    /// For a thread that waits for one message, which keeps the engine: looks where that comes from, and every so many
    /// times for everything else too. True if anything happened.
    #[inline]
    pub(crate) fn progress_directly(&mut self) -> bool {
        let Core { transports, state } = &mut self.core;
        let peer = state.direct().next_look().and_then(|peer| state.peer(peer));
        match peer.and_then(|peer| transports.get_mut(peer.route() as usize)) {
            Some(transport) => {
                let any = transport.poll(&mut Arrivals::at(state, &mut self.machines));
                any | self.work()
            }
            None => self.progress(),
        }
    }

    /// Is there anything that progress might complete? Looks through all requests.
    pub(crate) fn is_pending(&self) -> bool {
        !self.activities.is_empty() || self.core.is_pending()
    }

    /// Asks all transports to ring when something arrives; false if something has arrived, or waits for a thread of the
    /// user.
    pub(crate) fn arm(&mut self) -> bool {
        let (plans, mut hands) = plans!(self);
        plans.may_sleep(&mut hands) && self.arm_transports()
    }

    /// Asks all transports to ring when something arrives; false if something has arrived.
    pub(crate) fn arm_transports(&mut self) -> bool {
        self.core.transports.iter_mut().all(|transport| transport.arm())
            && self.groups.may_sleep(&mut self.core)
            && !self
                .machines
                .each(&mut self.core, |machine, core| !machine.may_sleep(core))
    }

    // ---- work -----------------------------------------------------------------------------------------------------

    /// Does what arrivals and completions have asked for.
    #[inline]
    pub(crate) fn work(&mut self) -> bool {
        let mut any = false;
        while let Some(work) = self.core.state.next_work() {
            self.perform(work);
            any = true;
        }
        any
    }

    fn perform(&mut self, work: Work) {
        let core = &mut self.core;
        match work {
            Work::Control(peer, header) => control(core, peer, header),
            Work::Answer(index) => answer_request(core, index),
            Work::Data(index) => start_data(core, index),
            Work::Flush(peer) => flush(core, peer),
            Work::LetGo(request) => let_go(core, request),
            Work::SetAside(peer, token) => set_aside(&mut core.state, peer, token),
            Work::Lost(peer, reason) => core.lose(peer, reason),
            Work::Part(part) => self.completed(part),
            Work::Sent(outcome) => {
                core.state.happened();
                let number = outcome.number();
                if let Some(machine) = self.machines.find(number) {
                    let (peer, name, sent) = outcome.into_parts();
                    machine.sent(&mut core.port(number), peer, name, sent);
                }
            }
            Work::Revoked(channel) => revoke(self, &channel),
            Work::Ended(peer) => {
                loss::ended(&mut core.state, peer);
                tell_machines(self, peer);
            }
            Work::Gone(peer) => {
                if goes_on(core) {
                    self.lose_plans(peer);
                }
                self.groups.lose(&mut self.core, peer);
                tell_machines(self, peer);
            }
        }
    }

    /// Plans of groups with a peer that is lost end.
    #[cold]
    fn lose_plans(&mut self, peer: Peer) {
        let error = self.core.state.lost_error(peer);
        for request in self.plans.with(&self.core.state, peer) {
            let (plans, mut hands) = plans!(self);
            plans.fail(&mut hands, request, error.clone());
        }
    }

    /// A part of a request of a machine is over.
    fn completed(&mut self, part: CompletedPart) {
        match self.core.owner(part.of).map(|(owner, _)| owner) {
            Some(Owner::Plans) => {
                let (plans, mut hands) = plans!(self);
                plans.completed(&mut hands, part);
            }
            Some(Owner::Partitioned) => self.partitioned.completed(&mut self.core, part),
            Some(Owner::Registered(number)) => {
                if let Some(machine) = self.machines.find(number) {
                    machine.completed(&mut self.core, part);
                }
            }
            Some(Owner::Groups | Owner::Vendor) | None => {}
        }
    }
}

/// Nothing comes of this peer any more.
#[cold]
fn tell_machines(engine: &mut Engine, peer: Peer) {
    engine.machines.each(&mut engine.core, |machine, core| {
        machine.lose(core, peer);
        false
    });
}

/// Sees to messages of blocks of which two members have said different lengths.
#[inline]
pub(crate) fn see_to_strays(engine: &mut Engine) {
    while let Some(strays) = messages::next(&mut engine.groups) {
        drop_strays(engine, &strays);
    }
}

/// What does not come is waited for no longer, and what comes all the same is dropped.
#[cold]
fn drop_strays(engine: &mut Engine, strays: &Strays) {
    for member in strays.missing() {
        let (plans, mut hands) = plans!(engine);
        plans.does_not_come(&mut hands, strays.which(), member);
    }
    let receives: Vec<Inbound> = strays.receives(&engine.core).collect();
    for receive in receives {
        let index = start_receive(&mut engine.core, receive);
        let request = engine.core.state.requests().name(index);
        engine.core.release(request);
    }
    engine.work();
}

/// Ends operations that others take for something else.
#[cold]
fn end_at_odds(engine: &mut Engine) {
    answer_what_is_over(engine);
    while let Some(found) = engine.core.state.agreement_mut().next() {
        if let Some(dropped) = found.is_over() {
            let (plans, mut hands) = plans!(engine);
            plans.is_over_at(&mut hands, &found, dropped);
            continue;
        }
        match engine.plans.at_odds(&engine.core.state, &found) {
            Some(Ok(at_odds)) => {
                give_up(&mut engine.core.state, &found, at_odds.testimony());
                let (plans, mut hands) = plans!(engine);
                let (request, error) = at_odds.into_error();
                plans.fail(&mut hands, request, error);
            }
            Some(Err(lie)) => engine.core.state.broken(found.peer(), lie),
            None => {}
        }
    }
}

/// Those who ask for operations that are over here are told so. What they have sent for those, and nobody expects, is
/// dropped: else they would wait for its receiver.
#[cold]
fn answer_what_is_over(engine: &mut Engine) {
    let plans = &engine.plans;
    let settled = engine
        .core
        .state
        .agreement_mut()
        .take_settled(|which| !plans.runs(which));
    for question in settled {
        let unexpected = messages_of(&engine.core.state, question.which())
            .map(|(context, tag)| waiting_of(&engine.core, question.peer(), context, tag))
            .unwrap_or_default();
        answer_over(&mut engine.core.state, &question, !unexpected.is_empty());
        for pattern in unexpected {
            let nothing = Inbound::from(question.peer(), pattern, ReceiveBuffer::EMPTY);
            let index = start_receive(&mut engine.core, nothing);
            let request = engine.core.state.requests().name(index);
            engine.core.release(request);
        }
    }
}

/// Lets a registered machine of this type act, and sends what it has to say. `None`: there is none, or it does not show
/// [itself](Machine::itself).
pub fn with_machine<M: 'static, T>(
    engine: &mut Engine,
    protocol: u8,
    act: impl FnOnce(&mut M, &mut Port<'_>) -> T,
) -> Option<T> {
    let machine = engine.machines.find(protocol);
    let machine = machine.and_then(|machine| machine.itself()?.downcast_mut());
    let acted = machine.map(|machine| act(machine, &mut engine.core.port(protocol)));
    engine.work();
    acted
}

/// A communicator is revoked: everything that is pending on it ends with [`EngineError::Revoked`]. Its own
/// [`Special`](crate::Special) is the caller's.
#[cold]
pub fn revoke(engine: &mut Engine, channel: &Channel) {
    for request in engine.plans.of(&engine.core.state, channel.context) {
        let (plans, mut hands) = plans!(engine);
        plans.fail(&mut hands, request, EngineError::Revoked);
    }
    engine.groups.revoke(&mut engine.core, channel);
    end_messages(&mut engine.core, channel.context);
    engine.work();
}

/// A plan cannot go on, because another part of its operation has failed: it ends with this error as soon as nobody
/// touches its memory.
#[cold]
pub fn give_up_plan(engine: &mut Engine, request: Request, error: EngineError) {
    let (plans, mut hands) = plans!(engine);
    plans.fail(&mut hands, request, error);
    engine.work();
}

/// As [`Engine::register`], for a machine that is made when its first frame comes, or when it is [awoken](awaken).
pub fn register_later(engine: &mut Engine, protocol: u8, make: impl FnOnce() -> Box<dyn Machine> + Send + 'static) {
    engine.machines.expect_one(protocol, Box::new(make));
}

/// A transport leaves, whose number is another one's from now on; the peers that it has reached.
pub(crate) fn leave(engine: &mut Engine, number: u8) -> Vec<Peer> {
    engine.guests.remove(&number).unwrap_or_default()
}

/// This process is about to use a machine that was [registered for later](register_later).
pub fn awaken(engine: &mut Engine, protocol: u8) {
    engine.machines.awaken(protocol);
}

/// Acts as the machine with this number, and sends what there is to say.
pub fn with_port<T>(engine: &mut Engine, protocol: u8, act: impl FnOnce(&mut Port<'_>) -> T) -> T {
    let acted = act(&mut engine.core.port(protocol));
    engine.work();
    acted
}

/// Whether frames may come that have to be answered while the program computes.
pub(crate) fn expects(engine: &Engine) -> bool {
    engine.machines.expect()
}

/// Whether there is anything to do for a thread that makes progress while the program computes.
pub(crate) fn needs_progress(engine: &Engine) -> bool {
    expects(engine) || engine.is_pending()
}

/// Levels of peers, those that are missing at the end of the list too.
fn levels(levels: &[u8]) -> impl Iterator<Item = u8> + '_ {
    levels.iter().copied().chain(std::iter::repeat(0))
}

/// What is known of a peer at first; `own`: it is this process.
fn met(transports: &[Box<dyn Transport>], peer: Peer, route: u8, level: u8, own: bool, job: Job) -> Acquaintance {
    let transport = transports.get(usize::from(route)).filter(|_| !own);
    let unasked = transport.map_or(0, |transport| {
        let limits = transport.limits(peer);
        limits.eager.min(limits.frame) as u64 + 1
    });
    let known = Acquaintance::new(route, level, job.number()).takes(unasked);
    if own { known.itself() } else { known }
}
