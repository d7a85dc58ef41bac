// SPDX-License-Identifier: Apache-2.0
//! With what an operation computes.

use std::sync::OnceLock;

use isthmus_abi::PREDEFINED_HANDLES_END;
use isthmus_abi::handles as h;
use isthmus_core::collective::Prepared;
use isthmus_core::error::Result;
use isthmus_datatype::{Basic, Kind};
use isthmus_engine::{Arithmetic, Binding, BoundBuffer, Element, Operator};
use isthmus_schedule::{Blocks, Call};

use super::arguments::{Elements, Memory};
use super::membership::Membership;
use crate::c::{Source, Target};
use crate::check::distinct;
use crate::{datatype, op};

/// Handles of predefined operations are 32 to 63.
const PREDEFINED_OPERATIONS_END: usize = 64;

/// Contribution and result of a reduction.
#[derive(Clone, Copy)]
pub(super) struct Operands {
    pub(super) from: Source,
    pub(super) into: Target,
    pub(super) datatype: h::Datatype,
    pub(super) op: h::Op,
}

impl Operands {
    pub(super) fn send(&self, count: i64) -> Elements<Source> {
        self.elements(self.from, "sendbuf", count)
    }

    pub(super) fn receive(&self, count: i64) -> Elements<Target> {
        self.elements(self.into, "recvbuf", count)
    }

    /// What is computed, where nothing is wrong with it, if the library computes it of elements one behind the other.
    #[inline(always)]
    pub(super) fn arithmetic(&self) -> Option<Option<Arithmetic>> {
        let ty = datatype::known(self.datatype)?;
        let reduction = op::find(self.op, ty, self.datatype).ok()?;
        let dense = ty.size() as i64 == ty.extent() && ty.contiguous(1).is_some_and(|(at, _)| at == 0);
        let is_ours = dense && ty.size() > 0 && !reduction.calls_program;
        Some(is_ours.then(|| Arithmetic::new(reduction.reducer, ty.size())))
    }

    /// The same for all members that give the same predefined operation, another for each of them; 0: one of the
    /// program, which each member may have under another handle.
    #[inline(always)]
    pub(super) fn number(&self) -> u8 {
        let handle = self.op.0;
        if handle < PREDEFINED_OPERATIONS_END {
            handle as u8 & 0x1f
        } else {
            0
        }
    }

    fn elements<B: Memory>(&self, buffer: B, name: &'static str, count: i64) -> Elements<B> {
        Elements {
            names: [name, "count"],
            buffer,
            count,
            datatype: self.datatype,
        }
    }

    pub(super) fn prepare(
        &self,
        member: &Membership,
        mut call: Call,
        send: BoundBuffer,
        receive: BoundBuffer,
    ) -> Result<Prepared> {
        let ty = datatype::find(self.datatype)?;
        let reduction = op::find(self.op, ty, self.datatype)?;
        call.commutative = reduction.commutative;
        call.unit_bytes = member.bytes(ty, 1)?;
        member.bytes(ty, call.blocks.largest())?;
        if ty.size() == 0 {
            call.blocks = nothing_of(&call.blocks);
        }
        let binding = Binding::elements(send, receive, ty.clone(), reduction.reducer);
        let binding = binding.computing(computes(self)?).known_as(self.number());
        let binding = if reduction.calls_program {
            binding
        } else {
            binding.on_any_thread()
        };
        Ok(Prepared::new(call, binding))
    }

    /// A contribution of `give` elements in a buffer of its own, or found where the result comes.
    pub(super) fn gives_and_gets(&self, member: &Membership, mut call: Call, give: i64, get: i64) -> Result<Prepared> {
        let from = self.send(give);
        call.in_place = member.in_place("sendbuf", from.is_in_place())?;
        let receive = self.receive(if call.in_place { give } else { get });
        if !call.in_place {
            distinct(from.region(1)?, receive.region(1)?)?;
        }
        self.prepare(member, call, from.bind_unless_in_place(1)?, receive.bind(1)?)
    }
}

/// Blocks of elements without data: as if there were none.
fn nothing_of(blocks: &Blocks) -> Blocks {
    match blocks {
        Blocks::Known(sums) => Blocks::known(sums.iter().skip(1).map(|_| 0)),
        _ => Blocks::Equal(0),
    }
}

/// What a vendor MPI calls elements and operator of a reduction, if it has both.
#[inline(always)]
pub(super) fn computes(operands: &Operands) -> Result<Option<(Element, Operator)>> {
    let (Some(element), Some(operator)) = (element(operands.datatype)?, operator(operands.op)) else {
        return Ok(None);
    };
    let bits = matches!(operator, Operator::BitAnd | Operator::BitOr | Operator::BitXor);
    // Otherwise our own plan says what is wrong.
    let known = !bits || !matches!(element, Element::Float | Element::Double);
    Ok(known.then_some((element, operator)))
}

/// What a vendor MPI calls a datatype, if it is one that all have.
#[inline(always)]
fn element(datatype: h::Datatype) -> Result<Option<Element>> {
    static PREDEFINED: OnceLock<Box<[Option<Element>]>> = OnceLock::new();
    let of_handle = |handle| Some(named(Basic::from_handle(handle)?)).flatten();
    let all = PREDEFINED.get_or_init(|| (0..PREDEFINED_HANDLES_END as u32).map(of_handle).collect());
    match all.get(datatype.0) {
        Some(element) => Ok(*element),
        None => Ok(datatype::find(datatype)?.basic().and_then(named)),
    }
}

fn named(basic: Basic) -> Option<Element> {
    Some(match (basic.kind(), basic.size()) {
        (Kind::Signed, 1) => Element::Int8,
        (Kind::Signed, 2) => Element::Int16,
        (Kind::Signed, 4) => Element::Int32,
        (Kind::Signed, 8) => Element::Int64,
        (Kind::Unsigned, 1) => Element::Uint8,
        (Kind::Unsigned, 2) => Element::Uint16,
        (Kind::Unsigned, 4) => Element::Uint32,
        (Kind::Unsigned, 8) => Element::Uint64,
        (Kind::Floating, 4) => Element::Float,
        (Kind::Floating, 8) => Element::Double,
        _ => return None,
    })
}

/// What a vendor MPI calls an operator.
#[inline(always)]
fn operator(op: h::Op) -> Option<Operator> {
    Some(match op {
        h::MPI_SUM => Operator::Sum,
        h::MPI_PROD => Operator::Product,
        h::MPI_MIN => Operator::Minimum,
        h::MPI_MAX => Operator::Maximum,
        h::MPI_BAND => Operator::BitAnd,
        h::MPI_BOR => Operator::BitOr,
        h::MPI_BXOR => Operator::BitXor,
        _ => return None,
    })
}
