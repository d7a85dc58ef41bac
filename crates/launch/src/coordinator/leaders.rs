// SPDX-License-Identifier: Apache-2.0
//! What the leaders of parents and children tell each other while they meet: it goes through here, where both are
//! known, so that no connection has to be made for it.

use super::open::Process;
use isthmus_wire::codec::MAX_MESSAGE;
use isthmus_wire::question::{Kind, Refusal, Said};
use std::collections::{BTreeMap, VecDeque};

/// Bytes that one may have told and the other not asked for: what may be said between two roots at once.
const MOST: usize = MAX_MESSAGE;

/// Who hears what.
type Replies = Vec<(Process, u64, Result<Said, Refusal>)>;

/// All that meet, by the name of the children's world.
#[derive(Debug, Default)]
pub(super) struct Leaders {
    all: BTreeMap<[u8; 16], [Leader; 2]>,
}

#[derive(Debug)]
struct Leader {
    process: Process,
    /// What the other one has told it.
    mail: VecDeque<Vec<u8>>,
    /// Questions for what comes next, in order.
    waiting: VecDeque<u64>,
    /// It tells nothing more.
    over: bool,
}

impl Leader {
    fn of(process: Process) -> Self {
        Self {
            process,
            mail: VecDeque::new(),
            waiting: VecDeque::new(),
            over: false,
        }
    }
}

impl Leaders {
    /// These two meet.
    pub(super) fn begin(&mut self, world: [u8; 16], parent: Process, child: Process) {
        self.all.insert(world, [parent, child].map(Leader::of));
    }

    /// One tells the other something, or that nothing more comes.
    pub(super) fn tell(&mut self, by: Process, number: u64, world: [u8; 16], what: Option<Vec<u8>>) -> Replies {
        let Some((own, other)) = self.find(by, world) else {
            return vec![(by, number, Err(nobody()))];
        };
        let mut told = vec![(by, number, Ok(Said::Done))];
        match what {
            Some(what) if own.over || other.mail.iter().map(Vec::len).sum::<usize>() + what.len() > MOST => {
                let why = "it told the other root more than that has asked for";
                return vec![(by, number, Err(Refusal::new(Kind::Unable, why)))];
            }
            Some(what) => other.mail.push_back(what),
            None => {
                own.over = true;
                told.extend(own.waiting.drain(..).map(|number| (own.process, number, Err(nobody()))));
            }
        }
        deliver(own, other, &mut told);
        if own.over && other.over {
            self.all.remove(&world);
        }
        told
    }

    /// One wants to hear what the other one tells next.
    pub(super) fn ask(&mut self, by: Process, number: u64, world: [u8; 16]) -> Replies {
        let Some((own, other)) = self.find(by, world).filter(|(own, _)| !own.over) else {
            return vec![(by, number, Err(nobody()))];
        };
        own.waiting.push_back(number);
        let mut told = Vec::new();
        deliver(other, own, &mut told);
        told
    }

    /// A process has ended.
    pub(super) fn forget(&mut self, process: Process) -> Replies {
        let mut told = Vec::new();
        self.all.retain(|_, pair| {
            let is_one = pair.iter().any(|leader| leader.process == process);
            let others = pair.iter_mut().filter(|leader| is_one && leader.process != process);
            for other in others {
                told.extend(
                    other
                        .waiting
                        .drain(..)
                        .map(|number| (other.process, number, Err(nobody()))),
                );
            }
            !is_one
        });
        told
    }

    fn find(&mut self, by: Process, world: [u8; 16]) -> Option<(&mut Leader, &mut Leader)> {
        let [parent, child] = self.all.get_mut(&world)?;
        match (parent.process == by, child.process == by) {
            (true, _) => Some((parent, child)),
            (_, true) => Some((child, parent)),
            _ => None,
        }
    }
}

/// What `from` has told goes to `to`, as far as it is asked for.
fn deliver(from: &Leader, to: &mut Leader, told: &mut Replies) {
    while !to.waiting.is_empty() {
        let said = match to.mail.pop_front() {
            Some(what) => Ok(Said::Told(what)),
            None if from.over => Err(nobody()),
            None => return,
        };
        if let Some(number) = to.waiting.pop_front() {
            told.push((to.process, number, said));
        }
    }
}

fn nobody() -> Refusal {
    Refusal::new(
        Kind::Unable,
        "the root of the other group is gone, or has given up: it tells nothing more",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORLD: [u8; 16] = [7; 16];
    const PARENT: Process = (0, 2);
    const CHILD: Process = (1, 0);

    fn met() -> Leaders {
        let mut leaders = Leaders::default();
        leaders.begin(WORLD, PARENT, CHILD);
        leaders
    }

    fn said(what: &str) -> Result<Said, Refusal> {
        Ok(Said::Told(what.into()))
    }

    #[test]
    fn each_hears_what_the_other_tells_in_order_whoever_is_first() {
        let mut leaders = met();
        for number in 1..=3 {
            assert_eq!(leaders.ask(CHILD, number, WORLD), []);
        }
        let told = leaders.tell(PARENT, 1, WORLD, Some(b"one".to_vec()));
        assert_eq!(told, [(PARENT, 1, Ok(Said::Done)), (CHILD, 1, said("one"))]);
        let told = leaders.tell(CHILD, 4, WORLD, Some(Vec::new()));
        assert_eq!(told, [(CHILD, 4, Ok(Said::Done))]);
        assert_eq!(leaders.ask(PARENT, 2, WORLD), [(PARENT, 2, said(""))]);
        // What was told before the end is heard, and then that it is the end.
        leaders.tell(PARENT, 3, WORLD, Some(b"two".to_vec()));
        let told = leaders.tell(PARENT, 4, WORLD, None);
        assert_eq!(told, [(PARENT, 4, Ok(Said::Done)), (CHILD, 3, Err(nobody()))]);
        assert_eq!(leaders.ask(CHILD, 5, WORLD), [(CHILD, 5, Err(nobody()))]);
        leaders.tell(CHILD, 6, WORLD, None);
        assert!(leaders.all.is_empty());
    }

    #[test]
    fn whoever_is_no_leader_there_hears_and_tells_nothing() {
        let mut leaders = met();
        for (by, world) in [((0, 1), WORLD), ((1, 1), WORLD), (PARENT, [8; 16])] {
            assert_eq!(leaders.ask(by, 1, world), [(by, 1, Err(nobody()))]);
            assert_eq!(
                leaders.tell(by, 2, world, Some(b"x".to_vec())),
                [(by, 2, Err(nobody()))]
            );
            assert_eq!(leaders.tell(by, 3, world, None), [(by, 3, Err(nobody()))]);
        }
        // No more is kept than the other one may want.
        let mut tell = |number| leaders.tell(PARENT, number, WORLD, Some(vec![0; MOST / 2])).remove(0).2;
        assert_eq!([1, 2].map(&mut tell), [Ok(Said::Done), Ok(Said::Done)]);
        assert!(tell(3).is_err());
    }

    #[test]
    fn the_end_of_one_is_told_to_the_other() {
        for (ends, other) in [(PARENT, CHILD), (CHILD, PARENT)] {
            let mut leaders = met();
            leaders.ask(other, 1, WORLD);
            assert_eq!(leaders.forget((5, 5)), []);
            assert_eq!(leaders.forget(ends), [(other, 1, Err(nobody()))]);
            assert_eq!(leaders.ask(other, 2, WORLD), [(other, 2, Err(nobody()))]);
        }
    }
}
