// SPDX-License-Identifier: Apache-2.0
//! What collective accesses come to: who cares for which part of the file, in which round, and through whom data go
//! there.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::file::File;
use crate::group::{Sites, word};
use crate::hints::Choice;
use crate::view::View;

/// Rounds in which as many bytes go as the hint `cb_buffer_size` says: memory of short ones is warm when it is used
/// again, and over a wide-area link they begin and end sooner.
const FINER: u64 = 4;

/// An access as all others know it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    /// First byte of the file.
    start: u64,
    /// Byte behind the last one.
    end: u64,
    /// 0: as it pays, 1: always, 2: never in two phases.
    choice: u64,
    buffer: u64,
    aggregators: u64,
    stripe: u64,
}

impl Access {
    pub(crate) fn of(file: &File, view: &View, at: u64, length: u64, writes: bool) -> Self {
        let hints = file.hints();
        let (start, end) = view.span(at, length).unwrap_or((0, 0));
        Self {
            start,
            end,
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
            choice: at(2),
            buffer: at(3),
            aggregators: at(4),
            stripe: at(5),
        }
    }
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
    accesses: Vec<Access>,
    pub(crate) aggregators: Vec<u32>,
    sites: Arc<Sites>,
    start: u64,
    /// Bytes of each domain but the last.
    length: u64,
    end: u64,
    pub(crate) window: u64,
    /// Rounds whose messages are under way at the same time.
    pub(crate) depth: u64,
}

impl Domains {
    /// `None`: everybody for himself.
    pub(crate) fn new(file: &File, accesses: Vec<Access>) -> Option<Self> {
        // Hints must be the same everywhere; where they are not, those of rank 0 count.
        let hints = *accesses.first()?;
        let some = || accesses.iter().filter(|access| access.start < access.end);
        let (start, end) = (some().map(|a| a.start).min()?, some().map(|a| a.end).max()?);
        let interleaved = some().zip(some().skip(1)).any(|(a, b)| b.start < a.end);
        let wanted = match hints.choice {
            0 => interleaved,
            choice => choice == 1,
        };
        let processes = &file.processes;
        // A guest takes part in nothing collective.
        if processes.guest().is_some() {
            return None;
        }
        if !processes.has_far() && (!wanted || file.here.is_atomic()) {
            return None;
        }
        let aggregators = processes.aggregators(hints.aggregators as u32);
        if aggregators.contains(&processes.rank()) {
            file.aggregates.store(true, Ordering::Relaxed);
        }
        let stripe = hints.stripe.max(1);
        let start = start - start % stripe;
        let length = (end - start)
            .div_ceil(aggregators.len() as u64)
            .next_multiple_of(stripe);
        let window = (hints.buffer / FINER).max(1);
        // A link is to have as many bytes under way as two whole buffers.
        let depth = if processes.has_far() { 2 * FINER } else { 2 };
        Some(Self {
            accesses,
            aggregators,
            sites: processes.sites().clone(),
            start,
            length,
            end,
            window,
            depth,
        })
    }

    pub(crate) fn rounds(&self) -> u64 {
        self.length.min(self.end - self.start).div_ceil(self.window)
    }

    /// What an aggregator cares for in a round.
    pub(crate) fn window(&self, aggregator: usize, round: u64) -> Window {
        let start = self.start + aggregator as u64 * self.length;
        let end = (start + self.length).min(self.end);
        let low = (start + round * self.window).min(end);
        Window {
            low,
            high: (low + self.window).min(end),
        }
    }

    /// All that an aggregator cares for.
    pub(crate) fn whole(&self, aggregator: usize) -> Window {
        let start = (self.start + aggregator as u64 * self.length).min(self.end);
        Window {
            low: start,
            high: (start + self.length).min(self.end),
        }
    }

    /// Whether a process takes part in a window.
    pub(crate) fn takes_part(&self, rank: u32, window: Window) -> bool {
        let access = self.accesses[rank as usize];
        access.start < window.high && window.low < access.end && window.low < window.high
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
