// SPDX-License-Identifier: Apache-2.0
//! The state of one plan that is being executed: which steps are known, which wait for others, which run.

pub(crate) mod absent;

use std::collections::VecDeque;
use std::fmt;

use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_schedule::step::{Action, Buffer, Plan, Slice, Step, Together, WINDOW};

use crate::base::binding::Sides;
use crate::base::binding::{Binding, BoundBuffer, Next, Unit};
use crate::base::block::Block;
use crate::base::notes::tag_of;
use crate::base::requests::NONE;
use crate::mismatch::{MOST_ASKED, Which};
use crate::plans::scratch::Spare;
use crate::plans::staged::Staged;
use crate::{Channel, EngineError, Operation, ReceiveBuffer, SendBuffer};

/// A step that is known and not forgotten yet.
#[derive(Clone, Copy, Debug)]
struct StepState {
    action: Action,
    /// Incomplete steps that it waits for.
    waits: u32,
    /// First of the steps that wait for it: index into the edges.
    dependents: u32,
    /// Its send or receive while it runs, or [`NONE`].
    request: u32,
    done: bool,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    step: u32,
    next: u32,
}

/// A message on its way through this process, whose length it learns when the message comes.
struct Passing {
    step: u32,
    to: u32,
    slot: u16,
    memory: OwnMemory,
    /// It has come and is being sent.
    come: bool,
}

pub(crate) struct Execution {
    plan: Option<Box<dyn Plan>>,
    next: Option<Next>,
    /// The plan follows from what members have told each other.
    exchanged: bool,
    binding: Binding,
    channel: Channel,
    operation: Operation,
    /// Number of the operation in the communicator.
    sequence: u32,
    /// Upper half of the tags.
    tag: i32,
    /// Memory of the plan, as large as the plan asked for.
    scratch: Vec<BoundBuffer>,
    /// What it lies in, to be given back.
    owned: Vec<OwnMemory>,
    passing: Vec<Passing>,
    /// Send and receive buffer in the form in which data travel, where that is another one.
    staged: Option<Box<[Option<Staged>; 2]>>,
    /// Number of the first step in the window.
    base: u32,
    window: VecDeque<StepState>,
    /// Pairs of processes that use a link of the wide area at the same time.
    sharers: u32,
    /// Steps that the window may hold.
    room: usize,
    edges: Vec<Edge>,
    free_edge: u32,
    ready: VecDeque<u32>,
    running: u32,
    aborted: bool,
    /// Members of which nothing comes.
    silent: Vec<u32>,
    /// Members that were asked whether they are in the same operation.
    asked: Vec<u32>,
}

/// The ranks without which a step does not end.
fn partners(action: &Action) -> impl Iterator<Item = u32> {
    let (from, to) = match *action {
        Action::Receive { from, .. } => (Some(from), None),
        Action::Send { to, .. } => (None, Some(to)),
        Action::Forward { from, to, .. } => (Some(from), Some(to)),
        _ => (None, None),
    };
    from.into_iter().chain(to)
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "plan at step {} with {} known and {} running",
            self.base,
            self.window.len(),
            self.running
        )
    }
}

impl Execution {
    /// It is used for an operation of this communicator. `next`: what comes after the plan, another one that follows
    /// from what members have told each other.
    pub(super) fn is_for(&mut self, channel: &Channel, operation: Operation, next: Option<Next>) {
        self.channel.clone_from(channel);
        self.operation = operation;
        (self.next, self.exchanged) = (next, false);
    }

    pub(super) fn take_next(&mut self) -> Option<Next> {
        self.next.take()
    }

    /// The plan that runs from now on follows from what members have told each other.
    pub(super) fn comes_from_exchange(&mut self) {
        self.exchanged = true;
    }

    pub(super) fn follows_exchange(&self) -> bool {
        self.exchanged
    }

    pub(super) fn channel(&self) -> &Channel {
        &self.channel
    }

    pub(super) fn operation(&self) -> Operation {
        self.operation
    }

    /// Upper half of its tags.
    pub(super) fn tag(&self) -> i32 {
        self.tag
    }

    /// Pairs of processes that use a link of the wide area at the same time.
    pub(super) fn sharers(&self) -> u32 {
        self.sharers
    }

    pub(super) fn aborted(&self) -> bool {
        self.aborted
    }

    pub(crate) fn new(channel: Channel, operation: Operation) -> Self {
        Self {
            plan: None,
            next: None,
            exchanged: false,
            binding: Binding::nothing(),
            channel,
            operation,
            sequence: 0,
            tag: 0,
            scratch: Vec::new(),
            owned: Vec::new(),
            passing: Vec::new(),
            staged: None,
            base: 0,
            window: VecDeque::new(),
            room: WINDOW,
            sharers: 1,
            edges: Vec::new(),
            free_edge: NONE,
            ready: VecDeque::new(),
            running: 0,
            aborted: false,
            silent: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// Number of the operation in the communicator.
    pub(crate) fn sequence(&self) -> u32 {
        self.sequence
    }

    /// It is operation number `sequence` of the communicator. `apart`: what its kind adds to that number in tags, among
    /// those of its sort.
    #[inline]
    pub(super) fn name(&mut self, sequence: u32, apart: u32) {
        self.sequence = sequence;
        self.tag = tag_of(sequence, apart);
    }

    /// Which operation it is.
    pub(crate) fn which(&self) -> Which {
        Which::new(self.channel.context, self.sequence())
    }

    /// Members that it waits for and that have not been asked whether they take part, as many as may be asked.
    #[cold]
    pub(crate) fn next_asked(&mut self) -> Vec<u32> {
        if self.channel.notes.is_none() {
            return Vec::new();
        }
        let waits = self.window.iter().filter(|step| step.request != NONE);
        let mut found = Vec::new();
        for rank in waits.flat_map(|step| partners(&step.action)) {
            if self.asked.len() < MOST_ASKED && !self.asked.contains(&rank) {
                self.asked.push(rank);
                found.push(rank);
            }
        }
        found
    }

    /// Members that were asked.
    pub(crate) fn asked(&self) -> &[u32] {
        &self.asked
    }

    /// Begins with a plan; everything of an earlier one must be over.
    pub(crate) fn begin(
        &mut self,
        plan: Box<dyn Plan>,
        binding: Binding,
        spare: &mut Spare,
    ) -> Result<(), EngineError> {
        self.base = 0;
        self.window.clear();
        self.room = plan.ample_window();
        self.sharers = plan.sharers();
        self.edges.clear();
        self.free_edge = NONE;
        self.ready.clear();
        self.running = 0;
        self.aborted = false;
        self.passing.clear();
        self.silent.clear();
        self.asked.clear();
        self.give_back(spare);
        for &units in plan.scratch() {
            let (buffer, memory) = owned(&binding.unit, units, spare)?;
            self.scratch.push(buffer);
            self.owned.push(memory);
        }
        self.staged = None;
        if let (Some(form), Unit::Byte) = (binding.form, &binding.unit) {
            let staged = [Staged::new(&binding.send, form)?, Staged::new(&binding.receive, form)?];
            self.staged = Some(Box::new(staged));
        }
        self.binding = binding;
        self.plan = Some(plan);
        Ok(())
    }

    fn give_back(&mut self, spare: &mut Spare) {
        if self.owned.is_empty() {
            return;
        }
        self.scratch.clear();
        self.owned.drain(..).for_each(|memory| spare.give_back(memory));
    }

    /// Lets go of everything that belongs to the user or the plan.
    pub(crate) fn end(&mut self, spare: &mut Spare) {
        self.plan = None;
        self.next = None;
        self.binding = Binding::nothing();
        self.passing.clear();
        self.give_back(spare);
        self.staged = None;
    }

    /// What the plan has received goes to the user's memory, if it is not there yet.
    pub(crate) fn deliver(&self) -> Result<(), EngineError> {
        match self.staged.as_deref() {
            Some([_, Some(staged)]) => staged.deliver(),
            _ => Ok(()),
        }
    }

    /// A step that can run now: asks the plan for more steps while the window has room.
    // A call would hand each step back through memory: 200 instructions for two steps.
    #[inline(always)]
    pub(crate) fn next_ready(&mut self) -> Result<Option<(u32, Action)>, EngineError> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Ok(Some((step, self.window[(step - self.base) as usize].action)));
            }
            if self.window.len() >= self.room {
                return Ok(None);
            }
            let Some(plan) = &mut self.plan else { return Ok(None) };
            match plan.next_step() {
                Some(step) => self.learn(step)?,
                None => self.plan = None,
            }
        }
    }

    fn learn(&mut self, step: Step) -> Result<(), EngineError> {
        let number = self.base + self.window.len() as u32;
        let mut waits = 0;
        for &before in step.after.iter() {
            if before >= number {
                return Err(EngineError::Plan {
                    what: "a step waits for itself or for a later one",
                });
            }
            if before < self.base || self.window[(before - self.base) as usize].done {
                continue;
            }
            waits += 1;
            let next = self.window[(before - self.base) as usize].dependents;
            let edge = self.edge(Edge { step: number, next });
            self.window[(before - self.base) as usize].dependents = edge;
        }
        self.window.push_back(StepState {
            action: step.action,
            waits,
            dependents: NONE,
            request: NONE,
            done: false,
        });
        if waits == 0 {
            self.ready.push_back(number);
        }
        Ok(())
    }

    fn edge(&mut self, edge: Edge) -> u32 {
        if self.free_edge == NONE {
            self.edges.push(edge);
            return (self.edges.len() - 1) as u32;
        }
        let at = self.free_edge;
        self.free_edge = self.edges[at as usize].next;
        self.edges[at as usize] = edge;
        at
    }

    /// The step has been started and will complete later, by this request.
    pub(crate) fn started(&mut self, step: u32, request: u32) {
        self.window[(step - self.base) as usize].request = request;
        self.running += 1;
    }

    /// A step that runs goes on as this request.
    pub(crate) fn replaced(&mut self, step: u32, request: u32) {
        self.window[(step - self.base) as usize].request = request;
    }

    /// Memory for a message of at most so many units that a step receives and hands on.
    pub(crate) fn passing(&mut self, step: u32, to: u32, slot: u16, most: u64) -> Result<ReceiveBuffer, EngineError> {
        let room = isize::try_from(most)
            .ok()
            .filter(|_| matches!(self.binding.unit, Unit::Byte));
        let room = room.ok_or(EngineError::Plan {
            what: "a message of unknown length in a reduction, or of impossible length",
        })?;
        let memory = OwnMemory::new(0, room);
        let buffer = ReceiveBuffer::contiguous(memory.memory(), 0, most);
        self.passing.push(Passing {
            step,
            to,
            slot,
            memory,
            come: false,
        });
        Ok(buffer)
    }

    /// To whom a step that has received so many bytes hands them on, and the slot; at the second time forgets them.
    pub(crate) fn passed(&mut self, step: u32, bytes: u64) -> Option<(u32, u16, SendBuffer)> {
        let place = self.passing.iter().position(|passing| passing.step == step)?;
        let passing = &mut self.passing[place];
        if passing.come {
            self.passing.swap_remove(place);
            return None;
        }
        passing.come = true;
        let buffer = SendBuffer::contiguous(passing.memory.reading(), 0, bytes);
        Some((passing.to, passing.slot, buffer))
    }

    /// What is wrong with a step that has received so many bytes, if that is less than this process expects.
    pub(crate) fn lacks(&self, step: u32, bytes: u64) -> Option<EngineError> {
        // Processes that represent data differently may send operands in fewer bytes.
        if self.binding.form.is_some() {
            return None;
        }
        let state = self.window.get(step.checked_sub(self.base)? as usize)?;
        let Action::Receive { from, data, .. } = &state.action else {
            return None;
        };
        let (_, expected) = self.range(data)?;
        (bytes < expected).then_some(EngineError::Truncate {
            source: *from,
            tag: self.tag,
            message: bytes,
            buffer: expected,
        })
    }

    /// A step that had been started is complete.
    pub(crate) fn stopped(&mut self, step: u32) {
        let Some(state) = step
            .checked_sub(self.base)
            .and_then(|i| self.window.get_mut(i as usize))
        else {
            return;
        };
        if state.request != NONE {
            state.request = NONE;
            self.running -= 1;
            self.complete(step);
        }
    }

    /// The step is complete: those that waited for it may become ready.
    pub(crate) fn complete(&mut self, step: u32) {
        let state = &mut self.window[(step - self.base) as usize];
        state.done = true;
        let mut edge = std::mem::replace(&mut state.dependents, NONE);
        while edge != NONE {
            let Edge { step: dependent, next } = self.edges[edge as usize];
            self.edges[edge as usize].next = self.free_edge;
            self.free_edge = edge;
            edge = next;
            let state = &mut self.window[(dependent - self.base) as usize];
            state.waits -= 1;
            if state.waits == 0 && !self.aborted {
                self.ready.push_back(dependent);
            }
        }
        while self.window.front().is_some_and(|s| s.done) {
            self.window.pop_front();
            self.base += 1;
        }
    }

    /// Nothing runs and nothing more will.
    pub(crate) fn over(&self) -> bool {
        self.running == 0 && self.ready.is_empty() && (self.aborted || (self.plan.is_none() && self.window.is_empty()))
    }

    /// Starts nothing new. Returns the steps that run, with their requests.
    pub(crate) fn abort(&mut self) -> Vec<(u32, u32)> {
        self.aborted = true;
        self.plan = None;
        self.next = None;
        self.ready.clear();
        let running = self
            .window
            .iter()
            .zip(self.base..)
            .filter(|(state, _)| state.request != NONE);
        running.map(|(state, step)| (step, state.request)).collect()
    }

    /// Whether its reductions may call code of the user.
    pub(crate) fn calls_user(&self) -> bool {
        self.binding.calls_user
    }

    fn buffer(&self, buffer: Buffer) -> Option<&BoundBuffer> {
        match (buffer, self.staged.as_deref()) {
            (Buffer::Send, Some([Some(staged), _])) | (Buffer::Recv, Some([_, Some(staged)])) => Some(&staged.buffer),
            (Buffer::Send, _) => Some(&self.binding.send),
            (Buffer::Recv, _) => Some(&self.binding.receive),
            (Buffer::Scratch(i), _) => self.scratch.get(i as usize),
        }
    }

    fn staged(&mut self, buffer: Buffer) -> Option<&mut Staged> {
        match buffer {
            Buffer::Send => self.staged.as_mut()?[0].as_mut(),
            Buffer::Recv => self.staged.as_mut()?[1].as_mut(),
            Buffer::Scratch(_) => None,
        }
    }

    /// A slice in bytes of the packed stream.
    fn range(&self, slice: &Slice) -> Option<(u64, u64)> {
        match &self.binding.unit {
            Unit::Byte => Some((slice.offset, slice.length)),
            Unit::Element { datatype, .. } => Some((
                slice.offset.checked_mul(datatype.size())?,
                slice.length.checked_mul(datatype.size())?,
            )),
        }
    }

    /// The buffers of a step that all members take together.
    pub(crate) fn sides(&self, step: &Together) -> Result<Sides, EngineError> {
        self.binding.sides(step, |i| self.scratch.get(usize::from(i)))
    }

    pub(crate) fn sending(&mut self, slice: &Slice) -> Result<SendBuffer, EngineError> {
        if let Some(staged) = self.staged(slice.buffer) {
            staged.before_reading(slice.offset, slice.length)?;
        }
        let buffer = self
            .range(slice)
            .and_then(|(at, length)| self.buffer(slice.buffer)?.sending(at, length));
        buffer.ok_or(EngineError::Plan {
            what: "a step reads outside its buffer",
        })
    }

    pub(crate) fn receiving(&mut self, slice: &Slice) -> Result<ReceiveBuffer, EngineError> {
        if let Some(staged) = self.staged(slice.buffer) {
            staged.before_writing(slice.offset, slice.length);
        }
        let buffer = self
            .range(slice)
            .and_then(|(at, length)| self.buffer(slice.buffer)?.receiving(at, length));
        let buffer = buffer.ok_or(EngineError::Plan {
            what: "a step writes outside its buffer",
        })?;
        Ok(self.described(buffer, slice))
    }

    /// Elements that unlike processes send are converted when they arrive.
    fn described(&self, buffer: ReceiveBuffer, slice: &Slice) -> ReceiveBuffer {
        let Unit::Element { datatype, .. } = &self.binding.unit else {
            return buffer;
        };
        if self.binding.form.is_none() || slice.length == 0 {
            return buffer;
        }
        let memory = self.buffer(slice.buffer).and_then(|bound| {
            let (_, memory, _) = bound.elements(datatype, slice.offset, slice.length)?;
            Some(memory?.shifted(-isize::try_from(datatype.true_lower_bound()).ok()?))
        });
        match memory {
            Some(memory) => buffer.described(memory, datatype, slice.length),
            None => buffer,
        }
    }

    /// `target = operand ∘ target`, or the other way round.
    pub(crate) fn reduce(&self, operand: &Slice, target: &Slice, operand_is_left: bool) -> Result<(), EngineError> {
        let Unit::Element { datatype, reducer } = &self.binding.unit else {
            return Err(EngineError::Plan {
                what: "a reduction step in an operation that only moves data",
            });
        };
        if operand.length != target.length {
            return Err(EngineError::Plan {
                what: "a reduction step with operands of different lengths",
            });
        }
        if operand.length == 0 || datatype.size() == 0 {
            return Ok(());
        }
        let outside = EngineError::Plan {
            what: "a reduction step outside its buffers",
        };
        let find = |slice: &Slice| {
            let buffer = self.buffer(slice.buffer)?;
            let end = slice.offset.checked_add(slice.length)?.checked_mul(datatype.size())?;
            (end <= buffer.length()).then(|| buffer.elements(datatype, slice.offset, slice.length))?
        };
        let (Some((source, _, length)), Some((_, Some(mut memory), _))) = (find(operand), find(target)) else {
            return Err(outside);
        };
        memory.combine(length, &source, |source, target| {
            reducer(source, target, operand.length, operand_is_left)
        });
        Ok(())
    }
}

/// Memory for a scratch buffer.
fn owned(unit: &Unit, units: u64, spare: &mut Spare) -> Result<(BoundBuffer, OwnMemory), EngineError> {
    let impossible = |_| EngineError::Plan {
        what: "a scratch buffer larger than the address space",
    };
    let bytes = Datatype::of(Basic::Byte);
    let datatype = match unit {
        Unit::Byte => &bytes,
        Unit::Element { datatype, .. } => datatype,
    };
    let (low, high) = datatype.window(units).map_err(impossible)?;
    let memory = spare.take(low, high).ok_or_else(|| EngineError::Memory {
        reason: format!(
            "there is no memory for {} bytes of blocks that pass through this process; check the counts of all members, or give the processes \
             more memory",
            low.abs_diff(high)
        )
        .into(),
    })?;
    let block = Block::own(&memory, datatype, units).map_err(impossible)?;
    Ok((BoundBuffer::one(block), memory))
}
