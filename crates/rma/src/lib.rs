// SPDX-License-Identifier: Apache-2.0
//! One-sided communication (MPI 5.0 chapter 12) without C: windows, operations on them, synchronisation.
//!
//! Start with [`Window`]: `create` makes one; an operation is a [`Source`] or a [`Sink`] here and a [`TargetData`]
//! there.
#![forbid(unsafe_code)]

mod accumulate;
mod asserts;
mod at_once;
mod attach;
mod change;
mod counted;
mod counts;
mod create;
mod data;
mod elements;
mod end;
mod epoch;
mod error;
mod far;
mod hints;
mod locks;
mod operate;
mod partners;
mod parts;
mod pscw;
mod query;
mod reach;
mod regions;
mod sent;
mod shareable;
mod spot;
mod store;
mod synchronize;
mod target;
mod types;
mod wait;
mod window;

pub use at_once::{accumulate_at_once, get_at_once, put_at_once, swap_at_once};
pub use create::Wish;
pub use data::{Piece, Sink, Source, TargetData, When};
pub use isthmus_lock::shared::LockKind;
pub use query::Segment;
pub use shareable::{Location, Shareable};
pub use store::ProgramMemory;
pub use window::{Flavor, Window};
