// SPDX-License-Identifier: Apache-2.0
//! When a peer is gone, or cannot be relied on.

use std::sync::Arc;

use isthmus_protocol::matching::Context;
use isthmus_transport::{Job, Peer, Process};
use rustc_hash::FxHashSet;

use crate::base::parcels::Parcels;
use crate::base::work::Work;
use crate::p2p::Core;
use crate::p2p::beside::drop_parcels;
use crate::p2p::cancel::{forget_asked, let_go};
use crate::p2p::state::withdraw;
use crate::p2p::{ReceiveStage, SendStage, State, Task};
use crate::{EngineError, Members, Request};

/// Who is lost from whom this receive of a message from any source may wait for it, where the job goes on: a loss that
/// the program has not acknowledged. The receive is not over.
#[inline]
pub fn doubt(core: &Core, request: Request) -> Option<EngineError> {
    if core.state.reasons.is_empty() {
        return None;
    }
    let missed = missed_by(core, request)?;
    let EngineError::PeerLost { peer, who, reason, .. } = core.state.lost_error(missed) else {
        return None;
    };
    Some(EngineError::Pending { peer, who, reason })
}

/// The same receive fails.
#[inline]
pub fn end_in_doubt(core: &mut Core, request: Request) {
    if core.state.reasons.is_empty() {
        return;
    }
    let (Some(index), Some(missed)) = (core.state.requests.index(request), missed_by(core, request)) else {
        return;
    };
    let error = core.state.lost_error(missed);
    withdraw(&mut core.state, index);
    core.state.fail(index, error);
}

#[cold]
fn missed_by(core: &Core, request: Request) -> Option<Peer> {
    let state = &core.state;
    let slot = state.requests.slot(state.requests.index(request)?);
    let Task::Receive(task) = slot.task() else { return None };
    let (ReceiveStage::Posted(posted), Some(members)) = (&task.stage, &task.members) else {
        return None;
    };
    let context = state.matcher.pattern(*posted)?.context;
    state.missed(context, members)
}

const AT_THE_END: &str = "all processes are in MPI_Finalize";

/// Of peers that were lost by no accident.
const HAS_ENDED: &str = "it has ended its communication with this process (MPI_Finalize or MPI_Comm_disconnect)";

impl Core {
    /// The peer is gone, or cannot be relied on: its transport gives it up, and everything that waits for it fails.
    pub(crate) fn lose(&mut self, peer: Peer, reason: Arc<str>) {
        let known = self.state.peers[peer];
        if known.lost() || known.own() {
            return;
        }
        self.transports[known.route() as usize].lose(peer, &reason);
        lose(&mut self.state, peer, reason);
    }

    /// All processes are at the end: to whom data are still on their way, nobody waits for them there. Messages that
    /// nobody has asked for can stay.
    pub fn give_up_sends(&mut self) {
        let outgoing = self.state.outgoing.iter();
        let machines: Vec<Peer> = outgoing
            .filter(|(_, queue)| !queue.parcels.is_empty())
            .map(|(peer, _)| *peer)
            .collect();
        machines.into_iter().for_each(|peer| self.lose(peer, AT_THE_END.into()));
        for index in self.state.requests.indices() {
            match self.state.requests.slot(index).task() {
                Task::Send(task) if task.stage != SendStage::Waiting => {
                    self.lose(task.peer, AT_THE_END.into());
                }
                _ => {}
            }
        }
    }

    /// The program gets back the memory of messages that nobody has received yet: they are copied, and can be received
    /// as before. `freed`: only those whose request was freed.
    pub fn keep_unanswered(&mut self, freed: bool) {
        for index in self.state.requests.indices() {
            if freed && !self.state.requests.slot(index).detached() {
                continue;
            }
            let name = self.state.requests.name(index);
            match self.state.requests.send(index) {
                Some(task) if task.stage == SendStage::Waiting && task.parts.is_none() => {
                    if self.state.peers[task.peer].own() {
                        task.buffer.own();
                    } else {
                        let_go(self, name);
                    }
                }
                _ => {}
            }
        }
    }
}

impl State {
    pub(crate) fn lost_error(&self, peer: Peer) -> EngineError {
        let reason = self.reasons.get(&peer).cloned().flatten();
        self.unreachable(peer, reason.unwrap_or_else(|| HAS_ENDED.into()))
    }

    /// The peer is lost for this reason, or about to be.
    pub(crate) fn unreachable(&self, peer: Peer, reason: Arc<str>) -> EngineError {
        let who = self.name(peer);
        EngineError::PeerLost {
            peer,
            who,
            reason,
            goes_on: self.goes_on,
        }
    }

    /// Whether nothing comes of this peer any more.
    #[inline]
    pub(crate) fn is_lost(&self, peer: Peer) -> bool {
        self.peers[peer].lost()
    }

    /// Whether one of these is lost. Asked only where somebody is: time in proportion to their number.
    #[cold]
    pub(crate) fn has_lost(&self, members: &Members) -> bool {
        lost(self).any(|lost| members.contains(lost))
    }

    /// One of these who is lost, so that a message from any of them may never come. Where the job goes on, those do not
    /// count whose loss the program has acknowledged on the communicator. Where all others are gone nothing comes.
    #[cold]
    pub(crate) fn missed(&self, context: Context, members: &Members) -> Option<Peer> {
        let counts = |lost: &Peer| members.contains(*lost);
        let missed = match self.goes_on {
            true => {
                let news = self.losses.get(self.acknowledged(context)..).unwrap_or_default();
                news.iter().copied().find(counts)
            }
            false => lost(self).find(counts),
        };
        missed.or_else(|| last_ended(self, members))
    }

    /// How many losses the program has acknowledged on the communicator that has this context.
    fn acknowledged(&self, context: Context) -> usize {
        let found = self.acknowledged.get(&context).filter(|(of, _)| of.strong_count() > 0);
        found.map_or(0, |(_, count)| *count)
    }

    /// Who this is, for people.
    pub(crate) fn name(&self, peer: Peer) -> Arc<str> {
        match self.processes.process(peer) {
            Some(Process { job: Job::OWN, rank }) => format!("process {rank} of MPI_COMM_WORLD").into(),
            _ => self.processes.name(peer).into(),
        }
    }

    /// The peer broke the protocol: nothing it says can be relied on, so it counts as lost.
    pub(crate) fn broken(&mut self, peer: Peer, what: &str) {
        self.peers[peer].breaks();
        self.work.push_back(Work::Lost(
            peer,
            format!("it broke the message protocol: {what}").into(),
        ));
    }

    /// The same for what others find out, later perhaps.
    #[cold]
    pub(crate) fn accuse(&mut self, peer: Peer, what: &str) {
        let known = self.peers[peer];
        if !known.own() && !known.lost() {
            self.broken(peer, what);
        }
    }
}

/// Whether nothing comes of a peer because it was lost: it has not ended in order.
pub(crate) fn was_lost(state: &State, peer: Peer) -> bool {
    matches!(state.reasons.get(&peer), Some(Some(_)))
}

/// Those that are lost, and not forgotten.
fn lost(state: &State) -> impl Iterator<Item = Peer> + '_ {
    let lost = |(peer, reason): (&Peer, &Option<Arc<str>>)| reason.is_some().then_some(*peer);
    state.reasons.iter().filter_map(lost)
}

/// One of these who has ended in order, where all but this process are gone.
fn last_ended(state: &State, members: &Members) -> Option<Peer> {
    let ended = |(peer, reason): (&Peer, &Option<Arc<str>>)| reason.is_none().then_some(*peer);
    let mut all_ended = state.reasons.iter().filter_map(ended);
    let found = all_ended.find(|&peer| members.contains(peer))?;
    let mut all = (0..members.count()).map(|rank| state.peers[members.peer(rank)]);
    all.all(|known| known.own() || known.lost()).then_some(found)
}

/// These were lost by no accident, or nobody has anything to do with them any more: nobody is asked about them for
/// ever.
pub(crate) fn forget_losses(state: &mut State, peers: &[Peer]) {
    let known = |state: &State, peer: &Peer| state.reasons.contains_key(peer);
    let gone: FxHashSet<Peer> = peers.iter().copied().filter(|peer| known(state, peer)).collect();
    if gone.is_empty() {
        return;
    }
    state.reasons.retain(|peer, _| !gone.contains(peer));
    // What is acknowledged are the first so many of them.
    let is_gone = |lost: &&Peer| gone.contains(*lost);
    for (_, count) in state.acknowledged.values_mut() {
        let first = state.losses.get(..*count).unwrap_or(&state.losses);
        *count -= first.iter().filter(is_gone).count();
    }
    state.losses.retain(|lost| !gone.contains(lost));
}

/// Nobody has anything to do with these lost peers any more, and nothing is kept of them.
pub(crate) fn forget(state: &mut State, peers: &[Peer]) {
    forget_losses(state, peers);
    state.knocking.forget(peers);
    let known = state.peers.len();
    let peers = peers.iter().filter(|peer| peer.index() < known);
    peers.for_each(|&peer| state.peers.leave(peer));
}

/// Whether the job goes on when it loses processes: a lost peer is an error that a program may live with then.
pub fn set_goes_on(core: &mut Core, goes_on: bool) {
    core.state.goes_on = goes_on;
}

/// The same, as it was set.
pub fn goes_on(core: &Core) -> bool {
    core.state.goes_on
}

/// Peers that are lost, in the order in which this process has learnt of it: each once, and never another order.
pub fn losses(core: &Core) -> &[Peer] {
    &core.state.losses
}

/// Whether nothing comes of this peer any more: it is lost, or it has ended its communication in order.
pub fn is_gone(core: &Core, peer: Peer) -> bool {
    core.state.is_lost(peer)
}

/// How many of the [`losses`] the program has acknowledged on the communicator with this context.
pub fn acknowledged(core: &Core, context: Context) -> usize {
    core.state.acknowledged(context)
}

/// It has acknowledged so many, which never become fewer while somebody has `communicator`: the next communicator that
/// gets this context begins with none.
pub fn acknowledge(core: &mut Core, context: Context, communicator: &Arc<()>, count: usize) {
    let state = &mut core.state;
    let count = count.min(state.losses.len()).max(state.acknowledged(context));
    state.acknowledged.retain(|_, (of, _)| of.strong_count() > 0);
    state
        .acknowledged
        .insert(context, (Arc::downgrade(communicator), count));
    state.events += 1;
}

/// Communication is over. Requests that are left, which the program has freed and nobody waits for, give their
/// memory back: after MPI_Finalize it is the program's, whatever somebody still sends.
pub(crate) fn end(state: &mut State) {
    state
        .outgoing
        .values_mut()
        .for_each(|queue| queue.parcels = Parcels::default());
    for index in state.requests.indices() {
        if !matches!(
            state.requests.slot(index).task(),
            Task::Send(_) | Task::Receive(_) | Task::Plain(_)
        ) {
            continue;
        }
        let error = EngineError::PeerLost {
            peer: state.me,
            who: state.name(state.me),
            reason: "this process has ended its communication (MPI_Finalize)".into(),
            goes_on: false,
        };
        withdraw(state, index);
        state.fail(index, error);
    }
}

/// Everything that waits for this peer fails. Receives from any source fail too if the peer could have been the
/// source: they might wait forever. Where the job goes on they stay, and whoever waits for them is told ([`doubt`]).
/// Messages that have arrived whole stay.
fn lose(state: &mut State, peer: Peer, reason: Arc<str>) {
    state.peers[peer].is_lost_now();
    state.reasons.insert(peer, Some(reason));
    state.losses.push(peer);
    state.tools.lost(peer);
    // Machines end what is theirs.
    state.work.push_back(Work::Gone(peer));
    let goes_on = state.goes_on;
    cut_off(state, peer, |_, task, _| match task {
        Task::Send(task) => task.peer == peer,
        Task::Receive(task) => {
            // One that has matched a message of another sender has nothing to do with it.
            let open = task.peer == Peer::NONE && !goes_on;
            task.peer == peer || open && task.members.as_ref().is_some_and(|m| m.contains(peer))
        }
        Task::Plain(task) => task.peer == peer,
        _ => false,
    });
}

/// A peer of another job has ended its communication in order while this process has not. Those who are connected come
/// to their ends together, unless one of them was lost or they have disconnected (MPI 5.0 sections 11.2.2, 11.10.4):
/// whatever still waits for this one is to fail. It is no loss to communicators, of which others may be at work, and no
/// more is sent to it, or a transport would call it one. False: nothing has changed.
pub(crate) fn ends(state: &mut State, peer: Peer) -> bool {
    let of_own_job = |process: Process| process.job == Job::OWN;
    let unknown = state.peers.get(peer).is_none_or(|known| known.lost() || known.own());
    // Inside a job all have settled before somebody ends: what is unanswered then may stay so.
    if unknown || state.processes.process(peer).is_none_or(of_own_job) {
        return false;
    }
    state.peers[peer].is_lost_now();
    state.reasons.insert(peer, None);
    true
}

/// The same, once all is done that came before.
pub(crate) fn ended(state: &mut State, peer: Peer) {
    cut_off(state, peer, |state, task, detached| match task {
        // Nobody waits for a message whose request was freed: it counts as one that was not received.
        Task::Send(task) => task.peer == peer && !detached,
        Task::Receive(task) => {
            let open = task.peer == Peer::NONE && !state.goes_on;
            task.peer == peer || open && task.members.as_ref().is_some_and(|m| last_ended(state, m).is_some())
        }
        Task::Plain(task) => task.peer == peer,
        _ => false,
    });
}

/// Nothing goes to this peer or comes from it any more, and nothing is kept of what was between the two. `doomed`:
/// which requests fail, each with whether it was freed.
fn cut_off(state: &mut State, peer: Peer, doomed: impl Fn(&State, &Task, bool) -> bool) {
    state.events += 1;
    if let Some(queue) = state.outgoing.remove(&peer) {
        drop_parcels(state, peer, queue.parcels);
    }
    state.partners.retain(|(of, _), _| *of != peer);
    state.placing.remove(&peer);
    state.ways.remove(&peer);
    state.calls.lose(peer.number());
    state.unanswered.lose(peer);
    let requests = &state.requests;
    state
        .recalls
        .retain(|_, index| !matches!(requests.slot(*index).task(), Task::Recall(to) if *to == peer));
    forget_asked(state, peer);
    for index in state.requests.indices() {
        let slot = state.requests.slot(index);
        if matches!(slot.task(), Task::Recall(to) if *to == peer) {
            state.finish(index);
        } else if doomed(state, slot.task(), slot.detached()) {
            let error = state.lost_error(peer);
            withdraw(state, index);
            state.fail(index, error);
        }
    }
}
