// SPDX-License-Identifier: Apache-2.0
//! What is known of a job's links: estimates, and where each comes from.

use std::collections::BTreeMap;
use std::sync::Arc;

use isthmus_wire::links as wire;
pub use isthmus_wire::links::{Measured, Origin};
pub use isthmus_wire::rate::Rate;

use crate::{Curve, CurveError, Level, Link, Links};

/// What a message adds on its way through a wide-area link, bytes: header, record, packet.
const FRAMING: u64 = 150;

/// A latency is said to have changed when it is off by more than a fifth and more than [`JITTER`], a rate when it is
/// off by a third.
const LATENCY_CHANGE: u64 = 5;
const RATE_CHANGE: u64 = 3;
/// Nanoseconds by which two measurements of the same latency may differ.
const JITTER: u64 = 100_000;

/// Where the numbers of a link come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Origins {
    /// Of the latency.
    pub latency: Origin,
    /// Of the gap.
    pub rate: Origin,
}

/// The links in force with the origin of each number, immutable: equal at all processes that use them together.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LinkEstimates {
    links: Arc<Links>,
    pairs: BTreeMap<(u32, u32), Origins>,
    /// What rates stand on that earlier jobs have left, as far as it is known.
    evidence: BTreeMap<(u32, u32), Rate>,
    version: u32,
}

impl LinkEstimates {
    /// These links, all as somebody has said.
    pub fn new(links: Links, origins: impl IntoIterator<Item = ((u32, u32), Origins)>) -> Self {
        Self {
            links: Arc::new(links),
            pairs: origins
                .into_iter()
                .map(|((a, b), o)| ((a.min(b), a.max(b)), o))
                .collect(),
            evidence: BTreeMap::new(),
            version: 0,
        }
    }

    /// Of processes that share so many processors per node.
    #[must_use]
    pub fn with_processors(&self, processors: u32) -> Self {
        let mut links = Links::clone(&self.links);
        links.processors = processors;
        Self {
            links: Arc::new(links),
            ..self.clone()
        }
    }

    /// The links.
    pub fn links(&self) -> &Arc<Links> {
        &self.links
    }

    /// How often they were changed since the job began.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Pairs of local areas of which something is known, in order.
    pub fn pairs(&self) -> impl Iterator<Item = ((u32, u32), Origins, &Link)> {
        self.pairs
            .iter()
            .map(|(&(a, b), &origins)| ((a, b), origins, self.links.pair(a, b)))
    }

    /// Where the numbers of the link between two local areas come from.
    pub fn origins(&self, a: u32, b: u32) -> Origins {
        self.pairs.get(&(a.min(b), a.max(b))).copied().unwrap_or_default()
    }

    /// Whether what was measured says something else than what is in force, by more than measurements differ from each
    /// other.
    pub fn differs(&self, measured: &Measured) -> bool {
        let (a, b) = measured.between;
        let (link, origins) = (self.links.pair(a, b), self.origins(a, b));
        let off = |old: u64, new: u64, part: u64| old.abs_diff(new) > old / part;
        let latency = |new| {
            origins.latency == Origin::Assumed
                || off(link.latency, new, LATENCY_CHANGE) && link.latency.abs_diff(new) > JITTER
        };
        let rate = |rate: Rate| {
            let (old, new, bound) = (link.gap.as_rate(), rate.bytes_per_second, rate.at_least);
            let news = off(old, new, RATE_CHANGE) && !(bound && new < old);
            origins.rate == Origin::Assumed || news && self.is_believed(measured, rate)
        };
        origins.latency != Origin::Pinned && measured.latency.is_some_and(latency)
            || origins.rate != Origin::Pinned && measured.rate.is_some_and(rate)
    }

    /// Whether a rate that was measured now is better founded than what an earlier job has left, if it has left any.
    fn is_believed(&self, measured: &Measured, rate: Rate) -> bool {
        let (a, b) = measured.between;
        let cached = self.origins(a, b).rate == Origin::Cached;
        let earlier = self.evidence.get(&(a.min(b), a.max(b))).filter(|_| cached);
        earlier.is_none_or(|earlier| rate.or_older(*earlier, 0) == rate)
    }

    /// With what was measured, now or earlier (`origin`): of the two the better evidence counts; what the user pinned
    /// stays. A new version if that changes anything.
    #[must_use]
    pub fn learn(&self, measured: &[Measured], origin: Origin) -> Self {
        let (mut links, mut pairs) = (Links::clone(&self.links), self.pairs.clone());
        let mut evidence = self.evidence.clone();
        for one in measured {
            let (a, b) = one.between;
            let mut link = links.pair(a, b).clone();
            let mut origins = self.origins(a, b);
            if let Some(latency) = one.latency.filter(|_| origins.latency != Origin::Pinned) {
                (link.latency, origins.latency) = (latency, origin);
            }
            // That a link does at least what is known of it already is no news.
            let old = (origins.rate != Origin::Assumed).then(|| link.gap.as_rate());
            let says_more = |new: &Rate| !new.at_least || old.is_none_or(|old| new.bytes_per_second > old);
            let rate = one.rate.filter(|_| origins.rate != Origin::Pinned).filter(says_more);
            if let Some(rate) = rate.filter(|rate| self.is_believed(one, *rate)) {
                evidence.insert((a.min(b), a.max(b)), rate);
                (link.gap, origins.rate) = (Curve::framed(rate.bytes_per_second, FRAMING), origin);
            }
            if origins != Origins::default() {
                links.set_pair(a, b, link);
                pairs.insert((a, b), origins);
            }
        }
        let changed = links != *self.links;
        Self {
            links: Arc::new(links),
            pairs,
            evidence,
            version: self.version + u32::from(changed),
        }
    }

    /// With this link between two local areas.
    #[must_use]
    pub fn with_link(&self, (a, b): (u32, u32), link: Link, origins: Origins) -> Self {
        let (mut links, mut pairs) = (Links::clone(&self.links), self.pairs.clone());
        links.set_pair(a, b, link);
        pairs.insert((a.min(b), a.max(b)), origins);
        Self {
            links: Arc::new(links),
            pairs,
            evidence: self.evidence.clone(),
            version: self.version,
        }
    }

    /// As it travels.
    pub fn to_wire(&self) -> wire::Table {
        let link = |link: &Link| wire::Link {
            latency: link.latency,
            gap: link.gap.points().to_vec(),
            send: link.send.points().to_vec(),
            receive: link.receive.points().to_vec(),
        };
        wire::Table {
            measure: false,
            levels: Level::ALL.map(|level| link(self.links.level(level))),
            reduce: self.links.reduce.points().to_vec(),
            copy: self.links.copy.points().to_vec(),
            pairs: self
                .pairs()
                .map(|(between, origins, own)| wire::Pair {
                    between,
                    latency: origins.latency,
                    rate: origins.rate,
                    evidence: self.evidence.get(&between).copied(),
                    link: link(own),
                })
                .collect(),
        }
    }

    /// What has travelled.
    pub fn from_wire(table: wire::Table) -> Result<Self, CurveError> {
        let link = |link: wire::Link| -> Result<Link, CurveError> {
            Ok(Link {
                latency: link.latency,
                gap: Curve::new(link.gap)?,
                send: Curve::new(link.send)?,
                receive: Curve::new(link.receive)?,
            })
        };
        let mut links = Links::default();
        for (level, own) in Level::ALL.into_iter().zip(table.levels) {
            links.set_level(level, link(own)?);
        }
        (links.reduce, links.copy) = (Curve::new(table.reduce)?, Curve::new(table.copy)?);
        let mut origins = Vec::with_capacity(table.pairs.len());
        let mut evidence = BTreeMap::new();
        for pair in table.pairs {
            let (a, b) = pair.between;
            evidence.extend(pair.evidence.map(|rate| (pair.between, rate)));
            links.set_pair(a, b, link(pair.link)?);
            let (latency, rate) = (pair.latency, pair.rate);
            origins.push(((a, b), Origins { latency, rate }));
        }
        let estimates = Self::new(links, origins);
        Ok(Self { evidence, ..estimates })
    }
}

/// Measurements of several processes as one per pair: the shortest latency, the middle rate ([`Rate::middle`]). The
/// order of the processes does not matter.
pub fn combine(all: impl IntoIterator<Item = Measured>) -> Vec<Measured> {
    let mut pairs: BTreeMap<(u32, u32), (Option<u64>, Vec<Rate>)> = BTreeMap::new();
    for one in all {
        let (latency, rates) = pairs.entry(one.between).or_default();
        *latency = [*latency, one.latency].into_iter().flatten().min();
        rates.extend(one.rate);
    }
    let one = |(between, (latency, rates)): ((u32, u32), (Option<u64>, Vec<Rate>))| Measured {
        between,
        latency,
        rate: Rate::middle(rates),
    };
    pairs.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(between: (u32, u32), latency: Option<u64>, rate: Option<u64>) -> Measured {
        let rate = rate.map(Rate::bare);
        Measured { between, latency, rate }
    }

    fn pinned() -> LinkEstimates {
        let mut links = Links::default();
        links.set_pair(2, 0, Link::simple(5_000_000, 1_000_000, 7));
        let origins = Origins {
            latency: Origin::Pinned,
            rate: Origin::Assumed,
        };
        LinkEstimates::new(links, [((2, 0), origins)])
    }

    #[test]
    fn pins_stay_and_the_rest_is_learnt() {
        let before = pinned();
        let after = before.learn(
            &[
                measured((0, 2), Some(1), Some(4_000_000)),
                measured((0, 1), Some(9_000_000), None),
                measured((1, 2), None, None),
            ],
            Origin::Measured,
        );
        let all: Vec<_> = after
            .pairs()
            .map(|(p, o, l)| (p, o.latency, o.rate, l.latency))
            .collect();
        assert_eq!(
            all,
            [
                ((0, 1), Origin::Measured, Origin::Assumed, 9_000_000),
                ((0, 2), Origin::Pinned, Origin::Measured, 5_000_000)
            ]
        );
        assert_eq!(after.links().pair(0, 2).gap.as_rate(), 4_000_000);
        assert_eq!((before.version(), after.version()), (0, 1));
        assert_eq!(after.learn(&[], Origin::Measured).version(), 1);
    }

    #[test]
    fn small_differences_are_none() {
        let estimates = pinned().learn(&[measured((0, 1), Some(10_000_000), Some(1_000_000))], Origin::Measured);
        let differs = |latency, rate| estimates.differs(&measured((0, 1), latency, rate));
        assert!(!differs(Some(11_900_000), Some(1_320_000)) && !differs(None, None));
        assert!(differs(Some(12_100_000), None) && differs(None, Some(660_000)));
        assert!(!estimates.differs(&measured((0, 2), Some(1), None)), "pinned");
        assert!(
            estimates.differs(&measured((1, 2), Some(20_000_000), None)),
            "was assumed"
        );
        let bound = |rate| Measured {
            rate: Some(Rate {
                at_least: true,
                ..Rate::bare(rate)
            }),
            ..measured((0, 1), None, None)
        };
        assert!(!estimates.differs(&bound(10_000)) && estimates.differs(&bound(2_000_000)));
        let after = |rate| {
            estimates
                .learn(&[bound(rate)], Origin::Measured)
                .links()
                .pair(0, 1)
                .gap
                .as_rate()
        };
        assert_eq!((after(10_000), after(2_000_000)), (1_000_000, 2_000_000));
    }

    #[test]
    fn what_an_earlier_job_knew_better_stays() {
        let rate = |mbit: u64, milliseconds: u64| Measured {
            rate: Some(Rate {
                busy: milliseconds * 1_000_000,
                ..Rate::bare(mbit * 125_000)
            }),
            ..measured((0, 1), None, None)
        };
        let cached = pinned().learn(&[rate(200, 400)], Origin::Cached);
        // It travels with what it stands on.
        let cached = LinkEstimates::from_wire(cached.to_wire()).unwrap();
        let after = |one: Measured| {
            let after = cached.learn(&[one], Origin::Measured);
            (after.links().pair(0, 1).gap.as_rate() / 125_000, cached.differs(&one))
        };
        assert_eq!(
            after(rate(40, 20)),
            (200, false),
            "from the slow beginning of a connection"
        );
        assert_eq!(after(rate(40, 500)), (40, true), "the link has changed");
        // Of what this job has measured the newest counts.
        let live = cached.learn(&[rate(100, 500)], Origin::Measured);
        let live = live.learn(&[rate(40, 20)], Origin::Measured);
        assert_eq!(live.links().pair(0, 1).gap.as_rate(), 5_000_000);
    }

    #[test]
    fn what_several_have_measured_is_one() {
        let (a, b) = (measured((0, 1), Some(5), Some(7)), measured((0, 1), Some(4), None));
        let one = [measured((0, 1), Some(4), Some(7))];
        assert_eq!(combine([a, b]), one);
        assert_eq!(combine([b, a]), one);
        let rates = |all: &[u64]| {
            combine(all.iter().map(|&r| measured((0, 1), None, Some(r))))[0]
                .rate
                .map(|r| r.bytes_per_second)
        };
        assert_eq!((rates(&[9, 1]), rates(&[9, 1, 3])), (Some(5), Some(3)));
        assert_eq!(combine([measured((0, 1), None, None)])[0].rate, None);
    }

    #[test]
    fn the_wire_changes_nothing() {
        let estimates = pinned();
        assert_eq!(LinkEstimates::from_wire(estimates.to_wire()), Ok(estimates));
    }
}
