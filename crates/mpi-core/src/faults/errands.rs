// SPDX-License-Identifier: Apache-2.0
//! A member that agrees with processes of another launcher carries letters for its own one while it waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isthmus_engine::{Engine, Peer};
use isthmus_wire::agreeing::{Which, places};
use isthmus_wire::letter::{Back, Errand};
use isthmus_wire::question::{Ask, Said};

use crate::asker::Asker;
use crate::carrying::Carrying;
use crate::group::Group;

/// After so long a letter goes to another one, too: between sites it may take long until it is known that the one who
/// has it is lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a member does beside waiting.
pub(super) struct Errands {
    which: Which,
    everybody: Group,
    /// Where it begins to look for somebody, so that not all go to the same one.
    start: usize,
    carrying: Arc<Carrying>,
    stage: Stage,
}

enum Stage {
    /// It is about to say that it can carry a letter, and what became of the last one.
    Ready(Option<Back>),
    /// It has said so.
    Waits(u64),
    /// It carries one: to whom it still may go, and its number while somebody has it.
    Out {
        letter: Vec<u8>,
        to: VecDeque<Peer>,
        number: Option<(u64, Peer, Instant)>,
    },
    /// There are none, or no more.
    Over,
}

impl Errands {
    pub(super) fn new(which: Which, everybody: Group, me: Peer, carrying: Arc<Carrying>) -> Self {
        let start = everybody.rank_of(me).unwrap_or(0) as usize;
        Self {
            which,
            everybody,
            start,
            carrying,
            stage: Stage::Ready(None),
        }
    }

    /// Goes on as far as it can without waiting.
    pub(super) fn advance(&mut self, asker: &dyn Asker, engine: &mut Engine) {
        while let Some(next) = self.next(asker, engine) {
            self.stage = next;
        }
    }

    /// What it does next, if it does something else than before.
    fn next(&mut self, asker: &dyn Asker, engine: &mut Engine) -> Option<Stage> {
        match &mut self.stage {
            Stage::Ready(back) => {
                let (which, back) = (self.which, back.clone());
                match asker.ask(Ask::Carry { which, back }) {
                    Ok(question) => question.map(Stage::Waits),
                    Err(_) => Some(Stage::Over),
                }
            }
            Stage::Waits(question) => match asker.answered(*question)? {
                Ok(Said::Errand(errand)) => Some(begin(&self.everybody, self.start, &errand)),
                Ok(_) | Err(_) => Some(Stage::Over),
            },
            Stage::Out { letter, to, number } => {
                if let Some((sent, peer, since)) = *number {
                    match self.carrying.look(sent) {
                        None if since.elapsed() < PATIENCE || to.is_empty() => return None,
                        None => {
                            self.carrying.forget(sent);
                            to.push_back(peer);
                        }
                        Some(Back::Nobody) => {}
                        Some(back) => return Some(Stage::Ready(Some(back))),
                    }
                    *number = None;
                }
                while let Some(peer) = to.pop_front() {
                    // Whoever is lost has it not.
                    if let Ok(sent) = self.carrying.send(engine, peer, letter) {
                        *number = Some((sent, peer, Instant::now()));
                        return None;
                    }
                }
                Some(Stage::Ready(Some(Back::Nobody)))
            }
            Stage::Over => None,
        }
    }

    /// The agreement is over.
    pub(super) fn end(&mut self, asker: &dyn Asker) {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Waits(question) => asker.forget(question),
            Stage::Out {
                number: Some((number, ..)),
                ..
            } => self.carrying.forget(number),
            Stage::Ready(_) | Stage::Out { .. } | Stage::Over => {}
        }
    }
}

fn begin(everybody: &Group, start: usize, errand: &Errand) -> Stage {
    let members = everybody.members();
    let mut to: VecDeque<Peer> = places(&errand.to)
        .filter_map(|place| members.get(place as usize).copied())
        .collect();
    if !to.is_empty() {
        to.rotate_left(start % to.len());
    }
    Stage::Out {
        letter: errand.letter.encode(),
        to,
        number: None,
    }
}
