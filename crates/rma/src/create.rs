// SPDX-License-Identifier: Apache-2.0
//! Making a window: all processes say what they want, and all have it or none.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use isthmus_abi::constants as abi;
use isthmus_core::comm::{Comm, Near};
use isthmus_core::create::{duplicate_and_say, near};
use isthmus_core::error::{Error, Result};
use isthmus_core::info::Info;
use isthmus_core::world::World;
use isthmus_core::{fail, members};
use isthmus_datatype::raw::{UserMemory, WriteMemory};
use isthmus_engine::{SharedMemory, goes_on};

use crate::epoch::Epoch;
use crate::far::make::{open, take_frames};
use crate::hints::Hints;
use crate::locks;
use crate::parts::{Part, Parts};
use crate::sent::Far;
use crate::shareable::Location;
use crate::store::{ProgramMemory, Store};
use crate::window::{Flavor, Lazy, Window};

/// What a process wants of a new window.
#[derive(Debug)]
pub struct Wish {
    /// Bytes of its part.
    pub size: u64,
    /// Bytes of a displacement.
    pub unit: u64,
    /// Memory that the program has, if it brings it. Other processes of the node write there by address, so it is no
    /// memory of the library.
    pub memory: Option<UserMemory>,
    /// Where others of the node find that, if they can map it.
    pub location: Option<Location>,
    /// What the program says.
    pub hints: Info,
}

/// What a process says to the others. Words: error class, flavor, size, unit, not contiguous, alignment.
const SAID: usize = 6;

struct Own {
    wish: Wish,
    hints: Hints,
    said: [u64; SAID],
}

impl Own {
    fn new(flavor: Flavor, given: Result<Wish>) -> Result<Self> {
        let wish = given?;
        let hints = Hints::default().with(&wish.hints)?;
        let said = [
            abi::MPI_SUCCESS as u64,
            flavor.value() as u64,
            wish.size,
            wish.unit,
            u64::from(hints.noncontiguous()?),
            hints.alignment()? as u64,
        ];
        Ok(Self { wish, hints, said })
    }
}

/// Whether all members see one memory.
fn share_memory(world: &World, comm: &Comm) -> bool {
    let members = comm.group().members().iter().copied();
    comm.size() == 1 || world.engine().lock().slabs().are_shared_with(members)
}

/// Whether a process of the node may not copy memory of another one; collective over them. All have come to the call by
/// now, so whoever is not reached is refused.
fn is_refused(world: &World, node: &Comm) -> Result<bool> {
    let mine = {
        let mut engine = world.engine().lock();
        let mut others = node.group().members().iter().filter(|&&peer| peer != world.me());
        match engine.slabs().sharing() {
            Some(sharing) => others.any(|&peer| sharing.reach(peer).is_err()),
            None => true,
        }
    };
    let all = members::say(world, node, &[u64::from(mine)])?;
    Ok(all.iter().any(|said| said[0] != 0))
}

/// Members that a window of this kind has near this process, where that is not all of them: those that share memory, or
/// nobody where they must not reach that of the program; collective.
fn near_for(world: &World, comm: &Comm, flavor: Flavor, together: bool) -> Result<Option<Arc<Near>>> {
    let shared = match together {
        true => None,
        false => Some(near(world, comm)?),
    };
    let refused = match of_node(comm, shared.as_deref()) {
        Some(node) if !flavor.allocates() => is_refused(world, node)?,
        _ => false,
    };
    Ok(if refused { Some(Near::alone(comm)) } else { shared })
}

/// A communicator of the members near this process; `None`: it is alone.
fn of_node<'a>(comm: &'a Comm, near: Option<&'a Near>) -> Option<&'a Comm> {
    match near {
        None => (comm.size() > 1).then_some(comm),
        Some(near) => near.comm(),
    }
}

fn not_together<T>(flavor: Flavor, comm: &Comm) -> Result<T> {
    fail!(
        abi::MPI_ERR_RMA_SHARED,
        argument("comm"),
        "is {}, whose processes do not all share memory that Isthmus manages, which {} needs; make one of each node \
         with MPI_Comm_split_type and MPI_COMM_TYPE_SHARED",
        comm.describe(),
        flavor.function()
    )
}

impl Window {
    /// Makes a window; collective. What is wrong with the arguments of one process all hear of.
    pub fn create(
        world: &'static World,
        comm: &Comm,
        flavor: Flavor,
        given: Result<Wish>,
        programs: ProgramMemory<'_>,
    ) -> Result<Arc<Self>> {
        let together = share_memory(world, comm);
        if !together && flavor == Flavor::Shared {
            return not_together(flavor, comm);
        }
        let own = Own::new(flavor, given);
        let said = match &own {
            Ok(own) => own.said,
            Err(error) => std::array::from_fn(|at| if at == 0 { error.class as u64 } else { 0 }),
        };
        let words: Vec<u8> = said.iter().flat_map(|word| word.to_le_bytes()).collect();
        let heard = duplicate_and_say(world, comm, &words)?;
        let said: Vec<[u64; SAID]> = heard.said.iter().map(|words| decode(words)).collect();
        let own = own?;
        agree(flavor, &said)?;
        // What its members say while it is made they say over the program's communicator: the plans for that are there.
        let (program, comm) = (comm, heard.comm);
        let near = near_for(world, program, flavor, together)?;
        let node = of_node(program, near.as_deref());
        let far = near.clone().map(Far::new);
        let unlike = far.is_some() && take_frames(world, &comm);
        let goes_on = goes_on(&world.engine().lock().core);
        let provided = match &far {
            None => lay_out(flavor, &said),
            Some(far) => lay_out_node(flavor, &said, far),
        };
        let provided = provided.and_then(|laid| provide(world, (flavor, comm.rank()), node, laid, &own, programs));
        if far.is_some() {
            agree_on_memory(world, program, &provided)?;
        }
        let (parts, store, memory) = provided?;
        let window = Arc::new(Self {
            world,
            comm,
            flavor,
            parts: Parts::new(parts),
            unlike,
            goes_on,
            shares: flavor.allocates() && matches!(store, Store::Node(..)),
            store,
            own: memory,
            promise: programs.mapped,
            epochs: Epoch::default(),
            counted: Default::default(),
            far,
            seldom: Lazy::with(own.hints),
        });
        if window.far.is_some() {
            // Nobody operates on it before all hear of it.
            open(&window);
            members::meet(world, program)?;
        }
        Ok(window)
    }
}

fn to_usize(size: u64) -> Result<usize> {
    match isize::try_from(size) {
        Ok(size) => Ok(size as usize),
        Err(_) => too_large(),
    }
}

fn too_large<T>() -> Result<T> {
    fail!(
        abi::MPI_ERR_SIZE,
        argument("size"),
        "of all processes together is more than this machine can address"
    )
}

fn decode(bytes: &[u8]) -> [u64; SAID] {
    let mut words = bytes
        .chunks_exact(8)
        .map(|b| b.first_chunk().map_or(0, |b| u64::from_le_bytes(*b)));
    std::array::from_fn(|_| words.next().unwrap_or(0))
}

/// The same outcome for all.
fn agree(flavor: Flavor, said: &[[u64; SAID]]) -> Result<()> {
    for (rank, words) in said.iter().enumerate() {
        if words[0] != abi::MPI_SUCCESS as u64 {
            fail!(
                words[0] as i32,
                "rank {rank} has called {} with an argument that is wrong; its error handler got the message",
                flavor.function()
            );
        }
    }
    for (rank, words) in said.iter().enumerate() {
        let other = Flavor::ALL.into_iter().find(|other| other.value() as u64 == words[1]);
        if other != Some(flavor) {
            fail!(
                abi::MPI_ERR_WIN,
                "rank {rank} calls {}, this process {}",
                other.map_or("another function", Flavor::function),
                flavor.function()
            );
        }
    }
    Ok(())
}

/// Who has which part, and the bytes of all. Parts of shared memory follow each other without gaps unless all say that
/// they need not; those of other memory are apart, so that processes do not slow each other down.
fn lay_out(flavor: Flavor, said: &[[u64; SAID]]) -> Result<(Vec<Part>, usize)> {
    let apart = flavor == Flavor::Allocate || said.iter().all(|words| words[4] != 0);
    let alignment = said.iter().map(|words| words[5]).max().unwrap_or(1);
    let mut next = 0_u64;
    let mut parts = Vec::with_capacity(said.len());
    for &[_, _, size, unit, ..] in said {
        if !flavor.allocates() {
            // Where it is those of its node find in their words.
            parts.push(Part { size, unit, at: 0 });
            continue;
        }
        let start = if apart {
            next.checked_next_multiple_of(alignment)
        } else {
            Some(next)
        };
        let end = start.and_then(|start| start.checked_add(size));
        let (Some(at), Some(end)) = (start, end) else {
            return too_large();
        };
        parts.push(Part { size, unit, at });
        next = end;
    }
    Ok((parts, to_usize(next)?))
}

/// The words and the memory of a process's part, which the processes of its node make together.
fn provide(
    world: &World,
    (flavor, rank): (Flavor, u32),
    node: Option<&Comm>,
    (parts, bytes): (Vec<Part>, usize),
    own: &Own,
    programs: ProgramMemory<'_>,
) -> Result<(Vec<Part>, Store, WriteMemory)> {
    let part = parts[rank as usize];
    let size = to_usize(part.size)?;
    let given = own.wish.memory.clone().map_or(WriteMemory::EMPTY, WriteMemory::from);
    let (store, memory) = if let Some(node) = node {
        let say = |memory: &dyn SharedMemory| {
            if flavor == Flavor::Create {
                let brought = locks::brought(locks::line(memory.words(), parts.len(), rank));
                if let Some(location) = own.wish.location {
                    brought.piece.store(location.number, Ordering::Relaxed);
                    brought.skip.store(location.skip, Ordering::Relaxed);
                }
                brought.begins.store(given.address() as u64, Ordering::Release);
            }
        };
        let shared = share(world, node, locks::words(parts.len()), bytes, say)?;
        let memory = match flavor.allocates() {
            true => shared.memory(programs.mapped).shifted(part.at as isize),
            false => given,
        };
        (Store::Node(shared, parts.len()), memory)
    } else {
        let memory = match flavor.allocates() {
            true => (programs.allocate)(size, own.hints.alignment()?)?,
            false => given,
        };
        (Store::own(), memory)
    };
    Ok((parts, store, memory))
}

/// The same for a window over several nodes. Parts on other nodes are nowhere here: whatever makes one row of all is as
/// good as anything else.
fn lay_out_node(flavor: Flavor, said: &[[u64; SAID]], far: &Far) -> Result<(Vec<Part>, usize)> {
    let near: Vec<usize> = far.near().collect();
    let here: Vec<_> = near.iter().map(|&rank| said[rank]).collect();
    let (laid, bytes) = lay_out(flavor, &here)?;
    Ok((in_a_row(said, &near, &laid), bytes))
}

/// The parts of all, of which those of the processes `near` lie here.
fn in_a_row(said: &[[u64; SAID]], near: &[usize], laid: &[Part]) -> Vec<Part> {
    let first = near.first().map_or(0, |&rank| rank as u64);
    let (start, step) = match laid {
        [one, other, ..] => (one.at, other.at.wrapping_sub(one.at)),
        [one] => (one.at, 0),
        [] => (0, 0),
    };
    let row = (0..).zip(said).map(|(rank, &[_, _, size, unit, ..])| {
        let at = step.wrapping_mul(u64::wrapping_sub(rank, first)).wrapping_add(start);
        Part { size, unit, at }
    });
    let mut parts: Vec<Part> = row.collect();
    for (&rank, &part) in near.iter().zip(laid) {
        parts[rank] = part;
    }
    parts
}

/// Nodes have their memory apart: all have it or none.
fn agree_on_memory<T>(world: &World, comm: &Comm, mine: &Result<T>) -> Result<()> {
    let all = members::say(world, comm, &[u64::from(mine.is_ok())])?;
    let Some(failed) = all.iter().position(|said| said[0] == 0).filter(|_| mine.is_ok()) else {
        return Ok(());
    };
    fail!(
        abi::MPI_ERR_NO_MEM,
        "rank {failed} has no memory for its part; its error handler got the message"
    )
}

/// Memory for all members: the first makes it, the others open it, and it has no name any more when this returns. Then
/// all have called `say`, too.
fn share(
    world: &World,
    comm: &Comm,
    words: usize,
    bytes: usize,
    say: impl FnOnce(&dyn SharedMemory),
) -> Result<Arc<dyn SharedMemory>> {
    let nothing = || Err("no transport of this process has memory to share".to_owned());
    let mut mine: std::result::Result<Arc<dyn SharedMemory>, String> = nothing();
    let (mut number, mut why) = (0, String::new());
    if comm.rank() == 0 {
        let made = world
            .engine()
            .lock()
            .slabs()
            .sharing()
            .map(|sharing| sharing.make(words, bytes));
        match made {
            Some(Ok((made, memory))) => (number, mine) = (made, Ok(memory)),
            Some(Err(error)) => why = error,
            None => why.push_str("no transport of this process has memory to share"),
        }
    }
    let told = members::say(world, comm, &[number]);
    let number = told.as_ref().map_or(0, |told| told[0][0]);
    if comm.rank() != 0 && number != 0 {
        let opened = world
            .engine()
            .lock()
            .slabs()
            .sharing()
            .map(|sharing| sharing.open(number, words, bytes));
        mine = opened.unwrap_or_else(nothing);
    }
    if let Ok(memory) = &mine {
        say(&**memory);
    }
    let all = told.and_then(|_| members::say(world, comm, &[u64::from(mine.is_ok())]));
    if comm.rank() == 0 && number != 0 {
        if let Some(sharing) = world.engine().lock().slabs().sharing() {
            sharing.unname(number);
        }
    }
    let Some(failed) = all?.iter().position(|said| said[0] == 0) else {
        return mine.map_err(|why| Error::new(abi::MPI_ERR_NO_MEM, why));
    };
    if let (Err(error), true) = (&mine, why.is_empty()) {
        why.clone_from(error);
    }
    let why = members::tell(world, comm, failed as u32, &why)?;
    fail!(abi::MPI_ERR_NO_MEM, "rank {failed} cannot share memory: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(size: u64, apart: bool) -> [u64; SAID] {
        [0, 0, size, 1, u64::from(apart), 64]
    }

    #[test]
    fn equal_parts_take_three_numbers_however_many_processes_there_are_and_wherever_they_are() {
        const RANKS: usize = 64;
        let said = [said(8, true); RANKS];
        let (created, _) = lay_out(Flavor::Create, &said).expect("laid out");
        assert!(matches!(Parts::new(created), Parts::Equal(..)));
        for near in [0..RANKS / 2, RANKS / 2..RANKS, 5..6, 7..9] {
            let near: Vec<usize> = near.collect();
            let (laid, _) = lay_out(Flavor::Allocate, &said[..near.len()]).expect("laid out");
            let parts = Parts::new(in_a_row(&said, &near, &laid));
            assert!(matches!(parts, Parts::Equal(..)), "{near:?}");
            for (&rank, part) in near.iter().zip(&laid) {
                assert_eq!(parts.get(rank as u32), *part, "{near:?}");
            }
        }
        // Processes of a node that are not in a row.
        let (laid, _) = lay_out(Flavor::Allocate, &said[..3]).expect("laid out");
        let parts = Parts::new(in_a_row(&said, &[0, 2, 9], &laid));
        assert_eq!([0, 2, 9].map(|rank| parts.get(rank).at), [0, 64, 128]);
    }

    #[test]
    fn parts_follow_each_other_unless_all_say_otherwise() {
        let starts = |flavor, wishes: &[(u64, bool)]| {
            let said: Vec<_> = wishes.iter().map(|&(size, apart)| said(size, apart)).collect();
            let (parts, bytes) = lay_out(flavor, &said).expect("laid out");
            (parts.iter().map(|part| part.at).collect::<Vec<_>>(), bytes)
        };
        let mixed = [(3, true), (0, true), (5, false)];
        assert_eq!(starts(Flavor::Shared, &mixed), (vec![0, 3, 3], 8));
        let all = [(3, true), (0, true), (5, true)];
        assert_eq!(starts(Flavor::Shared, &all), (vec![0, 64, 64], 69));
        assert_eq!(starts(Flavor::Allocate, &mixed), (vec![0, 64, 64], 69));
        let huge = lay_out(
            Flavor::Allocate,
            &[said(u64::MAX / 2, false), said(u64::MAX / 2 + 9, false)],
        );
        assert_eq!(huge.map(|_| ()).map_err(|error| error.class), Err(abi::MPI_ERR_SIZE));
    }

    #[test]
    fn the_wrong_argument_of_one_is_an_error_of_all() {
        let good = [0, Flavor::Shared.value() as u64, 8, 1, 0, 64];
        let mut bad = good;
        bad[0] = abi::MPI_ERR_SIZE as u64;
        assert_eq!(agree(Flavor::Shared, &[good, good]), Ok(()));
        let error = agree(Flavor::Shared, &[good, bad]).expect_err("refused");
        assert_eq!(error.class, abi::MPI_ERR_SIZE);
        assert!(error.message.contains("rank 1"), "{error}");
        bad = good;
        bad[1] = Flavor::Create.value() as u64;
        let error = agree(Flavor::Shared, &[bad, good]).expect_err("refused");
        assert!(error.message.contains("rank 0 calls MPI_Win_create,"), "{error}");
    }
}
