// SPDX-License-Identifier: Apache-2.0
//! What this process asks its coordinator ([`isthmus_wire::question`]), by way of the agent of its machine.
//!
//! Any thread may ask, several at a time; meanwhile the engine makes progress. Whoever waits inside MPI hears answers,
//! also those of other threads.

use std::sync::{Mutex, PoisonError};

use isthmus_core::world::World;
use isthmus_engine::Engine;
use isthmus_wire::boot::Message;
use isthmus_wire::question::{Ask, Kind, MAX_LENGTH, Question, Refusal, Said};

use crate::BootError;
use crate::listening::hear;
use crate::questions::Questions;
use crate::rendezvous::{Agent, Voice};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskError {
    /// The program was started without a launcher: there is nobody to ask.
    NoLauncher,
    /// The coordinator says no.
    Refused(Refusal),
    /// The agent of this machine is gone, or the job ends.
    Lost(BootError),
}

impl std::fmt::Display for AskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoLauncher => f.write_str(
                "this program was started without a launcher, which it needs for that; start it with isthmus run or mpiexec",
            ),
            Self::Refused(refusal) => f.write_str(&refusal.why),
            Self::Lost(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AskError {}

/// Nobody takes a question that is longer than may be.
pub(crate) fn check_length(question: &Message) -> Result<(), Refusal> {
    let length = question.encode().len();
    if length <= MAX_LENGTH {
        return Ok(());
    }
    let why = format!(
        "what the launcher is asked has {length} bytes, at most {MAX_LENGTH} are possible: pass long arguments in a file"
    );
    Err(Refusal::new(Kind::Unable, why))
}

/// What questions go out by, and where their answers come.
pub(crate) fn ends(agent: &Mutex<Agent>) -> (Voice, Questions) {
    let agent = agent.lock().unwrap_or_else(PoisonError::into_inner);
    (agent.voice(), agent.questions())
}

/// The number of another question. More threads than may ask at a time take turns.
pub(crate) fn begin(world: &World, agent: &Mutex<Agent>, questions: &Questions) -> u64 {
    world.engine().wait(|engine| {
        let number = questions.begin();
        if number.is_none() {
            let _ = listen(world, engine, agent);
        }
        number
    })
}

/// Asks the coordinator and waits for the answer.
pub(crate) fn ask(world: &World, agent: &Mutex<Agent>, ask: Ask) -> Result<Said, AskError> {
    let (voice, questions) = ends(agent);
    let number = begin(world, agent, &questions);
    let question = Message::Question(Question { number, ask });
    if let Err(refusal) = check_length(&question) {
        questions.forget(number);
        return Err(AskError::Refused(refusal));
    }
    let answer = put(&voice, &question).and_then(|()| {
        world.engine().wait(|engine| {
            if let Some(answer) = questions.look(number) {
                return Some(Ok(answer));
            }
            let heard = listen(world, engine, agent);
            match questions.look(number) {
                Some(answer) => Some(Ok(answer)),
                None => heard.err().map(Err),
            }
        })
    });
    match answer {
        Ok(answer) => answer.said.map_err(AskError::Refused),
        Err(error) => {
            questions.forget(number);
            Err(AskError::Lost(error))
        }
    }
}

/// Tells the coordinator things whose answers nobody needs. Waits for nobody, also where a thread talks with the agent.
#[derive(Clone)]
pub(crate) struct Teller {
    voice: Voice,
    questions: Questions,
}

impl Teller {
    pub(crate) fn of(agent: &Mutex<Agent>) -> Self {
        let (voice, questions) = ends(agent);
        Self { voice, questions }
    }

    /// Where as many questions as there may be are open, or the agent is gone, it is not said: it is only to be looked
    /// at.
    pub(crate) fn tell(&self, what: Ask) {
        if let Some(number) = self.questions.begin() {
            self.questions.forget(number);
            let question = Message::Question(Question { number, ask: what });
            if check_length(&question).is_ok() {
                let _ = put(&self.voice, &question);
            }
        }
    }
}

pub(crate) fn put(voice: &Voice, question: &Message) -> Result<(), BootError> {
    voice
        .say(question)
        .map_err(|e| BootError::agent(format!("the agent of this machine is gone: {e}")))
}

/// Hears what the agent has said by now; other threads hear of it, too. An error: it says nothing more.
pub(crate) fn listen(world: &World, engine: &mut Engine, agent: &Mutex<Agent>) -> Result<(), BootError> {
    // Who has it hears this too.
    let Ok(mut agent) = agent.try_lock() else {
        return Ok(());
    };
    let heard = hear(world, engine, &mut agent);
    if heard.answers {
        world.engine().wake();
    }
    match heard.more {
        true => Ok(()),
        false => Err(agent.why_silent()),
    }
}
