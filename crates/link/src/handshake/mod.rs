// SPDX-License-Identifier: Apache-2.0
//! One connection from its first byte until it is proven to be the one to a rank of this job, without its socket.
//!
//! ```text
//!   dialled:   Connecting -> Answer -> AnswerClaim -> (Verdict)  -> proven, plain        to a peer of this site
//!              Connecting -> GateAnswer -> GateVerdict -> asked, or as from here on:    to our gateway
//!              Connecting -> Sealing -> (Verdict) -> proven, or told                    to a peer of another site
//!   accepted:  First -> Reply -> Claim -> proven, plain                                  from a peer of this site
//!              First -> Call -> called                                                   from a gateway
//!              First -> Sealing -> Greeting -> proven, or told                           from a peer of another site
//! ```
//! `Sealing`: the owner of the socket does the handshake of TLS; what is said and heard afterwards is inside it.
//! `Told`: the peer counts as lost, and has been told so. Its connections had ended without a word, since what they
//! carry may stand still for minutes; it makes a new one, as for any that broke, and hears it there. Where it had been
//! dialled it may have no way back, and is dialled once more.
//!
//! Bounds: a stranger is heard for [`HANDSHAKE_TIME`], and until it has proven that it knows the secret for
//! [`KNOCK_BYTES`]; before it is known which rank it is for [`MAX_CREDENTIAL`] at a time, and it is told nothing before
//! its first proof is right.

mod process;
mod proof;
mod turn;

use std::time::Duration;

use isthmus_wire::gateway::READY;
use isthmus_wire::hello::{
    ANSWER_BYTES, Credential, GREETING_BYTES, Greeting, KNOCK_BYTES, MAGIC, MAX_CREDENTIAL, Purpose, REPLY_BYTES, USE,
    YOU_DECIDE,
};
use isthmus_wire::place::Rank;
use isthmus_wire::segment::{Hello, Kind, Segment};

use crate::door::HANDSHAKE_TIME;
use crate::line::By;

pub use process::{Cover, Process};
pub use proof::{Answered, Credentials, Ends, Knocked, Nonce, Secret, Side, Statement};
pub use turn::{Next, Refusal, Then, Turn};

/// First byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 22;

/// What a dialler wants.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Whom.
    pub peer: Rank,
    /// What its connections have.
    pub cover: Cover,
    /// Through what.
    pub by: By,
    /// What it carries makes way for others, at gateways.
    pub makes_way: bool,
    /// What the connection is for.
    pub purpose: Purpose,
}

/// The machine. It is given what was read, and says what to say.
#[derive(Debug)]
pub struct Handshake {
    deadline: Duration,
    /// Of one that we dialled.
    target: Option<Target>,
    stage: Stage,
    /// What has come of the message that is awaited.
    heard: Vec<u8>,
}

#[derive(Debug)]
enum Stage {
    // Accepted.
    First,
    Reply(Answered),
    /// The reply was good, with this verdict.
    Claim(Answered, u8),
    /// From a gateway: somebody asks to be dialled.
    Call(Answered),
    Greeting,
    // Dialled.
    Connecting,
    Answer(Knocked),
    /// The answer was good.
    AnswerClaim(Answered),
    Verdict,
    // Dialled, at our gateway.
    GateAnswer(Knocked),
    GateVerdict,
    // Both.
    Sealing,
    Told(Rank),
    Over,
}

impl Handshake {
    /// Somebody has dialled us.
    pub fn accept(now: Duration) -> Self {
        Self::new(now + HANDSHAKE_TIME, None, Stage::First)
    }

    /// We dial; the connection is being made.
    pub fn dial(deadline: Duration, target: Target) -> Self {
        Self::new(deadline, Some(target), Stage::Connecting)
    }

    fn new(deadline: Duration, target: Option<Target>, stage: Stage) -> Self {
        Self {
            deadline,
            target,
            stage,
            heard: Vec::new(),
        }
    }

    /// When it should be over.
    pub fn poll_timeout(&self) -> Duration {
        self.deadline
    }

    /// What is wanted, if we have dialled.
    pub fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// Nothing was received yet from somebody who has dialled us.
    pub fn is_silent(&self) -> bool {
        matches!(self.stage, Stage::First) && self.heard.is_empty()
    }

    /// How many bytes may be read: not one that belongs to what comes behind the message that is awaited. Inside TLS
    /// whatever comes is taken.
    pub fn wants(&self) -> usize {
        let length = match &self.stage {
            Stage::First => KNOCK_BYTES,
            Stage::Reply(_) | Stage::Call(_) => REPLY_BYTES,
            Stage::Answer(_) | Stage::GateAnswer(_) => ANSWER_BYTES,
            Stage::Claim(..) | Stage::AnswerClaim(_) => Credential::length(&self.heard).unwrap_or(0),
            Stage::Greeting => GREETING_BYTES,
            Stage::Verdict | Stage::GateVerdict => 1,
            Stage::Told(_) => usize::MAX,
            Stage::Connecting | Stage::Sealing | Stage::Over => 0,
        };
        length.saturating_sub(self.heard.len())
    }

    /// There is the connection that we wanted.
    pub fn handle_connected<C: Credentials>(&mut self, cx: &Process<'_, impl Secret, C>) -> Next<C> {
        let Some(target) = self.target.filter(|_| matches!(self.stage, Stage::Connecting)) else {
            return self.end(Refusal::Bug("nobody was dialled"));
        };
        if target.by == By::Direct && target.cover == Cover::Tls {
            return self.seal(cx);
        }
        let (secret, none) = match target.by {
            By::Direct => (Some(cx.secret), Refusal::NoRandom),
            By::Gateway | By::Call => (cx.gate, Refusal::NoGateway),
        };
        let ends = Ends {
            from: cx.me,
            to: target.peer,
        };
        let Some((knocked, bytes)) = secret.and_then(|secret| Knocked::new(secret, ends)) else {
            return self.end(none);
        };
        self.stage = match target.by {
            By::Direct => Stage::Answer(knocked),
            By::Gateway | By::Call => Stage::GateAnswer(knocked),
        };
        Ok(Turn::new(bytes.to_vec(), Then::Listen))
    }

    /// The owner does the handshake of TLS.
    pub fn is_sealing(&self) -> bool {
        matches!(self.stage, Stage::Sealing)
    }

    /// The handshake of TLS is over; right behind it this came.
    pub fn handle_sealed<C: Credentials>(&mut self, cx: &Process<'_, impl Secret, C>, came: &[u8]) -> Next<C> {
        if !self.is_sealing() {
            return self.end(Refusal::Bug("TLS began twice"));
        }
        let Some(target) = self.target else {
            self.stage = Stage::Greeting;
            return self.handle_read(cx, came);
        };
        // Of one more the dialler decides, whoever it is.
        let deciding = cx.decides(target.peer, target.purpose) || target.purpose.is_more();
        let greeting = Greeting {
            from: cx.me.0,
            to: target.peer.0,
            verdict: if deciding { USE } else { YOU_DECIDE },
            purpose: target.purpose,
        };
        let mut say = greeting.encode().to_vec();
        if deciding {
            self.heard.extend_from_slice(came);
            return self.sealed(cx, say, target.peer, target.purpose);
        }
        self.stage = Stage::Verdict;
        let turn = self.handle_read(cx, came)?;
        say.extend(turn.say);
        Ok(Turn::new(say, turn.then))
    }

    /// The other end has said this: at most what is wanted, but inside TLS.
    pub fn handle_read<C: Credentials>(&mut self, cx: &Process<'_, impl Secret, C>, bytes: &[u8]) -> Next<C> {
        let inside = matches!(self.stage, Stage::Greeting) || self.is_sealed_verdict();
        if let Stage::Told(_) = self.stage {
            return Ok(Turn::listen());
        }
        if !inside && bytes.len() > self.wants() {
            return self.end(Refusal::Bug("more was read than a handshake wants"));
        }
        self.heard.extend_from_slice(bytes);
        if let Stage::First = self.stage {
            if self.heard.first() == Some(&TLS_HANDSHAKE) {
                // Who has no certificate has no peers at other sites.
                return if cx.own.is_some() {
                    self.seal(cx)
                } else {
                    self.end(Refusal::Stranger)
                };
            }
            let n = self.heard.len().min(MAGIC.len());
            if self.heard[..n] != MAGIC[..n] {
                return self.end(Refusal::Stranger);
            }
        }
        if matches!(self.stage, Stage::Claim(..) | Stage::AnswerClaim(_)) && Credential::length(&self.heard).is_none() {
            return self.end(Refusal::Stranger);
        }
        if self.wants() > 0 {
            return Ok(Turn::listen());
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let heard = std::mem::take(&mut self.heard);
        self.heard(cx, stage, heard)
    }

    /// The other end will say no more.
    pub fn handle_end<E>(&mut self) -> Result<Turn, Refusal<E>> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Told(peer) => Ok(Turn::quiet(Then::Over(peer))),
            _ => Err(Refusal::Closed),
        }
    }

    /// What has come in time for nothing.
    pub fn handle_timeout<E>(&mut self, now: Duration) -> Result<(), Refusal<E>> {
        if now < self.deadline {
            return Ok(());
        }
        self.stage = Stage::Over;
        Err(Refusal::NoAnswer)
    }

    fn is_sealed_verdict(&self) -> bool {
        let sealed = |target: &Target| target.cover == Cover::Tls;
        matches!(self.stage, Stage::Verdict) && self.target.as_ref().is_some_and(sealed)
    }

    fn end<T, E>(&mut self, why: Refusal<E>) -> Result<T, Refusal<E>> {
        self.stage = Stage::Over;
        Err(why)
    }

    /// TLS begins.
    fn seal<C: Credentials>(&mut self, cx: &Process<'_, impl Secret, C>) -> Next<C> {
        if cx.own.is_none() {
            return self.end(Refusal::NoCertificate);
        }
        self.stage = Stage::Sealing;
        Ok(Turn::quiet(Then::Seal(std::mem::take(&mut self.heard))))
    }

    /// The message that was awaited at this stage is complete.
    fn heard<C: Credentials>(&mut self, cx: &Process<'_, impl Secret, C>, stage: Stage, heard: Vec<u8>) -> Next<C> {
        match stage {
            Stage::First => self.knock(cx, whole(&heard)?),
            Stage::Reply(answered) => {
                let verdict = answered.verdict(cx.secret, whole(&heard)?).ok_or(Refusal::Stranger)?;
                self.stage = Stage::Claim(answered, verdict);
                Ok(Turn::listen())
            }
            Stage::Claim(answered, verdict) => {
                cx.check(&answered, Side::Dialler, &heard)?;
                let peer = cx.claimed(answered.ends.from, Cover::Plain)?;
                let deciding = cx.settle(peer, verdict, Purpose::First)?;
                Ok(Turn::new(if deciding { vec![USE] } else { Vec::new() }, proven(peer)))
            }
            Stage::Call(answered) => {
                let good = cx
                    .gate
                    .and_then(|gate| answered.verdict(gate, heard.as_slice().try_into().ok()?));
                good.ok_or(Refusal::Stranger)?;
                let called = Then::Called(cx.claimed(answered.ends.from, Cover::Tls)?);
                Ok(Turn::new(vec![READY], called))
            }
            Stage::Greeting => self.greeting(cx, heard),
            Stage::Answer(knocked) => {
                let answered = knocked.heard(cx.secret, whole(&heard)?).ok_or(Refusal::Stranger)?;
                self.stage = Stage::AnswerClaim(answered);
                Ok(Turn::listen())
            }
            Stage::AnswerClaim(answered) => self.answer(cx, &answered, &heard),
            Stage::Verdict => self.verdict(cx, heard),
            Stage::GateAnswer(knocked) => self.gate_answer(cx, &knocked, whole(&heard)?),
            Stage::GateVerdict => self.gate_verdict(cx, heard[0]),
            Stage::Connecting | Stage::Sealing | Stage::Told(_) | Stage::Over => {
                Err(Refusal::Bug("something was read where nothing is wanted"))
            }
        }
    }

    /// The first message of somebody who has dialled us, plainly.
    fn knock<C: Credentials>(&mut self, cx: &Process<'_, impl Secret, C>, knock: &[u8; KNOCK_BYTES]) -> Next<C> {
        if let Some((answered, bytes)) = Answered::new(cx.secret, cx.me, knock) {
            cx.claimed(answered.ends.from, Cover::Plain)?;
            let credential = cx.credential(&answered, Side::Acceptor)?;
            self.stage = Stage::Reply(answered);
            return Ok(Turn::new([&bytes[..], &credential].concat(), Then::Listen));
        }
        // None of a rank: perhaps a gateway's.
        let known = cx.gate.and_then(|gate| Answered::new(gate, cx.me, knock));
        let (answered, bytes) = known.ok_or(Refusal::Stranger)?;
        cx.claimed(answered.ends.from, Cover::Tls)?;
        self.stage = Stage::Call(answered);
        Ok(Turn::new(bytes.to_vec(), Then::Listen))
    }

    /// The other end of a plain connection that we dialled is who it says it is, or is not.
    fn answer<C: Credentials>(
        &mut self,
        cx: &Process<'_, impl Secret, C>,
        said: &Answered,
        credential: &[u8],
    ) -> Next<C> {
        cx.check(said, Side::Acceptor, credential)?;
        let peer = cx.claimed(said.ends.to, Cover::Plain)?;
        let deciding = cx.decides(peer, Purpose::First);
        let reply = said.reply(cx.secret, if deciding { USE } else { YOU_DECIDE });
        let say = [&reply[..], &cx.credential(said, Side::Dialler)?].concat();
        if deciding {
            return Ok(Turn::new(say, proven(peer)));
        }
        self.stage = Stage::Verdict;
        Ok(Turn::new(say, Then::Listen))
    }

    /// Whoever decides says whether the connection that we dialled is the one.
    fn verdict<C: Credentials>(&mut self, cx: &Process<'_, impl Secret, C>, mut heard: Vec<u8>) -> Next<C> {
        let Some(Target {
            peer, cover, purpose, ..
        }) = self.target
        else {
            return Err(Refusal::Stranger);
        };
        let sealed = cover == Cover::Tls;
        let purpose = if sealed { purpose } else { Purpose::First };
        let wanted = (cx.admits)(peer, purpose) || (sealed && (cx.given_up)(peer));
        if heard.remove(0) != USE || !wanted {
            return Err(Refusal::Stranger);
        }
        if !sealed {
            return Ok(Turn::quiet(proven(peer)));
        }
        self.heard = heard;
        self.sealed(cx, Vec::new(), peer, purpose)
    }

    fn gate_answer<C: Credentials>(
        &mut self,
        cx: &Process<'_, impl Secret, C>,
        knocked: &Knocked,
        answer: &[u8; ANSWER_BYTES],
    ) -> Next<C> {
        let target = self.target.ok_or(Refusal::Stranger)?;
        let wish = target.by.wish(target.makes_way);
        let reply = cx.gate.and_then(|gate| knocked.reply(gate, answer, wish));
        let say = reply.ok_or(Refusal::Stranger)?.to_vec();
        self.stage = Stage::GateVerdict;
        Ok(Turn::new(say, Then::Listen))
    }

    fn gate_verdict<C: Credentials>(&mut self, cx: &Process<'_, impl Secret, C>, verdict: u8) -> Next<C> {
        match (verdict == READY, self.target.map(|target| target.by)) {
            (false, _) => Err(Refusal::NoWay),
            (true, Some(By::Call)) => Ok(Turn::quiet(Then::Asked)),
            (true, _) => self.seal(cx),
        }
    }

    /// The first message inside TLS, at the acceptor; more may have come behind it.
    fn greeting<C: Credentials>(&mut self, cx: &Process<'_, impl Secret, C>, heard: Vec<u8>) -> Next<C> {
        let (first, early) = heard.split_first_chunk().ok_or(Refusal::Stranger)?;
        let greeting = Greeting::decode(first).ok_or(Refusal::Stranger)?;
        let from = Rank(greeting.from);
        if Rank(greeting.to) != cx.me || from == cx.me {
            return Err(Refusal::Stranger);
        }
        let peer = cx.claimed(from, Cover::Tls)?;
        cx.own()?.has_shown(peer).map_err(Refusal::Credential)?;
        let purpose = greeting.purpose;
        let deciding = if (cx.given_up)(peer) {
            cx.decides(peer, purpose)
        } else {
            cx.settle(peer, greeting.verdict, purpose)?
        };
        self.heard = early.to_vec();
        self.sealed(cx, if deciding { vec![USE] } else { Vec::new() }, peer, purpose)
    }

    /// The other end inside TLS is proven to be this rank. What it hears if it counts as lost is all that a connection
    /// of a channel needs to say so.
    fn sealed<C: Credentials>(
        &mut self,
        cx: &Process<'_, impl Secret, C>,
        mut say: Vec<u8>,
        peer: Rank,
        purpose: Purpose,
    ) -> Next<C> {
        let early = std::mem::take(&mut self.heard);
        if (cx.given_up)(peer) {
            say.extend(Hello::default().encode());
            say.extend(Segment::control(Kind::GivenUp, 0).encode());
            self.stage = Stage::Told(peer);
            // The other end is to close it: what was not read would make the system take back what was said.
            return Ok(Turn::new(say, Then::Listen));
        }
        self.stage = Stage::Over;
        Ok(Turn::new(say, Then::Proven { peer, purpose, early }))
    }
}

/// A plain connection. Nothing came behind the handshake, since no more was read.
fn proven(peer: Rank) -> Then {
    Then::Proven {
        peer,
        purpose: Purpose::First,
        early: Vec::new(),
    }
}

/// A message of a fixed length that has come as a whole.
fn whole<const N: usize, E>(heard: &[u8]) -> Result<&[u8; N], Refusal<E>> {
    heard
        .try_into()
        .map_err(|_| Refusal::Bug("a message has another length than it was to have"))
}

const _: () = assert!(MAX_CREDENTIAL >= KNOCK_BYTES && MAX_CREDENTIAL >= ANSWER_BYTES + REPLY_BYTES);
