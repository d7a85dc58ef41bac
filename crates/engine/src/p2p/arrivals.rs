// SPDX-License-Identifier: Apache-2.0
//! What arriving frames do: those of point-to-point messages here, others at [those beside](Beside).

use isthmus_protocol::calling::Calls;
use isthmus_protocol::matching::Envelope;
use isthmus_transport::{Peer, Placement, Sink};
use isthmus_wire::frame::{BULK, Header, Kind, ROOM};

use crate::Request;
use crate::base::work::Work;
use crate::p2p::calls::{announced, called_data};
use crate::p2p::cancel::{asked_back, recalled};
use crate::p2p::conversion::Origin;
use crate::p2p::long::{arrived, data, streaming};
use crate::p2p::loss::ends;
use crate::p2p::message::Content;
use crate::p2p::placing::{lend, place_eager};
use crate::p2p::state::{answer, arrive, fill, keep, lied, settle};
use crate::p2p::{AnnouncedStage, SendStage, SendTask, State};
use crate::tools::waited::Awaited;

/// Who takes the frames that belong to no message: [`Kind::Protocol`].
pub(crate) trait Beside {
    /// One has arrived. `world`: the peer's.
    fn frame(&mut self, state: &mut State, peer: Peer, world: u32, header: &Header, payload: &[u8]);

    /// Memory for its payload, if it is known where that goes.
    fn place(&mut self, state: &mut State, peer: Peer, header: &Header) -> Placement;

    /// The payload has arrived where it was to go.
    fn placed(&mut self, state: &mut State, peer: Peer, header: &Header);
}

/// What transports report to.
pub(crate) struct Arrivals<'a, B> {
    state: &'a mut State,
    beside: &'a mut B,
}

impl<'a, B: Beside> Arrivals<'a, B> {
    #[inline(always)]
    pub(crate) fn at(state: &'a mut State, beside: &'a mut B) -> Self {
        Self { state, beside }
    }
}

/// `world`: the peer's.
fn eager(state: &mut State, peer: Peer, world: u32, header: &Header, payload: &[u8]) {
    let envelope = Envelope::of(header, world);
    let Ok(receive) = arrive(state, peer, &envelope) else {
        return lied(state, peer, &envelope);
    };
    match receive {
        Some(index) => {
            settle(state, peer, header.length, acknowledgement(header));
            if state.requests.fill_plainly(index, &envelope, payload) {
                state.tools.came.completes(Awaited::Message);
                state.events += 1;
                return;
            }
            fill(state, index, &envelope, Origin::new(peer, header.common), payload);
        }
        None if state.direct.fill(peer, &envelope, payload) => {
            state.events += 1;
            settle(state, peer, header.length, acknowledgement(header))
        }
        None => keep(state, peer, header, Content::keep(payload)),
    }
}

fn offered(state: &mut State, peer: Peer, header: &Header, handle: &[u8]) {
    let envelope = state.envelope(peer, header);
    let Ok(receive) = arrive(state, peer, &envelope) else {
        return lied(state, peer, &envelope);
    };
    match receive {
        Some(index) => {
            settle(state, peer, 0, 0);
            let origin = Origin::new(peer, header.common);
            answer(
                state,
                index,
                origin,
                &envelope,
                header.length,
                header.token,
                handle.into(),
            );
        }
        None => keep(state, peer, header, Content::Offered(handle.into())),
    }
}

/// Our send that a control frame of the peer names. One that was abandoned in the meantime is none; that is no mistake
/// of the peer.
fn waiting_send(state: &mut State, peer: Peer, header: &Header) -> Option<u32> {
    if state.unanswered.expects(peer, header.kind, header.token) {
        return None;
    }
    let index = state.requests.index(Request::from_raw(header.token));
    let waits = |task: &mut SendTask| task.peer == peer && task.stage == SendStage::Waiting;
    let right = index.filter(|&index| state.requests.send(index).is_some_and(waits));
    if right.is_none() {
        state.broken(peer, "an answer to a message that did not wait for one");
    }
    right
}

fn cleared(state: &mut State, peer: Peer, header: &Header) {
    let Some(index) = waiting_send(state, peer, header) else {
        return;
    };
    let Some(task) = state.requests.send(index) else { return };
    if header.length > task.header.length {
        return state.broken(peer, "clear to send for more than was offered");
    }
    let early = header.flags & ROOM != 0;
    let right = match task.announced {
        AnnouncedStage::Never => !early,
        AnnouncedStage::Announced => !early || header.length == task.header.length && header.length > 0,
        AnnouncedStage::Called => false,
    };
    if !right {
        return state.broken(
            peer,
            "clear to send for a message that was not announced, or was called in before",
        );
    }
    if early {
        task.announced = AnnouncedStage::Called;
    }
    task.receiver = header.auxiliary();
    task.wanted = header.length;
    task.bulk = header.flags & BULK != 0;
    if header.length == 0 && task.parts.is_none() {
        state.finish(index)
    } else {
        state.work.push_back(Work::Data(index))
    }
}

fn acknowledged(state: &mut State, peer: Peer, header: &Header) {
    if let Some(index) = waiting_send(state, peer, header) {
        state.finish(index);
    }
}

/// The sender's request to be named in an acknowledgement; 0: none is wanted.
#[inline]
fn acknowledgement(header: &Header) -> u64 {
    if header.kind == Kind::EagerSync {
        header.token
    } else {
        0
    }
}

impl<B: Beside> Sink for Arrivals<'_, B> {
    fn frame(&mut self, peer: Peer, header: &Header, payload: &[u8]) {
        let state = &mut *self.state;
        let known = &state.peers[peer];
        if known.broken() {
            return;
        }
        let world = known.world();
        state.tools.came.comes(known.level());
        state.tools.arrived(peer, header);
        match header.kind {
            Kind::Eager | Kind::EagerSync => eager(state, peer, world, header, payload),
            Kind::Rts => offered(state, peer, header, payload),
            Kind::Announce => announced(state, peer, header),
            Kind::Cts => cleared(state, peer, header),
            Kind::Data if Calls::names(header.token) => called_data(state, peer, header, payload),
            Kind::Data => data(state, peer, header, payload),
            Kind::Ack | Kind::Pulled => acknowledged(state, peer, header),
            Kind::Cancel => asked_back(state, peer, header),
            Kind::CancelReply => recalled(state, peer, header),
            Kind::Protocol => self.beside.frame(state, peer, world, header, payload),
            Kind::Assist => state.broken(peer, "a request to copy a message that this connection cannot copy"),
            Kind::Padding => state.broken(peer, "padding on a connection without padding"),
            Kind::Probe => state.broken(peer, "a measurement on a connection that is not measured"),
            Kind::Credit => {
                if !state.peers[peer].account_mut().credited(header.length) {
                    return state.broken(peer, "it gave more credit back than it had been lent");
                }
                if state.peers[peer].queued() {
                    state.work.push_back(Work::Flush(peer));
                }
            }
        }
    }

    fn place(&mut self, peer: Peer, header: &Header) -> Placement {
        let state = &mut *self.state;
        if state.peers[peer].broken() {
            return Placement::Collect;
        }
        match header.kind {
            Kind::Eager | Kind::EagerSync => place_eager(state, peer, header),
            Kind::Data => {
                let Some(index) = streaming(state, peer, header) else {
                    return Placement::Collect;
                };
                let memory = state.requests.receive(index).and_then(|task| task.buffer.memory());
                let at = header.auxiliary() as isize;
                memory.map_or(Placement::Collect, |memory| lend(state, index, memory.shifted(at)))
            }
            Kind::Protocol => self.beside.place(state, peer, header),
            _ => Placement::Collect,
        }
    }

    fn placed(&mut self, peer: Peer, header: &Header) {
        let state = &mut *self.state;
        let known = &state.peers[peer];
        if known.broken() {
            return;
        }
        state.tools.came.comes(known.level());
        if header.kind == Kind::Data {
            match streaming(state, peer, header) {
                Some(index) => arrived(state, index, header.auxiliary(), header.length),
                None => state.broken(peer, "data that this process did not ask for"),
            }
        } else if let Some(index) = state.placing.remove(&peer) {
            state.tools.arrived(peer, header);
            settle(state, peer, header.length, acknowledgement(header));
            state.finish(index);
        } else if header.kind == Kind::Protocol {
            self.beside.placed(state, peer, header);
        }
    }

    fn received(&mut self, peer: Peer, token: u64) {
        let state = &mut *self.state;
        let Some(index) = state.requests.index(Request::from_raw(token)) else {
            return;
        };
        if state.requests.receive(index).is_some_and(|task| task.peer == peer) {
            state.finish(index);
        }
    }

    fn sent(&mut self, peer: Peer, token: u64) {
        let state = &mut *self.state;
        let Some(index) = state.requests.index(Request::from_raw(token)) else {
            return;
        };
        if state
            .requests
            .send(index)
            .is_some_and(|task| task.peer == peer && task.stage == SendStage::Bulk)
        {
            state.finish(index);
        }
    }

    fn writable(&mut self, peer: Peer) {
        let state = &mut *self.state;
        if state.peers[peer].queued() {
            state.work.push_back(Work::Flush(peer));
        }
    }

    fn lost(&mut self, peer: Peer, reason: &str) {
        self.state.work.push_back(Work::Lost(peer, reason.into()));
    }

    fn ended(&mut self, peer: Peer) {
        if ends(self.state, peer) {
            self.state.work.push_back(Work::Ended(peer));
        }
    }
}
