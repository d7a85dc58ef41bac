// SPDX-License-Identifier: Apache-2.0
//! How the root of parents and that of their children talk: through their launcher, which both have.

use std::collections::VecDeque;
use std::sync::Mutex;

use isthmus_core::world::World;
use isthmus_engine::Engine;
use isthmus_wire::boot::Message;
use isthmus_wire::question::{Ask, Kind, Question, Refusal, Said};

use crate::asking::{AskError, begin, check_length, ends, listen, put};
use crate::questions::Questions;
use crate::rendezvous::{Agent, Voice};

/// So many messages are asked for before they are there: as many as two groups need to meet, so that none of them waits
/// for a question.
const AHEAD: usize = 3;
/// What is told at once, bytes: less than a question may have.
const PIECE: usize = 512 << 10;

/// The way to the other root. What is told goes in pieces, each behind a byte that says whether another one follows.
pub struct Leader<'r> {
    world: &'r World,
    agent: &'r Mutex<Agent>,
    voice: Voice,
    questions: Questions,
    /// The children's world.
    name: [u8; 16],
    /// Numbers of open questions for what comes next.
    asked: VecDeque<u64>,
}

impl<'r> Leader<'r> {
    pub(crate) fn new(world: &'r World, agent: &'r Mutex<Agent>, name: [u8; 16]) -> Result<Self, AskError> {
        let (voice, questions) = ends(agent);
        let mut leader = Self {
            world,
            agent,
            voice,
            questions,
            name,
            asked: VecDeque::new(),
        };
        for _ in 0..AHEAD {
            leader.ask()?;
        }
        Ok(leader)
    }

    /// Asks for one more.
    fn ask(&mut self) -> Result<(), AskError> {
        let number = self.say(Ask::Hear { world: self.name })?;
        self.asked.push_back(number);
        Ok(())
    }

    fn tell(&self, what: Option<Vec<u8>>) -> Result<u64, AskError> {
        self.say(Ask::Tell { world: self.name, what })
    }

    fn say(&self, ask: Ask) -> Result<u64, AskError> {
        let number = begin(self.world, self.agent, &self.questions);
        let question = Message::Question(Question { number, ask });
        let said = check_length(&question)
            .map_err(AskError::Refused)
            .and_then(|()| put(&self.voice, &question).map_err(AskError::Lost));
        if said.is_err() {
            self.questions.forget(number);
        }
        said.map(|()| number)
    }

    /// Tells this, and gives what the other one tells. `awaited` is looked at meanwhile: with an error nothing is
    /// waited for any more. `lost`: an error of ours as one of the caller's.
    ///
    /// # Errors
    /// The other root is gone or has given up, or `awaited` says so.
    pub fn exchange<E>(
        &mut self,
        mine: &[u8],
        mut awaited: impl FnMut(&mut Engine) -> Result<(), E>,
        lost: impl Fn(AskError) -> E,
    ) -> Result<Vec<u8>, E> {
        let mut rest = mine;
        loop {
            let (piece, further) = rest.split_at(rest.len().min(PIECE));
            let mut what = vec![u8::from(!further.is_empty())];
            what.extend_from_slice(piece);
            let number = self.tell(Some(what)).map_err(&lost)?;
            if further.is_empty() {
                // Where it could not be told nothing comes back.
                self.questions.forget(number);
                break;
            }
            self.answer(number, &mut awaited, &lost)?;
            rest = further;
        }
        let mut theirs = Vec::new();
        loop {
            self.ask().map_err(&lost)?;
            let Some(number) = self.asked.pop_front() else { continue };
            let Said::Told(what) = self.answer(number, &mut awaited, &lost)? else {
                return Err(lost(nonsense()));
            };
            match what.split_first() {
                Some((0, piece)) => {
                    theirs.extend_from_slice(piece);
                    return Ok(theirs);
                }
                Some((1, piece)) => theirs.extend_from_slice(piece),
                _ => return Err(lost(nonsense())),
            }
        }
    }

    /// Waits for the answer to a question.
    fn answer<E>(
        &self,
        number: u64,
        awaited: &mut impl FnMut(&mut Engine) -> Result<(), E>,
        lost: &impl Fn(AskError) -> E,
    ) -> Result<Said, E> {
        let (questions, agent, world) = (&self.questions, self.agent, self.world);
        let answer = world.engine().wait(|engine| {
            let look = || {
                let answer = questions.look(number)?;
                Some(answer.said.map_err(|refusal| lost(AskError::Refused(refusal))))
            };
            look().or_else(|| {
                let heard = listen(world, engine, agent).map_err(|error| lost(AskError::Lost(error)));
                look().or_else(|| heard.and_then(|()| awaited(engine)).err().map(Err))
            })
        });
        if answer.is_err() {
            questions.forget(number);
        }
        answer
    }
}

fn nonsense() -> AskError {
    let why = "the other root tells what makes no sense; use one version of Isthmus for both programs";
    AskError::Refused(Refusal::new(Kind::Unable, why))
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        // Whatever is asked for is answered then: nothing more comes.
        if let Ok(number) = self.tell(None) {
            self.questions.forget(number);
        }
        self.asked.drain(..).for_each(|number| self.questions.forget(number));
    }
}
