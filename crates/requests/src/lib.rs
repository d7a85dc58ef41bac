// SPDX-License-Identifier: Apache-2.0
//! Remote service requests without C: a process asks another one to call a function that it has registered under a
//! name, with data, and may get a reply.
//!
//! Start with [`Requests`]: `register` gives a name to a function, `send` and `ask` are requests, [`Call`] is what a
//! function gets.
#![forbid(unsafe_code)]

mod answers;
mod asked;
mod call;
mod handlers;
mod leave;
mod machine;
mod origin;
mod pointer;
mod regions;
mod requests;
mod run;
mod send;
mod state;
mod take;

pub use call::{Call, copy};
pub use handlers::Function;
pub use isthmus_wire::requests::{MAX_BYTES, POINTER_BYTES, Pointer, Target};
pub use pointer::{owner, to_process, words};
pub use requests::Requests;
pub use send::{Data, Reply, To};
