// SPDX-License-Identifier: Apache-2.0
//! What a program sets on a communicator and the library only keeps: name, error handler, attributes, buffer.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use isthmus_abi::constants as abi;

use crate::attached::Attachment;
use crate::attribute::{Attributes, Cache};
use crate::errhandler::ErrorHandler;
use crate::words;

/// What a program has set on a communicator.
pub struct UserState {
    /// `None`: neither this communicator nor those that it comes from were given one.
    handler: Mutex<Option<ErrorHandler>>,
    session: Option<Arc<Attachment>>,
    given: OnceLock<Box<Given>>,
}

/// What a program gives to few communicators.
#[derive(Default)]
struct Given {
    name: Mutex<String>,
    attributes: Cache,
    buffer: Attachment,
    /// What the losses are remembered by that it has acknowledged.
    acknowledged: Arc<()>,
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl UserState {
    pub(super) fn new(name: &str) -> Self {
        let user = Self {
            handler: Mutex::new(None),
            session: None,
            given: OnceLock::new(),
        };
        if !name.is_empty() {
            name.clone_into(&mut locked(&user.given().name));
        }
        user
    }

    fn given(&self) -> &Given {
        self.given.get_or_init(Box::default)
    }

    /// With what a communicator has from the one that it is made of. `session`: the buffer of its session.
    pub(super) fn inherited(self, handler: Option<ErrorHandler>, session: Option<Arc<Attachment>>) -> Self {
        Self {
            handler: Mutex::new(handler),
            session,
            ..self
        }
    }

    pub(crate) fn session(&self) -> Option<&Arc<Attachment>> {
        self.session.as_ref()
    }

    /// Name set by the program (MPI_Comm_get_name).
    pub fn name(&self) -> String {
        let given = self.given.get();
        given.map_or_else(String::new, |given| locked(&given.name).clone())
    }

    /// Sets the name, cut to what the ABI has room for.
    pub fn set_name(&self, name: &str) {
        words::cut(name, abi::MPI_MAX_OBJECT_NAME as usize - 1).clone_into(&mut locked(&self.given().name));
    }

    /// What becomes of errors, if anybody has said so; if not, the job ends.
    pub fn error_handler(&self) -> Option<ErrorHandler> {
        locked(&self.handler).clone()
    }

    /// Sets what becomes of errors.
    pub fn set_error_handler(&self, handler: ErrorHandler) {
        *locked(&self.handler) = Some(handler);
    }

    /// Where a buffer of buffered mode can be attached.
    pub fn buffer(&self) -> &Attachment {
        &self.given().buffer
    }

    /// What losses are remembered by that the program has acknowledged on the communicator: they end with it.
    pub(crate) fn acknowledged(&self) -> &Arc<()> {
        &self.given().acknowledged
    }

    /// Where the session that it comes from can have one attached; `None`: it comes from MPI_COMM_WORLD or
    /// MPI_COMM_SELF.
    pub fn session_buffer(&self) -> Option<&Attachment> {
        self.session.as_deref()
    }

    /// Cached attributes.
    pub fn attributes(&self) -> &Cache {
        &self.given().attributes
    }

    /// The same; `None`: there were never any.
    pub fn known_attributes(&self) -> Option<&Cache> {
        self.given.get().map(|given| &given.attributes)
    }

    /// Gives a new communicator the attributes that the copy callbacks made.
    pub fn replace_attributes(&self, attributes: Attributes) {
        if !attributes.is_empty() {
            *locked(self.attributes()) = attributes;
        }
    }
}
