// SPDX-License-Identifier: Apache-2.0
//! Where all subjobs stand: which of them are worlds, what number each process has, and who waits for whom.

use super::Verdict;
use super::site::{Process, Site, State};
use super::words::{limit_of, list_of_ranks, list_of_sites, signal_name};
use crate::model::{Job, Subjob};
use crate::terms::StartType;
use isthmus_wire::grid::Exit;
use isthmus_wire::word::counted;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// Subjobs whose processes are one MPI job.
#[derive(Debug)]
struct World {
    sites: Vec<usize>,
    /// Processes that have not finished.
    unfinished: usize,
}

/// The subjobs of a job.
#[derive(Debug)]
pub struct Subjobs {
    sites: Vec<Site>,
    worlds: Vec<World>,
    /// Which of them is that of the job.
    main: Option<usize>,
}

/// Processes of a world that hear that others of it are gone.
pub(super) struct Listeners {
    pub(super) sites: Vec<usize>,
    /// Rank in that world of the first one that is gone.
    pub(super) first: u32,
}

/// Subjobs that something is wrong with, and what.
pub(super) struct Finding {
    pub(super) sites: Vec<usize>,
    pub(super) problem: String,
}

/// Subjobs that have begun in other worlds than this one.
pub fn others(all: &Subjobs, site: usize) -> Vec<usize> {
    let own = all.sites.get(site).and_then(|s| s.world);
    all.those(|s| s.world.is_some() && s.world != own && !s.gone && !s.has_ended())
}

/// The subjobs that are a world with this one, if that was added and nobody of it is connected with others.
pub(super) fn world_apart(all: &Subjobs, site: usize) -> Option<Vec<usize>> {
    let sites = all.added_with(site);
    let apart = |&site: &usize| {
        let site = &all.sites[site];
        site.world.is_some() && site.connected.is_empty()
    };
    (!sites.is_empty() && sites.iter().all(apart)).then_some(sites)
}

/// The job goes on without a process, which was as `was`. The subjobs of its world if all others have finished.
pub(super) fn go_on_without(all: &mut Subjobs, site: usize, was: Process) -> Option<Vec<usize>> {
    let world = &mut all.worlds[all.sites[site].world?];
    if was != Process::Arrived {
        return None;
    }
    world.unfinished -= 1;
    (world.unfinished == 0).then(|| world.sites.clone())
}

/// Number of processes of subjobs that have begun.
pub(super) fn begun(all: &Subjobs) -> u32 {
    let begun = all.sites.iter().filter(|s| s.world.is_some());
    begun.map(Site::size).sum()
}

/// Whether what a process does still counts: it is between MPI_Init and MPI_Finalize, and its machine is heard.
pub fn takes_part(subjobs: &Subjobs, site: usize, index: u32) -> bool {
    subjobs.is_inside(site, index) && !subjobs.sites[site].gone
}

/// The subjobs that are a world with this one, each with its number of processes, in the order of their ranks.
pub fn world_of(subjobs: &Subjobs, site: usize) -> Option<impl Iterator<Item = (usize, u32)> + '_> {
    let world = &subjobs.worlds[subjobs.sites.get(site)?.world?];
    Some(world.sites.iter().map(|&site| (site, subjobs.sites[site].size())))
}

impl Subjobs {
    /// Those of a job nothing of which has happened.
    pub(super) fn new(job: &Job) -> Self {
        let subjobs = job.subjobs().iter().zip(job.first_ranks());
        let mut all = Self {
            sites: subjobs.map(|(subjob, first)| Site::new(subjob, first)).collect(),
            worlds: Vec::new(),
            main: None,
        };
        let mut next = all.number();
        for site in all.sites.iter_mut().filter(|s| !s.terms.joins()) {
            site.first = next;
            next += site.size();
        }
        all
    }

    /// Where every subjob stands.
    pub fn states(&self) -> impl Iterator<Item = (&str, State)> {
        self.sites.iter().map(|s| (s.name.as_str(), s.shown_state()))
    }

    /// Where every subjob stands, in the words that all commands have: waiting in a queue, being ready for the others,
    /// and starting are told apart. With what there is to say of it.
    pub fn standings(&self) -> impl Iterator<Item = (String, String)> {
        let late = self.sites.iter().filter(|s| s.holds_barrier() && !s.is_complete());
        let late = list_of_sites(late.map(|s| s.name.as_str()));
        self.sites.iter().map(move |site| match site.shown_state() {
            State::Starting if site.is_queued() => ("queued".to_owned(), String::new()),
            State::Starting if site.is_complete() && !late.is_empty() => {
                ("ready".to_owned(), format!("waits for {late}"))
            }
            state if site.lost > 0 => {
                let first = if site.lost == 1 { "" } else { "the first loss: " };
                let all = counted(site.size(), "process");
                let detail = format!("{} of {all} lost: {first}{}", site.lost, site.first_loss);
                (state.to_string(), detail)
            }
            state => (state.to_string(), String::new()),
        })
    }

    /// Numbers of the first processes of the subjobs. Those of the job's own world come first, so that there a number
    /// is a rank. They change when a subjob is dropped before the barrier opens.
    pub fn first_numbers(&self) -> impl Iterator<Item = u32> {
        self.sites.iter().map(|s| s.first)
    }

    /// Number of a process: its rank, in the world of the job.
    pub fn number_of(&self, site: usize, index: u32) -> u32 {
        let first = self.sites.get(site).map_or(0, |s| s.first);
        first.saturating_add(index)
    }

    /// Whether the subjob was added while the job ran, and is over.
    pub fn is_retired(&self, site: usize) -> bool {
        self.sites
            .get(site)
            .is_some_and(|s| s.added.is_some() && (s.retired || s.dropped))
    }

    /// Name of a process for people.
    pub fn who(&self, site: usize, index: u32) -> String {
        let s = &self.sites[site];
        if self.is_in_main(s) {
            let (rank, program) = (s.first.saturating_add(index), s.program_of(index));
            format!("rank {rank} ({program}site '{}')", s.name)
        } else {
            format!("rank {index} of site '{}'", s.name)
        }
    }

    /// Whether a sentence begins as the library of this process says who it is: "rank 3 (lab on n1): ".
    pub(super) fn is_word_of(&self, site: usize, index: u32, sentence: &str) -> bool {
        let s = &self.sites[site];
        let first = if self.is_in_main(s) { s.first } else { 0 };
        let own = format!("rank {} ({} on ", first.saturating_add(index), s.name);
        sentence.starts_with(&own)
    }

    /// Whether a process has ended, or there is none.
    pub fn has_ended(&self, site: usize, index: u32) -> bool {
        let process = self.sites.get(site).and_then(|s| s.processes.get(index as usize));
        process.is_none_or(|process| *process == Process::Ended)
    }

    /// Whether a process is between MPI_Init and MPI_Finalize.
    pub fn is_inside(&self, site: usize, index: u32) -> bool {
        let site = self.sites.get(site).filter(|s| s.is_live() && s.world.is_some());
        site.and_then(|s| s.processes.get(index as usize)) == Some(&Process::Arrived)
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Site> {
        self.sites.iter()
    }

    /// One of them, whose number is right.
    pub(super) fn site(&self, site: usize) -> &Site {
        &self.sites[site]
    }

    /// One of them, whose number is right.
    pub(super) fn site_mut(&mut self, site: usize) -> &mut Site {
        &mut self.sites[site]
    }

    pub(super) fn get(&self, site: usize) -> Option<&Site> {
        self.sites.get(site)
    }

    pub(super) fn those(&self, wanted: impl Fn(&Site) -> bool) -> Vec<usize> {
        let all = self.sites.iter().enumerate();
        all.filter(|(_, s)| wanted(s)).map(|(number, _)| number).collect()
    }

    /// What subjobs gave back is here.
    pub(super) fn stage_out(&mut self) {
        let sites = self.sites.iter_mut().filter(|s| s.state == State::Fetching);
        sites.for_each(|s| s.advance(State::Done));
    }

    /// Lets these begin as the world of the job.
    pub(super) fn begin_main(&mut self, sites: &[usize]) {
        self.main = Some(self.worlds.len());
        self.begin(sites);
        self.number();
    }

    /// Lets these begin as a world.
    pub(super) fn begin(&mut self, sites: &[usize]) {
        let number = self.worlds.len();
        let mut unfinished = 0;
        for &site in sites {
            let released = &mut self.sites[site];
            released.world = Some(number);
            released.advance(State::Running);
            unfinished += released.processes.len();
        }
        self.worlds.push(World {
            sites: sites.to_vec(),
            unfinished,
        });
    }

    /// Adds some, which will begin together. Their numbers.
    pub(super) fn add(&mut self, subjobs: &[Subjob]) -> Vec<usize> {
        let group = self
            .sites
            .iter()
            .filter_map(|s| s.added)
            .max()
            .map_or(0, |last| last + 1);
        let first = self.sites.len();
        for subjob in subjobs {
            let next = self.sites.iter().map(|s| s.first.saturating_add(s.size())).max();
            let mut site = Site::new(subjob, next.unwrap_or(0));
            site.added = Some(group);
            self.sites.push(site);
        }
        (first..self.sites.len()).collect()
    }

    /// All that were added with this one, itself too; none if it was not added.
    pub(super) fn added_with(&self, site: usize) -> Vec<usize> {
        match self.sites[site].added {
            Some(group) => self.those(|s| s.added == Some(group)),
            None => Vec::new(),
        }
    }

    /// Those that were added and can begin.
    pub(super) fn added_and_complete(&self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, site) in self.sites.iter().enumerate().filter(|(_, s)| s.is_awaited_later()) {
            groups.entry(site.added.unwrap_or_default()).or_default().push(number);
        }
        let complete = |group: &Vec<usize>| group.iter().all(|&site| self.sites[site].is_complete());
        groups.into_values().filter(complete).collect()
    }

    /// A process has finished its communication. The subjobs of its world if it was the last one; `None`: it cannot
    /// have.
    pub(super) fn finish(&mut self, site: usize, index: u32) -> Option<Option<Vec<usize>>> {
        let finished = &mut self.sites[site];
        let number = finished.world?;
        finished.replace(index, Process::Arrived, Process::Finished)?;
        let world = &mut self.worlds[number];
        world.unfinished -= 1;
        Some((world.unfinished == 0).then(|| world.sites.clone()))
    }

    /// Whether there are worlds, all processes of which have finished.
    pub(super) fn have_finished(&self) -> bool {
        !self.worlds.is_empty() && self.worlds.iter().all(|w| w.unfinished == 0)
    }

    /// Whether it has begun, in a world of its own.
    pub(super) fn runs_apart(&self, site: usize) -> bool {
        self.sites[site].world.is_some_and(|world| self.main != Some(world))
    }

    /// Numbers the processes again after a subjob was dropped, unless its numbers are ranks already.
    pub(super) fn close_ranks(&mut self) {
        if self.main.is_none() {
            self.number();
        }
    }

    /// Numbers the processes of subjobs that may be in the world of the job, those first that are. The others keep the
    /// numbers behind all of them. Says what the next number is.
    fn number(&mut self) -> u32 {
        let mut order = self.those(|s| s.is_live() && s.added.is_none() && s.terms.joins());
        order.sort_by_key(|&site| !self.is_in_main(&self.sites[site]));
        let mut next = 0;
        for site in order {
            self.sites[site].first = next;
            next += self.sites[site].size();
        }
        next
    }

    /// Whether its processes are in the world of the job, or will be if they are there in time.
    fn is_in_main(&self, site: &Site) -> bool {
        site.terms.joins()
            && site.added.is_none()
            && match site.world {
                Some(world) => self.main == Some(world),
                None => self.main.is_none(),
            }
    }

    /// Who has to hear that these processes of a subjob are gone.
    pub(super) fn listeners(&self, site: usize, gone: &Range<u32>) -> Option<Listeners> {
        let world = self.sites[site].world.filter(|_| self.sites[site].is_live());
        let world = &self.worlds[world?];
        let whole = gone.len() == self.sites[site].size() as usize;
        let hears = |other: usize| !(self.sites[other].gone || whole && other == site);
        let sites: Vec<usize> = world.sites.iter().copied().filter(|&other| hears(other)).collect();
        // Its ranks are numbered subjob by subjob.
        let before = world.sites.iter().take_while(|&&other| other != site);
        let first: u32 = before.map(|&other| self.sites[other].size()).sum();
        let others = self.worlds.len() > 1;
        (others || !sites.is_empty()).then(|| Listeners {
            sites,
            first: first + gone.start,
        })
    }

    /// What it means that a process ended so.
    pub(super) fn judge_exit(&self, site: usize, index: u32, was: Process, exit: Exit) -> Option<Verdict> {
        let who = self.who(site, index);
        let (status, problem) = match exit {
            Exit::Status(0) if was == Process::Arrived => {
                (1, format!("{who} exited with status 0 without calling MPI_Finalize"))
            }
            Exit::Status(0) => return None,
            Exit::Status(status) => (exit.shell_status(), format!("{who} exited with status {status}")),
            Exit::Signal(signal) => (
                exit.shell_status(),
                format!("{who} was killed by signal {signal}{}", signal_name(signal)),
            ),
        };
        Some(Verdict {
            status,
            problem: Some(problem),
            hint: limit_of(exit).to_owned(),
            late: false,
        })
    }

    /// When the first of them has to be there.
    pub(super) fn first_due(&self) -> Option<Duration> {
        self.sites.iter().filter_map(|s| due(self, s)).min()
    }

    /// Subjobs that are not there in time.
    pub(super) fn overdue(&self, now: Duration) -> Vec<usize> {
        self.those(|s| due(self, s).is_some_and(|due| due <= now))
    }

    /// Whether processes wait in MPI_Init.
    pub(super) fn somebody_waits(&self) -> bool {
        let waits = |s: &Site| s.is_live() && s.world.is_none() && s.arrived > 0;
        self.sites.iter().any(waits)
    }

    /// Whether a site is not there yet, or some wait in MPI_Init for others.
    pub(super) fn waits_for_someone(&self) -> bool {
        let awaited = |s: &&Site| s.is_live() && !s.gone && s.world.is_none() && s.asked.is_none();
        let mut all = self.sites.iter().filter(awaited);
        let arriving = |s: &Site| matches!(s.state, State::Connecting | State::Staging);
        let asked = self.sites.iter().any(|s| s.asked.is_some());
        let queued = all.clone().any(Site::is_queued);
        !queued && !asked && (self.somebody_waits() || all.any(arriving))
    }

    /// Those that are waited for, and how far they are.
    pub(super) fn missing(&self) -> Finding {
        let awaited = |s: &Site| s.is_live() && !s.gone && s.world.is_none();
        let reaching = |s: &Site| awaited(s) && matches!(s.state, State::Connecting | State::Staging);
        let mut late = self.those(reaching);
        if late.is_empty() {
            late = self.those(|s| awaited(s) && s.arrived < s.processes.len());
        }
        let stands = |site: &Site| match site.state {
            State::Connecting => Some(format!("site '{}' (not reached)", site.name)),
            State::Staging => Some(format!("site '{}' (staging)", site.name)),
            _ => None,
        };
        let mut missing: Vec<String> = late.iter().filter_map(|&site| stands(&self.sites[site])).collect();
        if missing.is_empty() {
            missing.push(format!(
                "{} (not in MPI_Init)",
                ranks_in(self, Process::Expected, &late)
            ));
        }
        missing.truncate(8);
        Finding {
            sites: late,
            problem: missing.join(", "),
        }
    }

    /// Some wait in MPI_Init for others that have ended without it: they would wait for ever. `gathering`: the barrier
    /// of the job is not open yet.
    pub(super) fn hopeless(&self, gathering: bool) -> Option<Finding> {
        let together = self.those(|s| gathering && s.holds_barrier() && s.world.is_none());
        let alone =
            |s: &Site| s.is_live() && s.added.is_none() && s.world.is_none() && s.terms.start != StartType::Strict;
        let alone = self.those(alone).into_iter().map(|site| vec![site]);
        let hopeless = |group: &Vec<usize>| {
            let any = |count: fn(&Site) -> usize| group.iter().any(|&site| count(&self.sites[site]) > 0);
            any(|s| s.arrived) && any(|s| s.ended)
        };
        let sites = std::iter::once(together).chain(alone).find(hopeless)?;
        let ended = ranks_in(self, Process::Ended, &sites);
        let waiting = ranks_in(self, Process::Arrived, &sites);
        let problem =
            format!("{ended} ended without calling MPI_Init, in which {waiting} of the job would wait for ever");
        Some(Finding { sites, problem })
    }
}

/// Until when a subjob with a time-out has to be there.
fn due(all: &Subjobs, site: &Site) -> Option<Duration> {
    let awaited = site.is_live() && site.world.is_none() && site.asked.is_none() && !site.has_ended();
    let late = !site.has_begun() || (site.arrived < site.processes.len() && all.somebody_waits());
    let timeout = site.terms.timeout.filter(|_| awaited && late)?;
    Some(site.since + timeout)
}

/// The ranks of processes of these subjobs that are so.
fn ranks_in(all: &Subjobs, state: Process, sites: &[usize]) -> String {
    let sites = sites.iter().map(|&site| &all.sites[site]);
    let ranks: Vec<u32> = sites
        .flat_map(|s| s.indices(state).map(|index| s.first + index))
        .collect();
    list_of_ranks(&ranks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::subjob;

    fn three() -> Subjobs {
        let subjobs = [("a", 2), ("b", 3), ("c", 1)].map(|(name, count)| subjob(name, count));
        Subjobs::new(&Job::new(subjobs.to_vec()).unwrap())
    }

    fn arrive(all: &mut Subjobs, site: usize) {
        all.sites[site].processes.fill(Process::Arrived);
        all.sites[site].arrived = all.sites[site].processes.len();
    }

    #[test]
    fn numbers_close_up_behind_a_dropped_subjob_until_they_are_ranks() {
        let mut all = three();
        all.sites[0].dropped = true;
        all.close_ranks();
        assert_eq!(all.first_numbers().collect::<Vec<_>>(), [0, 0, 3]);
        all.begin_main(&[1, 2]);
        assert_eq!(
            (all.who(1, 2), all.who(2, 0)),
            ("rank 2 (site 'b')".to_owned(), "rank 3 (site 'c')".to_owned())
        );
        all.sites[1].dropped = true;
        all.close_ranks();
        assert_eq!(all.sites[2].first, 3);
    }

    #[test]
    fn the_rest_of_a_world_hears_which_ranks_are_gone() {
        let mut all = three();
        assert!(all.listeners(1, &(0..1)).is_none(), "nobody has begun");
        all.begin_main(&[0, 1]);
        all.begin(&[2]);
        let heard = |site, gone| all.listeners(site, &gone).map(|l| (l.sites, l.first));
        assert_eq!(heard(1, 1..2), Some((vec![0, 1], 3)));
        assert_eq!(heard(1, 0..3), Some((vec![0], 2)), "not those that are all gone");
        assert_eq!(heard(2, 0..1), Some((vec![], 0)), "other worlds");
        assert_eq!(others(&all, 2), [0, 1]);
        assert!(all.runs_apart(2) && !all.runs_apart(1));
    }

    #[test]
    fn the_last_process_of_a_world_finishes_it() {
        let mut all = three();
        arrive(&mut all, 2);
        assert_eq!(
            (all.finish(2, 0), all.have_finished()),
            (None, false),
            "it has not begun"
        );
        all.begin(&[2]);
        assert_eq!((all.finish(2, 0), all.have_finished()), (Some(Some(vec![2])), true));
        assert_eq!(all.finish(2, 0), None, "only once");
    }

    #[test]
    fn who_ended_without_the_others_is_told_apart_from_who_is_late() {
        let mut all = three();
        assert_eq!(
            all.missing().problem,
            "site 'a' (not reached), site 'b' (not reached), site 'c' (not reached)"
        );
        for site in &mut all.sites {
            site.advance(State::Starting);
        }
        arrive(&mut all, 0);
        assert!(all.hopeless(true).is_none());
        let missing = all.missing();
        assert_eq!(
            (missing.sites, missing.problem),
            (vec![1, 2], "ranks 2-5 (not in MPI_Init)".to_owned())
        );
        all.sites[1].processes[1] = Process::Ended;
        all.sites[1].ended = 1;
        let hopeless = all.hopeless(true).unwrap();
        assert_eq!(hopeless.sites, [0, 1, 2]);
        assert!(
            hopeless
                .problem
                .starts_with("rank 3 ended without calling MPI_Init, in which ranks 0-1 ")
        );
        assert!(all.hopeless(false).is_none(), "the barrier is open: nobody waits at it");
    }
}
