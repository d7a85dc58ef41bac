// SPDX-License-Identifier: Apache-2.0
//! Members of a window on other nodes: operations and locks travel in messages, and the target does them in its own
//! memory, whatever its program does meanwhile.
//!
//! Nothing waits before a flush, an unlock, a fence or the like. The request for a lock travels with the first
//! operation on a process, so a lock, operations and the unlock cost one round trip; a lock of all costs nothing until
//! then. Data that come back say that what was asked is done: after gets and fetches nothing else is asked.

pub(crate) mod called;
mod desk;
mod doing;
mod freed;
mod landing;
pub(crate) mod make;
mod open;
pub(crate) mod order;
mod origin;
mod outgoing;
mod send;
mod settle;
mod work;

use isthmus_core::error::Result;
use isthmus_datatype::{Datatype, Representation};
use isthmus_engine::{Request, SendBuffer, with_machine};
use isthmus_wire::frame::protocol;
use isthmus_wire::rma::{Does, PIECE, What};

use self::desk::{Desk, with_desk};
use self::landing::{Landing, bytes_there, foreign};
use self::outgoing::{header, key_of};
use self::send::{Call, send};
pub(crate) use self::settle::{complete, has_done_of, meet, settle, settle_here};

use crate::data::{Sink, Source, TargetData, When};
use crate::elements::element;
use crate::spot::Target;
use crate::window::{Window, form_of};

/// An operation on a process on another node. Its arguments fit each other. `op`: that of accumulate and its kin, or 0.
pub(crate) fn operate(
    window: &Window,
    target: &Target,
    (does, op): (Does, u32),
    (source, result): (Option<&Source<'_>>, Option<&Sink<'_>>),
    place: &TargetData<'_>,
    when: When,
) -> Result<Option<Request>> {
    let bytes = place.datatype.bytes(place.count)?;
    let given = source.map_or(Ok(0), Source::bytes)?;
    let form = form_of(window, target.rank);
    let mut sinks = Vec::new();
    if let Some(result) = result {
        let landing = Landing::new(result, form)?;
        let moved = if source.is_some() { given } else { bytes };
        let all = bytes_there(foreign(place.datatype, form)?.as_ref(), moved);
        let piece = match does {
            // Nobody keeps much of an answer in memory of its own.
            Does::Fetch if source.is_none() => {
                let unit = element(place.datatype);
                let unit = unit.map_or(1, |basic| form.unwrap_or(Representation::LOCAL).size(basic).max(1)) as u64;
                PIECE / unit * unit
            }
            _ => all,
        };
        let mut from = 0;
        loop {
            let length = piece.min(all - from);
            let mut landing = landing.clone();
            landing.seek(from);
            sinks.push((landing, from, length));
            from += length;
            if from >= all {
                break;
            }
        }
    }
    let call = Call {
        does,
        op,
        count: place.count,
        datatype: place.datatype,
        length: given,
        moved: if source.is_some() { given } else { bytes },
    };
    let data = match source {
        Some(source) => SendBuffer::typed(source.memory.clone(), source.datatype, source.count)?,
        None => SendBuffer::EMPTY,
    };
    send(window, target, &call, data, sinks, when)
}

/// MPI_Compare_and_swap at another node.
pub(crate) fn swap(
    window: &Window,
    target: &Target,
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
        moved: data.len() as u64 / 2,
    };
    let form = form_of(window, target.rank);
    let bytes = bytes_there(foreign(datatype, form)?.as_ref(), data.len() as u64 / 2);
    let sinks = vec![(Landing::new(result, form)?, 0, bytes)];
    send(
        window,
        target,
        &call,
        SendBuffer::owned(data.into()),
        sinks,
        When::Always,
    )
    .map(drop)
}

/// The lock of a process of this node was given back: whoever waits for it on another node is let in.
#[cold]
pub(crate) fn let_in(window: &Window, rank: u32) {
    let context = window.context_number();
    let mut engine = window.world.engine().lock();
    let peer = window.comm.channel().members.peer(rank);
    // The window's end waits for all that is under way.
    let _ = with_desk(&mut engine, |desk, port| {
        if rank == window.comm.rank() {
            desk.go_on(port, key_of(window));
            return Ok(());
        }
        desk.say(port, peer, header(What::Look, context, 0, 0), SendBuffer::EMPTY)
    });
}

/// Before all members end: waits until what nobody has waited for is answered, so that no message of this process about
/// the window comes after its end.
pub(crate) fn hear(window: &Window) {
    if window.far.is_none() {
        return;
    }
    let key = key_of(window);
    window.world.engine().wait(|engine| {
        let more = with_machine(engine, protocol::RMA, |desk: &mut Desk, _| desk.has_questions(key));
        // After a loss nobody is waited for.
        let lost = engine.core.lost_of(&window.comm.channel().members);
        (more != Some(true) || lost.is_some()).then_some(())
    });
}

/// When all members have ended: no message about the window comes any more; `early`: there may come some.
pub(crate) fn close(window: &Window, early: bool) {
    if window.far.is_none() {
        return;
    }
    let key = key_of(window);
    window.world.engine().wait(|engine| {
        let more = with_machine(engine, protocol::RMA, |desk: &mut Desk, _| desk.has_to_say(key));
        (more != Some(true)).then_some(())
    });
    with_machine(
        &mut window.world.engine().lock(),
        protocol::RMA,
        |desk: &mut Desk, port| {
            desk.close(port, key, early);
        },
    );
}
