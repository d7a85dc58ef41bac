// SPDX-License-Identifier: Apache-2.0
//! Reaching a site: a child at home or the system's ssh client, our own binary at the other end, files by pieces, and
//! commands of ours that run there. Nothing here knows a job that runs: whoever has one (`launch`), or none (`cli`),
//! brings a contact.
//!
//! ```text
//!  remote, relay        what commands do at a site without a job
//!  fetch                inputs that are elsewhere, brought home
//!  transfer, workspace  files by pieces, over as many connections as it takes
//!  staging              what a site needs
//!  service              one request, one answer
//!  connection           our binary at the other end (bootstrap) of a client (sharing, asking)
//!  client               what all have in common who start the ssh client
//! ```
#![forbid(unsafe_code)]

pub mod asking;
mod bootstrap;
pub mod client;
pub mod configured;
pub mod connection;
mod failure;
pub mod fetch;
mod here;
mod masters;
mod relay;
mod remote;
pub mod service;
pub mod sharing;
pub mod staging;
pub mod transfer;
mod uncopied;
pub mod workspace;

pub use failure::{Failure, one_line, plain};
pub use here::here;
pub use relay::program_here;
pub use remote::{MeasuredLink, Measurement, Remote, Seen, Tally, measure_links};
pub use sharing::Access;
pub use uncopied::{Uncopied, without_content};
