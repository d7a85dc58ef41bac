// SPDX-License-Identifier: Apache-2.0
//! Looking at requests of which several are waited for or tested.

use isthmus_abi::Status;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_engine::Engine;

use super::{Ended, Simply, end_simply, is_active, try_end};

/// What a look at one of several requests has found.
pub(super) enum Seen {
    /// Nothing to wait for.
    Inactive,
    /// It is under way; `simply`: nothing but an event of the engine can change that.
    Waits { simply: bool },
    /// It has ended as nearly all do.
    Simply(Status),
    /// It has ended, or has something to say, in another way.
    Ended(Ended),
}

/// Looks at one of several requests, and ends it if it is complete.
#[inline(always)]
pub(super) fn see(engine: &mut Engine, slot: &mut h::Request) -> Result<Seen> {
    if *slot == h::MPI_REQUEST_NULL {
        return Ok(Seen::Inactive);
    }
    match end_simply(engine, slot) {
        Simply::Ended(status) => Ok(Seen::Simply(status)),
        Simply::Waits => Ok(Seen::Waits { simply: true }),
        Simply::Unusual => look_closer(engine, slot),
    }
}

/// The same for one about which something is unusual.
#[inline(never)]
fn look_closer(engine: &mut Engine, slot: &mut h::Request) -> Result<Seen> {
    if !is_active(*slot)? {
        return Ok(Seen::Inactive);
    }
    Ok(try_end(engine, slot)?.map_or(Seen::Waits { simply: false }, Seen::Ended))
}
