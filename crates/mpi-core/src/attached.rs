// SPDX-License-Identifier: Apache-2.0
//! Buffers of buffered mode (MPI 5.0 section 3.6): attached to a communicator, a session or the process.
//!
//! The engine keeps copies in memory of its own. What the program attaches says how much it may have under way: a
//! message that cannot leave at once is charged to the buffer until it has left.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_engine::Charge;

use crate::error::Result;
use crate::fail;

/// An attached buffer.
#[derive(Debug)]
pub struct Buffer {
    address: usize,
    /// Bytes; `None`: MPI_BUFFER_AUTOMATIC, as much as the machine has.
    size: Option<u64>,
    ledger: Mutex<Ledger>,
}

#[derive(Debug, Default)]
struct Ledger {
    /// Messages so far.
    number: u64,
    used: u64,
    /// Bytes of each message under way, by number.
    under_way: BTreeMap<u64, u64>,
}

/// One message's part of a buffer; given back when it is dropped.
#[derive(Debug)]
struct Reserved {
    buffer: Arc<Buffer>,
    number: u64,
}

/// The messages that were in a buffer at a moment: what a flush waits for.
#[derive(Clone, Debug)]
pub struct Flush {
    buffer: Arc<Buffer>,
    last: u64,
}

impl Buffer {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges a message of `length` bytes. `holder` is what the buffer is attached to, for the error.
    fn charge(self: &Arc<Self>, length: u64, holder: &str) -> Result<Charge> {
        let needed = length.saturating_add(abi::MPI_BSEND_OVERHEAD as u64);
        let mut ledger = self.ledger();
        if let Some(size) = self.size.filter(|size| needed > size.saturating_sub(ledger.used)) {
            fail!(
                abi::MPI_ERR_BUFFER,
                "a buffered send needs {needed} bytes ({length} of data), but of the {size} bytes attached to {holder} {} are free and {} \
                 are taken by {} messages under way; attach a larger buffer, or wait with MPI_Buffer_flush",
                size.saturating_sub(ledger.used),
                ledger.used,
                ledger.under_way.len()
            );
        }
        ledger.number += 1;
        ledger.used += needed;
        let number = ledger.number;
        ledger.under_way.insert(number, needed);
        let part: Arc<dyn Any + Send + Sync> = Arc::new(Reserved {
            buffer: self.clone(),
            number,
        });
        Ok(part)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut ledger = self.buffer.ledger();
        let bytes = ledger.under_way.remove(&self.number).unwrap_or(0);
        ledger.used -= bytes;
    }
}

impl Flush {
    /// Have all these messages left?
    pub fn is_complete(&self) -> bool {
        let ledger = self.buffer.ledger();
        ledger
            .under_way
            .first_key_value()
            .is_none_or(|(&number, _)| number > self.last)
    }
}

/// Where a buffer can be attached.
#[derive(Debug, Default)]
pub struct Attachment(Mutex<Option<Arc<Buffer>>>);

impl Attachment {
    /// A place without a buffer.
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn content(&self) -> MutexGuard<'_, Option<Arc<Buffer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches; `address` may be MPI_BUFFER_AUTOMATIC, `size` counts bytes.
    pub fn attach(&self, address: usize, size: u64, holder: &str) -> Result<()> {
        let mut content = self.content();
        if let Some(there) = &*content {
            fail!(
                abi::MPI_ERR_BUFFER,
                "{holder} has a buffer{} attached already; detach it first",
                there.size.map_or_else(String::new, |size| format!(" of {size} bytes"))
            );
        }
        let automatic = address == abi::MPI_BUFFER_AUTOMATIC;
        *content = Some(Arc::new(Buffer {
            address,
            size: (!automatic).then_some(size),
            ledger: Mutex::default(),
        }));
        Ok(())
    }

    /// Detaches: address, bytes, and what to wait for before the program is told.
    pub fn detach(&self, holder: &str) -> Result<(usize, u64, Flush)> {
        let Some(buffer) = self.content().take() else {
            fail!(abi::MPI_ERR_BUFFER, "{holder} has no buffer attached");
        };
        let last = buffer.ledger().number;
        Ok((buffer.address, buffer.size.unwrap_or(0), Flush { buffer, last }))
    }

    /// The messages in the buffer now; `None`: no buffer, nothing to wait for.
    pub fn flush(&self) -> Option<Flush> {
        let buffer = self.content().clone()?;
        let last = buffer.ledger().number;
        Some(Flush { buffer, last })
    }

    /// Charges a message of `length` bytes to the buffer; `None` if none is attached here.
    pub fn charge(&self, length: u64, holder: impl FnOnce() -> String) -> Option<Result<Charge>> {
        let buffer = self.content().clone()?;
        Some(buffer.charge(length, &holder()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERHEAD: u64 = abi::MPI_BSEND_OVERHEAD as u64;

    fn charge(place: &Attachment, length: u64) -> Result<Charge> {
        place
            .charge(length, || "the process".to_owned())
            .expect("a buffer is attached")
    }

    #[test]
    fn a_buffer_is_full_until_a_message_has_left() {
        let place = Attachment::new();
        place
            .attach(4096, 2 * (100 + OVERHEAD), "the process")
            .expect("the first");
        assert_eq!(
            place.attach(4096, 1, "the process").expect_err("the second").class,
            abi::MPI_ERR_BUFFER
        );
        let first = charge(&place, 100).expect("room for two");
        let _second = charge(&place, 100).expect("room for two");
        let error = charge(&place, 0).expect_err("it is full");
        assert_eq!(error.class, abi::MPI_ERR_BUFFER);
        assert!(error.message.contains("2 messages"), "{}", error.message);
        drop(first);
        charge(&place, 100).expect("room again");
    }

    #[test]
    fn a_flush_waits_for_what_was_there() {
        let place = Attachment::new();
        place
            .attach(abi::MPI_BUFFER_AUTOMATIC, 0, "the process")
            .expect("the first");
        let early = charge(&place, 1 << 40).expect("automatic");
        let flush = place.flush().expect("a buffer");
        let late = charge(&place, 1).expect("automatic");
        assert!(!flush.is_complete());
        drop(early);
        assert!(flush.is_complete(), "later messages do not count");
        let (address, size, rest) = place.detach("the process").expect("attached");
        assert_eq!((address, size), (abi::MPI_BUFFER_AUTOMATIC, 0));
        assert!(!rest.is_complete());
        drop(late);
        assert!(rest.is_complete() && place.flush().is_none());
    }
}
