// SPDX-License-Identifier: Apache-2.0
//! What one process of a communicator tells all others, for what the library does for itself.

use crate::comm::Comm;
use crate::error::Result;
use crate::internal;
use crate::world::World;

/// The content that `root` has, whose length only it knows; collective.
pub fn by_root(world: &World, comm: &Comm, root: u32, content: &[u8]) -> Result<Vec<u8>> {
    internal::broadcast_all(world, comm, root, content)
}
