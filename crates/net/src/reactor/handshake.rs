// SPDX-License-Identifier: Apache-2.0
//! The socket of a connection that is not proven yet. What is said on it and what that proves is
//! [`isthmus_link::handshake`]'s; here bytes are read and written, and TLS is done.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use isthmus_identity::Identity;
use isthmus_link::handshake::{self, Cover, Process, Target, Then, Turn};
use isthmus_link::line::By;
use isthmus_transport::Peer;
use isthmus_wire::entry;
use isthmus_wire::gate::{HERE, Key};
use isthmus_wire::hello::{MAX_CREDENTIAL, Purpose};
use isthmus_wire::place::Rank;
use rustls::pki_types::CertificateDer;

use super::failure::Failure;
use crate::config::Reach;
use crate::hello::{Own, Prover};
use crate::places::Places;
use crate::secure::{Scratch, Secure};
use crate::socket::{self, Interest};

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
    fn peer(&self, rank: Rank) -> Result<Peer, Failure> {
        self.places.peer(rank).ok_or(Failure::Stranger)
    }

    /// What the machine says to what it is asked. `shown`: certificates of the other end.
    fn ask<T>(
        &self,
        shown: Option<&[CertificateDer<'static>]>,
        question: impl FnOnce(&Process<'_, Prover, Own<'_>>) -> T,
    ) -> T {
        let places = self.places;
        let own = self.identity.map(|identity| Own {
            prover: self.prover,
            identity,
            shown,
        });
        let is = |rank, holds: &dyn Fn(Peer) -> bool| places.peer(rank).is_some_and(holds);
        question(&Process {
            me: places.me(),
            secret: self.prover,
            gate: self.gate,
            own: own.as_ref(),
            knows: &|rank, cover| is(rank, &|_| cover_of(places.reach(rank)) == Some(cover)),
            admits: &|rank, purpose| is(rank, &|peer| (self.admits)(peer, purpose)),
            given_up: &|rank| is(rank, &|peer| (self.given_up)(peer)),
        })
    }
}

/// How connections are protected by which a peer is reached so.
pub(super) fn cover_of(reach: Reach) -> Option<Cover> {
    match reach {
        Reach::Tcp => Some(Cover::Plain),
        Reach::Tls => Some(Cover::Tls),
        Reach::Otherwise => None,
    }
}

pub(super) enum Outcome {
    Wait,
    /// This connection is the one to this peer.
    Proven(Peer, Proven),
    /// The peer that we want has been asked to dial us.
    Asked,
    /// This peer asks to be dialled.
    Called(Peer),
    /// This peer, which counts as lost, has heard so.
    Over(Peer),
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
    machine: handshake::Handshake,
    /// Whom we dialled, and which of its addresses.
    pub(super) dialled: Option<(Peer, usize)>,
    pub(super) watched: Interest,
    /// What is knocked with first.
    knock: Option<Key>,
    wire: Wire,
}

enum Wire {
    Connecting(OwnedFd),
    /// A gateway is about to say whether it leads there.
    Knocking(OwnedFd),
    Plain(OwnedFd),
    Tls(Box<Secure>),
    /// It was taken out.
    Gone,
}

impl Handshake {
    pub(super) fn accept(socket: OwnedFd, now: Duration) -> Self {
        socket::tune(&socket);
        Self {
            machine: handshake::Handshake::accept(now),
            dialled: None,
            watched: Interest::READ,
            knock: None,
            wire: Wire::Plain(socket),
        }
    }

    /// `candidate`: which of the addresses of the peer was dialled.
    pub(super) fn dial(socket: OwnedFd, deadline: Duration, target: Target, peer: Peer, candidate: usize) -> Self {
        Self {
            machine: handshake::Handshake::dial(deadline, target),
            dialled: Some((peer, candidate)),
            watched: Interest::WRITE,
            knock: None,
            wire: Wire::Connecting(socket),
        }
    }

    /// The same through the door of a gateway, if there is something to knock with.
    pub(super) fn behind(self, knock: Option<Key>) -> Self {
        Self { knock, ..self }
    }

    /// When it should be over.
    pub(super) fn deadline(&self) -> Duration {
        self.machine.poll_timeout()
    }

    /// What this end wants the connection for, if it has dialled.
    pub(super) fn purpose(&self) -> Option<Purpose> {
        self.machine.target().map(|target| target.purpose)
    }

    /// Through what this end has dialled.
    pub(super) fn by(&self) -> Option<By> {
        self.machine.target().map(|target| target.by)
    }

    /// Nothing was received yet from somebody who has dialled us.
    pub(super) fn is_silent(&self) -> bool {
        self.machine.is_silent()
    }

    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.wire {
            Wire::Connecting(socket) | Wire::Knocking(socket) | Wire::Plain(socket) => Some(socket.as_fd()),
            Wire::Tls(secure) => Some(secure.socket.as_fd()),
            Wire::Gone => None,
        }
    }

    pub(super) fn interest(&self) -> Interest {
        match &self.wire {
            Wire::Connecting(_) => Interest::WRITE,
            Wire::Tls(secure) => Interest {
                read: true,
                write: secure.full(),
            },
            Wire::Knocking(_) | Wire::Plain(_) | Wire::Gone => Interest::READ,
        }
    }

    /// Goes as far as the bytes that are there allow.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>) -> Result<Outcome, Failure> {
        loop {
            let turn = match &mut self.wire {
                Wire::Connecting(_) => self.connected(cx)?,
                Wire::Knocking(_) => self.let_through(cx)?,
                Wire::Plain(socket) => plain(&mut self.machine, cx, socket)?,
                Wire::Tls(secure) => sealed(&mut self.machine, cx, secure)?,
                Wire::Gone => return Err(Failure::Bug("a handshake went on after its end")),
            };
            let Some(turn) = turn else {
                return Ok(Outcome::Wait);
            };
            if let Some(outcome) = self.act(cx, turn)? {
                return Ok(outcome);
            }
        }
    }

    /// What is said first; `None`: it is knocked.
    fn connected(&mut self, cx: &Context<'_>) -> Result<Option<Turn>, Failure> {
        if let Wire::Connecting(socket) = std::mem::replace(&mut self.wire, Wire::Gone) {
            socket::connected(&socket)?;
            socket::tune(&socket);
            if let Some(key) = self.knock.take() {
                say(&socket, &entry::knock(&key))?;
                self.wire = Wire::Knocking(socket);
                return Ok(None);
            }
            self.wire = Wire::Plain(socket);
        }
        Ok(Some(cx.ask(None, |process| self.machine.handle_connected(process))?))
    }

    /// The same, once the gateway has said that it leads there.
    fn let_through(&mut self, cx: &Context<'_>) -> Result<Option<Turn>, Failure> {
        let Wire::Knocking(socket) = &self.wire else {
            return Err(Failure::Bug("nobody has knocked"));
        };
        let mut said = [0];
        match socket::receive(socket, &mut said)? {
            None => return Ok(None),
            Some(1) if said == [HERE] => {}
            Some(_) => return Err(Failure::NobodyBehind),
        }
        if let Wire::Knocking(socket) = std::mem::replace(&mut self.wire, Wire::Gone) {
            self.wire = Wire::Plain(socket);
        }
        Ok(Some(cx.ask(None, |process| self.machine.handle_connected(process))?))
    }

    /// Does what the machine wants. An outcome ends it.
    fn act(&mut self, cx: &mut Context<'_>, turn: Turn) -> Result<Option<Outcome>, Failure> {
        if !turn.say.is_empty() {
            match &mut self.wire {
                Wire::Tls(secure) => secure.write_short(&turn.say)?,
                Wire::Connecting(socket) | Wire::Knocking(socket) | Wire::Plain(socket) => say(socket, &turn.say)?,
                Wire::Gone => {}
            }
        }
        Ok(Some(match turn.then {
            Then::Listen => return Ok(None),
            Then::Seal(first) => {
                self.seal(cx, &first)?;
                return Ok(None);
            }
            Then::Asked => Outcome::Asked,
            Then::Called(rank) => Outcome::Called(cx.peer(rank)?),
            Then::Over(rank) => Outcome::Over(cx.peer(rank)?),
            Then::Proven { peer, purpose, early } => {
                let proven = match std::mem::replace(&mut self.wire, Wire::Gone) {
                    Wire::Plain(socket) => Proven::Plain(socket),
                    Wire::Tls(secure) => Proven::Wide { secure, early, purpose },
                    Wire::Connecting(_) | Wire::Knocking(_) | Wire::Gone => {
                        return Err(Failure::Bug("what is not there was proven"));
                    }
                };
                Outcome::Proven(cx.peer(peer)?, proven)
            }
        }))
    }

    /// TLS begins. `first`: what was read to recognise it; it may be all there is for now.
    fn seal(&mut self, cx: &mut Context<'_>, first: &[u8]) -> Result<(), Failure> {
        let identity = cx.identity.ok_or(Failure::NoCertificate)?;
        let Wire::Plain(socket) = std::mem::replace(&mut self.wire, Wire::Gone) else {
            return Err(Failure::Bug("TLS began twice"));
        };
        let mut secure = match self.machine.target() {
            Some(target) => Secure::dial(socket, identity.client(), identity.server_name(target.peer.0)?)?,
            None => Secure::accept(socket, identity.server(), first)?,
        };
        // Nothing of a program's comes before the handshake of TLS is over.
        secure.go_on(cx.scratch, &mut |_| {})?;
        self.wire = Wire::Tls(Box::new(secure));
        Ok(())
    }
}

/// Reads what the machine wants and no further. None: there is nothing for now.
fn plain(machine: &mut handshake::Handshake, cx: &Context<'_>, socket: &OwnedFd) -> Result<Option<Turn>, Failure> {
    let mut room = [0; MAX_CREDENTIAL];
    let wanted = machine.wants().min(room.len());
    let turn = match socket::receive(socket, &mut room[..wanted])? {
        None => return Ok(None),
        Some(0) => machine.handle_end(),
        Some(n) => cx.ask(None, |process| machine.handle_read(process, &room[..n])),
    };
    Ok(Some(turn?))
}

/// The same inside TLS, where whatever has come is taken.
fn sealed(
    machine: &mut handshake::Handshake,
    cx: &mut Context<'_>,
    secure: &mut Secure,
) -> Result<Option<Turn>, Failure> {
    secure.flush()?;
    let mut came = Vec::new();
    loop {
        if secure.open && machine.is_sealing() {
            let shown = secure.peer_certificates();
            return Ok(Some(cx.ask(shown, |process| machine.handle_sealed(process, &came))?));
        }
        if !came.is_empty() {
            let shown = secure.peer_certificates();
            return Ok(Some(cx.ask(shown, |process| machine.handle_read(process, &came))?));
        }
        if secure.ended {
            return Ok(Some(machine.handle_end()?));
        }
        if secure.read(cx.scratch, &mut |bytes| came.extend_from_slice(bytes))? == 0 {
            return Ok(None);
        }
    }
}

/// A few bytes on a fresh connection always fit.
fn say(socket: &OwnedFd, bytes: &[u8]) -> Result<(), Failure> {
    match socket::send(socket, bytes, &[])? {
        Some(n) if n == bytes.len() => Ok(()),
        _ => Err(Failure::TakesNothing),
    }
}
