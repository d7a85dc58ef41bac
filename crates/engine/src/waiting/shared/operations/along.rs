// SPDX-License-Identifier: Apache-2.0
//! Operations along the edges of a topology whose blocks are short and lie in one piece: what leaves at once leaves,
//! and what comes while the thread polls is received, without plan or requests. The messages are those of the plan of
//! such an operation, so neighbours need not go the same way. What is left is the affair of that plan.

use isthmus_protocol::matching::Pattern;
use isthmus_schedule::{Done, Neighbours, Operation as What};

use super::*;
use crate::base::notes::{Amount, tag_of};
use crate::groups::Taker;
use crate::mismatch::asking::begins;
use crate::mismatch::{Host, Which};
use crate::p2p::send::send_of_operation;

/// What has become of an operation along the edges of a topology.
#[derive(Debug)]
pub enum Along {
    /// Nothing was done: it goes the general way.
    General,
    /// It is over.
    Done(Result<(), EngineError>),
    /// Its turn is taken, and this much of it is done; a neighbour may have given another length than this process
    /// expects.
    Begun(Done, Option<EngineError>),
}

/// How far such an operation is.
#[derive(Default)]
struct Reached {
    done: Done,
    /// A neighbour has given another length than this process expects.
    mistake: Option<EngineError>,
}

impl GroupCall<'_> {
    /// A blocking operation along these edges, none of which leads to this process itself. Blocks are numbered as the
    /// edges are: those that are sent by destination, those that are received by source. Only where all processes
    /// represent data alike.
    pub fn along<P: Pieces>(&self, what: What, edges: &Neighbours, pieces: &P) -> Along {
        let (shared, channel) = (self.shared, self.channel);
        let mut guard = shared.lock();
        let state = &guard.core.state;
        let is_usual = !channel.special.is_any() && !state.has_losses() && !state.tools().observes_plans();
        // With other threads about the lock must not be kept while polling.
        if !is_usual || shared.policy.threads {
            return Along::General;
        }
        let tag = self.begin_along(&mut guard, what);
        let mut reached = Reached::default();
        self.send_along(&mut guard, edges, pieces, tag, &mut reached.done);
        if reached.done.sent == edges.destinations.len() {
            guard = match self.receive_along(guard, edges, pieces, tag, &mut reached) {
                Ok(guard) => guard,
                Err(error) => return Along::Done(Err(error)),
            };
        }
        let Reached { done, mistake } = reached;
        if (done.sent, done.received) != (edges.destinations.len(), edges.sources.len()) {
            return Along::Begun(done, mistake);
        }
        let which = Which::new(channel.context, self.sequence & 0xffff);
        guard.core.state.agreement_mut().ends(which);
        Along::Done(mistake.map_or(Ok(()), Err))
    }

    /// It is counted, and others can find out that they do something else. Upper half of its tags.
    fn begin_along(&self, guard: &mut Guard<'_>, what: What) -> i32 {
        let (channel, operation, sequence) = (self.channel, self.operation, self.sequence & 0xffff);
        let Engine { core, groups, .. } = &mut **guard;
        let tools = core.state.tools_mut();
        tools.called(operation);
        tools.begins(operation);
        let tag = tag_of(sequence, tools.apart(operation));
        if channel.slab.is_some() {
            groups.take_turn(core, channel, what, Taker::Program(None));
        }
        let which = Which::new(channel.context, sequence);
        begins(&mut core.state, channel, which, operation, Amount::default());
        tag
    }

    fn send_along<P: Pieces>(&self, guard: &mut Guard<'_>, edges: &Neighbours, pieces: &P, tag: i32, done: &mut Done) {
        for (block, edge) in (0..).zip(&edges.destinations) {
            let bytes = pieces.sends(block) as usize;
            if let Some(to) = edge.rank.filter(|_| bytes > 0) {
                let (core, tag) = (&mut guard.core, tag | i32::from(edge.slot));
                let has_left = pieces.send(block).with(0, bytes, |data| {
                    send_of_operation(core, self.channel, self.operation, to, tag, data)
                });
                if !has_left {
                    return;
                }
            }
            done.sent += 1;
        }
    }

    fn receive_along<'a, P: Pieces>(
        &'a self,
        mut guard: Guard<'a>,
        edges: &Neighbours,
        pieces: &P,
        tag: i32,
        reached: &mut Reached,
    ) -> Result<Guard<'a>, EngineError> {
        for (block, edge) in (0..).zip(&edges.sources) {
            let room = pieces.receives(block);
            if let Some(from) = edge.rank.filter(|_| room > 0) {
                let pattern = Pattern {
                    context: self.channel.context.with(1),
                    source: Some(from),
                    tag: Some(tag | i32::from(edge.slot)),
                };
                let memory = pieces.receive(block);
                let next = self
                    .shared
                    .receive_next(&mut guard, self.channel, pattern, memory, room);
                let bytes = match next {
                    Direct::Nothing => return Ok(guard),
                    Direct::Received(received) => received.bytes,
                    Direct::Posted(request) => {
                        let completion = self.shared.completion(guard, request);
                        guard = self.shared.lock();
                        match completion.error {
                            Some(EngineError::Truncate { message, .. }) => message,
                            Some(error) => return Err(error),
                            None => completion.bytes,
                        }
                    }
                };
                if bytes != room {
                    reached.mistake.get_or_insert(EngineError::Truncate {
                        source: from,
                        tag,
                        message: bytes,
                        buffer: room,
                    });
                }
            }
            reached.done.received += 1;
        }
        Ok(guard)
    }
}
