// SPDX-License-Identifier: Apache-2.0
//! The table of requests.

use std::any::Any;

use isthmus_transport::Peer;

use crate::{Completion, Request};

/// No request.
pub(crate) const NONE: u32 = u32::MAX;

/// What lives as long as an operation that nobody waits for any more.
pub type Kept = Box<dyn Any + Send>;

/// Machines that have requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Plans,
    Groups,
    Vendor,
    Partitioned,
    /// One that registered itself.
    Registered(u8),
}

/// What the core knows of a request that a machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    by: Owner,
    /// Progress may complete it.
    moves: bool,
    /// It can be given up at any time: nobody touches its memory any more when it has ended.
    can_be_left: bool,
}

impl Owned {
    /// Progress does nothing about it.
    pub(crate) const fn still(by: Owner) -> Self {
        Self {
            by,
            moves: false,
            can_be_left: false,
        }
    }

    /// It can be given up at any time.
    pub(crate) fn leavable(self) -> Self {
        Self {
            can_be_left: true,
            ..self
        }
    }

    pub(crate) fn owner(&self) -> Owner {
        self.by
    }

    pub(crate) fn moves(&self) -> bool {
        self.moves
    }

    pub(crate) fn can_be_left(&self) -> bool {
        self.can_be_left
    }

    /// One that moves, and must be let end by itself.
    pub(crate) fn by(by: Owner) -> Self {
        Self {
            by,
            moves: true,
            can_be_left: false,
        }
    }
}

/// What became of a step of a plan.
pub(crate) enum Outcome {
    Done,
    /// Runs as this request.
    Started(u32),
}

/// What a request does.
pub(crate) trait Does: Sized {
    /// Nothing any more. There is nothing in it that would have to be dropped.
    const NOTHING: Self;

    fn is_nothing(&self) -> bool;
}

#[derive(Debug)]
pub(crate) struct Slot<T> {
    generation: u32,
    done: bool,
    /// Nobody will ask: freed on completion.
    detached: bool,
    /// The plan it is a step of, or [`NONE`].
    owner: u32,
    step: u32,
    /// Whom an eager message went to, or [`Peer::NONE`].
    sent_to: Peer,
    /// Context of that message.
    sent_in: u32,
    completion: Completion,
    task: T,
}

impl<T> Slot<T> {
    /// It has ended for the program.
    #[inline(always)]
    pub(crate) fn done(&self) -> bool {
        self.done
    }

    #[inline(always)]
    pub(crate) fn set_done(&mut self, done: bool) {
        self.done = done;
    }

    /// Nobody will ask: it is freed on completion.
    #[inline(always)]
    pub(crate) fn detached(&self) -> bool {
        self.detached
    }

    #[inline(always)]
    pub(crate) fn detach(&mut self) {
        self.detached = true;
    }

    /// The plan it is a step of, or [`NONE`].
    #[inline(always)]
    pub(crate) fn owner(&self) -> u32 {
        self.owner
    }

    /// Which step of that.
    #[inline(always)]
    pub(crate) fn step(&self) -> u32 {
        self.step
    }

    /// It is this step of a plan.
    #[inline(always)]
    pub(crate) fn belongs_to(&mut self, plan: u32, step: u32) {
        (self.owner, self.step) = (plan, step);
    }

    /// Whom an eager message went to, or [`Peer::NONE`].
    #[inline(always)]
    pub(crate) fn sent_to(&self) -> Peer {
        self.sent_to
    }

    /// Context of that message.
    #[inline(always)]
    pub(crate) fn sent_in(&self) -> u32 {
        self.sent_in
    }

    #[inline(always)]
    pub(crate) fn completion(&self) -> &Completion {
        &self.completion
    }

    #[inline(always)]
    pub(crate) fn completion_mut(&mut self) -> &mut Completion {
        &mut self.completion
    }

    /// What it does.
    #[inline(always)]
    pub(crate) fn task(&self) -> &T {
        &self.task
    }

    #[inline(always)]
    pub(crate) fn task_mut(&mut self) -> &mut T {
        &mut self.task
    }

    /// Both at once.
    #[inline(always)]
    pub(crate) fn halves(&mut self) -> (&mut T, &mut Completion) {
        (&mut self.task, &mut self.completion)
    }
}

/// All of them. `T`: what they do.
#[derive(Debug)]
pub(crate) struct Requests<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// Sends that are not complete.
    sends: usize,
    /// What is kept for requests that were released.
    kept: Vec<(u32, Kept)>,
}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            sends: 0,
            kept: Vec::new(),
        }
    }
}

impl<T: Does> Requests<T> {
    #[inline]
    pub(crate) fn insert(&mut self, task: T) -> u32 {
        if let Some(index) = self.free.pop() {
            let before = std::mem::replace(&mut self.slots[index as usize].task, task);
            debug_assert!(before.is_nothing());
            // There is nothing in it that would have to be dropped.
            std::mem::forget(before);
            return index;
        }
        let completion = Completion::default();
        self.slots.push(Slot {
            generation: 1,
            done: false,
            detached: false,
            owner: NONE,
            step: 0,
            sent_to: Peer::NONE,
            sent_in: 0,
            completion,
            task,
        });
        (self.slots.len() - 1) as u32
    }

    /// A request without a task.
    #[inline]
    pub(crate) fn vacant(&mut self) -> u32 {
        match self.free.pop() {
            Some(index) => index,
            None => self.insert(T::NOTHING),
        }
    }

    /// An eager message has left whole.
    #[inline]
    pub(crate) fn left(&mut self, index: u32, to: Peer, context: u32) {
        let slot = &mut self.slots[index as usize];
        slot.sent_to = to;
        slot.sent_in = context;
    }

    #[inline]
    pub(crate) fn name(&self, index: u32) -> Request {
        Request::new(index, self.slots[index as usize].generation)
    }

    #[inline]
    pub(crate) fn token(&self, index: u32) -> u64 {
        self.name(index).to_raw()
    }

    /// The index if the name is not stale.
    #[inline]
    pub(crate) fn index(&self, request: Request) -> Option<u32> {
        let slot = self.slots.get(request.index() as usize)?;
        (slot.generation == request.generation()).then_some(request.index())
    }

    #[inline]
    pub(crate) fn slot(&self, index: u32) -> &Slot<T> {
        &self.slots[index as usize]
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, index: u32) -> &mut Slot<T> {
        &mut self.slots[index as usize]
    }

    /// There are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    /// Sends that are not complete.
    #[inline]
    pub(crate) fn sends(&self) -> usize {
        self.sends
    }

    /// Another send that is not complete.
    #[inline]
    pub(crate) fn send_begins(&mut self) {
        self.sends += 1;
    }

    /// One of them is complete.
    #[inline]
    pub(crate) fn send_ends(&mut self) {
        self.sends -= 1;
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        self.slots.get_mut(index as usize)
    }

    /// How many there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn tasks(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().map(|slot| &slot.task)
    }

    pub(crate) fn indices(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }

    /// Frees the slot and gives its completion.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> Completion {
        let slot = &mut self.slots[index as usize];
        let completion = std::mem::take(&mut slot.completion);
        if !slot.task.is_nothing() {
            slot.task = T::NOTHING;
        }
        self.discard(index);
        if !self.kept.is_empty() {
            self.let_go(index);
        }
        completion
    }

    /// Keeps something until the request is gone.
    pub(crate) fn keep(&mut self, index: u32, kept: Kept) {
        self.kept.push((index, kept));
    }

    #[cold]
    fn let_go(&mut self, index: u32) {
        self.kept.retain(|(of, _)| *of != index);
    }

    /// Frees the slot of a request that has completed without an error and without a task.
    #[inline]
    pub(crate) fn discard(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        debug_assert!(slot.task.is_nothing() && slot.completion.error.is_none());
        slot.generation = slot.generation.wrapping_add(2);
        slot.done = false;
        slot.detached = false;
        slot.owner = NONE;
        slot.sent_to = Peer::NONE;
        slot.completion.source = 0;
        slot.completion.tag = 0;
        slot.completion.bytes = 0;
        self.free.push(index);
    }
}
