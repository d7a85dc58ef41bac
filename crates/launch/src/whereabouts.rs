// SPDX-License-Identifier: Apache-2.0
//! What the processes of a job wait for, as they tell it.

use isthmus_wire::control::Whereabouts;
use isthmus_wire::waiting::{Condition, Process, Waiting};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct One {
    waiting: Option<(Waiting, Instant)>,
    condition: Condition,
    ended: bool,
}

/// What is known of all processes, by rank.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    all: BTreeMap<u32, One>,
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

    /// For how long all processes that have not ended have waited or been stopped; `None`: some have not.
    pub(crate) fn hanging(&self, processes: u32) -> Option<Duration> {
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

    /// Everything, for whoever asks. `sites`: name and number of processes of each subjob, in order of rank.
    pub(crate) fn tell<'a>(
        &self,
        sites: impl Iterator<Item = (&'a str, u32)>,
        cuts: Vec<(String, String)>,
    ) -> Whereabouts {
        let ranks = sites.flat_map(|(site, count)| (0..count).map(move |_| site));
        let process = |(rank, site): (u32, &str)| {
            let empty = One::default();
            let one = self.all.get(&rank).unwrap_or(&empty);
            let waiting = one.waiting.clone().map(|(mut waiting, at)| {
                waiting.idle += u64::try_from(at.elapsed().as_millis()).unwrap_or(0);
                waiting
            });
            Process {
                rank,
                site: site.to_owned(),
                pid: one.condition.pid,
                stopped: one.condition.stopped,
                swapped: one.condition.swapped,
                ended: one.ended,
                waiting,
            }
        };
        Whereabouts {
            processes: (0u32..).zip(ranks).map(process).collect(),
            cuts,
        }
    }
}
