// SPDX-License-Identifier: Apache-2.0
//! Collective operations of a vendor MPI ([`crate::vendor::native`]).
//!
//! One that blocks does so there, and this process makes no other progress before it returns. So a process on which
//! others may wait (it has sent or received something that is not over) stays outside until all members have come. One
//! that is started is a request of that MPI, which moves it whenever it is called. A process starts and enters the
//! operations of a communicator in the order of the program's calls: while it stays outside of one the program calls no
//! other.

use std::fmt;
use std::sync::Arc;

use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_schedule::{self as schedule, Call};
use isthmus_transport::native::{Collective, General, Kind, UnequalBlocks};

use crate::base::binding::Blocks;
use crate::p2p::Core;
use crate::vendor::{Held, NativeOperation, Running, Vendor, vendor_error};
use crate::{Binding, BoundBuffer, Channel, EngineError, Operation, Request};

impl fmt::Debug for NativeOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.general.fmt(f)
    }
}

/// The largest number of elements, or of bytes that members have together: all functions of any MPI take as much.
pub(crate) const MOST: u64 = i32::MAX as u64;

pub(crate) fn kind(operation: schedule::Operation) -> Option<Kind> {
    use schedule::Operation as Of;
    Some(match operation {
        Of::Barrier => Kind::Barrier,
        Of::Bcast => Kind::Bcast,
        Of::Gather => Kind::Gather,
        Of::Scatter => Kind::Scatter,
        Of::Allgather => Kind::Allgather,
        Of::Alltoall => Kind::Alltoall,
        Of::Reduce => Kind::Reduce,
        Of::Allreduce => Kind::Allreduce,
        Of::Scan => Kind::Scan,
        Of::Exscan => Kind::Exscan,
        Of::ReduceScatterBlock => Kind::ReduceScatterBlock,
        Of::ReduceScatter => Kind::ReduceScatter,
        Of::Gatherv => Kind::Gatherv,
        Of::Scatterv => Kind::Scatterv,
        Of::Allgatherv => Kind::Allgatherv,
        // Blocks are bytes, whatever their datatypes.
        Of::Alltoallv | Of::Alltoallw => Kind::Alltoallv,
        _ => return None,
    })
}

/// Whether it is not too large, as far as all members know: they must agree on it.
fn fits(kind: Kind, call: &Call, members: u32) -> bool {
    match kind {
        Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Exscan => call.blocks.size(0) <= MOST,
        Kind::ReduceScatterBlock => call.blocks.size(0).saturating_mul(members.into()) <= MOST,
        Kind::ReduceScatter | Kind::Allgatherv => call.blocks.offset(members) <= MOST,
        // Sizes of equal blocks are known to all; how large unequal ones are together nobody knows, and the functions
        // take any.
        _ => true,
    }
}

impl NativeOperation {
    /// `None`: it is not one for the other MPI, which all members find alike.
    pub fn new(call: &Call, binding: &Binding, (rank, members): (u32, u32)) -> Option<Self> {
        let (kind, reduction) = (kind(call.operation)?, binding.computes());
        let reduces = matches!(
            kind,
            Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Exscan | Kind::ReduceScatterBlock | Kind::ReduceScatter
        );
        if !fits(kind, call, members) || (reduces && reduction.is_none()) {
            return None;
        }
        // Other MPIs do not survive all of these in place: MPICH copies what overlaps in a reduce_scatter of unequal
        // blocks, and at the root of a reduce. All members of the others are in place, and so all of them give a copy.
        let copies = call.in_place
            && matches!(
                kind,
                Kind::Alltoall | Kind::Alltoallv | Kind::Reduce | Kind::ReduceScatterBlock | Kind::ReduceScatter
            );
        let count = match kind {
            Kind::Gatherv | Kind::Scatterv | Kind::Allgatherv => call.blocks.size(rank),
            Kind::Barrier | Kind::Alltoallv | Kind::ReduceScatter => 0,
            _ => call.blocks.size(0),
        };
        let general = General {
            kind,
            root: call.root,
            rank,
            members,
            in_place: call.in_place && !copies,
            from: None,
            into: None,
            count,
            reduction: reduction.filter(|_| reduces),
            given: UnequalBlocks::default(),
            taken: UnequalBlocks::default(),
        };
        let mut this = Self {
            general,
            binding: binding.clone(),
            outcome: None,
        };
        this.bind_what_is_read(if copies { &binding.receive } else { &binding.send }, copies);
        let sends = kind == Kind::Bcast && rank == call.root;
        this.bind_what_is_written(&binding.receive, call.in_place || sends);
        if kind == Kind::ReduceScatter {
            let sizes = (0..members).map(|member| call.blocks.size(member) as i64);
            this.general.taken.sizes = sizes.collect();
        }
        let width = reduction.map_or(1, |(element, _)| element.width());
        if sends {
            this.outcome_ends_at(0);
        } else if reduces && call.in_place {
            let own = match kind {
                Kind::ReduceScatter => call.blocks.size(rank),
                _ => count,
            };
            this.outcome_ends_at(own * width);
        } else if kind == Kind::Exscan && rank == 0 {
            // It has no result, but not every MPI expects that it has no memory for one.
            let nothing = OwnMemory::new(0, (count * width) as isize);
            this.general.into = Some(nothing.memory());
            this.outcome = Some((nothing, 0));
        }
        Some(this)
    }

    /// Does it with this, and puts the result where it belongs.
    pub fn run<E>(&self, operate: impl FnOnce(&Collective<'_>) -> Result<(), E>) -> Result<(), E> {
        operate(&Collective::General(&self.general))?;
        self.finish();
        Ok(())
    }

    fn bind_what_is_read(&mut self, buffer: &BoundBuffer, copies: bool) {
        let row = row(buffer);
        let (from, places) = match where_it_lies(buffer, &row, self.general.kind).filter(|_| !copies) {
            Some((memory, _, places)) => (memory, places),
            None => (copy_of(buffer).reading(), starts(buffer)),
        };
        if !matches!(buffer.blocks, Blocks::None) {
            self.general.from = Some(from);
        }
        self.general.given = UnequalBlocks { sizes: row, places };
    }

    /// `keep`: what is there is read too.
    fn bind_what_is_written(&mut self, buffer: &BoundBuffer, keep: bool) {
        let row = row(buffer);
        let (into, places) = match where_it_lies(buffer, &row, self.general.kind) {
            Some((_, memory, places)) => (memory, places),
            None => {
                let outcome = if keep {
                    copy_of(buffer)
                } else {
                    OwnMemory::new(0, buffer.length() as isize)
                };
                let memory = outcome.memory();
                self.outcome = Some((outcome, buffer.length()));
                (memory, starts(buffer))
            }
        };
        if !matches!(buffer.blocks, Blocks::None) {
            self.general.into = Some(into);
        }
        self.general.taken = UnequalBlocks { sizes: row, places };
    }

    /// No more than so many bytes are the result.
    fn outcome_ends_at(&mut self, bytes: u64) {
        if let Some((_, length)) = &mut self.outcome {
            *length = bytes.min(*length);
        }
    }

    /// Puts the result where it belongs.
    fn finish(&self) {
        if let Some((outcome, length)) = &self.outcome {
            let put = |data: &[u8]| self.binding.receive.write(0, data);
            outcome.reading().with(0, *length as usize, put);
        }
    }
}

fn copy_of(buffer: &BoundBuffer) -> OwnMemory {
    let length = buffer.length();
    let copy = OwnMemory::new(0, length as isize);
    copy.memory()
        .with_mut(0, length as usize, |bytes| buffer.read(0, bytes));
    copy
}

/// Sizes of unequal blocks.
fn row(buffer: &BoundBuffer) -> Arc<[i64]> {
    match &buffer.blocks {
        Blocks::Many(blocks) => blocks.iter().map(|(_, block)| block.length as i64).collect(),
        Blocks::None | Blocks::One(_) => Arc::default(),
    }
}

/// Where they lie in a copy.
fn starts(buffer: &BoundBuffer) -> Arc<[i64]> {
    match &buffer.blocks {
        Blocks::Many(blocks) => blocks.iter().map(|(start, _)| *start as i64).collect(),
        Blocks::None | Blocks::One(_) => Arc::default(),
    }
}

/// The memory of a buffer and the places of its blocks in it; `None`: some of its data do not lie one behind the other,
/// or blocks too far apart, or several in memory of the library, which is given to the other MPI as one piece or not.
fn where_it_lies(buffer: &BoundBuffer, row: &[i64], kind: Kind) -> Option<(ReadMemory, WriteMemory, Arc<[i64]>)> {
    let blocks = match &buffer.blocks {
        Blocks::None => return Some((ReadMemory::EMPTY, WriteMemory::EMPTY, Arc::default())),
        Blocks::One(block) => {
            let plain = block.datatype.is_none();
            return plain.then(|| {
                (
                    block.read.clone(),
                    block.write.clone().unwrap_or(WriteMemory::EMPTY),
                    Arc::default(),
                )
            });
        }
        Blocks::Many(blocks) => blocks,
    };
    let Some((_, first)) = blocks.iter().find(|(_, block)| block.length > 0) else {
        return Some((ReadMemory::EMPTY, WriteMemory::EMPTY, vec![0; row.len()].into()));
    };
    if !first.read.is_of_user() {
        return None;
    }
    let place = |block: &crate::Block| {
        if block.length == 0 {
            return Some(0);
        }
        let place = (block.read.address() as i64).wrapping_sub(first.read.address() as i64);
        let near = kind != Kind::Allgatherv || i32::try_from(place).is_ok();
        (block.datatype.is_none() && near).then_some(place)
    };
    let places: Option<Arc<[i64]>> = blocks.iter().map(|(_, block)| place(block)).collect();
    Some((
        first.read.clone(),
        first.write.clone().unwrap_or(WriteMemory::EMPTY),
        places?,
    ))
}

impl Vendor {
    /// Starts a collective operation of the other MPI.
    pub(crate) fn start(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        native: NativeOperation,
    ) -> Request {
        core.state.tools_mut().called(operation);
        core.state
            .tools_mut()
            .plan_begins(channel.context.number(), operation, sequence);
        let native = Box::new(native);
        let started = match self.get() {
            Ok(other) => other
                .start(channel.special.name(), &native.general)
                .map_err(vendor_error),
            Err(error) => Err(error),
        };
        let index = match started {
            Ok(request) => {
                let running = Running {
                    comm: channel.special.name(),
                    context: channel.context.number(),
                    operation,
                    sequence,
                    native,
                };
                self.wait_for(core, request, 0, Held::Collective(running))
            }
            Err(error) => {
                core.state
                    .tools_mut()
                    .plan_ends(channel.context.number(), operation, sequence);
                core.failed(error)
            }
        };
        core.state.requests().name(index)
    }

    /// One that was started is over.
    pub(crate) fn over(&self, core: &mut Core, running: Running) {
        running.native.finish();
        core.state
            .tools_mut()
            .plan_ends(running.context, running.operation, running.sequence);
    }

    /// A blocking collective operation has begun here. `None`: it must not be entered yet ([`Engine::may_enter`]).
    #[inline]
    pub(crate) fn come(
        &mut self,
        core: &Core,
        comm: u64,
        operation: &Collective<'_>,
    ) -> Option<Result<(), EngineError>> {
        let waited_for = self.is_waited_for(core);
        let native = match self.get() {
            Ok(native) => native,
            Err(error) => return Some(Err(error)),
        };
        if waited_for {
            native.come(comm);
            return None;
        }
        Some(native.come_and_do(comm, operation).map_err(vendor_error))
    }

    pub(crate) fn may_enter(&self, core: &Core, comm: u64) -> bool {
        !self.is_waited_for(core) || self.native.as_ref().is_none_or(|n| n.have_all_come(comm))
    }

    #[inline]
    pub(crate) fn enter(&mut self, comm: u64, operation: &Collective<'_>) -> Result<(), EngineError> {
        self.get()?.collective(comm, operation).map_err(vendor_error)
    }
}
