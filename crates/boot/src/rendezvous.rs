// SPDX-License-Identifier: Apache-2.0
//! The conversation with the agent of this machine: hello, world, questions, abort, finished, dismissed.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use isthmus_transport::is_readable;
use isthmus_wire::boot::{Counters, Gone, Hello, Message, NOT_LET_IN, VERSION, World};
use isthmus_wire::codec::Deframer;
use isthmus_wire::place::Representation;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::BootError;
use crate::questions::Questions;

/// What the agent put into the environment of a process it started.
#[derive(Clone)]
pub struct Invitation {
    path: String,
    token: [u8; 16],
    index: u32,
}

impl Invitation {
    /// Reads the environment. `Ok(None)`: nobody started us, this is a world of one.
    pub fn from_environment() -> Result<Option<Self>, BootError> {
        let Some(path) = variable(isthmus_settings::RENDEZVOUS)? else {
            return Ok(None);
        };
        let token = variable(isthmus_settings::TOKEN)?.and_then(|t| parse_token(&t));
        let index = isthmus_settings::INDEX.read(std::env::var_os);
        let index = index.and_then(|index| index.try_into().ok());
        let (Some(token), Some(index)) = (token, index) else {
            return Err(BootError::Environment(
                "ISTHMUS_RENDEZVOUS is set but ISTHMUS_TOKEN or ISTHMUS_INDEX is missing or malformed; \
                 start the program with isthmus run or mpiexec, or unset ISTHMUS_RENDEZVOUS for a world of one"
                    .into(),
            ));
        };
        Ok(Some(Self { path, token, index }))
    }
}

fn variable(setting: isthmus_settings::Text) -> Result<Option<String>, BootError> {
    let name = setting.name;
    let Some(value) = std::env::var_os(name) else {
        return Ok(None);
    };
    let text = value.into_string();
    text.map(Some)
        .map_err(|_| BootError::Environment(format!("{name} is not text")))
}

fn parse_token(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    let mut token = [0; 16];
    for (i, byte) in token.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(token)
}

/// The open conversation.
pub struct Agent {
    stream: UnixStream,
    deframer: Deframer,
    voice: Voice,
    /// What was asked, until its answer is taken.
    questions: Questions,
    /// What was heard while nobody waited for an answer, and is none.
    heard: Option<Result<Message, BootError>>,
}

/// What the agent has said without being asked.
pub(crate) enum Unasked {
    /// Nothing, as yet.
    Nothing,
    Gone(Gone),
    /// The answer to a question has come.
    Answered,
    /// The job ends; who asks hears it.
    End,
    /// It says no more that could be heard before this process asks.
    Silence,
}

/// What several threads of the process say to the agent, message by message.
#[derive(Clone)]
pub(crate) struct Voice(Arc<Mutex<UnixStream>>);

impl Voice {
    /// Says it, as soon as there is room.
    pub(crate) fn say(&self, message: &Message) -> std::io::Result<()> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(&message.encode())
    }

    /// Says it unless that would take time: somebody else speaks, or the agent does not listen. For small messages,
    /// which fit where there is any room. Whether it was said.
    pub(crate) fn mention(&self, message: &Message) -> bool {
        let Ok(mut stream) = self.0.try_lock() else {
            return false;
        };
        let mut ready = [PollFd::new(&*stream, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut ready, Some(&now)) == Ok(1) && ready[0].revents() == PollFlags::OUT {
            // The agent's end is noticed by whoever waits for it.
            return stream.write_all(&message.encode()).is_ok();
        }
        false
    }
}

impl Agent {
    /// Says hello and waits, as long as co-allocation takes, for the world. `vendor`: the rank of this process in a job
    /// of the vendor MPI, if it is part of one.
    pub fn join(
        invitation: &Invitation,
        port: u16,
        representation: Representation,
        vendor: Option<u32>,
        signing_request: Vec<u8>,
    ) -> Result<(Self, World), BootError> {
        let mut agent = Self::greet(invitation, port, representation, vendor, signing_request)?;
        match agent.hear()? {
            Message::World(world) => {
                if world.rank as usize >= world.places.places.len() {
                    return Err(BootError::agent("the place table does not contain this process".into()));
                }
                Ok((agent, *world))
            }
            Message::Abort {
                code: NOT_LET_IN,
                reason,
            } => Err(BootError::Environment(reason)),
            Message::Abort { reason, .. } => Err(BootError::Aborted(reason)),
            other => Err(BootError::agent(format!(
                "unexpected answer to hello: {}",
                name(&other)
            ))),
        }
    }

    /// This process cannot take part: the job hears why once, however many processes have the same trouble.
    pub(crate) fn give_up(invitation: &Invitation, representation: Representation, reason: String) -> BootError {
        let greeted = Self::greet(invitation, 0, representation, None, Vec::new());
        match greeted.and_then(|mut agent| agent.abort(1, &reason)) {
            Ok(()) => BootError::Aborted(reason),
            // Nobody is told but who reads this.
            Err(_) => BootError::System(reason),
        }
    }

    fn greet(
        invitation: &Invitation,
        port: u16,
        representation: Representation,
        vendor: Option<u32>,
        signing_request: Vec<u8>,
    ) -> Result<Self, BootError> {
        let stream = UnixStream::connect(&invitation.path)
            .map_err(|e| BootError::agent(format!("cannot connect to the agent at {}: {e}", invitation.path)))?;
        let other = stream
            .try_clone()
            .map_err(|e| BootError::System(format!("cannot duplicate a descriptor: {e}")))?;
        let agent = Self {
            stream,
            deframer: Deframer::default(),
            voice: Voice(Arc::new(Mutex::new(other))),
            questions: Questions::default(),
            heard: None,
        };
        agent.say(&Message::Hello(Hello {
            version: VERSION,
            token: invitation.token,
            index: invitation.index,
            pid: std::process::id(),
            port,
            representation,
            vendor,
            signing_request,
        }))?;
        Ok(agent)
    }

    /// For other threads.
    pub(crate) fn voice(&self) -> Voice {
        self.voice.clone()
    }

    /// What threads of this process ask.
    pub(crate) fn questions(&self) -> Questions {
        self.questions.clone()
    }

    /// Why it says nothing more.
    pub(crate) fn why_silent(&self) -> BootError {
        match &self.heard {
            Some(Err(error)) => error.clone(),
            Some(Ok(Message::Abort { reason, .. })) => BootError::Aborted(reason.clone()),
            Some(Ok(other)) => BootError::agent(format!("unexpected message: {}", name(other))),
            None => BootError::agent("it says nothing more".into()),
        }
    }

    /// Tells the agent that the job must end.
    pub fn abort(&mut self, code: i32, reason: &str) -> Result<(), BootError> {
        self.say(&Message::Abort {
            code,
            reason: reason.to_owned(),
        })?;
        // The agent ends this process; a lost agent is no reason to stay.
        let _ = self.stream.set_read_timeout(Some(Duration::from_secs(2)));
        let _ = self.hear();
        Ok(())
    }

    /// Says finished and waits until every process of the job has said so. `wait`: returns when there is something to
    /// read; meanwhile others may need this process. `gone`: others have died meanwhile.
    pub fn finish(
        &mut self,
        counters: Counters,
        wait: impl Fn(BorrowedFd<'_>),
        gone: impl Fn(&Gone),
    ) -> Result<(), BootError> {
        self.say(&Message::Finished(counters))?;
        let answer = loop {
            // Several words may have come at once.
            if self.heard.is_none() {
                match self.next_body()? {
                    Some(body) => self.heard = Some(decode(&body)),
                    None => wait(self.stream.as_fd()),
                }
            }
            match self.hear()? {
                Message::Gone(who) => gone(&who),
                // Nobody waits for it any more.
                Message::Answer(answer) => drop(self.questions.take(answer)),
                answer => break answer,
            }
        };
        match answer {
            Message::Dismissed => Ok(()),
            Message::Abort { reason, .. } => Err(BootError::Aborted(reason)),
            other => Err(BootError::agent(format!(
                "unexpected answer to finished: {}",
                name(&other)
            ))),
        }
    }

    fn say(&self, message: &Message) -> Result<(), BootError> {
        self.voice
            .say(message)
            .map_err(|e| BootError::agent(format!("the agent of this machine is gone: {e}")))
    }

    /// For other threads: its descriptor, which is readable when there is something to [hear](Agent::hear_unasked).
    pub(crate) fn descriptor(&self) -> std::io::Result<OwnedFd> {
        self.stream.as_fd().try_clone_to_owned()
    }

    /// What the agent has said by now, without waiting.
    pub(crate) fn hear_unasked(&mut self) -> Unasked {
        // After the word that the job ends others may still die, and who waits for them has to hear it.
        if self.heard.as_ref().is_some_and(|heard| !is_end(heard)) {
            return Unasked::Silence;
        }
        match self.next_body() {
            Ok(Some(body)) => self.take_unasked(&body),
            Ok(None) if !is_readable(self.stream.as_fd()) => Unasked::Nothing,
            // What comes now has come: no wait.
            Ok(None) => match self.read_some().and_then(|()| self.next_body()) {
                Ok(Some(body)) => self.take_unasked(&body),
                Ok(None) => Unasked::Nothing,
                Err(error) => self.silence(Err(error)),
            },
            Err(error) => self.silence(Err(error)),
        }
    }

    fn take_unasked(&mut self, body: &[u8]) -> Unasked {
        match decode(body) {
            Ok(Message::Gone(gone)) => Unasked::Gone(gone),
            // An answer that nobody waits for is of no use, and no harm.
            Ok(Message::Answer(answer)) => {
                self.questions.take(answer);
                Unasked::Answered
            }
            heard if is_end(&heard) => {
                self.heard.get_or_insert(heard);
                Unasked::End
            }
            other => self.silence(other),
        }
    }

    /// What is heard first stays: it is the answer for who asks.
    fn silence(&mut self, heard: Result<Message, BootError>) -> Unasked {
        self.heard.get_or_insert(heard);
        Unasked::Silence
    }

    fn next_body(&mut self) -> Result<Option<Vec<u8>>, BootError> {
        let body = self.deframer.next_body();
        body.map_err(|e| BootError::agent(format!("malformed message: {e}")))
    }

    /// Waits for some bytes.
    fn read_some(&mut self) -> Result<(), BootError> {
        let mut buffer = [0; 65536];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    return Err(BootError::agent(
                        "the agent of this machine closed the connection".into(),
                    ));
                }
                Ok(n) => {
                    self.deframer.feed(&buffer[..n]);
                    return Ok(());
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(BootError::agent(format!("the agent of this machine is gone: {e}"))),
            }
        }
    }

    fn hear(&mut self) -> Result<Message, BootError> {
        if let Some(heard) = self.heard.take() {
            return heard;
        }
        loop {
            if let Some(body) = self.next_body()? {
                return decode(&body);
            }
            self.read_some()?;
        }
    }
}

fn decode(body: &[u8]) -> Result<Message, BootError> {
    Message::decode(body).map_err(|e| BootError::agent(format!("malformed message: {e}")))
}

/// Whether it says that the job ends.
fn is_end(heard: &Result<Message, BootError>) -> bool {
    matches!(heard, Ok(Message::Abort { .. }))
}

fn name(message: &Message) -> &'static str {
    match message {
        Message::Hello(_) => "hello",
        Message::World(_) => "world",
        Message::Abort { .. } => "abort",
        Message::Finished(_) => "finished",
        Message::Dismissed => "dismissed",
        Message::Traffic(_) => "traffic",
        Message::Trace(_) => "trace",
        Message::Waiting(_) => "waiting",
        Message::Time(_) => "time",
        Message::Gone(_) => "gone",
        Message::Question(_) => "question",
        Message::Answer(_) => "answer",
    }
}

/// The file that a word of the agent names.
pub(crate) fn path_of(word: &str) -> PathBuf {
    OsString::from_vec(isthmus_wire::word::to_bytes(word)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_32_hexadecimal_digits() {
        assert_eq!(parse_token("000102030405060708090a0b0c0d0eff").unwrap()[15], 255);
        assert!(parse_token("0001").is_none());
        assert!(parse_token(&"g".repeat(32)).is_none());
        assert!(parse_token(&"ä".repeat(16)).is_none());
    }

    #[test]
    fn at_the_end_nobody_waits_for_a_word_that_came_with_a_death() {
        let (stream, mut agent) = UnixStream::pair().unwrap();
        let mut own = Agent {
            voice: Voice(Arc::new(Mutex::new(stream.try_clone().unwrap()))),
            questions: Questions::default(),
            stream,
            deframer: Deframer::default(),
            heard: None,
        };
        let gone = Message::Gone(Gone {
            number: 0,
            goes_on: true,
            world: [0; 16],
            first: 1,
            count: 1,
            reason: "killed".into(),
        });
        let both = [gone.encode(), Message::Dismissed.encode()].concat();
        agent.write_all(&both).unwrap();
        let waits = |stream: BorrowedFd<'_>| assert!(is_readable(stream), "it would wait for ever");
        assert!(
            own.finish(Counters::default(), waits, |gone| assert_eq!(gone.first, 1))
                .is_ok()
        );
    }

    #[test]
    fn deaths_are_heard_after_the_word_that_the_job_ends() {
        let (stream, mut agent) = UnixStream::pair().unwrap();
        let mut own = Agent {
            voice: Voice(Arc::new(Mutex::new(stream.try_clone().unwrap()))),
            questions: Questions::default(),
            stream,
            deframer: Deframer::default(),
            heard: None,
        };
        let gone = |first| {
            Message::Gone(Gone {
                number: first,
                goes_on: false,
                world: [0; 16],
                first,
                count: 1,
                reason: "killed".into(),
            })
        };
        let end = Message::Abort {
            code: 137,
            reason: "killed".into(),
        };
        for message in [gone(3), end, gone(2)] {
            agent.write_all(&message.encode()).unwrap();
        }
        assert!(matches!(own.hear_unasked(), Unasked::Gone(Gone { first: 3, .. })));
        assert!(matches!(own.hear_unasked(), Unasked::End));
        assert!(matches!(own.hear_unasked(), Unasked::Gone(Gone { first: 2, .. })));
        assert!(matches!(own.hear_unasked(), Unasked::Nothing));
        drop(agent);
        assert!(matches!(own.hear_unasked(), Unasked::Silence));
        assert!(
            matches!(own.hear(), Ok(Message::Abort { code: 137, .. })),
            "who asks hears what came first"
        );
    }
}
