// SPDX-License-Identifier: Apache-2.0
//! The wide-area core: packets from the gateways' TUN devices, shaped, to other gateways' TUN devices. What goes
//! from one machine of a site to another comes and goes through the same device, over a line of its own.
//!
//! One thread for each device reads it and owns all links that begin there, so nothing is locked. A
//! thread sleeps until shortly before the next packet is due and spins the rest when the line was quiet
//! before: the first packet of an exchange is then on time to some microseconds. In a stream it only sleeps:
//! due times are absolute, so a late wake-up costs no throughput, and the processors are free for the hosts.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::addresses::{place_of, place_of6};
use crate::capture::Tap;
use crate::error::Error;
use crate::link::LinkSpec;
use crate::packet::{self, Burst};
use crate::shaper::{FRAMING, Shaper, Verdict};
use crate::stats::{Counters, LinkReport};
use crate::topology::Topology;

/// The part of a wait that is spun, in nanoseconds: how late a timer may wake a sleeper.
const SPIN: u64 = 60_000;
/// A line counts as quiet when nothing was delivered for this long, in nanoseconds.
const QUIET: u64 = 1_000_000;
/// Frames read before deliveries are looked at again.
const READS: usize = 32;
/// Real-time priority of the threads.
const PRIORITY: &str = "20";

/// Both ends' view of one direction of a link: between sites, or between machines of a site.
#[derive(Debug)]
pub(crate) struct Direction {
    from: String,
    to: String,
    up: AtomicBool,
    /// What the line is to become; its thread takes it with the next packet.
    change: Mutex<Option<LinkSpec>>,
    changed: AtomicBool,
    counters: Counters,
}

impl Direction {
    fn new(from: &str, to: &str) -> Self {
        Self {
            from: from.to_owned(),
            to: to.to_owned(),
            up: AtomicBool::new(true),
            change: Mutex::new(None),
            changed: AtomicBool::new(false),
            counters: Counters::new(),
        }
    }

    fn joins(&self, a: &str, b: &str) -> bool {
        let ends = (self.from.as_str(), self.to.as_str());
        ends == (a, b) || ends == (b, a)
    }
}

/// The running threads.
#[derive(Debug)]
pub(crate) struct Forwarder {
    threads: Vec<JoinHandle<()>>,
    stop: Arc<Stop>,
    directions: Vec<Arc<Direction>>,
    realtime: bool,
}

/// The end of the threads: a word for those that work, a bell for those that sleep.
#[derive(Debug)]
struct Stop {
    asked: AtomicBool,
    bell: OwnedFd,
}

impl Forwarder {
    /// Starts forwarding between `devices`, one for each site in order.
    pub(crate) fn start(devices: Vec<OwnedFd>, topology: &Topology, tap: Option<&Tap>) -> Result<Self, Error> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC).map_err(Error::call("make an eventfd"))?;
        let stop = Arc::new(Stop {
            asked: AtomicBool::new(false),
            bell,
        });
        let devices = Arc::new(devices);
        let sites = devices.len();
        let (ids, started) = mpsc::channel();
        let mut forwarder = Self {
            threads: Vec::new(),
            stop,
            directions: Vec::new(),
            realtime: false,
        };
        for from in 0..sites {
            let port = Port {
                from,
                devices: Arc::clone(&devices),
                stop: Arc::clone(&forwarder.stop),
                lines: forwarder.lines(topology, from),
                tap: tap.cloned(),
                quiet_since: 0,
            };
            let ids = ids.clone();
            let thread = std::thread::Builder::new().name(format!("wide-{from}")).spawn(move || {
                // Nobody listening means that start() failed; then the stop is on its way.
                let _ = ids.send(rustix::thread::gettid());
                port.run();
            });
            forwarder
                .threads
                .push(thread.map_err(Error::system("start a forwarder thread"))?);
        }
        drop(ids);
        forwarder.realtime = !forwarder.directions.is_empty()
            && started
                .iter()
                .take(sites)
                .all(|id| make_realtime(id.as_raw_nonzero().get()));
        Ok(forwarder)
    }

    /// The lines that begin at a site.
    fn lines(&mut self, topology: &Topology, from: usize) -> Lines {
        let sites = &topology.sites;
        let seed = |number: usize| topology.seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
        let wide = (0..sites.len()).map(|to| {
            let names = (&sites[from].name, &sites[to].name);
            (to != from).then(|| self.line(topology.link_between(from, to), names, seed(from * 64 + to)))
        });
        let wide = wide.collect();
        let site = &sites[from];
        let mut local = Vec::new();
        if let Some(link) = &site.local {
            for number in 0..site.machines * site.machines {
                let (a, b) = (number / site.machines, number % site.machines);
                let names = (&site.machine(a + 1), &site.machine(b + 1));
                // Beyond the numbers of all lines between sites.
                let seed = seed(64 * 64 * (from + 1) + number);
                local.push((a != b).then(|| self.line(link, names, seed)));
            }
        }
        Lines {
            site: from,
            machines: site.machines,
            hosts: site.hosts,
            wide,
            local,
        }
    }

    fn line(&mut self, link: &LinkSpec, (from, to): (&String, &String), seed: u64) -> Line {
        let direction = Arc::new(Direction::new(from, to));
        self.directions.push(Arc::clone(&direction));
        Line {
            shaper: Shaper::new(link, seed),
            waiting: VecDeque::new(),
            direction,
        }
    }

    /// Cuts or restores both directions between two sites.
    pub(crate) fn set_up(&self, a: &str, b: &str, up: bool) {
        for direction in self.directions.iter().filter(|direction| direction.joins(a, b)) {
            direction.up.store(up, Ordering::Relaxed);
        }
    }

    /// Both directions between two sites become as `link` says.
    pub(crate) fn change(&self, a: &str, b: &str, link: &LinkSpec) {
        for direction in self.directions.iter().filter(|direction| direction.joins(a, b)) {
            *direction.change.lock().unwrap_or_else(PoisonError::into_inner) = Some(link.clone());
            direction.changed.store(true, Ordering::Release);
        }
    }

    pub(crate) fn realtime(&self) -> bool {
        self.realtime
    }

    pub(crate) fn reports(&self) -> Vec<LinkReport> {
        let report = |d: &Arc<Direction>| d.counters.report(&d.from, &d.to, d.up.load(Ordering::Relaxed));
        self.directions.iter().map(report).collect()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.asked.store(true, Ordering::Relaxed);
        // An eventfd that is full is as readable as one that was just written.
        let _ = rustix::io::write(&self.stop.bell, &1u64.to_ne_bytes());
        for thread in self.threads.drain(..) {
            // A panic has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}

/// The lines that begin at one site.
struct Lines {
    site: usize,
    machines: usize,
    hosts: usize,
    /// By the number of the other site.
    wide: Vec<Option<Line>>,
    /// By the numbers of two machines, `from * machines + to`; empty where machines have no links.
    local: Vec<Option<Line>>,
}

impl Lines {
    /// The line for a packet from a host of this site, by places as [`place_of`] gives them.
    fn between(&mut self, from: (usize, usize), to: (usize, usize)) -> Option<&mut Line> {
        if to.0 != self.site {
            return self.wide.get_mut(to.0)?.as_mut();
        }
        let (from, to) = (from.1 / self.hosts, to.1 / self.hosts);
        if from >= self.machines || to >= self.machines {
            return None;
        }
        self.local.get_mut(from * self.machines + to)?.as_mut()
    }

    fn iter(&self) -> impl Iterator<Item = &Line> {
        self.wide.iter().chain(&self.local).flatten()
    }

    /// Each line with the number of the site where it ends.
    fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Line)> {
        let local = self.local.iter_mut().map(|line| (self.site, line));
        let lines = self.wide.iter_mut().enumerate().chain(local);
        lines.filter_map(|(to, line)| Some((to, line.as_mut()?)))
    }
}

/// Packets on their way along one direction.
struct Line {
    shaper: Shaper,
    waiting: VecDeque<Parcel>,
    direction: Arc<Direction>,
}

/// Packets that are delivered together.
struct Parcel {
    due: u64,
    packets: u64,
    ip_bytes: u64,
    frame: Vec<u8>,
}

impl Line {
    /// Serialises a frame packet by packet and keeps what survives, in parcels of at most [`together`].
    fn accept(&mut self, now: u64, frame: &[u8], burst: Burst) {
        if !self.direction.up.load(Ordering::Relaxed) {
            self.direction
                .counters
                .cut
                .fetch_add(burst.packets() as u64, Ordering::Relaxed);
            return;
        }
        if self.direction.changed.swap(false, Ordering::Acquire) {
            let change = self
                .direction
                .change
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(link) = change {
                self.shaper.change(&link);
            }
        }
        let most = together(self.shaper.delay());
        let mut open: Option<Open> = None;
        for index in 0..burst.packets() {
            let ip_bytes = burst.ip_bytes(index) as u64;
            match self.shaper.offer(now, ip_bytes) {
                Verdict::Due(due) => {
                    let chunk = open.get_or_insert(Open {
                        first: index,
                        line_time: 0,
                        ip_bytes: 0,
                        due,
                    });
                    chunk.due = due;
                    chunk.ip_bytes += ip_bytes;
                    chunk.line_time += self.shaper.line_time(ip_bytes + FRAMING);
                    if chunk.line_time >= most {
                        self.close(frame, burst, open.take(), index + 1);
                    }
                }
                verdict => {
                    self.close(frame, burst, open.take(), index);
                    self.drop_one(verdict);
                }
            }
        }
        self.close(frame, burst, open, burst.packets());
    }

    fn close(&mut self, frame: &[u8], burst: Burst, open: Option<Open>, end: usize) {
        let Some(chunk) = open else { return };
        let packets = end - chunk.first;
        let frame = burst.part(frame, chunk.first, packets);
        self.waiting.push_back(Parcel {
            due: chunk.due,
            packets: packets as u64,
            ip_bytes: chunk.ip_bytes,
            frame,
        });
    }

    fn drop_one(&self, verdict: Verdict) {
        let counters = &self.direction.counters;
        let counter = if verdict == Verdict::Lost {
            &counters.lost
        } else {
            &counters.overflowed
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Hands over everything that is due; says whether there was anything.
    fn deliver(&mut self, now: u64, device: &OwnedFd) -> bool {
        let mut any = false;
        while self.waiting.front().is_some_and(|parcel| parcel.due <= now) {
            let Some(parcel) = self.waiting.pop_front() else { break };
            any = true;
            self.hand_over(now, &parcel, device);
        }
        any
    }

    fn hand_over(&self, now: u64, parcel: &Parcel, device: &OwnedFd) {
        let counters = &self.direction.counters;
        if !self.direction.up.load(Ordering::Relaxed) {
            counters.cut.fetch_add(parcel.packets, Ordering::Relaxed);
            return;
        }
        counters.late(now - parcel.due);
        if rustix::io::write(device, &parcel.frame).is_err() {
            counters.failed.fetch_add(parcel.packets, Ordering::Relaxed);
            return;
        }
        counters.packets.fetch_add(parcel.packets, Ordering::Relaxed);
        counters.bytes.fetch_add(parcel.ip_bytes, Ordering::Relaxed);
    }
}

/// Most line time of packets that are delivered together, in nanoseconds: a fiftieth of the way there, so that the
/// first of them is late by what nobody sees; a long line of 100 Mbit/s would otherwise wake its thread for every
/// packet.
fn together(delay: u64) -> u64 {
    (delay / 50).clamp(100_000, 1_000_000)
}

/// A parcel in the making.
struct Open {
    first: usize,
    line_time: u64,
    ip_bytes: u64,
    due: u64,
}

/// One thread: a device and the lines that begin there.
struct Port {
    from: usize,
    devices: Arc<Vec<OwnedFd>>,
    stop: Arc<Stop>,
    lines: Lines,
    tap: Option<Tap>,
    quiet_since: u64,
}

impl Port {
    fn run(mut self) {
        let mut buffer = vec![0; packet::MAX_FRAME];
        while !self.stop.asked.load(Ordering::Relaxed) {
            let more = self.read_some(&mut buffer);
            let now = monotonic();
            self.deliver(now);
            if !more {
                self.rest(now);
            }
        }
    }

    /// Takes frames from the device; true when there may be more.
    fn read_some(&mut self, buffer: &mut [u8]) -> bool {
        for _ in 0..READS {
            match rustix::io::read(&self.devices[self.from], &mut *buffer) {
                Ok(length) => self.accept(&buffer[..length]),
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn accept(&mut self, frame: &[u8]) {
        let place = |address| match address {
            IpAddr::V4(four) => place_of(four.octets()),
            IpAddr::V6(six) => place_of6(six.octets()),
        };
        let ends = packet::ends(frame).and_then(|(from, to)| place(from).zip(place(to)));
        let line = ends.and_then(|(from, to)| self.lines.between(from, to));
        let (Some(burst), Some(line)) = (Burst::of(frame), line) else {
            return;
        };
        let wide = ends.is_some_and(|(_, to)| to.0 != self.from);
        if let Some(tap) = self.tap.as_ref().filter(|_| wide) {
            tap.see(frame);
        }
        line.accept(monotonic(), frame, burst);
    }

    fn deliver(&mut self, now: u64) {
        for (to, line) in self.lines.iter_mut() {
            if line.deliver(now, &self.devices[to]) {
                self.quiet_since = now;
            }
        }
    }

    /// Sleeps until there is something to do, or returns at once to spin.
    fn rest(&self, now: u64) {
        let next = self
            .lines
            .iter()
            .filter_map(|line| line.waiting.front())
            .map(|parcel| parcel.due)
            .min();
        let wait = next.map(|due| due.saturating_sub(now));
        let quiet = now.saturating_sub(self.quiet_since) > QUIET;
        match wait {
            None => self.sleep(None),
            Some(wait) if quiet && wait <= SPIN => std::hint::spin_loop(),
            Some(wait) => self.sleep(Some(if quiet { wait - SPIN } else { wait })),
        }
    }

    fn sleep(&self, nanos: Option<u64>) {
        let timeout = nanos.map(|n| Timespec {
            tv_sec: (n / 1_000_000_000) as i64,
            tv_nsec: (n % 1_000_000_000) as _,
        });
        let mut fds = [
            PollFd::from_borrowed_fd(self.devices[self.from].as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.stop.bell.as_fd(), PollFlags::IN),
        ];
        // An interrupted or failed wait only means to look again.
        let _ = poll(&mut fds, timeout.as_ref());
    }
}

/// Nanoseconds of the monotonic clock.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Asks for SCHED_FIFO through `chrt`; false when it is missing or not permitted.
fn make_realtime(thread: i32) -> bool {
    let quiet = std::process::Stdio::null;
    std::process::Command::new("chrt")
        .args(["--fifo", "--pid", PRIORITY, &thread.to_string()])
        .stdin(quiet())
        .stdout(quiet())
        .stderr(quiet())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{LinkSpec, Queue};

    fn line(queue: u64) -> Line {
        let spec = LinkSpec {
            queue: Queue::Packets(queue),
            rate: Some(1_000_000_000),
            ..LinkSpec::default()
        };
        let direction = Arc::new(Direction::new("a", "b"));
        Line {
            shaper: Shaper::new(&spec, 1),
            waiting: VecDeque::new(),
            direction,
        }
    }

    #[test]
    fn packets_find_their_line() {
        let topology = Topology::grid("2x2x2").and_then(|t| t.local_round_trip("1ms")).unwrap();
        let mut forwarder = Forwarder {
            threads: Vec::new(),
            stop: Arc::new(Stop {
                asked: AtomicBool::new(false),
                bell: eventfd(0, EventfdFlags::CLOEXEC).unwrap(),
            }),
            directions: Vec::new(),
            realtime: false,
        };
        let mut lines = forwarder.lines(&topology, 1);
        let mut name = |from, to| {
            let line = lines.between(from, to)?;
            Some(format!("{}-{}", line.direction.from, line.direction.to))
        };
        assert_eq!(name((1, 0), (0, 3)).as_deref(), Some("b-a"));
        assert_eq!(name((1, 1), (1, 2)).as_deref(), Some("b1-b2"));
        assert_eq!(name((1, 0), (1, 1)), None, "one machine has no line to itself");
        assert_eq!(name((1, 0), (1, 9)), None);
        assert_eq!(name((1, 0), (7, 0)), None);
    }

    /// A plain UDP-like packet of `bytes` bytes of IP.
    fn frame(bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; packet::HEADER + bytes];
        frame[packet::HEADER] = 0x45;
        frame
    }

    #[test]
    fn overflow_is_counted_and_the_rest_waits() {
        let mut line = line(3);
        for _ in 0..5 {
            let frame = frame(1500);
            line.accept(1000, &frame, Burst::of(&frame).unwrap());
        }
        assert_eq!(line.waiting.len(), 3);
        assert_eq!(line.direction.counters.overflowed.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_cut_line_takes_nothing_and_loses_what_is_on_it() {
        let mut line = line(100);
        let frame = frame(100);
        let burst = Burst::of(&frame).unwrap();
        line.accept(0, &frame, burst);
        line.direction.up.store(false, Ordering::Relaxed);
        line.accept(0, &frame, burst);
        let sink = OwnedFd::from(std::fs::File::options().write(true).open("/dev/null").unwrap());
        assert!(line.deliver(u64::MAX, &sink));
        let counters = &line.direction.counters;
        assert_eq!(
            (
                counters.cut.load(Ordering::Relaxed),
                counters.packets.load(Ordering::Relaxed)
            ),
            (2, 0)
        );
    }
}
