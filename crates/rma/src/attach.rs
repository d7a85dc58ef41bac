// SPDX-License-Identifier: Apache-2.0
//! Memory that a process attaches to a dynamic window (MPI 5.0 section 12.2.4). Attaching is local: the process keeps a
//! table in its memory, and says in the words of the window where; whoever wants to know reads it there.

use std::sync::atomic::{Ordering, fence};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::raw::{UserMemory, WriteMemory};
use isthmus_engine::Reach;

use crate::error::unreached;
use crate::locks::Notice;
use crate::regions::{MOST, Table, covers};
use crate::wait;
use crate::window::{Flavor, Window, locked};

fn not_attached<T>(rank: u32, start: u64, end: u64) -> Result<T> {
    fail!(
        abi::MPI_ERR_RMA_RANGE,
        argument("target_disp"),
        "leads to the bytes {start:#x} to {end:#x} of rank {rank}, which has not attached all of them to the window"
    )
}

impl Window {
    /// MPI_Win_attach. Other processes of the node write to the memory by its address, as long as it is attached and
    /// longer, if the program makes that mistake; so it is no memory of the library:
    ///
    /// ```compile_fail,E0308
    /// # use isthmus_datatype::raw::OwnMemory;
    /// # use isthmus_rma::Window;
    /// fn attach(window: &Window) {
    ///     let own = OwnMemory::new(0, 8);
    ///     let _ = window.attach(own.memory(), 8);
    /// }
    /// ```
    pub fn attach(&self, memory: UserMemory, size: u64) -> Result<()> {
        check_dynamic(self)?;
        let memory = WriteMemory::from(memory);
        let mut own = locked(&self.seldom.attached.own);
        if own.count() >= MOST {
            fail!(
                abi::MPI_ERR_RMA_ATTACH,
                "a process can attach {MOST} pieces of memory to a window; detach some, or attach larger ones"
            );
        }
        if let Some((address, length)) = own.overlapping(memory.address() as u64, size) {
            fail!(
                abi::MPI_ERR_RMA_ATTACH,
                argument("base"),
                "is {:#x}, and {size} bytes from there on have some in common with the {length} bytes at {address:#x}, \
                 which this process has attached to the window already; detach them first",
                memory.address()
            );
        }
        own.insert(notice(self), memory.address() as u64, size, memory);
        Ok(())
    }

    /// MPI_Win_detach.
    pub fn detach(&self, address: usize) -> Result<()> {
        check_dynamic(self)?;
        let mut own = locked(&self.seldom.attached.own);
        if own.remove(notice(self), address as u64) {
            return Ok(());
        }
        fail!(
            abi::MPI_ERR_RMA_ATTACH,
            argument("base"),
            "is {address:#x}, where no memory begins that this process has attached to the window"
        )
    }
}

fn check_dynamic(window: &Window) -> Result<()> {
    if window.flavor == Flavor::Dynamic {
        return Ok(());
    }
    fail!(
        abi::MPI_ERR_RMA_FLAVOR,
        argument("win"),
        "was made by {}; memory is attached to windows of MPI_Win_create_dynamic only",
        window.flavor.function()
    )
}

fn notice(window: &Window) -> Notice<'_> {
    window.store.notice(window.comm.rank())
}

/// Attached memory of this process in which all of these bytes lie, with the first address as origin. Pieces that touch
/// each other are one.
pub(crate) fn own_region(window: &Window, start: u64, end: u64) -> Result<WriteMemory> {
    let own = locked(&window.seldom.attached.own);
    match own.covering(start, end) {
        Some(memory) => Ok(memory),
        None => not_attached(window.comm.rank(), start, end),
    }
}

/// Makes sure that another process has attached these bytes.
pub(crate) fn check_attached(window: &Window, rank: u32, reach: &dyn Reach, start: u64, end: u64) -> Result<()> {
    let notice = window.store.notice(rank);
    let mut known = locked(&window.seldom.attached.known);
    let version = notice.version.load(Ordering::Acquire);
    let up_to_date = known.get(&rank).filter(|(seen, _)| *seen == version);
    let table = match up_to_date {
        Some((_, table)) => table.clone(),
        None => {
            let (version, table) = read_table(window, notice, reach)?;
            known.insert(rank, (version, table.clone()));
            table
        }
    };
    if covers(&table, start, end) {
        return Ok(());
    }
    not_attached(rank, start, end)
}

fn read_table(window: &Window, notice: Notice<'_>, reach: &dyn Reach) -> Result<(u64, Table)> {
    wait::until(window.world, &window.comm, || {
        let before = notice.version.load(Ordering::Acquire);
        if before % 2 != 0 {
            return None;
        }
        let address = notice.address.load(Ordering::Relaxed);
        let length = notice.length.load(Ordering::Relaxed) as usize;
        let mut bytes = vec![0; 8 * length.min(2 * MOST)];
        let read = if bytes.is_empty() {
            Ok(())
        } else {
            reach.read(&[(address, bytes.len())], &mut bytes)
        };
        fence(Ordering::SeqCst);
        if notice.version.load(Ordering::Acquire) != before {
            return None;
        }
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|b| b.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b)))
            .collect();
        let table = words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        Some(read.map(|()| (before, table)).map_err(|error| unreached(&error)))
    })?
}
