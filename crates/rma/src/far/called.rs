// SPDX-License-Identifier: Apache-2.0
//! Locks of processes on other nodes that this process has called for and does not know to have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isthmus_engine::{Engine, Port, with_machine};
use isthmus_wire::frame::protocol;

use super::desk::Desk;
use super::outgoing::{Key, key_of};
use crate::window::Window;

/// How many locks this process has called for and does not know to have: whoever finds 0 need not look.
static UNSURE: AtomicUsize = AtomicUsize::new(0);

/// The process has called for the lock of a member on another node.
pub(crate) fn call_for(window: &Window, rank: u32) {
    let key = key_of(window);
    let mut engine = window.world.engine().lock();
    let called = with_machine(&mut engine, protocol::RMA, |desk: &mut Desk, _| {
        desk.unsure.push((key, rank))
    });
    if called.is_some() {
        UNSURE.fetch_add(1, Ordering::Relaxed);
    }
}

/// It has these locks of a window, or has given them back.
pub(super) fn is_sure(window: &Window, is_one: impl Fn(u32) -> bool) {
    if !any_unsure() {
        return;
    }
    let key = key_of(window);
    let mut engine = window.world.engine().lock();
    let sure = with_machine(&mut engine, protocol::RMA, |desk: &mut Desk, _| {
        let before = desk.unsure.len();
        desk.unsure.retain(|&(of, rank)| of != key || !is_one(rank));
        before - desk.unsure.len()
    });
    UNSURE.fetch_sub(sure.unwrap_or(0), Ordering::Relaxed);
}

/// Whether it does not know to have this one.
pub(super) fn is_unsure(engine: &mut Engine, key: Key, rank: u32) -> bool {
    let look = |desk: &mut Desk, _: &mut Port<'_>| desk.unsure.contains(&(key, rank));
    let unsure = any_unsure().then(|| with_machine(engine, protocol::RMA, look));
    unsure.flatten().unwrap_or(false)
}

/// The locks that this process does not know to have.
pub(super) fn all_unsure(desk: &Desk) -> Vec<(Arc<Window>, u32)> {
    let all = desk.unsure.iter();
    all.filter_map(|&(key, rank)| Some((desk.window(key)?.clone(), rank)))
        .collect()
}

/// The first of these. `beside`: if it does not know to have this one either, and it is not the only one.
pub(super) fn first_unsure(desk: &Desk, beside: Option<(Key, u32)>) -> Option<(Arc<Window>, u32)> {
    // What is tried is neither asked for nor had.
    if beside.is_some_and(|lock| !desk.tries && desk.unsure == [lock] || !desk.unsure.contains(&lock)) {
        return None;
    }
    let mut all = desk.unsure.iter();
    all.find_map(|&(key, rank)| Some((desk.window(key)?.clone(), rank)))
}

/// Whether there are any.
#[inline]
pub(super) fn any_unsure() -> bool {
    UNSURE.load(Ordering::Relaxed) > 0
}

/// A thread tries to get them, so that others have to look: what it tries counts once more.
pub(super) fn trying(begins: bool) {
    match begins {
        true => UNSURE.fetch_add(1, Ordering::SeqCst),
        false => UNSURE.fetch_sub(1, Ordering::SeqCst),
    };
}

/// Whether there are several.
#[inline]
pub(super) fn several_unsure() -> bool {
    UNSURE.load(Ordering::Relaxed) > 1
}
