// SPDX-License-Identifier: Apache-2.0
//! Who ends with whom (MPI 5.0 section 11.10.4). A process that was spawned tells its launcher when it is connected
//! with nobody beside its own world any more: a failure of that world leaves the others alone then.

use std::sync::{Mutex, MutexGuard, PoisonError};

use isthmus_boot::Running;
use isthmus_core::joining;
use isthmus_wire::question::Ask;

use crate::process;

struct Connections {
    /// This process has met those that have spawned it.
    spawned: bool,
    /// The launcher takes it for connected with nobody.
    apart: bool,
    /// Calls that connect.
    connecting: u32,
}

static KNOWN: Mutex<Connections> = Mutex::new(Connections {
    spawned: false,
    apart: false,
    connecting: 0,
});

fn known() -> MutexGuard<'static, Connections> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// It has met its parents, inside MPI_Init. `accepted`: they have accepted it at a port, until when the launcher took
/// it for connected with nobody.
pub(crate) fn begin(running: &Running, accepted: bool) {
    let mut known = known();
    known.spawned = true;
    if accepted {
        // If the launcher is gone this process ends with it.
        let _ = running.ask(Ask::Apart(false));
    }
}

/// While a call connects. Nobody is connected before the launcher knows that.
pub(crate) struct Connecting(());

impl Connecting {
    pub(crate) fn begin() -> Self {
        let mut known = known();
        known.connecting += 1;
        if std::mem::take(&mut known.apart) {
            tell(false);
        }
        Self(())
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        known().connecting -= 1;
        // It may have come to nothing.
        parted();
    }
}

/// Something is gone that may have kept the connections of a communicator that was disconnected: they are closed if it
/// was the last.
pub(crate) fn leave() {
    if let Ok(world) = process::world() {
        joining::part(world);
        parted();
    }
}

/// After it has disconnected.
fn parted() {
    let mut known = known();
    let alone = || process::world().is_ok_and(joining::is_alone);
    if known.spawned && !known.apart && known.connecting == 0 && alone() {
        known.apart = tell(true);
    }
}

/// Whether the launcher has heard it. If it has not, all end together.
fn tell(apart: bool) -> bool {
    process::underneath().is_ok_and(|running| running.ask(Ask::Apart(apart)).is_ok())
}
