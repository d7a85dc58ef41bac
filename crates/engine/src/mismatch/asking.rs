// SPDX-License-Identifier: Apache-2.0
//! Questions and answers of members that wait in collective operations ([above](crate::mismatch)).

use isthmus_protocol::matching::Context;
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Kind, protocol};

use crate::base::channel::Channel;
use crate::base::counters::Operation;
use crate::base::error::EngineError;
use crate::base::notes::{Amount, Made, Note, Odd, tag_of};
use crate::mismatch::{Found, Host, Question, Testimony, Which, Why};

/// Lowest byte of the upper half of a frame's token: what it says of the operation whose number is in the lower half.
/// The other three bytes stand for the amount of data.
const ASKS: u32 = 0;
const OTHER: u32 = 1;
const GAVE_UP: u32 = 2;
const OVER: u32 = 3;
/// It says nothing: there is a connection now, that is all ([`knocking`](crate::p2p::knocking)).
const KNOCKS: u32 = 4;
/// Of an odd one, in place of the name of an operation: it has given up, that is all.
const NOTHING: i32 = 0;
/// In place of a rank: this process itself has found that it cannot go on.
const ITSELF: u32 = u32::MAX;

/// Stands for the name of an operation, equal in all processes.
fn code(name: &str) -> i32 {
    let hash: u32 = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    // Whatever the name is, it is one.
    hash.max(1) as i32
}

fn frame(which: Which, says: u32, odd: Odd, amount: Amount) -> Header {
    let token = u64::from(amount.digest() << 8 | says) << 32 | u64::from(which.sequence);
    let context_and_rank = u64::from(which.context.number()) | u64::from(odd.rank()) << 32;
    Header {
        flags: protocol::AGREEMENT,
        tag: odd.code(),
        ..Header::control(Kind::Protocol, token, context_and_rank, 0)
    }
}

/// An operation, and no rank.
fn plain(which: Which, says: u32, code: i32, amount: Amount) -> Header {
    frame(which, says, Odd::new(0, code), amount)
}

/// It has given up because of that one. In place of the amount: whether amounts differ.
fn gave_up(which: Which, odd: Odd) -> Header {
    frame(which, GAVE_UP, odd, Amount::from_digest(u32::from(odd.lengths())))
}

/// What another member is asked by one that waits in this operation.
pub(crate) fn question(host: &impl Host, which: Which, operation: Operation) -> Header {
    let amount = host
        .agreement()
        .note(which)
        .map_or_else(Amount::default, |note| note.amount());
    plain(which, ASKS, code(host.tools().name(operation)), amount)
}

/// What says nothing and needs no answer.
pub(crate) fn knock() -> Header {
    let which = Which {
        context: Context::new(0, 0),
        sequence: 0,
    };
    plain(which, KNOCKS, NOTHING, Amount::default())
}

/// A frame of this protocol.
#[cold]
pub(crate) fn heard(host: &mut impl Host, peer: Peer, world: u32, header: &Header) {
    let which = Which {
        context: Context::new(world, header.context),
        sequence: header.token as u32,
    };
    let says = (header.token >> 32) as u32;
    let question = Question {
        peer,
        which,
        code: header.tag,
        amount: Amount::from_digest(says >> 8),
    };
    let why = match says & 0xff {
        ASKS => return compare(host, question),
        KNOCKS => return,
        OTHER => Why::Other(header.tag),
        GAVE_UP => Why::GaveUp(Odd::new(header.source, header.tag).with(question.amount != Amount::default())),
        OVER => Why::Over {
            dropped: question.amount != Amount::default(),
        },
        _ => return host.broken(peer, "something else than a question or an answer about an operation"),
    };
    if !host.agreement_mut().answered(peer) {
        return host.broken(peer, "an answer about an operation for which it was not asked");
    }
    host.agreement_mut().note_found(Found { peer, which, why });
}

/// Compares what a peer takes an operation for with what this process does.
fn compare(host: &mut impl Host, question: Question) {
    let Question {
        peer,
        which,
        code: theirs,
        amount,
    } = question;
    let Some(note) = host.agreement().note(which) else {
        return host.agreement_mut().keep(question);
    };
    if note.is_cut() {
        return;
    }
    let mine = code(host.tools().name(note.operation()));
    if mine == theirs && !amount.differs(note.amount()) {
        // Those who have called the same are told if it has come, or comes, to nothing.
        return match note.gave_up() {
            Some(odd) if odd.rank() == ITSELF => host.reply(peer, plain(which, OTHER, mine, note.amount())),
            Some(odd) => host.reply(peer, gave_up(which, odd)),
            None => host.agreement_mut().keep(question),
        };
    }
    host.reply(peer, plain(which, OTHER, mine, note.amount()));
    let why = Why::Other(theirs);
    host.agreement_mut().note_found(Found { peer, which, why });
}

/// A persistent operation is made by this call.
pub(crate) fn note_made(host: &mut impl Host, channel: &Channel, made: Made, call: Operation) {
    let Some(notes) = channel.notes.as_ref() else {
        return;
    };
    let which = Which {
        context: channel.context,
        sequence: made.call,
    };
    if host.agreement_mut().makes(notes, which, made.number, call) {
        compare_kept(host, which);
    }
}

/// An operation in messages begins, which others may have asked for.
#[inline]
pub(crate) fn begins(host: &mut impl Host, channel: &Channel, which: Which, operation: Operation, amount: Amount) {
    let Some(notes) = &channel.notes else { return };
    let note = Note::of(which.sequence, operation, amount);
    if host.agreement_mut().begins(notes, which.context, note) {
        compare_kept(host, which);
    }
}

/// This process has no part in an operation. Others may wait for it all the same: they hear that it is over here.
#[inline]
pub(crate) fn passes(host: &mut impl Host, channel: &Channel, which: Which, operation: Operation) {
    let Some(notes) = &channel.notes else { return };
    let note = Note::passing(which.sequence, operation);
    if host.agreement_mut().begins(notes, which.context, note) {
        compare_kept(host, which);
    }
    host.agreement_mut().passes();
}

/// An operation begins that others have asked for.
#[cold]
fn compare_kept(host: &mut impl Host, which: Which) {
    for question in host.agreement_mut().take_questions(which) {
        compare(host, question);
    }
}

/// This process cannot go on with the operation, since lengths do not fit: those who wait for it are told.
#[cold]
pub(crate) fn cannot_go_on(host: &mut impl Host, which: Which) {
    let Some(note) = host.agreement().note(which) else {
        return;
    };
    let code = code(host.tools().name(note.operation()));
    host.agreement().gives_up(which, Odd::new(ITSELF, code).with(true));
    for question in host.agreement_mut().take_questions(which) {
        host.reply(question.peer, plain(which, OTHER, code, note.amount()));
    }
}

/// The peer that has asked hears that the operation is over here. `dropped`: with a message of it that nobody expects.
#[cold]
pub(crate) fn answer_over(host: &mut impl Host, question: &Question, dropped: bool) {
    let amount = Amount::from_digest(u32::from(dropped));
    host.reply(question.peer, plain(question.which, OVER, question.code, amount));
}

/// Upper half of the tags of messages of that operation, and their context.
#[cold]
pub(crate) fn messages_of(host: &impl Host, which: Which) -> Option<(Context, i32)> {
    let operation = host.agreement().note(which)?.operation();
    let tag = tag_of(which.sequence, host.tools().apart(operation));
    Some((which.context.with(1), tag))
}

/// This process ends the operation: those who wait with it are told, but for the one it heard that from.
#[cold]
pub(crate) fn give_up(host: &mut impl Host, found: &Found, testimony: Testimony) {
    let (Testimony::FirstHand(odd) | Testimony::Said { odd, .. }) = testimony;
    let mine = host.agreement().note(found.which);
    let same = mine.is_some_and(|note| code(host.tools().name(note.operation())) == odd.code());
    let lengths = same || odd.lengths();
    let odd = match testimony {
        Testimony::FirstHand(odd) => odd.with(lengths),
        Testimony::Said { by, .. } => Odd::new(by, NOTHING).with(lengths),
    };
    host.agreement().gives_up(found.which, odd);
    for question in host.agreement_mut().take_questions(found.which) {
        if question.peer != found.peer {
            host.reply(question.peer, gave_up(found.which, odd));
        }
    }
}

/// What is known of the member that has called something else. `asked`: the ranks that were asked for this operation;
/// nobody else can have given it up. `None`: whoever says so is no member, or was not asked.
///
/// # Errors
/// What it says cannot be: nobody who has called the same as this process can have heard that.
#[cold]
pub(crate) fn known_of(channel: &Channel, asked: &[u32], found: &Found) -> Option<Result<Testimony, &'static str>> {
    let members = &channel.members;
    let teller = (0..members.count()).find(|&rank| members.peer(rank) == found.peer)?;
    let odd = match found.why {
        Why::Other(code) => {
            return Some(Ok(Testimony::FirstHand(Odd::new(teller, code))));
        }
        Why::GaveUp(odd) => odd,
        Why::Over { .. } => return None,
    };
    if !asked.contains(&teller) {
        return None;
    }
    let third = odd.rank() < members.count() && odd.rank() != teller && odd.rank() != channel.rank;
    Some(match third {
        true => Ok(Testimony::Said { by: teller, odd }),
        false => Err("it has given up an operation because of a member that cannot be the cause"),
    })
}

/// What the program is told by a member, which waits in this operation.
#[cold]
pub(crate) fn error_of(host: &impl Host, channel: &Channel, operation: Operation, testimony: Testimony) -> EngineError {
    let (me, mine) = (channel.rank, host.tools().name(operation));
    let named = |odd: Odd| match odd.code() {
        NOTHING => format!("rank {} has given it up", odd.rank()),
        // Whoever has called the same is named for nothing else.
        same if same == code(mine) => format!("rank {} has counts or datatypes that do not fit", odd.rank()),
        _ => {
            let theirs = host.tools().named(|name| code(name) == odd.code());
            format!("rank {} was in {}", odd.rank(), theirs.unwrap_or("another operation"))
        }
    };
    let (Testimony::FirstHand(odd) | Testimony::Said { odd, .. }) = testimony;
    let lengths = odd.lengths() || odd.code() == code(mine);
    let what = match testimony {
        Testimony::FirstHand(odd) => format!("rank {me} is in {mine}, {}", named(odd)),
        Testimony::Said { by, odd } => {
            format!(
                "rank {me} is in {mine}; rank {by}, which has given it up, says that {}",
                named(odd)
            )
        }
    };
    EngineError::Disagreement {
        what: what.into(),
        lengths,
    }
}
