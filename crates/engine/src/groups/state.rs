// SPDX-License-Identifier: Apache-2.0
//! Groups that share memory: their slabs, and steps that they take together.

pub(crate) mod messages;

use isthmus_datatype::raw::OwnMemory;
use isthmus_protocol::ways::{Delivery, Store};
use isthmus_schedule::Operation as What;
use isthmus_schedule::step::{Circle, Together};
use isthmus_transport::slabs::{CellSize, SharedSlabs, Slab, Used};
use isthmus_transport::{Peer, Transport};
use isthmus_wire::waiting::Item;

use crate::base::binding::Sides;
use crate::base::requests::{Outcome, Owned, Owner};
use crate::groups::barrier;
use crate::groups::collective_id::CollectiveId;
use crate::groups::pulling;
use crate::groups::rows::slots::Slots;
use crate::groups::strays::Strays;
use crate::groups::tuning::Tuning;
use crate::groups::words::{claim, in_words_of};
use crate::groups::{CellCollective, Cut, InVain, Numbers, Phase, Turn};
use crate::machine::Machine;
use crate::p2p::Core;
use crate::p2p::State;
use crate::p2p::waits::collective;
use crate::{Binding, Channel, EngineError, Request, StepsBy};

/// What this process has begun at a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begun {
    /// Rounds in each size.
    rounds: [u64; CellSize::COUNT],
    steps: u64,
    /// The members do not agree: nothing is possible there any more.
    broken: Option<EngineError>,
    /// Where this process decides how long blocks go, by operation.
    tuning: Vec<(What, Tuning)>,
    /// How the last short blocks of each operation went, in groups of so many members.
    short: Vec<Shape>,
    members: u32,
}

impl Begun {
    pub(crate) fn broken(&self) -> Option<&EngineError> {
        self.broken.as_ref()
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Number of the next step, which has no rounds.
    pub(crate) fn begin_alone(&mut self) -> u64 {
        self.steps += 1;
        self.steps - 1
    }

    fn tuning(&mut self, what: What) -> &mut Tuning {
        let at = self.tuning.iter().position(|(operation, _)| *operation == what);
        let at = at.unwrap_or_else(|| {
            self.tuning.push((what, Tuning::default()));
            self.tuning.len() - 1
        });
        &mut self.tuning[at].1
    }

    /// In one round of which cells such blocks go, if they do; `None`: it is not remembered.
    #[inline]
    pub(super) fn size(&self, members: u32, what: What, block: u64, unit: u64) -> Option<Option<CellSize>> {
        let shape = self.short.get(what as usize)?;
        let is_it = self.members == members && shape.block == block && shape.unit == unit;
        is_it.then_some(shape.size)
    }

    pub(super) fn remember(&mut self, members: u32, what: What, block: u64, unit: u64, size: Option<CellSize>) {
        if self.members != members {
            self.short.clear();
            self.members = members;
        }
        if self.short.is_empty() {
            self.short.resize(What::ALL.len(), Shape::NONE);
        }
        self.short[what as usize] = Shape { block, unit, size };
    }

    /// Number of the next step, which takes one round of this size, and of that round.
    #[inline]
    pub(super) fn begin_one(&mut self, size: CellSize) -> (u64, u64) {
        let (step, round) = (self.steps, self.rounds[size as usize]);
        self.steps += 1;
        self.rounds[size as usize] += 1;
        (step, round)
    }

    /// Numbers of the next step and of its first round in each size.
    pub(crate) fn begin(&mut self, cut: &Cut) -> (u64, [u64; CellSize::COUNT]) {
        let first = (self.steps, self.rounds);
        self.steps += 1;
        for (rounds, more) in self.rounds.iter_mut().zip(cut.rounds()) {
            *rounds += more;
        }
        first
    }
}

/// How blocks of so many bytes went, of elements of so many.
#[derive(Clone, Copy, Debug)]
struct Shape {
    block: u64,
    unit: u64,
    /// In one round of such cells; `None`: in another way.
    size: Option<CellSize>,
}

impl Shape {
    /// Of no call.
    const NONE: Self = Self {
        block: u64::MAX,
        unit: 0,
        size: None,
    };
}

/// A step that goes on, and its request.
struct Going {
    request: Request,
    meet: Box<CellCollective>,
}

/// This process uses a slab no longer.
pub(crate) fn give_back(groups: &Groups, core: &mut Core, number: u32) {
    let begun = groups.begun.get(number as usize);
    let used = begun.map_or_else(Used::default, |begun| Used {
        steps: begun.steps,
        rounds: begun.rounds,
    });
    if let Some(slabs) = groups.slabs(core) {
        slabs.give_back_slab(number, used);
    }
}

/// The machine of groups that share memory.
#[derive(Default)]
pub(crate) struct Groups {
    /// The transport that has memory in which groups meet.
    transport: Option<usize>,
    /// Per slab of shared memory.
    begun: Vec<Begun>,
    /// Steps that are being taken together with others, in the order in which they began.
    going: Vec<Going>,
    /// The slots of the last operation of blocks that may differ in length: members, slots in a cell, and their bytes.
    slots: Option<((u32, usize), Slots)>,
    /// Memory for what is combined with results, for the next that needs it.
    beside: Option<OwnMemory>,
    /// Operations in messages whose members share memory.
    pub(super) turns: Vec<Turn>,
    /// How often progress was made while there were any.
    pub(super) looks: u32,
    /// Those that were found to wait in vain.
    pub(super) in_vain: Vec<InVain>,
    /// Messages of operations that are over, to be seen to.
    strays: Vec<Strays>,
}

impl Groups {
    /// The machine of an engine over these transports.
    pub(crate) fn new(transports: &mut [Box<dyn Transport>]) -> Self {
        let transport = transports.iter_mut().position(|transport| transport.slabs().is_some());
        Self {
            transport,
            ..Self::default()
        }
    }

    pub(crate) fn slabs<'a>(&self, core: &'a mut Core) -> Option<&'a mut dyn SharedSlabs> {
        core.transports[self.transport?].slabs()
    }

    /// The slots of an operation of blocks that may differ in length. `None`: the group shares no memory.
    #[inline]
    pub(crate) fn slots(&mut self, core: &mut Core, channel: &Channel, what: What) -> Option<Slots> {
        let shape = (channel.members.count(), Slots::in_a_cell(what, channel.members.count()));
        match self.slots {
            Some((known, slots)) if known == shape => Some(slots),
            _ => {
                let slots = Slots::of(self.slabs(core)?, what, shape.0)?;
                self.slots = Some((shape, slots));
                Some(slots)
            }
        }
    }

    /// Whether anything goes on.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.going.is_empty() && self.turns.is_empty()
    }

    /// Whether steps together go on in a slab.
    pub(crate) fn uses(&self, core: &Core, number: u32) -> bool {
        let uses = |going: &Going| going.meet.slab().number == number && core.owner(going.request).is_some();
        self.going.iter().any(uses)
    }

    /// From now on a new group uses the memory.
    pub(crate) fn open(&mut self, core: &mut Core, number: u32) {
        let at = number as usize;
        if self.begun.len() <= at {
            self.begun.resize(at + 1, Begun::default());
        }
        let begun = &mut self.begun[at];
        // What is so for one group is so for the next one that is as large.
        *begun = Begun {
            short: std::mem::take(&mut begun.short),
            members: begun.members,
            ..Begun::default()
        };
        if let Some(slabs) = self.slabs(core) {
            slabs.open_slab(number);
        }
    }

    pub(super) fn begun(&mut self, number: u32) -> Option<&mut Begun> {
        self.begun.get_mut(number as usize)
    }

    /// How many operations have begun in a slab.
    pub(crate) fn steps(&self, number: u32) -> u64 {
        self.begun.get(number as usize).map_or(0, Begun::steps)
    }

    /// A step of a plan that all members of the group take. Its rounds are numbered now, so these steps must begin in
    /// the same order everywhere.
    pub(crate) fn take_step(
        &mut self,
        core: &mut Core,
        plan: u32,
        channel: &Channel,
        step: &Together,
        sides: Sides,
    ) -> Result<Outcome, EngineError> {
        let mut meet = self.meet(core, channel, step, sides, false)?;
        if !self.try_meet(core, &mut meet, || false)? {
            return Ok(Outcome::Started(self.go_on_with(core, meet)));
        }
        if let Some(mistake) = meet.mistake.take() {
            let mistake = self.after_mistake(core, &meet, mistake);
            let completion = core.state.requests_mut().slot_mut(plan).completion_mut();
            completion.error.get_or_insert(mistake);
        }
        Ok(Outcome::Done)
    }

    /// An operation that is one step together, without plan and, if it is over before `pause` (called after
    /// each look) says no, without a request.
    pub(crate) fn together(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        step: &Together,
        binding: &Binding,
        blocking: bool,
        pause: impl FnMut() -> bool,
    ) -> Result<Option<Request>, EngineError> {
        let meet = self.meet(core, channel, step, binding.sides(step, |_| None)?, blocking)?;
        self.see_through(core, meet, pause)
    }

    /// Takes a step that has begun here; it is over, or has a request when `pause`, called after each look, says no.
    pub(super) fn see_through(
        &mut self,
        core: &mut Core,
        mut meet: CellCollective,
        pause: impl FnMut() -> bool,
    ) -> Result<Option<Request>, EngineError> {
        if !self.try_meet(core, &mut meet, pause)? {
            let index = self.go_on_with(core, meet);
            return Ok(Some(core.state.requests().name(index)));
        }
        match meet.mistake.take() {
            None => Ok(None),
            Some(mistake) => Err(self.after_mistake(core, &meet, mistake)),
        }
    }

    /// True if it is over.
    #[inline]
    fn try_meet(
        &mut self,
        core: &mut Core,
        meet: &mut CellCollective,
        mut pause: impl FnMut() -> bool,
    ) -> Result<bool, EngineError> {
        let Some(slabs) = self.slabs(core) else {
            return Ok(false);
        };
        loop {
            if let Err(error) = meet.advance(slabs) {
                return Err(self.give_up(core, meet.slab(), error));
            }
            if meet.is_over() {
                self.keep(meet);
                return Ok(true);
            }
            if !pause() {
                return Ok(false);
            }
        }
    }

    /// A step is over: what was to be learned of it is known, and its memory is for the next one.
    #[inline]
    fn keep(&mut self, meet: &mut CellCollective) {
        if let Some((sample, nanoseconds)) = meet.sample() {
            if let Some(begun) = self.begun(meet.slab().number) {
                begun.tuning(meet.what).took(sample, nanoseconds);
            }
        }
        if meet.beside.is_some() {
            self.beside = meet.beside.take();
        }
    }

    /// From now on progress goes on with it.
    pub(crate) fn go_on_with(&mut self, core: &mut Core, meet: CellCollective) -> u32 {
        let index = core.own(Owned::by(Owner::Groups).leavable());
        self.going.push(Going {
            request: core.state.requests().name(index),
            meet: Box::new(meet),
        });
        index
    }

    /// A step is not taken any further; where it was.
    pub(super) fn leave_step(&mut self, request: Request) -> Option<Slab> {
        let at = self.going.iter().position(|going| going.request == request)?;
        Some(*self.going.remove(at).meet.slab())
    }

    /// Those who watch hear of the end of an operation that goes on.
    pub(crate) fn tell_at_the_end(&mut self, request: Request, what: CollectiveId) {
        if let Some(going) = self.going.iter_mut().find(|going| going.request == request) {
            going.meet.reported = Some(what);
        }
    }

    /// `blocking`: how long it takes is what it takes, and not what the program does meanwhile.
    fn meet(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        step: &Together,
        sides: Sides,
        blocking: bool,
    ) -> Result<CellCollective, EngineError> {
        let nowhere = EngineError::Plan {
            what: "a step together in a group that shares no memory",
        };
        let members = channel.members.clone();
        if let Some(error) = core.lost_of(&members) {
            return Err(error);
        }
        let slab = slab(channel, step.circle).ok_or_else(|| nowhere.clone())?;
        let comes_last = step.circle == Circle::All && barrier::comes_last(core, step.what, &slab);
        let has_neighbours = barrier::shares_processors(core);
        let Some(slabs) = self.slabs(core) else {
            return Err(nowhere);
        };
        let (block, all) = (step.block * sides.unit, step.circle == Circle::All);
        let cut = Cut::new(slabs, step.what, slab.members, block, sides.unit, all);
        let Some(begun) = self.begun(slab.number) else {
            return Err(nowhere);
        };
        if let Some(error) = &begun.broken {
            return Err(error.clone());
        }
        let claim = claim(step.what, step.root, sides.operator, block);
        let numbers = Numbers::noted(slabs, &slab, begun.begin(&cut), claim);
        let decides = slab.me == pulling::decider(step.what, step.root);
        let mut sample = None;
        let turn = (decides && cut.pulls).then(|| {
            let (tuning, sizes) = (begun.tuning(step.what), (block, cut.pieces));
            let (turn, tried) = pulling::turn(tuning, step.what, slab.members, sizes, &sides, blocking);
            sample = tried;
            turn
        });
        let mut meet = CellCollective::new(step, slab, members, sides, cut, numbers, turn);
        if let Some(bytes) = meet.long_result().filter(|_| decides) {
            // One trial at a time.
            let tries = blocking && sample.is_none() && turn.is_none_or(|turn| turn.way == Delivery::Stream);
            let (store, tried) = begun.tuning(step.what).store(bytes, tries);
            meet.past = store == Store::Past;
            sample = sample.or(tried);
        }
        meet.past |= comes_last;
        if cut.pulls && meet.what.reduces() {
            meet.beside = self.beside.take();
            // While the program of the other computes, that would compute nothing.
            if decides && blocking && !has_neighbours {
                pulling::share(&mut meet);
            }
        }
        if let Some(sample) = sample {
            meet.begin_timing(sample);
        }
        meet.context = channel.context;
        meet.node = channel.node.clone().filter(|_| step.circle != Circle::All);
        Ok(meet)
    }

    /// A plan has failed here: those of this node who take steps together with it are told.
    pub(crate) fn leave_node(&mut self, core: &mut Core, channel: &Channel, error: &EngineError) {
        for circle in [Circle::Up, Circle::Down] {
            if let Some(slab) = slab(channel, circle) {
                self.give_up(core, &slab, error.clone());
            }
        }
    }

    pub(crate) fn give_up(&mut self, core: &mut Core, slab: &Slab, error: EngineError) -> EngineError {
        // Of a loss with which the job goes on all members hear by themselves; in the memory they would only see that
        // this process has given up.
        let is_known = matches!(error, EngineError::PeerLost { goes_on: true, .. });
        if let Some(slabs) = self.slabs(core) {
            if !is_known {
                slabs.give_up(slab, matches!(error, EngineError::Memory { .. }));
            }
            slabs.withdraw(slab);
        }
        if let Some(begun) = self.begun(slab.number) {
            begun.broken = Some(error.clone());
        }
        error
    }

    /// A communicator is revoked: whoever waits here where its members meet is let go. Others hear of it by themselves:
    /// in the memory they would only see that this process has given up.
    pub(crate) fn revoke(&mut self, core: &mut Core, channel: &Channel) {
        let circles = [Circle::All, Circle::Up, Circle::Down];
        let mut slabs: Vec<Slab> = circles.iter().filter_map(|&circle| slab(channel, circle)).collect();
        let (ended, going) = std::mem::take(&mut self.going)
            .into_iter()
            .partition(|going: &Going| going.meet.context == channel.context);
        self.going = going;
        for going in ended {
            // Persistent operations have memory of their own.
            slabs.push(*going.meet.slab());
            if let Some((Owner::Groups, index)) = core.owner(going.request) {
                core.state.fail(index, EngineError::Revoked);
            }
        }
        for slab in slabs {
            if let Some(slabs) = self.slabs(core) {
                slabs.withdraw(&slab);
            }
            if let Some(begun) = self.begun(slab.number) {
                begun.broken = Some(EngineError::Revoked);
            }
        }
    }

    /// Goes on with one step. False: it has ended, and so has its request.
    fn goes_on(&mut self, core: &mut Core, going: &mut Going, any: &mut bool) -> bool {
        let Some((Owner::Groups, index)) = core.owner(going.request) else {
            return false;
        };
        let Some(slabs) = self.slabs(core) else {
            return true;
        };
        let meet = &mut going.meet;
        let result = meet.advance(slabs);
        let over = meet.is_over();
        if let Some(id) = meet.reported.take_if(|_| over || result.is_err()) {
            id.ends(core.state.tools_mut());
        }
        let Some(slabs) = self.slabs(core) else {
            return true;
        };
        let mistake = meet.mistake.take_if(|_| over);
        let out_of_step = mistake.as_ref().and_then(|_| meet.out_of_step(slabs));
        let in_vain = !over && matches!(result, Ok(false)) && meet.looks_in_vain(slabs);
        let failed = match result {
            Ok(moved) => {
                *any |= moved;
                in_vain.then(|| self.disagreement(core, meet)).flatten()
            }
            Err(error) => Some(self.give_up(core, meet.slab(), error)),
        };
        if let Some(error) = failed {
            core.state.fail(index, error);
            *any = true;
            return false;
        }
        if !over {
            return true;
        }
        self.keep(meet);
        if let (Phase::Rows(rows), Some(called)) = (&mut meet.phase, meet.called) {
            let strays = rows.take_strays();
            if !strays.is_empty() {
                self.strays
                    .push(Strays::new(strays, meet.context, &meet.members, called));
            }
        }
        let out_of_step = out_of_step.map(|found| in_words_of(&found, meet));
        let error = out_of_step
            .map(|error| self.give_up(core, meet.slab(), error))
            .or(mistake);
        core.state.requests_mut().slot_mut(index).completion_mut().error = error;
        core.state.finish(index);
        false
    }

    /// After the transports were armed: from now on what other members do wakes this process. True if one of its steps
    /// can go on already.
    fn can_advance(&mut self, core: &mut Core) -> bool {
        let Some(slabs) = self.transport.and_then(|at| core.transports[at].slabs()) else {
            return false;
        };
        let state = &core.state;
        self.going
            .iter_mut()
            .filter(|going| state.requests().index(going.request).is_some())
            .any(|going| {
                slabs.watch(going.meet.slab());
                going.meet.can_advance(slabs) || going.meet.waits_in_vain(slabs)
            })
    }
}

impl Machine for Groups {
    /// Goes on with all steps together.
    #[inline(never)]
    fn advance(&mut self, core: &mut Core) -> bool {
        let mut any = false;
        let mut going = std::mem::take(&mut self.going);
        going.retain_mut(|one| self.goes_on(core, one, &mut any));
        self.going = going;
        any
    }

    fn may_sleep(&mut self, core: &mut Core) -> bool {
        (self.going.is_empty() || !self.can_advance(core)) && (self.turns.is_empty() || !self.look_at_turns(core, true))
    }

    fn lose(&mut self, core: &mut Core, peer: Peer) {
        let waits = |going: &Going| going.meet.members.contains(peer);
        let doomed = self.going.iter().filter(|going| waits(going));
        let doomed: Vec<(Request, Slab)> = doomed.map(|going| (going.request, *going.meet.slab())).collect();
        for (request, slab) in doomed {
            if let Some(slabs) = self.slabs(core) {
                slabs.withdraw(&slab);
            }
            if let Some((Owner::Groups, index)) = core.owner(request) {
                let error = core.state.lost_error(peer);
                core.state.fail(index, error);
            }
        }
        let requests = core.state.requests();
        self.going.retain(|going| {
            requests
                .index(going.request)
                .is_some_and(|index| !requests.slot(index).done())
        });
    }

    fn pending(&self, state: &State, index: u32) -> Option<Item> {
        let request = state.requests().name(index);
        let going = self.going.iter().find(|going| going.request == request)?;
        let meet = &going.meet;
        Some(collective(meet.what.name(), u32::MAX, u32::MAX, &meet.members))
    }
}

/// Where those of a circle meet.
fn slab(channel: &Channel, circle: Circle) -> Option<Slab> {
    let direction = match circle {
        Circle::All => {
            return channel.slab.map(|number| Slab {
                number,
                members: channel.members.count(),
                me: channel.rank,
            });
        }
        Circle::Up => 0,
        Circle::Down => 1,
    };
    let node = channel.node.as_ref()?;
    let StepsBy::Memory(slabs) = node.by else { return None };
    Some(Slab {
        number: slabs[direction],
        members: node.ranks.len() as u32,
        me: node.me,
    })
}
