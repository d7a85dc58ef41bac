// SPDX-License-Identifier: Apache-2.0
//! Messages in memory that one of a meeting has brought.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use isthmus_shm::{Brought, Company, ShmError, ShmTransport};
use isthmus_transport::{Peer, Placement, Processes, SendError, Sink, Transport, conformance, wait};
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::joining::Memory;

/// Keeps what arrives.
#[derive(Default)]
struct Seen {
    frames: Vec<(Peer, Vec<u8>)>,
    lost: Vec<(Peer, String)>,
}

impl Sink for Seen {
    fn frame(&mut self, peer: Peer, _: &Header, payload: &[u8]) {
        self.frames.push((peer, payload.to_vec()));
    }
    fn place(&mut self, _: Peer, _: &Header) -> Placement {
        Placement::Collect
    }
    fn placed(&mut self, _: Peer, _: &Header) {}
    fn received(&mut self, _: Peer, _: u64) {}
    fn sent(&mut self, _: Peer, _: u64) {}
    fn writable(&mut self, _: Peer) {}
    fn lost(&mut self, peer: Peer, reason: &str) {
        self.lost.push((peer, reason.to_owned()));
    }
}

fn brought(count: u8) -> Vec<Brought> {
    (0..count)
        .map(|at| Brought::new([at + 1; 16], [8; 32]).expect("memory"))
        .collect()
}

fn memories(all: &[Brought]) -> Vec<Memory> {
    all.iter().map(Brought::memory).collect()
}

/// The member at `me` of all, whose ranks are 10, 11 and so on. The last ones are its peers.
fn enter(own: Brought, all: &[Memory], me: usize, peers: &[u32]) -> Result<ShmTransport, ShmError> {
    enter_with(own, all, me, peers, Duration::ZERO)
}

fn enter_with(
    own: Brought,
    all: &[Memory],
    me: usize,
    peers: &[u32],
    grace: Duration,
) -> Result<ShmTransport, ShmError> {
    let processes = Processes::of("home", 2);
    let company = Company {
        members: (10..).zip(all).collect(),
        me,
        peers: peers.to_vec(),
        processes,
        grace,
    };
    ShmTransport::met(&own, company)
}

/// Two that have met: each calls itself and the other 0 and 1.
fn pair() -> [ShmTransport; 2] {
    let own = brought(2);
    let all = memories(&own);
    let mut ends = own.into_iter().enumerate().map(|(me, own)| {
        let mut end = enter(own, &all, me, &[10, 11]).expect("entered");
        (0..2).for_each(|rank| end.meet(Peer::new(rank), 10 + rank));
        end
    });
    std::array::from_fn(|_| ends.next().expect("two"))
}

fn eager(length: usize) -> Header {
    Header::new(Kind::Eager, 1, 0, 0, length as u64, 0)
}

#[test]
fn conforms() {
    conformance::check_between_jobs(|| pair().map(|end| Box::new(end) as Box<dyn Transport>));
}

#[test]
fn groups_do_not_meet_there_and_windows_are_not_made_there() {
    let [mut end, _] = pair();
    assert!(end.slabs().is_none() && end.sharing().is_none());
}

#[test]
fn only_those_who_got_to_know_each_other_talk() {
    let own = brought(3);
    let all = memories(&own);
    let mut ends: Vec<ShmTransport> = own
        .into_iter()
        .enumerate()
        .map(|(me, own)| enter(own, &all, me, &[]).expect("entered"))
        .collect();
    // The first knows the last as 7 from the start, the second not at all.
    ends[0].meet(Peer::new(7), 12);
    ends[1].meet(Peer::new(3), 10);
    ends[2].meet(Peer::new(5), 10);
    // A rank that is not on this node is nobody's.
    ends[0].meet(Peer::new(8), 99);
    assert!(matches!(
        ends[0].send(Peer::new(8), &eager(1), &[1]),
        Err(SendError::Lost(_))
    ));
    assert_eq!(ends[2].send(Peer::new(5), &eager(2), &[1, 2]), Ok(()));
    assert_eq!(ends[1].send(Peer::new(3), &eager(1), &[9]), Ok(()));
    let mut seen = Seen::default();
    while ends[0].poll(&mut seen) {}
    assert_eq!(seen.frames, [(Peer::new(7), vec![1, 2])]);
    // From when it is known what it has said counts.
    ends[0].meet(Peer::new(4), 11);
    assert_eq!(ends[1].send(Peer::new(3), &eager(1), &[8]), Ok(()));
    while ends[0].poll(&mut seen) {}
    assert_eq!(seen.frames[1..], [(Peer::new(4), vec![9]), (Peer::new(4), vec![8])]);
    assert!(seen.lost.is_empty(), "{:?}", seen.lost);
}

#[test]
fn who_is_left_out_enters_nothing() {
    let mut own = brought(2);
    let all = memories(&own);
    let stranger = Brought::new([9; 16], [8; 32]).expect("memory");
    let first = enter(own.remove(0), &all, 0, &[]).expect("entered");
    // A place that somebody has already.
    assert!(matches!(enter(stranger, &all, 0, &[]), Err(ShmError::Taken { .. })));
    assert!(matches!(enter(own.remove(0), &all, 2, &[]), Err(ShmError::Usage(_))));
    drop(first);
}

/// A process that does nothing, and ends with the test.
struct Idle(Child);

impl Idle {
    /// Somebody else who has the bell of this member.
    fn with(memory: &Memory) -> Self {
        let bell = format!("/proc/self/fd/{}", memory.bell);
        let bell = std::fs::File::options().read(true).write(true).open(bell);
        let bell = Stdio::from(bell.expect("a bell"));
        Self(Command::new("sleep").arg("600").stdin(bell).spawn().expect("sleep"))
    }

    /// The member as if it were that process.
    fn claim(&self, memory: &Memory) -> Memory {
        Memory {
            process: self.0.id(),
            bell: 0,
            ..memory.clone()
        }
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn who_is_killed_is_lost_and_what_it_has_sent_counts() {
    let mut own = brought(2);
    let all = memories(&own);
    let mut other = Idle::with(&all[1]);
    // The other member says that it is that process.
    let claimed = other.claim(&all[1]);
    let as_seen = [all[0].clone(), claimed];
    let mut first = enter(own.remove(0), &as_seen, 0, &[11]).expect("entered");
    let mut second = enter(own.remove(0), &all, 1, &[]).expect("entered");
    first.meet(Peer::new(1), 11);
    second.meet(Peer::new(1), 10);
    let mut seen = Seen::default();
    assert!(first.arm(), "nothing has happened");
    first.disarm();
    assert_eq!(second.send(Peer::new(1), &eager(3), &[1, 2, 3]), Ok(()));
    other.kill();
    while seen.lost.is_empty() {
        if first.arm() {
            let descriptor = first.descriptor().expect("a bell");
            wait(&[descriptor], None);
            first.disarm();
        }
        first.poll(&mut seen);
    }
    assert_eq!(seen.frames, [(Peer::new(1), vec![1, 2, 3])]);
    let [(peer, why)] = &*seen.lost else {
        panic!("lost once: {:?}", seen.lost)
    };
    assert_eq!(*peer, Peer::new(1));
    assert!(why.contains("has ended without leaving MPI"), "{why}");
    assert!(first.arm(), "that is all");
    first.disarm();
}

#[test]
fn who_dies_before_it_is_known_is_lost_once_it_is_known() {
    let mut own = brought(2);
    let all = memories(&own);
    let mut other = Idle::with(&all[1]);
    let claimed = other.claim(&all[1]);
    let mut first = enter(own.remove(0), &[all[0].clone(), claimed], 0, &[11]).expect("entered");
    other.kill();
    let _ = other.0.wait();
    let mut seen = Seen::default();
    assert!(first.arm(), "it is not told, and wakes nobody");
    first.disarm();
    for _ in 0..20_000 {
        first.poll(&mut seen);
    }
    assert!(seen.lost.is_empty(), "{:?}", seen.lost);
    first.meet(Peer::new(1), 11);
    while seen.lost.is_empty() {
        first.poll(&mut seen);
    }
    assert_eq!(seen.lost[0].0, Peer::new(1));
}

#[test]
fn who_gives_this_process_up_before_it_is_known_is_lost_once_it_is_known() {
    let own = brought(3);
    let all = memories(&own);
    let mut ends: Vec<ShmTransport> = own
        .into_iter()
        .enumerate()
        .map(|(me, own)| enter(own, &all, me, &[]).expect("entered"))
        .collect();
    for other in [1, 2] {
        ends[other].meet(Peer::new(0), 10);
        ends[other].lose(Peer::new(0), "it takes nothing more");
    }
    let mut seen = Seen::default();
    while ends[0].poll(&mut seen) {}
    assert!(seen.lost.is_empty(), "{:?}", seen.lost);
    // The third one stays unknown.
    ends[0].meet(Peer::new(1), 11);
    while ends[0].poll(&mut seen) {}
    let lost: Vec<Peer> = seen.lost.iter().map(|(peer, _)| *peer).collect();
    assert_eq!(lost, [Peer::new(1)]);
}

#[test]
fn who_only_polls_hears_of_a_death_too() {
    let mut own = brought(2);
    let all = memories(&own);
    let mut other = Idle::with(&all[1]);
    let claimed = other.claim(&all[1]);
    let mut first = enter(own.remove(0), &[all[0].clone(), claimed], 0, &[11]).expect("entered");
    first.meet(Peer::new(1), 11);
    other.kill();
    let mut seen = Seen::default();
    while seen.lost.is_empty() {
        first.poll(&mut seen);
    }
}

#[test]
fn of_whom_somebody_else_tells_nothing_more_is_told() {
    let mut own = brought(3);
    let mut all = memories(&own);
    let mut others = [Idle::with(&all[1]), Idle::with(&all[2])];
    for (memory, other) in all[1..].iter_mut().zip(&others) {
        *memory = other.claim(memory);
    }
    let grace = Duration::from_millis(50);
    let mut first = enter_with(own.remove(0), &all, 0, &[11, 12], grace).expect("entered");
    first.meet(Peer::new(1), 11);
    first.meet(Peer::new(2), 12);
    others.iter_mut().for_each(Idle::kill);
    let mut seen = Seen::default();
    // The launcher is quicker with one of them.
    first.lose(Peer::new(1), "killed by signal 9");
    while seen.lost.is_empty() {
        if first.arm() {
            wait(&[first.descriptor().expect("a bell")], None);
            first.disarm();
        }
        first.poll(&mut seen);
    }
    assert_eq!(
        seen.lost.iter().map(|(peer, _)| *peer).collect::<Vec<_>>(),
        [Peer::new(2)]
    );
    assert!(first.arm(), "that is all");
    first.disarm();
}

#[test]
fn who_has_left_is_no_loss() {
    let mut own = brought(2);
    let all = memories(&own);
    let mut other = Idle::with(&all[1]);
    let claimed = other.claim(&all[1]);
    let mut first = enter(own.remove(0), &[all[0].clone(), claimed], 0, &[11]).expect("entered");
    let mut second = enter(own.remove(0), &all, 1, &[]).expect("entered");
    first.meet(Peer::new(1), 11);
    let mut seen = Seen::default();
    assert!(second.close(&mut seen));
    drop(second);
    other.kill();
    let _ = other.0.wait();
    for _ in 0..20_000 {
        first.poll(&mut seen);
    }
    assert!(seen.lost.is_empty(), "{:?}", seen.lost);
    // It takes nothing, and nobody is woken who is not there any more.
    assert!(matches!(
        first.send(Peer::new(1), &eager(1), &[1]),
        Err(SendError::Lost(_))
    ));
    first.poll(&mut seen);
    assert!(seen.lost.is_empty(), "{:?}", seen.lost);
}

#[test]
fn whom_nobody_can_watch_or_wake_is_not_met() {
    let own = brought(2);
    let mut all = memories(&own);
    all[1].process = i32::MAX as u32;
    let mut own = own;
    let entered = enter(own.remove(0), &all, 0, &[11]);
    assert!(matches!(entered, Err(ShmError::System { .. })));
    // Nor can one be woken that has another bell than it says.
    let mut own = brought(2);
    let mut all = memories(&own);
    all[1].bell_number += 1;
    let entered = enter(own.remove(0), &all, 0, &[11]);
    assert!(matches!(entered, Err(ShmError::System { .. })));
}

#[test]
fn nothing_stays_behind() {
    let open = || std::fs::read_dir("/proc/self/fd").expect("listed").count();
    let named = || {
        let all = std::fs::read_dir("/proc/self/map_files").into_iter().flatten();
        all.count()
    };
    // Other tests of this program open and close too: the smallest difference of several counts.
    let grown = (0..20).map(|_| {
        let before = (open(), named());
        drop(pair());
        let after = (open(), named());
        after.0.saturating_sub(before.0) + after.1.saturating_sub(before.1)
    });
    assert_eq!(grown.min(), Some(0));
}
