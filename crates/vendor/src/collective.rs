// SPDX-License-Identifier: Apache-2.0
//! Collective operations of an opened adaptor. Their memory is exposed during the call, or kept by the request.

use std::ffi::{c_int, c_longlong, c_void};

use isthmus_datatype::raw::{Exposed, OwnMemory, ReadMemory};
use isthmus_transport::native::{Collective, Element, General, Kind, Operator};

use crate::VendorError;
use crate::comm::Comm;
use crate::interface::RawOperation;
use crate::used::{Kept, Operands, Request};
use crate::vendor::Vendor;

impl Vendor {
    /// Whether all processes of the job say yes. Collective over it.
    pub fn all_agree(&self, yes: bool) -> Result<bool, VendorError> {
        let mine = OwnMemory::with(&i32::from(yes).to_ne_bytes());
        let all = OwnMemory::with(&[0; 4]);
        let minimum = Collective::Allreduce {
            from: Some(mine.reading()),
            into: all.memory(),
            count: 1,
            element: Element::Int32,
            operator: Operator::Minimum,
        };
        self.collective(&self.world(), &minimum)?;
        Ok(all.content() == 1i32.to_ne_bytes())
    }

    /// A collective operation.
    #[inline(always)]
    pub fn collective(&self, comm: &Comm, operation: &Collective<'_>) -> Result<(), VendorError> {
        let (name, code) = self.call(comm, operation);
        self.done(name, code)
    }

    /// The memory of an operation is exposed during the call.
    #[inline(always)]
    fn call(&self, comm: &Comm, operation: &Collective<'_>) -> (&'static str, c_int) {
        let (f, name) = (self.table.turn(), comm.name);
        match operation {
            Collective::General(general) => {
                let _used = Operands::of(general, comm);
                // SAFETY: the memory is as long as the description needs it, which `Operands` has checked.
                let code = unsafe { (f.collective)(name, &raw_operation(general)) };
                (self::name(general), code)
            }
            // SAFETY: no conditions; unknown names are errors.
            Collective::Barrier => ("synchronize", unsafe { (f.barrier)(name) }),
            Collective::Bcast { memory, bytes, root } => {
                let data = memory.exposed(0, *bytes as usize);
                // SAFETY: the memory is as long, which `exposed` has checked.
                let code = unsafe { (f.bcast)(name, data.first().cast(), *bytes as c_longlong, *root as c_int) };
                ("broadcast", code)
            }
            Collective::Reduce {
                from,
                into,
                count,
                element,
                operator,
                root,
            } => {
                let bytes = count * element.width();
                let (from, into) = (reads(from, bytes), into.as_ref().map(|m| m.exposed(0, bytes as usize)));
                assert!(into.is_some() || comm.rank != *root, "a result without memory");
                let result = into.as_ref().map_or(std::ptr::null_mut(), |m| m.first().cast());
                let (ty, op) = (*element as c_int, *operator as c_int);
                // SAFETY: as above; those who are not the root have no result.
                let code =
                    unsafe { (f.reduce)(name, data(&from), result, *count as c_longlong, ty, op, *root as c_int) };
                ("reduce", code)
            }
            Collective::Allreduce {
                from,
                into,
                count,
                element,
                operator,
            } => {
                let bytes = count * element.width();
                let (from, into) = (reads(from, bytes), into.exposed(0, bytes as usize));
                let (ty, op) = (*element as c_int, *operator as c_int);
                // SAFETY: as above.
                let code =
                    unsafe { (f.allreduce)(name, data(&from), into.first().cast(), *count as c_longlong, ty, op) };
                ("reduce for all", code)
            }
            Collective::Allgather { from, into, bytes } => {
                let (from, into) = (reads(from, *bytes), into.exposed(0, all(comm, *bytes)));
                // SAFETY: as above.
                let code = unsafe { (f.allgather)(name, data(&from), into.first().cast(), *bytes as c_longlong) };
                ("gather for all", code)
            }
            Collective::Alltoall { from, into, bytes } => {
                let all = all(comm, *bytes);
                let (from, into) = (reads(from, all as u64), into.exposed(0, all));
                // SAFETY: as above.
                let code = unsafe { (f.alltoall)(name, data(&from), into.first().cast(), *bytes as c_longlong) };
                ("exchange", code)
            }
        }
    }

    /// Starts a collective operation, whose memory the request keeps until it is complete.
    pub fn start_collective(&mut self, comm: &Comm, operation: &General) -> Result<Request, VendorError> {
        let mut request = 0;
        let kept = Kept::operation(Operands::of(operation, comm));
        // SAFETY: the memory is as long as the description needs it, which `Operands` has checked; it is kept as in
        // `start_send`, and so are the rows of the description.
        let code =
            unsafe { (self.table.turn().start_collective)(comm.name, &raw_operation(operation), &raw mut request) };
        self.done(name(operation), code)?;
        Ok(Request { name: request, kept })
    }
}

/// Exposes what is read, if it is not in place.
#[inline(always)]
fn reads(memory: &Option<ReadMemory>, bytes: u64) -> Option<Exposed<ReadMemory>> {
    memory.as_ref().map(|memory| memory.exposed(0, bytes as usize))
}

#[inline(always)]
fn data(memory: &Option<Exposed<ReadMemory>>) -> *const c_void {
    memory.as_ref().map_or(std::ptr::null(), |memory| memory.first().cast())
}

/// Bytes of the blocks of all members. Panics where there are not as many: that is a bug of ours.
#[inline(always)]
fn all(comm: &Comm, bytes: u64) -> usize {
    let all = bytes.checked_mul(comm.members.into()).filter(|_| comm.members > 0);
    all.and_then(|all| usize::try_from(all).ok())
        .expect("blocks of no communicator, or beyond all memory")
}

/// For the text of errors.
fn name(operation: &General) -> &'static str {
    match operation.kind {
        Kind::Barrier => "synchronize",
        Kind::Bcast => "broadcast",
        Kind::Gather | Kind::Gatherv => "gather",
        Kind::Scatter | Kind::Scatterv => "scatter",
        Kind::Allgather | Kind::Allgatherv => "gather for all",
        Kind::Alltoall | Kind::Alltoallv => "exchange",
        Kind::Reduce => "reduce",
        Kind::Allreduce => "reduce for all",
        Kind::Scan | Kind::Exscan => "scan",
        Kind::ReduceScatterBlock | Kind::ReduceScatter => "reduce and scatter",
    }
}

fn raw_operation(operation: &General) -> RawOperation {
    let row = |row: &[i64]| if row.is_empty() { std::ptr::null() } else { row.as_ptr() };
    RawOperation {
        kind: operation.kind as c_int,
        root: operation.root as c_int,
        element: operation.reduction.map_or(0, |(element, _)| element as c_int),
        operator: operation.reduction.map_or(0, |(_, operator)| operator as c_int),
        in_place: operation.in_place.into(),
        rank: operation.rank as c_int,
        members: operation.members as c_int,
        data: operation
            .from
            .as_ref()
            .map_or(std::ptr::null(), |m| m.address() as *const c_void),
        result: operation
            .into
            .as_ref()
            .map_or(std::ptr::null_mut(), |m| m.address() as *mut c_void),
        count: operation.count as c_longlong,
        given: row(&operation.given.sizes),
        given_at: row(&operation.given.places),
        taken: row(&operation.taken.sizes),
        taken_at: row(&operation.taken.places),
    }
}
