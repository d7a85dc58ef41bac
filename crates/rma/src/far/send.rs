// SPDX-License-Identifier: Apache-2.0
//! Operations on processes on other nodes, on their way there.

use isthmus_core::error::Result;
use isthmus_datatype::describe::to_bytes;
use isthmus_datatype::{Datatype, Unpacker};
use isthmus_engine::{SendBuffer, with_machine};
use isthmus_wire::frame::protocol;
use isthmus_wire::rma::{Does, Operation, SHORT, What};

use super::desk::{Desk, header};
use super::with_desk;
use crate::epoch::{Held, LockKind};
use crate::spot::Target;
use crate::window::{Window, locked};

/// Most bytes of operations for one process that have not left when a call returns.
const MOST_WAITING: u64 = 16 << 20;

/// An operation on a process on another node.
pub(super) struct Call<'a> {
    pub(super) does: Does,
    pub(super) op: u32,
    pub(super) count: u64,
    pub(super) datatype: &'a Datatype,
    /// Bytes of data that go there.
    pub(super) length: u64,
}

/// Where data go that are asked for, the first byte of the stream, and how many.
pub(super) type Piece = (Unpacker, u64, u64);

impl Window {
    /// Sends an operation, behind the request for the lock if that was not sent yet. `sinks`: where data go that are
    /// asked for, with the first byte of the stream and the length of each piece.
    pub(super) fn send(
        &self,
        (target, place): (&Target, i64),
        call: &Call<'_>,
        mut data: SendBuffer,
        sinks: Vec<Piece>,
    ) -> Result<()> {
        let Some(far) = &self.far else { return Ok(()) };
        let rank = target.rank;
        let described = to_bytes(call.datatype)?;
        let kind = match locked(&self.epochs).held(rank) {
            Some(Held::Lock(kind)) => Some(kind),
            _ => None,
        };
        let (context, peer) = (self.context_number(), self.comm.channel().members.peer(rank));
        let mut short = Vec::new();
        if data.length() <= SHORT as u64 {
            let copy = std::mem::replace(&mut data, SendBuffer::EMPTY).copied();
            short = copy.content();
        }
        let mut sent = locked(&far.sent);
        let mut engine = self.world.engine().lock();
        with_desk(&mut engine, |desk, port| {
            if let Some(kind) = kind.filter(|_| !sent.locked.contains(&rank)) {
                let lock = header(What::Lock, context, u32::from(kind == LockKind::Exclusive), 0);
                desk.say(port, peer, lock, SendBuffer::EMPTY)?;
                sent.locked.insert(rank);
            }
            sent.open.insert(rank);
            let asks = !sinks.is_empty();
            let asked = sinks.into_iter().map(Some).chain((!asks).then_some(None));
            for piece in asked {
                let (mut question, mut first, mut length) = (0, 0, call.length);
                if let Some((to, from, bytes)) = piece {
                    (question, _) = desk.ask(port, (self.key(), peer), Some((to, bytes)));
                    if length == 0 {
                        (first, length) = (from, bytes);
                    }
                }
                let operation = Operation {
                    does: call.does,
                    op: call.op,
                    question,
                    first,
                    place,
                    count: call.count,
                    length,
                    datatype: &described,
                    data: &short,
                }
                .encode();
                let bytes = operation.len();
                let mut head = header(What::Operate, context, bytes as u32, 0);
                head.common = sent.counts.send(rank, bytes as u64);
                let said = desk.say(port, peer, head, SendBuffer::owned(operation.into()));
                if said.is_err() {
                    desk.forget(port, question);
                }
                said?;
            }
            if data.length() == 0 {
                return Ok(());
            }
            let mut head = header(What::Data, context, 0, 0);
            head.common = sent.counts.send(rank, data.length());
            desk.lend(port, peer, head, data)
        })?;
        drop(engine);
        drop(sent);
        self.wait_for_room(peer)
    }

    /// Waits while much has not left.
    fn wait_for_room(&self, peer: isthmus_engine::Peer) -> Result<()> {
        self.world.engine().watch();
        self.world.engine().wait(|engine| {
            let waiting = with_machine(engine, protocol::RMA, |desk: &mut Desk, _| desk.waiting(peer));
            (waiting.unwrap_or(0) <= MOST_WAITING).then_some(Ok(()))
        })
    }
}
