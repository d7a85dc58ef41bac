// SPDX-License-Identifier: Apache-2.0
//! How two leaders talk over a first contact, while their processes make progress.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::joining::{Exchange, Held};
use isthmus_core::world::World;
use isthmus_engine::Looking;
use isthmus_net::Contact;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a leader sleeps between two looks at messages of its own job, at first.
const NAP: Duration = Duration::from_millis(1);
/// After so many naps of one length they are twice as long, and so often at most: many who wait together leave the
/// processor to those whom they wait for.
const NAPS: u32 = 32;
const DOUBLINGS: u32 = 4;

/// One leader's end.
pub(crate) struct Pipe<'w> {
    pub(crate) world: &'w World,
    pub(crate) contact: Contact,
    /// What the other leader has said first.
    pub(crate) first: Option<Vec<u8>>,
    /// What the connection needs.
    pub(crate) _held: Option<Held>,
}

/// A wait of a leader: it makes progress and rests, again and again.
pub(crate) struct Rests<'w> {
    looking: Looking<'w>,
    /// How many there were.
    naps: u32,
}

impl<'w> Rests<'w> {
    pub(crate) fn of(world: &'w World) -> Self {
        Self {
            looking: world.engine().looking(),
            naps: 0,
        }
    }

    pub(crate) fn briefly(&mut self) {
        self.nap(None::<(&Contact, PollFlags)>, NAP);
    }

    /// Less and less often: what comes over the connection ends the rest.
    pub(crate) fn on(&mut self, contact: &impl AsFd) {
        self.until(contact, PollFlags::IN);
    }

    /// The same until something else can be done with it.
    pub(crate) fn until(&mut self, stream: &impl AsFd, can: PollFlags) {
        self.nap(Some((stream, can)), NAP * (1 << (self.naps / NAPS).min(DOUBLINGS)));
        self.naps = self.naps.saturating_add(1);
    }

    fn nap(&mut self, on: Option<(&impl AsFd, PollFlags)>, long: Duration) {
        self.looking.look();
        let nap = Timespec {
            tv_sec: 0,
            tv_nsec: long.subsec_nanos().into(),
        };
        let mut polled: Vec<PollFd<'_>> = on.map(|(stream, can)| PollFd::new(stream, can)).into_iter().collect();
        // After an error it looks again.
        let _ = poll(&mut polled, Some(&nap));
    }
}

impl<'w> Pipe<'w> {
    pub(crate) fn of(world: &'w World, contact: Contact) -> Self {
        Self {
            world,
            contact,
            first: None,
            _held: None,
        }
    }

    /// The next message, if it is there; an error: none can come.
    pub(crate) fn look(&mut self) -> Result<Option<Vec<u8>>> {
        let came = self.contact.advance().and_then(|()| self.contact.receive());
        came.map_err(|why| lost(&why))
    }

    /// Waits for what the other leader says first in the exchange.
    pub(crate) fn hear_first(&mut self) -> Result<()> {
        self.first = Some(self.receive(None)?);
        Ok(())
    }

    /// The next message; an error: none can come, or not in time.
    pub(crate) fn receive(&mut self, until: Option<Instant>) -> Result<Vec<u8>> {
        let mut rests = Rests::of(self.world);
        loop {
            if let Some(message) = self.look()? {
                return Ok(message);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(Error::new(abi::MPI_ERR_PORT, "nobody accepts there".to_owned()));
            }
            rests.on(&self.contact);
        }
    }
}

pub(crate) fn lost(why: &str) -> Error {
    Error::new(
        abi::MPI_ERR_PORT,
        format!("the connection to the root of the other group is gone: {why}"),
    )
}

impl Exchange for Pipe<'_> {
    fn exchange(&mut self, mine: &[u8]) -> Result<Vec<u8>> {
        self.contact.send(mine);
        let theirs = match self.first.take() {
            Some(first) => first,
            None => self.receive(None)?,
        };
        let mut rests = Rests::of(self.world);
        while !self.contact.has_left() {
            self.contact.advance().map_err(|why| lost(&why))?;
            rests.on(&self.contact);
        }
        Ok(theirs)
    }
}
