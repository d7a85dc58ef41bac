// SPDX-License-Identifier: Apache-2.0
//! What earlier jobs measured of the links between sites, as a file.
//!
//! ```toml
//! [[link]]
//! between = ["home@a1", "lab@b1"]   # name in the job, host of the first machine
//! latency = "20.1 ms"               # one way
//! latency_at = 1767225600           # when that was measured, seconds since 1970
//! rate = "94.15 Mbit/s"
//! rate_at = 1767225600
//! rate_bytes = 1400000              # seen to arrive that fast
//! rate_time = "119 ms"              # in which they kept the link busy
//! rate_spread = 12                  # thousandths: how far off it may be
//! rate_at_least = true              # there only if the link may do more
//! ```
//! Pure: the time and the file's content are arguments.

use crate::error::JobError;
use crate::links::between;
use crate::quantity;
use crate::source::{Source, Table};
use isthmus_topology::{Measured, Rate};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use toml_edit::{Item, Value};

/// Most pairs of sites that are kept; the ones measured longest ago go first.
pub const MAX_LINKS: usize = 4096;

const KEYS: [&str; 9] = [
    "between",
    "latency",
    "latency_at",
    "rate",
    "rate_at",
    "rate_bytes",
    "rate_time",
    "rate_spread",
    "rate_at_least",
];

/// Something and when it was measured, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dated<T> {
    /// What was measured.
    pub value: T,
    /// When.
    pub at: u64,
}

/// The link between two sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// One way, nanoseconds.
    pub latency: Option<Dated<u64>>,
    /// How fast data arrive, and what that stands on.
    pub rate: Option<Dated<Rate>>,
}

/// All of them, by the names of the two sites in alphabetical order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCache {
    links: BTreeMap<(String, String), Remembered>,
}

fn key(a: &str, b: &str) -> (String, String) {
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    (a.to_owned(), b.to_owned())
}

impl LinkCache {
    /// What is remembered, in order.
    pub fn links(&self) -> impl Iterator<Item = (&str, &str, Remembered)> {
        self.links
            .iter()
            .map(|((a, b), known)| (a.as_str(), b.as_str(), *known))
    }

    /// What is remembered of a link and was measured no longer ago than `expiry` seconds.
    pub fn fresh(&self, a: &str, b: &str, now: u64, expiry: u64) -> Remembered {
        let known = self.links.get(&key(a, b)).copied().unwrap_or_default();
        let fresh = |at: u64| now.saturating_sub(at) < expiry;
        Remembered {
            latency: known.latency.filter(|one| fresh(one.at)),
            rate: known.rate.filter(|one| fresh(one.at)),
        }
    }

    /// Notes what was measured between two sites. Of two rates the one counts that stands on better evidence
    /// ([`Rate::or_older`]).
    pub fn note(&mut self, a: &str, b: &str, measured: &Measured, now: u64) {
        let known = self.links.entry(key(a, b)).or_default();
        // A loaded machine measures too much, never too little: what is a little longer than before is the same.
        let same = |new: &u64| {
            known
                .latency
                .map(|old| old.value)
                .filter(|old| (*old..*old + *old / 5).contains(new))
        };
        let latency = measured.latency.map(|new| same(&new).unwrap_or(new));
        known.latency = latency.map(|value| Dated { value, at: now }).or(known.latency);
        let rate = measured.rate.map(|value| Dated { value, at: now });
        let better = |new: Dated<Rate>, old: Dated<Rate>| {
            let winner = new.value.or_older(old.value, now.saturating_sub(old.at));
            if winner == old.value { old } else { new }
        };
        known.rate = match (rate, known.rate) {
            (Some(new), Some(old)) => Some(better(new, old)),
            (new, old) => new.or(old),
        };
        while self.links.len() > MAX_LINKS {
            let age = |known: &Remembered| known.latency.map(|one| one.at).max(known.rate.map(|one| one.at));
            let oldest = self
                .links
                .iter()
                .min_by_key(|(_, known)| age(known))
                .map(|(k, _)| k.clone());
            oldest.and_then(|oldest| self.links.remove(&oldest));
        }
    }

    /// Forgets what was measured between two sites `expiry` seconds ago or more.
    pub fn expire(&mut self, a: &str, b: &str, now: u64, expiry: u64) {
        let fresh = self.fresh(a, b, now, expiry);
        if let Some(known) = self.links.get_mut(&key(a, b)) {
            *known = fresh;
        }
    }

    /// Forgets the links of a site: its whole name or the part before `@`. How many there were.
    pub fn forget(&mut self, site: &str) -> usize {
        let before = self.links.len();
        let is = |name: &str| name == site || name.split('@').next() == Some(site);
        self.links.retain(|(a, b), _| !is(a) && !is(b));
        before - self.links.len()
    }

    /// As a file.
    pub fn format(&self) -> String {
        let mut text = "# What isthmus has measured between sites. It is safe to remove this file.\n".to_owned();
        for ((a, b), known) in &self.links {
            let (a, b) = (Value::from(a.as_str()), Value::from(b.as_str()));
            let _ = write!(text, "\n[[link]]\nbetween = [{a}, {b}]\n");
            if let Some(Dated { value, at }) = known.latency {
                let _ = write!(
                    text,
                    "latency = \"{}\"\nlatency_at = {at}\n",
                    quantity::show_time(value)
                );
            }
            if let Some(Dated { value: rate, at }) = known.rate {
                let shown = quantity::show_rate(rate.bytes_per_second);
                let _ = write!(text, "rate = \"{shown}\"\nrate_at = {at}\n");
                let (bytes, time, spread) = (rate.bytes, quantity::show_time(rate.busy), rate.spread);
                let _ = write!(
                    text,
                    "rate_bytes = {bytes}\nrate_time = \"{time}\"\nrate_spread = {spread}\n"
                );
                text.push_str(if rate.at_least { "rate_at_least = true\n" } else { "" });
            }
        }
        text
    }
}

/// Reads such a file; `file` is its name for messages.
pub fn parse(text: &str, file: &str) -> Result<LinkCache, JobError> {
    let source = Source::new(text, file);
    let document = source.read("cache of links")?;
    let top = Table::top(source, &document);
    top.check_keys(&["link"], "a cache of links")?;
    let mut links = BTreeMap::new();
    for table in top.tables("link")? {
        table.check_keys(&KEYS, "a link")?;
        let [a, b] = between(&table)?;
        if links.insert(key(&a, &b), Remembered::read(&table)?).is_some() || links.len() > MAX_LINKS {
            let error = JobError::new("this link is listed twice, or there are too many");
            return Err(table.at_key("between", error));
        }
    }
    Ok(LinkCache { links })
}

impl Remembered {
    fn read(table: &Table<'_>) -> Result<Self, JobError> {
        let whole = |key: &str| {
            let number = table.get(key).and_then(Item::as_integer);
            number.and_then(|n| u64::try_from(n).ok())
        };
        let dated = |key: &str, when: &str, read: fn(&str) -> Result<u64, JobError>| {
            let Some(value) = table.meaning(key, read)? else {
                return Ok(None);
            };
            let missing = || table.at_key(when, JobError::new(format!("'{when}' must be a number of seconds")));
            let at = whole(when).ok_or_else(missing)?;
            Ok(Some(Dated { value, at }))
        };
        let busy = table.meaning("rate_time", quantity::time)?.unwrap_or(0);
        // Files of earlier versions say nothing about evidence: that is none.
        let evidence = |bytes_per_second| Rate {
            bytes: whole("rate_bytes").unwrap_or(0),
            busy,
            spread: whole("rate_spread").map_or(0, |s| u16::try_from(s).unwrap_or(u16::MAX)),
            at_least: table.get("rate_at_least").and_then(Item::as_bool).unwrap_or(false),
            ..Rate::bare(bytes_per_second)
        };
        let rate = dated("rate", "rate_at", quantity::rate)?;
        Ok(Self {
            latency: dated("latency", "latency_at", quantity::time)?,
            rate: rate.map(|Dated { value, at }| Dated {
                value: evidence(value),
                at,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(latency: Option<u64>, rate: Option<u64>) -> Measured {
        Measured {
            latency,
            rate: rate.map(Rate::bare),
            ..Measured::default()
        }
    }

    #[test]
    fn what_is_noted_comes_back_until_it_expires() {
        let mut cache = LinkCache::default();
        cache.note("lab@b\"1", "home@a1", &measured(Some(20_100_001), None), 1000);
        cache.note("home@a1", "lab@b\"1", &measured(None, Some(11_768_750)), 1500);
        cache.note("home@a1", "far@c1", &measured(Some(1), Some(1)), 1000);
        let again = parse(&cache.format(), "links.toml").unwrap();
        assert_eq!(again, cache);
        let fresh = |now| again.fresh("lab@b\"1", "home@a1", now, 1000);
        assert_eq!(fresh(1600).latency.map(|d| d.value), Some(20_100_001));
        assert_eq!(fresh(2100).latency, None);
        assert_eq!(fresh(2100).rate.map(|d| d.value.bytes_per_second), Some(11_768_750));
        assert_eq!(fresh(2500), Remembered::default());
        let mut less = again;
        assert_eq!(
            (less.forget("lab"), less.forget("far@c1"), less.links().count()),
            (1, 1, 0)
        );
    }

    #[test]
    fn a_little_longer_is_the_same() {
        let mut cache = LinkCache::default();
        for (now, measured_now, kept) in [(1, 1000, 1000), (2, 1199, 1000), (3, 990, 990), (4, 1500, 1500)] {
            cache.note("a", "b", &measured(Some(measured_now), None), now);
            let latency = cache.fresh("a", "b", now, 1).latency;
            assert_eq!(latency, Some(Dated { value: kept, at: now }));
        }
    }

    #[test]
    fn the_better_evidence_is_kept_with_its_date() {
        let rate = |bytes_per_second, busy, at_least| Rate {
            bytes: 3_000_000,
            busy,
            spread: 12,
            at_least,
            ..Rate::bare(bytes_per_second)
        };
        let mut cache = LinkCache::default();
        let (short, long) = (rate(5_000_000, 20_000_000, true), rate(25_000_000, 400_000_000, false));
        for (now, one) in [(1, short), (2, long), (3, short)] {
            let measured = Measured {
                rate: Some(one),
                ..Measured::default()
            };
            cache.note("a", "b", &measured, now);
        }
        assert_eq!(cache.fresh("a", "b", 3, 9).rate, Some(Dated { value: long, at: 2 }));
        cache.note(
            "a",
            "c",
            &Measured {
                rate: Some(short),
                ..Measured::default()
            },
            3,
        );
        assert_eq!(parse(&cache.format(), "links.toml").unwrap(), cache);
        let old = parse(
            "[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"8 kbit/s\"\nrate_at = 1\n",
            "l",
        )
        .unwrap();
        assert_eq!(old.fresh("a", "b", 1, 9).rate.map(|d| d.value), Some(Rate::bare(1000)));
    }

    #[test]
    fn it_stays_small() {
        let mut cache = LinkCache::default();
        for i in 0..MAX_LINKS as u64 + 3 {
            cache.note("a", &format!("b{i}"), &measured(Some(1), None), i);
        }
        assert_eq!(cache.links().count(), MAX_LINKS);
        assert_eq!(cache.fresh("a", "b2", 0, 10), Remembered::default());
    }

    #[test]
    fn nonsense_is_told_with_its_place() {
        for (text, start) in [
            ("x = 1", "l.toml:1:1: unknown key 'x'"),
            ("[[link]]\nbetween = [\"a\"]\n", "l.toml:2:11: 'between' must name"),
            (
                "[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1 B/s\"\n",
                "l.toml:1:1: 'rate_at' must be",
            ),
            (
                "[[link]]\nbetween = [\"a\", \"b\"]\n[[link]]\nbetween = [\"b\", \"a\"]\n",
                "l.toml:4:11: this link is listed twice",
            ),
        ] {
            let error = parse(text, "l.toml").unwrap_err().to_string();
            assert!(error.starts_with(start), "{text}: {error}");
        }
    }
}
