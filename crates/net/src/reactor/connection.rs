// SPDX-License-Identifier: Apache-2.0
//! One connection of a channel.

use std::time::Duration;

use isthmus_link::channel::{Begun, Receipts};
use isthmus_link::life::Carrier;
use isthmus_link::line::Line;
use isthmus_wire::segment::{Kind, Segment};

use crate::receiver::Reading;
use crate::secure::Secure;
use crate::socket::{Interest, Mark};
use crate::tcpinfo::tcp_info;
use crate::writing::Writing;

/// An answer of the other end's kernel is of late: sooner than to a question before the last one.
const OF_LATE: Duration = Duration::from_millis(1500);

pub(super) struct Connection {
    /// What it is for and how far it has come.
    pub(super) line: Line,
    pub(super) secure: Secure,
    /// Of its slot.
    pub(super) number: u64,
    /// What the poller watches for; `None` when it does not.
    pub(super) watched: Option<Interest>,
    pub(super) reading: Reading,
    /// Bytes that came at once, the last time.
    pub(super) came: usize,
    pub(super) writing: Writing,
    /// How its packets are marked.
    pub(super) mark: Mark,
    /// Bytes that TCP had acknowledged at the last look.
    pub(super) acknowledged: u64,
}

impl Connection {
    pub(super) fn new(line: Line, secure: Secure, number: u64) -> Self {
        Self {
            line,
            secure,
            number,
            watched: None,
            reading: Reading::new(),
            came: 0,
            writing: Writing::default(),
            mark: Mark::Normal,
            acknowledged: 0,
        }
    }
}

impl Carrier for Connection {
    fn line(&self) -> &Line {
        &self.line
    }

    fn line_mut(&mut self) -> &mut Line {
        &mut self.line
    }

    fn receipts(&mut self) -> &mut Receipts {
        &mut self.reading.receipts
    }

    fn begun(&mut self) -> &mut Begun {
        &mut self.reading.begun
    }

    fn is_between(&self) -> bool {
        self.writing.is_between()
    }

    fn is_flushed(&self) -> bool {
        self.is_between() && !self.secure.full()
    }

    fn reaches(&self) -> bool {
        // What a gateway answers says nothing.
        let answered = || tcp_info(&self.secure.socket)?.answered;
        !self.line.via.is_relayed() && answered().is_some_and(|time| time < OF_LATE)
    }

    fn say(&mut self, kind: Kind) {
        self.writing.control(&Segment::control(kind, 0).encode());
    }
}
