// SPDX-License-Identifier: Apache-2.0
//! Memory of a request that a transport uses for longer than one call.
//!
//! The request keeps the [`Lease`], the transport gets [`Lent`] memory. However the request ends (complete, failed,
//! cancelled, its peer lost), its lease is dropped with it, and from then on nobody reaches the memory through what was
//! lent: not a thread of a transport that is about to write, nor a peer that sends what nobody waits for any more.
//! Dropping a lease waits for an access that is going on.

use std::sync::{Arc, Mutex, PoisonError};

type Shared<M> = Arc<Mutex<Option<M>>>;

/// What a request keeps of memory that it has lent. Dropping it takes the memory back.
#[derive(Debug)]
pub struct Lease<M>(Shared<M>);

/// Memory of a request, for as long as the request wants it touched. Copies of it are copies of the right to touch it,
/// not of the memory.
#[derive(Debug)]
pub struct Lent<M>(Shared<M>);

impl<M> Lease<M> {
    /// Lends memory.
    pub fn new(memory: M) -> Self {
        Self(Arc::new(Mutex::new(Some(memory))))
    }

    /// What a transport gets.
    pub fn lent(&self) -> Lent<M> {
        Lent(self.0.clone())
    }
}

impl<M> Drop for Lease<M> {
    fn drop(&mut self) {
        // Nothing that panicked has left half of an address here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl<M> Lent<M> {
    /// Touches the memory, unless it has been taken back: then `None`, and `touch` is not called. Whoever takes it back
    /// waits until `touch` returns, so that must not wait for anything itself, nor end the request.
    #[inline]
    pub fn with<R>(&self, touch: impl FnOnce(&mut M) -> R) -> Option<R> {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.as_mut().map(touch)
    }

    /// Whether the memory may still be touched. It may be taken back at any moment.
    pub fn is_there(&self) -> bool {
        self.with(|_| ()).is_some()
    }
}

impl<M> Clone for Lent<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn nothing_reaches_memory_whose_lease_is_over() {
        let lease = Lease::new(vec![0]);
        let (lent, copy) = (lease.lent(), lease.lent().clone());
        assert_eq!(lent.with(|memory| memory.push(1)), Some(()));
        assert!(copy.is_there());
        drop(lease);
        assert_eq!(lent.with(|_| unreachable!("taken back")), None::<()>);
        assert!(!copy.is_there());
    }

    #[test]
    fn taking_back_waits_for_an_access_that_goes_on() {
        let lease = Lease::new(0);
        let lent = lease.lent();
        let ((begun, has_begun), (end, may_end)) = (channel(), channel());
        let other = std::thread::spawn(move || {
            lent.with(|value| {
                begun.send(()).unwrap();
                may_end.recv().unwrap();
                *value = 1;
            });
            lent.is_there()
        });
        has_begun.recv().unwrap();
        assert!(lease.0.try_lock().is_err(), "the memory is being touched");
        end.send(()).unwrap();
        drop(lease);
        // The thread may have looked before or after; the access itself is over.
        other.join().unwrap();
    }
}
