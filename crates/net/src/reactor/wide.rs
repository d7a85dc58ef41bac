// SPDX-License-Identifier: Apache-2.0
//! All that goes on between this process and those at other sites: its channels, and the dialling of their peers. What
//! happens is told here by the reactor.

use std::time::Duration;

use super::channels::Channels;
use super::dials::Dials;
use super::probing::Probing;
use crate::config::Config;

pub(super) struct Wide {
    pub(super) channels: Channels,
    pub(super) probing: Probing,
    /// Plain connections are dialled here, too.
    pub(super) dials: Dials,
    /// How long a peer may stay away.
    pub(super) away_time: Duration,
    pub(super) closing: bool,
}

impl Wide {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            channels: Channels::new(),
            probing: Probing::default(),
            dials: Dials::new(&config.paths, config.dial_time),
            away_time: config.away_time,
            closing: false,
        }
    }
}
