// SPDX-License-Identifier: Apache-2.0
//! One connection of a channel: what it is for, through what it goes, how far it has come.

use std::time::Duration;

use isthmus_wire::gateway::{WISH_BULK, WISH_DIAL, WISH_STREAM};
use isthmus_wire::hello::Purpose;

use crate::channel::Vigil;
use crate::sharing::Path;

/// A connection this young is not replaced by one that the other end began at the same time.
const YOUNG: Duration = Duration::from_secs(1);

/// What an attempt to make a connection goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The peer itself.
    Direct,
    /// Our gateway, for a stream to the peer.
    Gateway,
    /// Our gateway, which has the peer asked to dial us.
    Call,
}

impl By {
    /// What the gateway is told. `makes_way`: what the connection carries makes way for others.
    pub fn wish(self, makes_way: bool) -> u8 {
        match (self, makes_way) {
            (Self::Call, _) => WISH_DIAL,
            (_, true) => WISH_BULK,
            (_, false) => WISH_STREAM,
        }
    }
}

/// Through what a connection goes, as far as this end can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// Nothing: it is the peer's own.
    Direct,
    /// Gateways, as one of the two ends wanted.
    Gateways,
    /// It was accepted from where our gateway is.
    OurGateway,
    /// It was accepted from this node's own address, from which gateways call for others, and nobody else of another
    /// area.
    ThisNode,
    /// It was accepted from an address that nobody has told us.
    Unknown,
}

impl Via {
    /// Of a connection for this purpose, and of one that this end has dialled in this way. `caller`: through what one
    /// came that was accepted, judged by its address.
    pub fn of(purpose: Purpose, dialled: Option<By>, caller: impl FnOnce() -> Self) -> Self {
        match (purpose, dialled) {
            (Purpose::Direct | Purpose::Better, _) => Self::Direct,
            (Purpose::Gateway, _) => Self::Gateways,
            (_, Some(By::Direct)) => Self::Direct,
            (_, Some(By::Gateway | By::Call)) => Self::Gateways,
            (_, None) => caller(),
        }
    }

    /// Which kind of connection it is to messages that ask for one, as far as that is known.
    pub fn path(self) -> Option<Path> {
        match self {
            Self::Direct => Some(Path::Direct),
            Self::Gateways => Some(Path::Gateway),
            Self::OurGateway | Self::ThisNode | Self::Unknown => None,
        }
    }

    /// A gateway passes on what it carries: what TCP tells of it is not of the link.
    pub fn is_relayed(self) -> bool {
        matches!(self, Self::Gateways | Self::OurGateway)
    }

    /// The same, or probably so: when it ends a gateway may have ended it, and nothing has broken.
    pub fn is_carried(self) -> bool {
        self.is_relayed() || self == Self::ThisNode
    }
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// The peer has not said yet what it has: nothing that has a number may be sent.
    Hello,
    /// Everything may be sent.
    Open,
    /// The farewell was said on it.
    Farewell,
}

/// One connection of a channel, without its socket.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// What it is for.
    pub purpose: Purpose,
    /// Through what it goes.
    pub via: Via,
    /// Watches it for silence.
    pub vigil: Vigil,
    stage: Stage,
    opened: Duration,
}

impl Line {
    /// One that is new now.
    pub fn new(purpose: Purpose, via: Via, now: Duration) -> Self {
        // Of the first one nobody has received anything yet.
        let stage = match purpose {
            Purpose::First => Stage::Open,
            _ => Stage::Hello,
        };
        Self {
            purpose,
            via,
            vigil: Vigil::new(now),
            stage,
            opened: now,
        }
    }

    /// It is for messages that ask for its kind, and for no others.
    pub fn is_apart(&self) -> bool {
        self.purpose.is_apart()
    }

    /// It is there instead of those that gateways pass on.
    pub fn is_better(&self) -> bool {
        self.purpose == Purpose::Better
    }

    /// Gateways pass it on, and it is not needed where there is a better one.
    pub fn is_worse(&self) -> bool {
        self.via.is_relayed() && !self.is_apart() && !self.is_better()
    }

    /// The peer has said what it has.
    pub fn greeted(&mut self) {
        self.stage = self.stage.max(Stage::Open);
    }

    /// Whether what has a number may be sent.
    pub fn is_ready(&self) -> bool {
        self.stage > Stage::Hello
    }

    /// The farewell is to be said on it. True: it was not yet, and counts as said.
    pub fn takes_leave(&mut self) -> bool {
        std::mem::replace(&mut self.stage, Stage::Farewell) != Stage::Farewell
    }

    /// Whether the farewell was said on it.
    pub fn has_taken_leave(&self) -> bool {
        self.stage == Stage::Farewell
    }

    /// Whether both ends may have made it at the same time as another one.
    pub fn is_young(&self, now: Duration) -> bool {
        now.saturating_sub(self.opened) < YOUNG
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_for_says_more_than_where_it_came_from() {
        let via = |purpose, by| Via::of(purpose, by, || Via::ThisNode);
        assert_eq!(via(Purpose::First, None), Via::ThisNode);
        assert_eq!(via(Purpose::More, Some(By::Call)), Via::Gateways);
        assert_eq!(via(Purpose::Resume, Some(By::Direct)), Via::Direct);
        assert_eq!(via(Purpose::Gateway, Some(By::Direct)), Via::Gateways);
        assert_eq!(via(Purpose::Better, None), Via::Direct);
        let told = |via: Via| (via.path(), via.is_relayed(), via.is_carried());
        assert_eq!(told(Via::OurGateway), (None, true, true));
        assert_eq!(told(Via::ThisNode), (None, false, true));
        assert_eq!(told(Via::Unknown), (None, false, false));
    }

    #[test]
    fn a_line_that_continues_others_waits_for_the_peers_word() {
        let mut line = Line::new(Purpose::Resume, Via::Direct, Duration::ZERO);
        assert!(!line.is_ready() && Line::new(Purpose::First, Via::Direct, Duration::ZERO).is_ready());
        line.greeted();
        assert!(line.is_ready() && !line.has_taken_leave());
        assert!(line.takes_leave() && !line.takes_leave());
        line.greeted();
        assert!(line.has_taken_leave(), "a late word takes nothing back");
    }
}
