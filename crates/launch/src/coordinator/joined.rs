// SPDX-License-Identifier: Apache-2.0
//! With whom processes of the job are connected, of other jobs. Processes tell it; nothing but what people see depends
//! on it.

use super::open::Process;
use isthmus_wire::joined::{Group, Joined};
use isthmus_wire::question::{Kind, MAX_OPEN, Refusal, Said};
use std::collections::{BTreeMap, BTreeSet};

/// Most meetings that are kept, and most of one process.
const MOST: usize = 1024;
const MOST_EACH: usize = MAX_OPEN;

/// All meetings of the job.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    all: BTreeMap<[u8; 16], Met>,
}

#[derive(Debug)]
struct Met {
    own: BTreeSet<Process>,
    with: Vec<Group>,
}

impl Meetings {
    /// A process has met others.
    pub(super) fn meet(&mut self, by: Process, meeting: [u8; 16], with: Vec<Group>) -> Result<Said, Refusal> {
        let own = self.all.values().filter(|met| met.own.contains(&by)).count();
        if own >= MOST_EACH || self.all.len() >= MOST && !self.all.contains_key(&meeting) {
            return Err(Refusal::new(Kind::Unable, "more meetings than the launcher shows"));
        }
        let met = self.all.entry(meeting).or_insert_with(|| Met {
            own: BTreeSet::new(),
            with,
        });
        met.own.insert(by);
        Ok(Said::Done)
    }

    /// A process has left a meeting; with whom that was, if it was in it.
    pub(super) fn part(&mut self, by: Process, meeting: [u8; 16]) -> Vec<Group> {
        let met = self.all.get_mut(&meeting);
        let with = met.and_then(|met| met.own.remove(&by).then(|| met.with.clone()));
        self.all.retain(|_, met| !met.own.is_empty());
        with.unwrap_or_default()
    }

    /// Who is connected with whom, the first ranks first. `rank`: a process's number, `is_other`: a world is none of
    /// this job; its own ones are seen as its sites.
    pub(super) fn shown(&self, rank: impl Fn(Process) -> u32, is_other: impl Fn(&[u8; 16]) -> bool) -> Vec<Joined> {
        let shown = self.all.values().map(|met| {
            let mut ranks: Vec<u32> = met.own.iter().map(|&process| rank(process)).collect();
            ranks.sort_unstable();
            let with = met.with.iter().filter(|group| is_other(&group.world));
            Joined {
                ranks,
                with: with.cloned().collect(),
            }
        });
        let mut shown: Vec<Joined> = shown.filter(|joined| !joined.with.is_empty()).collect();
        shown.sort_by(|a, b| a.ranks.cmp(&b.ranks));
        shown
    }

    /// A process has ended.
    pub(super) fn forget(&mut self, process: Process) {
        self.all.retain(|_, met| {
            met.own.remove(&process);
            !met.own.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meeting_is_kept_as_long_as_somebody_is_in_it() {
        let group = Group {
            world: [1; 16],
            job: "tank".into(),
            site: "lab".into(),
            host: "n1".into(),
            processes: 2,
        };
        let mut all = Meetings::default();
        for (by, meeting) in [((0, 0), 1), ((0, 1), 1), ((0, 1), 2)] {
            assert_eq!(all.meet(by, [meeting; 16], vec![group.clone()]), Ok(Said::Done));
        }
        assert_eq!(all.part((0, 0), [1; 16]), std::slice::from_ref(&group));
        assert!(all.part((0, 0), [9; 16]).is_empty());
        assert_eq!(all.all.len(), 2);
        let shown = all.shown(|(_, index)| index, |_| true);
        assert_eq!(shown.len(), 2);
        assert_eq!((&shown[0].ranks, &shown[0].with), (&vec![1], &vec![group.clone()]));
        assert!(all.shown(|_| 0, |_| false).is_empty(), "worlds of the job itself");
        all.forget((0, 1));
        assert!(all.all.is_empty());
        // One process takes no more than its part of them, and all together no more than there are.
        for number in 0..2 * MOST as u32 {
            let mut meeting = [0; 16];
            meeting[..4].copy_from_slice(&number.to_le_bytes());
            let by = (0, number % 2 * (1 + number / 2 / MOST_EACH as u32));
            let kept = all.meet(by, meeting, Vec::new());
            let nth = number as usize / 2;
            let is_first = by.1 == 0 && nth < MOST_EACH;
            let is_others = by.1 > 0 && nth + MOST_EACH < MOST;
            assert_eq!(kept.is_ok(), is_first || is_others, "{number}");
        }
    }
}
