// SPDX-License-Identifier: Apache-2.0
//! Groups that share memory: their frames, and steps that they take together.

use isthmus_schedule::step::Together;
use isthmus_transport::Peer;
use isthmus_transport::meeting::{Meeting, Place};

use crate::execution::Execution;
use crate::meet::{Cut, Meet, Sides};
use crate::plan::Outcome;
use crate::requests::Task;
use crate::{Binding, Channel, Engine, EngineError, Operation, Request};

/// The rounds that this process has begun at a place, in each lane.
pub(crate) type Rounds = [u64; 2];

impl Engine {
    fn meeting(&mut self) -> Option<&mut dyn Meeting> {
        self.transports[self.meeting?].meeting()
    }

    /// Whether this process and these others share memory in which groups meet.
    pub fn shares_memory_with(&self, peers: impl IntoIterator<Item = Peer>) -> bool {
        let mut others = peers.into_iter().filter(|&peer| peer != self.state.me);
        self.meeting
            .is_some_and(|transport| others.all(|peer| self.state.peers[peer as usize].route as usize == transport))
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
        if self.state.rounds.len() <= frame {
            self.state.rounds.resize(frame + 1, Rounds::default());
        }
        self.state.rounds[frame] = Rounds::default();
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
        let mut meet = self.meet(&execution.channel, step, sides)?;
        if !self.try_meet(&mut meet, 1)? {
            return Ok(Outcome::Started(self.go_on_meeting(meet)));
        }
        if let Some(mistake) = meet.mistake {
            self.state
                .requests
                .slot_mut(plan)
                .completion
                .error
                .get_or_insert(mistake);
        }
        Ok(Outcome::Done)
    }

    /// A blocking operation that is one step together, without plan and, if looking `rounds` times is enough, without a request.
    pub(crate) fn together(
        &mut self,
        channel: &Channel,
        operation: Operation,
        step: &Together,
        binding: &Binding,
        rounds: u64,
    ) -> Result<Option<Request>, EngineError> {
        self.called(operation);
        self.state.operation = operation;
        let mut meet = self.meet(channel, step, binding.sides(step)?)?;
        if !self.try_meet(&mut meet, rounds)? {
            let index = self.go_on_meeting(meet);
            return Ok(Some(self.state.requests.name(index)));
        }
        meet.mistake.map_or(Ok(None), Err)
    }

    /// True if it is over.
    #[inline]
    fn try_meet(&mut self, meet: &mut Meet, rounds: u64) -> Result<bool, EngineError> {
        let Some(meeting) = self.meeting() else {
            return Ok(false);
        };
        for _ in 0..rounds {
            meet.advance(meeting)?;
            if meet.is_over() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// From now on progress goes on with it.
    fn go_on_meeting(&mut self, meet: Meet) -> u32 {
        let index = self.state.requests.insert(Task::Meet(Box::new(meet)));
        self.state.meets.push(index);
        index
    }

    fn meet(&mut self, channel: &Channel, step: &Together, sides: Sides) -> Result<Meet, EngineError> {
        let nowhere = EngineError::Plan {
            what: "a step together in a group that shares no memory",
        };
        let members = channel.members.clone();
        if !self.state.reasons.is_empty() {
            let lost = (0..members.count()).map(|rank| members.peer(rank));
            let lost = lost
                .into_iter()
                .find(|&peer| peer != self.state.me && self.state.peers[peer as usize].lost);
            if let Some(peer) = lost {
                return Err(self.state.lost_error(peer));
            }
        }
        let Some(frame) = channel.frame else {
            return Err(nowhere);
        };
        let place = Place {
            frame,
            members: members.count(),
            me: channel.rank,
        };
        let Some(meeting) = self.transports[self.meeting.ok_or_else(|| nowhere.clone())?].meeting() else {
            return Err(nowhere);
        };
        let cut = Cut::new(meeting, step.what, place.members, step.block * sides.unit, sides.unit);
        let Some(rounds) = self.state.rounds.get_mut(frame as usize) else {
            return Err(nowhere);
        };
        let first = rounds[cut.lane as usize];
        rounds[cut.lane as usize] += cut.rounds();
        Ok(Meet::new(step, place, members, sides, cut, first))
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
            match result {
                Ok(moved) => any |= moved,
                Err(error) => {
                    self.state.meets.remove(at);
                    self.state.fail(index, error);
                    any = true;
                    continue;
                }
            }
            if over {
                let mistake = meet.mistake.take();
                self.state.meets.remove(at);
                self.state.requests.slot_mut(index).completion.error = mistake;
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
        let requests = &self.state.requests;
        self.state.meets.iter().any(|&index| match &requests.slot(index).task {
            Task::Meet(meet) => {
                meeting.watch(meet.place());
                meet.can_advance(meeting)
            }
            _ => false,
        })
    }
}
