// SPDX-License-Identifier: Apache-2.0
//! The same question for operations about which nothing is unusual: arguments without a mistake, data in one piece.
//! They go without call, binding and plan, which would cost more than everything else. What this cannot do (`None`)
//! takes the general way, whose answer is the same as far as others see.

use isthmus_datatype::raw::WriteMemory;
use isthmus_engine::{Collective, Element, Engine, Operator, Request, Short};
use isthmus_schedule::Operation;

use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::world::World;

/// An operation whose data lie in one piece.
pub struct Plain {
    /// What is done. A reduction without a reducer goes the general way.
    pub short: Short,
    /// Elements of reductions.
    pub count: u64,
    /// What a reduction computes, if a vendor MPI can.
    pub computes: Option<(Element, Operator)>,
    /// The buffer of a broadcast, at its root too.
    pub buffer: Option<WriteMemory>,
}

impl Comm {
    /// Whether it helps to know what a reduction [computes](Plain::computes).
    #[inline(always)]
    pub fn asks_what_is_computed(&self) -> bool {
        self.is_native()
    }

    /// No data move and nobody waits for anybody: the operation is counted, and takes its turn and its number among
    /// those of the group. (Who has data all the same does so, too.)
    pub(super) fn have_nothing_to_do(&self, world: &World, what: Operation) {
        self.next_sequence();
        let note = |engine: &mut Engine| {
            engine.core.called(world.operation(what));
            engine.turns(self.channel()).take(what);
        };
        match world.engine().briefly() {
            Some(mut engine) => note(&mut engine),
            None => note(&mut world.engine().lock()),
        }
    }
}

/// It is over here; others may count it among those with messages. `is_empty`: no member has any data, if all say the
/// same.
pub(super) fn leave_out(world: &World, comm: &Comm, what: Operation, is_empty: bool) {
    let operation = world.operation(what);
    let mut engine = world.engine().lock();
    engine.core.called(operation);
    let turns = engine.turns(comm.channel());
    turns.leave_out(what, (operation, comm.next_sequence()), is_empty);
}

/// Does a plain operation and waits for its end.
// An error in a box of its own: then what is returned fits into registers. Results in memory cost a short operation
// a tenth of its time.
#[inline(always)]
pub(super) fn run_plain(world: &World, comm: &Comm, plain: &Plain) -> Option<std::result::Result<(), Box<Error>>> {
    let short = &plain.short;
    if plain.is_empty() {
        comm.have_nothing_to_do(world, short.what);
        return Some(Ok(()));
    }
    if short.reduces() && comm.hints().is_fixed() {
        return None;
    }
    let shortcuts = comm.shortcuts(world);
    if shortcuts.memory() && plain.is_whole() {
        let operation = world.operation(short.what);
        let call = world.engine().group(comm.channel(), operation, comm.sequence());
        if let Some(done) = call.short(short) {
            comm.next_sequence();
            return Some(done.map_err(|error| Box::new((&error).into())));
        }
    }
    if !shortcuts.vendor() {
        return None;
    }
    let done = run_natively(world, comm, short.what, &plain.collective()?);
    Some(done.map_err(Box::new))
}

/// Begins a plain operation: its request, if it is not over. On a communicator of a vendor MPI it is an operation
/// of that.
#[inline]
pub(super) fn start_plain(world: &World, comm: &Comm, plain: &Plain) -> Option<Option<Request>> {
    let short = &plain.short;
    if plain.is_empty() {
        comm.have_nothing_to_do(world, short.what);
        return Some(None);
    }
    let may = comm.shortcuts(world).memory() && !comm.channel().special.is_any() && plain.is_whole();
    if !may || (short.reduces() && comm.hints().is_fixed()) {
        return None;
    }
    let (operation, sequence) = (world.operation(short.what), comm.sequence());
    let begun = world
        .engine()
        .group(comm.channel(), operation, sequence)
        .start_short(short)?;
    comm.next_sequence();
    Some(begun)
}

/// A blocking operation of the vendor MPI on a communicator that is one of it ([`Comm::blocks_natively`]).
#[inline]
pub(super) fn run_natively(
    world: &World,
    comm: &Comm,
    operation: Operation,
    collective: &Collective<'_>,
) -> Result<()> {
    let (operation, sequence) = (world.operation(operation), comm.next_sequence());
    let call = world.engine().group(comm.channel(), operation, sequence);
    call.collective(collective).map_err(|error| (&error).into())
}

impl Plain {
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.short.block == 0 && self.short.what != Operation::Barrier
    }

    /// Whether the library can do it alone.
    #[inline(always)]
    fn is_whole(&self) -> bool {
        self.short.reduces() == self.short.reducer.is_some()
    }

    /// As the vendor MPI is told it; `None`: not one of those that it is told so.
    #[inline(always)]
    fn collective(&self) -> Option<Collective<'_>> {
        let Short {
            what,
            root,
            block: bytes,
            ref give,
            ref take,
            ..
        } = self.short;
        let (from, root) = (give.clone(), root);
        Some(match what {
            Operation::Barrier => Collective::Barrier,
            Operation::Bcast => Collective::Bcast {
                memory: self.buffer.clone()?,
                bytes,
                root,
            },
            Operation::Allgather => Collective::Allgather {
                from,
                into: take.clone()?,
                bytes,
            },
            Operation::Alltoall => Collective::Alltoall {
                from,
                into: take.clone()?,
                bytes,
            },
            Operation::Allreduce => {
                let (element, operator) = self.computes?;
                Collective::Allreduce {
                    from,
                    into: take.clone()?,
                    count: self.count,
                    element,
                    operator,
                }
            }
            Operation::Reduce => {
                let (element, operator) = self.computes?;
                Collective::Reduce {
                    from,
                    into: take.clone(),
                    count: self.count,
                    element,
                    operator,
                    root,
                }
            }
            _ => return None,
        })
    }
}
