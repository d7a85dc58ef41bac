// SPDX-License-Identifier: Apache-2.0
//! Functions of this process that others may have called, by name.

use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::{fail, words};
use isthmus_wire::requests::{MAX_NAME, MAX_NAMES, is_name};

use crate::Call;

/// What is called for a request.
pub type Function = Arc<dyn Fn(&mut Call) + Send + Sync>;

/// A name, and what is called for it.
pub(crate) struct Handler {
    pub(crate) name: Box<str>,
    pub(crate) number: u32,
    /// `None`: this process only sends such requests.
    pub(crate) function: Option<Function>,
    /// The keeper may call it.
    pub(crate) short: bool,
}

/// All of them. Their numbers are used once.
#[derive(Default)]
pub(crate) struct Handlers {
    all: Vec<Arc<Handler>>,
    numbers: u32,
}

impl Handlers {
    pub(crate) fn add(&mut self, name: &str, function: Option<Function>, short: bool) -> Result<u32> {
        if !is_name(name.as_bytes()) {
            fail!(
                abi::MPI_ERR_ARG,
                argument("name"),
                "has {} bytes, a name of a handler has 1 to {MAX_NAME}",
                words::length(name)
            );
        }
        if self.named(name).is_some() {
            fail!(
                abi::MPI_ERR_ARG,
                argument("name"),
                "is \"{name}\", which this process has registered before"
            );
        }
        if self.all.len() == MAX_NAMES {
            fail!(
                abi::MPI_ERR_NO_MEM,
                "this process has {MAX_NAMES} handlers, and there may be no more"
            );
        }
        self.numbers += 1;
        self.all.push(Arc::new(Handler {
            name: name.into(),
            number: self.numbers,
            function,
            short,
        }));
        Ok(self.numbers)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Handler>> {
        self.all.iter().find(|handler| *handler.name == *name)
    }

    pub(crate) fn get(&self, number: u32) -> Result<Arc<Handler>> {
        match self.all.iter().find(|handler| handler.number == number) {
            Some(handler) => Ok(handler.clone()),
            None => fail!(
                abi::MPI_ERR_ARG,
                argument("handler"),
                "is {}, which isthmus_handler_register has not given",
                number as i32
            ),
        }
    }

    /// Its name is free again.
    pub(crate) fn remove(&mut self, number: u32) -> Result<()> {
        self.get(number)?;
        self.all.retain(|handler| handler.number != number);
        Ok(())
    }

    /// Whether frames may come that the keeper can answer.
    pub(crate) fn have_short(&self) -> bool {
        self.all
            .iter()
            .any(|handler| handler.short && handler.function.is_some())
    }
}
