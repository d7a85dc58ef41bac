// SPDX-License-Identifier: Apache-2.0
//! TCP inside a site and mutually authenticated TLS between sites.
//!
//! ```text
//!     main thread                          one thread per process ("isthmus-net")
//!   TcpTransport  <- connected sockets --   listens, dials, shakes hands (plain and TLS)
//!   WideTransport <- arrivals, commands ->  moves, encrypts and decrypts everything between sites
//! ```
//! A *channel* is what two processes say to each other; a *connection* is a socket that carries it at the moment.
//! Between sites a channel outlives its connections, and may use several side by side; inside a site it has one in its
//! life.
//!
//! * Plain connections belong to whoever waits: once the thread has made one, it hands the socket to
//!   [`TcpTransport`] and never touches it again. Making connections must not depend on the peer being
//!   inside an MPI call, hence the thread does that for both.
//! * Which address of a peer works is proven by a completed handshake. See `isthmus_wire::hello` for its bytes.
//! * Strangers: connections that have not proven to belong to the job are bounded in number
//!   ([`MAX_HANDSHAKES`]), bytes and time ([`HANDSHAKE_TIME`]); a plain one is told nothing at all.
//!
//! Order at the end of a job: `settle` both transports until they return true, tell the agent, serve the others until
//! its dismissal (by then everybody has settled), `close` until true, drop.

#![deny(unsafe_op_in_unsafe_fn)]

mod addresses;
mod carrying;
mod compression;
mod config;
mod contact;
mod driver;
mod error;
mod flow;
mod gatekeeper;
mod hello;
mod inbound;
mod link;
mod listener;
mod outbox;
mod pacing;
mod pages;
mod places;
mod queues;
mod reactor;
mod receiver;
mod secure;
mod socket;
mod start;
mod tcp;
mod tcpinfo;
mod turns;
mod wide;
mod writing;

pub use addresses::{local_addresses, machine, own_addresses, pinned_addresses};
pub use carrying::{Carrying, Looked, Trunkline};
pub use config::{Config, Doors, Reach};
pub use contact::{Contact, Contacts, MAX_OF_STRANGER};
pub use error::NetError;
pub use gatekeeper::Gatekeeper;
pub use hello::{Prover, fuzz_credential, fuzz_hello};
pub use inbound::fuzz_plain;
pub use isthmus_link::door::{HANDSHAKE_TIME, MAX_HANDSHAKES};
pub use isthmus_link::meter::Estimate;
pub use link::{ArrivalHook, Measurements, Prober, Round, Traffic};
pub use listener::{Listener, PortRange};
pub use receiver::fuzz_channel;
pub use secure::fuzz_records;
pub use start::{Transports, start};
pub use tcp::TcpTransport;
pub use wide::WideTransport;
