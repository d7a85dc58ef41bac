// SPDX-License-Identifier: Apache-2.0
//! One connection from its first byte until it is proven to be the one to a rank of this job.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use isthmus_identity::Identity;
use isthmus_transport::Peer;
use isthmus_wire::gateway::READY;
use isthmus_wire::hello::{
    ANSWER_BYTES, GREETING_BYTES, Greeting, KNOCK_BYTES, MAGIC, Purpose, REPLY_BYTES, USE, YOU_DECIDE,
};
use isthmus_wire::place::Rank;

use crate::config::Reach;
use crate::hello::{Answered, Ends, Knocked, Prover, Side};
use crate::places::Places;
use crate::secure::{Scratch, Secure};
use crate::socket::{self, Interest};

use super::failure::Failure;
use super::last_word::LastWord;
use super::pieces::{Claim, Part};
use isthmus_link::line::By;

/// First byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 22;

/// What a handshake needs to know of the process.
pub(super) struct Context<'a> {
    pub(super) places: &'a Places,
    pub(super) prover: &'a Prover,
    /// Of connections with gateways, where there are any.
    pub(super) gate: Option<&'a Prover>,
    pub(super) identity: Option<&'a Identity>,
    /// Whether another connection to this peer, for this purpose, is wanted.
    pub(super) admits: &'a dyn Fn(Peer, Purpose) -> bool,
    /// Whether it counts as lost, and is to hear so.
    pub(super) given_up: &'a dyn Fn(Peer) -> bool,
    pub(super) scratch: &'a mut Scratch,
}

impl Context<'_> {
    /// A connection that this process dials.
    fn to(&self, peer: Peer) -> Result<Ends, Outcome> {
        Ok(Ends::of(self.places.me().0, self.rank(peer)?.0))
    }

    /// Whom wires and certificates of this job call so.
    fn rank(&self, peer: Peer) -> Result<Rank, Outcome> {
        let unknown = Outcome::Failed(Failure::Bug("a process of another job was dialled"));
        self.places.rank(peer).ok_or(unknown)
    }

    /// The process with the rank that a stranger claims, if it is reached so.
    fn claimed(&self, rank: Rank, way: Reach) -> Result<Peer, Outcome> {
        let peer = self.places.peer(rank).filter(|_| self.places.reach(rank) == way);
        peer.ok_or(Outcome::Failed(Failure::Stranger))
    }

    /// Of two connections that both ends have dialled at once, whether this process says which one counts: both find
    /// the same answer.
    fn decides(&self, peer: Peer) -> bool {
        self.places.rank(peer).is_some_and(|rank| self.places.me() < rank)
    }
}

pub(super) enum Outcome {
    Wait,
    /// This connection is the one to this peer.
    Proven(Peer, Proven),
    Failed(Failure),
    /// The peer that we want has been asked to dial us.
    Asked,
    /// This peer asks to be dialled.
    Called(Peer),
    /// This peer, which counts as lost, has heard so.
    Over(Peer),
}

/// What a dialler wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) peer: Peer,
    /// Which of its candidates.
    pub(super) candidate: usize,
    pub(super) way: Reach,
    pub(super) by: By,
    /// What it carries makes way for others, at gateways.
    pub(super) makes_way: bool,
}

pub(super) enum Proven {
    Plain(OwnedFd),
    /// `early`: what the peer sent right behind its part of the handshake.
    Wide {
        secure: Box<Secure>,
        early: Vec<u8>,
        purpose: Purpose,
    },
}

pub(super) struct Handshake {
    pub(super) deadline: Duration,
    /// Whom we dialled, and which of its addresses.
    pub(super) dialled: Option<(Peer, usize)>,
    pub(super) by: By,
    makes_way: bool,
    /// Of one that we dialled.
    pub(super) purpose: Purpose,
    pub(super) watched: Interest,
    stage: Stage,
}

enum Stage {
    // Accepted.
    First(OwnedFd, Part<KNOCK_BYTES>),
    Reply(OwnedFd, Answered, Part<REPLY_BYTES>),
    /// The reply was good.
    Claim(OwnedFd, Answered, Claim),
    /// From a gateway: somebody asks to be dialled.
    Call(OwnedFd, Answered, Part<REPLY_BYTES>),
    // Dialled.
    Connecting(OwnedFd, Reach),
    Answer(OwnedFd, Knocked, Part<ANSWER_BYTES>),
    /// The answer was good.
    AnswerClaim(OwnedFd, Answered, Claim),
    Verdict(OwnedFd),
    // Dialled, at our gateway.
    GateAnswer(OwnedFd, Knocked, Part<ANSWER_BYTES>),
    GateVerdict(OwnedFd),
    // Both.
    Tls {
        secure: Box<Secure>,
        early: Vec<u8>,
        greeted: bool,
    },
    LastWord(LastWord),
    Over,
}

/// Whether the other end, which is this side, is the rank that it says it is.
fn check(cx: &Context<'_>, claim: &Claim, answered: &Answered, side: Side) -> Result<(), Outcome> {
    let identity = cx.identity.ok_or(Outcome::Failed(Failure::NoCertificate))?;
    answered
        .check(cx.prover, side, identity, claim.bytes())
        .map_err(|e| Outcome::Failed(e.into()))
}

/// Proves at our side that we are the rank that we say we are.
fn credential(cx: &Context<'_>, answered: &Answered, side: Side) -> Result<Vec<u8>, Outcome> {
    let identity = cx.identity.ok_or(Outcome::Failed(Failure::NoCertificate))?;
    answered
        .credential(cx.prover, side, identity)
        .map_err(|e| Outcome::Failed(e.into()))
}

/// Outcome or the next stage.
type Next = Result<Stage, Outcome>;

fn fail<T>(reason: impl Into<Failure>) -> Result<T, Outcome> {
    Err(Outcome::Failed(reason.into()))
}

impl Handshake {
    pub(super) fn accept(socket: OwnedFd, deadline: Duration) -> Self {
        Self {
            deadline,
            dialled: None,
            by: By::Direct,
            makes_way: false,
            purpose: Purpose::First,
            watched: Interest::READ,
            stage: Stage::First(socket, Part::new()),
        }
    }

    pub(super) fn dial(socket: OwnedFd, deadline: Duration, target: Target, purpose: Purpose) -> Self {
        let stage = Stage::Connecting(socket, target.way);
        Self {
            deadline,
            dialled: Some((target.peer, target.candidate)),
            by: target.by,
            makes_way: target.makes_way,
            purpose,
            watched: Interest::WRITE,
            stage,
        }
    }

    /// Nothing was received yet.
    pub(super) fn silent(&self) -> bool {
        matches!(&self.stage, Stage::First(_, part) if part.have == 0)
    }

    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.stage {
            Stage::First(s, _)
            | Stage::Reply(s, ..)
            | Stage::Claim(s, ..)
            | Stage::AnswerClaim(s, ..)
            | Stage::Call(s, ..)
            | Stage::GateAnswer(s, ..)
            | Stage::GateVerdict(s)
            | Stage::Connecting(s, _)
            | Stage::Answer(s, ..)
            | Stage::Verdict(s) => Some(s.as_fd()),
            Stage::Tls { secure, .. } => Some(secure.socket.as_fd()),
            Stage::LastWord(word) => Some(word.socket()),
            Stage::Over => None,
        }
    }

    pub(super) fn interest(&self) -> Interest {
        match &self.stage {
            Stage::Connecting(..) => Interest::WRITE,
            Stage::Tls { secure, .. } => Interest {
                read: true,
                write: secure.full(),
            },
            _ => Interest::READ,
        }
    }

    /// Goes as far as the bytes that are there allow.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>) -> Outcome {
        loop {
            let before = std::mem::discriminant(&self.stage);
            let stage = std::mem::replace(&mut self.stage, Stage::Over);
            let next = match stage {
                Stage::First(socket, part) => first(cx, socket, part),
                Stage::Reply(socket, answered, part) => reply(cx, socket, answered, part),
                Stage::Claim(socket, answered, claim) => self::claim(cx, socket, answered, claim),
                Stage::AnswerClaim(socket, answered, claim) => self.answer_claim(cx, socket, answered, claim),
                Stage::Connecting(socket, way) => self.connecting(cx, socket, way),
                Stage::Answer(socket, knocked, part) => Self::answer(cx, socket, knocked, part),
                Stage::Verdict(socket) => self.verdict(cx, socket),
                Stage::GateAnswer(socket, knocked, part) => self.gate_answer(cx, socket, knocked, part),
                Stage::GateVerdict(socket) => self.gate_verdict(cx, socket),
                Stage::Call(socket, answered, part) => call(cx, socket, answered, part),
                Stage::Tls { secure, early, greeted } => self.tls(cx, secure, early, greeted),
                Stage::LastWord(word) => go_on(cx, word),
                Stage::Over => fail(Failure::Bug("a handshake went on after its end")),
            };
            match next {
                Ok(stage) => self.stage = stage,
                Err(outcome) => return outcome,
            }
            if std::mem::discriminant(&self.stage) == before {
                return Outcome::Wait;
            }
        }
    }

    fn connecting(&self, cx: &Context<'_>, socket: OwnedFd, way: Reach) -> Next {
        let Some((peer, _)) = self.dialled else {
            return fail(Failure::Bug("nobody was dialled"));
        };
        if let Err(e) = socket::connected(&socket) {
            return fail(e);
        }
        socket::tune(&socket);
        if self.by != By::Direct {
            return knock_at_gate(cx, socket, peer);
        }
        if way == Reach::Tls {
            return dial_tls(cx, socket, peer);
        }
        let Some((knocked, bytes)) = Knocked::new(cx.prover, cx.to(peer)?) else {
            return fail(Failure::NoRandom);
        };
        say(&socket, &bytes)?;
        Ok(Stage::Answer(socket, knocked, Part::new()))
    }

    fn answer(cx: &Context<'_>, socket: OwnedFd, knocked: Knocked, mut part: Part<ANSWER_BYTES>) -> Next {
        if !part.read(&socket).map_err(Outcome::Failed)? {
            return Ok(Stage::Answer(socket, knocked, part));
        }
        let Some(answered) = knocked.heard(cx.prover, &part.bytes) else {
            return fail(Failure::Stranger);
        };
        Ok(Stage::AnswerClaim(socket, answered, Claim::new(YOU_DECIDE)))
    }

    fn answer_claim(&self, cx: &Context<'_>, socket: OwnedFd, answered: Answered, mut claim: Claim) -> Next {
        if !claim.read(&socket).map_err(Outcome::Failed)? {
            return Ok(Stage::AnswerClaim(socket, answered, claim));
        }
        check(cx, &claim, &answered, Side::Acceptor)?;
        let peer = cx.claimed(answered.ends.to, Reach::Tcp)?;
        let deciding = cx.decides(peer);
        let reply = answered.reply(cx.prover, if deciding { USE } else { YOU_DECIDE });
        say(
            &socket,
            &[&reply[..], &credential(cx, &answered, Side::Dialler)?].concat(),
        )?;
        if deciding {
            Err(Outcome::Proven(peer, Proven::Plain(socket)))
        } else {
            Ok(Stage::Verdict(socket))
        }
    }

    fn gate_answer(&self, cx: &Context<'_>, socket: OwnedFd, knocked: Knocked, mut part: Part<ANSWER_BYTES>) -> Next {
        if !part.read(&socket).map_err(Outcome::Failed)? {
            return Ok(Stage::GateAnswer(socket, knocked, part));
        }
        let wish = self.by.wish(self.makes_way);
        let reply = cx.gate.and_then(|prover| knocked.reply(prover, &part.bytes, wish));
        say(&socket, &reply.ok_or_else(|| Outcome::Failed(Failure::Stranger))?)?;
        Ok(Stage::GateVerdict(socket))
    }

    fn gate_verdict(&self, cx: &Context<'_>, socket: OwnedFd) -> Next {
        let Some((peer, _)) = self.dialled else {
            return fail(Failure::Stranger);
        };
        let mut part = Part::<1>::new();
        if !part.read(&socket).map_err(Outcome::Failed)? {
            return Ok(Stage::GateVerdict(socket));
        }
        match (part.bytes[0] == READY, self.by) {
            (false, _) => fail(Failure::NoWay),
            (true, By::Call) => Err(Outcome::Asked),
            (true, _) => dial_tls(cx, socket, peer),
        }
    }

    fn verdict(&self, cx: &Context<'_>, socket: OwnedFd) -> Next {
        let Some((peer, _)) = self.dialled else {
            return fail(Failure::Stranger);
        };
        let mut part = Part::<1>::new();
        if !part.read(&socket).map_err(Outcome::Failed)? {
            return Ok(Stage::Verdict(socket));
        }
        if part.bytes[0] != USE || !(cx.admits)(peer, Purpose::First) {
            return fail(Failure::Stranger);
        }
        Err(Outcome::Proven(peer, Proven::Plain(socket)))
    }

    fn tls(&self, cx: &mut Context<'_>, mut secure: Box<Secure>, mut early: Vec<u8>, mut greeted: bool) -> Next {
        let broken = |e: crate::secure::Broken| Outcome::Failed(e.into());
        secure.flush().map_err(broken)?;
        // What was read to recognise TLS may be all there is for now.
        if !greeted {
            secure
                .go_on(cx.scratch, &mut |b| early.extend_from_slice(b))
                .map_err(broken)?;
        }
        while !secure.ended
            && early.len() < GREETING_BYTES
            && secure
                .read(cx.scratch, &mut |b| early.extend_from_slice(b))
                .map_err(broken)?
                > 0
        {}
        let Some((peer, _)) = self.dialled else {
            return greeting(cx, secure, early);
        };
        if secure.open && !greeted {
            let deciding = cx.decides(peer) || self.purpose.is_more();
            let verdict = if deciding { USE } else { YOU_DECIDE };
            let greeting = Greeting {
                from: cx.places.me().0,
                to: cx.rank(peer)?.0,
                verdict,
                purpose: self.purpose,
            };
            secure.write_short(&greeting.encode()).map_err(broken)?;
            greeted = true;
            if deciding {
                return self.wide(cx, peer, secure, early);
            }
        }
        if greeted && !early.is_empty() {
            if early.remove(0) != USE || !((cx.admits)(peer, self.purpose) || (cx.given_up)(peer)) {
                return fail(Failure::Stranger);
            }
            return self.wide(cx, peer, secure, early);
        }
        if secure.ended {
            fail(Failure::Closed)
        } else {
            Ok(Stage::Tls { secure, early, greeted })
        }
    }

    fn wide(&self, cx: &Context<'_>, peer: Peer, secure: Box<Secure>, early: Vec<u8>) -> Next {
        if (cx.given_up)(peer) {
            return last_word(peer, secure, &[]);
        }
        let purpose = self.purpose;
        Err(Outcome::Proven(peer, Proven::Wide { secure, early, purpose }))
    }
}

/// The first bytes tell a knock from TLS; anything else is closed without a word.
fn first(cx: &Context<'_>, socket: OwnedFd, mut part: Part<KNOCK_BYTES>) -> Next {
    let complete = part.read(&socket).map_err(Outcome::Failed)?;
    let seen = &part.bytes[..part.have];
    if seen.first() == Some(&TLS_HANDSHAKE) {
        let Some(identity) = cx.identity else {
            return fail(Failure::Stranger);
        };
        socket::tune(&socket);
        let secure = Secure::accept(socket, identity.server(), seen).map_err(|e| Outcome::Failed(e.into()))?;
        return Ok(Stage::Tls {
            secure: Box::new(secure),
            early: Vec::new(),
            greeted: false,
        });
    }
    let n = seen.len().min(MAGIC.len());
    if seen[..n] != MAGIC[..n] {
        return fail(Failure::Stranger);
    }
    if !complete {
        return Ok(Stage::First(socket, part));
    }
    let Some((answered, bytes)) = Answered::new(cx.prover, cx.places.me(), &part.bytes) else {
        return called(cx, socket, &part.bytes);
    };
    cx.claimed(answered.ends.from, Reach::Tcp)?;
    socket::tune(&socket);
    let credential = credential(cx, &answered, Side::Acceptor)?;
    say(&socket, &[&bytes[..], &credential].concat())?;
    Ok(Stage::Reply(socket, answered, Part::new()))
}

/// A knock that is none of a rank: perhaps a gateway's.
fn called(cx: &Context<'_>, socket: OwnedFd, knock: &[u8; KNOCK_BYTES]) -> Next {
    let known = cx.gate.and_then(|prover| Answered::new(prover, cx.places.me(), knock));
    let Some((answered, bytes)) = known else {
        return fail(Failure::Stranger);
    };
    cx.claimed(answered.ends.from, Reach::Tls)?;
    socket::tune(&socket);
    say(&socket, &bytes)?;
    Ok(Stage::Call(socket, answered, Part::new()))
}

fn call(cx: &Context<'_>, socket: OwnedFd, answered: Answered, mut part: Part<REPLY_BYTES>) -> Next {
    if !part.read(&socket).map_err(Outcome::Failed)? {
        return Ok(Stage::Call(socket, answered, part));
    }
    let proven = cx.gate.and_then(|prover| answered.verdict(prover, &part.bytes));
    if proven.is_none() {
        return fail(Failure::Stranger);
    }
    say(&socket, &[READY])?;
    Err(Outcome::Called(cx.claimed(answered.ends.from, Reach::Tls)?))
}

fn knock_at_gate(cx: &Context<'_>, socket: OwnedFd, peer: Peer) -> Next {
    let ends = cx.to(peer)?;
    let Some((knocked, bytes)) = cx.gate.and_then(|prover| Knocked::new(prover, ends)) else {
        return fail(Failure::NoGateway);
    };
    say(&socket, &bytes)?;
    Ok(Stage::GateAnswer(socket, knocked, Part::new()))
}

fn reply(cx: &Context<'_>, socket: OwnedFd, answered: Answered, mut part: Part<REPLY_BYTES>) -> Next {
    if !part.read(&socket).map_err(Outcome::Failed)? {
        return Ok(Stage::Reply(socket, answered, part));
    }
    let Some(verdict) = answered.verdict(cx.prover, &part.bytes) else {
        return fail(Failure::Stranger);
    };
    Ok(Stage::Claim(socket, answered, Claim::new(verdict)))
}

fn claim(cx: &Context<'_>, socket: OwnedFd, answered: Answered, mut claim: Claim) -> Next {
    if !claim.read(&socket).map_err(Outcome::Failed)? {
        return Ok(Stage::Claim(socket, answered, claim));
    }
    check(cx, &claim, &answered, Side::Dialler)?;
    let peer = cx.claimed(answered.ends.from, Reach::Tcp)?;
    if settle(cx, peer, claim.verdict, Purpose::First)? {
        say(&socket, &[USE])?;
    }
    Err(Outcome::Proven(peer, Proven::Plain(socket)))
}

/// The first message inside TLS, at the acceptor.
fn greeting(cx: &Context<'_>, mut secure: Box<Secure>, mut early: Vec<u8>) -> Next {
    if early.len() < GREETING_BYTES {
        return if secure.ended {
            fail(Failure::Closed)
        } else {
            Ok(Stage::Tls {
                secure,
                early,
                greeted: false,
            })
        };
    }
    let rest = early.split_off(GREETING_BYTES);
    let decoded = <&[u8; GREETING_BYTES]>::try_from(early.as_slice())
        .ok()
        .and_then(Greeting::decode);
    let (Some(greeting), Some(identity)) = (decoded, cx.identity) else {
        return fail(Failure::Stranger);
    };
    let from = Rank(greeting.from);
    if Rank(greeting.to) != cx.places.me() || from == cx.places.me() {
        return fail(Failure::Stranger);
    }
    let peer = cx.claimed(from, Reach::Tls)?;
    identity
        .check(secure.peer_certificates(), from.0)
        .map_err(|e| Outcome::Failed(e.into()))?;
    if (cx.given_up)(peer) {
        let verdict: &[u8] = if decides(cx, peer, greeting.purpose) {
            &[USE]
        } else {
            &[]
        };
        return last_word(peer, secure, verdict);
    }
    if settle(cx, peer, greeting.verdict, greeting.purpose)? {
        secure.write_short(&[USE]).map_err(|e| Outcome::Failed(e.into()))?;
    }
    let (early, purpose) = (rest, greeting.purpose);
    Err(Outcome::Proven(peer, Proven::Wide { secure, early, purpose }))
}

fn last_word(peer: Peer, secure: Box<Secure>, verdict: &[u8]) -> Next {
    let word = LastWord::say(peer, secure, verdict);
    word.map(Stage::LastWord).map_err(Outcome::Failed)
}

fn go_on(cx: &mut Context<'_>, mut word: LastWord) -> Next {
    match word.go_on(cx.scratch) {
        Ok(false) => Ok(Stage::LastWord(word)),
        Ok(true) => Err(Outcome::Over(word.peer)),
        Err(reason) => fail(reason),
    }
}

/// Whether the acceptor says which connection counts.
fn decides(cx: &Context<'_>, peer: Peer, purpose: Purpose) -> bool {
    cx.decides(peer) && !purpose.is_more()
}

/// At the acceptor: whether this connection is the one. `Ok(true)`: we decided so and must say it.
fn settle(cx: &Context<'_>, peer: Peer, verdict: u8, purpose: Purpose) -> Result<bool, Outcome> {
    let deciding = decides(cx, peer, purpose);
    if !(cx.admits)(peer, purpose) || (!deciding && verdict != USE) {
        return fail(Failure::Taken);
    }
    Ok(deciding)
}

fn dial_tls(cx: &Context<'_>, socket: OwnedFd, peer: Peer) -> Next {
    let Some(identity) = cx.identity else {
        return fail(Failure::NoCertificate);
    };
    let name = identity
        .server_name(cx.rank(peer)?.0)
        .map_err(|e| Outcome::Failed(e.into()))?;
    let secure = Secure::dial(socket, identity.client(), name).map_err(|e| Outcome::Failed(e.into()))?;
    Ok(Stage::Tls {
        secure: Box::new(secure),
        early: Vec::new(),
        greeted: false,
    })
}

/// A few bytes on a fresh connection always fit.
fn say(socket: &OwnedFd, bytes: &[u8]) -> Result<(), Outcome> {
    match socket::send(socket, bytes, &[]) {
        Ok(Some(n)) if n == bytes.len() => Ok(()),
        Ok(_) => fail(Failure::TakesNothing),
        Err(e) => fail(e),
    }
}
