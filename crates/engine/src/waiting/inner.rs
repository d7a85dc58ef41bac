// SPDX-License-Identifier: Apache-2.0
//! What the lock of a process guards: its engine, and who waits for it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use isthmus_protocol::patience::{Patience, Step};
use isthmus_transport::is_readable;

use crate::Engine;
use crate::waiting::bell::Bell;
use crate::waiting::pace::Pace;
use crate::waiting::{Inner, Listener, Quiet};

impl Inner {
    pub(super) fn new(engine: Engine, guests: bool, looking: Patience) -> Self {
        Self {
            engine,
            guests,
            entries: 0,
            kept: false,
            sleepers: 0,
            quiet: Quiet::default(),
            looking: (looking, 0),
            listener: None,
            descriptors: None,
        }
    }

    /// From now on `hear` hears what comes to this descriptor. It is asked once now: what was read together with an
    /// earlier word makes no descriptor readable, and nobody would be woken for it.
    pub(super) fn add_listener(&mut self, descriptor: OwnedFd, mut hear: Box<dyn FnMut(&mut Engine) -> bool + Send>) {
        if hear(&mut self.engine) {
            self.listener = Some(Listener { descriptor, hear });
        }
        self.descriptors = None;
    }

    /// What a call that has found nothing is to do before it returns.
    #[inline]
    pub(super) fn look_again(&mut self, pace: &Pace) -> Step {
        let events = self.engine.core.state.events();
        let (patience, seen) = &mut self.looking;
        if *seen != events {
            (*patience, *seen) = (pace.patience(), events);
        }
        let step = pace.step(patience);
        if step != Step::Sleep {
            return step;
        }
        // It cannot sleep: the call is to return.
        *patience = pace.patience();
        patience.decided().unwrap_or(Step::Poll)
    }

    /// Progress by a thread of the library; sleepers hear of what it has changed.
    pub(super) fn advance(&mut self, bell: &Bell) {
        let events = self.engine.core.state.events();
        self.engine.progress_without_callbacks();
        if self.sleepers > 0 && events != self.engine.core.state.events() {
            bell.ring();
        }
    }

    pub(super) fn descriptors(&mut self, bell: &Bell) -> io::Result<Arc<[OwnedFd]>> {
        if let Some(descriptors) = &self.descriptors {
            return Ok(descriptors.clone());
        }
        let mut all = self.descriptors_with(bell)?;
        if let Some(listener) = &self.listener {
            all.push(listener.descriptor.try_clone()?);
        }
        let all: Arc<[OwnedFd]> = all.into();
        self.descriptors = Some(all.clone());
        Ok(all)
    }

    /// Hears what has come from outside of MPI.
    pub(super) fn listen(&mut self) {
        let Some(listener) = &mut self.listener else { return };
        if is_readable(listener.descriptor.as_fd()) && !(listener.hear)(&mut self.engine) {
            // Whoever sleeps next does so without it.
            self.listener = None;
            self.descriptors = None;
        }
    }

    /// The transports' descriptors after that of a bell.
    pub(super) fn descriptors_with(&self, bell: &Bell) -> io::Result<Vec<OwnedFd>> {
        let mut all = vec![bell.descriptor()?.try_clone_to_owned()?];
        for transport in &self.engine.core.transports {
            if let Some(descriptor) = transport.descriptor() {
                all.push(descriptor.try_clone_to_owned()?);
            }
        }
        Ok(all)
    }
}
