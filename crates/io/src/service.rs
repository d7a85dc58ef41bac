// SPDX-License-Identifier: Apache-2.0
//! What processes that reach a file do for those that do not, and the owner of the shared pointer for all. A service is
//! an activity of the engine from open to close: progress drives it, and the program is not asked. Who asks what cannot
//! be asked is lost, and all others are answered as before ([`ears`](crate::ears)).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use isthmus_core::error::Result;
use isthmus_engine::Request;
use isthmus_wire::file::{Answer, Question, What};

use crate::asking::{ANSWERS, QUESTIONS};
use crate::ears::{Asked, Ears, FIRST};
use crate::file::File;
use crate::processes::Processes;
use crate::task::{self, Port};

/// A process that answers questions about a file which it reaches.
pub(crate) struct Service {
    file: Arc<File>,
}

impl Service {
    pub(crate) fn of(file: Arc<File>) -> Self {
        Self { file }
    }

    /// Starts to serve others, if there is anything to do for them.
    pub(crate) fn start(self) -> Option<Request> {
        let processes = &self.file.processes;
        if !processes.is_asked() {
            return None;
        }
        let (world, channel) = (processes.world(), processes.channel().clone());
        Some(task::start(world, &channel, false, |port| {
            Box::pin(async move { self.run(&port).await })
        }))
    }

    /// Ends it: nobody asks any more.
    pub(crate) fn stop(processes: &Processes, service: Request) -> Result<()> {
        let me = processes.rank();
        processes.alone(|port| {
            Box::pin(async move {
                let question = Question {
                    what: What::Stop,
                    answer: 0,
                    number: 0,
                    payload: 0,
                };
                port.send(me, QUESTIONS, &question.encode()).sent().await?;
                Ok(0)
            })
        })?;
        processes.world().wait(service).map(drop)
    }

    pub(crate) async fn run(self, port: &Port) -> Result<u64> {
        let (processes, here) = (&self.file.processes, &self.file.here);
        let mut ears = Ears::new(port, processes.is_guest());
        loop {
            let Some(Asked {
                source,
                question,
                payload,
            }) = ears.next(port).await
            else {
                // Whoever has opened it for the others is lost, and nobody will close it.
                return Ok(0);
            };
            let stops = question.what == What::Stop;
            if stops && source == processes.rank() {
                return Ok(0);
            }
            if stops && !(processes.is_guest() && source == FIRST) {
                ears.forget(port, source, "the end of a service that is not its own");
                continue;
            }
            let number = Processes::question(question.answer) as i32;
            let answer = match self.answer(port, source, question, payload).await {
                Ok(answer) => answer,
                Err(error) => Answer::of_error(error.class as u32, here.named(error).to_string()),
            };
            let bytes = answer.encode();
            processes.count(source, bytes.len());
            let sent = port.send(source, ANSWERS | number, &bytes);
            if stops {
                sent.sent().await?;
                return Ok(0);
            }
            sent.leave();
        }
    }

    /// Whether it may do that for a process. What no file is touched by is not asked about.
    fn check(&self, source: u32, what: What) -> Result<()> {
        match what {
            What::Stop | What::Advance | What::Seek => Ok(()),
            _ if self.file.processes.is_elsewhere(source) => self.file.here.withheld(),
            _ => Ok(()),
        }
    }

    async fn answer(&self, port: &Port, source: u32, question: Question, payload: Vec<u8>) -> Result<Answer> {
        self.check(source, question.what)?;
        let number = |bytes| Answer {
            bytes,
            ..Answer::default()
        };
        let here = self.file.here.clone();
        match question.what {
            What::Stop => {
                port.disk(move || here.delete_if_asked()).await?;
                Ok(Answer::default())
            }
            What::Advance => Ok(number(self.file.shared.fetch_add(question.number, Ordering::SeqCst))),
            What::Size => here.size().map(number),
            What::Read => port.disk(move || here.read_runs(question.number, &payload)).await,
            What::Write => {
                let written = port.disk(move || here.write_runs(question.number, &payload));
                written.await.map(number)
            }
            What::SetSize | What::Preallocate | What::Sync | What::Seek | What::Atomic => {
                self.file.act_here(port, question.what, question.number).await?;
                Ok(Answer::default())
            }
        }
    }
}
