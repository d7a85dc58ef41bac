// SPDX-License-Identifier: Apache-2.0
//! What machines work with: the transports, and everything of the engine that is no machine's own.

use std::sync::Arc;

use isthmus_transport::{Copied, Job, Peer, Processes, Rates, Tuning as Traffic};

use crate::base::requests::{Kept, Owned, Owner};
use crate::machine::Port;
use crate::p2p::loss::{end, was_lost};
use crate::p2p::state::gauges;
use crate::p2p::{Core, Task};
use crate::tools::Tools;
use crate::{Completion, EngineError, Gauges, Members, Operation, Request, Tuning};

/// What [`Core::take_success`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It has completed as nearly all do, and is gone.
    Ended {
        /// Receives: rank of the sender in the communicator.
        source: u32,
        /// Receives: tag.
        tag: i32,
        /// Receives: bytes delivered.
        bytes: u64,
    },
    /// It is under way.
    Waits,
    /// Ask [`Core::take`].
    Unusual,
}

/// What has gone between this process and others of its node.
pub fn copied(core: &Core) -> Copied {
    let shared = core.transports.iter().map(|transport| transport.copied());
    shared.fold(Copied::default(), |sum, copied| Copied {
        frames: sum.frames + copied.frames,
        cells: sum.cells + copied.cells,
        straight: sum.straight + copied.straight,
    })
}

impl Core {
    // ---- requests -------------------------------------------------------------------------------------------------

    /// The completion of a request, if it has completed; the request stays. Does not make progress.
    /// A request that does not exist (released) has none.
    #[inline]
    pub fn test(&self, request: Request) -> Option<&Completion> {
        let slot = self.state.requests().slot(self.state.requests().index(request)?);
        slot.done().then_some(slot.completion())
    }

    /// If the request has completed, its completion; the request is gone then.
    #[inline]
    pub fn take(&mut self, request: Request) -> Option<Completion> {
        let index = self.state.requests().index(request)?;
        let slot = self.state.requests_mut().slot_mut(index);
        if !slot.done() {
            return None;
        }
        if !matches!(slot.task(), Task::Nothing) {
            // Buffered mode: complete for the program, not for us.
            slot.detach();
            return Some(Completion::default());
        }
        Some(self.state.requests_mut().remove(index))
    }

    /// As [`Core::take`] if the request has completed without an error and was not cancelled.
    #[inline]
    pub fn take_success(&mut self, request: Request) -> Look {
        let Some(index) = self.state.requests().index(request) else {
            return Look::Unusual;
        };
        let slot = self.state.requests().slot(index);
        if !slot.done() {
            return Look::Waits;
        }
        let &Completion {
            source,
            tag,
            bytes,
            cancelled: false,
            error: None,
        } = slot.completion()
        else {
            return Look::Unusual;
        };
        if !matches!(slot.task(), Task::Nothing) {
            return Look::Unusual;
        }
        self.state.requests_mut().discard(index);
        Look::Ended { source, tag, bytes }
    }

    /// Keeps something until what the request began is over; before [`Core::release`].
    pub fn keep(&mut self, request: Request, kept: Kept) {
        if let Some(index) = self.state.requests().index(request) {
            self.state.requests_mut().keep(index, kept);
        }
    }

    /// Forgets the request; what it began goes on (MPI_Request_free).
    pub fn release(&mut self, request: Request) {
        let Some(index) = self.state.requests().index(request) else {
            return;
        };
        let slot = self.state.requests_mut().slot_mut(index);
        slot.detach();
        let gone = match slot.task() {
            Task::Nothing => slot.done(),
            task => !task.moves(),
        };
        if gone {
            self.state.requests_mut().remove(index);
        }
    }

    /// A request that somebody else completes ([`Core::complete_user`]): generalized requests.
    pub fn user_request(&mut self) -> Request {
        let index = self.state.requests_mut().insert(Task::User);
        self.state.requests().name(index)
    }

    /// Completes a request made by [`Core::user_request`].
    pub fn complete_user(&mut self, request: Request, completion: Completion) {
        let Some(index) = self.state.requests().index(request) else {
            return;
        };
        if matches!(self.state.requests().slot(index).task(), Task::User) {
            *self.state.requests_mut().slot_mut(index).completion_mut() = completion;
            self.state.finish(index);
        }
    }

    /// A request of a machine.
    pub(crate) fn own(&mut self, owned: Owned) -> u32 {
        self.state.requests_mut().insert(Task::Of(owned))
    }

    /// The machine that has the request, and its index.
    #[inline]
    pub(crate) fn owner(&self, request: Request) -> Option<(Owner, u32)> {
        let index = self.state.requests().index(request)?;
        Some((self.state.requests().slot(index).task().owner()?, index))
    }

    /// What an operation that does not block has come to: its errors are those of its request.
    pub(crate) fn begun(&mut self, begun: Result<Option<Request>, EngineError>) -> Option<Request> {
        begun.unwrap_or_else(|error| {
            let index = self.failed(error);
            Some(self.state.requests().name(index))
        })
    }

    /// A request that has failed at once.
    #[cold]
    pub(crate) fn failed(&mut self, error: EngineError) -> u32 {
        let index = self.state.requests_mut().insert(Task::Nothing);
        self.state.fail(index, error);
        index
    }

    // ---- tools ----------------------------------------------------------------------------------------------------

    /// What tools are told.
    pub fn tools(&mut self) -> &mut Tools {
        self.state.tools_mut()
    }

    /// Lengths of the queues.
    pub fn gauges(&self) -> Gauges {
        gauges(&self.state)
    }

    /// The operation with this name, for [`Engine::start_plan`](crate::Engine::start_plan) and [`Core::called`].
    pub fn operation(&mut self, name: &'static str) -> Operation {
        self.state.tools_mut().operation(name)
    }

    /// Counts a call of an operation by the user.
    #[inline]
    pub fn called(&mut self, operation: Operation) {
        self.state.tools_mut().called(operation);
    }

    /// What may be changed while the engine runs.
    pub(crate) fn tuning(&self) -> Arc<Tuning> {
        self.state.tuning().clone()
    }

    /// Who the peers are.
    pub fn processes(&self) -> &Arc<Processes> {
        self.state.processes()
    }

    // ---- transports -----------------------------------------------------------------------------------------------

    /// Messages with these contexts of a job, on transports that treat some otherwise than others.
    pub fn tune_traffic(&mut self, job: Job, contexts: &[u32], tuning: Traffic) {
        for transport in &mut self.transports {
            transport.tune(job, contexts, tuning);
        }
    }

    /// What the links to peers carry, for transports that pace what they send.
    pub fn know_rates(&mut self, rates: &Rates) {
        for transport in &mut self.transports {
            transport.know(rates);
        }
    }

    /// Changes whenever a request completes or a message arrives that nobody waits for: what others may wait for.
    #[inline]
    pub fn events(&self) -> u64 {
        self.state.events()
    }

    /// Nothing has been begun that is not over.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        !self.state.has_outgoing() && self.state.requests().is_empty()
    }

    /// Is there anything that progress might complete? Arrivals that nobody waits for are no reason to look for them.
    /// Looks through all requests.
    pub(crate) fn is_pending(&self) -> bool {
        let requests = self.state.requests();
        let moves = |index: u32| requests.slot(index).task().moves();
        self.state.has_outgoing() || requests.indices().any(moves)
    }

    /// Ends what arming has begun.
    pub(crate) fn disarm(&mut self) {
        for transport in &mut self.transports {
            transport.disarm();
        }
    }

    /// Whether all transports can ring; otherwise whoever waits polls.
    pub(crate) fn rings(&self) -> bool {
        self.transports.iter().all(|transport| transport.rings())
    }

    /// The last call: no process of the job will send any more. Memory that requests still have is given back.
    pub fn finish(&mut self) {
        end(&mut self.state);
        for transport in &mut self.transports {
            transport.finish();
        }
    }

    // ---- machines -------------------------------------------------------------------------------------------------

    /// What the machine with this number acts through. What it sends leaves at once, or with the next progress.
    pub fn port(&mut self, number: u8) -> Port<'_> {
        Port::new(number, self)
    }

    /// A peer has broken the rules of a protocol beside messages: it counts as lost, for this reason.
    #[cold]
    pub fn accuse(&mut self, peer: Peer, what: &str) {
        self.state.accuse(peer, what);
    }

    /// Why nothing that waits for all of these members can go well.
    #[cold]
    pub fn lost_of(&self, members: &Members) -> Option<EngineError> {
        if !self.state.has_losses() {
            return None;
        }
        let mut peers = (0..members.count()).map(|rank| members.peer(rank));
        let lost = peers.find(|&peer| was_lost(&self.state, peer))?;
        Some(self.state.lost_error(lost))
    }
}

/// The rank whose message a receive has matched that is not complete.
#[cold]
pub fn matched(core: &Core, request: Request) -> Option<u32> {
    let requests = core.state.requests();
    let slot = requests.slot(requests.index(request)?);
    match slot.task() {
        Task::Receive(task) if task.has_matched() => Some(slot.completion().source),
        _ => None,
    }
}

/// Those of these members who are not lost; the others are nobody, with their ranks.
#[cold]
pub fn surviving(core: &Core, members: &Members) -> Members {
    if !core.state.has_losses() {
        return members.clone();
    }
    let lost: Vec<Peer> = core.state.losses().collect();
    let peers = (0..members.count()).map(|rank| members.peer(rank));
    let left: Vec<Peer> = peers
        .map(|peer| if lost.contains(&peer) { Peer::NONE } else { peer })
        .collect();
    Members::Table(left.into())
}
