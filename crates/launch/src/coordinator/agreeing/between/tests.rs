// SPDX-License-Identifier: Apache-2.0
use super::super::naming::Member;
use super::super::*;
use super::EARLY;
use isthmus_wire::agreeing::{Agreed, Members, What, pieces};
use isthmus_wire::letter::{Errand, Share};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

fn name(side: usize) -> [u8; 16] {
    [1 + side as u8; 16]
}

fn which(round: u64) -> Which {
    Which {
        scope: [9; 16],
        context: 18,
        round,
    }
}

/// The launcher of one of the jobs, of so many members each.
struct Side {
    number: usize,
    sizes: Vec<u32>,
    agreements: Agreements,
    failed: RefCell<HashSet<u32>>,
}

impl Side {
    fn new(number: usize, sizes: &[u32]) -> Self {
        Self {
            number,
            sizes: sizes.to_vec(),
            agreements: Agreements::default(),
            failed: RefCell::default(),
        }
    }

    fn lives(&self, index: u32) -> bool {
        !self.failed.borrow().contains(&index)
    }

    fn agree(&self, round: u64, flag: u32, known: impl IntoIterator<Item = u32>) -> Agree {
        // Places are those of the first job, then those of the second one, and each names its own world first.
        let mut worlds: Vec<usize> = (0..self.sizes.len()).collect();
        worlds.sort_by_key(|world| *world != self.number);
        let range = |world: usize| Members {
            world: worlds.iter().position(|known| *known == world).unwrap() as u16,
            first: 0,
            count: self.sizes[world],
        };
        Agree {
            what: What::Number,
            which: which(round),
            flag,
            contexts: [0; 3],
            worlds: worlds.iter().map(|world| name(*world)).collect(),
            members: (0..self.sizes.len()).map(range).collect(),
            known: pieces(known),
        }
    }

    fn ask(&mut self, by: u32, question: u64, agree: Agree) -> Vec<Told> {
        let own = |side: usize| (0..self.sizes[side]).map(move |index| (side, index));
        let all = (0..self.sizes.len()).flat_map(own);
        let members: Arc<[Member]> = all
            .map(|(side, index)| (side == self.number).then_some((0, index)))
            .collect();
        let failed = self.failed.borrow();
        let spans = true;
        self.agreements
            .ask((0, by), question, agree, Named { members, spans }, |(_, index)| {
                !failed.contains(&index)
            })
    }

    fn carry(&mut self, by: u32, question: u64, round: u64, was: Option<Back>) -> Vec<Told> {
        let failed = self.failed.borrow();
        self.agreements
            .is_ready((0, by), question, which(round), was, &|(_, index)| {
                !failed.contains(&index)
            })
    }

    fn bring(&mut self, by: u32, question: u64, letter: Letter) -> Vec<Told> {
        let failed = self.failed.borrow();
        self.agreements
            .deliver((0, by), question, letter, &|(_, index)| !failed.contains(&index))
    }

    fn kill(&mut self, index: u32) -> Vec<Told> {
        self.failed.borrow_mut().insert(index);
        let failed = self.failed.borrow();
        self.agreements.look_again(|(_, index)| !failed.contains(&index))
    }
}

/// What a member is told, if it is a result.
fn result(told: &Told) -> Option<Result<Agreed, String>> {
    match &told.2 {
        Ok(Said::Agreed(agreed)) => Some(Ok((**agreed).clone())),
        Ok(_) => None,
        Err(refusal) => Some(Err(refusal.why.clone())),
    }
}

fn errand(told: &[Told]) -> Option<&Errand> {
    told.iter().find_map(|told| match &told.2 {
        Ok(Said::Errand(errand)) => Some(&**errand),
        _ => None,
    })
}

fn letter(told: &[Told]) -> Letter {
    errand(told).expect("a letter").letter.clone()
}

fn was(told: &[Told], by: u32, question: u64) -> Option<Back> {
    told.iter().find_map(|told| match &told.2 {
        Ok(Said::Back(back)) if (told.0, told.1) == ((0, by), question) => Some(back.clone()),
        _ => None,
    })
}

#[test]
fn one_decides_and_tells_its_own_when_the_other_has_the_result() {
    let (mut a, mut b) = (Side::new(0, &[1, 2]), Side::new(1, &[1, 2]));
    assert!(a.ask(0, 1, a.agree(0, 0b111, [])).is_empty());
    let told = a.carry(0, 2, 0, None);
    assert_eq!(
        errand(&told).map(|e| (&e.letter.says, &e.to)),
        Some((&Says::Waiting, &vec![(1, 2)]))
    );
    // It comes before anybody there has asked, and waits.
    assert!(b.bring(0, 3, letter(&told)).is_empty());
    b.ask(0, 1, b.agree(0, 0b110, []));
    assert!(b.carry(0, 2, 0, None).is_empty(), "another one is missing");
    let told = b.kill(1);
    assert_eq!(was(&told, 0, 3), Some(Back::Delivered));
    let Says::Share(share) = letter(&told).says else {
        panic!("{told:?}")
    };
    assert_eq!((share.flag, share.first, share.lost), (0b110, 1, vec![(2, 1)]));
}

#[test]
fn the_whole_way() {
    let (mut a, mut b) = (Side::new(0, &[2, 1]), Side::new(1, &[2, 1]));
    a.ask(0, 1, a.agree(0, 0b111, []));
    a.ask(1, 1, a.agree(0, 0b101, []));
    a.carry(0, 2, 0, None);
    b.ask(0, 1, b.agree(0, 0b110, []));
    let share = letter(&b.carry(0, 2, 0, None));
    assert!(a.bring(1, 7, share.clone()).is_empty(), "its carrier is out");
    let told = a.carry(0, 3, 0, Some(Back::Delivered));
    assert!(
        told.iter().all(|told| result(told).is_none()),
        "nobody is told before the others have it"
    );
    let told = b.bring(0, 5, letter(&told));
    assert_eq!(told.iter().filter_map(result).count(), 1);
    assert!(matches!(was(&told, 0, 5), Some(Back::Over(Ok(_)))));
    let told = a.carry(0, 4, 0, was(&told, 0, 5));
    let all: Vec<Agreed> = told.iter().filter_map(result).map(Result::unwrap).collect();
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|agreed| agreed.flag == 0b100 && agreed.lost.is_empty()));
    assert!(matches!(was(&told, 1, 7), Some(Back::Over(Ok(_)))));
    // A letter that comes late is told the result, too.
    assert!(matches!(was(&a.bring(0, 9, share), 0, 9), Some(Back::Over(Ok(_)))));
    assert!(a.agreements.open.is_empty() && b.agreements.open.is_empty());
}

#[test]
fn whoever_can_reach_none_of_the_others_agrees_without_them() {
    let mut b = Side::new(1, &[1, 2]);
    b.ask(0, 1, b.agree(0, 0b110, []));
    b.ask(1, 1, b.agree(0, 0b011, []));
    b.carry(1, 2, 0, None);
    assert!(errand(&b.carry(0, 2, 0, None)).is_none(), "one is on its way");
    let told = b.carry(1, 3, 0, Some(Back::Nobody));
    assert!(errand(&told).is_some_and(|_| told[0].0 == (0, 0)), "another one tries");
    let told = b.carry(0, 3, 0, Some(Back::Nobody));
    let all: Vec<Agreed> = told.iter().filter_map(result).map(Result::unwrap).collect();
    assert_eq!(all.len(), 2);
    assert!(
        all.iter()
            .all(|agreed| agreed.flag == 0b010 && agreed.lost == [(0, 1)] && agreed.news)
    );
}

#[test]
fn hostile_letters_are_refused_and_kept_in_bounds() {
    let (mut a, mut b) = (Side::new(0, &[2, 1]), Side::new(1, &[2, 1]));
    a.ask(0, 1, a.agree(0, 1, []));
    let share = |b: &mut Side| {
        b.ask(0, 1, b.agree(0, 1, []));
        letter(&b.carry(0, 2, 0, None))
    };
    let share = share(&mut b);
    let refused = |told: Vec<Told>| told.iter().any(|t| matches!(&t.2, Ok(Said::Back(Back::Refused(_)))));
    let says = |says| Letter { says, ..share.clone() };
    assert!(refused(a.bring(7, 3, share.clone())), "no member");
    assert!(
        refused(a.bring(0, 3, says(Says::Result(Err("no".into()))))),
        "it decides itself"
    );
    assert!(refused(b.bring(0, 3, share.clone())), "the other one does not decide");
    // It names own members as the other's, or as lost, or others than there are.
    type Lie = fn(&mut Letter);
    let lies: [Lie; 4] = [
        |l| l.members[0].count = 5,
        |l| l.what = What::Members,
        |l| lie(l, |share| share.first = 0),
        |l| lie(l, |share| share.lost = vec![(0, 3)]),
    ];
    for owns in [vec![], vec![[3; 16]], vec![name(0)], vec![name(1), name(0)]] {
        assert!(
            refused(a.bring(1, 3, Letter { owns, ..share.clone() })),
            "whose letter it is"
        );
    }
    for change in lies {
        let mut a = Side::new(0, &[2, 1]);
        a.ask(0, 1, a.agree(0, 1, []));
        a.ask(1, 1, a.agree(0, 1, []));
        a.carry(0, 2, 0, None);
        let mut lie = share.clone();
        change(&mut lie);
        a.bring(1, 4, lie);
        let told = a.carry(0, 3, 0, Some(Back::Delivered));
        assert!(matches!(letter(&told).says, Says::Result(Err(_))), "{told:?}");
        let told = a.carry(0, 4, 0, Some(Back::Delivered));
        assert_eq!(told.iter().filter(|t| matches!(result(t), Some(Err(_)))).count(), 2);
    }
    for number in 0..10 * EARLY as u64 {
        let early = Letter {
            which: which(number + 1),
            ..share.clone()
        };
        a.bring(0, number + 10, early);
    }
    assert_eq!(a.agreements.posted.early.len(), EARLY);
}

/// A letter of a side's launcher with a result.
fn result_of(side: &Side) -> Letter {
    let Agree {
        which,
        what,
        worlds,
        members,
        ..
    } = side.agree(0, 1, []);
    Letter {
        which,
        what,
        worlds,
        members,
        owns: vec![name(side.number)],
        says: Says::Result(Err("no".into())),
    }
}

#[test]
fn a_result_is_taken_from_the_one_that_decides_and_when_all_have_asked() {
    let [mut a, mut b] = [0, 1].map(|number| Side::new(number, &[2, 2]));
    let is_refused = |told: &[Told]| matches!(was(told, 0, 3), Some(Back::Refused(_)));
    for side in [&mut a, &mut b] {
        side.ask(0, 1, side.agree(0, 1, []));
    }
    assert!(
        is_refused(&b.bring(0, 3, result_of(&a))),
        "another member has not asked"
    );
    for side in [&mut a, &mut b] {
        side.ask(1, 1, side.agree(0, 1, []));
    }
    assert!(is_refused(&a.bring(0, 3, result_of(&b))), "it decides itself");
    let told = b.bring(0, 3, result_of(&a));
    assert_eq!(told.iter().filter_map(result).count(), 2, "{told:?}");
}

/// Three launchers of one member each, of which the first one has the shares of the others.
fn three_that_have_asked() -> [Side; 3] {
    let mut all = [0, 1, 2].map(|number| Side::new(number, &[1, 1, 1]));
    for side in &mut all {
        side.ask(0, 1, side.agree(0, !(1 << side.number), []));
    }
    let [first, others @ ..] = &mut all;
    let shares = others.each_mut().map(|side| letter(&side.carry(0, 2, 0, None)));
    for (question, share) in (11..).zip(shares) {
        let told = first.bring(0, question, share);
        assert!(told.is_empty(), "nobody is told before all have it");
    }
    all
}

#[test]
fn the_next_one_decides_and_takes_a_result_that_somebody_knows() {
    let [mut a, mut b, mut c] = three_that_have_asked();
    let told = a.carry(0, 2, 0, None);
    assert_eq!(errand(&told).map(|errand| errand.to.clone()), Some(vec![(1, 1)]));
    let known = b
        .bring(0, 3, letter(&told))
        .iter()
        .find_map(result)
        .expect("it is told");
    // The first one is gone. The third one turns to the second one, which knows.
    let told = c.carry(0, 3, 0, Some(Back::Nobody));
    assert_eq!(errand(&told).map(|errand| errand.to.clone()), Some(vec![(1, 1)]));
    let back = was(&b.bring(0, 4, letter(&told)), 0, 4);
    assert_eq!(back, Some(Back::Over(known.clone())));
    let told = c.carry(0, 4, 0, back);
    assert_eq!(told.iter().find_map(result), Some(known));
}

#[test]
fn whoever_has_turned_to_the_next_one_takes_nothing_of_the_one_before() {
    let [mut a, mut b, mut c] = three_that_have_asked();
    a.carry(0, 2, 0, None);
    let late = letter(&a.carry(0, 3, 0, Some(Back::Delivered)));
    assert!(matches!(late.says, Says::Result(Ok(_))));
    let share = letter(&c.carry(0, 3, 0, Some(Back::Nobody)));
    assert_eq!(was(&c.bring(0, 4, late), 0, 4), Some(Back::Nobody));
    b.bring(0, 3, share);
    let told = b.carry(0, 4, 0, Some(Back::Nobody));
    assert!(matches!(&letter(&told).says, Says::Result(Ok(agreed)) if agreed.lost == [(0, 1)]));
}

#[test]
fn worlds_of_one_launcher_are_one_party_once_it_has_said_so() {
    let mut c = Side::new(2, &[1, 1, 1]);
    c.ask(0, 1, c.agree(0, 1, []));
    // Nobody of the first world is there any more, so the second one decides.
    c.carry(0, 2, 0, None);
    c.carry(0, 3, 0, Some(Back::Nobody));
    let both = Letter {
        which: which(0),
        what: What::Number,
        worlds: c.agree(0, 1, []).worlds,
        members: c.agree(0, 1, []).members,
        owns: vec![name(0), name(1)],
        says: Says::Waiting,
    };
    assert_eq!(was(&c.bring(0, 4, both.clone()), 0, 4), Some(Back::Delivered));
    let told = c.carry(0, 5, 0, Some(Back::Delivered));
    assert_eq!(errand(&told).map(|errand| errand.to.clone()), Some(vec![(0, 2)]));
    let one = Letter {
        owns: vec![name(1)],
        ..both
    };
    assert!(matches!(was(&c.bring(0, 6, one), 0, 6), Some(Back::Refused(_))));
}

fn lie(letter: &mut Letter, change: impl FnOnce(&mut Share)) {
    if let Says::Share(share) = &mut letter.says {
        change(share);
    }
}

mod failures;
