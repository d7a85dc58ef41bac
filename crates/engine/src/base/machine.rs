// SPDX-License-Identifier: Apache-2.0
//! Machines: what an engine is made of besides its core. Each has requests of its own, and learns what concerns it
//! through one trait.

use isthmus_transport::Peer;
use isthmus_wire::frame::Header;
use isthmus_wire::waiting::Item;

use crate::Request;
use crate::base::core::Core;
use crate::base::state::State;

/// A part of a request that is over: a message of a plan, for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The request.
    pub of: Request,
    /// Which of its parts, as the machine numbers them.
    pub number: u32,
    /// Bytes, if it was a receive.
    pub bytes: u64,
}

/// A protocol, or a way to do operations, with a state of its own. `With`: what it works with, the core or more.
///
/// The engine calls the machines that it is made of without indirection. Others [register](crate::Engine::register)
/// themselves for frames of the kind [`Protocol`](isthmus_wire::frame::Kind::Protocol) with a number of theirs.
pub trait Machine<With = Core>: Send {
    /// A frame of its protocol has arrived. Transports are in use: what has to be sent is [put on the
    /// list](State::reply).
    fn frame(&mut self, state: &mut State, peer: Peer, _: &Header, _: &[u8]) {
        state.broken(peer, "a frame for a protocol that takes none");
    }

    /// A part of one of its requests is over.
    fn completed(&mut self, _: &mut With, _: Part) {}

    /// Moves what can be moved without waiting; true if anything happened.
    fn advance(&mut self, _: &mut With) -> bool {
        false
    }

    /// Before this process sleeps, when the transports are armed: whether nothing can be done now.
    fn may_sleep(&mut self, _: &mut With) -> bool {
        true
    }

    /// The peer is gone: what waits for it fails.
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

/// Machines that have registered themselves, by number.
#[derive(Default)]
pub(crate) struct Machines(Vec<Registered>);

struct Registered {
    number: u8,
    /// `None`: it is at work.
    machine: Option<Box<dyn Machine>>,
}

impl Machines {
    pub(crate) fn add(&mut self, number: u8, machine: Box<dyn Machine>) {
        self.0.retain(|registered| registered.number != number);
        self.0.push(Registered {
            number,
            machine: Some(machine),
        });
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of the one that registered itself after `at` others.
    #[inline]
    pub(crate) fn number(&self, at: usize) -> Option<u8> {
        self.0.get(at).map(|registered| registered.number)
    }

    fn find(&mut self, number: u8) -> Option<&mut Option<Box<dyn Machine>>> {
        let mut all = self.0.iter_mut();
        all.find(|registered| registered.number == number)
            .map(|registered| &mut registered.machine)
    }

    pub(crate) fn get(&self, number: u8) -> Option<&dyn Machine> {
        let found = self.0.iter().find(|registered| registered.number == number)?;
        found.machine.as_deref()
    }

    /// Takes it to let it work; [`Machines::put`] must follow.
    pub(crate) fn take(&mut self, number: u8) -> Option<Box<dyn Machine>> {
        self.find(number)?.take()
    }

    pub(crate) fn put(&mut self, number: u8, machine: Box<dyn Machine>) {
        if let Some(place) = self.find(number) {
            *place = Some(machine);
        }
    }
}
