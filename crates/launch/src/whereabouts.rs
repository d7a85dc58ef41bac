// SPDX-License-Identifier: Apache-2.0
//! What the processes of a job wait for, as they tell it.

use crate::hang;
use isthmus_job::Subjob;
use isthmus_wire::control::{Lost, Whereabouts};
use isthmus_wire::waiting::{Condition, Item, Kind, Process, Waiting};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Calls that wait for processes of other jobs.
const OUTSIDE: [&str; 3] = ["MPI_Comm_accept", "MPI_Comm_connect", "MPI_Comm_join"];

#[derive(Debug, Default)]
struct One {
    waiting: Option<(Waiting, Instant)>,
    condition: Condition,
    ended: bool,
    /// Why the job goes on without it; empty: it does not.
    lost: Arc<str>,
    /// It is in MPI_Finalize.
    finished: bool,
}

/// Processes that wait for others which will not say anything any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stranded {
    /// Ranks in MPI_Finalize.
    pub(crate) finished: Vec<u32>,
    /// Ranks that wait, and in which call the first one does.
    pub(crate) waiting: Vec<u32>,
    pub(crate) call: String,
}

/// What is known of all processes, by rank.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    all: BTreeMap<u32, One>,
    /// A hang has been told of, and nothing has moved since.
    hangs: bool,
}

impl Stranded {
    /// What is wrong, for people.
    pub(crate) fn problem(&self) -> String {
        let (gone, left) = (hang::named(&self.finished), hang::named(&self.waiting));
        let call = match self.call.as_str() {
            "" => "MPI",
            call => call,
        };
        format!("{left} will wait in {call} for ever: {gone} called MPI_Finalize, or ended, without taking part")
    }
}

impl Waits {
    /// A process waits for this, or not any more.
    pub(crate) fn take(&mut self, rank: u32, waiting: Option<Waiting>) {
        self.all.entry(rank).or_default().waiting = waiting.map(|w| (w, Instant::now()));
    }

    /// The system treats it so.
    pub(crate) fn treat(&mut self, rank: u32, condition: Condition) {
        self.all.entry(rank).or_default().condition = condition;
    }

    /// It has ended.
    pub(crate) fn end(&mut self, rank: u32) {
        let one = self.all.entry(rank).or_default();
        one.ended = true;
        one.waiting = None;
    }

    /// It has ended, and the job goes on without it: nobody waits for it.
    pub(crate) fn lose(&mut self, rank: u32, why: &Arc<str>) {
        self.end(rank);
        self.all.entry(rank).or_default().lost = why.clone();
    }

    /// It is in MPI_Finalize.
    pub(crate) fn finish(&mut self, rank: u32) {
        self.all.entry(rank).or_default().finished = true;
    }

    /// When some processes are in MPI_Finalize or have ended, all others have waited for so long without anything
    /// coming, and one of them in a collective operation or for one of those: who is in MPI_Finalize sends nothing
    /// more, so they wait for ever. Data that is on its way, and who may come from outside, is waited for.
    pub(crate) fn stranded(&self, processes: u32, limit: Duration) -> Option<Stranded> {
        let over = |rank: u32| self.all.get(&rank).is_some_and(|one| one.ended || one.finished);
        let lost = |rank: u32| self.all.get(&rank).is_some_and(|one| !one.lost.is_empty());
        let finished: Vec<u32> = (0..processes).filter(|rank| over(*rank) && !lost(*rank)).collect();
        if finished.is_empty() {
            return None;
        }
        let (mut waiting, mut call) = (Vec::new(), None);
        for rank in (0..processes).filter(|rank| !over(*rank)) {
            let one = self.all.get(&rank).filter(|one| !one.condition.stopped)?;
            let (what, at) = one.waiting.as_ref()?;
            let moving = |item: &Item| matches!(item.kind, Kind::Incoming | Kind::Outgoing);
            let idle = Duration::from_millis(what.idle) + at.elapsed();
            if idle < limit || what.items.iter().any(moving) || OUTSIDE.contains(&what.call.as_str()) {
                return None;
            }
            let in_vain = |item: &Item| {
                item.kind == Kind::Collective || item.kind != Kind::Unexpected && over(item.peer) && !lost(item.peer)
            };
            if call.is_none() && what.items.iter().any(in_vain) {
                call = Some(what.call.clone());
            }
            waiting.push(rank);
        }
        Some(Stranded {
            finished,
            waiting,
            call: call?,
        })
    }

    /// Whether all processes have only waited for so long; true once, until something moves again.
    pub(crate) fn begin_to_hang(&mut self, processes: u32, limit: Duration) -> bool {
        let hangs = self.hanging(processes).is_some_and(|time| time >= limit);
        let before = std::mem::replace(&mut self.hangs, hangs);
        hangs && !before
    }

    /// For how long all processes that have not ended have waited or been stopped; `None`: some have not.
    fn hanging(&self, processes: u32) -> Option<Duration> {
        let mut least = None;
        for rank in 0..processes {
            let one = self.all.get(&rank)?;
            if one.ended || one.condition.stopped {
                continue;
            }
            let (waiting, at) = one.waiting.as_ref()?;
            let time = Duration::from_millis(waiting.idle) + at.elapsed();
            least = Some(least.map_or(time, |l: Duration| l.min(time)));
        }
        least
    }

    /// Everything, for whoever asks. `subjobs` in order of rank; `unheard`: by subjob, for how many seconds nothing has
    /// been heard of it.
    pub(crate) fn tell(&self, subjobs: &[Subjob], cuts: Vec<(String, String)>, unheard: &[u32]) -> Whereabouts {
        let all = subjobs.iter().zip(unheard.iter().copied().chain(std::iter::repeat(0)));
        let ranks = all.flat_map(|(s, unheard)| {
            let named = s.sections().map(|(section, count)| (section.program.name(), count));
            named.flat_map(move |(program, count)| (0..count).map(move |_| (s.site.as_str(), program, unheard)))
        });
        let process = |(rank, (site, program, unheard)): (u32, (&str, &str, u32))| {
            let empty = One::default();
            let one = self.all.get(&rank).unwrap_or(&empty);
            let waiting = one.waiting.clone().map(|(mut waiting, at)| {
                waiting.idle += u64::try_from(at.elapsed().as_millis()).unwrap_or(0);
                waiting
            });
            Process {
                rank,
                site: site.to_owned(),
                program: program.to_owned(),
                pid: one.condition.pid,
                stopped: one.condition.stopped,
                swapped: one.condition.swapped,
                ended: one.ended,
                lost: one.lost.to_string(),
                unheard,
                unstarted: String::new(),
                waiting,
            }
        };
        Whereabouts {
            processes: (0u32..).zip(ranks).map(process).collect(),
            cuts,
            joined: Vec::new(),
        }
    }

    /// Processes that the job goes on without. `subjobs` in order of rank.
    pub(crate) fn lost(&self, subjobs: &[Subjob]) -> Vec<Lost> {
        let site_of = |rank: u32| {
            let mut last = 0u32;
            let at = subjobs.iter().find(|subjob| {
                last = last.saturating_add(subjob.count);
                rank < last
            });
            at.map_or_else(String::new, |subjob| subjob.site.clone())
        };
        let lost = self.all.iter().filter(|(_, one)| !one.lost.is_empty());
        lost.map(|(&rank, one)| Lost {
            rank,
            site: site_of(rank),
            why: one.lost.to_string(),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(call: &str, idle: u64, kind: Kind, peer: u32) -> Option<Waiting> {
        let item = Item {
            kind,
            peer,
            ..Item::default()
        };
        Some(Waiting {
            call: call.to_owned(),
            idle,
            items: vec![item],
            more: 0,
        })
    }

    #[test]
    fn a_hang_begins_once_until_something_moves() {
        let limit = Duration::from_secs(10);
        let mut all = Waits::default();
        let barrier = |idle| waits("MPI_Barrier", idle, Kind::Collective, 0);
        all.take(0, barrier(20_000));
        assert!(!all.begin_to_hang(2, limit), "nothing is known of rank 1");
        all.take(1, barrier(20_000));
        assert!(all.begin_to_hang(2, limit) && !all.begin_to_hang(2, limit));
        all.take(1, None);
        assert!(!all.begin_to_hang(2, limit));
        all.take(1, barrier(20_000));
        assert!(all.begin_to_hang(2, limit));
    }

    #[test]
    fn who_is_lost_strands_nobody() {
        let limit = Duration::from_secs(10);
        let mut all = Waits::default();
        all.take(0, waits("MPI_Barrier", 20_000, Kind::Collective, 0));
        all.end(1);
        assert!(all.stranded(2, limit).is_some());
        all.lose(1, &Arc::from("rank 1 was killed by signal 9 (SIGKILL)"));
        let told = all.tell(&[], Vec::new(), &[]);
        assert!(told.processes.is_empty(), "there is no subjob");
        assert_eq!(all.stranded(2, limit), None, "its peers hear of it, and go on");
    }

    #[test]
    fn who_waits_for_finished_processes_is_stranded() {
        let limit = Duration::from_secs(10);
        let mut all = Waits::default();
        let barrier = |idle| waits("MPI_Barrier", idle, Kind::Collective, 0);
        all.take(0, barrier(20_000));
        all.take(1, barrier(20_000));
        assert_eq!(all.stranded(2, limit), None, "nobody is in MPI_Finalize");
        all.take(1, None);
        assert_eq!(all.stranded(2, limit), None, "rank 1 computes");
        all.finish(1);
        let stranded = |call: &str| Stranded {
            finished: vec![1],
            waiting: vec![0],
            call: call.to_owned(),
        };
        assert_eq!(all.stranded(2, limit), Some(stranded("MPI_Barrier")));
        assert_eq!(all.stranded(3, limit), None, "nothing is known of rank 2");
        all.take(0, waits("MPI_Recv", 20_000, Kind::Receive, 1));
        assert_eq!(all.stranded(2, limit), Some(stranded("MPI_Recv")));
        for (what, why) in [
            (waits("MPI_Recv", 20_000, Kind::Receive, 0), "another thread may send"),
            (waits("MPI_Recv", 20_000, Kind::Incoming, 1), "data are on their way"),
            (waits("MPI_Comm_accept", 20_000, Kind::Collective, 0), "others may come"),
            (barrier(1_000), "something has come lately"),
        ] {
            all.take(0, what);
            assert_eq!(all.stranded(2, limit), None, "{why}");
        }
        all.finish(0);
        assert_eq!(all.stranded(2, limit), None, "nobody waits");
    }
}
