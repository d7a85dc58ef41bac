// SPDX-License-Identifier: Apache-2.0
//! Groups that share memory: their frames, and steps that they take together.

use isthmus_protocol::ways::{Store, Way};
use isthmus_schedule::Operation as What;
use isthmus_schedule::step::{Circle, Together};
use isthmus_transport::Peer;
use isthmus_transport::meeting::{Lane, Meeting, Place};

use crate::base::requests::Task;
use crate::groups::cut::Cut;
use crate::groups::disagreement::in_words_of;
use crate::groups::known::{Known, Lesson};
use crate::groups::meet::{Meet, Sides};
use crate::groups::pulling;
use crate::plans::execution::Execution;
use crate::plans::plan::Outcome;
use crate::vendor::native_step;
use crate::{Binding, Channel, Engine, EngineError, Members, Operation, Request, StepsBy};

/// What this process has begun at a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begun {
    /// Rounds in each lane.
    rounds: [u64; Lane::COUNT],
    steps: u64,
    /// The members do not agree: nothing is possible there any more.
    broken: Option<EngineError>,
    /// Where this process decides how long blocks go: what it knows, by operation.
    known: Vec<(What, Known)>,
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

    fn known(&mut self, what: What) -> &mut Known {
        let at = self.known.iter().position(|(known, _)| *known == what);
        let at = at.unwrap_or_else(|| {
            self.known.push((what, Known::default()));
            self.known.len() - 1
        });
        &mut self.known[at].1
    }

    /// Numbers of the next step and of its first round in each lane.
    pub(crate) fn begin(&mut self, cut: &Cut) -> (u64, [u64; Lane::COUNT]) {
        let first = (self.steps, self.rounds);
        self.steps += 1;
        for (rounds, more) in self.rounds.iter_mut().zip(cut.rounds()) {
            *rounds += more;
        }
        first
    }
}

impl Engine {
    pub(crate) fn meeting(&mut self) -> Option<&mut dyn Meeting> {
        self.transports[self.meeting?].meeting()
    }

    /// Whether this process and these others share memory in which groups meet.
    pub fn shares_memory_with(&mut self, peers: impl IntoIterator<Item = Peer>) -> bool {
        self.meeting()
            .is_some_and(|meeting| peers.into_iter().all(|peer| meeting.is_near(peer)))
    }

    /// Whether steps together go on in a frame.
    pub fn is_frame_in_use(&self, frame: u32) -> bool {
        let requests = &self.state.requests;
        let uses = |&index: &u32| matches!(&requests.slot(index).task, Task::Meet(meet) if meet.place().frame == frame);
        self.state.meets.iter().any(uses)
    }

    /// Memory for a group of so many processes of this node, if there is some left. One of them takes it and tells the others, and
    /// all of them [open](Engine::open_frame) it.
    pub fn take_frame(&mut self, members: u32) -> Option<u32> {
        self.meeting()?.take_frame(members)
    }

    /// From now on a new group uses the memory.
    pub fn open_frame(&mut self, frame: u32) {
        let frame = frame as usize;
        if self.state.begun.len() <= frame {
            self.state.begun.resize(frame + 1, Begun::default());
        }
        self.state.begun[frame] = Begun::default();
        if let Some(meeting) = self.meeting() {
            meeting.open_frame(frame as u32);
        }
    }

    /// The group's memory is used by this process no longer.
    pub fn give_back_frame(&mut self, frame: u32) {
        if let Some(meeting) = self.meeting() {
            meeting.give_back_frame(frame);
        }
    }

    /// A step that all members of the group take. Its rounds are numbered now, so these steps must begin in the same order everywhere.
    pub(crate) fn run_together(
        &mut self,
        plan: u32,
        execution: &Execution,
        step: &Together,
    ) -> Result<Outcome, EngineError> {
        let sides = execution.sides(step)?;
        if let Some(comm) = native_step::underneath(&execution.channel, step.circle) {
            return self.take_natively(&execution.channel, comm, step, sides);
        }
        let mut meet = self.meet(&execution.channel, step, sides, false)?;
        if !self.try_meet(&mut meet, || false)? {
            return Ok(Outcome::Started(self.go_on_meeting(meet)));
        }
        if let Some(mistake) = meet.mistake.take() {
            let mistake = self.after_mistake(&meet, mistake);
            self.state
                .requests
                .slot_mut(plan)
                .completion
                .error
                .get_or_insert(mistake);
        }
        Ok(Outcome::Done)
    }

    /// A blocking operation that is one step together, without plan and, if it is over before `pause` (called after each look) says no, without a
    /// request.
    pub(crate) fn together(
        &mut self,
        channel: &Channel,
        operation: Operation,
        step: &Together,
        binding: &Binding,
        pause: impl FnMut() -> bool,
    ) -> Result<Option<Request>, EngineError> {
        self.called(operation);
        self.state.operation = operation;
        let mut meet = self.meet(channel, step, binding.sides(step, |_| None)?, true)?;
        if !self.try_meet(&mut meet, pause)? {
            let index = self.go_on_meeting(meet);
            return Ok(Some(self.state.requests.name(index)));
        }
        match meet.mistake.take() {
            None => Ok(None),
            Some(mistake) => Err(self.after_mistake(&meet, mistake)),
        }
    }

    /// True if it is over.
    #[inline]
    fn try_meet(&mut self, meet: &mut Meet, mut pause: impl FnMut() -> bool) -> Result<bool, EngineError> {
        let Some(meeting) = self.meeting() else {
            return Ok(false);
        };
        loop {
            if let Err(error) = meet.advance(meeting) {
                return Err(self.give_up(meet.place(), error));
            }
            if meet.is_over() {
                if let Some(lesson) = meet.lesson() {
                    self.learn((meet.place().frame, meet.what), lesson);
                }
                return Ok(true);
            }
            if !pause() {
                return Ok(false);
            }
        }
    }

    /// A step of an operation in a frame that was timed is over.
    #[cold]
    fn learn(&mut self, (frame, what): (u32, What), (lesson, nanoseconds): (Lesson, u64)) {
        if let Some(begun) = self.state.begun.get_mut(frame as usize) {
            begun.known(what).took(lesson, nanoseconds);
        }
    }

    /// From now on progress goes on with it.
    pub(crate) fn go_on_meeting(&mut self, meet: Meet) -> u32 {
        let index = self.state.requests.insert(Task::Meet(Box::new(meet)));
        self.state.meets.push(index);
        index
    }

    /// Why nothing that waits for all of these members can go well.
    #[cold]
    pub(crate) fn lost_of(&self, members: &Members) -> Option<EngineError> {
        if self.state.reasons.is_empty() {
            return None;
        }
        let mut peers = (0..members.count()).map(|rank| members.peer(rank));
        let lost = peers.find(|&peer| peer != self.state.me && self.state.peers[peer as usize].lost)?;
        Some(self.state.lost_error(lost))
    }

    /// `blocking`: how long it takes is what it takes, and not what the program does meanwhile.
    fn meet(&mut self, channel: &Channel, step: &Together, sides: Sides, blocking: bool) -> Result<Meet, EngineError> {
        let nowhere = EngineError::Plan {
            what: "a step together in a group that shares no memory",
        };
        let members = channel.members.clone();
        if let Some(error) = self.lost_of(&members) {
            return Err(error);
        }
        let place = place(channel, step.circle).ok_or_else(|| nowhere.clone())?;
        let Some(meeting) = self.transports[self.meeting.ok_or_else(|| nowhere.clone())?].meeting() else {
            return Err(nowhere);
        };
        let (block, all) = (step.block * sides.unit, step.circle == Circle::All);
        let cut = Cut::new(meeting, step.what, place.members, block, sides.unit, all);
        let Some(begun) = self.state.begun.get_mut(place.frame as usize) else {
            return Err(nowhere);
        };
        if let Some(error) = &begun.broken {
            return Err(error.clone());
        }
        let first = begun.begin(&cut);
        let decides = place.me == pulling::decider(step.what, step.root);
        let mut lesson = None;
        let turn = (decides && cut.pulls).then(|| {
            let (known, sizes) = (begun.known(step.what), (block, cut.pieces));
            let (turn, tried) = pulling::turn(known, step.what, place.members, sizes, &sides, blocking);
            lesson = tried;
            turn
        });
        let mut meet = Meet::new(step, place, members, sides, cut, first, turn);
        if let Some(bytes) = meet.long_result().filter(|_| decides) {
            // One trial at a time.
            let tries = blocking && lesson.is_none() && turn.is_none_or(|turn| turn.way == Way::Stream);
            let (store, tried) = begun.known(step.what).store(bytes, tries);
            meet.past = store == Store::Past;
            lesson = lesson.or(tried);
        }
        if let Some(lesson) = lesson {
            meet.begin_timing(lesson);
        }
        meet.node = channel.node.clone().filter(|_| step.circle != Circle::All);
        meeting.note(&place, meet.step, meet.claim());
        Ok(meet)
    }

    /// A step has failed here: the others are told that they wait in vain.
    fn leaves_others(&mut self, index: u32, error: EngineError) -> EngineError {
        match &self.state.requests.slot(index).task {
            Task::Meet(meet) => {
                let place = *meet.place();
                self.give_up(&place, error)
            }
            _ => error,
        }
    }

    /// A plan has failed here: those of this node who take steps together with it are told.
    pub(crate) fn leave_node(&mut self, execution: &Execution, error: &EngineError) {
        for circle in [Circle::Up, Circle::Down] {
            if let Some(place) = place(&execution.channel, circle) {
                self.give_up(&place, error.clone());
            }
        }
    }

    pub(crate) fn give_up(&mut self, place: &Place, error: EngineError) -> EngineError {
        if let Some(meeting) = self.meeting() {
            meeting.give_up(place, matches!(error, EngineError::Memory { .. }));
        }
        if let Some(begun) = self.state.begun.get_mut(place.frame as usize) {
            begun.broken = Some(error.clone());
        }
        error
    }

    /// Goes on with all steps together; true if anything happened.
    #[inline(never)]
    pub(crate) fn poll_meets(&mut self) -> bool {
        let Some(transport) = self.meeting else { return false };
        let mut any = false;
        let mut at = 0;
        while at < self.state.meets.len() {
            let index = self.state.meets[at];
            let Task::Meet(meet) = &mut self.state.requests.slot_mut(index).task else {
                self.state.meets.remove(at);
                continue;
            };
            let Some(meeting) = self.transports[transport].meeting() else {
                return any;
            };
            let result = meet.advance(meeting);
            let over = meet.is_over();
            let mistake = meet.mistake.take_if(|_| over);
            let out_of_step = mistake.as_ref().and_then(|_| meet.out_of_step(meeting));
            let out_of_step = out_of_step.map(|found| in_words_of(&found, meet));
            let (place, step) = (*meet.place(), (meet.place().frame, meet.what));
            let lesson = if over { meet.lesson() } else { None };
            let in_vain = !over && matches!(result, Ok(false)) && meet.looks_in_vain();
            let failed = match result {
                Ok(moved) => {
                    any |= moved;
                    in_vain.then(|| self.disagreement(index)).flatten()
                }
                Err(error) => Some(self.leaves_others(index, error)),
            };
            match failed {
                None => {}
                Some(error) => {
                    self.state.meets.remove(at);
                    self.state.fail(index, error);
                    any = true;
                    continue;
                }
            }
            if over {
                self.state.meets.remove(at);
                if let Some(lesson) = lesson {
                    self.learn(step, lesson);
                }
                let error = out_of_step.map(|error| self.give_up(&place, error)).or(mistake);
                self.state.requests.slot_mut(index).completion.error = error;
                self.state.finish(index);
            } else {
                at += 1;
            }
        }
        any
    }

    /// After the transports were armed: from now on what other members do wakes this process. True if one of its steps can go on already.
    pub(crate) fn meets_can_advance(&mut self) -> bool {
        let Some(transport) = self.meeting.filter(|_| !self.state.meets.is_empty()) else {
            return false;
        };
        let Some(meeting) = self.transports[transport].meeting() else {
            return false;
        };
        let requests = &mut self.state.requests;
        self.state
            .meets
            .iter()
            .any(|&index| match &mut requests.slot_mut(index).task {
                Task::Meet(meet) => {
                    meeting.watch(meet.place());
                    meet.can_advance(meeting) || meet.waits_in_vain(meeting)
                }
                _ => false,
            })
    }
}

/// Where those of a circle meet.
fn place(channel: &Channel, circle: Circle) -> Option<Place> {
    let direction = match circle {
        Circle::All => {
            return channel.frame.map(|frame| Place {
                frame,
                members: channel.members.count(),
                me: channel.rank,
            });
        }
        Circle::Up => 0,
        Circle::Down => 1,
    };
    let node = channel.node.as_ref()?;
    let StepsBy::Memory(frames) = node.by else { return None };
    Some(Place {
        frame: frames[direction],
        members: node.ranks.len() as u32,
        me: node.me,
    })
}
