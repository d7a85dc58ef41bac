// SPDX-License-Identifier: Apache-2.0
//! The two machines that take frames: of requests, and of answers.

use std::sync::Arc;

use isthmus_engine::{Caller, Core, EngineError, Machine, Peer, Port, State, Taken};
use isthmus_wire::frame::Header;
use isthmus_wire::waiting::{ANY_TAG, Item, Kind};

use crate::state::{Desk, Out};

/// Takes requests.
pub(crate) struct Taker(pub(crate) Arc<Desk>);

/// Takes answers.
pub(crate) struct Answers(pub(crate) Arc<Desk>);

impl Machine for Taker {
    fn frame(&mut self, port: &mut Port<'_>, peer: Peer, header: &Header, payload: &[u8]) -> Taken {
        let desk = &self.0;
        let mut state = desk.lock();
        match state.take(desk, peer, header, payload) {
            Ok((taken, failed)) => {
                if let Some((ready, failure)) = failed {
                    // The next progress sends it.
                    let outcome = Err(failure);
                    desk.leave(&mut state, Out::Ended { peer, ready, outcome });
                } else if taken == Taken::Kept {
                    port.call_back();
                }
                taken
            }
            Err(lie) => {
                drop(state);
                port.accuse(peer, lie);
                Taken::Done
            }
        }
    }

    fn sent(&mut self, _: &mut Port<'_>, _: Peer, name: u64, _: Result<(), EngineError>) {
        self.0.lock().sent(name);
    }

    fn expects(&self) -> bool {
        let state = self.0.lock();
        state.handlers.have_short() && !state.closed
    }

    fn advance(&mut self, core: &mut Core) -> bool {
        self.0.send_out(core)
    }

    fn may_sleep(&mut self, _: &mut Core) -> bool {
        !self.0.has_out()
    }

    fn lose(&mut self, core: &mut Core, peer: Peer) {
        self.0.lock().lose(core, peer);
    }

    fn is_flushed(&self) -> bool {
        !self.0.has_out()
    }
}

impl Machine for Answers {
    fn frame(&mut self, port: &mut Port<'_>, peer: Peer, header: &Header, payload: &[u8]) -> Taken {
        let answered = self.0.lock().answered(port, peer, header, payload);
        if let Err(lie) = answered {
            port.accuse(peer, lie);
        }
        Taken::Done
    }

    fn sent(&mut self, port: &mut Port<'_>, _: Peer, name: u64, _: Result<(), EngineError>) {
        let mut state = self.0.lock();
        state.sent(name);
        if state.has_work(Caller::Program) {
            port.call_back();
        }
    }

    fn pending(&self, _: &State, request: u32) -> Option<Item> {
        let state = self.0.lock();
        // The lower half of a request's name is its index.
        let mut all = state.asked.values();
        let asked = all.find(|asked| asked.request.to_raw() as u32 == request)?;
        Some(Item {
            kind: Kind::Receive,
            peer: asked.peer.number(),
            tag: ANY_TAG,
            context: u32::MAX,
            name: "remote service request".to_owned(),
            ..Item::default()
        })
    }

    fn lose(&mut self, core: &mut Core, peer: Peer) {
        self.0.lock().lose(core, peer);
    }
}
