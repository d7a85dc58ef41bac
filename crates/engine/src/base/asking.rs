// SPDX-License-Identifier: Apache-2.0
//! Questions and answers of members that wait in collective operations ([`agreement`](crate::base::agreement)).

use isthmus_protocol::matching::Context;
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Kind, protocol};

use crate::base::agreement::{Found, Made, Odd, Question, Which, Why};
use crate::base::channel::Channel;
use crate::base::counters::Operation;
use crate::base::error::EngineError;
use crate::base::state::State;

/// Upper half of a frame's token: what it says of the operation whose number is in the lower half.
const ASKS: u32 = 0;
const OTHER: u32 = 1;
const GAVE_UP: u32 = 2;

/// Stands for the name of an operation, equal in all processes.
fn code(name: &str) -> i32 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash as i32
}

fn frame(which: Which, says: u32, odd: Odd) -> Header {
    let token = u64::from(says) << 32 | u64::from(which.sequence);
    let context_and_rank = u64::from(which.context.number()) | u64::from(odd.rank) << 32;
    Header {
        flags: protocol::AGREEMENT,
        tag: odd.code,
        ..Header::control(Kind::Protocol, token, context_and_rank, 0)
    }
}

/// An operation, and no rank.
fn plain(which: Which, says: u32, code: i32) -> Header {
    frame(which, says, Odd { rank: 0, code })
}

/// What another member is asked by one that waits in this operation.
pub(crate) fn question(state: &State, which: Which, operation: Operation) -> Header {
    plain(which, ASKS, code(state.tools.name(operation)))
}

/// A frame of this protocol.
#[cold]
pub(crate) fn heard(state: &mut State, peer: Peer, world: u32, header: &Header) {
    let which = Which {
        context: Context::new(world, header.context),
        sequence: header.token as u32,
    };
    let question = Question {
        peer,
        which,
        code: header.tag,
    };
    let why = match (header.token >> 32) as u32 {
        ASKS => return compare(state, question),
        OTHER => Why::Other(header.tag),
        GAVE_UP => Why::GaveUp(Odd {
            rank: header.source,
            code: header.tag,
        }),
        _ => return state.broken(peer, "something else than a question or an answer about an operation"),
    };
    state.agreement.note_found(Found { peer, which, why });
}

/// Compares what a peer takes an operation for with what this process does.
fn compare(state: &mut State, question: Question) {
    let Question {
        peer,
        which,
        code: theirs,
    } = question;
    let Some(note) = state.agreement.note(which) else {
        return state.agreement.keep(question);
    };
    if let Some(odd) = note.gave_up {
        return state.reply(peer, frame(which, GAVE_UP, odd));
    }
    let mine = code(state.tools.name(note.operation));
    if mine == theirs {
        // To be told if it comes to nothing.
        return state.agreement.keep(question);
    }
    state.reply(peer, plain(which, OTHER, mine));
    let why = Why::Other(theirs);
    state.agreement.note_found(Found { peer, which, why });
}

/// A persistent operation is made by this call.
pub(crate) fn note_made(state: &mut State, channel: &Channel, made: Made, call: Operation) {
    let Some(notes) = channel.notes.as_ref().filter(|_| channel.frame.is_none()) else {
        return;
    };
    let which = Which {
        context: channel.context,
        sequence: made.call,
    };
    if state.agreement.makes(notes, which, made.number, call) {
        compare_kept(state, which);
    }
}

/// An operation begins that others may have asked for.
#[cold]
pub(crate) fn compare_kept(state: &mut State, which: Which) {
    for question in state.agreement.take_questions(which) {
        compare(state, question);
    }
}

/// This process ends the operation: those who wait with it are told, but for the one it heard that from.
#[cold]
pub(crate) fn give_up(state: &mut State, found: &Found, odd: Odd) {
    state.agreement.gives_up(found.which, odd);
    for question in state.agreement.take_questions(found.which) {
        if question.peer != found.peer {
            state.reply(question.peer, frame(found.which, GAVE_UP, odd));
        }
    }
}

/// The member that has called something else; `None`: whoever says so is no member, or names none.
#[cold]
pub(crate) fn odd_of(channel: &Channel, found: &Found) -> Option<Odd> {
    let members = &channel.members;
    let teller = (0..members.count()).find(|&rank| members.peer(rank) == found.peer)?;
    match found.why {
        Why::Other(code) => Some(Odd { rank: teller, code }),
        Why::GaveUp(odd) => (odd.rank < members.count()).then_some(odd),
    }
}

/// What the program is told by a member, which waits in this operation.
#[cold]
pub(crate) fn error_of(state: &State, channel: &Channel, operation: Operation, odd: Odd) -> EngineError {
    let (me, mine, other) = (channel.rank, state.tools.name(operation), odd.rank);
    let theirs = state.tools.named(|name| code(name) == odd.code);
    let theirs = theirs.unwrap_or("another operation");
    EngineError::Disagreement {
        what: format!("rank {me} is in {mine}, rank {other} was in {theirs}").into(),
        lengths: false,
    }
}
