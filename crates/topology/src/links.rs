// SPDX-License-Identifier: Apache-2.0
//! What a message costs: link parameters as in the parameterised LogP model (PLogP).
//!
//! A message of `m` bytes keeps its sender busy for `send(m)`, then the link for `gap(m)`, travels for the latency, and
//! keeps its receiver busy for `receive(m)`. Each of them is a [`Curve`] over the size. All times are nanoseconds.

use crate::{Level, Topology};
use std::collections::HashMap;

/// A time that depends on a number of bytes: linear between its points, constant before the first, and beyond the last
/// point as between the last two.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Curve {
    points: Vec<(u64, u64)>,
}

/// Why points make no [`Curve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveError {
    /// More than [`Curve::MAX_POINTS`].
    TooMany,
    /// A size is not above the one before it.
    SizesNotAscending,
    /// A time is below the one before it.
    TimesDescending,
}

impl Curve {
    /// Most points of a curve.
    pub const MAX_POINTS: usize = isthmus_wire::links::MAX_POINTS;
    /// Size at which a rate's second point stands.
    const FAR: u64 = 1 << 40;

    /// No time for any size.
    pub const ZERO: Self = Self { points: Vec::new() };

    /// From points (bytes, nanoseconds).
    pub fn new(points: Vec<(u64, u64)>) -> Result<Self, CurveError> {
        if points.len() > Self::MAX_POINTS {
            return Err(CurveError::TooMany);
        }
        for pair in points.windows(2) {
            if pair[1].0 <= pair[0].0 {
                return Err(CurveError::SizesNotAscending);
            }
            if pair[1].1 < pair[0].1 {
                return Err(CurveError::TimesDescending);
            }
        }
        Ok(Self { points })
    }

    /// The same time for every size.
    pub fn constant(nanoseconds: u64) -> Self {
        Self {
            points: vec![(0, nanoseconds)],
        }
    }

    /// Time in proportion to the size, for a rate in bytes per second. A rate of 0 counts as 1.
    pub fn rate(bytes_per_second: u64) -> Self {
        let far = (u128::from(Self::FAR) * 1_000_000_000).div_ceil(u128::from(bytes_per_second.max(1)));
        Self {
            points: vec![(0, 0), (Self::FAR, u64::try_from(far).unwrap_or(u64::MAX))],
        }
    }

    /// As [`Curve::rate`], of so many bytes more than asked for.
    pub fn framed(bytes_per_second: u64, more: u64) -> Self {
        let rate = Self::rate(bytes_per_second);
        let first = rate.at(more);
        let points = rate.points.into_iter().map(|(b, t)| (b, t.saturating_add(first)));
        Self {
            points: points.collect(),
        }
    }

    /// Bytes per second of long messages: 1 MiB more than 1 MiB.
    pub fn as_rate(&self) -> u64 {
        const LONG: u64 = 1 << 20;
        let time = self.at(2 * LONG) - self.at(LONG);
        let rate = (u128::from(LONG) * 1_000_000_000 + u128::from(time) / 2) / u128::from(time.max(1));
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// The points (bytes, nanoseconds).
    pub fn points(&self) -> &[(u64, u64)] {
        &self.points
    }

    /// Nanoseconds for a number of bytes.
    pub fn at(&self, bytes: u64) -> u64 {
        let next = self.points.partition_point(|p| p.0 <= bytes);
        let (a, b) = match (next, self.points.len()) {
            (_, 0) => return 0,
            (0, _) | (_, 1) => return self.points[0].1,
            (next, count) if next == count => (self.points[count - 2], self.points[count - 1]),
            (next, _) => (self.points[next - 1], self.points[next]),
        };
        let rise = u128::from(b.1 - a.1) * u128::from(bytes - a.0) / u128::from(b.0 - a.0);
        a.1.saturating_add(u64::try_from(rise).unwrap_or(u64::MAX))
    }
}

/// One kind of link, or one link.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Link {
    /// One way, nanoseconds.
    pub latency: u64,
    /// How long a message occupies the link.
    pub gap: Curve,
    /// How long sending occupies the sender.
    pub send: Curve,
    /// How long receiving occupies the receiver.
    pub receive: Curve,
}

impl Link {
    /// A link with a rate in bytes per second and equal overheads, in nanoseconds, for all sizes.
    pub fn simple(latency: u64, bytes_per_second: u64, overhead: u64) -> Self {
        Self {
            latency,
            gap: Curve::rate(bytes_per_second),
            send: Curve::constant(overhead),
            receive: Curve::constant(overhead),
        }
    }
}

impl Link {
    /// The memory of a node: short messages are copied in by the sender and out by the receiver, longer ones are copied
    /// by the receiver alone, where the sender has them. So copying is work of processes, which share processors; the
    /// gap is what the memory itself can do.
    ///
    /// From two processes on a machine of two processors: half round trips of 8 B, 1 KiB and 8 KiB take 0.2, 0.3 and
    /// 0.9 µs; both at once send and receive 64 KiB in 6 and 1 MiB in 72 µs. (One message alone is copied by both
    /// processes in half of that, but in a collective operation both have messages of their own.) The rate of the
    /// memory is the usual one of servers with several channels.
    fn of_memory() -> Self {
        let (short, copied, told) = (60, 400, 1_000);
        let rate = Curve::rate(14_000_000_000);
        let curve = |long, far| Curve {
            points: vec![
                (0, short),
                (Self::COPIED, copied),
                (Self::COPIED + 1, long),
                (1 << 40, far),
            ],
        };
        Self {
            latency: 100,
            gap: Curve::rate(40_000_000_000),
            send: curve(told, told),
            receive: curve(told + rate.at(Self::COPIED), told + rate.at(1 << 40)),
        }
    }

    /// Bytes up to which messages in the memory of a node are copied by both.
    const COPIED: u64 = 8 << 10;
    /// Bytes up to which other messages are sent without asking.
    const EAGER: u64 = 16 << 10;

    /// The same link where longer messages are announced first and fetched when they are wanted, which takes either
    /// process so many nanoseconds more.
    fn announced(mut self, time: u64) -> Self {
        for curve in [&mut self.send, &mut self.receive] {
            let short = curve.at(0);
            // Shorter ones are copied on their way.
            let copied = short + Self::EAGER / 10;
            let long = (short + time).max(copied);
            curve.points = vec![
                (0, short),
                (Self::EAGER, copied),
                (Self::EAGER + 1, long),
                (1 << 40, long),
            ];
        }
        self
    }
}

/// All links of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    levels: [Link; Level::COUNT],
    pairs: HashMap<(u32, u32), Link>,
    /// How long a process combines so many bytes with others.
    pub reduce: Curve,
    /// How long a process copies so many bytes.
    pub copy: Curve,
    /// Processors that the processes of a node share.
    pub processors: u32,
}

impl Default for Links {
    /// Round numbers of the usual order of magnitude, for levels of which nothing is known; inside a node what was
    /// measured on one.
    fn default() -> Self {
        Self {
            levels: [
                Link::simple(20_000_000, 12_500_000, 10_000),
                Link::simple(500_000, 125_000_000, 10_000),
                Link::simple(10_000, 1_250_000_000, 2_000),
                Link::simple(2_000, 5_000_000_000, 500).announced(4_000),
                Link::of_memory(),
            ],
            pairs: HashMap::new(),
            reduce: Curve::rate(5_000_000_000),
            copy: Curve::rate(10_000_000_000),
            processors: u32::MAX,
        }
    }
}

impl Links {
    /// Links that are alike at each level; combining and copying take no time.
    pub fn alike(levels: [Link; Level::COUNT]) -> Self {
        Self {
            levels,
            pairs: HashMap::new(),
            reduce: Curve::ZERO,
            copy: Curve::ZERO,
            processors: u32::MAX,
        }
    }

    /// The links of a level that have no parameters of their own.
    pub fn level(&self, level: Level) -> &Link {
        &self.levels[level.index()]
    }

    /// Sets the links of a level.
    pub fn set_level(&mut self, level: Level, link: Link) {
        self.levels[level.index()] = link;
    }

    /// Sets the link between two local areas, both ways.
    pub fn set_pair(&mut self, a: u32, b: u32, link: Link) {
        self.pairs.insert((a.min(b), a.max(b)), link);
    }

    /// The least latency of all links between local areas.
    pub fn least_wide_latency(&self) -> u64 {
        let own = self.pairs.values().map(|link| link.latency).min();
        let other = self.level(Level::WideArea).latency;
        own.map_or(other, |own| own.min(other))
    }

    /// The link that a message between two processes (world ranks) takes, and its level.
    ///
    /// # Panics
    /// If a rank is not below [`Topology::size`].
    pub fn between(&self, topology: &Topology, a: u32, b: u32) -> (Level, &Link) {
        let level = topology.level_between(a, b);
        let link = match level {
            Level::WideArea => self.pair(topology.clusters_of(a)[0], topology.clusters_of(b)[0]),
            _ => self.level(level),
        };
        (level, link)
    }

    /// The link between two local areas.
    pub fn pair(&self, a: u32, b: u32) -> &Link {
        let own = self.pairs.get(&(a.min(b), a.max(b)));
        own.unwrap_or_else(|| self.level(Level::WideArea))
    }

    /// Whether two local areas have a link with parameters of its own.
    pub fn has_pair(&self, a: u32, b: u32) -> bool {
        self.pairs.contains_key(&(a.min(b), a.max(b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_linear_between_points_and_go_on_beyond() {
        let curve = Curve::new(vec![(10, 100), (20, 200), (30, 600)]).unwrap();
        assert_eq!(
            [0, 10, 15, 20, 25, 30, 40].map(|m| curve.at(m)),
            [100, 100, 150, 200, 400, 600, 1000]
        );
        assert_eq!(Curve::constant(7).at(1 << 50), 7);
        assert_eq!(Curve::ZERO.at(9), 0);
    }

    #[test]
    fn rates() {
        assert_eq!(Curve::rate(12_500_000).at(16 << 20), 1_342_177_280);
        assert_eq!(Curve::rate(10_000_000_000).at(5), 0);
        assert_eq!(Curve::rate(0).at(u64::MAX), u64::MAX);
        for rate in [1_000, 12_500_000, 1_250_000_000] {
            assert!(Curve::framed(rate, 150).as_rate().abs_diff(rate) <= rate / 100_000);
        }
        assert_eq!(Curve::framed(1_000_000, 150).at(50), 200_000);
        assert_eq!(Curve::ZERO.as_rate(), (1 << 20) * 1_000_000_000);
    }

    #[test]
    fn wrong_points() {
        assert_eq!(Curve::new(vec![(1, 1), (1, 2)]), Err(CurveError::SizesNotAscending));
        assert_eq!(Curve::new(vec![(1, 2), (2, 1)]), Err(CurveError::TimesDescending));
        assert_eq!(Curve::new((0..65).map(|i| (i, i)).collect()), Err(CurveError::TooMany));
    }

    #[test]
    fn pairs_have_links_of_their_own() {
        let topology = Topology::from_clusters([[0, 0, 0], [1, 1, 1], [2, 2, 2], [2, 2, 2]]);
        let mut links = Links::default();
        links.set_pair(2, 0, Link::simple(5, 1, 1));
        assert_eq!(links.between(&topology, 0, 2).1.latency, 5);
        assert_eq!(links.between(&topology, 3, 0).1.latency, 5);
        assert_eq!(
            links.between(&topology, 0, 1),
            (Level::WideArea, links.level(Level::WideArea))
        );
        assert_eq!(links.between(&topology, 2, 3).0, Level::Node);
    }
}
