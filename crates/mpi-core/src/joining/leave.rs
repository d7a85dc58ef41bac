// SPDX-License-Identifier: Apache-2.0
//! How processes that have met part again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use isthmus_abi::constants as abi;
use isthmus_engine::{Members, Request, close_transport, drop_transport, forget, goes_on, is_gone, retire_transport};
use rustc_hash::FxHashSet;

use crate::comm::{Comm, is_parted, joined, usable};
use crate::create::string_tag;
use crate::error::{Error, Result};
use crate::faults;
use crate::internal::{self, Side};
use crate::meeting::reach::Ways;
use crate::meeting::{Introduced, Meeting};
use crate::world::World;

/// How long saying farewell to those who are met no more may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// What peers are told that still send.
const REASON: &str = "the two have disconnected (MPI_Comm_disconnect)";

/// MPI_Comm_disconnect, before the communicator is freed; collective: what was sent on it has left, and all members
/// have come here. Nothing has to be waited for among processes of one job, who stay connected by MPI_COMM_WORLD.
pub fn disconnect(world: &World, comm: &Comm) -> Result<()> {
    if !joined::is_joined(comm) {
        return Ok(());
    }
    world.engine().wait(|engine| engine.is_flushed(true).then_some(()));
    let begun = internal::start_barrier(world, comm.everybody());
    come_apart(world, comm, begun)
}

/// Waits for all who disconnect. Of a process of another job only those hear that it is lost who have a connection to
/// it: they tell the others, who wait for it, or for one of those, who come no more.
fn come_apart(world: &World, comm: &Comm, begun: Result<Request>) -> Result<()> {
    // Who has revoked it, or heard of that before, may have left already, and cannot be reached.
    let revoked_or = |error: Error| usable(comm).err().unwrap_or(error);
    let ended = |request: Request| {
        let done = world.engine().wait(|engine| {
            let done = engine.core.take(request).map(Some);
            done.or_else(|| is_parted(comm).then_some(None))
        });
        match done.map(|done| done.error) {
            Some(None) => Ok(()),
            Some(Some(error)) => Err(revoked_or(Error::from(&error))),
            None => {
                faults::end_here(world, comm);
                _ = world.wait(request);
                Err(lost_to_another(world, comm))
            }
        }
    };
    let done = begun.map_err(revoked_or).and_then(ended);
    if done.as_ref().is_err_and(|error| error.class != abi::MPIX_ERR_REVOKED) {
        faults::part(world, comm);
    }
    done
}

#[cold]
fn lost_to_another(world: &World, comm: &Comm) -> Error {
    let class = match goes_on(&world.engine().lock().core) {
        true => abi::MPIX_ERR_PROC_FAILED,
        false => abi::MPI_ERR_OTHER,
    };
    let what = comm.describe();
    Error::new(class, format!("a member of {what} is lost, as another one has heard"))
}

/// MPI_Comm_free, before the communicator is freed: its members stay connected.
pub fn stay_connected(comm: &Comm) {
    joined::stay_connected(comm);
}

/// After MPI_Comm_disconnect has freed a communicator: closes the connections of meetings of which nothing is left.
pub fn part(world: &World) {
    while let Some(meeting) = take(world, |meeting| meeting.bonds.is_empty()) {
        close(world, &meeting);
    }
}

/// Before others are met: the transports of meetings leave all of whose others are gone, and the meetings of which no
/// communicator lives. A program that replaces lost processes stays connected with them by the standard until it
/// disconnects, and would run out of numbers for transports.
pub(super) fn part_from_lost(world: &World) {
    let kept: Vec<Arc<Meeting>> = world.abroad().meetings.all().clone();
    let mut gone = FxHashSet::default();
    {
        let engine = world.engine().lock();
        let members = kept.iter().flat_map(|meeting| meeting.group().members().iter());
        gone.extend(members.copied().filter(|&peer| is_gone(&engine.core, peer)));
    }
    let own = world.id();
    let is_over = |meeting: &Meeting| meeting.has_no_others(own, &gone);
    drop(kept);
    while let Some(meeting) = take(world, is_over) {
        retire(world, &meeting.take_ways(), meeting.introduced());
    }
    let kept: Vec<Arc<Meeting>> = world.abroad().meetings.all().clone();
    for meeting in kept.iter().filter(|meeting| is_over(meeting)) {
        for way in meeting.take_ways().all() {
            // As in [`retire`].
            let gone = drop_transport(&mut world.engine().lock(), way);
            drop(gone);
        }
    }
}

/// A meeting that nothing keeps and of which this is so, from now on not among those of this process.
fn take(world: &World, is_over: impl Fn(&Meeting) -> bool) -> Option<Arc<Meeting>> {
    let mut all = world.abroad().meetings.all();
    let at = all
        .iter()
        .position(|meeting| Arc::strong_count(meeting) == 1 && is_over(meeting))?;
    Some(all.remove(at))
}

/// Whether this process is connected with nobody beside its own world.
pub fn is_alone(world: &World) -> bool {
    world.abroad().meetings.all().is_empty()
}

fn close(world: &World, meeting: &Meeting) {
    let ways = meeting.take_ways();
    let until = Instant::now() + FAREWELL;
    for way in ways.all() {
        world
            .engine()
            .wait(|engine| (close_transport(engine, way) || Instant::now() >= until).then_some(()));
    }
    retire(world, &ways, meeting.introduced());
}

/// The transports leave, and nothing is kept of those whom they have reached.
pub(super) fn retire(world: &World, ways: &Ways, introduced: &Introduced) {
    for way in ways.all() {
        // Its thread may wait for the engine when it ends.
        let gone = retire_transport(&mut world.engine().lock(), way, REASON);
        drop(gone);
    }
    let mut engine = world.engine().lock();
    forget(&mut engine, &introduced.peers);
    engine.core.processes().forget(introduced.job);
}

/// A meeting that has come to nothing.
pub(super) fn undo(world: &World, meeting: &Arc<Meeting>) {
    world
        .abroad()
        .meetings
        .all()
        .retain(|other| !Arc::ptr_eq(other, meeting));
    retire(world, &meeting.take_ways(), meeting.introduced());
}

/// Before MPI_Finalize, which is collective over all connected processes: waits for all that this one is still
/// connected with, of other jobs. Whoever is lost is not waited for.
pub fn wait_for_all(world: &World) {
    part(world);
    let mut whole: Vec<(Arc<Comm>, Result<Request>)> = Vec::new();
    let mut parts: Vec<([u8; 16], Vec<u32>, Comm)> = Vec::new();
    let all: Vec<Arc<Meeting>> = world.abroad().meetings.all().clone();
    for meeting in &all {
        for places in meeting.bonds.widest() {
            let comm = joined::of_meeting(meeting);
            match places.len() == comm.size() as usize {
                // All at once: others have them in another order.
                true => whole.push(begin(world, comm)),
                false => parts.push((meeting.id(), places, comm)),
            }
        }
    }
    // In the same order everywhere: each waits at the first one that others have not come to.
    parts.sort_unstable_by(|(id, places, _), (other, theirs, _)| (id, places).cmp(&(other, theirs)));
    for (_, places, comm) in parts {
        let me = places.iter().position(|&place| place == comm.rank());
        if let Some(me) = me {
            _ = Side::of(&comm, string_tag("", &places)).meet(world, &places, me);
        }
    }
    for (comm, request) in whole {
        _ = come_apart(world, &comm, request);
    }
    for meeting in all.iter().filter(|meeting| meeting.bonds.is_empty()) {
        wait_until_unused(world, meeting, &all);
    }
}

/// Who has a meeting that is waited for: the list of all, and its copy.
const WAITING: usize = 2;

/// Members who have disconnected may still have a file open that they reach through this process.
fn wait_until_unused(world: &World, meeting: &Arc<Meeting>, all: &[Arc<Meeting>]) {
    let members = Members::of(meeting.group().members());
    let through = all.iter().filter(|other| other.goes_through(meeting)).count();
    world.engine().wait(|engine| {
        let unused = Arc::strong_count(meeting) <= WAITING + through;
        (unused || engine.core.lost_of(&members).is_some()).then_some(())
    });
}

fn begin(world: &World, comm: Comm) -> (Arc<Comm>, Result<Request>) {
    let comm = Arc::new(comm);
    world.revocable.begins(world.engine(), &comm);
    let begun = internal::start_barrier(world, &comm);
    (comm, begun)
}
