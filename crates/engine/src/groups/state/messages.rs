// SPDX-License-Identifier: Apache-2.0
//! Messages that operations of groups have left behind, until the engine sees to them.

use isthmus_protocol::matching::Context;

use super::Groups;
use crate::Members;
use crate::groups::strays::{Called, Stray, Strays};

/// Keeps those of an operation that is over.
#[inline]
pub(crate) fn keep(groups: &mut Groups, strays: Vec<Stray>, context: Context, members: &Members, called: Called) {
    if !strays.is_empty() {
        groups.strays.push(Strays::new(strays, context, members, called));
    }
}

/// Those that are to be seen to.
#[inline]
pub(crate) fn next(groups: &mut Groups) -> Option<Strays> {
    groups.strays.pop()
}
