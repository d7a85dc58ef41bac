// SPDX-License-Identifier: Apache-2.0
//! Several locks at once. Those of processes on other nodes are asked for with the first operation on them. A process
//! that takes more than one has those that it has called for before a lock when it waits for that: otherwise two that
//! take the same locks in the same order might wait for each other.
//!
//! It tries all of them together, which takes one round trip. A target refuses what it would have to keep waiting. From
//! the first lock that was refused on the process gives back what it has got, and waits for that lock alone. So it
//! waits with locks only that come before the one that it waits for.

use std::sync::Arc;

use isthmus_core::world::WindowCount;
use isthmus_engine::{SendBuffer, with_machine};
use isthmus_lock::shared::LockKind;
use isthmus_wire::frame::protocol;
use isthmus_wire::rma::What;

use super::called::{all_unsure, any_unsure, first_unsure, is_sure, trying};
use super::desk::{Desk, with_desk};
use super::outgoing::{header, key_of, number_of};
use super::settle::{ask_aside, ask_for, wait_for_answers};
use crate::epoch::Held;
use crate::window::{Window, sent_of};

/// One thread at a time tries, while others make progress. It waits for answers that no program keeps back.
fn alone<T>(window: &Window, act: impl FnOnce() -> T) -> T {
    let engine = window.world.engine();
    engine.wait(|engine| {
        let free = with_machine(engine, protocol::RMA, |desk: &mut Desk, _| {
            !std::mem::replace(&mut desk.tries, true)
        });
        free.unwrap_or(true).then_some(())
    });
    trying(true);
    let done = act();
    with_machine(&mut engine.lock(), protocol::RMA, |desk: &mut Desk, _| {
        desk.tries = false
    });
    trying(false);
    done
}

/// Before a lock that the call waits for: waits until the process has those that it has called for.
#[inline]
pub(crate) fn take_called_for(window: &Window) {
    if any_unsure() {
        take(window, None);
    }
}

/// Before the lock of a process is asked for with an operation: waits until this process has those that it has called
/// for before. The lock may have been asked for then.
#[cold]
pub(super) fn take_before(window: &Window, rank: u32) {
    take(window, Some(rank));
}

/// A lock is given back: nobody asks for it any more, if nobody has.
pub(crate) fn give_up(window: &Window, rank: u32) {
    if any_unsure() {
        alone(window, || {
            let is_asked = sent_of(window).locked.contains(&rank);
            if !is_asked {
                is_sure(window, |other| other == rank);
            }
        });
    }
}

/// `before`: the lock of this process, which need not be had.
#[cold]
fn take(window: &Window, before: Option<u32>) {
    let before = before.map(|rank| (key_of(window), rank));
    let next = || {
        let mut engine = window.world.engine().lock();
        with_machine(&mut engine, protocol::RMA, |desk: &mut Desk, _| {
            first_unsure(desk, before)
        })
        .flatten()
    };
    while let Some((of, rank)) = next() {
        let is_asked = sent_of(&of).locked.contains(&rank);
        if !is_asked {
            alone(window, || try_all(window));
        } else if before == Some((key_of(&of), rank)) {
            return;
        } else {
            wait_for(&of, rank);
            is_sure(&of, |other| other == rank);
        }
    }
}

/// Waits until a lock that was asked for is this process's, or the target is lost. That others are does not end this:
/// the lock is still asked for. Whoever ends the epoch hears what has gone wrong.
fn wait_for(window: &Window, rank: u32) {
    let mut engine = window.world.engine().lock();
    let question = ask_for(window, &mut engine, rank, What::Flush, None);
    drop(engine);
    wait_for_answers(window, &mut Vec::from_iter(question));
}

/// A lock that was tried.
struct Tried {
    window: Arc<Window>,
    rank: u32,
    kind: LockKind,
    question: u32,
}

/// Tries all locks that were called for. The first one that somebody else has is asked for as it is alone.
fn try_all(window: &Window) {
    let all = with_machine(
        &mut window.world.engine().lock(),
        protocol::RMA,
        |desk: &mut Desk, _| all_unsure(desk),
    );
    let mut tried = Vec::new();
    for (of, rank) in all.unwrap_or_default() {
        // Another thread has asked for the first one meanwhile.
        let is_asked = sent_of(&of).locked.contains(&rank);
        if is_asked {
            break;
        }
        match try_one(&of, rank) {
            Some(one) => tried.push(one),
            None => is_sure(&of, |other| other == rank),
        }
    }
    if let Some(one) = tried.first() {
        let peer = one.window.comm.channel().members.peer(one.rank);
        with_machine(
            &mut window.world.engine().lock(),
            protocol::RMA,
            |desk: &mut Desk, port| port.count(desk.counted[WindowCount::Wait as usize], peer, 0),
        );
    }
    let mut questions = tried.iter().map(|one| one.question).collect();
    wait_for_answers(window, &mut questions);
    let mut is_refused = false;
    for one in tried {
        is_refused |= end(one, is_refused);
    }
}

/// `None`: it is not wanted any more, or the process is lost, which the operation tells.
fn try_one(window: &Arc<Window>, rank: u32) -> Option<Tried> {
    let Some(Held::Lock(kind)) = window.epochs.lock().held(rank) else {
        return None;
    };
    let mut engine = window.world.engine().lock();
    let kind_too = u64::from(number_of(kind));
    let question = ask_aside(window, &mut engine, rank, What::Try, kind_too)?;
    Some(Tried {
        window: window.clone(),
        rank,
        kind,
        question,
    })
}

/// What follows from an answer; true: this lock is waited for. `waits`: one before it is.
fn end(tried: Tried, waits: bool) -> bool {
    let Tried {
        window,
        rank,
        kind,
        question,
    } = tried;
    let mut sent = sent_of(&window);
    let mut engine = window.world.engine().lock();
    let refused = with_machine(&mut engine, protocol::RMA, |desk: &mut Desk, _| {
        desk.refused.remove(&question)
    });
    let refused = refused.unwrap_or(false);
    if waits {
        if !refused {
            ask_aside(&window, &mut engine, rank, What::Unlock, 0);
        }
        return false;
    }
    let peer = window.comm.channel().members.peer(rank);
    let asked = with_desk(&mut engine, |desk, port| {
        if refused {
            let lock = header(What::Lock, window.context_number(), number_of(kind), 0);
            desk.say(port, peer, lock, SendBuffer::EMPTY)?;
        }
        port.count(desk.counted[WindowCount::Lock as usize], peer, 0);
        Ok(())
    });
    drop(engine);
    if asked.is_ok() {
        sent.locked.insert(rank);
    }
    drop(sent);
    if !refused || asked.is_err() {
        is_sure(&window, |other| other == rank);
        return false;
    }
    true
}
