// SPDX-License-Identifier: Apache-2.0
//! One engine for all threads: locking, waiting, progress while the program computes.

pub(crate) mod bell;
pub(crate) mod callbacks;
pub(crate) mod inner;
pub(crate) mod keeper;
pub(crate) mod pace;
pub(crate) mod patience;
pub(crate) mod shared;
pub(crate) mod waits;

use std::time::Duration;

/// Longest sleep: bounds the harm if a doorbell is ever lost; costs nothing.
pub(crate) const NAP: Duration = Duration::from_secs(1);
