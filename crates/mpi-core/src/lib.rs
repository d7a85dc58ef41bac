// SPDX-License-Identifier: Apache-2.0
//! Groups, communicators, attributes, errors: MPI without C.
//!
//! Objects of MPI as Rust values over the one [engine](isthmus_engine) of the process. Nothing here knows that C
//! exists: callbacks come as closures, user memory as values, errors leave as [`error::Error`].
#![forbid(unsafe_code)]

mod asker;
pub mod attached;
pub mod attribute;
mod blocks;
mod carrying;
mod chosen;
pub mod collective;
pub mod comm;
mod context;
pub mod create;
pub mod errhandler;
pub mod error;
pub mod faults;
pub mod group;
pub mod info;
pub mod inter;
mod internal;
pub mod joining;
pub mod links;
mod meeting;
pub mod members;
mod nodes;
pub mod p2p;
mod planned;
mod remembered;
mod revocable;
pub mod session;
mod shared_slab;
mod slabs;
pub mod topology;
pub mod words;
pub mod world;
