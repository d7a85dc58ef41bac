// SPDX-License-Identifier: Apache-2.0
//! Client and server (MPI 5.0 section 11.9): ports, and groups of different jobs that connect. See the README.
#![forbid(unsafe_code)]

mod connect;
mod door;
mod pipe;
mod socket;
mod takes;

pub use connect::{PATIENCE, accept, accept_while, connect};
pub use door::{close_all, close_port, open_inside, open_port};
pub use socket::join;
pub use takes::Accept;
