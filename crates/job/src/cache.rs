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
//! ```
//! Pure: the time and the file's content are arguments.

use crate::document::Document;
use crate::error::JobError;
use crate::links::place;
use crate::quantity;
use isthmus_topology::Measured;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use toml_edit::{Item, TableLike, Value};

/// Most pairs of sites that are kept; the ones measured longest ago go first.
pub const MAX_LINKS: usize = 4096;

const KEYS: [&str; 5] = ["between", "latency", "latency_at", "rate", "rate_at"];

/// A number and when it was measured, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dated {
    /// Nanoseconds, or bytes per second.
    pub value: u64,
    /// When.
    pub at: u64,
}

/// The link between two sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// One way, nanoseconds.
    pub latency: Option<Dated>,
    /// Bytes per second.
    pub rate: Option<Dated>,
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
        let fresh = |one: &Dated| now.saturating_sub(one.at) < expiry;
        Remembered {
            latency: known.latency.filter(fresh),
            rate: known.rate.filter(fresh),
        }
    }

    /// Notes what was measured between two sites.
    pub fn note(&mut self, a: &str, b: &str, measured: &Measured, now: u64) {
        let known = self.links.entry(key(a, b)).or_default();
        let dated = |value| Dated { value, at: now };
        // A loaded machine measures too much, never too little: what is a little longer than before is the same.
        let same = |new: &u64| {
            known
                .latency
                .map(|old| old.value)
                .filter(|old| (*old..*old + *old / 5).contains(new))
        };
        let latency = measured.latency.map(|new| same(&new).unwrap_or(new));
        known.latency = latency.map(dated).or(known.latency);
        known.rate = measured.rate.map(dated).or(known.rate);
        while self.links.len() > MAX_LINKS {
            let age = |known: &Remembered| known.latency.max_by_time(known.rate);
            let oldest = self
                .links
                .iter()
                .min_by_key(|(_, known)| age(known))
                .map(|(k, _)| k.clone());
            oldest.and_then(|oldest| self.links.remove(&oldest));
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
            if let Some(Dated { value, at }) = known.rate {
                let _ = write!(text, "rate = \"{}\"\nrate_at = {at}\n", quantity::show_rate(value));
            }
        }
        text
    }
}

trait Younger {
    fn max_by_time(self, other: Self) -> u64;
}

impl Younger for Option<Dated> {
    fn max_by_time(self, other: Self) -> u64 {
        let at = |one: Self| one.map_or(0, |one| one.at);
        at(self).max(at(other))
    }
}

/// Reads such a file; `file` is its name for messages.
pub fn parse(text: &str, file: &str) -> Result<LinkCache, JobError> {
    let source = Document::new(text, file);
    let document = source.read("cache of links")?;
    let top: &dyn TableLike = document.as_table();
    source.check_keys(top, &["link"], "a cache of links")?;
    let mut links = BTreeMap::new();
    for (table, span) in source.tables(top, "link")? {
        source.check_keys(table, &KEYS, "a link")?;
        let [a, b] = source.between(table, &span)?;
        let dated = |name: &str, when: &str, read: fn(&str) -> Result<u64, JobError>| {
            let Some(text) = source.text(table, name)? else {
                return Ok(None);
            };
            let value = source.point(read(&text), table, name)?;
            let at = table
                .get(when)
                .and_then(Item::as_integer)
                .and_then(|at| u64::try_from(at).ok());
            let missing = || {
                source.at(
                    JobError::new(format!("'{when}' must be a number of seconds")),
                    place(table, when, &span),
                )
            };
            Ok(Some(Dated {
                value,
                at: at.ok_or_else(missing)?,
            }))
        };
        let known = Remembered {
            latency: dated("latency", "latency_at", quantity::time)?,
            rate: dated("rate", "rate_at", quantity::rate)?,
        };
        if links.insert(key(&a, &b), known).is_some() || links.len() > MAX_LINKS {
            let error = JobError::new("this link is there twice, or there are too many");
            return Err(source.at(error, place(table, "between", &span)));
        }
    }
    Ok(LinkCache { links })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(latency: Option<u64>, rate: Option<u64>) -> Measured {
        Measured {
            latency,
            rate,
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
        assert_eq!(fresh(2100).rate.map(|d| d.value), Some(11_768_750));
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
                "l.toml:4:11: this link is there twice",
            ),
        ] {
            let error = parse(text, "l.toml").unwrap_err().to_string();
            assert!(error.starts_with(start), "{text}: {error}");
        }
    }
}
