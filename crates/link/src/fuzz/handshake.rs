// SPDX-License-Identifier: Apache-2.0
//! Two ends of a connection that is not proven yet, and whatever may be done to the bytes between them.
//!
//! Secrets and keys are sums that a program could forge; nothing here does so by chance.

use std::collections::VecDeque;
use std::time::Duration;

use isthmus_wire::hello::{Credential, KNOCK_BYTES, MAX_CREDENTIAL, Purpose, REPLY_BYTES, SIGNATURE_BYTES};
use isthmus_wire::place::Rank;

use super::Orders;
use crate::handshake::{Cover, Credentials, Handshake, Next, Nonce, Process, Refusal, Secret, Statement, Target, Then};
use crate::line::By;

/// Sum of bytes in their order (FNV-1a).
fn sum(seed: u64, bytes: &[u8]) -> u64 {
    let begin = seed ^ 0xcbf2_9ce4_8422_2325;
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(begin, add)
}

/// Who knows it can prove so.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// What is to be known.
    pub secret: u64,
    /// What the next random number comes from.
    pub seed: u64,
}

impl Secret for Sum {
    fn prove(&self, what: &Statement<'_>) -> [u8; 32] {
        let sum = sum(self.secret, &what.encode("job")).to_le_bytes();
        std::array::from_fn(|i| sum[i % 8])
    }

    fn check(&self, what: &Statement<'_>, proof: &[u8]) -> bool {
        self.prove(what) == proof
    }

    fn nonce(&self) -> Option<Nonce> {
        Some(std::array::from_fn(|i| sum(self.seed, &[i as u8]) as u8))
    }
}

/// The key of a rank; those of others are known.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Whose it is.
    pub rank: Rank,
    /// Who has shown its certificate.
    pub shown: Option<Rank>,
}

impl Credentials for Key {
    type Error = ();

    fn sign(&self, what: &Statement<'_>) -> Result<Vec<u8>, ()> {
        let sum = sum(u64::from(self.rank.0) << 32, &what.encode("job")).to_le_bytes();
        let signature: [u8; SIGNATURE_BYTES] = std::array::from_fn(|i| sum[i % 8]);
        let credential = Credential {
            certificate: &self.rank.0.to_le_bytes(),
            signature: &signature,
        };
        credential.encode().ok_or(())
    }

    fn check(&self, what: &Statement<'_>, rank: Rank, credential: &[u8]) -> Result<(), ()> {
        let theirs = Self { rank, shown: None }.sign(what)?;
        (theirs == credential).then_some(()).ok_or(())
    }

    fn has_shown(&self, rank: Rank) -> Result<(), ()> {
        (self.shown == Some(rank)).then_some(()).ok_or(())
    }
}

/// One end of a connection: the machine, what its process knows, and what has become of it.
#[derive(Debug)]
pub struct End {
    /// What decides.
    pub machine: Handshake,
    /// Rank of the process.
    pub me: Rank,
    /// What it proves that it is of the job with.
    pub secret: Sum,
    /// The same where gateways are.
    pub gate: Option<Sum>,
    /// Whether it has a certificate.
    pub certified: bool,
    /// How it reaches everybody.
    pub cover: Cover,
    /// Whether it wants another connection.
    pub admits: bool,
    /// Whether whoever it speaks to counts as lost.
    pub given_up: bool,
    /// Who shows a certificate in TLS.
    pub shown: Option<Rank>,
    /// What has come to it and was not read.
    pub coming: VecDeque<u8>,
    /// It will hear no more.
    pub ended: bool,
    /// What it has said until now.
    pub said: Vec<u8>,
    /// TLS has begun.
    pub sealed: bool,
    /// What came of it.
    pub result: Option<Result<Then, Refusal<()>>>,
}

impl End {
    /// Of a process that is in order.
    pub fn new(machine: Handshake, me: u32, cover: Cover) -> Self {
        let secret = Sum {
            secret: 7,
            seed: u64::from(me),
        };
        Self {
            machine,
            me: Rank(me),
            secret,
            gate: None,
            certified: true,
            cover,
            admits: true,
            given_up: false,
            shown: None,
            coming: VecDeque::new(),
            ended: false,
            said: Vec::new(),
            sealed: false,
            result: None,
        }
    }

    /// Nothing has come of it yet.
    pub fn goes_on(&self) -> bool {
        self.result.is_none()
    }

    fn ask(&mut self, question: impl FnOnce(&mut Handshake, &Process<'_, Sum, Key>) -> Next<Key>) -> Vec<u8> {
        let key = Key {
            rank: self.me,
            shown: self.shown,
        };
        let process = Process {
            me: self.me,
            secret: &self.secret,
            gate: self.gate.as_ref(),
            own: self.certified.then_some(&key),
            knows: &|rank, cover| rank != self.me && cover == self.cover,
            admits: &|_, _| self.admits,
            given_up: &|_| self.given_up,
        };
        let next = question(&mut self.machine, &process);
        self.take(next)
    }

    /// Notes what comes next. What is to be said.
    fn take(&mut self, next: Next<Key>) -> Vec<u8> {
        let turn = match next {
            Ok(turn) => turn,
            Err(why) => {
                self.result = Some(Err(why));
                return Vec::new();
            }
        };
        match turn.then {
            Then::Listen => {}
            Then::Seal(first) => {
                // TLS itself is none here: what looks like it stays what comes first in it.
                first.into_iter().rev().for_each(|byte| self.coming.push_front(byte));
                self.sealed = true;
            }
            then => self.result = Some(Ok(then)),
        }
        self.said.extend_from_slice(&turn.say);
        turn.say
    }

    /// There is the connection that it wanted. What it says.
    pub fn connect(&mut self) -> Vec<u8> {
        self.ask(|machine, process| machine.handle_connected(process))
    }

    /// The handshake of TLS is over, and all that has come came inside. What it says.
    pub fn seal(&mut self) -> Vec<u8> {
        let came: Vec<u8> = self.coming.drain(..).collect();
        self.ask(|machine, process| machine.handle_sealed(process, &came))
    }

    /// Reads what has come, at most so many bytes. What it says.
    pub fn read(&mut self, most: usize) -> Vec<u8> {
        let wants = if self.sealed { usize::MAX } else { self.machine.wants() };
        assert!(
            self.sealed || wants <= MAX_CREDENTIAL,
            "a stranger is heard for {wants} bytes"
        );
        let count = most.min(wants).min(self.coming.len());
        if count == 0 || self.machine.is_sealing() {
            if self.ended && self.coming.is_empty() {
                let next = self.machine.handle_end();
                self.take(next);
            }
            return Vec::new();
        }
        let bytes: Vec<u8> = self.coming.drain(..count).collect();
        self.ask(|machine, process| machine.handle_read(process, &bytes))
    }

    /// So late is it.
    pub fn wait(&mut self, now: Duration) {
        if let Err(why) = self.machine.handle_timeout(now) {
            self.result = Some(Err(why));
        }
    }
}

/// Rank 1 dials rank 2, or the other way round. A byte says how, then a byte each what becomes of what they say, and
/// one or two more.
pub fn handshake(bytes: &[u8]) {
    let mut orders = Orders(bytes);
    let how = orders.next().unwrap_or_default();
    let cover = if how & 1 > 0 { Cover::Tls } else { Cover::Plain };
    let (from, to) = if how & 2 > 0 { (1, 2) } else { (2, 1) };
    let target = Target {
        peer: Rank(to),
        cover,
        by: By::Direct,
        makes_way: false,
        purpose: if how & 4 > 0 { Purpose::More } else { Purpose::First },
    };
    let dialler = Handshake::dial(Duration::from_secs(9), target);
    let mut ends = [
        End::new(dialler, from, cover),
        End::new(Handshake::accept(Duration::ZERO), to, cover),
    ];
    ends[0].given_up = how & 8 > 0;
    ends[1].given_up = how & 16 > 0;
    ends[1].admits = how & 32 > 0;
    ends[0].shown = Some(Rank(to));
    ends[1].shown = (how & 64 > 0).then_some(Rank(from));
    let (mut now, mut changed) = (Duration::ZERO, [false; 2]);
    let first = ends[0].connect();
    ends[1].coming.extend(first);
    if cover == Cover::Tls {
        ends[1].coming.push_back(22);
    }
    while let Some(order) = orders.next() {
        let detail = usize::from(orders.next().unwrap_or_default());
        let (at, place) = (detail & 1, detail >> 1);
        let end = &mut ends[at];
        if !end.goes_on() {
            continue;
        }
        let mut said = Vec::new();
        match order % 8 {
            0 | 1 => said = end.read(detail * 4 + 1),
            2 if end.machine.is_sealing() => {
                end.coming.clear();
                said = end.seal();
            }
            2 => {}
            3 => now += Duration::from_millis(detail as u64),
            4 => end.ended = true,
            _ if end.coming.is_empty() => {}
            5 => {
                let index = place % end.coming.len();
                end.coming[index] ^= order | 1;
                changed[at] = true;
            }
            6 => drop(end.coming.pop_back()),
            _ => {
                changed[at] = true;
                end.coming.push_back(order);
            }
        }
        ends[1 - at].coming.extend(said);
        ends.iter_mut()
            .filter(|end| end.goes_on())
            .for_each(|end| end.wait(now));
        check(&ends, changed);
    }
}

fn check(ends: &[End; 2], changed: [bool; 2]) {
    for (at, end) in ends.iter().enumerate() {
        let other = ends[1 - at].me;
        match &end.result {
            Some(Ok(Then::Proven { peer, .. })) => {
                assert_eq!(*peer, other, "proven is who is there");
                assert!(!(end.sealed && end.given_up), "who counts as lost gets nothing else");
            }
            Some(Ok(Then::Over(_))) => assert!(end.given_up),
            Some(Ok(then)) => panic!("nobody asked for {then:?}"),
            Some(Err(Refusal::Bug(what))) => panic!("{what}"),
            Some(Err(_)) | None => {}
        }
    }
    let acceptor = &ends[1];
    if acceptor.cover == Cover::Plain && !changed[1] && !acceptor.said.is_empty() {
        assert!(ends[0].said.len() >= KNOCK_BYTES);
    }
    let proven = matches!(acceptor.result, Some(Ok(Then::Proven { .. })));
    if acceptor.cover == Cover::Plain && proven {
        assert!(ends[0].said.len() > KNOCK_BYTES + REPLY_BYTES, "all of it was said");
    }
}
