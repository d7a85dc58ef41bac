// SPDX-License-Identifier: Apache-2.0
//! Collective operations as data.
//!
//! A collective call computes, on each process alone and without communication, its part of a plan: steps
//! (send, receive, reduce, copy) over ranges of named buffers, with dependencies. The same plans feed the
//! engine, the checker and (later) the simulator. This room knows no communicator, pointer, datatype or transport.
#![forbid(unsafe_code)]

pub mod step;
