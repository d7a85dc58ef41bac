// SPDX-License-Identifier: Apache-2.0
use super::naming::Member;
use super::*;
use isthmus_wire::agreeing::{Agreed, Members, What, pieces};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

/// A generator with a seed: xorshift64*.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

fn which(round: u64) -> Which {
    Which {
        scope: [1; 16],
        context: 18,
        round,
    }
}

fn agree(round: u64, members: u32, flag: u32, known: Vec<u32>) -> Agree {
    Agree {
        what: What::Number,
        which: which(round),
        flag,
        contexts: [0; 3],
        worlds: vec![[1; 16]],
        members: vec![Members {
            world: 0,
            first: 0,
            count: members,
        }],
        known: pieces(known),
    }
}

/// A coordinator whose processes may fail, and what they were told.
struct Job {
    agreements: Agreements,
    members: Arc<[Member]>,
    failed: RefCell<HashSet<Process>>,
}

impl Job {
    fn new(members: u32) -> Self {
        Self {
            agreements: Agreements::default(),
            members: (0..members).map(|index| Some((0, index))).collect(),
            failed: RefCell::default(),
        }
    }

    fn ask(&mut self, by: u32, agree: Agree) -> Vec<Told> {
        let failed = self.failed.borrow();
        let question = agree.which.round;
        let named = Named {
            members: self.members.clone(),
            spans: false,
        };
        self.agreements
            .ask((0, by), question, agree, named, |process| !failed.contains(&process))
    }

    fn kill(&mut self, index: u32) -> Vec<Told> {
        self.failed.borrow_mut().insert((0, index));
        let failed = self.failed.borrow();
        self.agreements.look_again(|process| !failed.contains(&process))
    }
}

fn agreed(told: &Told) -> Agreed {
    match &told.2 {
        Ok(Said::Agreed(agreed)) => (**agreed).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_are_told_when_the_last_one_has_asked() {
    let mut job = Job::new(3);
    assert!(job.ask(0, agree(0, 3, 0b111, vec![])).is_empty());
    assert!(job.ask(2, agree(0, 3, 0b110, vec![])).is_empty());
    let told = job.ask(1, agree(0, 3, 0b011, vec![]));
    assert_eq!(
        told.iter().map(|told| told.0).collect::<Vec<_>>(),
        [(0, 0), (0, 1), (0, 2)]
    );
    assert!(told.iter().all(|told| agreed(told).flag == 0b010 && !agreed(told).news));
    assert!(job.agreements.open.is_empty(), "nothing is left of it");
}

#[test]
fn who_fails_before_while_and_after_it_has_asked_keeps_nobody() {
    let mut job = Job::new(4);
    job.kill(3);
    job.ask(0, agree(0, 4, !0, vec![]));
    job.ask(1, agree(0, 4, 0b1, vec![3]));
    // It has asked, and fails: what it said counts, and it is lost.
    assert!(job.kill(1).is_empty());
    let told = job.kill(2);
    assert_eq!(told.len(), 1);
    let all = agreed(&told[0]);
    assert_eq!((all.flag, all.lost, all.news), (0b1, vec![(1, 3)], true));
}

#[test]
fn a_loss_that_all_have_acknowledged_is_no_news() {
    let mut job = Job::new(3);
    job.kill(1);
    job.ask(0, agree(0, 3, !0, vec![1]));
    assert!(!agreed(&job.ask(2, agree(0, 3, !0, vec![1]))[0]).news);
    job.ask(0, agree(1, 3, !0, vec![1]));
    assert!(
        agreed(&job.ask(2, agree(1, 3, !0, vec![]))[1]).news,
        "one does not know it"
    );
}

#[test]
fn the_first_that_lives_names_the_contexts() {
    let mut job = Job::new(3);
    let shrink = |contexts| Agree {
        what: What::Members,
        contexts,
        ..agree(0, 3, !0, vec![])
    };
    job.ask(0, shrink([16, 0, 0]));
    job.ask(1, shrink([18, 0, 0]));
    job.kill(0);
    let told = job.ask(2, shrink([20, 0, 0]));
    assert!(told.iter().all(|told| agreed(told).contexts == [18, 0, 0]));
}

#[test]
fn a_hostile_member_is_refused_and_others_are_not_kept() {
    let mut job = Job::new(3);
    job.ask(0, agree(0, 3, !0, vec![]));
    let refused = |told: Vec<Told>, by: u32| {
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, (0, by));
        assert!(told[0].2.is_err());
    };
    refused(job.ask(0, agree(0, 3, 0, vec![])), 0);
    refused(job.ask(1, agree(0, 2, 0, vec![])), 1);
    refused(job.ask(7, agree(0, 3, 0, vec![])), 7);
    let other = Agree {
        what: What::Members,
        ..agree(0, 3, 0, vec![])
    };
    refused(job.ask(1, other), 1);
    job.ask(1, agree(0, 3, !0, vec![]));
    // Places that are not there are nobody's.
    let told = job.ask(2, agree(0, 3, !0, vec![0, 99]));
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|told| agreed(told).flag == u32::MAX));
}

#[test]
fn what_a_lost_launcher_has_answered_nobody_makes_up() {
    let mut job = Job::new(2);
    job.agreements.inherited = true;
    // Rank 1 has its answer, and goes on.
    assert!(job.ask(0, agree(4, 2, 1, vec![])).is_empty());
    let told = job.ask(1, agree(5, 2, 1, vec![]));
    assert_eq!((told.len(), told[0].0, told[0].1), (1, (0, 0), 4));
    assert!(told[0].2.is_err());
    assert_eq!(job.ask(0, agree(5, 2, 1, vec![])).len(), 2);
}

/// Processes that agree again and again, with messages that take their time and processes that fail at any moment.
#[test]
fn a_thousand_failures_and_no_two_that_live_were_ever_told_different_things() {
    let seed = 20_261_128;
    println!("seed {seed}");
    let mut chance = Chance(seed);
    let mut failures = 0;
    while failures < 1000 {
        let members = 2 + chance.below(30) as u32;
        failures += run(&mut chance, members);
    }
}

/// Until at most one process lives; how many have failed.
fn run(chance: &mut Chance, members: u32) -> usize {
    let mut job = Job::new(members);
    let (mut rounds, mut waits) = (vec![0_u64; members as usize], vec![false; members as usize]);
    // On their way: questions to the coordinator, answers from it.
    let (mut asked, mut answers): (Vec<(u32, Agree)>, Vec<Told>) = (Vec::new(), Vec::new());
    let mut told: HashMap<u64, Agreed> = HashMap::new();
    let mut known = vec![Vec::new(); members as usize];
    let mut failures = 0;
    loop {
        let living: Vec<u32> = (0..members)
            .filter(|i| !job.failed.borrow().contains(&(0, *i)))
            .collect();
        if living.len() < 2 {
            return failures;
        }
        let idle: Vec<u32> = living.iter().copied().filter(|&i| !waits[i as usize]).collect();
        assert!(
            !idle.is_empty() || !asked.is_empty() || !answers.is_empty(),
            "all that live wait, and nothing is on its way"
        );
        match chance.below(10) {
            0 if chance.below(4) == 0 => {
                let victim = living[chance.below(living.len())];
                failures += 1;
                answers.extend(job.kill(victim));
            }
            1..=4 if !idle.is_empty() => {
                let by = idle[chance.below(idle.len())];
                waits[by as usize] = true;
                let flag = !(1 << chance.below(32)) as u32;
                asked.push((
                    by,
                    agree(rounds[by as usize], members, flag, known[by as usize].clone()),
                ));
            }
            5..=7 if !asked.is_empty() => {
                // Also of one that has failed meanwhile: the coordinator does not hear those.
                let (by, agree) = asked.swap_remove(chance.below(asked.len()));
                if !job.failed.borrow().contains(&(0, by)) {
                    answers.extend(job.ask(by, agree));
                }
            }
            _ if !answers.is_empty() => {
                let answer = answers.swap_remove(chance.below(answers.len()));
                let (by, round) = (answer.0.1 as usize, answer.1);
                if job.failed.borrow().contains(&answer.0) {
                    continue;
                }
                let heard = agreed(&answer);
                assert_eq!(
                    *told.entry(round).or_insert_with(|| heard.clone()),
                    heard,
                    "round {round}"
                );
                assert_eq!(rounds[by], round, "answers come in order");
                known[by] = places(&heard.lost).collect();
                rounds[by] += 1;
                waits[by] = false;
            }
            _ => {}
        }
    }
}
