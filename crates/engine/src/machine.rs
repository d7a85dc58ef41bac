// SPDX-License-Identifier: Apache-2.0
//! Machines: what an engine is made of besides its core. Each has requests of its own, and learns what concerns it
//! through one trait. Those of other rooms send through a [`Port`].

use std::any::Any;

use isthmus_datatype::Representation;
use isthmus_datatype::raw::WriteMemory;
use isthmus_transport::{Lent, Peer, Transport};
use isthmus_wire::frame::{Header, Kind, protocol};
use isthmus_wire::waiting::Item;

use crate::base::parcels::Parcel;
use crate::base::requests::{Owned, Owner};
use crate::p2p::Core;
use crate::p2p::beside::{enqueue, known_budget, leaves_at_once};
use crate::p2p::{State, Task};
use crate::{Channel, CompletedPart, Completion, EngineError, Operation, Request, SendBuffer};

/// A protocol, or a way to do operations, with a state of its own. `With`: what it works with, the core or more.
///
/// The engine calls the machines that it is made of without indirection. Others [register](crate::Engine::register)
/// themselves for frames of the kind [`Protocol`](isthmus_wire::frame::Kind::Protocol) with a number of theirs.
///
/// Frames of a machine come in the order in which its like at the peer has sent them, placed or not. What it does in
/// its methods is done with the engine locked, on whichever thread makes progress: it must not wait, nor call the
/// program.
pub trait Machine<With = Core>: Send {
    /// A frame of its protocol has arrived.
    fn frame(&mut self, port: &mut Port<'_>, peer: Peer, _: &Header, _: &[u8]) -> Taken {
        port.accuse(peer, "a frame for a protocol that takes none");
        Taken::Done
    }

    /// A long payload is about to be read from a stream: to where, if it is known already. The memory must have room
    /// for all of it from its origin on. Not all transports ask; [`Machine::frame`] follows where nothing is named.
    fn place(&mut self, _: &mut Port<'_>, _: Peer, _: &Header) -> Option<Lent<WriteMemory>> {
        None
    }

    /// The payload of a frame is where [`Machine::place`] has said, unless that was taken back meanwhile.
    fn placed(&mut self, _: &mut Port<'_>, _: Peer, _: &Header) {}

    /// Something that was [queued](Sending::Queued) under this name has left, or will not leave any more: its memory is
    /// not read from now on.
    fn sent(&mut self, _: &mut Port<'_>, _: Peer, _name: u64, _: Result<(), EngineError>) {}

    /// Whether frames may come that this process has to answer although it waits for nothing: then it makes progress
    /// while the program computes ([`Keeper`](crate::Keeper)). Whoever makes this true calls
    /// [`Shared::watch`](crate::Shared::watch).
    fn expects(&self) -> bool {
        false
    }

    /// Itself, for [`with_machine`](crate::with_machine).
    fn itself(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// A part of one of its requests is over.
    fn completed(&mut self, _: &mut With, _: CompletedPart) {}

    /// Moves what can be moved without waiting; true if anything happened.
    fn advance(&mut self, _: &mut With) -> bool {
        false
    }

    /// Before this process sleeps, when the transports are armed: whether nothing can be done now.
    fn may_sleep(&mut self, _: &mut With) -> bool {
        true
    }

    /// The peer is gone: what waits for it fails. [`Machine::sent`] has been called for all that had not left.
    fn lose(&mut self, _: &mut With, _: Peer) {}

    /// Whether everything that this process sends has left.
    fn is_flushed(&self) -> bool {
        true
    }

    /// What its request with this index waits for, for people.
    fn pending(&self, _: &State, _: u32) -> Option<Item> {
        None
    }
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The machine is done with it.
    Done,
    /// It waits for something, and takes memory meanwhile. [`Port::done`] follows; until then its sender has so much
    /// less credit.
    Kept,
}

/// What became of something that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Its memory may be used again.
    Left,
    /// [`Machine::sent`] follows, if it was given a name.
    Queued,
}

/// What a machine of another room does with the engine.
///
/// Everything that is sent to a peer leaves in the order of the calls. Frames are charged to the credit that the like
/// of the machine at the peer has given, and wait when that is used up; whoever sends more is lost.
pub struct Port<'a> {
    number: u8,
    state: &'a mut State,
    /// `None`: they are in use.
    transports: Option<&'a mut [Box<dyn Transport>]>,
    /// What is sent to this peer leaves together with what follows.
    gathers: Option<Peer>,
}

impl<'a> Port<'a> {
    pub(crate) fn new(number: u8, core: &'a mut Core) -> Self {
        Self {
            number,
            state: &mut core.state,
            transports: Some(&mut core.transports),
            gathers: None,
        }
    }

    /// While transports are in use.
    pub(crate) fn within(number: u8, state: &'a mut State) -> Self {
        Self {
            number,
            state,
            transports: None,
            gathers: None,
        }
    }

    /// Sends a frame without data. To a peer that is lost nothing is sent.
    pub fn tell(&mut self, peer: Peer, header: Header) {
        // Whoever waits for an answer hears of the loss by itself.
        let _ = self.send(peer, header, SendBuffer::EMPTY, None);
    }

    /// What was sent leaves before this thread goes on, and so does the next message.
    pub fn urge(&mut self) {
        for transport in self.transports.iter_mut().flat_map(|all| all.iter_mut()) {
            transport.urge();
        }
    }

    /// Sends `header` with a payload of any length, whose memory is read until it has left. Of the header, `tag`,
    /// `token`, `common` and [`auxiliary`](Header::auxiliary) (`context` and `source`) are the machine's. A payload
    /// that is too long for one frame comes in several: they have the same header, but for their lengths, and the
    /// offset of their first byte is added to `auxiliary`. `name`: how [`Machine::sent`] calls it.
    pub fn send(
        &mut self,
        peer: Peer,
        header: Header,
        payload: SendBuffer,
        name: Option<u64>,
    ) -> Result<Sending, EngineError> {
        let known = self.state.peer(peer).filter(|known| !known.own());
        let known = known.ok_or(EngineError::Misuse {
            what: "a frame of a protocol to this process itself, or to nobody",
        })?;
        if known.lost() {
            return Err(self.state.lost_error(peer));
        }
        let mut parcel = Parcel::new(self.number, header, payload, name);
        if let Some(transports) = &mut self.transports {
            if leaves_at_once(self.state, transports, peer, self.number, &mut parcel)? {
                return Ok(Sending::Left);
            }
        }
        enqueue(self.state, peer, self.number, parcel);
        Ok(Sending::Queued)
    }

    /// What `act` sends to the peer leaves together, as far as it is short. Within another one for the same peer: with
    /// all of that.
    pub fn together<T>(&mut self, peer: Peer, act: impl FnOnce(&mut Self) -> T) -> T {
        if self.gathers == Some(peer) {
            return act(self);
        }
        let route = self.state.peer(peer).map(|known| usize::from(known.route()));
        self.gather(route, |transport| transport.gather(peer));
        let outer = self.gathers.replace(peer);
        let done = act(self);
        self.gathers = outer;
        self.gather(route, |transport| transport.send_gathered(peer));
        done
    }

    fn gather(&mut self, route: Option<usize>, act: impl FnOnce(&mut dyn Transport)) {
        if let (Some(transports), Some(route)) = (&mut self.transports, route) {
            if let Some(transport) = transports.get_mut(route) {
                act(&mut **transport);
            }
        }
    }

    /// The machine is done with a frame of so many bytes that it had [kept](Taken::Kept).
    pub fn done(&mut self, peer: Peer, bytes: u64) {
        let Some(budget) = known_budget(self.state, peer, self.number) else {
            return;
        };
        if let Some(cost) = budget.done(bytes) {
            let mut credit = Header::control(Kind::Protocol, self.number.into(), cost, 0);
            credit.flags = protocol::CREDIT;
            self.state.reply(peer, credit);
        }
    }

    /// Functions of the program are due, which are [called](crate::Callbacks) with the engine free.
    pub fn call_back(&mut self) {
        self.state.happened();
        self.state.callbacks().set_due(true);
    }

    /// A communicator is revoked: everything that is pending on it ends as soon as transports are free
    /// ([`revoke`](crate::revoke)).
    #[cold]
    pub fn revoke(&mut self, channel: &Channel) {
        self.state.revoke_later(channel);
    }

    /// The peer has broken the rules of the protocol: it counts as lost, for this reason.
    #[cold]
    pub fn accuse(&mut self, peer: Peer, what: &str) {
        self.state.accuse(peer, what);
    }

    /// Why nothing can be sent to the peer, if that is so.
    pub fn loss(&self, peer: Peer) -> Option<EngineError> {
        let lost = self.state.peer(peer).is_some_and(|known| known.lost());
        lost.then(|| self.state.lost_error(peer))
    }

    /// How the peer represents data.
    pub fn representation(&self, peer: Peer) -> Representation {
        self.state.representation(peer)
    }

    /// How far away the peer is: the smaller the farther.
    pub fn level(&self, peer: Peer) -> u8 {
        self.state.peer(peer).map_or(0, |known| known.level())
    }

    /// Counts bytes of an operation of the machine to the peer, by how far away that is.
    pub fn count(&mut self, operation: Operation, peer: Peer, bytes: u64) {
        let level = self.level(peer);
        self.state.tools_mut().count(operation, level, bytes);
    }

    /// Counts operations of the machine that were done in memory of the node.
    pub fn count_in_memory(&mut self, operation: Operation, operations: u64, bytes: u64) {
        self.state.tools_mut().count_in_memory(operation, operations, bytes);
    }

    /// A request of this machine, which [completes](Self::complete) it.
    pub fn request(&mut self) -> Request {
        let owned = Owned::by(Owner::Registered(self.number));
        let index = self.state.requests_mut().insert(Task::Of(owned));
        self.state.requests().name(index)
    }

    /// What the request asked for is done.
    pub fn complete(&mut self, request: Request, completion: Completion) {
        let Some(index) = self.state.requests().index(request) else {
            return;
        };
        let own = Some(Owner::Registered(self.number));
        if self.state.requests().slot(index).task().owner() == own {
            *self.state.requests_mut().slot_mut(index).completion_mut() = completion;
            self.state.finish(index);
        }
    }
}
