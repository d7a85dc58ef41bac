// SPDX-License-Identifier: Apache-2.0
//! Processes of several jobs that agree again and again. What they say takes its time, processes fail at any moment, a
//! whole job does, or nothing passes between two of the jobs any more, or between some and the others.

use super::super::super::tests::Chance;
use super::*;
use isthmus_wire::agreeing::places;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Most steps in which everything that is on its way arrives.
const LULL: usize = 20_000;
/// Steps in which almost all agree.
const ALMOST: usize = 400;

/// A process: of which job, and its index there.
type Member = (usize, u32);

/// What is on its way to somebody.
enum Mail {
    /// To the launcher of a process, from that one.
    Agree(u64, Agree),
    Carry(u64, u64, Option<Back>),
    Brought(u64, Letter),
    /// From its launcher.
    Answer(Told),
}

/// A letter on its way to a member of another job, or back.
struct Carried {
    from: Member,
    to: Member,
    /// `None`: it is at the other launcher, who is asked this.
    at: At,
    /// Whoever has sent it does not wait for it any more.
    is_forgotten: bool,
}

enum At {
    Going(Letter),
    Asked(u64),
    Back(Back),
}

#[derive(Default, Clone)]
struct Process {
    round: u64,
    question: u64,
    asks: Option<u64>,
    known: Vec<u32>,
}

struct World {
    sides: Vec<Side>,
    processes: HashMap<Member, Process>,
    /// In order for each process, to its launcher and from it.
    up: HashMap<Member, VecDeque<Mail>>,
    down: HashMap<Member, VecDeque<Mail>>,
    carried: Vec<Carried>,
    /// To whom each errand still may go.
    errands: HashMap<Member, Vec<(Letter, VecDeque<Member>)>>,
    /// Pairs of jobs between which nothing passes, the lower one first.
    cut: BTreeSet<(usize, usize)>,
    /// The first finds nobody at the second, which still brings letters to it: those on their way, or in a process that
    /// has no room for a letter of the first.
    deaf: BTreeSet<(usize, usize)>,
    /// Members that find nobody of a job, which others of their own may find.
    lame: BTreeSet<(Member, usize)>,
    /// By side and round.
    told: Vec<HashMap<u64, Agreed>>,
    /// Members that were refused a result.
    without: usize,
}

impl World {
    fn new(sizes: &[u32]) -> Self {
        let sides = 0..sizes.len();
        let all = sides
            .clone()
            .flat_map(|side| (0..sizes[side]).map(move |index| (side, index)));
        Self {
            sides: sides.clone().map(|side| Side::new(side, sizes)).collect(),
            processes: all.map(|member| (member, Process::default())).collect(),
            up: HashMap::new(),
            down: HashMap::new(),
            carried: Vec::new(),
            errands: HashMap::new(),
            cut: BTreeSet::new(),
            deaf: BTreeSet::new(),
            lame: BTreeSet::new(),
            told: sides.map(|_| HashMap::new()).collect(),
            without: 0,
        }
    }

    fn is_cut(&self, one: usize, other: usize) -> bool {
        self.cut.contains(&(one.min(other), one.max(other)))
    }

    /// Whether any two jobs have lost each other.
    fn has_lost_some(&self) -> bool {
        let jobs = self.sides.len();
        (0..jobs).any(|one| (one + 1..jobs).any(|other| self.are_lost(one, other)))
    }

    /// Whether they have lost each other, as far as one of them knows.
    fn are_lost(&self, one: usize, other: usize) -> bool {
        self.is_cut(one, other) || self.finds_nobody(one, other) || self.finds_nobody(other, one)
    }

    fn finds_nobody(&self, one: usize, other: usize) -> bool {
        let is_lame = |member: Member| self.lame.contains(&(member, other));
        let mut own = self.living().into_iter().filter(|member| member.0 == one);
        self.deaf.contains(&(one, other)) || own.all(is_lame)
    }

    /// The member with this place.
    fn member(&self, place: u32) -> Member {
        let mut first = 0;
        for (side, &size) in self.sides[0].sizes.iter().enumerate() {
            if place - first < size {
                return (side, place - first);
            }
            first += size;
        }
        panic!("no member has place {place}")
    }

    fn living(&self) -> Vec<Member> {
        let mut all: Vec<Member> = self.processes.keys().copied().filter(|m| self.lives(*m)).collect();
        all.sort_unstable();
        all
    }

    fn lives(&self, member: Member) -> bool {
        self.sides[member.0].lives(member.1)
    }

    fn number(&mut self, member: Member) -> u64 {
        let process = self.processes.get_mut(&member).unwrap();
        process.question += 1;
        process.question
    }

    fn say(&mut self, member: Member, mail: Mail) {
        self.up.entry(member).or_default().push_back(mail);
    }

    fn answer(&mut self, side: usize, told: Vec<Told>) {
        for told in told {
            assert!(self.lives((side, told.0.1)), "a process that has failed is answered");
            self.down
                .entry((side, told.0.1))
                .or_default()
                .push_back(Mail::Answer(told));
        }
    }

    /// A process begins to agree, and is ready to carry letters.
    fn begin(&mut self, member: Member, flag: u32) {
        let question = self.number(member);
        let process = self.processes.get_mut(&member).unwrap();
        process.asks = Some(question);
        let (round, known) = (process.round, process.known.clone());
        let agree = self.sides[member.0].agree(round, flag, known);
        self.say(member, Mail::Agree(question, agree));
        self.is_ready(member, round, None);
    }

    fn is_ready(&mut self, member: Member, round: u64, was: Option<Back>) {
        let question = self.number(member);
        self.say(member, Mail::Carry(question, round, was));
    }

    /// A launcher hears the next thing of one of its processes.
    fn hear(&mut self, member: Member) {
        let Some(mail) = self.up.get_mut(&member).and_then(VecDeque::pop_front) else {
            return;
        };
        let side = &mut self.sides[member.0];
        let told = match mail {
            Mail::Agree(question, agree) => side.ask(member.1, question, agree),
            Mail::Carry(question, round, was) => side.carry(member.1, question, round, was),
            Mail::Brought(question, letter) => side.bring(member.1, question, letter),
            Mail::Answer(_) => unreachable!(),
        };
        self.answer(member.0, told);
    }

    /// A process hears the next thing of its launcher.
    fn listen(&mut self, member: Member, chance: &mut Chance) {
        let Some(Mail::Answer(told)) = self.down.get_mut(&member).and_then(VecDeque::pop_front) else {
            return;
        };
        match result(&told) {
            Some(Ok(result)) => return self.take(member, told.1, result),
            Some(Err(why)) => return self.leave(member, &why),
            None => {}
        }
        match told.2.unwrap() {
            Said::Errand(errand) => {
                let mut to: Vec<Member> = places(&errand.to).map(|place| self.member(place)).collect();
                let first = chance.below(to.len());
                to.rotate_left(first);
                self.errands.entry(member).or_default().push((errand.letter, to.into()));
                self.go(member);
            }
            Said::Back(back) => {
                let is_it = |c: &&mut Carried| c.to == member && matches!(c.at, At::Asked(q) if q == told.1);
                if let Some(carried) = self.carried.iter_mut().find(is_it) {
                    carried.at = At::Back(back);
                }
            }
            Said::Done => {}
            other => panic!("{other:?}"),
        }
    }

    /// Whether a member's letters are taken by a member of another job.
    fn finds(&self, from: Member, to: Member) -> bool {
        let loses = self.deaf.contains(&(from.0, to.0)) || self.lame.contains(&(from, to.0));
        self.lives(to) && !self.is_cut(from.0, to.0) && !loses
    }

    /// A process takes its errand to the next one to whom it may go.
    fn go(&mut self, from: Member) {
        let Some((letter, mut to)) = self.errands.get_mut(&from).and_then(Vec::pop) else {
            return;
        };
        let round = letter.which.round;
        match to.pop_front() {
            None => self.is_ready(from, round, Some(Back::Nobody)),
            Some(next) if !self.finds(from, next) => {
                self.errands.entry(from).or_default().push((letter, to));
                self.go(from);
            }
            Some(next) => {
                let at = At::Going(letter.clone());
                self.carried.push(Carried {
                    from,
                    to: next,
                    at,
                    is_forgotten: false,
                });
                self.errands.entry(from).or_default().push((letter, to));
            }
        }
    }

    /// Something between two jobs arrives.
    fn arrive(&mut self, at: usize) {
        let Carried {
            from,
            to,
            at,
            is_forgotten,
        } = self.carried.swap_remove(at);
        match at {
            At::Going(letter) => {
                let question = self.number(to);
                self.say(to, Mail::Brought(question, letter));
                let at = At::Asked(question);
                self.carried.push(Carried {
                    from,
                    to,
                    at,
                    is_forgotten,
                });
            }
            At::Back(_) if is_forgotten => {}
            At::Back(back) => {
                if let Some((letter, _)) = self.errands.get_mut(&from).and_then(Vec::pop) {
                    self.is_ready(from, letter.which.round, Some(back));
                }
            }
            At::Asked(_) => unreachable!(),
        }
    }

    /// A member is told a result: the same as all of its job, and as those of the other one, unless the two lost each
    /// other.
    fn take(&mut self, member: Member, question: u64, heard: Agreed) {
        self.errands.remove(&member);
        let own = self.carried.iter_mut().filter(|carried| carried.from == member);
        own.for_each(|carried| carried.is_forgotten = true);
        let process = self.processes.get_mut(&member).unwrap();
        assert_eq!(process.asks.take(), Some(question));
        process.known = places(&heard.lost).collect();
        let round = process.round;
        process.round += 1;
        let own = self.told[member.0].entry(round).or_insert_with(|| heard.clone());
        assert_eq!(*own, heard, "round {round}, side {}", member.0);
        // What a job was told that is gone as a whole nobody knows any more.
        let there: BTreeSet<usize> = self.living().into_iter().map(|member| member.0).collect();
        for side in there.into_iter().filter(|side| !self.are_lost(*side, member.0)) {
            if let Some(other) = self.told[side].get(&round) {
                assert_eq!(*other, heard, "round {round}, sides {side} and {}", member.0);
            }
        }
    }

    /// A member hears that the others have agreed without its job, and ends.
    fn leave(&mut self, member: Member, why: &str) {
        assert!(self.has_lost_some(), "{why}");
        self.without += 1;
        self.kill(member);
    }

    fn kill(&mut self, member: Member) {
        let told = self.sides[member.0].kill(member.1);
        self.answer(member.0, told);
        self.up.remove(&member);
        self.down.remove(&member);
        self.errands.remove(&member);
        self.lose(|carried| carried.from == member, |carried| carried.to == member);
    }

    /// These letters are gone; whoever has sent one to who is gone looks for another one.
    fn lose(&mut self, gone: impl Fn(&Carried) -> bool, returned: impl Fn(&Carried) -> bool) {
        self.carried.retain(|carried| !gone(carried));
        let (back, left): (Vec<Carried>, Vec<Carried>) =
            std::mem::take(&mut self.carried).into_iter().partition(|c| returned(c));
        self.carried = left;
        let awaited = back.into_iter().filter(|carried| !carried.is_forgotten);
        awaited.for_each(|carried| self.go(carried.from));
    }

    /// Nothing passes between these jobs any more.
    fn cut(&mut self, pairs: impl IntoIterator<Item = (usize, usize)>) {
        self.cut.extend(pairs);
        let cut = self.cut.clone();
        let is_gone =
            |carried: &Carried| cut.contains(&(carried.from.0.min(carried.to.0), carried.from.0.max(carried.to.0)));
        self.lose(|_| false, is_gone);
    }

    /// One step of somebody; whether anybody could do anything. `begins`: who goes on to agree anew.
    fn step(&mut self, chance: &mut Chance, begins: impl Fn(Member) -> bool) -> bool {
        let living = self.living();
        let has = |all: &HashMap<Member, VecDeque<Mail>>, m: &Member| all.get(m).is_some_and(|mail| !mail.is_empty());
        let idle: Vec<Member> = living
            .iter()
            .copied()
            .filter(|m| begins(*m) && self.processes[m].asks.is_none())
            .collect();
        let up: Vec<Member> = living.iter().copied().filter(|m| has(&self.up, m)).collect();
        let down: Vec<Member> = living.iter().copied().filter(|m| has(&self.down, m)).collect();
        let moving = |carried: &Carried| !matches!(carried.at, At::Asked(_));
        let moving: Vec<usize> = (0..self.carried.len())
            .filter(|&at| moving(&self.carried[at]))
            .collect();
        if idle.len() + up.len() + down.len() + moving.len() == 0 {
            return false;
        }
        match chance.below(4) {
            0 if !idle.is_empty() => self.begin(idle[chance.below(idle.len())], !(1 << chance.below(32))),
            1 if !up.is_empty() => self.hear(up[chance.below(up.len())]),
            2 if !down.is_empty() => self.listen(down[chance.below(down.len())], chance),
            3 if !moving.is_empty() => self.arrive(moving[chance.below(moving.len())]),
            _ => {}
        }
        true
    }
}

impl World {
    /// Members of one job compute for long, while others agree as far as they can without them. Then nobody begins to
    /// agree, and nobody fails, for as long as anything is on its way: launchers that wait for each other come to rest.
    fn lull(&mut self, chance: &mut Chance) {
        let computes = chance.below(self.sides.len());
        for _ in 0..ALMOST {
            self.step(chance, |member| member.0 != computes);
        }
        let mut steps = 0;
        while self.step(chance, |_| false) {
            steps += 1;
            assert!(steps < LULL, "launchers write each other without end");
        }
    }
}

/// How jobs lose each other.
#[derive(Clone, Copy, PartialEq)]
enum Cuts {
    /// Some lose all others.
    Camps,
    /// Two lose each other, and others reach both.
    One,
}

fn pairs(chance: &mut Chance, jobs: usize, cuts: Cuts) -> Vec<(usize, usize)> {
    let all = (0..jobs).flat_map(|one| (one + 1..jobs).map(move |other| (one, other)));
    let all: Vec<(usize, usize)> = all.collect();
    match cuts {
        Cuts::One => vec![all[chance.below(all.len())]],
        Cuts::Camps => {
            let camp = 1 + chance.below((1 << jobs) - 2);
            all.into_iter()
                .filter(|(one, other)| (camp >> one ^ camp >> other) & 1 == 1)
                .collect()
        }
    }
}

fn fail(seed: u64, jobs: usize, cuts: Cuts) {
    println!("seed {seed}");
    let mut chance = Chance(seed);
    let (mut failures, mut results, mut lost, mut without) = (0, 0, 0, 0);
    while failures < 2000 {
        let sizes: Vec<u32> = (0..jobs).map(|_| 1 + chance.below(8) as u32).collect();
        let mut world = World::new(&sizes);
        while world.living().len() > 1 {
            assert!(
                world.step(&mut chance, |_| true),
                "all that live wait, and nothing is on its way"
            );
            let living = world.living();
            if living.is_empty() {
                break;
            }
            match chance.below(4000) {
                // A whole job is killed.
                0..=7 => {
                    let side = living[chance.below(living.len())].0;
                    let all: Vec<Member> = living.into_iter().filter(|member| member.0 == side).collect();
                    failures += all.len();
                    all.into_iter().for_each(|member| world.kill(member));
                }
                8 if world.cut.is_empty() && world.deaf.is_empty() || cuts == Cuts::Camps => {
                    lost += 1;
                    world.cut(pairs(&mut chance, jobs, cuts));
                    world.lull(&mut chance);
                }
                21 if world.cut.is_empty() && world.deaf.is_empty() || cuts == Cuts::Camps => {
                    lost += 1;
                    let pairs = pairs(&mut chance, jobs, cuts);
                    let turned = chance.below(2) == 0;
                    let ways = pairs
                        .into_iter()
                        .map(|(one, other)| if turned { (other, one) } else { (one, other) });
                    world.deaf.extend(ways);
                }
                // One of several members finds nobody of another job.
                22..=25 => {
                    let member = living[chance.below(living.len())];
                    let other = chance.below(jobs);
                    let is_spare =
                        |one: &Member| one.0 == member.0 && *one != member && !world.lame.contains(&(*one, other));
                    if other != member.0 && living.iter().any(is_spare) {
                        world.lame.insert((member, other));
                    }
                }
                9..=20 => {
                    failures += 1;
                    world.kill(living[chance.below(living.len())]);
                }
                26..=27 => world.lull(&mut chance),
                _ => {}
            }
        }
        results += world.told.iter().map(HashMap::len).sum::<usize>();
        without += world.without;
    }
    println!("{failures} failures, {lost} cuts, {results} results, {without} were left out");
    assert!(results > failures && lost > 0);
}

#[test]
fn a_thousand_failures_and_no_two_that_reach_each_other_were_ever_told_different_things() {
    fail(20_261_129, 2, Cuts::Camps);
}

/// Two of several jobs lose each other, and members of one compute for long.
#[test]
fn launchers_that_wait_come_to_rest() {
    let seed = 20_261_134;
    println!("seed {seed}");
    let mut chance = Chance(seed);
    for _ in 0..400 {
        let jobs = 3 + chance.below(2);
        let sizes: Vec<u32> = (0..jobs).map(|_| 1 + chance.below(3) as u32).collect();
        let mut world = World::new(&sizes);
        for _ in 0..chance.below(300) {
            world.step(&mut chance, |_| true);
        }
        world.cut(pairs(&mut chance, jobs, Cuts::One));
        world.lull(&mut chance);
    }
}

#[test]
fn the_same_of_three_launchers() {
    fail(20_261_130, 3, Cuts::Camps);
    fail(20_261_131, 3, Cuts::One);
}

#[test]
fn the_same_of_four_launchers() {
    fail(20_261_132, 4, Cuts::Camps);
    fail(20_261_133, 4, Cuts::One);
}
