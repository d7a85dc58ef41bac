// SPDX-License-Identifier: Apache-2.0
//! Functions of the program that frames ask for. A machine works with the engine locked, so it only says that something
//! is due; whoever waits in MPI, or the keeper, calls it out with the engine free.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who calls functions of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A thread of the program, which is inside MPI.
    Program,
    /// The [keeper](crate::Keeper), beside the program.
    Keeper,
}

/// Calls what is due; true if it has done anything.
type Call = Box<dyn Fn(Caller) -> bool + Send + Sync>;

/// What is due, and who knows how to call it.
#[derive(Default)]
pub struct Callbacks {
    due: AtomicBool,
    call: OnceLock<Call>,
}

impl Callbacks {
    /// Whether something is due.
    #[inline]
    pub fn are_due(&self) -> bool {
        self.due.load(Ordering::Relaxed)
    }

    /// Something is due, or not any more. What is due is looked up under a lock by whoever calls it, which also sets
    /// this anew.
    pub fn set_due(&self, due: bool) {
        self.due.store(due, Ordering::Release);
    }

    /// Who calls what is due, from now on; the first one counts. It is called without the engine, and must not wait.
    pub fn provide(&self, call: impl Fn(Caller) -> bool + Send + Sync + 'static) {
        let _ = self.call.set(Box::new(call));
    }

    /// Calls what is due; the engine is free. True if anything was done.
    #[cold]
    pub fn call(&self, caller: Caller) -> bool {
        match self.call.get() {
            Some(call) => call(caller),
            None => {
                self.set_due(false);
                false
            }
        }
    }
}
