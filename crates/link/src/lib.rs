// SPDX-License-Identifier: Apache-2.0
//! Links between sites as state machines without I/O: time is an argument, sockets are somebody else's.
//!
//! * [`channel`]: numbered segments that survive the connections that carry them.
//! * [`ladder`]: the ways to a peer of another local area, in their order.
//! * [`dial`]: all its addresses by all ways, until one of them has worked.
//! * [`door`]: who is let in, of those who have not proven yet who they are.
//! * [`filling`]: how many connections a channel has, and how fast each may go.
//! * [`fuzz`]: anything may happen to all of these.
//! * [`gauge`]: what is said to measure a connection, and with whom when.
//! * [`handshake`]: a connection from its first byte until it is proven whose it is.
//! * [`life`]: the life of a channel: its connections come and go, it is away, it ends.
//! * [`line`]: one connection of a channel: what it is for, how far it has come.
//! * [`lived`]: a clock that stands still while its process had no processor.
//! * [`meter`]: what arrivals say about a link: round trip, rate, and how sure that is.
//! * [`pipe`]: how many connections fill a link, and how fast they may go.
//! * [`sharing`]: which connection of a channel carries what.
//! * [`trunk`]: many streams on one connection between two gateways.
#![forbid(unsafe_code)]

pub mod channel;
pub mod dial;
pub mod door;
pub mod filling;
pub mod fuzz;
pub mod gauge;
pub mod handshake;
pub mod ladder;
pub mod life;
pub mod line;
pub mod lived;
pub mod meter;
pub mod pipe;
pub mod sharing;
pub mod trunk;
