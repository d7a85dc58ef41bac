// SPDX-License-Identifier: Apache-2.0
//! Members of communicators agree by the coordinator of this job ([`isthmus_core::faults`]).

use std::sync::{Arc, Mutex, PoisonError, Weak};

use isthmus_core::faults::Asker;
use isthmus_core::world::World;
use isthmus_engine::Engine;
use isthmus_wire::boot::Message;
use isthmus_wire::question::{Ask, Question, Said};

use crate::asking::listen;
use crate::questions::Questions;
use crate::rendezvous::{Agent, Voice};

/// The coordinator, by way of the agent of this machine.
pub(crate) struct Coordinator {
    world: Weak<World>,
    agent: Arc<Mutex<Agent>>,
    voice: Voice,
    questions: Questions,
}

impl Coordinator {
    pub(crate) fn of(world: &Arc<World>, agent: &Arc<Mutex<Agent>>) -> Arc<Self> {
        let locked = agent.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::new(Self {
            world: Arc::downgrade(world),
            agent: agent.clone(),
            voice: locked.voice(),
            questions: locked.questions(),
        })
    }

    /// An error: the agent says nothing more.
    fn listen(&self, engine: &mut Engine) -> Result<(), String> {
        let Some(world) = self.world.upgrade() else {
            return Err("this process has ended its communication".to_owned());
        };
        listen(&world, engine, &self.agent).map_err(|error| error.to_string())
    }
}

impl Asker for Coordinator {
    fn ask(&self, ask: Ask) -> Result<Option<u64>, String> {
        let Some(number) = self.questions.begin() else {
            return Ok(None);
        };
        match self.voice.say(&Message::Question(Question { number, ask })) {
            Ok(()) => Ok(Some(number)),
            Err(error) => {
                self.questions.forget(number);
                Err(format!("the agent of this machine is gone: {error}"))
            }
        }
    }

    fn look(&self, engine: &mut Engine, question: u64) -> Option<Result<Said, String>> {
        if let Some(answer) = self.answered(question) {
            return Some(answer);
        }
        let heard = self.listen(engine);
        if let Some(answer) = self.answered(question) {
            return Some(answer);
        }
        let error = heard.err()?;
        self.questions.forget(question);
        Some(Err(error))
    }

    fn answered(&self, question: u64) -> Option<Result<Said, String>> {
        let answer = self.questions.look(question)?;
        Some(answer.said.map_err(|refusal| refusal.why))
    }

    fn forget(&self, question: u64) {
        self.questions.forget(question);
    }

    fn hear(&self, engine: &mut Engine) {
        // Whoever waits for something that will not come hears of that by itself.
        let _ = self.listen(engine);
    }
}
