// SPDX-License-Identifier: Apache-2.0
//! Collective operations: how each of them goes is decided here, and nowhere else.
//!
//! [`perform`] is the one door. Whoever comes says what is asked for, and twice if possible: as a [`Plain`] operation,
//! where nothing is unusual, and as a [`Prepared`] one, which knows all cases and names what is wrong with arguments.
//!
//! * `way`: the decision for prepared operations: done already, shared memory, the vendor MPI, a plan;
//! * `quick`: the same decision for plain ones;
//! * `unequal`: operations of blocks that may differ in length, where members share memory;
//! * `along`: operations along a topology whose messages leave and come at once;
//! * `persistent`: operations that are started again and again.

use isthmus_engine::{Pieces, Unequal};
use isthmus_schedule::Operation;

use crate::comm::{Comm, usable};
use crate::error::Result;
use crate::world::World;

mod along;
mod both;
mod persistent;
mod prepared;
mod quick;
mod unequal;
mod way;

pub use along::{PlainAlong, perform_along};
pub use persistent::Persistent;
pub use prepared::{Form, Performed, Prepared};
pub use quick::Plain;
pub use unequal::PlainUnequal;

/// Does or starts an operation; collective. `plain` gives it where nothing is unusual, `general` always, or says what
/// is wrong with it. Of a persistent one only the latter is asked.
// (What is plain stays where it was made: it is large.)
#[inline(always)]
pub fn perform(
    world: &World,
    comm: &Comm,
    form: Form,
    plain: impl FnOnce() -> Option<Plain>,
    general: impl FnOnce() -> Result<Prepared>,
) -> Result<Performed> {
    if form != Form::Persistent && comm.has_shortcuts(world) {
        let plain = plain();
        if form == Form::Blocking {
            if let Some(done) = plain.as_ref().and_then(|plain| quick::run_plain(world, comm, plain)) {
                return done.map(|()| Performed::Done).map_err(|error| *error);
            }
        } else if let Some(begun) = plain.as_ref().and_then(|plain| quick::start_plain(world, comm, plain)) {
            return Ok(Performed::of(begun));
        }
    }
    in_general(world, comm, form, general()?)
}

/// The same for an operation of blocks that may differ in length.
#[inline]
pub fn perform_unequal<P: Pieces>(
    world: &World,
    comm: &Comm,
    form: Form,
    plain: impl FnOnce() -> Option<PlainUnequal<P>>,
    general: impl FnOnce() -> Result<Prepared>,
) -> Result<Performed> {
    if form != Form::Persistent && comm.has_cells(world) {
        let plain = plain();
        if let Some(performed) = plain.as_ref().and_then(|plain| comm.perform_plain(world, form, plain)) {
            return performed;
        }
    }
    in_general(world, comm, form, general()?)
}

/// Ends an operation of no data, as all members know: it waits for nobody. `None`: how others count it is to be found
/// out.
#[inline(always)]
pub fn perform_nothing(world: &World, comm: &Comm, form: Form, what: Operation) -> Option<Performed> {
    if form == Form::Persistent || !comm.has_shortcuts(world) {
        return None;
    }
    comm.have_nothing_to_do(world, what);
    Some(Performed::Done)
}

/// The same for an operation of blocks that may differ in length, of which this process has none.
pub fn perform_passing(world: &World, comm: &Comm, form: Form, step: Unequal) -> Option<Result<Performed>> {
    if form == Form::Persistent || !comm.has_cells(world) {
        return None;
    }
    comm.perform_empty(world, form, step)
}

#[inline(never)]
fn in_general(world: &World, comm: &Comm, form: Form, prepared: Prepared) -> Result<Performed> {
    usable(comm)?;
    let planned = prepared.on(comm);
    Ok(match form {
        Form::Blocking => {
            planned.run(world, comm)?;
            Performed::Done
        }
        Form::Nonblocking => Performed::of(planned.start(world, comm)?),
        Form::Persistent => Performed::Prepared(Prepared(Box::new(planned))),
    })
}
