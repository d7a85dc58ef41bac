// SPDX-License-Identifier: Apache-2.0
//! What is known of the subjobs beside their states, and what of it people have been told.

use crate::progress::{Progress, expected};
use isthmus_job::Subjob;
use isthmus_job::coallocation::{State, Subjobs};
use isthmus_job::numbering::Machine;
use isthmus_wire::control::Standing;
use isthmus_wire::grid::{Arrival, NodeProcesses};

/// What is known of a subjob.
struct SubjobStatus {
    machine: Machine,
    /// What there is to say of its state.
    detail: String,
    /// When a scheduler expects to start it, seconds since 1970.
    starts: Option<u64>,
    told: Option<Progress>,
    /// Since when its state has the word that people have been told, seconds since 1970.
    since: u64,
}

/// What is known of all of them.
pub(super) struct Board {
    known: Vec<SubjobStatus>,
}

impl Board {
    pub(super) fn new(subjobs: usize) -> Self {
        let known = |_| SubjobStatus {
            machine: Machine::unknown(),
            detail: String::new(),
            starts: None,
            told: None,
            since: 0,
        };
        Self {
            known: (0..subjobs).map(known).collect(),
        }
    }

    /// There are so many more.
    pub(super) fn add(&mut self, subjobs: usize) {
        let more = Self::new(subjobs);
        self.known.extend(more.known);
    }

    /// What there is to say of a subjob's state now.
    pub(super) fn say(&mut self, site: usize, detail: String) {
        self.known[site].detail = detail;
    }

    /// A subjob begins again: nothing is known of its processes.
    pub(super) fn begin_again(&mut self, site: usize, detail: String) {
        self.known[site].machine = Machine::unknown();
        self.known[site].detail = detail;
    }

    /// It waits in a queue as this job of its scheduler; `start`: when it is expected to begin, 0 where that is not
    /// known. Gives what is news. An estimate that moves is none: it is shown where the subjob stands.
    pub(super) fn queue(&mut self, site: usize, job: &str, why: &str, start: u64) -> Option<String> {
        let detail = match why {
            "" => job.to_owned(),
            why => format!("{job}, {why}"),
        };
        let known = &mut self.known[site];
        known.starts = Some(start).filter(|start| *start > 0);
        let is_new = std::mem::replace(&mut known.detail, detail.clone()) != detail;
        let waits = || format!("{job} waits in the queue ({why})");
        (is_new && !why.is_empty()).then(|| expected(&waits(), known.starts, crate::now()))
    }

    /// Its processes run, in these parts.
    pub(super) fn start(&mut self, site: usize, parts: Vec<NodeProcesses>) {
        self.known[site].machine.parts = parts;
    }

    pub(super) fn has_started(&self, site: usize) -> bool {
        !self.known[site].machine.parts.is_empty()
    }

    /// A process is in MPI_Init.
    pub(super) fn arrive(&mut self, site: usize, arrival: Arrival) {
        self.known[site].machine.arrivals.push(arrival);
    }

    /// The last one that arrived cannot be.
    pub(super) fn take_back_arrival(&mut self, site: usize) {
        self.known[site].machine.arrivals.pop();
    }

    /// What is known of the processes of subjobs that begin.
    pub(super) fn take_machines(&mut self, sites: &[usize]) -> Vec<Machine> {
        let take = |site: &usize| std::mem::replace(&mut self.known[*site].machine, Machine::unknown());
        sites.iter().map(take).collect()
    }

    /// Where all stand, for people.
    pub(super) fn progress(&self, subjobs: &Subjobs) -> Vec<Progress> {
        let states = subjobs.states().zip(subjobs.standings()).zip(&self.known);
        let shown = states.map(|(((site, state), (word, what)), known)| Progress {
            site: site.to_owned(),
            state,
            word,
            detail: match state {
                _ if !what.is_empty() => what,
                State::Starting | State::Suspended | State::Connecting | State::Staging | State::Fetching => {
                    known.detail.clone()
                }
                _ => String::new(),
            },
            starts: known.starts.filter(|_| state == State::Starting),
        });
        shown.collect()
    }

    /// Since when a subjob is in the state that people have been told, seconds since 1970.
    pub(super) fn since(&self, site: usize) -> u64 {
        self.known[site].since
    }

    /// Of these the ones that differ from what has been told; they count as told from here on.
    pub(super) fn changes<'a>(&mut self, progress: &'a [Progress]) -> Vec<&'a Progress> {
        let mut changed = Vec::new();
        for (known, now) in self.known.iter_mut().zip(progress) {
            let same =
                |told: &Progress| (&told.word, &told.detail, told.starts) == (&now.word, &now.detail, now.starts);
            if !known.told.as_ref().is_some_and(same) {
                if known.told.as_ref().is_none_or(|told| told.word != now.word) {
                    known.since = crate::now();
                }
                known.told = Some(now.clone());
                changed.push(now);
            }
        }
        changed
    }
}

/// Where a subjob stands, for another command. Where there is nothing else to say, it is said which programs it runs.
/// `since`: since when it is in this state, seconds since 1970.
pub(super) fn standing(progress: Progress, subjob: &Subjob, since: u64) -> Standing {
    let programs = || {
        let programs = subjob
            .sections()
            .map(|(s, count)| format!("{} {count}", s.program.name()));
        programs.collect::<Vec<_>>().join(", ")
    };
    Standing {
        name: progress.site,
        state: progress.word,
        detail: match progress.detail {
            detail if detail.is_empty() && subjob.sections.len() > 1 => programs(),
            detail => detail,
        },
        processes: subjob.count,
        starts: progress.starts.unwrap_or(0),
        since,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_job::coallocation::{Coallocation, Watch};
    use isthmus_job::{Program, sites};
    use std::time::Duration;

    fn machine() -> Coallocation {
        let specs = ["home:2", "lab:3"].map(|s| sites::SiteSpec::parse(s).unwrap());
        let template = sites::template(Program::one("./x"), Vec::new());
        let watch = Watch {
            patience: Duration::from_secs(60),
            limit: None,
            answers: false,
        };
        Coallocation::new(&sites::job_of_sites(&specs, None, &template).unwrap(), watch)
    }

    #[test]
    fn what_was_told_is_told_again_when_it_has_changed() {
        let mut machine = machine();
        let mut board = Board::new(2);
        let news = |board: &mut Board, machine: &Coallocation| {
            let progress = board.progress(machine.subjobs());
            let changed = board.changes(&progress);
            changed.iter().map(|p| p.site.clone()).collect::<Vec<_>>()
        };
        assert_eq!(news(&mut board, &machine), ["home", "lab"]);
        assert!(news(&mut board, &machine).is_empty());
        machine.handle_staging(1, Duration::ZERO);
        assert_eq!(news(&mut board, &machine), ["lab"]);
        board.say(0, "1 of 3 files".to_owned());
        assert_eq!(news(&mut board, &machine), ["home"]);
    }

    #[test]
    fn a_job_in_a_queue_is_news_once_for_each_reason() {
        let mut board = Board::new(1);
        assert_eq!(board.queue(0, "Slurm job 7", "", 0), None);
        let first = board.queue(0, "Slurm job 7", "Priority", 0);
        assert_eq!(first.as_deref(), Some("Slurm job 7 waits in the queue (Priority)"));
        assert_eq!(board.queue(0, "Slurm job 7", "Priority", 1_800_000_000), None);
        assert!(board.queue(0, "Slurm job 7", "Resources", 0).is_some());
    }
}
