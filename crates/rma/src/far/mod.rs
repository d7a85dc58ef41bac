// SPDX-License-Identifier: Apache-2.0
//! Members of a window on other nodes: operations and locks travel in messages, and the target does them in its own
//! memory, whatever its program does meanwhile.
//!
//! Nothing waits before a flush, an unlock, a fence or the like. The request for a lock travels with the first
//! operation on a process, so a lock, operations and the unlock cost one round trip; a lock of all costs nothing until
//! then.

mod desk;
mod make;
mod open;
mod origin;
mod work;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{Ordering, fence};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::Datatype;
use isthmus_datatype::describe::to_bytes;
use isthmus_datatype::op::Predefined;
use isthmus_engine::{Engine, EngineError, Port, Request, SendBuffer, with_machine};
use isthmus_wire::frame::protocol;
use isthmus_wire::rma::{Does, Operation, PIECE, SHORT, What};

use self::desk::{Desk, header};
pub(crate) use self::make::{check, make, open};

use crate::data::{Place, Sink, Source, When};
use crate::epoch::{Held, LockKind};
use crate::spot::Target;
use crate::window::{Window, locked};

/// Most bytes of operations for one process that have not left when a call returns.
const MOST_WAITING: u64 = 16 << 20;

/// What a process knows of a window that has members on other nodes.
pub(crate) struct Far {
    /// Which members share this process's node.
    near: Box<[bool]>,
    sent: Mutex<Sent>,
}

/// What members on other nodes were sent.
#[derive(Default)]
struct Sent {
    /// Those that were asked for their locks.
    locked: BTreeSet<u32>,
    /// Those that have operations nobody has waited for.
    open: BTreeSet<u32>,
}

/// An operation on a process on another node.
struct Call<'a> {
    does: Does,
    op: u32,
    count: u64,
    datatype: &'a Datatype,
    /// Bytes of data that go there.
    length: u64,
}

fn lost_desk() -> EngineError {
    EngineError::Misuse {
        what: "an operation on a window that is no more",
    }
}

fn with_desk<T>(
    engine: &mut Engine,
    act: impl FnOnce(&mut Desk, &mut Port<'_>) -> std::result::Result<T, EngineError>,
) -> Result<T> {
    let acted = with_machine(engine, protocol::RMA, act).unwrap_or_else(|| Err(lost_desk()));
    acted.map_err(|error| (&error).into())
}

impl Window {
    /// Whether a member is on another node.
    pub(crate) fn is_far(&self, rank: u32) -> bool {
        self.far.as_ref().is_some_and(|far| !far.near[rank as usize])
    }

    fn key(&self) -> desk::Key {
        desk::key(self.comm.channel().context)
    }

    /// Sends an operation, behind the request for the lock if that was not sent yet. `sinks`: where data go that are
    /// asked for, with the first byte of the stream and the length of each piece.
    fn send(
        &self,
        (target, place): (&Target, i64),
        call: &Call<'_>,
        mut data: SendBuffer,
        sinks: Vec<(isthmus_datatype::Unpacker, u64, u64)>,
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
                let head = header(What::Operate, context, operation.len() as u32, 0);
                let said = desk.say(port, peer, head, SendBuffer::owned(operation.into()));
                if said.is_err() {
                    desk.forget(port, question);
                }
                said?;
            }
            match data.length() {
                0 => Ok(()),
                _ => desk.say(port, peer, header(What::Data, context, 0, 0), data),
            }
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

    /// MPI_Put to another node.
    pub(crate) fn far_put(&self, target: &Target, at: i64, source: &Source<'_>, place: &Place<'_>) -> Result<()> {
        let call = Call {
            does: Does::Put,
            op: 0,
            count: place.count,
            datatype: place.datatype,
            length: source.bytes()?,
        };
        let data = SendBuffer::typed(source.memory.clone(), source.datatype, source.count)?;
        self.send((target, at), &call, data, Vec::new())
    }

    /// MPI_Get from another node.
    pub(crate) fn far_get(&self, target: &Target, at: i64, sink: &Sink<'_>, place: &Place<'_>) -> Result<()> {
        let call = Call {
            does: Does::Get,
            op: 0,
            count: place.count,
            datatype: place.datatype,
            length: 0,
        };
        let bytes = place.datatype.bytes(place.count)?;
        let sinks = vec![(sink.unpacker()?, 0, bytes)];
        self.send((target, at), &call, SendBuffer::EMPTY, sinks)
    }

    /// MPI_Accumulate and its kin at another node. Their arguments fit each other.
    pub(crate) fn far_accumulate(
        &self,
        (target, at): (&Target, i64),
        operation: Predefined,
        (source, result): (Option<&Source<'_>>, Option<&Sink<'_>>),
        place: &Place<'_>,
    ) -> Result<()> {
        let bytes = place.datatype.bytes(place.count)?;
        let given = source.map_or(Ok(0), Source::bytes)?;
        let mut sinks = Vec::new();
        if let Some(result) = result {
            let unpacker = result.unpacker()?;
            if source.is_some() {
                sinks.push((unpacker, 0, given));
            } else {
                // Nobody keeps much of an answer in memory of its own.
                let unit = crate::accumulate::element(place.datatype).map_or(1, |basic| basic.size().max(1)) as u64;
                let (mut from, piece) = (0, PIECE / unit * unit);
                while from < bytes {
                    let length = piece.min(bytes - from);
                    let mut unpacker = unpacker.clone();
                    unpacker.seek(from);
                    sinks.push((unpacker, from, length));
                    from += length;
                }
            }
        }
        let call = Call {
            does: if result.is_some() {
                Does::Fetch
            } else {
                Does::Accumulate
            },
            op: operation.handle(),
            count: place.count,
            datatype: place.datatype,
            length: given,
        };
        let data = match source {
            Some(source) => SendBuffer::typed(source.memory.clone(), source.datatype, source.count)?,
            None => SendBuffer::EMPTY,
        };
        self.send((target, at), &call, data, sinks)
    }

    /// MPI_Compare_and_swap at another node.
    pub(crate) fn far_swap(
        &self,
        (target, at): (&Target, i64),
        data: Vec<u8>,
        result: &Sink<'_>,
        datatype: &Datatype,
    ) -> Result<()> {
        let call = Call {
            does: Does::Swap,
            op: 0,
            count: 1,
            datatype,
            length: data.len() as u64,
        };
        let bytes = data.len() as u64 / 2;
        let sinks = vec![(result.unpacker()?, 0, bytes)];
        self.send((target, at), &call, SendBuffer::owned(data.into()), sinks)
    }

    /// Waits until all that was sent to processes on other nodes is done there and answered; `None`: to all of them.
    /// `unlocks`: their locks are given back.
    pub(crate) fn settle(&self, rank: Option<u32>, unlocks: bool) -> Result<()> {
        let Some(far) = &self.far else { return Ok(()) };
        let mut requests: Vec<Request> = Vec::new();
        {
            let mut sent = locked(&far.sent);
            let mut ranks: BTreeSet<u32> = sent.open.clone();
            if unlocks {
                ranks.extend(&sent.locked);
            }
            ranks.retain(|&other| rank.is_none_or(|rank| rank == other));
            if ranks.is_empty() {
                return self.mistakes();
            }
            let mut engine = self.world.engine().lock();
            for rank in ranks {
                sent.open.remove(&rank);
                let what = match unlocks && sent.locked.remove(&rank) {
                    true => What::Unlock,
                    false => What::Flush,
                };
                let (context, peer) = (self.context_number(), self.comm.channel().members.peer(rank));
                let asked = with_desk(&mut engine, |desk, port| {
                    let (question, request) = desk.ask(port, (self.key(), peer), None);
                    let said = desk.say(port, peer, header(what, context, question, 0), SendBuffer::EMPTY);
                    if said.is_err() {
                        desk.forget(port, question);
                    }
                    said.map(|()| request)
                });
                // What is lost `mistakes` tells.
                requests.extend(asked.ok().flatten());
            }
            if let Some(lost) = engine.lost_of(&self.comm.channel().members) {
                // Who is gone may have had a lock that somebody waits for now.
                for request in requests {
                    engine.release(request);
                }
                drop(engine);
                drop(sent);
                wait_until_left(self, far);
                return Err((&lost).into());
            }
        }
        let mut result = Ok(());
        for request in requests {
            let done = self.world.wait(request).map(drop);
            result = result.and(done);
        }
        fence(Ordering::SeqCst);
        let result = self.mistakes().and(result);
        if result.is_err() {
            wait_until_left(self, far);
        }
        result
    }

    /// An operation that gives a request is done when its call returns.
    pub(crate) fn settle_request(&self, rank: u32, when: When) -> Result<()> {
        match when {
            When::Locked => self.settle(Some(rank), false),
            When::Always => Ok(()),
        }
    }

    /// The first mistake that targets have told of.
    fn mistakes(&self) -> Result<()> {
        let key = self.key();
        let failed = with_machine(&mut self.world.engine().lock(), protocol::RMA, |desk: &mut Desk, _| {
            desk.failed(key)
        });
        failed.flatten().map_or(Ok(()), Err)
    }

    /// The lock of a process of this node was given back: whoever waits for it on another node is let in.
    #[cold]
    pub(crate) fn let_in(&self, rank: u32) {
        let context = self.context_number();
        let mut engine = self.world.engine().lock();
        let peer = self.comm.channel().members.peer(rank);
        // The window's end waits for all that is under way.
        let _ = with_desk(&mut engine, |desk, port| {
            if rank == self.comm.rank() {
                desk.go_on(port, self.key());
                return Ok(());
            }
            desk.say(port, peer, header(What::Look, context, 0, 0), SendBuffer::EMPTY)
        });
    }

    /// When all members have ended: no message about the window comes any more.
    pub(crate) fn close(&self) {
        if self.far.is_none() {
            return;
        }
        let key = self.key();
        self.world.engine().wait(|engine| {
            let more = with_machine(engine, protocol::RMA, |desk: &mut Desk, _| desk.has_to_say(key));
            (more != Some(true)).then_some(())
        });
        with_machine(&mut self.world.engine().lock(), protocol::RMA, |desk: &mut Desk, _| {
            desk.close(key);
        });
    }
}

/// After an error the program may free its memory too: waits until none of it is read for an operation any more.
#[cold]
fn wait_until_left(window: &Window, far: &Far) {
    let members = &window.comm.channel().members;
    let others = (0..).zip(far.near.iter()).filter(|(_, near)| !**near);
    for peer in others.map(|(rank, _)| members.peer(rank)) {
        window.world.engine().wait(|engine| {
            let waiting = with_machine(engine, protocol::RMA, |desk: &mut Desk, _| desk.waiting(peer));
            (waiting.unwrap_or(0) == 0).then_some(())
        });
    }
}

/// Processes on several nodes, which some things cannot be done with.
fn refuse<T>(window: &str, why: &str) -> Result<T> {
    fail!(
        abi::MPI_ERR_UNSUPPORTED_OPERATION,
        argument("comm"),
        "is {window}, whose processes are on several nodes, and {why}"
    )
}
