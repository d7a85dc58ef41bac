// SPDX-License-Identifier: Apache-2.0
//! Locks of several processes at once. Those of processes on other nodes are asked for with the first operation on
//! them; a process that takes more than one has each before it asks for the next, as it called for them. Otherwise two
//! that take the same locks in the same order might wait for each other.

use isthmus_engine::{SendBuffer, with_machine};
use isthmus_wire::frame::protocol;
use isthmus_wire::rma::What;

use super::called::{any_unsure, is_sure};
use super::desk::{Desk, with_desk};
use super::outgoing::header;
use super::send::number_of;
use super::settle::{ask, loss_of};
use crate::epoch::Held;
use crate::window::{Window, sent_of};

/// Before another lock, of this window or any other: waits until the process has those that it has called for.
#[inline]
pub(crate) fn take_called_for(window: &Window) {
    if any_unsure() {
        take_all(window);
    }
}

#[cold]
fn take_all(window: &Window) {
    let next = || {
        let mut engine = window.world.engine().lock();
        with_machine(&mut engine, protocol::RMA, |desk: &mut Desk, _| desk.first_unsure()).flatten()
    };
    while let Some((of, rank)) = next() {
        take(&of, rank);
        is_sure(&of, |other| other == rank);
    }
}

/// Waits until a lock is this process's. Whoever ends the epoch hears what has gone wrong.
fn take(window: &Window, rank: u32) {
    let mut sent = sent_of(window);
    let Some(Held::Lock(kind)) = window.epochs.lock().held(rank) else {
        return;
    };
    let mut engine = window.world.engine().lock();
    if !sent.locked.contains(&rank) {
        let peer = window.comm.channel().members.peer(rank);
        let lock = header(What::Lock, window.context_number(), number_of(kind), 0);
        let asked = with_desk(&mut engine, |desk, port| desk.say(port, peer, lock, SendBuffer::EMPTY));
        if asked.is_err() {
            return;
        }
        sent.locked.insert(rank);
    }
    let Ok(request) = ask(window, &mut engine, rank, What::Flush) else {
        return;
    };
    if loss_of(window, &mut engine, rank).is_some() {
        return engine.release(request);
    }
    drop(engine);
    drop(sent);
    let _ = window.world.wait(request);
}
