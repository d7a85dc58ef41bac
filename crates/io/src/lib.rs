// SPDX-License-Identifier: Apache-2.0
//! Files of MPI (MPI 5.0 chapter 14) without C: views, access alone and together, pointers, and the one file of a job
//! of several sites.
//!
//! Start with [`File`]: `open` makes one; an access is a [`Source`] or a [`Target`] and a [`Position`].
#![deny(unsafe_code)]

mod access;
mod alike;
mod allowed;
mod alone;
mod among;
mod asking;
mod atom;
mod calls;
mod close;
mod collective;
mod disk;
mod domains;
mod ears;
mod error;
mod extents;
mod file;
mod gate;
mod group;
mod guest;
mod guests;
mod here;
mod hints;
mod homes;
mod ledger;
mod memory;
mod mode;
mod name;
mod open;
mod pieces;
mod plain;
mod pointer;
mod pool;
mod processes;
mod reading;
mod released;
mod same;
mod service;
mod split;
mod stripe;
mod task;
mod told;
mod view;

pub use access::{Sieve, read, write};
pub use allowed::allow;
pub use calls::{Calls, delete};
pub use close::Closing;
pub use disk::{Disk, Moved};
pub use file::File;
pub use here::Here;
pub use hints::Hints;
pub use ledger::used;
pub use memory::{Buffer, Convert, Source, Target, room};
pub use mode::Mode;
pub use name::Scope;
pub use pointer::{Position, Whence};
pub use split::Splits;
pub use view::View;
