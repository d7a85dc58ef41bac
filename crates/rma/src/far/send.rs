// SPDX-License-Identifier: Apache-2.0
//! Operations on processes on other nodes, on their way there.

use isthmus_core::error::Result;
use isthmus_core::world::WindowCount;
use isthmus_datatype::Datatype;
use isthmus_engine::{EngineError, Peer, Port, Request, SendBuffer, with_machine};
use isthmus_lock::shared::LockKind;
use isthmus_wire::frame::protocol;
use isthmus_wire::rma::{Does, Operation, SHORT, What};

use super::called::several_unsure;
use super::desk::{Desk, with_desk};
use super::landing::Landing;
use super::order::take_before;
use super::outgoing::{Among, Frame, Key, WIDE_AREA, header, key_of, number_of};
use crate::counts::Counts;
use crate::data::When;
use crate::epoch::Held;
use crate::spot::Target;
use crate::types::Name;
use crate::window::{Window, sent_of};

/// Most bytes of operations for one process that have not left when a call returns.
const MOST_WAITING: u64 = 16 << 20;

/// An operation on a process on another node.
pub(super) struct Call<'a> {
    pub(super) does: Does,
    pub(super) op: u32,
    pub(super) count: u64,
    pub(super) datatype: &'a Datatype,
    /// Bytes of data that go there, as they are here.
    pub(super) length: u64,
    /// Bytes of data that the operation is about.
    pub(super) moved: u64,
}

impl Call<'_> {
    fn counted(&self) -> WindowCount {
        match self.does {
            Does::Put => WindowCount::Put,
            Does::Get => WindowCount::Get,
            _ => WindowCount::Accumulate,
        }
    }
}

/// Where data go that are asked for, the first byte of the target's stream, and how many.
pub(super) type Piece = (Landing, u64, u64);

/// What goes with an operation: data that are copied, or lent, and where what it asks for goes.
struct Load {
    short: Vec<u8>,
    data: SendBuffer,
    sinks: Vec<Piece>,
}

/// Where an operation goes, and what hears that it is over.
struct Route {
    rank: u32,
    peer: Peer,
    context: u32,
    key: Key,
    place: i64,
    request: Option<Request>,
}

/// Sends an operation, behind the request for the lock if that was not sent yet, and gives its request if it is to
/// have one and is not over. `sinks`: where data go that are asked for.
pub(super) fn send(
    window: &Window,
    target: &Target,
    call: &Call<'_>,
    mut data: SendBuffer,
    sinks: Vec<Piece>,
    when: When,
) -> Result<Option<Request>> {
    let rank = target.rank;
    let kind = match window.epochs.lock().held(rank) {
        Some(Held::Lock(kind)) => Some(kind),
        _ => None,
    };
    let mut short = Vec::new();
    if data.length() <= SHORT as u64 {
        let copy = std::mem::replace(&mut data, SendBuffer::EMPTY).copied();
        short = copy.content();
    }
    let parts = sinks.len() as u32 + u32::from(data.length() > 0);
    // What was asked for says itself that it is done.
    let is_unanswered = sinks.is_empty();
    let load = Load { short, data, sinks };
    let mut way = Route {
        rank,
        peer: window.comm.channel().members.peer(rank),
        context: window.context_number(),
        key: key_of(window),
        place: target.place(),
        request: None,
    };
    let mut sent = sent_of(window);
    if several_unsure() && kind.is_some_and(|kind| kind != LockKind::All) && !sent.locked.contains(&rank) {
        drop(sent);
        take_before(window, rank);
        sent = sent_of(window);
    }
    let name = sent.types.entry(rank).or_default().name(call.datatype)?;
    let mut engine = window.world.engine().lock();
    let said = with_desk(&mut engine, |desk, port| {
        if let Some(kind) = kind.filter(|_| !sent.locked.contains(&rank)) {
            let lock = header(What::Lock, way.context, number_of(kind), 0);
            if port.level(way.peer) > WIDE_AREA {
                let payload = Vec::new();
                desk.hold(port, way.peer, Frame { head: lock, payload }, false)?;
            } else {
                desk.say(port, way.peer, lock, SendBuffer::EMPTY)?;
            }
            port.count(desk.counted[WindowCount::Lock as usize], way.peer, 0);
            sent.locked.insert(rank);
        }
        if is_unanswered {
            sent.open.insert(rank);
        }
        port.count(desk.counted[call.counted() as usize], way.peer, call.moved);
        way.request = (when == When::Locked && parts > 0).then(|| desk.begin(port, parts));
        let said = operate(desk, port, &mut sent.counts, &way, call, name, load);
        if let (Err(_), Some(request)) = (&said, way.request) {
            desk.give_up(request);
        }
        said
    });
    if let (Err(_), Some(request)) = (&said, way.request) {
        engine.release(request);
    }
    drop(engine);
    drop(sent);
    said?;
    wait_for_room(window, way.peer, when);
    Ok(way.request)
}

/// Waits while much has not left. Whoever gets a request is told later when its memory is its own again.
fn wait_for_room(window: &Window, peer: Peer, when: When) {
    window.world.engine().watch();
    window.world.engine().wait(|engine| {
        let waiting = with_machine(engine, protocol::RMA, |desk: &mut Desk, _| desk.waiting(peer));
        let (all, own) = waiting.unwrap_or_default();
        let waits = if when == When::Locked { own } else { all };
        (waits <= MOST_WAITING).then_some(())
    });
}

/// Says the operation, a piece of it for each sink, and lends the data.
fn operate(
    desk: &mut Desk,
    port: &mut Port<'_>,
    counts: &mut Counts,
    way: &Route,
    call: &Call<'_>,
    mut name: Name,
    load: Load,
) -> std::result::Result<(), EngineError> {
    let Load { short, data, sinks } = load;
    let asks = !sinks.is_empty();
    let asked = sinks.into_iter().map(Some).chain((!asks).then_some(None));
    for piece in asked {
        let (mut question, mut first, mut length) = (0, 0, call.length);
        if let Some((to, from, bytes)) = piece {
            question = desk.ask((way.key, way.peer), Some((to, bytes)), way.request);
            if length == 0 {
                (first, length) = (from, bytes);
            }
        }
        let operation = Operation {
            does: call.does,
            op: call.op,
            question,
            first,
            place: way.place,
            count: call.count,
            length,
            number: name.number,
            datatype: &name.described,
            data: &short,
        };
        let among = Among {
            context: way.context,
            odd: counts.is_odd(),
        };
        if let Some(bytes) = desk.bundle(port, way.peer, among, &operation) {
            counts.send(way.rank, bytes);
            return Ok(());
        }
        let operation = operation.encode();
        if name.number > 0 {
            name.described = Box::default();
        }
        let bytes = operation.len();
        let mut head = header(What::Operate, way.context, bytes as u32, 0);
        head.common = counts.send(way.rank, bytes as u64);
        let said = if data.length() == 0 && port.level(way.peer) > WIDE_AREA {
            let payload = operation;
            desk.hold(port, way.peer, Frame { head, payload }, asks)
        } else {
            desk.say(port, way.peer, head, SendBuffer::owned(operation.into()))
        };
        if said.is_err() {
            desk.forget(port, question);
        }
        said?;
    }
    if data.length() == 0 {
        // What takes long is on its way while the program computes.
        if asks && call.moved > SHORT as u64 {
            desk.leave(port, way.peer);
        }
        return Ok(());
    }
    let mut head = header(What::Data, way.context, 0, 0);
    head.common = counts.send(way.rank, data.length());
    desk.lend(port, way.peer, head, data, way.request)
}
