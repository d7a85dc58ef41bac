// SPDX-License-Identifier: Apache-2.0
//! Steps that processes of a job of a vendor MPI take together, in operations that span jobs: collective
//! operations of that MPI.
//!
//! They are started, not entered, since a process goes on with messages of other steps meanwhile. Its members start
//! them in the same order: each waits for the one before it, and the two directions have communicators of their own.
//!
//! One that was started cannot be left. If a plan fails while a step is under way here, it ends with that step, or,
//! where another member will never take that, with the job.

use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_schedule::Operation as What;
use isthmus_schedule::step::{Circle, Together};
use isthmus_transport::native::{General, UnequalBlocks};

use crate::base::binding::{Side, Sides};
use crate::base::requests::Outcome;
use crate::p2p::Core;
use crate::vendor::native_collective::{MOST, kind};
use crate::vendor::{Held, NativeStep, Vendor, vendor_error};
use crate::{Binding, BoundBuffer, Channel, EngineError, StepsBy};

/// The communicator of the vendor MPI for the steps of a direction.
pub(crate) fn underneath(channel: &Channel, circle: Circle) -> Option<u64> {
    let direction = match circle {
        Circle::All => return None,
        Circle::Up => 0,
        Circle::Down => 1,
    };
    match channel.node.as_ref()?.by {
        StepsBy::Native(comms) => Some(comms[direction]),
        StepsBy::Memory(_) => None,
    }
}

impl Binding {
    /// Whether a vendor MPI can take the steps of an operation whose blocks have so many units; all members find
    /// it alike.
    pub fn is_for_native_steps(&self, reduces: bool, units: u64) -> bool {
        !reduces || (self.computes().is_some() && units <= MOST)
    }
}

impl NativeStep {
    /// Puts the result where it belongs.
    pub(crate) fn finish(self) {
        if let (Some((buffer, at)), Some((outcome, length))) = (&self.take, &self.outcome) {
            outcome.reading().with(0, *length, |data| buffer.write(*at, data));
        }
    }
}

/// Memory to be read, and the copy that it is, if any: of data that do not lie in one piece, or that overlap those that
/// are written.
fn readable(
    (buffer, at): &Side,
    length: u64,
    written: Option<&WriteMemory>,
    room: u64,
) -> (ReadMemory, Option<OwnMemory>) {
    let apart = |memory: &ReadMemory| {
        written.is_none_or(|written| {
            let (from, to) = (memory.address(), written.address());
            from + length as usize <= to || to + room as usize <= from
        })
    };
    if let Some(memory) = buffer.readable(*at, length).filter(apart) {
        return (memory, None);
    }
    let between = copied(buffer, *at, length);
    (between.reading(), Some(between))
}

fn copied(buffer: &BoundBuffer, at: u64, length: u64) -> OwnMemory {
    let copy = OwnMemory::new(0, length as isize);
    copy.memory()
        .with_mut(0, length as usize, |bytes| buffer.read(at, bytes));
    copy
}

/// Memory to be written, and what has to be copied from there in the end.
fn writable((buffer, at): &Side, length: u64) -> (WriteMemory, Option<(OwnMemory, usize)>) {
    if let Some(memory) = buffer.whole(*at, length) {
        return (memory, None);
    }
    let outcome = OwnMemory::new(0, length as isize);
    (outcome.memory(), Some((outcome, length as usize)))
}

impl Vendor {
    /// Takes a step with the vendor MPI.
    pub(crate) fn take_step(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        comm: u64,
        step: &Together,
        sides: Sides,
    ) -> Result<Outcome, EngineError> {
        if let Some(error) = core.lost_of(&channel.members) {
            return Err(error);
        }
        let unknown = EngineError::Plan {
            what: "a step that a machine's own MPI cannot take",
        };
        let (Some(kind), Some(node)) = (kind(step.what), &channel.node) else {
            return Err(unknown);
        };
        let reduces = matches!(step.what, What::Reduce | What::Allreduce);
        if reduces && (sides.computes.is_none() || step.block > MOST) {
            return Err(unknown);
        }
        let bytes = |units: u64| units * sides.unit;
        let mut general = General {
            kind,
            root: step.root,
            rank: node.me,
            members: node.ranks.len() as u32,
            in_place: step.what == What::Scatter && node.me == step.root && sides.take.is_none(),
            from: None,
            into: None,
            count: if reduces { step.block } else { bytes(step.block) },
            reduction: sides.computes.filter(|_| reduces),
            given: UnequalBlocks::default(),
            taken: UnequalBlocks::default(),
        };
        let (mut between, mut outcome) = (None, None);
        if let Some(take) = &sides.take {
            let (memory, later) = writable(take, bytes(step.take.length));
            (general.into, outcome) = (Some(memory), later);
        }
        if let Some(give) = &sides.give {
            let length = bytes(step.give.length);
            if step.what == What::Bcast {
                // There data have one place, at the root too.
                let memory = give.0.whole(give.1, length);
                general.into = Some(memory.unwrap_or_else(|| between.insert(copied(&give.0, give.1, length)).memory()));
            } else {
                let (memory, copy) = readable(give, length, general.into.as_ref(), bytes(step.take.length));
                (general.from, between) = (Some(memory), copy);
            }
        }
        let request = self.get()?.start(comm, &general).map_err(vendor_error)?;
        let held = NativeStep {
            comm,
            _give: sides.give.map(|(buffer, _)| buffer),
            take: sides.take,
            _between: between,
            outcome,
        };
        Ok(Outcome::Started(self.wait_for(core, request, 0, Held::Step(held))))
    }
}
