// SPDX-License-Identifier: Apache-2.0
//! Hosts as network namespaces joined by an emulated wide-area network.
//!
//! ```no_run
//! use isthmus_testbed::{Testbed, Topology};
//! # fn main() -> Result<(), isthmus_testbed::Error> {
//! let topology = Topology::grid("2x1")?.round_trip("40ms")?.rate("200mbit")?;
//! let bed = Testbed::start(&topology)?;
//! let output = bed.host("a1")?.output("ssh", &["b1", "hostname"])?;
//! assert_eq!(output.stdout, b"b1\n");
//! bed.cut("a", "b")?; // silent, as a dead line is
//! bed.restore("a", "b")?;
//! # Ok(()) }
//! ```
//!
//! A *site* is a LAN behind a gateway; the gateways are joined pairwise by links with a round trip, a
//! rate, a queue and a loss. Each *machine* of a site has one or more *hosts*; a host has its own network,
//! processes, mounts, host name, shared memory, HOME and sshd. Everything ends with the [`Testbed`]
//! value, or with the process that holds it however that dies: namespaces have no names here, the
//! processes that hold them watch a pipe.
//!
//! Needs root, or a process inside a user namespace of its own (the command does that by itself), and the
//! tools `unshare`, `ip`, `mount`; `sshd` and `ssh-keygen` for ssh. What is not available is said by name:
//! see [`Testbed::limits`].

#![deny(unsafe_code)]

mod access;
mod addresses;
mod bed;
mod capture;
mod check;
mod control;
mod error;
mod forwarder;
mod host;
mod link;
mod network;
mod packet;
mod shaper;
mod ssh;
mod state;
mod stats;
#[expect(
    unsafe_code,
    reason = "the TUN ioctls and entering namespaces have no safe interface"
)]
mod sys;
mod topology;
mod units;

pub use access::{Access, Kind};
pub use bed::{Options, Testbed};
pub use check::{CheckPlan, CheckRow, check};
pub use control::{Client, Reply, Request, serve};
pub use error::Error;
pub use host::Host;
pub use link::{LinkSpec, Queue};
pub use shaper::{Shaper, Verdict};
pub use state::{Description, HostDescription, default_root, running, sweep};
pub use stats::{LinkReport, Report};
pub use topology::{Pair, Site, Topology};
