// SPDX-License-Identifier: Apache-2.0
//! Processes of one node that meet, of different jobs perhaps: messages in memory that one of them has
//! [brought](crate::brought). Groups do not meet there, and windows are not made there.

use std::os::fd::AsFd;

use isthmus_transport::Peer;

use super::ShmTransport;
use crate::brought::{BellOf, Brought};
use crate::company::{Company, Met};
use crate::doorbell::Doorbells;
use crate::error::ShmError;
use crate::file::system;
use crate::geometry::Geometry;
use crate::gone::Gone;
use crate::segment::{STATE_LEFT, Segment};
use crate::slots::SlotOf;
use crate::sync::Ordering;
use crate::vigil::Vigil;

impl ShmTransport {
    /// Enters the memory that these processes share from now on. Their numbers as peers are told later
    /// ([`meet`](isthmus_transport::Transport::meet)).
    ///
    /// # Errors
    /// It cannot be done here: the others cannot count on this process. They may be about to open what it has brought,
    /// so that stays there until all have heard of it.
    pub fn met(brought: &Brought, company: Company<'_>) -> Result<Self, ShmError> {
        let Company {
            members,
            me,
            peers,
            processes,
            grace,
        } = company;
        let geometry = Geometry::for_messages(members.len());
        let (Some(geometry), Some((_, first)), true) = (geometry, members.first(), me < members.len()) else {
            return Err(ShmError::Usage(format!("a meeting of {} on one node", members.len())));
        };
        let (file, path) = brought.file_of(first, geometry)?;
        let segment = Segment::of(file, &path, geometry)?;
        let bells: Vec<BellOf> = members.iter().map(|(_, memory)| BellOf::of(memory)).collect();
        let cannot = |error| system("watch processes of this node that share", &path, error);
        let mut vigil = Vigil::new(brought.bell.as_fd(), grace).map_err(cannot)?;
        for (slot, (rank, memory)) in members.iter().enumerate() {
            if peers.contains(rank) {
                vigil.watch(slot, memory.process).map_err(cannot)?;
                // It may be one that this process is not allowed to look into: then it could not be woken.
                bells[slot].open().map_err(cannot)?;
            }
        }
        let doorbells = Doorbells::of(brought.bell.clone(), bells);
        let nobody = vec![Peer::NONE; members.len()];
        let mut made = Self::enter(segment, doorbells, me, &nobody)?;
        made.slots = SlotOf::default();
        made.met = Some(Box::new(Met {
            ranks: members.iter().map(|(rank, _)| *rank).collect(),
            processes,
            vigil,
        }));
        Ok(made)
    }

    /// What a peer is called.
    pub(crate) fn name_of(&self, peer: Peer) -> String {
        match &self.met {
            Some(met) => met.processes.name(peer),
            None => format!("rank {peer}"),
        }
    }

    /// Looks who has ended.
    #[cold]
    pub(super) fn keep_vigil(&mut self) {
        let ended = self.met.as_mut().map(|met| met.vigil.ended());
        for slot in ended.unwrap_or_default() {
            // Who has left has told everything before.
            if self.segment.block(slot).state.load(Ordering::Acquire) == STATE_LEFT {
                continue;
            }
            let why = format!(
                "{}, on this node, has ended without leaving MPI. It was probably killed",
                self.name_of(self.links[slot].peer)
            );
            self.gone.push((slot, Gone::Lost(why)));
            self.chores = true;
        }
    }
}
