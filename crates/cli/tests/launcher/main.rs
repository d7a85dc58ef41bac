// SPDX-License-Identifier: Apache-2.0
//! The launcher as its users meet it: the real command, processes that speak the start-up protocol, and an
//! ssh client that runs everything on this machine in a clean home directory.
#![expect(clippy::unwrap_used, reason = "tests")]

mod asking;
mod background;
mod bench;
mod coallocation;
mod completing;
mod descriptions;
mod detach;
mod endings;
mod gathering;
mod refusals;
mod runs;
mod schedulers;
mod spawning;
mod streams;
mod words;
