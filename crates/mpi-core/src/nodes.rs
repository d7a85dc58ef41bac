// SPDX-License-Identifier: Apache-2.0
//! Memory of the nodes in which the members of a communicator over several nodes take steps of its blocking collective operations together.
//!
//! The first member on each node takes two frames. Plans are made without communication, so all members must know whether every node has
//! got its own: they tell each other in an agreement of all. That costs a trip over all links, so it comes only with the third operation that
//! would take such steps; the first ones, and communicators that are used no more than that, go by messages alone.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use isthmus_engine::{Channel, NodeMembers};

use crate::comm::Comm;
use crate::error::Result;
use crate::frames::Use;
use crate::internal;
use crate::world::World;

/// Operations that go by messages before members agree.
const BEFORE: u32 = 2;
/// In place of a frame: there was none left.
const NONE: u32 = u32::MAX;

/// The memory of a communicator on its nodes.
#[derive(Default)]
pub(crate) struct Nodes {
    /// Operations that would have taken steps there: as many on all members.
    calls: AtomicU32,
    agreed: OnceLock<Option<Agreed>>,
}

/// Every node has its frames.
struct Agreed {
    channel: Channel,
    /// Gives those of this node back in the end; none where this process is alone there.
    _frames: Vec<Use>,
}

impl Comm {
    /// The channel for plans with steps together on nodes, if members have agreed that they can.
    pub(crate) fn channel_on_nodes(&self) -> Option<&Channel> {
        Some(&self.nodes.agreed.get()?.as_ref()?.channel)
    }

    /// Whether an operation that would take steps together on nodes can; collective.
    pub(crate) fn may_meet_on_nodes(&self, world: &World) -> Result<bool> {
        if self.nodes.agreed.get().is_none() {
            if self.nodes.calls.fetch_add(1, Ordering::Relaxed) < BEFORE {
                return Ok(false);
            }
            let agreed = self.agree_on_nodes(world)?;
            self.nodes.agreed.get_or_init(|| agreed);
        }
        Ok(self.channel_on_nodes().is_some())
    }

    fn agree_on_nodes(&self, world: &World) -> Result<Option<Agreed>> {
        let ranks = self.network(world).node(self.rank());
        let first = ranks.first().copied().unwrap_or(0);
        let mut frames = [0; 2];
        let mut engine = world.engine().lock();
        world.frames().give_back(&mut engine);
        if ranks.len() > 1 && first == self.rank() {
            frames = [0; 2].map(|_: u32| engine.take_frame(ranks.len() as u32).unwrap_or(NONE));
        }
        drop(engine);
        let mine: Vec<u8> = frames.into_iter().flat_map(u32::to_le_bytes).collect();
        let all = internal::gather_equal(world, self, &mine)?;
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(NONE, |b| u32::from_le_bytes(*b));
        let all: Vec<u32> = all.chunks_exact(4).map(word).collect();
        let frames = all.get(2 * first as usize..).and_then(|rest| rest.first_chunk::<2>());
        let Some(&frames) = frames.filter(|_| ranks.len() > 1) else {
            let everywhere = !all.contains(&NONE);
            return Ok(everywhere.then(|| Agreed {
                channel: self.channel().clone(),
                _frames: Vec::new(),
            }));
        };
        let taken = frames.into_iter().filter(|&frame| frame != NONE);
        let uses: Vec<Use> = taken.map(|frame| Use::of(frame, world.frames())).collect();
        if all.contains(&NONE) {
            return Ok(None);
        }
        let mut engine = world.engine().lock();
        frames.into_iter().for_each(|frame| engine.open_frame(frame));
        let me = ranks.iter().position(|&rank| rank == self.rank()).unwrap_or(0) as u32;
        let members = NodeMembers {
            ranks: ranks.into(),
            me,
            frames,
        };
        Ok(Some(Agreed {
            channel: Channel {
                node: Some(Arc::new(members)),
                ..self.channel().clone()
            },
            _frames: uses,
        }))
    }
}
