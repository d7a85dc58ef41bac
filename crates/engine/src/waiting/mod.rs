// SPDX-License-Identifier: Apache-2.0
//! One engine for all threads: locking, waiting, progress while the program computes.

pub(crate) mod bell;
pub(crate) mod keeper;
pub(crate) mod patience;
pub(crate) mod shared;
pub(crate) mod waits;
