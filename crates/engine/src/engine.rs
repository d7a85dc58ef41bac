// SPDX-License-Identifier: Apache-2.0
//! The engine of one process.

use isthmus_schedule::step::Plan;
use isthmus_transport::{Peer, Transport};
use isthmus_wire::boot::Counters;

use crate::{
    Arrived, Binding, Channel, Completion, EngineError, MatchedMessage, Mode, Next, Operation, ReceiveBuffer, Request,
    SendBuffer,
};

/// Everything an engine is made of.
pub struct Setup {
    /// Own rank in MPI_COMM_WORLD.
    pub me: Peer,
    /// The transports.
    pub transports: Vec<Box<dyn Transport>>,
    /// Per peer the index of its transport. The entry of this process itself is ignored.
    pub routes: Vec<u8>,
    /// Per peer the highest level of the network shared with it, for the counters: 0 wide area … 4 node.
    pub levels: Vec<u8>,
}

/// The engine of one process: see the crate.
pub struct Engine {
    setup: Setup,
}

#[expect(unused_variables, clippy::unimplemented, reason = "interface first; bodies follow at once")]
impl Engine {
    /// An engine over these transports.
    pub fn new(setup: Setup) -> Self {
        Self { setup }
    }

    // ---- point to point -------------------------------------------------------------------------------------------

    /// Sends if that is possible at once: `Ok(None)` means that the message has left or is kept, and the buffer may be reused.
    /// `Ok(Some(request))`: it takes longer; wait for the request. Saves the request for most short messages.
    pub fn send(
        &mut self, channel: &Channel, to: u32, tag: i32, mode: Mode, buffer: SendBuffer,
    ) -> Result<Option<Request>, EngineError> {
        unimplemented!()
    }

    /// Starts a send. Failures are found in the completion.
    pub fn isend(&mut self, channel: &Channel, to: u32, tag: i32, mode: Mode, buffer: SendBuffer) -> Request {
        unimplemented!()
    }

    /// Starts a receive; `None` as source or tag: any.
    pub fn irecv(&mut self, channel: &Channel, from: Option<u32>, tag: Option<i32>, buffer: ReceiveBuffer) -> Request {
        unimplemented!()
    }

    /// The first message that such a receive would match, if it is there. Call [`Engine::progress`] before (Shared::wait does).
    /// Fails when the peer asked for is lost.
    pub fn iprobe(&mut self, channel: &Channel, from: Option<u32>, tag: Option<i32>) -> Result<Option<Arrived>, EngineError> {
        unimplemented!()
    }

    /// As [`Engine::iprobe`], and takes the message off the queue: only [`Engine::imrecv`] can receive it then.
    pub fn improbe(
        &mut self, channel: &Channel, from: Option<u32>, tag: Option<i32>,
    ) -> Result<Option<(MatchedMessage, Arrived)>, EngineError> {
        unimplemented!()
    }

    /// Starts to receive a message that was taken off the queue.
    pub fn imrecv(&mut self, message: MatchedMessage, buffer: ReceiveBuffer) -> Request {
        unimplemented!()
    }

    // ---- requests -------------------------------------------------------------------------------------------------

    /// The completion of a request, if it has completed; the request stays. Does not make progress.
    /// A request that does not exist (released) has none.
    pub fn test(&self, request: Request) -> Option<&Completion> {
        unimplemented!()
    }

    /// If the request has completed, its completion; the request is gone then.
    pub fn take(&mut self, request: Request) -> Option<Completion> {
        unimplemented!()
    }

    /// Forgets the request; what it began goes on (MPI_Request_free).
    pub fn release(&mut self, request: Request) {
        unimplemented!()
    }

    /// Cancels a receive that has not matched yet; it completes as cancelled. Anything else completes as if nothing had been said.
    pub fn cancel(&mut self, request: Request) {
        unimplemented!()
    }

    /// A request that somebody else completes ([`Engine::complete_user`]): generalized requests.
    pub fn user_request(&mut self) -> Request {
        unimplemented!()
    }

    /// Completes a request made by [`Engine::user_request`].
    pub fn complete_user(&mut self, request: Request, completion: Completion) {
        unimplemented!()
    }

    // ---- collective operations ------------------------------------------------------------------------------------

    /// Starts this process's part of a collective operation. `sequence`: number of the operation within the communicator, equal
    /// on all members. Messages travel in the context `channel.context + 1`. `next` is called when the plan has ended.
    pub fn start_plan(
        &mut self, channel: &Channel, operation: Operation, sequence: u32, plan: Box<dyn Plan>, binding: Binding,
        next: Option<Next>,
    ) -> Request {
        unimplemented!()
    }

    // ---- counters -------------------------------------------------------------------------------------------------

    /// The operation with this name, for [`Engine::start_plan`] and [`Engine::called`].
    pub fn operation(&mut self, name: &'static str) -> Operation {
        unimplemented!()
    }

    /// Counts a call of an operation by the user.
    pub fn called(&mut self, operation: Operation) {
        unimplemented!()
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        unimplemented!()
    }

    // ---- progress -------------------------------------------------------------------------------------------------

    /// Moves everything that can be moved without waiting; true if anything happened.
    pub fn progress(&mut self) -> bool {
        unimplemented!()
    }

    /// Orderly end, called repeatedly (with [`crate::Shared::wait`]) until true: all sends pushed out, transports closed.
    pub fn close(&mut self) -> bool {
        unimplemented!()
    }
}
