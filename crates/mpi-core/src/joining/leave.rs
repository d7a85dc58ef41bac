// SPDX-License-Identifier: Apache-2.0
//! How processes that have met part again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use isthmus_engine::{Request, close_transport, retire_transport};

use crate::comm::{Comm, joined};
use crate::error::Result;
use crate::internal;
use crate::meeting::Meeting;
use crate::meeting::reach::Ways;
use crate::world::World;

/// How long saying farewell to those who are met no more may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// What peers are told that still send.
const REASON: &str = "the two have disconnected (MPI_Comm_disconnect)";

/// MPI_Comm_disconnect, before the communicator is freed; collective: what was sent on it has left, and all members
/// have come here. Nothing has to be waited for among processes of one job, who stay connected by MPI_COMM_WORLD.
pub fn disconnect(world: &World, comm: &Comm) -> Result<()> {
    let Some(meeting) = joined::meeting(comm) else {
        return Ok(());
    };
    world.engine().wait(|engine| engine.is_flushed(true).then_some(()));
    meeting.over.store(true, Ordering::Relaxed);
    internal::barrier(world, comm.everybody())
}

/// After MPI_Comm_disconnect has freed a communicator: closes the connections of meetings of which nothing is left.
pub fn part(world: &World) {
    loop {
        let mut all = world.abroad().meetings.all();
        let last = |meeting: &Arc<Meeting>| meeting.over.load(Ordering::Relaxed) && Arc::strong_count(meeting) == 1;
        let Some(at) = all.iter().position(last) else { return };
        let meeting = all.remove(at);
        drop(all);
        close(world, meeting.ways());
    }
}

/// Whether this process is connected with nobody beside its own world.
pub fn is_alone(world: &World) -> bool {
    world.abroad().meetings.all().is_empty()
}

fn close(world: &World, ways: Ways) {
    let until = Instant::now() + FAREWELL;
    for way in ways.all() {
        world
            .engine()
            .wait(|engine| (close_transport(engine, way) || Instant::now() >= until).then_some(()));
    }
    retire(world, &ways);
}

/// The transports leave.
pub(super) fn retire(world: &World, ways: &Ways) {
    for way in ways.all() {
        // Its thread may wait for the engine when it ends.
        let gone = retire_transport(&mut world.engine().lock(), way, REASON);
        drop(gone);
    }
}

/// A meeting that has come to nothing.
pub(super) fn undo(world: &World, meeting: &Arc<Meeting>) {
    world
        .abroad()
        .meetings
        .all()
        .retain(|other| !Arc::ptr_eq(other, meeting));
    retire(world, &meeting.ways());
}

/// Before MPI_Finalize, which is collective over all connected processes: waits for all that this one is still
/// connected with, of other jobs. Whoever is lost is not waited for.
pub fn wait_for_all(world: &World) {
    let all: Vec<Arc<Meeting>> = world.abroad().meetings.all().clone();
    // All at once: others have them in another order.
    let begun: Vec<(Comm, Request)> = all.iter().filter_map(|meeting| begin(world, meeting)).collect();
    for (_comm, request) in begun {
        _ = world.wait(request);
    }
}

fn begin(world: &World, meeting: &Arc<Meeting>) -> Option<(Comm, Request)> {
    let comm = joined::of_meeting(meeting);
    let request = internal::start_barrier(world, &comm).ok()?;
    Some((comm, request))
}
