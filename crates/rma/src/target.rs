// SPDX-License-Identifier: Apache-2.0
//! Where an operation goes: which memory of which process, and whether it may.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::raw::WriteMemory;
use isthmus_engine::Reach;

use crate::attach::{check_attached, own_region};
use crate::data::{TargetData, When};
use crate::error::unreached;
use crate::pscw::await_post;
use crate::shareable::Mapping;
use crate::spot::{Spot, Target};
use crate::window::{Flavor, Window, form_of, locked};

/// Where an operation goes; `None`: to MPI_PROC_NULL. It is part of an epoch from now on.
pub(crate) fn find(window: &Window, place: &TargetData<'_>, when: When) -> Result<Option<Target>> {
    let Some(rank) = window.target("target_rank", place.rank)? else {
        return Ok(None);
    };
    let passive = when == When::Locked;
    let waits = !window.epochs.allow(rank, passive) && window.epochs.lock().operate(rank, passive)?;
    let (low, high) = place.datatype.window(place.count)?;
    let (low, high) = (low as i64, high as i64);
    let offset = offset(window, rank, place.disp)?;
    let (start, end) = (offset.checked_add(low), offset.checked_add(high));
    let (Some(start), Some(end)) = (start, end) else {
        return outside(window, place, rank, i128::from(offset) + i128::from(low));
    };
    if waits {
        await_post(window, rank)?;
    }
    let spot = if window.flavor == Flavor::Dynamic && window.is_far(rank) {
        Spot::Far(offset)
    } else if window.flavor == Flavor::Dynamic {
        dynamic(window, rank, offset, start as u64, end as u64)?
    } else {
        let size = i64::try_from(window.parts.get(rank).size).unwrap_or(i64::MAX);
        // Elements may have other sizes at a process that represents data differently: it looks itself.
        let known = form_of(window, rank).is_none();
        if known && high > low && (start < 0 || end > size) {
            return outside(window, place, rank, start.into());
        }
        match high > low {
            true => spot(window, rank, offset)?,
            // Nobody looks where nothing lies.
            false => Spot::Here(WriteMemory::EMPTY),
        }
    };
    Ok(Some(Target {
        rank,
        spot,
        start: start as u64,
        end: end as u64,
    }))
}

/// Bytes from the beginning of a process's part, or an address.
fn offset(window: &Window, rank: u32, disp: i64) -> Result<i64> {
    if window.flavor == Flavor::Dynamic {
        return Ok(disp);
    }
    if disp < 0 {
        fail!(
            abi::MPI_ERR_DISP,
            argument("target_disp"),
            "is {disp}, a displacement must not be negative"
        );
    }
    let unit = i64::try_from(window.parts.get(rank).unit).ok();
    match unit.and_then(|unit| disp.checked_mul(unit)) {
        Some(offset) => Ok(offset),
        None => fail!(
            abi::MPI_ERR_RMA_RANGE,
            argument("target_disp"),
            "is {disp}, which leads beyond all memory"
        ),
    }
}

#[cold]
fn outside<T>(window: &Window, place: &TargetData<'_>, rank: u32, first: i128) -> Result<T> {
    let part = window.parts.get(rank);
    fail!(
        abi::MPI_ERR_RMA_RANGE,
        argument("target_disp"),
        "is {}, and with target_count {} and the datatype the operation reaches {} bytes from byte {first} on; the \
         window has {} bytes at rank {rank}, with displacements of {} bytes",
        place.disp,
        place.count,
        place.datatype.window(place.count).map_or(0, |(low, high)| high - low),
        part.size,
        part.unit
    )
}

/// Where the part of a process on this node begins, seen from that of this one, if both are mapped here.
#[inline]
fn mapped(window: &Window, rank: u32) -> Option<isize> {
    let there = window.parts.get(rank).at.wrapping_sub(window.part().at) as isize;
    (window.shares && !window.is_far(rank)).then_some(there)
}

/// The place `offset` bytes behind the beginning of a process's part.
fn spot(window: &Window, rank: u32, offset: i64) -> Result<Spot> {
    if window.is_far(rank) {
        return Ok(Spot::Far(offset));
    }
    if let Some(there) = mapped(window, rank) {
        return Ok(Spot::Here(window.own.shifted(there + offset as isize)));
    }
    if rank == window.comm.rank() {
        return Ok(Spot::Here(window.own.shifted(offset as isize)));
    }
    if let Some(memory) = brought(window, rank) {
        return Ok(Spot::Here(memory.shifted(offset as isize)));
    }
    let begins = window.store.brought(rank).begins.load(Ordering::Acquire);
    Ok(Spot::There(reach(window, rank)?, begins.wrapping_add_signed(offset)))
}

/// Operations on a part that are copied before it is mapped, which takes as long as some copies.
const FIRST: u32 = 8;

/// The part of another process of this node, if it has brought memory that can be mapped here, and is worth that.
fn brought(window: &Window, rank: u32) -> Option<WriteMemory> {
    match locked(&window.seldom.mapped).entry(rank).or_insert(Mapping::Used(0)) {
        Mapping::Mapped { memory, .. } => return Some(memory.clone()),
        Mapping::Apart => return None,
        Mapping::Used(FIRST) => {}
        Mapping::Used(times) => {
            *times += 1;
            return None;
        }
    }
    let brought = window.store.brought(rank);
    let (number, skip) = (
        brought.piece.load(Ordering::Acquire),
        brought.skip.load(Ordering::Acquire),
    );
    let bytes = usize::try_from(window.parts.get(rank).size).ok();
    let bytes = bytes.filter(|&bytes| number != 0 && bytes > 0);
    let opened = bytes.and_then(|bytes| {
        let mut engine = window.world.engine().lock();
        engine.slabs().sharing()?.open_part(number, skip, bytes).ok()
    });
    let known = opened.map_or(Mapping::Apart, |piece| Mapping::Mapped {
        memory: piece.memory(window.promise),
        _piece: piece,
    });
    // Another thread may operate on what it has mapped.
    let mut mapped = locked(&window.seldom.mapped);
    let entry = mapped.entry(rank).or_insert(Mapping::Apart);
    if !matches!(entry, Mapping::Mapped { .. }) {
        *entry = known;
    }
    match entry {
        Mapping::Mapped { memory, .. } => Some(memory.clone()),
        _ => None,
    }
}

/// The part of a process of this node, from a byte of it on, if operations have found it mapped here; these bytes of it
/// must be there.
#[inline]
pub(crate) fn at_hand(window: &Window, rank: u32, start: u64, length: u64) -> Option<WriteMemory> {
    let (from, length) = (start as isize, length as usize);
    if let Some(there) = mapped(window, rank) {
        return Some(window.own.part(there + from, length));
    }
    if rank == window.comm.rank() {
        return (!window.is_far(rank)).then(|| window.own.part(from, length));
    }
    let known = locked(&window.seldom.made()?.mapped);
    match known.get(&rank)? {
        Mapping::Mapped { memory, .. } => Some(memory.part(from, length)),
        _ => None,
    }
}

fn dynamic(window: &Window, rank: u32, address: i64, start: u64, end: u64) -> Result<Spot> {
    if start == end {
        return Ok(Spot::Here(WriteMemory::EMPTY));
    }
    if rank == window.comm.rank() {
        let memory = own_region(window, start, end)?;
        return Ok(Spot::Here(
            memory.shifted((address as u64).wrapping_sub(start) as isize),
        ));
    }
    let reach = reach(window, rank)?;
    check_attached(window, rank, &*reach, start, end)?;
    Ok(Spot::There(reach, address as u64))
}

/// The memory of another process.
fn reach(window: &Window, rank: u32) -> Result<Arc<dyn Reach>> {
    if let Some(reach) = locked(&window.seldom.reaches).get(&rank) {
        return Ok(reach.clone());
    }
    let peer = window.comm.channel().members.peer(rank);
    let found = window
        .world
        .engine()
        .lock()
        .slabs()
        .sharing()
        .map(|sharing| sharing.reach(peer));
    match found {
        Some(Ok(reach)) => Ok(locked(&window.seldom.reaches).entry(rank).or_insert(reach).clone()),
        Some(Err(error)) => Err(unreached(&error)),
        None => fail!(
            abi::MPI_ERR_UNSUPPORTED_OPERATION,
            "no transport of this process reaches memory of rank {rank}"
        ),
    }
}
