// SPDX-License-Identifier: Apache-2.0
//! Waiting until operations on other nodes are done: those before a fence or MPI_Win_complete by counts, without an
//! answer; others by a question.

use std::collections::BTreeSet;
use std::sync::atomic::{Ordering, fence};

use isthmus_core::error::{Error, Result};
use isthmus_core::members;
use isthmus_core::world::WindowCount;
use isthmus_engine::{Engine, Peer, Request, SendBuffer, with_machine};
use isthmus_wire::frame::protocol;
use isthmus_wire::rma::What;

use super::called::{is_sure, is_unsure};
use super::desk::{Desk, with_desk};
use super::outgoing::{WIDE_AREA, header, key_of};
use crate::sent::{Far, Sent};
use crate::wait;
use crate::window::{Flavor, Window, form_of, sent_of};

/// Waits until all that was sent to processes on other nodes is done there and answered; `None`: to all of them.
/// `unlocks`: their locks are given back.
#[inline]
pub(crate) fn settle(window: &Window, rank: Option<u32>, unlocks: bool) -> Result<()> {
    match &window.far {
        None => Ok(()),
        Some(_) => settle_far(window, rank, unlocks),
    }
}

/// The first mistake that targets have told of.
fn mistakes(window: &Window) -> Result<()> {
    let key = key_of(window);
    let failed = with_machine(
        &mut window.world.engine().lock(),
        protocol::RMA,
        |desk: &mut Desk, _| desk.failed(key),
    );
    failed.flatten().map_or(Ok(()), Err)
}

/// See [`settle`].
fn settle_far(window: &Window, rank: Option<u32>, unlocks: bool) -> Result<()> {
    let mut sent = sent_of(window);
    let mut ranks: BTreeSet<u32> = sent.open.clone();
    if unlocks {
        ranks.extend(&sent.locked);
    }
    // What another thread waits for this one has to wait for too.
    ranks.extend(sent.settling.keys());
    ranks.extend(sent.early.keys());
    ranks.retain(|&other| rank.is_none_or(|rank| rank == other));
    let mut engine = window.world.engine().lock();
    let (mut requests, mut result) = (Vec::new(), Ok(()));
    let key = key_of(window);
    let peer = peer_of(window, rank);
    let mut questions = with_machine(&mut engine, protocol::RMA, |desk: &mut Desk, _| {
        desk.questions(key, peer)
    })
    .unwrap_or_default();
    for &rank in &ranks {
        let is_open = sent.open.remove(&rank) || sent.settling.contains_key(&rank);
        requests.extend(sent.early.remove(&rank).map(|request| (rank, request)));
        *sent.settling.entry(rank).or_default() += 1;
        let what = match unlocks && sent.locked.remove(&rank) {
            true => What::Unlock,
            false => What::Flush,
        };
        // A lock that was asked for and is not had is waited for: until it has come and gone, the target would keep
        // what is tried there next.
        if !is_open && !is_unsure(&mut engine, key, rank) {
            if what == What::Unlock {
                // Nothing is to be waited for: whoever locks the process next waits until this has come.
                ask_aside(window, &mut engine, rank, what, 0);
            }
            if let Some(error) = loss_of(window, &mut engine, rank) {
                result = Err(error);
            }
            continue;
        }
        let request = match ask(window, &mut engine, rank, what) {
            Ok(request) => request,
            Err(error) => {
                result = Err(error);
                continue;
            }
        };
        match loss_of(window, &mut engine, rank) {
            None => requests.push((rank, request)),
            Some(error) => {
                engine.release(request);
                result = Err(error);
            }
        }
    }
    if unlocks && rank.is_some() {
        ask_early(window, &mut engine, &mut sent);
    }
    if !questions.is_empty() {
        with_machine(&mut engine, protocol::RMA, |desk: &mut Desk, port| desk.let_go(port));
    }
    drop(engine);
    drop(sent);
    let (answered, unanswered) = wait_for_requests(window, requests);
    result = result.and(answered);
    wait_for_answers(window, &mut questions);
    sent_of(window).has_settled(&ranks);
    // Whoever hears of a loss in place of an answer need not have the lock.
    is_sure(window, |other| match unlocks {
        true => rank.is_none_or(|rank| rank == other),
        false => ranks.contains(&other) && !unanswered.contains(&other),
    });
    fence(Ordering::SeqCst);
    let result = mistakes(window).and(result);
    if result.is_err() {
        wait_until_left(window, None);
    }
    result
}

/// Waits for these requests. Also whose answers have not come when one was lost.
fn wait_for_requests(window: &Window, requests: Vec<(u32, Request)>) -> (Result<()>, BTreeSet<u32>) {
    let (mut result, mut unanswered) = (Ok(()), BTreeSet::new());
    for (rank, request) in requests {
        let answered = window.world.wait(request).map(drop);
        if answered.is_err() {
            unanswered.insert(rank);
        }
        result = result.and(answered);
    }
    (result, unanswered)
}

/// Whoever unlocks one of several members that are far away will unlock the others, too: they are asked now whether
/// they are done, so that all unlocks together take as long as one.
fn ask_early(window: &Window, engine: &mut Engine, sent: &mut Sent) {
    let is_asked = |rank: &u32| sent.locked.contains(rank) && !sent.settling.contains_key(rank);
    let ranks: Vec<u32> = sent.open.iter().copied().filter(is_asked).collect();
    for rank in ranks {
        let peer = window.comm.channel().members.peer(rank);
        let level = with_desk(engine, |_, port| Ok(port.level(peer)));
        if !level.is_ok_and(|level| level == WIDE_AREA) || loss_of(window, engine, rank).is_some() {
            continue;
        }
        if let Ok(request) = ask(window, engine, rank, What::Flush) {
            sent.open.remove(&rank);
            sent.early.insert(rank, request);
        }
    }
}

/// What waits for a flush does so no longer.
fn let_go(window: &Window) {
    with_machine(
        &mut window.world.engine().lock(),
        protocol::RMA,
        |desk: &mut Desk, port| desk.let_go(port),
    );
}

/// A fence: waits until all operations of all members are done. Each hears how many bytes of them it gets.
pub(crate) fn meet(window: &Window, far: &Far) -> Result<()> {
    // Others wait for this process whatever has gone wrong.
    let settled = match errs_there(window) {
        true => settle(window, None, false),
        false => Ok(()),
    };
    let_go(window);
    let (mine, odd) = {
        let mut sent = sent_of(window);
        sent.open.clear();
        sent.counts.fence(window.comm.size())
    };
    let mine = members::sum(window.world, &window.comm, &mine);
    if mine.is_err() {
        wait_until_left(window, None);
    }
    let mine = mine?;
    let key = key_of(window);
    window.world.engine().wait(|engine| {
        let done = with_machine(engine, protocol::RMA, |desk: &mut Desk, port| {
            desk.has_heard(key) && desk.has_done(port, key, odd, mine)
        });
        done.unwrap_or(true).then_some(())
    });
    let met = meet_near(window, far);
    let settled = settled.and(met);
    wait_until_left(window, None);
    let mistakes = mistakes(window);
    settled.and(mistakes)
}

/// Those of the node need no messages to operate on each other, so a fence must be over at all of them: each counts its
/// fences where the others see it. Fences of two windows may be called by two threads, so each window has its own way.
fn meet_near(window: &Window, far: &Far) -> Result<()> {
    let mine = window.store.fences(window.comm.rank()).fetch_add(1, Ordering::SeqCst) + 1;
    for rank in far.near() {
        let theirs = window.store.fences(rank as u32);
        let come = || (theirs.load(Ordering::SeqCst).wrapping_sub(mine) as i64 >= 0).then_some(());
        wait::until(window.world, &window.comm, come)?;
    }
    Ok(())
}

/// MPI_Win_complete has nothing to do any more but to tell `ranks`, which is done by `tell` with the bytes of
/// operations that each was ever sent; then waits until this process's memory is its own again.
pub(crate) fn complete(window: &Window, ranks: &[u32], tell: impl FnOnce(&dyn Fn(u32) -> u64)) -> Result<()> {
    if window.far.is_none() {
        tell(&|_| 0);
        return Ok(());
    }
    let settled = match errs_there(window) {
        true => settle(window, None, false),
        false => Ok(()),
    };
    let_go(window);
    {
        let mut sent = sent_of(window);
        for rank in ranks {
            sent.open.remove(rank);
        }
        tell(&|rank| sent.counts.of(rank));
    }
    let own = settle_here(window, None);
    settled.and(own)
}

/// Waits until this process's memory is its own again: data that it has asked for have come, and nothing more is read.
/// What becomes of it at others is not waited for. `rank`: of operations on that member; `None`: of all.
pub(crate) fn settle_here(window: &Window, rank: Option<u32>) -> Result<()> {
    if window.far.is_none() {
        return Ok(());
    }
    let_go(window);
    let (key, peer) = (key_of(window), peer_of(window, rank));
    let asked = |desk: &mut Desk| desk.questions(key, peer);
    let engine = window.world.engine();
    let questions = with_machine(&mut engine.lock(), protocol::RMA, |desk, _| asked(desk));
    wait_for_answers(window, &mut questions.unwrap_or_default());
    wait_until_left(window, rank);
    mistakes(window)
}

fn peer_of(window: &Window, rank: Option<u32>) -> Option<Peer> {
    rank.map(|rank| window.comm.channel().members.peer(rank))
}

/// Waits until all these questions are answered.
pub(super) fn wait_for_answers(window: &Window, questions: &mut Vec<u32>) {
    if questions.is_empty() {
        return;
    }
    window.world.engine().wait(|engine| {
        let answered = with_machine(engine, protocol::RMA, |desk: &mut Desk, _| desk.are_answered(questions));
        answered.unwrap_or(true).then_some(())
    });
}

/// Whether so many bytes of operations of a member were done here, or it is lost.
pub(crate) fn has_done_of(window: &Window, engine: &mut Engine, rank: u32, bytes: u64) -> bool {
    if !window.is_far(rank) {
        return true;
    }
    let (key, peer) = (key_of(window), window.comm.channel().members.peer(rank));
    with_machine(engine, protocol::RMA, |desk: &mut Desk, _| {
        desk.has_done_of(key, peer, bytes)
    })
    .unwrap_or(true)
}

/// Asks a member to tell when all before is done. The request ends with an error when any member is lost.
fn ask(window: &Window, engine: &mut Engine, rank: u32, what: What) -> Result<Request> {
    let request = with_desk(engine, |desk, port| Ok(desk.begin(port, 1)))?;
    ask_for(window, engine, rank, what, Some(request));
    Ok(request)
}

/// The same: gives the number of the question. `None`: the member is lost, which others tell.
pub(super) fn ask_for(
    window: &Window,
    engine: &mut Engine,
    rank: u32,
    what: What,
    request: Option<Request>,
) -> Option<u32> {
    let (context, peer) = (window.context_number(), window.comm.channel().members.peer(rank));
    let asked = with_desk(engine, |desk, port| {
        let question = desk.ask((key_of(window), peer), None, request);
        let said = match what {
            What::Flush => desk.flush(port, peer, context, question),
            _ => desk.say(port, peer, header(what, context, question, 0), SendBuffer::EMPTY),
        };
        match said {
            Ok(()) => port.count(desk.counted[WindowCount::Wait as usize], peer, 0),
            Err(_) => desk.forget(port, question),
        }
        said.map(|()| question)
    });
    asked.ok()
}

/// Asks a member what nobody waits for by a request: gives the number of the question. `None`: the member is lost, and
/// others tell that.
pub(super) fn ask_aside(window: &Window, engine: &mut Engine, rank: u32, what: What, at: u64) -> Option<u32> {
    let (context, peer) = (window.context_number(), window.comm.channel().members.peer(rank));
    let asked = with_desk(engine, |desk, port| {
        let question = desk.ask((key_of(window), peer), None, None);
        let said = desk.say(port, peer, header(what, context, question, at), SendBuffer::EMPTY);
        if said.is_err() {
            desk.forget(port, question);
        }
        said.map(|()| question)
    });
    asked.ok()
}

/// Why a member does not answer: it is lost.
pub(super) fn loss_of(window: &Window, engine: &mut Engine, rank: u32) -> Option<Error> {
    let peer = window.comm.channel().members.peer(rank);
    with_desk(engine, |_, port| port.loss(peer).map_or(Ok(()), Err)).err()
}

/// Whether only the target knows what is wrong with an operation: then its answer is waited for, so that this process
/// hears of it in time.
fn errs_there(window: &Window) -> bool {
    let converts = || {
        let sent = sent_of(window);
        sent.open.iter().any(|&rank| form_of(window, rank).is_some())
    };
    window.flavor == Flavor::Dynamic || converts()
}

/// Waits until no memory of the program is read any more: it may change it then, after an error too.
fn wait_until_left(window: &Window, rank: Option<u32>) {
    let (members, peer) = (&window.comm.channel().members, peer_of(window, rank));
    let is_asked = |other: Peer| peer.map_or_else(|| members.contains(other), |peer| peer == other);
    window.world.engine().wait(|engine| {
        let left = with_machine(engine, protocol::RMA, |desk: &mut Desk, _| desk.has_left(is_asked));
        left.unwrap_or(true).then_some(())
    });
}
