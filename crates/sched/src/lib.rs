// SPDX-License-Identifier: Apache-2.0
//! How processes are started at a machine. Today: [`fork`], on the machine of the agent itself.
#![forbid(unsafe_code)]

pub mod fork;
