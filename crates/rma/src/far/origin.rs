// SPDX-License-Identifier: Apache-2.0
//! What a process knows, as a target, of another one that reaches its part of a window in messages.

use std::collections::VecDeque;
use std::sync::atomic::{Ordering, fence};

use isthmus_core::error::Error;
use isthmus_datatype::raw::WriteMemory;
use isthmus_engine::Lease;
use isthmus_lock::shared::LockKind;
use isthmus_wire::frame::Header;
use isthmus_wire::rma::bundle::Mark;
use isthmus_wire::rma::{Does, Operation};

use super::work::Elements;
use crate::types;
use crate::window::Window;

/// Whether it may come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turn {
    /// It has not asked for the lock.
    #[default]
    Free,
    /// It has this ticket.
    Waits(LockKind, u64),
    /// It has the lock.
    Holds(LockKind),
}

/// A frame that waits.
pub(super) struct WaitingFrame {
    pub(super) header: Header,
    pub(super) payload: Vec<u8>,
}

/// An operation whose data have not come whole.
pub(super) struct Begun {
    pub(super) does: Does,
    pub(super) question: u32,
    pub(super) length: u64,
    pub(super) got: u64,
    /// `None`: the operation has failed, its data are thrown away.
    pub(super) elements: Option<Elements>,
    /// The beginning of an element whose rest has not come.
    pub(super) rest: Vec<u8>,
}

impl Begun {
    /// `elements`: `None` if it has failed already.
    pub(super) fn new(operation: &Operation<'_>, elements: Option<Elements>) -> Self {
        Self {
            does: operation.does,
            question: operation.question,
            length: operation.length,
            got: 0,
            elements,
            rest: Vec::new(),
        }
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct Origin {
    pub(super) turn: Turn,
    pub(super) kept: VecDeque<WaitingFrame>,
    /// The first of these waits for the lock of a block.
    pub(super) busy: bool,
    /// Pieces of an operation that has not come whole.
    pub(super) pieces: Vec<u8>,
    pub(super) begun: Option<Begun>,
    /// How far the bundle is done that waits, and its first mistake.
    pub(super) bundled: Option<Box<(Mark, Option<Error>)>>,
    /// Its next data are being read straight into this memory.
    pub(super) placing: Option<Lease<WriteMemory>>,
    /// Bytes of answers in memory of our own that have not left.
    pub(super) copied: u64,
    /// Answers that are read from the window and have not left.
    pub(super) lent: u64,
    /// Types it has described.
    pub(super) types: types::TypesOfOrigin,
    /// Bytes of its operations that are done.
    pub(super) done: u64,
    /// It is lost; what is left of it is its ticket.
    pub(super) gone: bool,
}

impl Origin {
    /// Joins those who want the lock of this process.
    pub(super) fn join(&mut self, window: &Window, kind: LockKind) {
        let lock = window.store.lock(window.comm.rank());
        self.turn = Turn::Waits(kind, lock.take_ticket(kind));
        lock.far_waits();
        self.enter(window);
    }

    /// Enters if it is its turn; true if it does.
    pub(super) fn enter(&mut self, window: &Window) -> bool {
        let Turn::Waits(kind, ticket) = self.turn else {
            return false;
        };
        fence(Ordering::SeqCst);
        let lock = window.store.lock(window.comm.rank());
        if !lock.enter(kind, ticket) {
            return false;
        }
        lock.far_enters();
        self.turn = Turn::Holds(kind);
        true
    }

    /// Enters if it need not wait.
    pub(super) fn enter_at_once(&mut self, window: &Window, kind: LockKind) -> bool {
        fence(Ordering::SeqCst);
        let lock = window.store.lock(window.comm.rank());
        if !lock.enter_at_once(kind) {
            return false;
        }
        lock.far_waits();
        lock.far_enters();
        self.turn = Turn::Holds(kind);
        true
    }

    /// Gives the lock back; false: it does not have it.
    pub(super) fn leave(&mut self, window: &Window) -> bool {
        let Turn::Holds(kind) = self.turn else {
            return false;
        };
        fence(Ordering::SeqCst);
        let lock = window.store.lock(window.comm.rank());
        lock.leave(kind);
        lock.far_leaves();
        self.turn = Turn::Free;
        true
    }

    /// It is lost: gives back what it has, and gives up what it waits for; false: its ticket is still there, and those
    /// behind it wait until its turn has come and passed.
    pub(super) fn give_up(&mut self, window: &Window) -> bool {
        if let Turn::Waits(LockKind::All, _) = self.turn {
            window.store.lock(window.comm.rank()).far_enters();
            self.turn = Turn::Holds(LockKind::All);
        }
        self.leave(window);
        self.turn == Turn::Free
    }

    /// Whether what comes has to wait.
    pub(super) fn waits(&self) -> bool {
        matches!(self.turn, Turn::Waits(..)) || !self.kept.is_empty()
    }
}
