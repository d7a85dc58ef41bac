// SPDX-License-Identifier: Apache-2.0
//! Every message on every wire, with its byte layout drawn.
//!
//! * [`frame`]: the 32-byte header in front of every message between two MPI processes.
//! * [`partitioned`]: how partitioned communication begins.
//! * [`datatype`]: a datatype, as the calls that made it.
//! * [`file`]: what processes ask of those that reach a file.
//! * [`rma`]: operations of windows over several nodes.
//! * [`requests`]: remote service requests and global pointers.
//! * [`stripe`]: how Lustre says that it has laid a file out.
//! * [`hello`]: how two MPI processes begin and end a TCP connection.
//! * [`segment`]: what is on a connection between sites.
//! * [`boot`]: what an MPI process and the agent of its machine say to each other (Unix socket).
//! * [`grid`]: what the coordinator and an agent say to each other (standard input and output of ssh).
//! * [`guard`]: what an agent and the guards of processes of a vendor MPI say to each other.
//! * [`control`]: what commands and a running coordinator say to each other (Unix socket).
//! * [`published`]: a name that was published for all jobs of a user.
//! * [`question`]: what a process asks its coordinator.
//! * [`agreeing`]: how the members of a communicator agree by their coordinator, whoever of them fails.
//! * [`port`]: names of ports, and how who connects to one begins.
//! * [`entry`]: how a process is reached through the host at which jobs meet.
//! * [`joining`]: how groups of processes of two jobs come to know each other.
//! * [`gathering`]: parts of a world that are started by hand.
//! * [`gateway`]: gateways between local areas, and what processes know about them.
//! * [`links`]: what messages cost.
//! * [`relay`]: a command of ours at another site.
//! * [`rate`]: the rate of a link, and what it stands on.
//! * [`trace`]: what a traced process records.
//! * [`word`]: words of the user that need not be UTF-8, as text.
//! * [`codec`]: the bounded reader and writer that all of them use.
//!
//! All integers on a wire are little-endian, whatever the machine. User data is not: it travels in
//! the sender's [`place::Representation`] and the receiver makes it right.
#![forbid(unsafe_code)]

pub mod agreeing;
pub mod boot;
pub mod calendar;
pub mod chosen;
pub mod codec;
pub mod control;
pub mod datatype;
pub mod entry;
pub mod file;
pub mod frame;
pub mod gate;
pub mod gateway;
pub mod gathering;
pub mod grid;
pub mod guard;
pub mod hello;
pub mod joined;
pub mod joining;
pub mod letter;
pub mod links;
pub mod partitioned;
pub mod place;
pub mod port;
pub mod published;
pub mod question;
pub mod rate;
mod reason;
pub mod relay;
pub mod requests;
pub mod rma;
pub mod segment;
pub mod service;
pub mod shared;
pub mod stripe;
pub mod time;
pub mod trace;
pub mod usage;
pub mod waiting;
pub mod word;
