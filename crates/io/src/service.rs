// SPDX-License-Identifier: Apache-2.0
//! What processes that reach a file do for those that do not, and the owner of the shared pointer for all. A service is
//! an activity of the engine from open to close: progress drives it, and the program is not asked.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_engine::Request;
use isthmus_wire::file::{ANSWER, Answer, MAX_PAYLOAD, MAX_TEXT, QUESTION, Question, What, decode_runs};
use rustix::fs::FlockOperation;

use crate::disk::{read_all, write_all};
use crate::file::{File, again};
use crate::task::{self, Message, Port};

/// Tag of questions.
const QUESTIONS: i32 = 1;
/// Tags of payloads and answers: with the number of the question.
const PAYLOADS: i32 = 1 << 29;
const ANSWERS: i32 = 1 << 30;
const NUMBERS: u32 = (1 << 20) - 1;

/// A question that was asked.
pub(crate) struct Asked {
    sent: Vec<Message>,
    answer: Message,
}

impl File {
    /// Who cares for this process.
    pub(crate) fn server(&self) -> u32 {
        let near: Vec<u32> = (0..self.comm.size())
            .filter(|rank| self.reach[*rank as usize])
            .collect();
        near.get(self.rank() as usize % near.len().max(1)).copied().unwrap_or(0)
    }

    /// Asks a process. `room`: bytes of data that may come.
    pub(crate) fn ask(&self, port: &Port, whom: u32, what: What, number: u64, payload: &[u8], room: usize) -> Asked {
        let answer = self.questions.fetch_add(1, Ordering::Relaxed) & NUMBERS;
        let question = Question {
            what,
            answer,
            number,
            payload: payload.len() as u64,
        };
        let receive = port.receive(Some(whom), ANSWERS | answer as i32, ANSWER + MAX_TEXT + room);
        self.count(whom, QUESTION + payload.len());
        let mut sent = vec![port.send(whom, QUESTIONS, &question.encode())];
        if !payload.is_empty() {
            sent.push(port.send(whom, PAYLOADS | answer as i32, payload));
        }
        Asked { sent, answer: receive }
    }

    /// Waits for an answer. `before`: bytes that are certainly there, for the error.
    pub(crate) async fn answer(&self, asked: Asked, before: u64) -> Result<Answer> {
        let lost = |error: Error| {
            Error::named(
                error.class,
                format!(
                    "rank {} cannot access {:?}, which is at site {}: {}; {before} bytes of this access are certainly done, of what follows \
                     each block is old or new",
                    self.rank(),
                    self.path,
                    self.site,
                    error
                ),
            )
        };
        for message in asked.sent {
            message.sent().await.map_err(lost)?;
        }
        let bytes = asked.answer.received().await.map_err(lost)?.bytes;
        let answer = Answer::decode(&bytes).map_err(|error| self.garbled(&error))?;
        match answer.class {
            0 => Ok(answer),
            class => Err(Error::named(class as i32, answer.text)),
        }
    }

    /// Moves the shared pointer; gives where it was.
    pub(crate) async fn advance_shared(&self, port: &Port, etypes: u64) -> Result<u64> {
        let home = self.home();
        if self.rank() == home {
            return Ok(self.shared.fetch_add(etypes, Ordering::SeqCst));
        }
        let asked = self.ask(port, home, What::Advance, etypes, &[], 0);
        Ok(self.answer(asked, 0).await?.bytes)
    }

    /// The size of a file that this process does not reach.
    pub(crate) fn ask_size(self: &Arc<Self>) -> Result<u64> {
        let file = self.clone();
        task::run(self.world, self.channel(), |port| {
            Box::pin(async move {
                let asked = file.ask(&port, file.home(), What::Size, 0, &[], 0);
                Ok(file.answer(asked, 0).await?.bytes)
            })
        })
    }

    /// Starts to serve others, if there is anything to do for them.
    pub(crate) fn start_service(self: &Arc<Self>) -> Option<Request> {
        let serves = self.comm.size() > 1 && self.disk.is_some() && (self.has_far() || self.rank() == self.home());
        let file = self.clone();
        serves.then(|| {
            task::start(self.world, self.channel(), false, |port| {
                Box::pin(async move { file.serve(&port).await })
            })
        })
    }

    /// Ends it: nobody asks any more.
    pub(crate) fn stop_service(self: &Arc<Self>, service: Request) -> Result<()> {
        let file = self.clone();
        task::run(self.world, self.channel(), |port| {
            Box::pin(async move {
                let question = Question {
                    what: What::Stop,
                    answer: 0,
                    number: 0,
                    payload: 0,
                };
                port.send(file.rank(), QUESTIONS, &question.encode()).sent().await?;
                Ok(0)
            })
        })?;
        self.world.wait(service).map(drop)
    }

    pub(crate) async fn serve(self: Arc<Self>, port: &Port) -> Result<u64> {
        loop {
            let message = port.receive(None, QUESTIONS, QUESTION).received().await?;
            let Ok(question) = Question::decode(&message.bytes) else {
                // Whoever sent that waits for an answer that cannot be named; its own library tells it what it sent.
                continue;
            };
            if question.what == What::Stop && message.source == self.rank() {
                return Ok(0);
            }
            let last = question.what == What::Stop && self.is_guest();
            let number = (question.answer & NUMBERS) as i32;
            let payload = match question.payload {
                0 => Vec::new(),
                length => {
                    let coming = port.receive(Some(message.source), PAYLOADS | number, length as usize);
                    coming.received().await?.bytes
                }
            };
            let answer = match self.clone().serve_one(port, question, payload).await {
                Ok(answer) => answer,
                Err(error) => Answer::of_error(error.class as u32, self.named(error).to_string()),
            };
            let bytes = answer.encode();
            self.count(message.source, bytes.len());
            let sent = port.send(message.source, ANSWERS | number, &bytes);
            if last {
                sent.sent().await?;
                return Ok(0);
            }
            sent.leave();
        }
    }

    async fn serve_one(self: Arc<Self>, port: &Port, question: Question, payload: Vec<u8>) -> Result<Answer> {
        let number = |bytes| Answer {
            bytes,
            ..Answer::default()
        };
        match question.what {
            What::Stop if self.is_guest() => port
                .disk(move || self.delete_if_asked())
                .await
                .map(|()| Answer::default()),
            What::Stop => fail!(abi::MPI_ERR_INTERN, "only a process itself ends its service"),
            What::Advance => Ok(number(self.shared.fetch_add(question.number, Ordering::SeqCst))),
            What::Size => self.size().map(number),
            What::Read => port.disk(move || self.read_runs(question.number, &payload)).await,
            What::Write => port
                .disk(move || self.write_runs(question.number, &payload))
                .await
                .map(number),
            What::SetSize | What::Preallocate | What::Sync | What::Seek | What::Atomic => {
                let (what, argument) = (question.what, question.number);
                port.disk(move || self.act_here(what, argument)).await?;
                Ok(Answer::default())
            }
        }
    }

    /// Does something to the file here, or asks a guest to do it.
    pub(crate) async fn act(self: &Arc<Self>, port: &Port, what: What, argument: u64) -> Result<()> {
        if self.disk.is_some() {
            let here = self.clone();
            return port.disk(move || here.act_here(what, argument)).await;
        }
        let asked = self.ask(port, self.home(), what, argument, &[], 0);
        self.answer(asked, 0).await.map(drop)
    }

    fn act_here(&self, what: What, argument: u64) -> Result<()> {
        let disk = self.disk()?;
        let (doing, done) = match what {
            What::SetSize => ("set the size of", again(|| disk.set_len(argument))),
            What::Preallocate => ("preallocate", preallocate(&disk, argument)),
            What::Sync => ("sync", again(|| disk.sync_all())),
            What::Seek => {
                self.shared.store(argument, Ordering::SeqCst);
                return Ok(());
            }
            What::Atomic => return self.become_atomic(argument != 0),
            other => fail!(abi::MPI_ERR_INTERN, "{other:?} is nothing that is done to a file"),
        };
        done.map_err(|error| self.failed(doing, &error))
    }

    fn become_atomic(&self, atomic: bool) -> Result<()> {
        let tried = match atomic {
            true => self
                .lock(FlockOperation::LockShared)
                .and_then(|()| self.lock(FlockOperation::Unlock)),
            false => Ok(()),
        };
        tried.map_err(|error| {
            Error::named(
                abi::MPI_ERR_UNSUPPORTED_OPERATION,
                format!(
                    "atomic mode needs locks of the file system, and {}",
                    self.failed("lock", &error)
                ),
            )
        })?;
        self.atomic.store(atomic, Ordering::Relaxed);
        Ok(())
    }

    /// What closing does to the file.
    pub(crate) fn delete_if_asked(&self) -> Result<()> {
        match self.mode.has(abi::MPI_MODE_DELETE_ON_CLOSE) {
            true => std::fs::remove_file(&*self.path).map_err(|error| self.failed("delete", &error)),
            false => Ok(()),
        }
    }

    fn read_runs(&self, number: u64, payload: &[u8]) -> Result<Answer> {
        let (runs, total, _) =
            decode_runs(payload, number as usize, MAX_PAYLOAD as u64).map_err(|error| self.garbled(&error))?;
        let (disk, _atom) = (self.disk()?, self.atom(false)?);
        let (mut data, mut done) = (vec![0; total as usize], 0);
        for (place, length) in runs {
            let moved = read_all(&*disk, &mut data[done..][..length as usize], place);
            done += moved.bytes as usize;
            if let Some(error) = moved.error {
                return Err(self.failed("read", &error));
            }
            if moved.bytes < length {
                break;
            }
        }
        data.truncate(done);
        Ok(Answer {
            bytes: done as u64,
            data,
            ..Answer::default()
        })
    }

    fn write_runs(&self, number: u64, payload: &[u8]) -> Result<u64> {
        let (runs, total, mut data) =
            decode_runs(payload, number as usize, MAX_PAYLOAD as u64).map_err(|error| self.garbled(&error))?;
        if data.len() as u64 != total {
            return Err(self.garbled(&"data are missing"));
        }
        let (disk, _atom) = (self.disk()?, self.atom(true)?);
        for (place, length) in runs {
            let (piece, rest) = data.split_at(length as usize);
            if let Some(error) = write_all(&*disk, piece, place).error {
                return Err(self.failed("write", &error));
            }
            data = rest;
        }
        Ok(total)
    }
}

/// Room on the disk. Where a file system cannot promise that it still makes the file so long.
fn preallocate(disk: &std::fs::File, size: u64) -> io::Result<()> {
    if size == 0 {
        return Ok(());
    }
    let flags = rustix::fs::FallocateFlags::empty();
    match again(|| Ok(rustix::fs::fallocate(disk, flags, 0, size)?)) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => match disk.metadata()?.len() < size {
            true => again(|| disk.set_len(size)),
            false => Ok(()),
        },
        done => done,
    }
}
