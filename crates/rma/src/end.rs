// SPDX-License-Identifier: Apache-2.0
//! MPI_Win_free.

use isthmus_core::error::Result;
use isthmus_core::members;
use isthmus_engine::is_gone;

use crate::far;
use crate::window::Window;

impl Window {
    /// Whether this process may free it: it has no epoch open.
    pub fn may_end(&self) -> Result<()> {
        self.epochs.lock().free()
    }

    /// Before MPI_Win_free ends: all have ended what they do; collective. When a member is lost, nobody can wait for
    /// all: what others still send is answered with an error then.
    pub fn end(&self) -> Result<()> {
        far::hear(self);
        let met = members::meet_or_lose(self.world, &self.comm);
        far::close(self, met.is_err());
        self.counted.report(&mut self.world.engine().lock());
        let members = &self.comm.channel().members;
        let engine = self.world.engine().lock();
        let mut all = (0..members.count()).map(|rank| members.peer(rank));
        match met.is_err() && all.any(|peer| is_gone(&engine.core, peer)) {
            true => Ok(()),
            false => met,
        }
    }
}
