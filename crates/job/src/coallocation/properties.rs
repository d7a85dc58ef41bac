// SPDX-License-Identifier: Apache-2.0
//! Whatever happens in whatever order, nobody runs too early, nobody is forgotten, and the job ends.

use super::*;
use crate::model::tests::subjob;
use isthmus_wire::grid::Exit;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeSet;

const PROCESSES: u32 = 2;

#[derive(Clone, Debug)]
enum Happens {
    Staging(usize),
    Queued(usize),
    Started(usize),
    Arrived(usize, u32),
    Finished(usize, u32),
    Exited(usize, u32, Exit),
    Aborted(usize, u32),
    Failed(usize),
    Closed(usize),
    Answered(usize, usize),
    Interrupted,
    Added(usize),
    Apart(usize, u32, bool),
    Time(u64),
}

fn job() -> impl Strategy<Value = Vec<String>> {
    let start = select(vec!["", ",start=loose", ",start=none", ",world=own"]);
    let need = select(vec!["", ",need=required", ",need=interactive", ",need=optional"]);
    let timeout = select(vec!["", ",start_timeout=5s", ",start_timeout=60s"]);
    let substitutes = select(vec!["", ",substitute=x", ",substitute=x,substitute=y"]);
    let on_loss = select(vec!["", ",on_loss=go-on"]);
    let terms = (start, need, timeout, substitutes, on_loss);
    let terms = terms.prop_map(|(a, b, c, d, e)| format!("{a}{b}{c}{d}{e}"));
    vec(terms, 1..5)
}

fn happens() -> impl Strategy<Value = Happens> {
    let site = 0..8usize;
    let process = 0..PROCESSES;
    let exit = select(vec![Exit::Status(0), Exit::Status(0), Exit::Status(3), Exit::Signal(9)]);
    prop_oneof![
        1 => site.clone().prop_map(Happens::Staging),
        2 => site.clone().prop_map(Happens::Queued),
        6 => site.clone().prop_map(Happens::Started),
        20 => (site.clone(), process.clone()).prop_map(|(s, p)| Happens::Arrived(s, p)),
        6 => (site.clone(), process.clone()).prop_map(|(s, p)| Happens::Finished(s, p)),
        4 => (site.clone(), process.clone(), exit).prop_map(|(s, p, e)| Happens::Exited(s, p, e)),
        1 => (site.clone(), process.clone()).prop_map(|(s, p)| Happens::Aborted(s, p)),
        6 => (site.clone(), process, any::<bool>()).prop_map(|(s, p, apart)| Happens::Apart(s, p, apart)),
        2 => site.clone().prop_map(Happens::Failed),
        2 => site.clone().prop_map(Happens::Closed),
        2 => (site, 0..4usize).prop_map(|(s, a)| Happens::Answered(s, a)),
        1 => Just(Happens::Interrupted),
        2 => (1..3usize).prop_map(Happens::Added),
        4 => (0..40u64).prop_map(Happens::Time),
    ]
}

/// The machine, and what is known of it from outside.
struct Trial {
    machine: Coallocation,
    sites: usize,
    /// Those of them that were there from the beginning.
    planned: usize,
    now: Duration,
    /// Who is in MPI_Init or was.
    here: BTreeSet<(usize, u32)>,
    begun: BTreeSet<usize>,
    dropped: BTreeSet<usize>,
    /// Who the job goes on without.
    lost: BTreeSet<(usize, u32)>,
    /// Deaths that were told.
    deaths: u32,
    ended: bool,
}

impl Trial {
    fn new(terms: &[String], answers: bool) -> Self {
        let subjobs = terms.iter().enumerate().map(|(number, terms)| {
            let mut subjob = subjob(&format!("s{number}"), PROCESSES);
            if !terms.is_empty() {
                subjob.requests = crate::forms::sites::SiteSpec::parse(&format!("s{number}{terms}"))
                    .unwrap()
                    .requests;
            }
            subjob
        });
        let watch = Watch {
            patience: Duration::from_secs(100),
            limit: None,
            answers,
        };
        Self {
            machine: Coallocation::new(&Job::new(subjobs.collect()).unwrap(), watch),
            sites: terms.len(),
            planned: terms.len(),
            now: Duration::ZERO,
            here: BTreeSet::new(),
            begun: BTreeSet::new(),
            dropped: BTreeSet::new(),
            lost: BTreeSet::new(),
            deaths: 0,
            ended: false,
        }
    }

    fn step(&mut self, what: &Happens) {
        let (m, now) = (&mut self.machine, self.now);
        let at = |site: usize| site % self.sites;
        match what {
            Happens::Staging(s) => m.handle_staging(at(*s), now),
            Happens::Queued(s) => m.handle_queued(at(*s), now),
            Happens::Started(s) => m.handle_started(at(*s), now),
            Happens::Arrived(s, p) => {
                if m.handle_arrived(at(*s), *p, now) {
                    self.here.insert((at(*s), *p));
                }
            }
            Happens::Finished(s, p) => drop(m.handle_finished(at(*s), *p)),
            Happens::Exited(s, p, exit) => m.handle_exited(at(*s), *p, *exit, now),
            Happens::Aborted(s, p) => m.handle_aborted(at(*s), *p, 7, "", now),
            Happens::Failed(s) => m.handle_site_failed(at(*s), "it failed", "", now),
            Happens::Closed(s) => m.handle_closed(at(*s), "it is lost", "", now),
            Happens::Answered(s, a) => {
                let place = Substitute::parse("elsewhere").unwrap();
                let answers = [Answer::Drop, Answer::Substitute(place), Answer::Retry, Answer::Abort];
                let _ = m.answer(at(*s), answers[*a].clone(), now);
            }
            Happens::Interrupted => m.handle_interrupt("", 2, now),
            Happens::Added(count) => {
                let names = (self.sites..)
                    .take(*count)
                    .map(|number| subjob(&format!("s{number}"), PROCESSES));
                if let Some(numbers) = add(m, &names.collect::<Vec<_>>(), now) {
                    assert!((self.sites..).take(*count).eq(numbers), "numbers go on");
                    self.sites += count;
                }
            }
            Happens::Apart(s, p, apart) => set_apart(m, at(*s), *p, *apart),
            Happens::Time(seconds) => {
                self.now += Duration::from_secs(*seconds);
                m.handle_time(self.now);
            }
        }
        self.check();
    }

    /// Takes the actions, and holds them against what is known.
    fn check(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Commit(world) => {
                    assert!(!self.ended, "a barrier opens in a job that ends");
                    for &site in &world {
                        assert!(self.begun.insert(site), "s{site} begins twice");
                        assert!(!self.dropped.contains(&site), "s{site} was dropped");
                        let all = (0..PROCESSES).all(|p| self.here.contains(&(site, p)));
                        assert!(all, "s{site} begins without all of its processes");
                    }
                    let numbers: Vec<u32> = self.machine.subjobs().first_numbers().collect();
                    if world.len() > 1 && world[0] < self.planned {
                        let firsts: Vec<u32> = world.iter().map(|&site| numbers[site]).collect();
                        let ranks: Vec<u32> = (0..).step_by(PROCESSES as usize).take(world.len()).collect();
                        assert_eq!(firsts, ranks, "numbers in the world of the job are ranks");
                    }
                }
                Action::NotStarted { sites, .. } => {
                    for site in sites {
                        assert!(!self.begun.contains(&site) && site >= self.planned);
                        assert!(self.dropped.insert(site), "s{site} fails twice");
                    }
                }
                Action::Retire(world) => assert!(world.iter().all(|site| self.begun.contains(site))),
                Action::Dismiss(world) => assert!(world.iter().all(|site| self.begun.contains(site))),
                Action::Drop { site, .. } => assert!(self.dropped.insert(site), "s{site} is dropped twice"),
                Action::Substitute { site, .. } => {
                    assert!(!self.begun.contains(&site) && !self.dropped.contains(&site));
                    self.here.retain(|(other, _)| *other != site);
                }
                Action::Abort { .. } | Action::Leave => self.ended = true,
                Action::Lost { site, indices, .. } => {
                    assert!(self.begun.contains(&site) && !indices.is_empty() && !self.ended);
                    for index in indices {
                        assert!(self.lost.insert((site, index)), "s{site} loses {index} twice");
                    }
                }
                Action::Gone {
                    sites,
                    first,
                    count,
                    number,
                    ..
                } => {
                    assert_eq!(number, self.deaths, "numbers are in the order of the decisions");
                    self.deaths += count;
                    assert!(
                        sites.iter().all(|site| self.begun.contains(site)),
                        "only a world hears of it"
                    );
                    assert!(count > 0 && first + count <= PROCESSES * self.begun.len() as u32);
                }
                Action::Ask { .. } | Action::Settled { .. } | Action::Signal(_) => {}
            }
        }
    }
}

proptest! {
    #[test]
    fn nobody_begins_too_early_and_all_ends(
        terms in job(),
        answers in any::<bool>(),
        story in vec(happens(), 0..80),
    ) {
        let mut trial = Trial::new(&terms, answers);
        for what in &story {
            trial.step(what);
        }
        // Whatever state that is: told to end twice, the job is over after a bounded time.
        trial.step(&Happens::Interrupted);
        trial.step(&Happens::Interrupted);
        for _ in 0..3 {
            if let Some(deadline) = trial.machine.deadline() {
                trial.now = trial.now.max(deadline);
                trial.machine.handle_time(trial.now);
                trial.check();
            }
        }
        prop_assert!(trial.machine.is_over());
        prop_assert!(trial.machine.verdict().status != 0 || trial.ended);
    }

    /// A deadline that has passed is dealt with: the clock alone cannot spin.
    #[test]
    fn deadlines_move(terms in job(), story in vec(happens(), 0..40)) {
        let mut trial = Trial::new(&terms, false);
        for what in &story {
            trial.step(what);
        }
        for _ in 0..64 {
            let Some(deadline) = trial.machine.deadline() else { return Ok(()) };
            trial.now = trial.now.max(deadline);
            trial.machine.handle_time(trial.now);
            trial.check();
            if trial.machine.deadline().is_some_and(|next| next <= trial.now) {
                prop_assert!(false, "the same deadline again: {:?}", trial.machine);
            }
        }
        prop_assert!(trial.machine.deadline().is_none(), "no end: {:?}", trial.machine);
    }
}
