// SPDX-License-Identifier: Apache-2.0
//! What collective accesses come to: who cares for which part of the file, in which round, and through whom data go
//! there.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::extents::{self, Extent, Measure};
use crate::file::File;
use crate::group::{Sites, word};
use crate::hints::Choice;

/// Rounds in which as many bytes go as the hint `cb_buffer_size` says: memory of short ones is warm when it is used
/// again, and over a wide-area link they begin and end sooner.
const FINER: u64 = 4;

/// Most that a message of one window may have where the data are not laid out evenly: more is no such message.
const MOST: u64 = 1 << 30;

/// An access as all others know it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    /// First byte of the file.
    start: u64,
    /// Byte behind the last one.
    end: u64,
    bytes: u64,
    /// Extents that it tells of.
    extents: u64,
    /// 0: as it pays, 1: always, 2: never in two phases.
    choice: u64,
    buffer: u64,
    aggregators: u64,
    stripe: u64,
}

impl Access {
    /// Bytes of one that travels.
    pub(crate) const BYTES: usize = 64;

    pub(crate) fn of(file: &File, extents: &[Extent], writes: bool) -> Self {
        let hints = file.hints();
        Self {
            start: extents.first().map_or(0, |first| first.low),
            end: extents.last().map_or(0, |last| last.high),
            bytes: extents.iter().map(|extent| extent.bytes).sum(),
            extents: extents.len() as u64,
            choice: match hints.collective[usize::from(writes)] {
                Choice::Automatic => 0,
                Choice::Enable => 1,
                Choice::Disable => 2,
            },
            buffer: hints.buffer,
            aggregators: u64::from(hints.aggregators),
            stripe: hints.stripe,
        }
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        let words = [
            self.start,
            self.end,
            self.bytes,
            self.extents,
            self.choice,
            self.buffer,
            self.aggregators,
            self.stripe,
        ];
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let at = |i: usize| word(bytes.get(8 * i..).unwrap_or_default());
        Self {
            start: at(0),
            end: at(1),
            bytes: at(2),
            extents: at(3),
            choice: at(4),
            buffer: at(5),
            aggregators: at(6),
            stripe: at(7),
        }
    }
}

/// Whether processes access the file for each other, after all have told what they access.
pub(crate) fn are_two_phases(file: &File, accesses: &[Access]) -> bool {
    let some = || accesses.iter().filter(|access| access.start < access.end);
    // Hints must be the same everywhere; where they are not, those of rank 0 count.
    let Some(hints) = accesses.first().filter(|_| some().next().is_some()) else {
        return false;
    };
    // A guest takes part in nothing collective. In atomic mode each access is one for itself.
    if file.processes.guest().is_some() || file.here.is_atomic() {
        return false;
    }
    let interleaved = some().zip(some().skip(1)).any(|(a, b)| b.start < a.end);
    let wanted = match hints.choice {
        0 => interleaved,
        choice => choice == 1,
    };
    wanted || file.processes.has_far()
}

/// How many extents the processes have to tell of, if that is more than their accesses say.
pub(crate) fn extents_to_tell(accesses: &[Access]) -> Option<usize> {
    let most = accesses.iter().map(|access| access.extents).max()?;
    let most = (most as usize).min(extents::most(accesses.len() as u32));
    (most > 1).then_some(most)
}

/// Where data go next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// To who gathers them inside this site, so that one stream goes from a site to another.
    Gatherer(u32),
    /// To who uses the disk.
    Aggregator(u32),
}

/// A part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) low: u64,
    /// Behind the last byte.
    pub(crate) high: u64,
}

/// Who cares for which part of the file.
pub(crate) struct Domains {
    /// Of all processes, and where those of each begin.
    extents: Vec<Extent>,
    firsts: Vec<usize>,
    pub(crate) aggregators: Vec<u32>,
    sites: Arc<Sites>,
    measure: Measure,
    /// What counts in each domain but the last, and in a window.
    length: u64,
    window: u64,
    /// Bytes that a message has at most for one window.
    pub(crate) most: u64,
    /// Rounds whose messages are under way at the same time.
    pub(crate) depth: u64,
}

impl Domains {
    /// From what all access; `told`: the extents of each, where one has several.
    pub(crate) fn new(file: &File, accesses: &[Access], told: Option<Vec<Vec<Extent>>>) -> Self {
        let hints = accesses.first().copied().unwrap_or_default();
        let processes = &file.processes;
        let aggregators = processes.aggregators(hints.aggregators as u32);
        if aggregators.contains(&processes.rank()) {
            file.aggregates.store(true, Ordering::Relaxed);
        }
        let (mut all, mut firsts) = (Vec::new(), vec![0]);
        for (rank, access) in accesses.iter().enumerate() {
            match &told {
                Some(told) => all.extend(&told[rank]),
                None => all.extend(extents::checked(access.start, access.end, access.bytes)),
            }
            firsts.push(all.len());
        }
        let stripe = hints.stripe.clamp(1, 1 << 40);
        let measure = Measure::new(&all, stripe);
        let length = measure.total.div_ceil(aggregators.len().max(1) as u64);
        let window = (hints.buffer / FINER).max(1);
        let total = all.iter().fold(0_u64, |sum, extent| sum.saturating_add(extent.bytes));
        Self {
            extents: all,
            firsts,
            aggregators,
            sites: processes.sites().clone(),
            most: match measure.is_dense {
                true => window,
                false => window.max(total.min(MOST)),
            },
            measure,
            length: length.next_multiple_of(stripe),
            window,
            // A link is to have as many bytes under way as two whole buffers.
            depth: if processes.has_far() { 2 * FINER } else { 2 },
        }
    }

    pub(crate) fn rounds(&self) -> u64 {
        self.length.min(self.measure.total).div_ceil(self.window)
    }

    /// What counts before the domain of an aggregator.
    fn before(&self, aggregator: usize) -> u64 {
        self.length.saturating_mul(aggregator as u64).min(self.measure.total)
    }

    /// What an aggregator cares for in a round.
    pub(crate) fn window(&self, aggregator: usize, round: u64) -> Window {
        let end = self.before(aggregator + 1);
        let low = self
            .before(aggregator)
            .saturating_add(round.saturating_mul(self.window))
            .min(end);
        Window {
            low: self.measure.place(low),
            high: self.measure.place(low.saturating_add(self.window).min(end)),
        }
    }

    /// All that an aggregator cares for.
    pub(crate) fn whole(&self, aggregator: usize) -> Window {
        Window {
            low: self.measure.place(self.before(aggregator)),
            high: self.measure.place(self.before(aggregator + 1)),
        }
    }

    /// Whether a process takes part in a window.
    pub(crate) fn takes_part(&self, rank: u32, window: Window) -> bool {
        let rank = rank as usize;
        let extents = &self.extents[self.firsts[rank]..self.firsts[rank + 1]];
        let first = extents.partition_point(|extent| extent.high <= window.low);
        window.low < window.high && extents.get(first).is_some_and(|extent| extent.low < window.high)
    }

    /// The process that gathers what those of a site have for an aggregator; `None`: the aggregator is at that site.
    fn gatherer(&self, site: usize, index: usize) -> Option<u32> {
        let ranks = &self.sites.all()[site];
        let elsewhere = self.sites.of(self.aggregators[index]) != site;
        elsewhere.then(|| ranks[index % ranks.len()])
    }

    /// To whom a process sends what it has for an aggregator.
    pub(crate) fn towards(&self, rank: u32, index: usize) -> Hop {
        match self.gatherer(self.sites.of(rank), index) {
            None => Hop::Aggregator(self.aggregators[index]),
            Some(gatherer) => Hop::Gatherer(gatherer),
        }
    }

    /// Whether a process gathers for an aggregator.
    pub(crate) fn gathers(&self, rank: u32, index: usize) -> bool {
        self.gatherer(self.sites.of(rank), index) == Some(rank)
    }

    /// Whose data a gatherer hears in a window: those of its site but itself.
    pub(crate) fn gathered(&self, gatherer: u32, window: Window) -> Vec<u32> {
        let ranks = &self.sites.all()[self.sites.of(gatherer)];
        let others = ranks.iter().copied().filter(|rank| *rank != gatherer);
        others.filter(|rank| self.takes_part(*rank, window)).collect()
    }

    /// Who sends to an aggregator in a window: those of its site but itself, and for each other site one.
    pub(crate) fn senders(&self, index: usize, window: Window) -> Vec<u32> {
        let aggregator = self.aggregators[index];
        let mut senders = Vec::new();
        for (site, ranks) in self.sites.all().iter().enumerate() {
            let mut active = ranks.iter().copied().filter(|rank| self.takes_part(*rank, window));
            match self.gatherer(site, index) {
                None => senders.extend(active.filter(|rank| *rank != aggregator)),
                Some(gatherer) => senders.extend(active.next().map(|_| gatherer)),
            }
        }
        senders
    }
}
