// SPDX-License-Identifier: Apache-2.0
//! Operations among the processes of a file, written as futures that exchange messages and use the disk.
//!
//! A [`Post`] is what such a future acts through: it notes what shall be sent and received; whoever drives the future
//! tells the engine. Two drive one: [`run`] for a blocking call, which uses the disk on its own thread and never with
//! the engine locked, and [`start`], which leaves it to progress as an [`Activity`] and lets a thread of the pool use
//! the disk.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use isthmus_core::error::Result;
use isthmus_core::world::World;
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{
    Activity, Channel, Completion, Core, Engine, EngineError, ReceiveBuffer, Request, SendBuffer, Special,
};

use crate::pool::{self, Work};

/// What a future gives in the end: bytes for the status.
pub(crate) type Done = Result<u64>;

/// A future to drive.
pub(crate) type Operation = Pin<Box<dyn Future<Output = Done> + Send>>;

enum Wish {
    Send(u32, i32, OwnMemory),
    Receive(Option<u32>, i32, OwnMemory),
}

enum Slot {
    Waits,
    /// For anybody's message.
    Listens,
    /// A message of this rank has begun to come.
    Begun(u32),
    /// With its memory.
    Done(Completion, OwnMemory),
    /// Nobody waits.
    Left,
    Taken,
}

#[derive(Default)]
struct Mailbox {
    wishes: Vec<(usize, Wish)>,
    slots: Vec<Slot>,
    /// Ranks that have broken the rules, and how.
    accused: Vec<(u32, &'static str)>,
    /// Something else than a message is over.
    changed: bool,
    /// All processes of the channel take part.
    together: bool,
}

/// What a future acts through.
#[derive(Clone)]
pub(crate) struct Post {
    shared: Arc<Mutex<Mailbox>>,
    /// Wakes who drives the future.
    wake: Arc<dyn Fn() + Send + Sync>,
    /// Whether the disk is used by the thread that waits for the future.
    at_once: bool,
}

/// A message under way.
pub(crate) struct Message {
    post: Post,
    slot: usize,
}

/// What became of a receive.
pub(crate) enum Heard {
    /// A message.
    Message(Received),
    /// One that is longer than it may be, of this rank.
    TooLong(u32),
    /// None will come: whoever could send it is lost.
    Nobody,
}

/// A message that has come.
pub(crate) struct Received {
    /// Rank of the sender.
    pub(crate) source: u32,
    /// Its content.
    pub(crate) bytes: Vec<u8>,
}

impl Post {
    fn lock(&self) -> MutexGuard<'_, Mailbox> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wish(&self, wish: Wish) -> Message {
        let waits = || match wish {
            Wish::Receive(None, ..) => Slot::Listens,
            _ => Slot::Waits,
        };
        let mut inner = self.lock();
        // A place that was used is used again: services run for as long as their file is open.
        let free = inner.slots.iter().position(|slot| matches!(slot, Slot::Taken));
        let slot = free.unwrap_or(inner.slots.len());
        if slot == inner.slots.len() {
            inner.slots.push(waits());
        } else {
            inner.slots[slot] = waits();
        }
        inner.wishes.push((slot, wish));
        drop(inner);
        Message {
            post: self.clone(),
            slot,
        }
    }

    /// From now on the operation is one of all processes of the channel. If one of them is lost it fails wherever it
    /// waits: those who noticed it first have ended it, and send nothing any more.
    pub(crate) fn act_together(&self) {
        self.lock().together = true;
    }

    /// Sends bytes; they have left when the message is awaited.
    pub(crate) fn send(&self, to: u32, tag: i32, bytes: impl Into<Vec<u8>>) -> Message {
        let memory = OwnMemory::of(bytes.into());
        self.wish(Wish::Send(to, tag, memory))
    }

    /// Receives at most `room` bytes.
    pub(crate) fn receive(&self, from: Option<u32>, tag: i32, room: usize) -> Message {
        let memory = OwnMemory::of(vec![0; room]);
        self.wish(Wish::Receive(from, tag, memory))
    }

    /// This rank has broken the rules: it is lost, for this reason.
    pub(crate) fn accuse(&self, rank: u32, what: &'static str) {
        let mut inner = self.lock();
        inner.accused.push((rank, what));
        inner.changed = true;
    }

    /// Something that the future waits for may have changed.
    pub(crate) fn nudge(&self) {
        self.lock().changed = true;
        (self.wake)();
    }

    /// Does something that may take the disk's time.
    pub(crate) async fn disk<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        match self.at_once {
            true => work(),
            false => self.elsewhere(pool::run, work).await,
        }
    }

    /// Does something that may wait for other processes: it takes no thread that their work needs.
    pub(crate) async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.elsewhere(pool::apart, work).await
    }

    async fn elsewhere<T: Send + 'static>(&self, run: fn(Work), work: impl FnOnce() -> T + Send + 'static) -> T {
        let place = Arc::new(Mutex::new(None));
        let (result, post) = (place.clone(), self.clone());
        run(Box::new(move || {
            let value = work();
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            post.nudge();
        }));
        std::future::poll_fn(|_| {
            let value = place.lock().unwrap_or_else(PoisonError::into_inner).take();
            value.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

impl Message {
    async fn completion(self) -> Result<(Completion, OwnMemory)> {
        let Self { post, slot } = self;
        let (done, memory) = std::future::poll_fn(|_| {
            let mut inner = post.lock();
            match std::mem::replace(&mut inner.slots[slot], Slot::Waits) {
                Slot::Done(completion, memory) => {
                    inner.slots[slot] = Slot::Taken;
                    Poll::Ready((completion, memory))
                }
                other => {
                    inner.slots[slot] = other;
                    Poll::Pending
                }
            }
        })
        .await;
        match &done.error {
            Some(error) => Err(error.into()),
            None => Ok((done, memory)),
        }
    }

    /// What became of a receive, once that is known. Nothing is left of it then.
    pub(crate) fn heard(&self) -> Option<Heard> {
        let mut inner = self.post.lock();
        let slot = &mut inner.slots[self.slot];
        if !matches!(slot, Slot::Done(..)) {
            return None;
        }
        let Slot::Done(done, memory) = std::mem::replace(slot, Slot::Taken) else {
            return None;
        };
        Some(match done.error {
            None => Heard::Message(Received {
                source: done.source,
                bytes: content(memory, done.bytes),
            }),
            Some(EngineError::Truncate { source, .. }) => Heard::TooLong(source),
            Some(_) => Heard::Nobody,
        })
    }

    /// Whose message it is that has begun to come where anybody's may.
    pub(crate) fn begun(&self) -> Option<u32> {
        match self.post.lock().slots[self.slot] {
            Slot::Begun(rank) => Some(rank),
            _ => None,
        }
    }

    /// Lets a message leave by itself.
    pub(crate) fn leave(self) {
        let mut inner = self.post.lock();
        let slot = &mut inner.slots[self.slot];
        *slot = match slot {
            Slot::Done(..) => Slot::Taken,
            _ => Slot::Left,
        };
    }

    /// Waits until a message has left.
    pub(crate) async fn sent(self) -> Result<()> {
        self.completion().await.map(drop)
    }

    /// Waits for a message.
    pub(crate) async fn received(self) -> Result<Received> {
        let (done, memory) = self.completion().await?;
        Ok(Received {
            source: done.source,
            bytes: content(memory, done.bytes),
        })
    }
}

/// The message that has come to this memory.
fn content(memory: OwnMemory, bytes: u64) -> Vec<u8> {
    let mut content = memory.into_content();
    content.truncate(bytes as usize);
    content
}

/// A future with what it has under way.
pub(crate) struct Driver {
    channel: Channel,
    post: Post,
    operation: Operation,
    under_way: Vec<(usize, Request, OwnMemory)>,
    /// Receives of it for anybody's message, of which none has begun to come.
    listening: Vec<(usize, Request)>,
    /// What the engine had counted when all that is under way was looked at.
    seen: Option<u64>,
    calls_user: bool,
}

impl Driver {
    fn poll(&mut self) -> Option<Done> {
        match self.operation.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }

    /// Tells the engine what the future wants, and the future what is over; true if there is news for it.
    fn exchange(&mut self, engine: &mut Core) -> bool {
        let post = self.post.clone();
        let mut inner = post.lock();
        for (slot, wish) in std::mem::take(&mut inner.wishes) {
            let (request, memory) = match wish {
                Wish::Send(to, tag, memory) => {
                    let (_, end) = memory.bounds();
                    let buffer = SendBuffer::contiguous(memory.reading(), 0, end as u64);
                    (engine.post_send(&self.channel, to, tag, buffer), memory)
                }
                Wish::Receive(from, tag, memory) => {
                    let (_, end) = memory.bounds();
                    let buffer = ReceiveBuffer::contiguous(memory.memory(), 0, end as u64);
                    let request = match from {
                        Some(_) => engine.post_receive(&self.channel, from, tag, buffer),
                        // Who is lost asks nothing any more, and the others go on.
                        None => {
                            let channel = Channel {
                                members: isthmus_engine::surviving(engine, &self.channel.members),
                                ..self.channel.clone()
                            };
                            let request = engine.post_receive(&channel, None, tag, buffer);
                            self.listening.push((slot, request));
                            request
                        }
                    };
                    (request, memory)
                }
            };
            self.under_way.push((slot, request, memory));
        }
        self.accuse(engine, &mut inner);
        let mut news = std::mem::take(&mut inner.changed);
        news |= self.look(engine, &mut inner);
        let waits = !news && inner.together && !self.under_way.is_empty();
        match waits.then(|| engine.lost_of(&self.channel.members)).flatten() {
            Some(error) => {
                drop(inner);
                self.fail(engine, &error);
                true
            }
            None => news,
        }
    }

    /// What is over, and whose message has begun to come; true if there is anything. All that is under way is looked at
    /// only if anything has ended in the engine since the last time.
    fn look(&mut self, engine: &mut Core, inner: &mut Mailbox) -> bool {
        let mut news = false;
        if self.seen != Some(engine.events()) {
            self.seen = Some(engine.events());
            self.under_way.retain_mut(|(slot, request, memory)| {
                let Some(completion) = engine.take(*request) else {
                    return true;
                };
                news = true;
                // The last one who has it, since the engine has done with it: its content need not be copied.
                let memory = std::mem::replace(memory, OwnMemory::of(Vec::new()));
                inner.slots[*slot] = match inner.slots[*slot] {
                    Slot::Left => Slot::Taken,
                    _ => Slot::Done(completion, memory),
                };
                false
            });
        }
        self.listening.retain(|(slot, request)| {
            let listens = matches!(inner.slots[*slot], Slot::Listens);
            let Some(rank) = isthmus_engine::matched(engine, *request).filter(|_| listens) else {
                return listens;
            };
            inner.slots[*slot] = Slot::Begun(rank);
            news = true;
            false
        });
        news
    }

    /// Everything that is under way has failed. It may yet come, so its memory is never used for anything else.
    fn fail(&mut self, engine: &mut Core, error: &EngineError) {
        let slots: Vec<usize> = self.under_way.iter().map(|(slot, ..)| *slot).collect();
        self.abandon(engine);
        let mut inner = self.post.lock();
        for slot in slots {
            inner.slots[slot] = match inner.slots[slot] {
                Slot::Left => Slot::Taken,
                _ => {
                    let completion = Completion {
                        error: Some(error.clone()),
                        ..Completion::default()
                    };
                    Slot::Done(completion, OwnMemory::of(Vec::new()))
                }
            };
        }
    }
}

impl Driver {
    /// Tells the engine who has broken the rules.
    fn accuse(&self, engine: &mut Core, inner: &mut Mailbox) {
        for (rank, what) in inner.accused.drain(..) {
            engine.accuse(self.channel.members.peer(rank), what);
        }
    }

    /// Gives up what is still under way after an error. A message may yet come, so its memory is never used for
    /// anything else.
    fn abandon(&mut self, engine: &mut Core) {
        self.accuse(engine, &mut self.post.lock());
        for (_, request, memory) in self.under_way.drain(..) {
            if engine.take(request).is_none() {
                engine.release(request);
                std::mem::forget(memory);
            }
        }
    }
}

impl Driver {
    /// Goes on as far as it can without waiting.
    pub(crate) fn go_on(&mut self, core: &mut Core) -> Option<Done> {
        while self.exchange(core) {
            if let Some(done) = self.poll() {
                self.abandon(core);
                return Some(done);
            }
        }
        None
    }
}

impl Activity<Engine> for Driver {
    fn advance(&mut self, engine: &mut Engine) -> Option<Completion> {
        self.go_on(&mut engine.core).map(completion)
    }

    fn calls_user(&self) -> bool {
        self.calls_user
    }
}

fn completion(done: Done) -> Completion {
    match done {
        Ok(bytes) => Completion {
            bytes,
            ..Completion::default()
        },
        Err(error) => Completion {
            error: Some(EngineError::Elsewhere {
                class: error.class,
                text: error.to_string().into(),
            }),
            ..Completion::default()
        },
    }
}

fn driver(channel: &Channel, post: Post, operation: Operation, calls_user: bool) -> Driver {
    // Messages of the library go in frames also where a vendor MPI is underneath.
    let channel = Channel {
        special: Special::none(),
        slab: None,
        node: None,
        ..channel.clone()
    };
    // The first round polls it.
    post.lock().changed = true;
    Driver {
        channel,
        post,
        operation,
        under_way: Vec::new(),
        listening: Vec::new(),
        seen: None,
        calls_user,
    }
}

/// What a future of this process acts through.
fn post(world: &'static World, at_once: bool) -> Post {
    Post {
        shared: Arc::default(),
        wake: Arc::new(|| world.engine().wake()),
        at_once,
    }
}

/// Does an operation and waits for its end.
pub(crate) fn run(world: &'static World, channel: &Channel, operation: impl FnOnce(Post) -> Operation) -> Done {
    let post = post(world, true);
    let mut driver = driver(channel, post.clone(), operation(post), true);
    loop {
        // What changes from now on is news.
        driver.post.lock().changed = false;
        if let Some(done) = driver.poll() {
            driver.abandon(&mut world.engine().lock().core);
            return done;
        }
        world
            .engine()
            .wait(|engine| driver.exchange(&mut engine.core).then_some(()));
    }
}

/// Starts an operation; the request's completion has its bytes.
pub(crate) fn start(
    world: &'static World,
    channel: &Channel,
    calls_user: bool,
    operation: impl FnOnce(Post) -> Operation,
) -> Request {
    let post = post(world, false);
    let driver = driver(channel, post.clone(), operation(post), calls_user);
    world.engine().start_activity(Box::new(driver))
}

/// An operation that a machine of the engine drives.
pub(crate) fn driven(world: &'static World, channel: &Channel, operation: impl FnOnce(Post) -> Operation) -> Driver {
    let post = post(world, false);
    driver(channel, post.clone(), operation(post), false)
}
