// SPDX-License-Identifier: Apache-2.0
//! The record of a job over several sites: what happened and what passed, for `isthmus report` while it runs and
//! afterwards.
//!
//! `$XDG_CACHE_HOME/isthmus/records/JOB.jsonl`, for its owner alone: one object a line, with `event` and `time`
//! (seconds since 1970). Beside the job's events ([`crate::events`]) there are:
//!
//! | event | fields |
//! |---|---|
//! | `record` | version, name (or null), words, processes, subjobs: \[name, processes\] |
//! | `traffic` | links: \[from, to, sent_bytes, received_bytes, counted_at_seconds, round_trip_seconds, channels_away, cuts, connections\], sums since the processes began (counted_at_seconds: when they were counted); times: \[[`crate::times`] without calls\] |
//! | `truncated` | nothing further is recorded: the record is at its largest |
//! | `sums` | links, paths, operations, times (with calls), choices: what is known at the end |

use crate::events::JobEvent;
use crate::session::{self, Candidate, KEPT, Session, Unclear};
use crate::{LinkReport, PathReport, Statistics, times};
use isthmus_reach::plain;
use isthmus_stage::cache::NoCache;
use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::time::SiteTime;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, BufRead, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Version of what stands in a record.
pub const VERSION: u64 = 1;
/// Largest record, bytes.
const MAX_BYTES: u64 = 4 << 20;
/// Most records that are kept.
const MAX_RECORDS: usize = 50;
/// Time between two samples of traffic, at first. Agents tell every half a second what processes count every second:
/// shorter samples would show that.
const SAMPLE: Duration = Duration::from_secs(2);

/// Where all records are.
fn directory() -> Result<PathBuf, NoCache> {
    Ok(session::directory()?.with_file_name("records"))
}

/// What is known when a job has ended.
#[derive(Debug)]
pub(crate) struct Sums {
    pub(crate) traffic: Vec<LinkTraffic>,
    pub(crate) links: Vec<LinkReport>,
    pub(crate) paths: Vec<PathReport>,
    pub(crate) statistics: Statistics,
}

/// The record of a job that runs in this process.
#[derive(Debug)]
pub(crate) struct Record {
    file: File,
    bytes: u64,
    /// Samples become rarer when the record is longer than this.
    rarer_from: u64,
    every: Duration,
    looked: Instant,
    /// The last sample, and whether it has been written: one in which nothing has changed is written when something
    /// changes again.
    last: Option<(String, Vec<LinkTraffic>, bool)>,
}

impl Record {
    /// Begins the record of a job. Older ones make room.
    pub(crate) fn begin(session: &Session, subjobs: &[(&str, u32)]) -> io::Result<Self> {
        let base = directory().map_err(io::Error::other)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&base)?;
        sweep(&base);
        let mut options = fs::OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(base.join(format!("{}.jsonl", session.name())))?;
        let mut record = Self {
            file,
            bytes: 0,
            rarer_from: MAX_BYTES / 2,
            every: SAMPLE,
            looked: Instant::now(),
            last: None,
        };
        let subjobs: Vec<Value> = subjobs
            .iter()
            .map(|(name, processes)| json!({"name": name, "processes": processes}))
            .collect();
        let processes: u64 = subjobs.iter().filter_map(|s| s["processes"].as_u64()).sum();
        record.event(&line(json!({
            "event": "record", "version": VERSION, "name": session.chosen_name(), "words": session.words(), "processes": processes,
            "subjobs": subjobs,
        })));
        Ok(record)
    }

    /// Goes on with the record that another launcher has begun.
    pub(crate) fn go_on(session: &Session) -> io::Result<Self> {
        let base = directory().map_err(io::Error::other)?;
        let file = File::options()
            .append(true)
            .open(base.join(format!("{}.jsonl", session.name())))?;
        let bytes = file.metadata()?.len();
        Ok(Self {
            file,
            bytes,
            rarer_from: MAX_BYTES / 2 + bytes / 2,
            every: SAMPLE,
            looked: Instant::now(),
            last: None,
        })
    }

    /// Adds something that has happened, as a line.
    pub(crate) fn event(&mut self, line: &str) {
        self.write(line);
    }

    /// Takes a sample of what has passed, if it is time for one.
    pub(crate) fn sample(&mut self, links: &[LinkTraffic], times: &[SiteTime]) {
        if self.looked.elapsed() < self.every {
            return;
        }
        self.looked = Instant::now();
        let sample = traffic(links, times);
        match self.last.take() {
            Some((_, before, _)) if same(&before, links) => {
                self.last = Some((sample, before, false));
                return;
            }
            Some((before, _, false)) => self.write(&before),
            _ => {}
        }
        self.write(&sample);
        self.last = Some((sample, links.to_vec(), true));
        if self.bytes > self.rarer_from {
            self.rarer_from += (MAX_BYTES - self.rarer_from) / 2;
            self.every *= 2;
        }
    }

    /// The job has ended.
    pub(crate) fn end(mut self, sums: &Sums) {
        let last = self.last.take();
        if let Some((before, _, false)) = &last {
            self.write(before);
        }
        if last.is_none_or(|(_, before, _)| !same(&before, &sums.traffic)) {
            self.write(&traffic(&sums.traffic, &sums.statistics.times()));
        }
        let links = sums.links.iter().map(|l| {
            json!({
                "between": l.between,
                "latency_seconds": l.latency.0 as f64 / 1e9, "latency_from": l.latency.1.name(),
                "bits_per_second": l.rate.0.saturating_mul(8), "rate_from": l.rate.1.name(),
            })
        });
        let paths = sums
            .paths
            .iter()
            .map(|p| json!({"between": [p.between.0, p.between.1], "path": p.path}));
        self.write(&line(json!({
            "event": "sums", "links": links.collect::<Vec<_>>(), "paths": paths.collect::<Vec<_>>(),
            "operations": sums.statistics.json(),
            "choices": sums.statistics.choices(),
            "files": sums.statistics.files(),
            "times": sums.statistics.times().iter().map(times::json).collect::<Vec<_>>(),
        })));
    }

    /// A record that cannot be written any more harms nobody: it ends where it ends.
    fn write(&mut self, text: &str) {
        if self.bytes >= MAX_BYTES {
            return;
        }
        self.bytes += text.len() as u64 + 1;
        let text = match self.bytes < MAX_BYTES {
            true => format!("{text}\n"),
            false => format!("{}\n", line(json!({"event": "truncated"}))),
        };
        if self.file.write_all(text.as_bytes()).is_err() {
            self.bytes = MAX_BYTES;
        }
    }
}

fn line(event: Value) -> String {
    JobEvent::other(event).line()
}

fn traffic(links: &[LinkTraffic], times: &[SiteTime]) -> String {
    let times = times.iter().map(|one| {
        let mut whole = times::json(one);
        if let Some(fields) = whole.as_object_mut() {
            fields.remove("calls");
        }
        whole
    });
    let links: Vec<Value> = links.iter().map(link).collect();
    line(json!({"event": "traffic", "links": links, "times": times.collect::<Vec<_>>()}))
}

/// Whether nothing has passed between two samples.
fn same(before: &[LinkTraffic], now: &[LinkTraffic]) -> bool {
    before.len() == now.len() && before.iter().zip(now).all(|(before, now)| before.says_the_same(now))
}

fn link(l: &LinkTraffic) -> Value {
    json!({
        "from": l.from, "to": l.to, "counted_at_seconds": l.counted_at(), "sent_bytes": l.sent, "received_bytes": l.received,
        "round_trip_seconds": (l.round_trip_us > 0).then_some(l.round_trip_us as f64 / 1e6),
        "channels_away": l.away, "cuts": l.cuts, "longest_cut_seconds": l.away_ms as f64 / 1000.0,
        "connections": l.connections, "tcp_retransmitted_bytes": l.retransmitted,
        "before_compression_bytes": l.plain, "after_compression_bytes": l.compressed,
    })
}

/// Removes old records.
fn sweep(base: &Path) {
    let mut all: Vec<(SystemTime, PathBuf)> = fs::read_dir(base)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    all.sort_by(|a, b| b.cmp(a));
    let now = SystemTime::now();
    for (number, (touched, path)) in all.into_iter().enumerate() {
        if number + 1 >= MAX_RECORDS || now.duration_since(touched).is_ok_and(|age| age > KEPT) {
            let _ = fs::remove_file(path);
        }
    }
}

/// A record that was read.
#[derive(Debug)]
pub struct Found {
    /// Identifier of the job.
    pub name: String,
    /// Its lines, the oldest first.
    pub lines: Vec<Value>,
}

/// Why there is no record to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// No record is meant: a mistake of the command line.
    Unmeant(String),
    /// It cannot be read.
    Broken(String),
}

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Unmeant(text) | Self::Broken(text)) = self;
        f.write_str(text)
    }
}

/// A record that is there.
struct Stored {
    touched: SystemTime,
    identifier: String,
    name: Option<String>,
    path: PathBuf,
}

impl Stored {
    fn open(path: PathBuf) -> Option<Self> {
        let identifier = path.file_name()?.to_str()?.strip_suffix(".jsonl")?.to_owned();
        let touched = fs::metadata(&path).ok()?.modified().ok()?;
        let mut first = String::new();
        let _ = io::BufReader::new(File::open(&path).ok()?.take(MAX_BYTES)).read_line(&mut first);
        let first: Value = serde_json::from_str(&first).unwrap_or_default();
        let name = first["name"].as_str().map(str::to_owned);
        Some(Self {
            touched,
            identifier,
            name,
            path,
        })
    }
}

/// All records, those that were written last at the end.
fn kept(base: &Path) -> Vec<Stored> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let mut all: Vec<Stored> = entries.filter_map(|entry| Stored::open(entry.path())).collect();
    all.sort_by(|a, b| (a.touched, &a.identifier).cmp(&(b.touched, &b.identifier)));
    all
}

/// Which of them a word means.
fn meant(word: &str, all: &[Stored]) -> Result<usize, Unclear> {
    let living: Vec<bool> = all.iter().map(|one| session::lives(&one.identifier)).collect();
    let known: Vec<Candidate<'_>> = all
        .iter()
        .zip(&living)
        .map(|(one, lives)| Candidate {
            identifier: &one.identifier,
            name: one.name.as_deref(),
            lives: *lives,
        })
        .collect();
    session::choose(word, &known)
}

/// Reads the record of the job that a word means (its name, or the beginning of it or of its identifier); without a
/// word that of the newest job.
///
/// # Errors
/// There is none, or several are meant, or it cannot be read.
pub fn read(job: Option<&str>) -> Result<Found, Unread> {
    let nowhere = |why| Unread::Broken(format!("{why}: there are no records of jobs"));
    let base = directory().map_err(nowhere)?;
    let mut all = kept(&base);
    let at = match job {
        Some(word) => meant(word, &all).map_err(|why| {
            Unread::Unmeant(match why {
                Unclear::Unknown => format!(
                    "there is no record of job '{}'; records are kept of jobs of several subjobs, for {} days",
                    plain(word),
                    KEPT.as_secs() / 86_400
                ),
                other => other.of(word),
            })
        })?,
        None => all.len().checked_sub(1).ok_or_else(|| {
            let text = "there is no record of a job yet; records are kept of jobs of several subjobs";
            Unread::Unmeant(text.to_owned())
        })?,
    };
    let Stored { identifier, path, .. } = all.swap_remove(at);
    let mut text = String::new();
    let wrong = |error: io::Error| Unread::Broken(format!("the record '{}' cannot be read: {error}", path.display()));
    let file = File::open(&path).map_err(wrong)?;
    // A little longer than the largest: the last line tells that it is full.
    file.take(MAX_BYTES + 4096).read_to_string(&mut text).map_err(wrong)?;
    // The last line may be in the making.
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    Ok(Found {
        name: identifier,
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str) -> (Record, PathBuf) {
        let path = std::env::temp_dir().join(format!("isthmus-record-{name}-{}", std::process::id()));
        let record = Record {
            file: File::create(&path).unwrap(),
            bytes: 0,
            rarer_from: MAX_BYTES / 2,
            every: Duration::ZERO,
            looked: Instant::now(),
            last: None,
        };
        (record, path)
    }

    fn passed(sent: u64) -> Vec<LinkTraffic> {
        vec![LinkTraffic {
            from: "a".into(),
            to: "b".into(),
            sent,
            ..LinkTraffic::default()
        }]
    }

    #[test]
    fn samples_without_news_are_kept_only_beside_a_change() {
        let (mut record, path) = record("still");
        for (second, sent) in [1, 1, 1, 1, 9, 9].into_iter().enumerate() {
            // The time alone is no news.
            let mut links = passed(sent);
            (links[0].observed_us, links[0].observers) = (second as u64 * 1_000_000, 1);
            record.sample(&links, &[]);
        }
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(path).unwrap();
        let sent: Vec<u64> = text
            .lines()
            .map(|l| {
                serde_json::from_str::<Value>(l).unwrap()["links"][0]["sent_bytes"]
                    .as_u64()
                    .unwrap()
            })
            .collect();
        assert_eq!(sent, [1, 1, 9]);
    }

    #[test]
    fn a_record_is_bounded_and_its_samples_become_rarer() {
        let (mut record, path) = record("bound");
        let long = JobEvent::notice(&"x".repeat(1 << 16)).line();
        for sent in 0..80 {
            record.event(&long);
            record.every = Duration::ZERO;
            record.sample(&passed(sent), &[]);
        }
        assert!(record.rarer_from > MAX_BYTES / 2);
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(path).unwrap();
        assert!(text.len() as u64 <= MAX_BYTES + 4096);
        assert!(text.lines().last().unwrap().contains("truncated"));
    }
}
