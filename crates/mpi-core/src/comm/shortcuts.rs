// SPDX-License-Identifier: Apache-2.0
//! What operations about which nothing is unusual may use on a communicator instead of a plan.

use super::Comm;
use crate::remembered::Shortcuts;
use crate::world::World;

impl Comm {
    /// Found out once, and again after whatever may change it.
    #[inline(always)]
    pub(crate) fn shortcuts(&self, world: &World) -> Shortcuts {
        self.remembered.shortcuts(|| find_shortcuts(world, self))
    }

    /// Whether plain operations go without a plan: only then it is worth while to look whether one is plain.
    #[inline(always)]
    pub(crate) fn has_shortcuts(&self, world: &World) -> bool {
        self.shortcuts(world).any()
    }

    /// Whether plain operations of blocks that may differ in length go through memory that members share.
    #[inline(always)]
    pub(crate) fn has_cells(&self, world: &World) -> bool {
        self.shortcuts(world).memory() && !self.channel().special.is_any()
    }
}

#[cold]
fn find_shortcuts(world: &World, comm: &Comm) -> Shortcuts {
    let usual = comm.joint().is_none() && comm.common_form(world).is_none();
    let may = usual && (!comm.channel().special.is_any() || comm.blocks_natively());
    Shortcuts::new(
        may && comm.channel().slab.is_some() && world.overrides().is_empty(),
        may && comm.is_native(),
    )
}
