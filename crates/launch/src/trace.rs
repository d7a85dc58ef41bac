// SPDX-License-Identifier: Apache-2.0
//! The trace of a job: what all processes record, on one time line, as Chrome's trace events (JSON), which Perfetto
//! opens.
//!
//! It is written as it comes; the viewer sorts. Times are microseconds since the job began by the coordinator's clock.
//! What a process says is in the clock of its machine: [`Clocks`] finds out how far that is from ours by the middle of
//! round trips to its agent, which is right to half of the shortest round trip. Nodes behind a scheduler count as
//! having the clock of their front end.

use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::trace::{self, Message, What};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a message is shown, nanoseconds; less where the next one follows sooner, since viewers drop what overlaps.
const SHOWN: i64 = 1000;
/// Arrivals of a process that wait for the record of their sending, at most.
const HELD: usize = 1024;
/// Messages at most of which the sending is known and the arrival not yet, and as many of everything else that has
/// begun.
const UNDER_WAY: usize = 1 << 20;
/// Nanoseconds from the beginning at most: a hundred days, which microseconds with three digits show exactly.
const FARTHEST: i128 = 100 * 86_400 * 1_000_000_000;
/// The first line of a file.
pub(crate) const HEAD: &str = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
/// Tracks of a process.
pub(crate) const OUT: u32 = 1;
pub(crate) const IN: u32 = 2;
const CONNECTIONS: u32 = 3;
/// That of its first thread; those of others follow.
const WAITING: u32 = 16;
/// The track of what concerns no process: behind all ranks.
pub(crate) const LINKS: u32 = i32::MAX as u32;
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

/// A message: sender, receiver, context, and which of them it is.
type Name = (u32, u32, u32, u64);

/// Of a process, where something is shown: a thread of the program, or what the trace has in place of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Track {
    rank: u32,
    thread: u32,
}

/// A message at one of its ends, on its track.
#[derive(Debug)]
struct Shown {
    at: i64,
    event: Value,
    /// The arrow that begins or ends here.
    arrow: Option<u64>,
}

/// The file of a trace.
///
/// Perfetto takes events of the same time in the order of the file, looks for an arrow's ends among the slices that are
/// open then, and drops arrows that end before they begin. So every message is a slice of its own on its track, a
/// nanosecond or more after the last one, its arrow follows it in the file, and an arrival is shown after the sending,
/// whatever the clocks said.
#[derive(Debug)]
pub(crate) struct TraceFile {
    file: BufWriter<File>,
    began: SystemTime,
    first: bool,
    /// By site: the worst error of its clock that times were written with.
    errors: BTreeMap<String, Duration>,
    lost: u64,
    /// The last message of each rank and direction: it is written when the next one is known.
    last: BTreeMap<Track, Shown>,
    /// When messages were sent whose arrival is not known yet, and the numbers of their arrows.
    sent: HashMap<Name, (i64, u64)>,
    arrows: u64,
    /// Arrivals of each rank, in their order, from the first one whose sending is not known.
    held: BTreeMap<u32, VecDeque<(i64, Message)>>,
    /// Collective operations that have begun: rank, context, number.
    open: HashMap<(u32, u32, u32), String>,
    /// Until when each thread of each rank is known to have waited.
    waited: HashMap<Track, i64>,
    /// Bytes until the last look, and when that was.
    rates: BTreeMap<(String, String), (u64, f64)>,
    failed: Option<io::Error>,
}

impl TraceFile {
    /// Begins one; overwrites what is there.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut file = BufWriter::new(File::create(path)?);
        writeln!(file, "{HEAD}")?;
        let mut trace = Self {
            file,
            began: SystemTime::now(),
            first: true,
            errors: BTreeMap::new(),
            lost: 0,
            last: BTreeMap::new(),
            sent: HashMap::new(),
            arrows: 0,
            held: BTreeMap::new(),
            open: HashMap::new(),
            waited: HashMap::new(),
            rates: BTreeMap::new(),
            failed: None,
        };
        trace.name(LINKS, "links");
        Ok(trace)
    }

    /// The file that the user wants, if any.
    pub(crate) fn wanted(path: Option<&Path>) -> io::Result<Option<Self>> {
        let Some(path) = path else { return Ok(None) };
        let cannot = |error: io::Error| {
            io::Error::new(
                error.kind(),
                format!("cannot write the trace '{}': {error}", path.display()),
            )
        };
        Self::create(path).map(Some).map_err(cannot)
    }

    /// A process is there.
    pub(crate) fn process(&mut self, rank: u32, site: &str, host: &str) {
        self.name(rank, &format!("rank {rank} ({site}, {host})"));
        for (thread, name) in [(OUT, "messages out"), (IN, "messages in"), (CONNECTIONS, "connections")] {
            self.track(rank, thread, name);
        }
    }

    fn track(&mut self, rank: u32, thread: u32, name: &str) {
        // What is waited for comes first.
        let index = if thread < WAITING {
            thread + WAITING
        } else {
            thread - WAITING
        };
        for (what, args) in [
            ("thread_name", json!({"name": name})),
            ("thread_sort_index", json!({"sort_index": index})),
        ] {
            self.event(&json!({"ph": "M", "name": what, "pid": rank, "tid": thread, "args": args}));
        }
    }

    /// A process of a site has recorded.
    pub(crate) fn records(&mut self, rank: u32, site: &str, offset: Offset, body: &[u8]) {
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

    fn record(&mut self, rank: u32, at: i64, what: What) {
        let id = |context: u32, sequence: u32| json!({"local": format!("{context}-{sequence}")});
        let ts = shown(at);
        match what {
            What::Sent(m) => self.departure(rank, at, &m),
            What::Arrived(m) => {
                self.held.entry(rank).or_default().push_back((at, m));
                self.arrivals(rank, false);
            }
            What::Began {
                operation,
                context,
                sequence,
            } => {
                self.event(&json!({
                    "ph": "b", "cat": "collective", "name": operation, "id2": id(context, sequence), "pid": rank, "tid": OUT,
                    "ts": ts, "args": {"context": context, "sequence": sequence},
                }));
                bounded(&mut self.open).insert((rank, context, sequence), operation);
            }
            // chrome://tracing joins the two by their names too.
            What::Ended { context, sequence } => {
                if let Some(operation) = self.open.remove(&(rank, context, sequence)) {
                    self.event(&json!({
                        "ph": "e", "cat": "collective", "name": operation, "id2": id(context, sequence), "pid": rank, "tid": OUT,
                        "ts": ts,
                    }));
                }
            }
            What::Link(text) => self.event(&json!({
                "ph": "i", "s": "p", "cat": "link", "name": text, "pid": rank, "tid": CONNECTIONS, "ts": ts,
            })),
            What::Lost(count) => {
                self.lost += count;
                let name = format!("{count} events were not recorded: too many came at once");
                self.event(&json!({
                    "ph": "i", "s": "p", "cat": "lost", "name": name, "pid": rank, "tid": CONNECTIONS, "ts": ts,
                }));
            }
            What::Waited { call, thread, duration } => self.wait(Track { rank, thread }, at, duration, &call),
        }
    }

    /// A thread of the program has waited so long, from then on.
    fn wait(&mut self, waiter: Track, at: i64, duration: u64, call: &str) {
        let Track { rank, thread } = waiter;
        let track = WAITING.saturating_add(thread);
        let last = self.waited.get(&waiter).copied();
        if last.is_none() {
            let name = if thread == 0 {
                "waiting".to_owned()
            } else {
                format!("waiting, thread {thread}")
            };
            self.track(rank, track, &name);
        }
        // Clocks step back at times.
        let begin = at.max(last.unwrap_or(i64::MIN));
        let duration = i64::try_from(duration).unwrap_or(i64::MAX).min(FARTHEST as i64);
        let end = at.saturating_add(duration).max(begin);
        bounded(&mut self.waited).insert(waiter, end);
        let name = if call.is_empty() { "waiting" } else { call };
        self.event(&json!({
            "ph": "X", "cat": "wait", "name": name, "pid": rank, "tid": track, "ts": shown(begin), "dur": shown(end - begin),
        }));
    }

    fn departure(&mut self, rank: u32, at: i64, m: &Message) {
        self.arrows += 1;
        let (arrow, name) = (self.arrows, (rank, m.peer, m.context, m.number));
        let at = self.message(Track { rank, thread: OUT }, at, m, Some(arrow));
        bounded(&mut self.sent).insert(name, (at, arrow));
        self.arrivals(m.peer, false);
    }

    /// Shows what has arrived, in its order, as far as it is known when it was sent; or all of it.
    fn arrivals(&mut self, rank: u32, all: bool) {
        while let Some(held) = self.held.get_mut(&rank) {
            let Some((at, m)) = held.front().copied() else { return };
            let sent = self.sent.remove(&(m.peer, rank, m.context, m.number));
            if sent.is_none() && held.len() < HELD && !all {
                return;
            }
            held.pop_front();
            let after = sent.map_or(i64::MIN, |(sent, _)| sent + 1);
            self.message(
                Track { rank, thread: IN },
                at.max(after),
                &m,
                sent.map(|(_, arrow)| arrow),
            );
        }
    }

    /// A message on its track; when it is shown there.
    fn message(&mut self, track: Track, at: i64, m: &Message, arrow: Option<u64>) -> i64 {
        let Track { rank, thread } = track;
        let name = if thread == OUT {
            format!("to {}", m.peer)
        } else {
            format!("from {}", m.peer)
        };
        let last = self.last.remove(&track);
        let at = last.as_ref().map_or(at, |last| at.max(last.at + 1));
        if let Some(last) = last {
            self.show(track, last, at);
        }
        let event = json!({
            "ph": "X", "cat": "message", "name": name, "pid": rank, "tid": thread, "ts": shown(at),
            "args": {
                "bytes": m.bytes, "tag": m.tag, "context": m.context, "collective": m.context % 2 == 1, "peer": m.peer,
                "number": m.number,
            },
        });
        self.last.insert(track, Shown { at, event, arrow });
        at
    }

    /// Writes a message that is followed by another one then.
    fn show(&mut self, Track { rank, thread }: Track, mut message: Shown, next: i64) {
        message.event["dur"] = json!(shown(next.saturating_sub(message.at).clamp(1, SHOWN)));
        self.event(&message.event);
        if let Some(arrow) = message.arrow {
            let phase = if thread == OUT { "s" } else { "f" };
            self.event(&json!({
                "ph": phase, "bp": "e", "cat": "message", "name": "message", "id": arrow, "pid": rank, "tid": thread,
                "ts": shown(message.at),
            }));
        }
    }

    /// What has passed on links until now.
    pub(crate) fn traffic(&mut self, links: &[LinkTraffic]) {
        let ts = self.now();
        for link in links {
            let Some(now) = link.counted_at() else { continue };
            let key = (link.from.clone(), link.to.clone());
            let last = self.rates.entry(key).or_insert((link.sent, now));
            let (sent, seconds) = (last.0, now - last.1);
            if seconds < 0.2 {
                continue;
            }
            *last = (link.sent, now);
            let rate = link.sent.saturating_sub(sent) as f64 * 8e-6 / seconds;
            let name = format!("{} to {}, Mbit/s", link.from, link.to);
            self.event(&json!({"ph": "C", "name": name, "pid": LINKS, "ts": ts, "args": {"rate": rate}}));
        }
    }

    /// Something that the coordinator says of a process: it is lost, or connected with others.
    pub(crate) fn became(&mut self, rank: u32, kind: &str, text: &str) {
        let ts = self.now();
        self.event(&json!({
            "ph": "i", "s": "p", "cat": kind, "name": text, "pid": rank, "tid": CONNECTIONS, "ts": ts,
        }));
    }

    /// Something that the coordinator says.
    pub(crate) fn notice(&mut self, text: &str) {
        let ts = self.now();
        self.event(&json!({"ph": "i", "s": "g", "cat": "job", "name": text, "pid": LINKS, "tid": 0, "ts": ts}));
    }

    /// Ends the file. What went wrong, if anything did.
    pub(crate) fn close(mut self) -> io::Result<()> {
        let held: Vec<u32> = self.held.keys().copied().collect();
        held.into_iter().for_each(|rank| self.arrivals(rank, true));
        for (track, last) in std::mem::take(&mut self.last) {
            self.show(track, last, i64::MAX);
        }
        let clocks: BTreeMap<_, _> = self
            .errors
            .iter()
            .map(|(site, error)| (site.clone(), json!({"right_to_us": error.as_nanos() as f64 / 1000.0})))
            .collect();
        let began = self.began.duration_since(UNIX_EPOCH).unwrap_or_default();
        let other = json!({
            "clocks": clocks, "events_not_recorded": self.lost, "began": began.as_secs_f64(),
            "began_nanoseconds": u64::try_from(began.as_nanos()).unwrap_or(0),
        });
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
        shown(self.time(now.as_nanos() as i128))
    }

    /// Nanoseconds since the beginning, of nanoseconds since 1970 by our clock. What a process says may be anything.
    fn time(&self, at: i128) -> i64 {
        let began = self.began.duration_since(UNIX_EPOCH).unwrap_or_default();
        (at - began.as_nanos() as i128).clamp(-FARTHEST, FARTHEST) as i64
    }
}

/// With room for one more: what has begun and never ends, of processes that lose records, is forgotten at last.
fn bounded<K, V>(map: &mut HashMap<K, V>) -> &mut HashMap<K, V> {
    if map.len() >= UNDER_WAY {
        map.clear();
    }
    map
}

/// Microseconds.
pub(crate) fn shown(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1000.0
}

/// What is shown as so many microseconds; from a file it may be anything.
pub(crate) fn nanoseconds(shown: f64) -> i64 {
    (shown * 1000.0).round().clamp(-(FARTHEST as f64), FARTHEST as f64) as i64
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
        let back = Message { peer: 0, ..message };
        // By its clock it came half a millisecond before it was sent, and its record comes first.
        let came = record(now + 999_500_000, What::Arrived(back));
        trace.records(1, "lab", offset, &came);
        trace.records(0, "home", Offset::default(), &record(now, What::Sent(message)));
        trace.records(1, "lab", offset, &record(now, What::Lost(3)));
        let (operation, context, sequence) = ("bcast".to_owned(), 3, 4);
        let began = What::Began {
            operation,
            context,
            sequence,
        };
        let waited = What::Waited {
            call: "MPI_Recv".to_owned(),
            thread: 0,
            duration: 1500,
        };
        for what in [began, What::Ended { context, sequence }, waited] {
            trace.records(0, "home", Offset::default(), &record(now, what));
        }
        trace.notice("gateway");
        trace.became(1, "loss", "lost: killed");
        trace.close().unwrap();
        let json: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        let find = |phase: &str| events.iter().find(|e| e["ph"] == phase).unwrap();
        assert_eq!(find("s")["id"], find("f")["id"]);
        assert!(find("s")["id"].is_u64());
        let ts = |phase: &str| find(phase)["ts"].as_f64().unwrap();
        assert!(ts("f") > ts("s") && ts("f") < ts("s") + 1.0, "an arrow points forward");
        for field in ["cat", "name", "id2", "pid"] {
            assert_eq!(find("b")[field], find("e")[field]);
        }
        let waits = events.iter().find(|e| e["cat"] == "wait").unwrap();
        assert_eq!((&waits["name"], &waits["dur"]), (&json!("MPI_Recv"), &json!(1.5)));
        let loss = events.iter().find(|e| e["cat"] == "loss").unwrap();
        assert_eq!((&loss["pid"], &loss["name"]), (&json!(1), &json!("lost: killed")));
        assert_eq!(json["otherData"]["clocks"]["lab"]["right_to_us"], 50.0);
        assert_eq!(json["otherData"]["events_not_recorded"], 3);
    }
}
