// SPDX-License-Identifier: Apache-2.0
//! Process topologies (MPI 5.0 chapter 8).

pub use isthmus_schedule::{Edge, Neighbours};
