// SPDX-License-Identifier: Apache-2.0
//! Operations that compute. Units are elements of the datatype.

use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_core::collective::start;
use isthmus_core::error::Result;
use isthmus_engine::{Binding, BoundBuffer, Request};
use isthmus_schedule::{Blocks, Call, Operation};

use super::{Elements, Number, Place};
use crate::c::{In, Source, Target, count};
use crate::{datatype, op};

/// Contribution and result of a reduction.
#[derive(Clone, Copy)]
pub(super) struct Operands {
    pub(super) from: Source,
    pub(super) into: Target,
    pub(super) datatype: h::Datatype,
    pub(super) op: h::Op,
}

impl Operands {
    fn send(&self, count: i64) -> Elements<Source> {
        Elements {
            buffer: self.from,
            count,
            datatype: self.datatype,
        }
    }

    fn receive(&self, count: i64) -> Elements<Target> {
        Elements {
            buffer: self.into,
            count,
            datatype: self.datatype,
        }
    }

    fn launch(&self, place: &Place, mut call: Call, send: BoundBuffer, receive: BoundBuffer) -> Result<Request> {
        let ty = datatype::find(self.datatype)?;
        let reduction = op::find(self.op, ty, self.datatype)?;
        call.commutative = reduction.commutative;
        call.unit_bytes = ty.size();
        let binding = Binding::elements(send, receive, ty.clone(), reduction.reducer);
        let binding = if reduction.calls_program {
            binding
        } else {
            binding.on_any_thread()
        };
        Ok(start(place.world, place.comm, &call, binding))
    }
}

/// Allreduce, scan, exscan: everybody gives and gets `n` elements.
pub(super) fn symmetric(place: &Place, operation: Operation, operands: Operands, n: i64) -> Result<Request> {
    let mut call = Call::new(operation, count("count", n)?);
    let from = operands.send(n);
    call.in_place = from.is_in_place();
    let send = if call.in_place {
        BoundBuffer::none()
    } else {
        from.reading(1)?
    };
    operands.launch(place, call, send, operands.receive(n).writing(1)?)
}

pub(super) fn reduce(place: &Place, operands: Operands, n: i64, root: c_int) -> Result<Request> {
    let root = place.root(root)?;
    let at_root = root == place.comm.rank();
    let from = operands.send(n);
    let mut call = Call::new(Operation::Reduce, count("count", n)?);
    (call.root, call.in_place) = (root, at_root && from.is_in_place());
    let send = if call.in_place {
        BoundBuffer::none()
    } else {
        from.reading(1)?
    };
    let receive = if at_root {
        operands.receive(n).writing(1)?
    } else {
        BoundBuffer::none()
    };
    operands.launch(place, call, send, receive)
}

pub(super) fn reduce_scatter_block(place: &Place, operands: Operands, n: i64) -> Result<Request> {
    let mut call = Call::new(Operation::ReduceScatterBlock, count("recvcount", n)?);
    let from = operands.send(n);
    call.in_place = from.is_in_place();
    if call.in_place {
        let receive = operands.receive(n).writing(place.size())?;
        return operands.launch(place, call, BoundBuffer::none(), receive);
    }
    operands.launch(
        place,
        call,
        from.reading(place.size())?,
        operands.receive(n).writing(1)?,
    )
}

pub(super) fn reduce_scatter<C: Number>(place: &Place, operands: Operands, counts: In<C>) -> Result<Request> {
    let counts = counts.slice("recvcounts", place.size())?;
    let sizes = counts
        .iter()
        .map(|c| count("recvcounts", c.wide()))
        .collect::<Result<Vec<u64>>>()?;
    let (own, all) = (sizes[place.rank()] as i64, sizes.iter().sum::<u64>() as i64);
    let mut call = Call::new(Operation::ReduceScatter, 0);
    call.blocks = Blocks::known(sizes);
    call.in_place = operands.send(all).is_in_place();
    if call.in_place {
        let receive = operands.receive(all).writing(1)?;
        return operands.launch(place, call, BoundBuffer::none(), receive);
    }
    operands.launch(
        place,
        call,
        operands.send(all).reading(1)?,
        operands.receive(own).writing(1)?,
    )
}
