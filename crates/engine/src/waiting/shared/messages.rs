// SPDX-License-Identifier: Apache-2.0
//! Messages, and the wait for their end.

use isthmus_protocol::matching::Pattern;

use super::*;

#[inline(always)]
fn pattern(channel: &Channel, source: Option<u32>, tag: Option<i32>) -> Pattern {
    let context = channel.context;
    Pattern { context, source, tag }
}

impl Shared {
    /// A blocking send: [`Engine::send`] and the wait that may follow, under one lock.
    #[inline]
    pub fn send(
        &self,
        channel: &Channel,
        to: u32,
        tag: i32,
        mode: Mode,
        buffer: SendBuffer,
    ) -> Result<(), EngineError> {
        let mut guard = self.lock();
        let sent = guard.send(channel, to, tag, mode, buffer)?;
        sent_over(self, guard, sent)
    }

    /// A blocking receive: [`Engine::irecv`] and the wait, under one lock.
    pub fn receive(&self, channel: &Channel, from: Option<u32>, tag: Option<i32>, buffer: ReceiveBuffer) -> Completion {
        let mut guard = self.lock();
        let request = guard.irecv(channel, from, tag, buffer);
        match from {
            Some(_) => self.completion(guard, request),
            None => self.wait_on(guard, |engine| {
                end_in_doubt(&mut engine.core, request);
                engine.core.take(request)
            }),
        }
    }

    /// A blocking receive that saves the request if the message is here, or arrives while the thread polls; anything
    /// else that happens ends it, and [`Shared::receive`] has to follow. Only where all processes represent data alike.
    #[inline]
    pub fn receive_directly(
        &self,
        channel: &Channel,
        from: Option<u32>,
        tag: Option<i32>,
        memory: WriteMemory,
        room: u64,
    ) -> Direct {
        // With other threads about the lock must not be kept while polling.
        if self.policy.threads {
            return Direct::Nothing;
        }
        self.receive_next(&mut self.lock(), channel, pattern(channel, from, tag), memory, room)
    }

    /// The same where threads take turns and none of the library comes; elsewhere nothing is done.
    #[inline(always)]
    pub fn receive_alone(
        &self,
        channel: &Channel,
        from: Option<u32>,
        tag: Option<i32>,
        memory: WriteMemory,
        room: u64,
    ) -> Option<Direct> {
        let mut engine = self.briefly()?;
        Some(self.receive_next(&mut engine, channel, pattern(channel, from, tag), memory, room))
    }

    /// The same for whoever has the engine, and keeps it.
    #[inline(always)]
    pub(super) fn receive_next(
        &self,
        engine: &mut Engine,
        channel: &Channel,
        pattern: Pattern,
        memory: WriteMemory,
        room: u64,
    ) -> Direct {
        if let Some(over) = begin_directly(&mut engine.core, channel, pattern, memory, room) {
            // Its sender may wait to hear that it has matched.
            engine.work();
            return over;
        }
        let mut patience = self.pace.patience();
        let (mut in_vain, counts_from, mut began) = (0, self.pace.counts_from(PROMPT_DIRECTLY), None);
        // What other threads find due is seen to when the engine is unlocked.
        while !engine.progress_directly() {
            in_vain += 1;
            if in_vain == counts_from {
                began = Some(engine.core.state.tools_mut().wait_begins());
            }
            if !self.pace.pause_with(&mut patience, !self.policy.guests) {
                break;
            }
        }
        let end = engine.core.state.direct().end();
        if let Some(began) = began {
            let over = matches!(end, Direct::Received(_));
            engine.core.state.tools_mut().waited_directly(began, over);
        }
        end
    }

    /// A blocking send out of one piece of memory on a communicator of a vendor MPI ([`Channel::special`]).
    #[inline]
    pub fn send_natively(
        &self,
        channel: &Channel,
        to: u32,
        tag: i32,
        data: (ReadMemory, u64),
    ) -> Result<(), EngineError> {
        let mut guard = self.lock();
        let Engine { core, vendor, .. } = &mut *guard;
        let sent = vendor.send_piece(core, channel, to, tag, data)?;
        sent_over(self, guard, sent)
    }

    /// The blocking receive there, if it is over soon; otherwise it has a request.
    #[inline]
    pub fn receive_natively(
        &self,
        channel: &Channel,
        from: Option<u32>,
        tag: Option<i32>,
        memory: WriteMemory,
        room: u64,
    ) -> Direct {
        let shared = self.pace.is_shared();
        let rounds = if shared { 1 } else { NATIVE_ROUNDS };
        let mut guard = self.lock();
        let Engine { core, vendor, .. } = &mut *guard;
        vendor.receive_soon(core, channel, from, tag, memory, (room, rounds))
    }
}

/// Waits for what has not left at once.
#[inline]
fn sent_over(shared: &Shared, guard: Guard<'_>, request: Option<Request>) -> Result<(), EngineError> {
    match request {
        None => Ok(()),
        Some(request) => shared.completion(guard, request).error.map_or(Ok(()), Err),
    }
}
