// SPDX-License-Identifier: Apache-2.0
//! What the main thread and the I/O thread share: two queues, two bells, a few flags.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use isthmus_datatype::raw::WriteMemory;
use isthmus_link::meter::Estimate;
use isthmus_transport::{Lent, Peer, Rates, Tuning};
use isthmus_wire::frame::Header;
use rustc_hash::FxHashMap;
use rustix::io::Errno;

use crate::flow::Flow;
use crate::queues::Long;
use crate::socket::Bell;

/// Bytes of arrived frames that may wait for the main thread; above it the thread stops reading.
pub(crate) const INBOX_BYTES: usize = 64 << 20;

type Hook = Arc<dyn Fn() + Send + Sync>;
type Reporter = Box<dyn Fn(Vec<(Peer, Traffic)>) + Send + Sync>;

/// Events of connections that wait at most to be taken.
const MAX_EVENTS: usize = 4096;

/// Whose rate is measured.
pub type Round = isthmus_link::gauge::Round<Peer>;

/// From the main thread to the I/O thread.
pub(crate) enum Command {
    /// Make a plain connection to this peer.
    Dial { peer: Peer, early: Arc<Early> },
    /// An encoded frame for a wide-area channel.
    Frame { flow: Arc<Flow>, queue: u8, bytes: Vec<u8> },
    /// Long data for a wide-area channel.
    Long { peer: Peer, queue: u8, long: Long },
    /// How a queue of every wide-area channel is treated.
    Tune { queue: u8, tuning: Tuning },
    /// What the links to peers carry.
    Know(Rates),
    /// How many channels use a link at the same time.
    Share(u32),
    /// Where fragments with this token go.
    Expect {
        peer: Peer,
        token: u64,
        memory: Lent<WriteMemory>,
        length: u64,
    },
    /// The program does not rely on this peer any more, for this reason: its channel ends.
    Lose { peer: Peer, reason: String },
    /// Make wide-area connections and measure rates.
    Probe { dial: Vec<Peer>, rounds: Vec<Round> },
    /// Say when everything was acknowledged that is there to send.
    Settle,
    /// Send everything, then say farewell on every wide-area channel.
    Close,
}

/// From the I/O thread to [`WideTransport`](crate::WideTransport).
pub(crate) enum Arrival {
    Frame {
        peer: Peer,
        header: Header,
        payload: Vec<u8>,
    },
    Received {
        peer: Peer,
        token: u64,
    },
    Sent {
        peer: Peer,
        token: u64,
    },
    Writable {
        peer: Peer,
    },
    Lost {
        peer: Peer,
        reason: String,
    },
    /// It has said farewell, and this process has not.
    Ended {
        peer: Peer,
    },
}

/// From the I/O thread to [`TcpTransport`](crate::TcpTransport).
pub(crate) enum PlainEvent {
    Connected { peer: Peer, socket: OwnedFd },
    Failed { peer: Peer, reason: String },
}

/// Frames for a plain channel that has no connection yet. The thread sends them as soon as there is one, for the
/// program may have nothing to say to MPI for a long time. Once handed over, everything is up to the main thread.
#[derive(Debug, Default)]
pub(crate) struct Early(Mutex<EarlyFrames>);

#[derive(Debug, Default)]
struct EarlyFrames {
    bytes: Vec<u8>,
    handed: bool,
}

/// What became of a frame given to [`Early`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TookEarly {
    Yes,
    NoRoom,
    /// The connection is on its way to the main thread.
    Handed,
}

impl Early {
    /// Main thread: adds a frame unless more than `limit` bytes would wait.
    pub(crate) fn push(&self, header: &[u8], payload: &[u8], limit: usize) -> TookEarly {
        let mut frames = lock(&self.0);
        if frames.handed {
            return TookEarly::Handed;
        }
        if !frames.bytes.is_empty() && frames.bytes.len() + payload.len() > limit {
            return TookEarly::NoRoom;
        }
        frames.bytes.extend_from_slice(header);
        frames.bytes.extend_from_slice(payload);
        TookEarly::Yes
    }

    /// Main thread, which has the connection now: what is left to send.
    pub(crate) fn hand_over(&self) -> Vec<u8> {
        let mut frames = lock(&self.0);
        frames.handed = true;
        std::mem::take(&mut frames.bytes)
    }

    /// I/O thread: the next bytes to send; `None`: nothing is left, and the main thread goes on.
    pub(crate) fn next(&self) -> Option<Vec<u8>> {
        let mut frames = lock(&self.0);
        if frames.handed || frames.bytes.is_empty() {
            frames.handed = true;
            return None;
        }
        Some(std::mem::take(&mut frames.bytes))
    }

    /// I/O thread: could not send these; the main thread will.
    pub(crate) fn put_back(&self, bytes: &[u8]) {
        lock(&self.0).bytes.splice(0..0, bytes.iter().copied());
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).bytes.is_empty()
    }
}

/// What is known of wide-area connections.
#[derive(Debug, Default)]
pub struct Measurements {
    /// By peer.
    pub estimates: FxHashMap<Peer, Estimate>,
    /// All rates that were to be measured have been, as far as that was possible.
    pub rounds_over: bool,
}

/// What has passed on the channel to one peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes given to TLS.
    pub sent: u64,
    /// Encrypted bytes that arrived.
    pub received: u64,
    /// Bytes of segments, as they were sent, that the peer has acknowledged.
    pub acknowledged: u64,
    /// Bytes that TCP sent again.
    pub retransmitted: u64,
    /// Segments that were sent again because their connection broke.
    pub resent: u64,
    /// Segments that came more than once.
    pub duplicates: u64,
    /// How often all connections were lost and the channel went on.
    pub cuts: u64,
    /// How often it moved from a gateway to a connection of its own.
    pub moved: u64,
    /// How often it went on over another connection of a gateway, which had ended the one before: the stream had to
    /// move there, or the gateway ended.
    pub renewed: u64,
    /// How long it was without a connection, in all.
    pub away: Duration,
    /// Most connections side by side.
    pub streams: u64,
    /// Bytes that were compressed before they were sent, and what they had been.
    pub compressed: (u64, u64),
    /// Bytes of messages and their headers before compression: latency, normal, bulk.
    pub classes: [u64; 3],
    /// Last round trip from process to process.
    pub round_trip: Duration,
    /// Connections at the last look.
    pub connections: u64,
    /// It had none then, although it is not over.
    pub is_away: bool,
    /// When that look was, since the thread began, by the monotonic clock.
    pub looked: Duration,
}

/// Measures wide-area connections and tells what is known of them.
#[derive(Clone, Debug)]
pub struct Prober(pub(crate) Arc<Link>);

impl Prober {
    /// Begins to measure: round trips with these peers and all that dial us, rates in rounds, one after the other.
    pub fn start(&self, dial: Vec<Peer>, rounds: Vec<Round>) {
        self.0.command(Command::Probe { dial, rounds });
    }

    /// What has passed on every channel until the last look of the thread.
    pub fn traffic(&self) -> Vec<(Peer, Traffic)> {
        self.0.traffic()
    }

    /// Calls this with what has passed on every channel, at most once a second and only while something does. It is
    /// called from the thread and must not block.
    pub fn report(&self, to: impl Fn(Vec<(Peer, Traffic)>) + Send + Sync + 'static) {
        // Whoever comes first stays.
        let _ = self.0.reporter.set(Box::new(to));
    }

    /// From now on events of connections are kept for [`Prober::events`].
    pub fn trace(&self) {
        lock(&self.0.events).get_or_insert_default();
    }

    /// Connections that were made and that broke since the last time, of late, oldest first.
    pub fn events(&self) -> Vec<(SystemTime, String)> {
        lock(&self.0.events).as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Looks at what is known.
    pub fn look<T>(&self, see: impl FnOnce(&Measurements) -> T) -> T {
        see(&lock(&self.0.measurements))
    }

    /// Sleeps until this is so, or the time is over.
    pub fn wait(&self, time: Duration, mut until: impl FnMut(&Measurements) -> bool) {
        let measurements = lock(&self.0.measurements);
        // Whether the time was over the caller sees in what is known.
        let _ = self.0.news.wait_timeout_while(measurements, time, |m| !until(m));
    }
}

#[derive(Default)]
struct Inbox {
    arrivals: VecDeque<Arrival>,
    bytes: usize,
}

pub(crate) struct Link {
    commands: Mutex<Vec<Command>>,
    /// The I/O thread is about to sleep or asleep.
    asleep: AtomicBool,
    thread_bell: Bell,
    /// A thread of the program does the I/O thread's work.
    driven: AtomicBool,
    /// How often one has.
    turns: AtomicU32,
    /// The I/O thread rests until its next deadline.
    rests_long: AtomicBool,
    /// Frames for the program have come or gone in part.
    pub(crate) moved: AtomicBool,
    pub(crate) stop: AtomicBool,
    inbox: Mutex<Inbox>,
    /// Something is in the inbox.
    pub(crate) arrived: AtomicBool,
    /// The main thread sleeps on the bell.
    armed: AtomicBool,
    pub(crate) wide_bell: Bell,
    /// The I/O thread has stopped reading because the inbox was full.
    full: AtomicBool,
    /// Everything that was there to send was acknowledged.
    pub(crate) settled: AtomicBool,
    /// Everything was sent and the farewells said.
    pub(crate) closed: AtomicBool,
    plain: Mutex<VecDeque<PlainEvent>>,
    pub(crate) plain_waiting: AtomicBool,
    pub(crate) plain_bell: Bell,
    hook: OnceLock<Hook>,
    measurements: Mutex<Measurements>,
    /// Rung by every change of the measurements.
    news: Condvar,
    connections: Mutex<Vec<String>>,
    traffic: Mutex<FxHashMap<Peer, Traffic>>,
    reporter: OnceLock<Reporter>,
    /// `None`: nobody traces.
    events: Mutex<Option<Vec<(SystemTime, String)>>>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link")
    }
}

/// A panic elsewhere cannot leave these queues in a bad state: every change is one push or swap.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            commands: Mutex::default(),
            asleep: AtomicBool::new(false),
            thread_bell: Bell::new()?,
            driven: AtomicBool::new(false),
            turns: AtomicU32::new(0),
            rests_long: AtomicBool::new(false),
            moved: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            inbox: Mutex::default(),
            arrived: AtomicBool::new(false),
            armed: AtomicBool::new(false),
            wide_bell: Bell::new()?,
            full: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            plain: Mutex::default(),
            plain_waiting: AtomicBool::new(false),
            plain_bell: Bell::new()?,
            hook: OnceLock::new(),
            measurements: Mutex::default(),
            news: Condvar::new(),
            connections: Mutex::default(),
            traffic: Mutex::default(),
            reporter: OnceLock::new(),
            events: Mutex::default(),
        })
    }

    /// For people: every connection that was made, in order.
    pub(crate) fn connections(&self) -> Vec<String> {
        lock(&self.connections).clone()
    }

    pub(crate) fn note_connection(&self, text: String) {
        if let Some(events) = lock(&self.events).as_mut().filter(|e| e.len() < MAX_EVENTS) {
            events.push((SystemTime::now(), text.clone()));
        }
        lock(&self.connections).push(text);
    }

    pub(crate) fn note_traffic(&self, peer: Peer, traffic: Traffic) {
        lock(&self.traffic).insert(peer, traffic);
    }

    pub(crate) fn traffic(&self) -> Vec<(Peer, Traffic)> {
        lock(&self.traffic).iter().map(|(p, t)| (*p, t.clone())).collect()
    }

    /// I/O thread: says what has passed to whoever wants to know.
    pub(crate) fn report(&self) {
        if let Some(reporter) = self.reporter.get() {
            reporter(self.traffic());
        }
    }

    // Main thread.

    pub(crate) fn command(&self, command: Command) {
        self.put(command);
        self.wake_thread();
    }

    /// The same for one who sees to it that it is done.
    pub(crate) fn put(&self, command: Command) {
        lock(&self.commands).push(command);
    }

    pub(crate) fn wake_thread(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.thread_bell.ring();
        }
    }

    /// A thread of the program is about to do the I/O thread's work once.
    pub(crate) fn drive(&self) {
        self.turns.fetch_add(1, Ordering::SeqCst);
        // Mostly both are so already, and looking costs less than changing.
        let began = !self.is_driven() && !self.driven.swap(true, Ordering::SeqCst);
        let rests = self.rests_long.load(Ordering::SeqCst);
        if began || rests && self.rests_long.swap(false, Ordering::SeqCst) {
            // It does not know the deadlines that come now: it is to rest for a moment only.
            self.thread_bell.ring();
        }
    }

    /// The I/O thread does its work itself from now on.
    pub(crate) fn hand_back(&self) {
        if self.driven.swap(false, Ordering::SeqCst) {
            self.thread_bell.ring();
        }
    }

    /// Takes all arrivals. `spare` is left in their place.
    pub(crate) fn take_arrivals(&self, spare: &mut VecDeque<Arrival>) -> bool {
        if !self.arrived.load(Ordering::Acquire) {
            return false;
        }
        {
            let mut inbox = lock(&self.inbox);
            self.arrived.store(false, Ordering::Release);
            std::mem::swap(&mut inbox.arrivals, spare);
            inbox.bytes = 0;
        }
        if self.full.swap(false, Ordering::SeqCst) {
            self.thread_bell.ring();
        }
        true
    }

    /// False when something has arrived.
    pub(crate) fn arm(&self) -> bool {
        self.armed.store(true, Ordering::SeqCst);
        let quiet = !self.arrived.load(Ordering::SeqCst);
        if !quiet {
            self.armed.store(false, Ordering::SeqCst);
        }
        quiet
    }

    pub(crate) fn disarm(&self) {
        self.armed.store(false, Ordering::SeqCst);
        self.wide_bell.quiet();
    }

    pub(crate) fn take_plain(&self) -> VecDeque<PlainEvent> {
        self.plain_bell.quiet();
        let mut plain = lock(&self.plain);
        self.plain_waiting.store(false, Ordering::SeqCst);
        std::mem::take(&mut plain)
    }

    // I/O thread.

    /// The bell that ends the thread's sleep.
    pub(crate) fn thread_bell(&self) -> &Bell {
        &self.thread_bell
    }

    /// The thread is awake.
    pub(crate) fn woke(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Whether a thread of the program does the work.
    pub(crate) fn is_driven(&self) -> bool {
        self.driven.load(Ordering::SeqCst)
    }

    /// How often one has done it.
    pub(crate) fn turns(&self) -> u32 {
        self.turns.load(Ordering::SeqCst)
    }

    /// Something is ready: whether a thread of the program sleeps, which wakes and does the work.
    pub(crate) fn rest_for_sleeper(&self) -> bool {
        let sleeps = self.armed.load(Ordering::SeqCst);
        if sleeps {
            self.driven.store(true, Ordering::SeqCst);
        }
        sleeps
    }

    /// Whether the I/O thread may rest to its next deadline: the program sleeps, and has done nothing since `turns`.
    pub(crate) fn begins_long_rest(&self, turns: u32) -> bool {
        if !self.armed.load(Ordering::SeqCst) {
            return false;
        }
        self.rests_long.store(true, Ordering::SeqCst);
        // Who drives after this look ends the rest.
        self.turns() == turns
    }

    pub(crate) fn ends_long_rest(&self) {
        self.rests_long.store(false, Ordering::SeqCst);
    }

    /// The program has not driven for a while: if it does not sleep, the I/O thread does the work.
    pub(crate) fn leave_to_thread(&self) {
        if !self.armed.load(Ordering::SeqCst) {
            self.driven.store(false, Ordering::SeqCst);
        }
    }

    pub(crate) fn take_commands(&self, spare: &mut Vec<Command>) {
        std::mem::swap(&mut *lock(&self.commands), spare);
    }

    /// Call before sleeping. False: there is work.
    pub(crate) fn may_sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        lock(&self.commands).is_empty() && !self.stop.load(Ordering::SeqCst)
    }

    /// Queues arrivals; says whether the thread must stop reading.
    pub(crate) fn deliver(&self, arrivals: &mut Vec<Arrival>) -> bool {
        let mut inbox = lock(&self.inbox);
        for arrival in arrivals.drain(..) {
            if let Arrival::Frame { payload, .. } = &arrival {
                inbox.bytes += payload.len();
            }
            inbox.arrivals.push_back(arrival);
        }
        self.arrived.store(true, Ordering::SeqCst);
        let full = inbox.bytes > INBOX_BYTES;
        if full {
            self.full.store(true, Ordering::SeqCst);
        }
        full
    }

    /// The inbox is still too full to read on.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::SeqCst)
    }

    /// Tells a thread that sleeps that something was delivered; if none does, whoever may do its work while the program
    /// computes, unless a thread of the program has found it itself.
    pub(crate) fn announce(&self, by_program: bool) {
        if self.armed.swap(false, Ordering::SeqCst) {
            self.wide_bell.ring();
        } else if let Some(hook) = self.hook.get().filter(|_| !by_program) {
            hook();
        }
    }

    /// Changes what is known of connections.
    pub(crate) fn measured(&self, change: impl FnOnce(&mut Measurements)) {
        change(&mut lock(&self.measurements));
        self.news.notify_all();
    }

    pub(crate) fn plain(&self, event: PlainEvent) {
        lock(&self.plain).push_back(event);
        self.plain_waiting.store(true, Ordering::SeqCst);
        self.plain_bell.ring();
    }
}

/// Sets what the I/O thread calls after it has queued arrivals while the main thread is not asleep, so that the engine
/// can go on while the program computes. It must not block.
#[derive(Clone, Debug)]
pub struct ArrivalHook(pub(crate) Arc<Link>);

impl ArrivalHook {
    /// Sets the function, once; later calls are ignored (returns false).
    pub fn set(&self, function: Arc<dyn Fn() + Send + Sync>) -> bool {
        self.0.hook.set(function).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arming_sees_what_arrived_before() {
        let link = Link::new().unwrap();
        assert!(link.arm());
        link.disarm();
        link.deliver(&mut vec![Arrival::Writable { peer: Peer::new(1) }]);
        assert!(!link.arm());
        let mut arrivals = VecDeque::new();
        assert!(link.take_arrivals(&mut arrivals));
        assert_eq!(arrivals.len(), 1);
        assert!(!link.take_arrivals(&mut arrivals));
        assert!(link.arm());
    }
}
