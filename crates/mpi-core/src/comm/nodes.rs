// SPDX-License-Identifier: Apache-2.0
//! What a communicator keeps for steps together.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use isthmus_engine::{Channel, NativeComm};
use isthmus_schedule::Steps;

use crate::slabs::Use;

/// What a communicator has for steps together.
#[derive(Default)]
pub(crate) struct Nodes(OnceLock<Box<Both>>);

/// For steps of those who share memory, and of those in a job.
#[derive(Default)]
struct Both {
    memory: Agreement,
    jobs: Agreement,
}

#[derive(Default)]
pub(crate) struct Agreement {
    /// Operations that would have taken such steps: as many on all members.
    pub(crate) calls: AtomicU32,
    pub(crate) agreed: OnceLock<Option<Box<Agreed>>>,
}

/// Everybody has what he needs.
pub(crate) struct Agreed {
    pub(crate) channel: Channel,
    pub(crate) _keeps: Keeps,
}

/// Gives back in the end what this process has a part in; nothing where it is alone.
#[derive(Default)]
pub(crate) struct Keeps {
    pub(crate) _slabs: Vec<Use>,
    pub(crate) _comms: Vec<NativeComm>,
}

impl Nodes {
    /// The channel for plans with such steps, if members have agreed that they can take them.
    pub(crate) fn channel(&self, steps: Steps) -> Option<&Channel> {
        let agreement = self.0.get()?.of(steps)?;
        Some(&agreement.agreed.get()?.as_ref()?.channel)
    }

    /// What members have agreed on about such steps.
    pub(crate) fn of(&self, steps: Steps) -> Option<&Agreement> {
        match steps {
            Steps::None => None,
            Steps::Nodes | Steps::Jobs => self.0.get_or_init(Box::default).of(steps),
        }
    }
}

impl Both {
    fn of(&self, steps: Steps) -> Option<&Agreement> {
        match steps {
            Steps::None => None,
            Steps::Nodes => Some(&self.memory),
            Steps::Jobs => Some(&self.jobs),
        }
    }
}
