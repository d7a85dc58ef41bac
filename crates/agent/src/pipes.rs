// SPDX-License-Identifier: Apache-2.0
//! Standard streams of processes that somebody else has started.

use std::os::fd::OwnedFd;

/// Our ends of the standard streams of a process that somebody else has started.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) output: OwnedFd,
    pub(crate) error: OwnedFd,
    pub(crate) input: Option<OwnedFd>,
}
