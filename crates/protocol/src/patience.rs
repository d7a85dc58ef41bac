// SPDX-License-Identifier: Apache-2.0
//! How a thread waits for others: it looks again at once, lets others run, or sleeps until it is woken.
//!
//! What is right depends on whether somebody else wants the thread's processor. Whoever has it alone looks again
//! and again: what it waits for is seen at once, and nobody loses anything. Whoever shares it may be waiting for
//! the very process that wants it too, and that one gets it only when this thread gives it away.
//!
//! Nobody counts processors: a job knows neither what else runs on a machine nor where its own processes will be. A
//! thread finds it out while it waits. Now and then it takes the time of a yield by two clocks: the wall's, and its
//! own, which stands still while others have the processor. If it stood still, the processor is shared
//! ([`Processor::yielded`]).
//!
//! ```text
//!   alone    look, look ... for a while, then a yield now and then, to find out whether it still is, as `spin` says
//!   shared   look, yield, look, yield ...                     as often as `yields` says, and no longer than `spin`
//!   then     sleep
//! ```
//! A yield to somebody who computes costs a turn of the scheduler, milliseconds, and whoever computes gets the share of
//! the processor that is his anyway. So such a yield does not count as one to others that wait: who is alone with a
//! process that computes looks again and again, as if it were alone. It still yields after a while, since who is waited
//! for is often there, too: to wait without any yields was tried, and four ranks in shared memory took 150 us a message
//! instead of 7. The sleep that follows a long turn of somebody else lets the scheduler put the others together.
//!
//! What is long depends on how many processes of the job share a processor. After a yield each of them may copy a piece
//! of a long message, one after the other: seven that take 100 us each look like one who computes, and are not.
//!
//! Where there can be a processor for each process of the job, nobody that is waited for is on this one. Whoever
//! computes there takes turns, a yield gives him another one, and a thread that sleeps loses its place: two ranks of
//! which one slept got 20 % of a processor each where 65 % were theirs. So a thread that has lost a turn neither yields
//! nor sleeps until it has waited for some turns like that one.
//!
//! Times are arguments, nanoseconds; one machine serves all transports.

/// Looks without pause from one look at the clock to the next.
const LOOKS: u32 = 32;
/// Longest time to look without pause, nanoseconds. Looking at sockets takes as long as a message: whoever shares a
/// processor with the process that it waits for would get nothing meanwhile.
const ENOUGH: u64 = 25_000;
/// While alone a thread yields after each so-manieth part of the time that it has waited: yields then cost a small
/// part of any wait.
const PART: u64 = 8;
/// Of the yields on a shared processor one in so many is timed: four looks at clocks cost as much as a yield.
const TIMED: u8 = 8;
/// Another one that had the processor for so long, nanoseconds, computes. One that waits gives it back sooner.
const TURN: u64 = 500_000;
/// In what turns of others are remembered, nanoseconds, and the longest one in it: of more than 16 ms there are none.
const UNIT: u64 = 250_000;
const LONGEST: u8 = 64;
/// How many turns of others a thread waits for before it sleeps.
const TURNS: u64 = 4;
/// Fewest yields before a thread sleeps.
const LEAST: u64 = 2;
/// A sleep this short, nanoseconds, would have been saved by waiting a little longer: a round through many
/// processes of a core.
const SHORT: u64 = 300_000;
/// Most halvings of yields.
const MOST_HALVINGS: u8 = 4;
/// Most doublings of the time that is spun: to less than a millisecond, a small part of anything that crosses a
/// wide area.
const MOST_DOUBLINGS: u8 = 2;
/// Above this a processor counts as shared: a single late yield may have been anything.
const ALONE: u8 = 2;
/// Most that is remembered. Where ranks share processors, one that has its own for a moment is not alone: it would spin
/// in vain when it next waits for one that is there.
const SURE: u8 = 16;
/// What a late yield adds; one that was not late takes 1 away.
const LATE: u8 = 2;
/// What a yield to somebody who computes takes away.
const COMPUTED: u8 = 4;

/// When something was by two clocks, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The clock on the wall.
    pub wall: u64,
    /// Time that the thread has had a processor.
    pub own: u64,
}

/// How long a thread waits in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Looks without pause.
    pub polls: u64,
    /// Nanoseconds before it sleeps.
    pub spin: u64,
    /// Yields before it sleeps, on a shared processor.
    pub yields: u64,
}

/// What to do after a look in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Look again.
    Poll,
    /// Let others run; [`Processor::is_due`] says whether that is to be timed.
    Yield,
    /// Sleep until woken, and tell [`Processor::slept`].
    Sleep,
}

/// What the waits of a process have been like.
///
/// Without spare processors a message from a process that shares this one is there after some rounds of giving it
/// away; one from another site, or the next piece of a long one, is not, and each round takes time from those who
/// have work. So after every sleep that was long a thread yields half as often before the next one, and after one
/// that was short twice as often.
///
/// Alone, what came soon after the sleep had begun is waited for twice as long the next time: being woken costs
/// more than the rest of the wait would have, and longer still on a virtual machine. (Messages of 4 MiB to a
/// process of the machine take 0.35 ms; with sleeps they took a tenth more.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// How sure it is that somebody else wants it, up to [`SURE`].
    crowd: u8,
    /// Halvings of yields.
    long: u8,
    /// Doublings of the time that is spun.
    short: u8,
    /// Yields since the last one that was timed.
    untimed: u8,
    /// The turns of somebody who computes, in units of [`UNIT`]; 0: there is nobody.
    turn: u8,
    /// Other processes of the job that may be on this processor; 0: there can be a processor for each of them.
    neighbours: u8,
}

impl Default for Processor {
    fn default() -> Self {
        Self::new(1)
    }
}

impl Processor {
    /// Shared: a few yields show whether it is. `neighbours`: other processes of the job that may be on this processor;
    /// 0: there can be a processor for each process of the job on this machine.
    pub fn new(neighbours: u8) -> Self {
        Self {
            crowd: 2 * ALONE,
            long: 0,
            short: 0,
            untimed: TIMED,
            turn: 0,
            neighbours,
        }
    }

    /// Whether somebody else wants the processor, as far as is known.
    #[inline]
    pub fn is_shared(self) -> bool {
        self.crowd > ALONE
    }

    /// Whether the next yield is to be timed.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.untimed = self.untimed.saturating_add(1);
        !self.is_shared() || self.untimed >= TIMED
    }

    /// A yield began and ended at these times. If others had the processor for half as long as the yield itself
    /// took and more, they wanted it; if they had it for a whole turn each, somebody would have got it without the
    /// yield.
    pub fn yielded(&mut self, before: Times, after: Times) {
        let own = after.own.saturating_sub(before.own);
        let others = after.wall.saturating_sub(before.wall).saturating_sub(own);
        // A turn that was given away is not to be followed by others.
        let turns = TURN * u64::from(self.neighbours.max(1));
        self.untimed = if others < turns { 0 } else { TIMED };
        self.lost(others);
        self.crowd = match 2 * others > own {
            true if others < turns => (self.crowd + LATE).min(SURE),
            true => self.crowd.saturating_sub(COMPUTED),
            false => self.crowd.saturating_sub(1),
        };
    }

    /// A thread that wanted its processor was without it for so many nanoseconds.
    fn lost(&mut self, time: u64) {
        if time >= TURN {
            self.turn = self.turn.max((time / UNIT).min(u64::from(LONGEST)) as u8);
        }
    }

    /// Whether somebody who computes takes turns on a processor that no other process of the job needs, as far as is
    /// known.
    #[inline]
    fn has_rival(self) -> bool {
        self.neighbours == 0 && self.turn > 0
    }

    /// Whether a yield gives the processor to others that wait.
    #[inline]
    fn yields_to_others(self) -> bool {
        self.is_shared() && !self.has_rival()
    }

    /// A thread has slept for so many nanoseconds.
    pub fn slept(&mut self, time: u64) {
        (self.long, self.short) = if time <= SHORT {
            (self.long.saturating_sub(1), (self.short + 1).min(MOST_DOUBLINGS))
        } else {
            ((self.long + 1).min(MOST_HALVINGS), 0)
        };
    }

    /// As a number, which fits where threads share it.
    #[inline]
    pub fn to_bits(self) -> u64 {
        u64::from_le_bytes([
            self.crowd,
            self.long,
            self.short,
            self.untimed,
            self.turn,
            self.neighbours,
            0,
            0,
        ])
    }

    /// What [`Processor::to_bits`] gave.
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        let [crowd, long, short, untimed, turn, neighbours, ..] = bits.to_le_bytes();
        Self {
            crowd,
            long,
            short,
            untimed,
            turn,
            neighbours,
        }
    }

    fn yields(self, limits: &Limits) -> u64 {
        (limits.yields >> self.long).max(LEAST.min(limits.yields))
    }

    fn spin(self, limits: &Limits) -> u64 {
        let alone = limits.spin.saturating_mul(1 << self.short);
        match self.has_rival() && limits.spin > 0 {
            true => alone.max((TURNS * UNIT * u64::from(self.turn)) >> self.long),
            false => alone,
        }
    }
}

/// One wait.
#[derive(Clone, Debug)]
pub struct Patience {
    /// Looks before the next decision, and what to do after each.
    left: u32,
    meanwhile: Step,
    /// Looks so far, those that are left included.
    looks: u64,
    yields: u64,
    since: Option<u64>,
    /// When the last decision was taken.
    last: u64,
    /// How long it will have waited when it yields next, while alone.
    next_yield: u64,
}

impl Patience {
    /// Begins to wait on this processor.
    #[inline]
    pub fn new(processor: Processor) -> Self {
        let (left, meanwhile) = match processor.yields_to_others() {
            true => (LEAST as u32 - 1, Step::Yield),
            false => (LOOKS - 1, Step::Poll),
        };
        Self {
            left,
            meanwhile,
            looks: u64::from(left),
            yields: u64::from(left),
            since: None,
            last: u64::MAX,
            next_yield: ENOUGH,
        }
    }

    /// What to do after a look in vain; [`Patience::decide`] says it if this does not.
    #[inline]
    pub fn decided(&mut self) -> Option<Step> {
        let decided = self.left > 0;
        self.left = self.left.saturating_sub(1);
        decided.then_some(self.meanwhile)
    }

    /// A yield was timed: what was decided before may not hold any more.
    #[inline]
    pub fn reconsider(&mut self) {
        if self.meanwhile == Step::Yield {
            self.yields = self.yields.saturating_sub(u64::from(self.left));
        }
        self.left = 0;
    }

    /// What to do now, at this time of the wall's clock.
    pub fn decide(&mut self, processor: &mut Processor, limits: &Limits, wall: u64) -> Step {
        let waited = wall.saturating_sub(*self.since.get_or_insert(wall));
        if self.meanwhile == Step::Poll {
            processor.lost(wall.saturating_sub(self.last));
        }
        self.last = wall;
        self.looks += 1;
        if waited > processor.spin(limits) {
            processor.turn -= processor.turn.div_ceil(8);
            return Step::Sleep;
        }
        if processor.yields_to_others() {
            return self.share(*processor, limits);
        }
        let first = self.next_yield == ENOUGH && self.looks > limits.polls;
        self.meanwhile = Step::Poll;
        self.left = LOOKS - 1;
        self.looks += u64::from(self.left);
        if processor.has_rival() || !first && waited <= self.next_yield {
            return Step::Poll;
        }
        self.next_yield = waited + waited / PART;
        Step::Yield
    }

    fn share(&mut self, processor: Processor, limits: &Limits) -> Step {
        let left = processor.yields(limits).saturating_sub(self.yields);
        if left == 0 {
            return Step::Sleep;
        }
        // The clock is looked at less and less often.
        let few = left.min((self.yields / 2).clamp(1, u64::from(TIMED)));
        self.yields += few;
        self.meanwhile = Step::Yield;
        self.left = few as u32 - 1;
        Step::Yield
    }
}

#[cfg(test)]
mod tests;
