// SPDX-License-Identifier: Apache-2.0
//! What tools see: events, traces, what a process waits for.

pub(crate) mod observe;
pub(crate) mod trace;
pub(crate) mod waits;
