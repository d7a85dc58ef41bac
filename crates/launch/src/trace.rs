// SPDX-License-Identifier: Apache-2.0
//! The trace of a job: what all processes record, on one time line, as Chrome's trace events (JSON), which Perfetto opens.
//!
//! It is written as it comes; the viewer sorts. Times are microseconds since the job began by the coordinator's clock. What a process says is
//! in the clock of its machine: [`Clocks`] finds out how far that is from ours by the middle of round trips to its agent, which is right
//! to half of the shortest round trip. Nodes behind a scheduler count as having the clock of their front end.

use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::trace::{self, Message, What};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a message is shown, microseconds; less where the next one follows sooner, since viewers drop what overlaps.
const SHOWN: f64 = 1.0;
/// The track of what concerns no process: behind all ranks.
const LINKS: u32 = i32::MAX as u32;
/// Drift of clocks that must be allowed for: a hundred microseconds a second is a bad one.
const DRIFT: f64 = 1e-4;

/// How far the clock of an agent's machine is from ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offset {
    /// Its clock minus ours, nanoseconds.
    pub(crate) nanoseconds: i64,
    /// Right to this.
    pub(crate) error: Duration,
}

/// The clocks of all agents, by connection.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    asked: BTreeMap<u64, (Instant, SystemTime)>,
    known: HashMap<usize, (Offset, Instant)>,
}

impl Clocks {
    /// Agents are asked with this number.
    pub(crate) fn ask(&mut self, number: u64) {
        self.asked.insert(number, (Instant::now(), SystemTime::now()));
        while self.asked.len() > 64 {
            self.asked.pop_first();
        }
    }

    /// One has answered with its clock, nanoseconds since 1970.
    pub(crate) fn answered(&mut self, connection: usize, number: u64, clock: u64) {
        let Some((asked, wall)) = self.asked.get(&number).copied() else {
            return;
        };
        let half = asked.elapsed() / 2;
        let ours = (wall + half).duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i128;
        let new = Offset {
            nanoseconds: i64::try_from(i128::from(clock) - ours).unwrap_or(0),
            error: half,
        };
        let old = self.known.get(&connection);
        // An old answer gets worse with time: clocks drift.
        let better = old.is_none_or(|(old, at)| new.error < old.error + at.elapsed().mul_f64(DRIFT));
        if better {
            self.known.insert(connection, (new, Instant::now()));
        }
    }

    /// What is known of the clock at the other end of a connection.
    pub(crate) fn offset(&self, connection: usize) -> Offset {
        self.known
            .get(&connection)
            .map(|(offset, _)| *offset)
            .unwrap_or_default()
    }
}

/// The file of a trace.
#[derive(Debug)]
pub(crate) struct TraceFile {
    file: BufWriter<File>,
    began: SystemTime,
    first: bool,
    /// By site: the worst error of its clock that times were written with.
    errors: BTreeMap<String, Duration>,
    lost: u64,
    /// The last message of each rank and direction: it is written when the next one is known.
    last: BTreeMap<(u32, u32), (f64, Value)>,
    /// Bytes until the last look, and when that was.
    rates: BTreeMap<(String, String), (u64, Instant)>,
    failed: Option<io::Error>,
}

impl TraceFile {
    /// Begins one; overwrites what is there.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")?;
        let mut trace = Self {
            file,
            began: SystemTime::now(),
            first: true,
            errors: BTreeMap::new(),
            lost: 0,
            last: BTreeMap::new(),
            rates: BTreeMap::new(),
            failed: None,
        };
        trace.name(LINKS, "links");
        Ok(trace)
    }

    /// A process is there.
    pub(crate) fn process(&mut self, rank: u32, site: &str, host: &str) {
        self.name(rank, &format!("rank {rank} ({site}, {host})"));
        for (thread, name) in [(1, "messages out"), (2, "messages in"), (3, "connections")] {
            let name = json!({"name": name});
            self.event(&json!({"ph": "M", "name": "thread_name", "pid": rank, "tid": thread, "args": name}));
        }
    }

    /// A process of a site has recorded.
    pub(crate) fn records(&mut self, (rank, site): (u32, &str), offset: Offset, body: &[u8]) {
        let Ok(records) = trace::decode(body) else {
            self.lost += 1;
            return;
        };
        let error = self.errors.entry(site.to_owned()).or_default();
        *error = (*error).max(offset.error);
        for record in records {
            let at = self.time(i128::from(record.time) - i128::from(offset.nanoseconds));
            self.record(rank, at, record.what);
        }
    }

    fn record(&mut self, rank: u32, at: f64, what: What) {
        let id = |context: u32, sequence: u32| format!("{context}-{sequence}");
        match what {
            What::Sent(m) => self.message(rank, at, (rank, m.peer), &m, true),
            What::Arrived(m) => self.message(rank, at, (m.peer, rank), &m, false),
            What::Began {
                operation,
                context,
                sequence,
            } => self.event(&json!({
                "ph": "b", "cat": "collective", "name": operation, "id2": {"local": id(context, sequence)}, "pid": rank, "tid": 0,
                "ts": at, "args": {"context": context, "sequence": sequence},
            })),
            What::Ended { context, sequence } => self.event(&json!({
                "ph": "e", "cat": "collective", "name": "", "id2": {"local": id(context, sequence)}, "pid": rank, "tid": 0, "ts": at,
            })),
            What::Link(text) => self.event(&json!({
                "ph": "i", "s": "p", "cat": "link", "name": text, "pid": rank, "tid": 3, "ts": at,
            })),
            What::Lost(count) => {
                self.lost += count;
                let name = format!("{count} events were not recorded: too many came at once");
                self.event(&json!({"ph": "i", "s": "p", "cat": "lost", "name": name, "pid": rank, "tid": 3, "ts": at}));
            }
        }
    }

    fn message(&mut self, rank: u32, at: f64, (from, to): (u32, u32), m: &Message, out: bool) {
        let id = format!("{from}-{to}-{}-{}", m.context, m.number);
        let (thread, name, phase) = match out {
            true => (1, format!("to {to}"), "s"),
            false => (2, format!("from {from}"), "f"),
        };
        let shown = json!({
            "ph": "X", "cat": "message", "name": name, "pid": rank, "tid": thread, "ts": at,
            "args": {"bytes": m.bytes, "tag": m.tag, "context": m.context, "collective": m.context % 2 == 1},
        });
        if let Some(last) = self.last.insert((rank, thread), (at, shown)) {
            self.show(last, at);
        }
        self.event(&json!({
            "ph": phase, "bp": "e", "cat": "message", "name": "message", "id": id, "pid": rank, "tid": thread, "ts": at,
        }));
    }

    /// Writes a message that is followed by another one then.
    fn show(&mut self, (at, mut shown): (f64, Value), next: f64) {
        // Clocks step back at times.
        shown["dur"] = json!((next - at).clamp(0.0, SHOWN));
        self.event(&shown);
    }

    /// What has passed on links until now.
    pub(crate) fn traffic(&mut self, links: &[LinkTraffic]) {
        let (now, ts) = (Instant::now(), self.now());
        for link in links {
            let key = (link.from.clone(), link.to.clone());
            let last = self.rates.insert(key, (link.sent, now));
            let Some((sent, at)) = last else { continue };
            let seconds = now.duration_since(at).as_secs_f64();
            if seconds < 0.2 {
                self.rates.insert((link.from.clone(), link.to.clone()), (sent, at));
                continue;
            }
            let rate = link.sent.saturating_sub(sent) as f64 * 8e-6 / seconds;
            let name = format!("{} to {}, Mbit/s", link.from, link.to);
            self.event(&json!({"ph": "C", "name": name, "pid": LINKS, "ts": ts, "args": {"rate": rate}}));
        }
    }

    /// Something that the coordinator says.
    pub(crate) fn notice(&mut self, text: &str) {
        let ts = self.now();
        self.event(&json!({"ph": "i", "s": "g", "cat": "job", "name": text, "pid": LINKS, "tid": 0, "ts": ts}));
    }

    /// Ends the file. What went wrong, if anything did.
    pub(crate) fn close(mut self) -> io::Result<()> {
        for last in std::mem::take(&mut self.last).into_values() {
            self.show(last, f64::MAX);
        }
        let clocks: BTreeMap<_, _> = self
            .errors
            .iter()
            .map(|(site, error)| (site.clone(), json!({"right_to_us": error.as_nanos() as f64 / 1000.0})))
            .collect();
        let began = self.began.duration_since(UNIX_EPOCH).unwrap_or_default();
        let other = json!({"clocks": clocks, "events_not_recorded": self.lost, "began": began.as_secs_f64()});
        if self.failed.is_none() {
            self.failed = write!(self.file, "\n],\"otherData\":{other}}}\n")
                .and_then(|()| self.file.flush())
                .err();
        }
        self.failed.map_or(Ok(()), Err)
    }

    fn name(&mut self, process: u32, name: &str) {
        self.event(&json!({"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}));
        self.event(&json!({"ph": "M", "name": "process_sort_index", "pid": process, "args": {"sort_index": process}}));
    }

    fn event(&mut self, event: &Value) {
        if self.failed.is_some() {
            return;
        }
        let between = if std::mem::take(&mut self.first) { "" } else { ",\n" };
        self.failed = write!(self.file, "{between}{event}").err();
    }

    fn now(&self) -> f64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.time(now.as_nanos() as i128)
    }

    /// Microseconds since the beginning, of nanoseconds since 1970 by our clock.
    fn time(&self, at: i128) -> f64 {
        let began = self.began.duration_since(UNIX_EPOCH).unwrap_or_default();
        (at - began.as_nanos() as i128) as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_wire::trace::Record;

    #[test]
    fn a_clock_is_known_to_half_of_the_round_trip() {
        let mut clocks = Clocks::default();
        clocks.ask(1);
        let ahead = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 + 5_000_000_000;
        clocks.answered(3, 1, ahead);
        clocks.answered(3, 99, 0);
        let offset = clocks.offset(3);
        let off = (offset.nanoseconds - 5_000_000_000).unsigned_abs();
        assert!(off <= offset.error.as_nanos() as u64 + 1_000_000, "{offset:?}");
        assert_eq!(clocks.offset(4), Offset::default());
    }

    #[test]
    fn a_trace_is_json_on_one_time_line() {
        let path = std::env::temp_dir().join(format!("isthmus-trace-{}", std::process::id()));
        let mut trace = TraceFile::create(&path).unwrap();
        trace.process(0, "home", "h");
        let message = Message {
            peer: 1,
            context: 2,
            tag: 7,
            bytes: 100,
            number: 1,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let record = |time, what| trace::encode(&[Record { time, what }]);
        let offset = Offset {
            nanoseconds: 1_000_000_000,
            error: Duration::from_micros(50),
        };
        trace.records((0, "home"), Offset::default(), &record(now, What::Sent(message)));
        let back = Message { peer: 0, ..message };
        trace.records((1, "lab"), offset, &record(now + 1_000_000_000, What::Arrived(back)));
        trace.records((1, "lab"), offset, &record(now, What::Lost(3)));
        trace.notice("gateway");
        trace.close().unwrap();
        let json: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        let find = |phase: &str| events.iter().find(|e| e["ph"] == phase).unwrap();
        assert_eq!(find("s")["id"], find("f")["id"]);
        assert_eq!(
            find("s")["ts"],
            find("f")["ts"],
            "the clock of the second is a second ahead"
        );
        assert_eq!(json["otherData"]["clocks"]["lab"]["right_to_us"], 50.0);
        assert_eq!(json["otherData"]["events_not_recorded"], 3);
    }
}
