// SPDX-License-Identifier: Apache-2.0
//! The end of an engine, and transports that leave before it.

use isthmus_transport::{Peer, Transport};

use crate::Engine;
use crate::base::retired;
use crate::engine::leave;
use crate::machine::Machine;
use crate::machines::Machines;
use crate::p2p::Core;
use crate::p2p::arrivals::Arrivals;
use crate::p2p::loss::{self, forget_losses};

impl Engine {
    /// Whether all sends are pushed out, so that this process may leave MPI alone for a while. Call it with
    /// [`crate::Shared::wait`], which makes progress. `unanswered`: messages that nobody has received yet do not count.
    pub fn is_flushed(&mut self, unanswered: bool) -> bool {
        has_left(self, unanswered) && self.core.transports.iter().all(|transport| transport.is_flushed())
    }

    /// Before the end, called repeatedly (with [`crate::Shared::wait`]) until true: all sends have left and arrived as
    /// far as transports know. This process wants nothing any more; others still may, so it goes on making progress
    /// until all have come here. Messages that nobody has received yet do not keep it from ending: whoever receives
    /// one does so before it comes here itself.
    pub fn settle(&mut self) -> bool {
        has_left(self, true) && each_transport(self, |transport, arrivals| transport.settle(arrivals))
    }

    /// Orderly end, called repeatedly (with [`crate::Shared::wait`]) until true, when all processes have settled:
    /// transports closed. What is [`unreceived`] then stays so.
    pub fn close(&mut self) -> bool {
        has_left(self, true) && each_transport(self, |transport, arrivals| transport.close(arrivals))
    }
}

/// Whether all sends are over, or (`unanswered`) wait for nothing but their receivers' answers.
fn has_left(engine: &mut Engine, unanswered: bool) -> bool {
    engine.work();
    engine.vendor.advance(&mut engine.core);
    let requests = engine.core.state.requests();
    let ours = requests.sends() == 0 || (unanswered && requests.sends() == requests.unanswered().count());
    let ours = ours && !engine.core.state.has_outgoing();
    ours && (unanswered || engine.vendor.is_flushed())
        && !engine
            .machines
            .each(&mut engine.core, |machine, _| !machine.is_flushed())
}

/// Whether all transports say yes; all are asked.
fn each_transport(
    engine: &mut Engine,
    mut ask: impl FnMut(&mut dyn Transport, &mut Arrivals<'_, Machines>) -> bool,
) -> bool {
    let Core { transports, state } = &mut engine.core;
    let mut arrivals = Arrivals::at(state, &mut engine.machines);
    let mut all = true;
    for transport in transports {
        all &= ask(&mut **transport, &mut arrivals);
    }
    all
}

/// A transport leaves, whose peers nobody will talk to any more. Its number is free, and its peers count as lost for
/// this reason. It has been closed ([`close_transport`]).
pub fn retire_transport(engine: &mut Engine, number: u8, reason: &str) -> Option<Box<dyn Transport>> {
    let served = leave(engine, number);
    served.iter().for_each(|&peer| engine.core.lose(peer, reason.into()));
    engine.work();
    // It was no accident: communicators without them are not asked about it for ever.
    forget_losses(&mut engine.core.state, &served);
    drop_transport(engine, number)
}

/// A transport leaves all of whose peers are lost. Its number is free, and what is known of the losses stays.
pub fn drop_transport(engine: &mut Engine, number: u8) -> Option<Box<dyn Transport>> {
    leave(engine, number);
    let place = engine.core.transports.get_mut(usize::from(number))?;
    Some(std::mem::replace(place, Box::new(retired::retired())))
}

/// Nobody has anything to do with these peers any more, whose transports have left: nothing is kept of them.
pub fn forget(engine: &mut Engine, peers: &[Peer]) {
    loss::forget(&mut engine.core.state, peers);
}

/// Orderly end of one transport, called repeatedly (with [`Shared::wait`](crate::Shared::wait)) until true.
pub fn close_transport(engine: &mut Engine, number: u8) -> bool {
    engine.work();
    let Core { transports, state } = &mut engine.core;
    transports
        .get_mut(usize::from(number))
        .is_none_or(|transport| transport.close(&mut Arrivals::at(state, &mut engine.machines)))
}

/// Messages of this process that nobody has received, in words: how many, and what one of them is. Looks through all
/// requests.
pub fn unreceived(engine: &Engine) -> Option<String> {
    let state = &engine.core.state;
    let theirs = engine.vendor.unfinished();
    let mut ours = state.requests().unanswered();
    let Some(first) = ours.next() else {
        return match theirs {
            0 => None,
            1 => Some("a message that went by the vendor MPI".to_owned()),
            theirs => Some(format!("{theirs} messages that went by the vendor MPI")),
        };
    };
    let (length, tag, to) = (first.header().length, first.header().tag, state.name(first.peer()));
    Some(match ours.count() + theirs {
        0 => format!("a message of {length} bytes with tag {tag} to {to}"),
        others => format!(
            "{} messages; one has {length} bytes and tag {tag} and is to {to}",
            others + 1
        ),
    })
}
