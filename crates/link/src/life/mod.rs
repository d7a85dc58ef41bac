// SPDX-License-Identifier: Apache-2.0
//! The life of a channel: connections that come and go under it, silence, how long the peer may stay away, the end.
//!
//! ```text
//!   Idle ──> Dialling ──> Open ──────────> Farewell ──> Over
//!    │                    ^  │ the last connection breaks
//!    │ the peer dials     │  v
//!    └────────────────────┴─Away ──> GivenUp   (lost, or the program relies on it no more: from anywhere)
//! ```
//! Whoever has the sockets keeps one [`Carrier`] a connection here, tells what happens, and does what is answered.

mod lines;

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;
use std::time::Duration;

use isthmus_wire::hello::Purpose;
use isthmus_wire::segment::Kind;

use crate::channel::{Begun, ConnectionId, Duty, Receipts, SILENCE};
use crate::line::Line;

/// Most connections of one channel.
pub const MAX_STREAMS: usize = 64;
/// How soon one looks again at a connection that has asked whether anybody is there.
const ASKED: Duration = Duration::from_secs(1);

/// A connection as whoever has its socket keeps it.
pub trait Carrier {
    /// What it is for and how far it has come.
    fn line(&self) -> &Line;
    /// The same, to be changed.
    fn line_mut(&mut self) -> &mut Line;
    /// What is owed to the other end on it.
    fn receipts(&mut self) -> &mut Receipts;
    /// What has begun on it and not ended.
    fn begun(&mut self) -> &mut Begun;
    /// Whether something may be said on it now: it is not inside a segment.
    fn is_between(&self) -> bool;
    /// Whether everything that was said on it has left this process.
    fn is_flushed(&self) -> bool;
    /// Whether the kernel of the other end answers, so that the network is whole.
    fn reaches(&self) -> bool;
    /// Says this segment, which has no number and no bytes, before anything else.
    fn say(&mut self, kind: Kind);
}

/// Where a channel is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection was needed yet.
    Idle,
    /// The first connection is being made.
    Dialling,
    /// It has connections.
    Open,
    /// It has lost all of them, and is dialled again.
    Away(Away),
    /// Everything was acknowledged and our farewell said; nothing more to send.
    Farewell,
    /// It has ended in order.
    Over,
    /// The peer counts as lost here, and hears so if it calls again.
    GivenUp,
}

/// How the last connection of a channel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was silent.
    Silent,
    /// The other end, or something on the way, ended it.
    Closed,
    /// A gateway had carried it, and has ended it: nothing need have broken.
    Handed,
}

/// A channel without connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Away {
    /// Since when.
    pub since: Duration,
    /// For people.
    pub why: String,
    /// How it came.
    pub end: End,
}

/// Why a connection is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down<'a> {
    /// Nothing was heard on it for so long.
    Silent(Duration),
    /// The other end, or something on the way, ended it.
    Ended(&'a str),
}

impl std::fmt::Display for Down<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Silent(time) => write!(f, "nothing was heard on it for {} s", time.as_secs()),
            Self::Ended(why) => f.write_str(why),
        }
    }
}

/// Where the peer was reached last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Nowhere,
    /// This end dialled it, or what stands for it, there.
    Dialled(SocketAddr),
    /// It called from there.
    Called(IpAddr),
}

/// How a connection came about.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// This end has dialled.
    pub dialled: bool,
    /// Of the other end.
    pub address: Option<SocketAddr>,
    /// The peer was reached through our gateway until now.
    pub by_gateway: bool,
}

/// What is to be done when something is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// There are connections, or will be again.
    Send,
    /// The first one is to be made.
    Dial,
    /// Nothing.
    Wait,
}

/// What is to be done for a peer that asks to be dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// It is dialled for this.
    Dial(Purpose),
    /// It counts as lost, and is dialled to be told so.
    Tell,
    /// There is a connection, or one is being made, or none is needed.
    Nothing,
}

/// What is to be done when a connection is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// Nothing: the channel has ended.
    Nothing,
    /// Others carry what it carried.
    Resend,
    /// The channel ends: nobody misses what has not arrived.
    End,
    /// Another one is to be made, instead of all.
    Dial(End),
}

/// What comes of dialling in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreached {
    /// The channel had not lost its connections: it never had one, or has one now.
    NotAway,
    /// Dialling begins anew.
    Again,
    /// The peer is lost, for this reason.
    Lost(String),
}

/// What is to be done for the connections of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// There is none; the peer has time until then.
    Away(Duration),
    /// There has been none for longer than the peer may stay away.
    AwayTooLong,
    /// The peer has begun something on this connection and keeps this process waiting for its end, for so long.
    NeverEnds(Duration),
    /// Something has been said, or is due.
    Connections {
        /// When to look again.
        next: Duration,
        /// Something waits to be sent.
        say: bool,
        /// These have been silent for so long, and are to be given up.
        dead: Vec<(ConnectionId, Duration)>,
    },
}

/// What an upkeep goes by.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Time that the process has lived through.
    pub now: Duration,
    /// How long the peer may stay away.
    pub patience: Duration,
    /// This end reads what arrives; otherwise it blames nobody.
    pub listens: bool,
    /// How long connections that are gone had kept this process waiting for the end of what had begun on them.
    pub unended: Duration,
}

/// One channel, without its sockets and its data.
#[derive(Debug)]
pub struct Life<C> {
    state: State,
    /// Its connections.
    pub lines: BTreeMap<ConnectionId, C>,
    next_id: ConnectionId,
    /// Connections that are being made beside those.
    coming: usize,
    seen: Seen,
    /// Before then no connections of kinds that are missing are tried.
    kinds_at: Duration,
    /// When a better way is looked for next, and how long to wait after that.
    better_at: Option<(Duration, Duration)>,
}

impl<C> Default for Life<C> {
    fn default() -> Self {
        Self {
            state: State::Idle,
            lines: BTreeMap::new(),
            next_id: 0,
            coming: 0,
            seen: Seen::Nowhere,
            kinds_at: Duration::ZERO,
            better_at: None,
        }
    }
}

impl<C: Carrier> Life<C> {
    /// Where it is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// It has, or had, connections, and will have some.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Away(_))
    }

    /// It has lost its connections.
    pub fn away(&self) -> Option<&Away> {
        match &self.state {
            State::Away(away) => Some(away),
            _ => None,
        }
    }

    /// It has ended, in whatever way.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Over | State::GivenUp)
    }

    /// The peer counts as lost here, and hears so if it calls again.
    pub fn is_given_up(&self) -> bool {
        self.state == State::GivenUp
    }

    /// Something is to be sent.
    pub fn handle_wanted(&mut self) -> Wanted {
        match self.state {
            State::Open | State::Away(_) => Wanted::Send,
            State::Idle => {
                self.state = State::Dialling;
                Wanted::Dial
            }
            State::Dialling | State::Farewell | State::Over | State::GivenUp => Wanted::Wait,
        }
    }

    /// It was dialled, in vain, and there was nothing to send: as if it had not been. False: it was not dialled.
    pub fn handle_unused(&mut self) -> bool {
        let dialled = self.state == State::Dialling;
        if dialled {
            self.state = State::Idle;
        }
        dialled
    }

    /// Whether another connection is welcome. `deciding`: of two that both ends make at once this end says which one is
    /// used.
    pub fn admits(&self, purpose: Purpose, deciding: bool, now: Duration) -> bool {
        let is_young = |c: &C| c.line().is_young(now);
        match purpose {
            Purpose::First => self.admits_first(),
            Purpose::Resume if self.has_ended() => false,
            Purpose::Resume => !deciding || !self.lines.values().any(is_young),
            _ => self.is_open() && self.lines.len() < MAX_STREAMS,
        }
    }

    /// A first connection is welcome where there is none: also where there was one, of which the peer may never have
    /// heard.
    fn admits_first(&self) -> bool {
        match self.state {
            State::Idle | State::Dialling | State::Open | State::Away(_) => self.lines.is_empty(),
            State::Farewell | State::Over | State::GivenUp => false,
        }
    }

    /// The peer cannot reach this end, and asks to be dialled.
    pub fn handle_called(&mut self) -> Called {
        match self.state {
            State::Idle => {
                self.state = State::Dialling;
                Called::Dial(Purpose::First)
            }
            State::Away(_) => Called::Dial(Purpose::Resume),
            State::GivenUp => Called::Tell,
            State::Dialling | State::Open | State::Farewell | State::Over => Called::Nothing,
        }
    }

    /// The connections that one for this purpose replaces.
    pub fn replaced(&self, purpose: Purpose) -> Vec<ConnectionId> {
        match purpose {
            Purpose::Resume => self.lines.keys().copied().collect(),
            _ => Vec::new(),
        }
    }

    /// A name for a connection, never used twice.
    pub fn next_id(&mut self) -> ConnectionId {
        self.next_id += 1;
        self.next_id - 1
    }

    /// A connection is proven to be the peer's. What the channel was away for until now.
    pub fn handle_opened(&mut self, id: ConnectionId, carrier: C, how: Opening) -> Option<Away> {
        let (purpose, is_better) = (carrier.line().purpose, carrier.line().is_better());
        if purpose.is_more() {
            self.coming = self.coming.saturating_sub(usize::from(how.dialled));
        }
        // Of two that both ends made at the same time each keeps its own: otherwise neither could make more.
        let replaces = how.dialled || how.by_gateway;
        if !purpose.is_more() || (is_better && replaces) {
            self.seen = match how.address {
                Some(address) if how.dialled => Seen::Dialled(address),
                Some(address) => Seen::Called(address.ip().to_canonical()),
                None => Seen::Nowhere,
            };
        }
        self.lines.insert(id, carrier);
        if self.state == State::Farewell {
            self.say_farewell();
            return None;
        }
        match std::mem::replace(&mut self.state, State::Open) {
            State::Away(away) => Some(away),
            _ => None,
        }
    }

    /// The peer has said on this connection what it has. Where it is a better one, those that gateways carry are not
    /// needed any more: these. Had they been closed before, the peer might have learnt of that first and thought the
    /// link broken.
    pub fn handle_hello(&mut self, id: ConnectionId) -> Vec<ConnectionId> {
        let Some(carrier) = self.lines.get_mut(&id) else {
            return Vec::new();
        };
        carrier.line_mut().greeted();
        if !carrier.line().is_better() {
            return Vec::new();
        }
        let worse = self.lines.iter().filter(|(_, c)| c.line().is_worse());
        worse.map(|(id, _)| *id).collect()
    }

    /// How this connection would end the channel's being there, were it the last one.
    pub fn end_of(&self, id: ConnectionId, why: Down<'_>) -> End {
        let carried = self.lines.get(&id).is_some_and(|c| c.line().via.is_carried());
        match why {
            Down::Silent(_) => End::Silent,
            Down::Ended(_) if carried => End::Handed,
            Down::Ended(_) => End::Closed,
        }
    }

    /// A connection is dead, and has been taken out. `last_word`: the peer has said farewell, or all processes have
    /// settled, so nobody needs what has not arrived.
    pub fn handle_lost(&mut self, end: End, why: String, last_word: bool, since: Duration) -> Gone {
        if self.has_ended() {
            return Gone::Nothing;
        }
        if !self.lines.is_empty() {
            return Gone::Resend;
        }
        if last_word {
            return Gone::End;
        }
        self.state = State::Away(Away { since, why, end });
        Gone::Dial(end)
    }

    /// Dialling has come to nothing. `refused`: nobody listens any more where the peer did.
    pub fn handle_unreached(&self, now: Duration, patience: Duration, refused: bool) -> Unreached {
        let State::Away(away) = &self.state else {
            return Unreached::NotAway;
        };
        let time = now.saturating_sub(away.since);
        if time < patience && !refused {
            return Unreached::Again;
        }
        let end = match refused {
            true => "nobody listens there any more: the process has probably ended or was killed".to_owned(),
            false => format!(
                "the link has been down for {} s, longer than ISTHMUS_AWAY allows ({} s)",
                time.as_secs(),
                patience.as_secs()
            ),
        };
        Unreached::Lost(format!("{}, and {end}", away.why))
    }

    /// This process had been stopped: whoever was silent or away meanwhile has as much time as at first.
    pub fn forgive(&mut self, now: Duration) {
        if let State::Away(away) = &mut self.state {
            away.since = now;
        }
        for carrier in self.lines.values_mut() {
            carrier.line_mut().vigil.heard(now);
            carrier.begun().forgive(now);
        }
    }

    /// Acknowledgements that are due, silence, a peer that stays away. `in_flight`: segments that were not acknowledged
    /// on a connection; `awaited`: nothing else than the end of what has begun on it can bring what it brings.
    pub fn handle_timeout(
        &mut self,
        at: Moment,
        in_flight: impl Fn(ConnectionId) -> usize,
        awaited: impl Fn(&C) -> bool,
    ) -> Upkeep {
        let now = at.now;
        if let State::Away(away) = &self.state {
            return match away.since + at.patience {
                end if now >= end => Upkeep::AwayTooLong,
                end => Upkeep::Away(end),
            };
        }
        let (mut next, mut dead, mut say) = (Duration::MAX, Vec::new(), false);
        if at.listens {
            match self.unended(at, awaited) {
                Unended::Lost(time) => return Upkeep::NeverEnds(time),
                Unended::Due { at, ids } => (next, dead) = (at, ids),
            }
        }
        for (first, (id, carrier)) in self.lines.iter_mut().enumerate().map(|(i, c)| (i == 0, c)) {
            if !at.listens {
                // The peer must not think that nobody is there.
                carrier.receipts().heard(now);
                carrier.line_mut().vigil.heard(now);
                carrier.begun().forgive(now);
            }
            say |= carrier.receipts().is_due(now);
            let busy = in_flight(*id) > 0 || !carrier.is_flushed();
            match carrier.line_mut().vigil.duty(now, busy, first) {
                Duty::Wait(until) => next = next.min(until),
                Duty::Ask => {
                    carrier.line_mut().vigil.asked(now);
                    if carrier.is_flushed() {
                        carrier.say(Kind::Ask);
                        say = true;
                    }
                    next = next.min(now + ASKED);
                }
                Duty::GiveUp if carrier.reaches() && carrier.line_mut().vigil.spare() => next = next.min(now),
                Duty::GiveUp => dead.push((*id, carrier.line().vigil.silence(now))),
            }
            next = next.min(carrier.receipts().due_at().unwrap_or(Duration::MAX));
        }
        Upkeep::Connections { next, say, dead }
    }

    /// Looks for what has not ended in time.
    fn unended(&mut self, moment: Moment, awaited: impl Fn(&C) -> bool) -> Unended {
        let (mut at, mut ids) = (Duration::MAX, Vec::new());
        let patience = (moment.patience + SILENCE).saturating_sub(moment.unended);
        for (id, carrier) in &mut self.lines {
            let begun = *carrier.begun();
            match begun.due(patience) {
                Some(due) if moment.now < due => at = at.min(due),
                // What was sent again on another connection is not waited for.
                Some(_) if awaited(carrier) || !moment.unended.is_zero() => {
                    return Unended::Lost(moment.unended + begun.time(moment.now));
                }
                Some(_) => ids.push((*id, begun.time(moment.now))),
                None => {}
            }
        }
        Unended::Due { at, ids }
    }

    /// All processes have settled, and everything here was acknowledged. True: the farewell is said.
    pub fn handle_idle(&mut self) -> bool {
        if self.state != State::Open {
            return false;
        }
        self.state = State::Farewell;
        self.say_farewell();
        true
    }

    /// On every connection on which it was not said.
    fn say_farewell(&mut self) {
        for carrier in self.lines.values_mut().filter(|c| c.is_between()) {
            if carrier.line_mut().takes_leave() {
                carrier.say(Kind::Farewell);
            }
        }
    }

    /// The channel ends, in order or because the peer is `lost`. Gives its connections.
    pub fn handle_end(&mut self, lost: bool) -> BTreeMap<ConnectionId, C> {
        self.state = match lost {
            true => State::GivenUp,
            false => State::Over,
        };
        std::mem::take(&mut self.lines)
    }

    /// Everything that was there to send has arrived. `waits`: something has not left; `idle`: nothing waits, and
    /// everything was acknowledged.
    pub fn has_settled(&self, waits: bool, idle: bool) -> bool {
        match self.state {
            State::Dialling => !waits,
            State::Idle | State::Open | State::Away(_) => idle,
            State::Farewell | State::Over | State::GivenUp => true,
        }
    }

    /// Nothing is left to say, at the end. As [`Life::has_settled`].
    pub fn has_closed(&self, waits: bool, idle: bool) -> bool {
        match self.state {
            State::Idle | State::Over | State::GivenUp => true,
            State::Dialling => !waits,
            State::Open | State::Away(_) => idle && self.lines.is_empty(),
            State::Farewell => self
                .lines
                .values()
                .all(|c| c.line().has_taken_leave() && c.is_flushed()),
        }
    }
}

/// What there is to do about what has begun on connections of a channel and not ended.
enum Unended {
    /// The peer keeps this process waiting, for so long.
    Lost(Duration),
    /// These connections have broken for the other end alone; the next look is due then.
    Due {
        at: Duration,
        ids: Vec<(ConnectionId, Duration)>,
    },
}
