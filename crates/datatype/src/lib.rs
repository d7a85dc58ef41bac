// SPDX-License-Identifier: Apache-2.0
//! Type maps, pack and unpack that stop and resume anywhere, representations, reduction operations.
//!
//! Start with [`Datatype`]: [`Datatype::of`] gives the predefined ones, [`Datatype::vector`] and its sisters make new
//! ones. [`Packer`] and [`Unpacker`] move data between memory ([`raw`]) and a packed stream. [`op`] has the predefined
//! reductions.

#![deny(unsafe_code)]

mod arrays;
mod basic;
mod bounds;
mod construct;
mod contents;
mod convert;
mod course;
mod datatype;
pub mod describe;
mod error;
mod float;
mod layout;
pub mod op;
mod pack;
mod parametric;
#[expect(unsafe_code, reason = "the one place of this room that touches user memory")]
pub mod raw;
mod representation;
mod runs;
mod signature;
mod sizes;
mod stream;
mod walk;

pub use arrays::{Distribution, Order};
pub use basic::{ALL, Basic, Kind};
pub use contents::{Combiner, ContentsOf};
pub use convert::ConversionError;
pub use course::Course;
pub use datatype::{Contents, Datatype};
pub use error::TypeError;
pub use pack::{Packer, Unpacker};
pub use parametric::Parametric;
pub use representation::{LACKS_INTEGER16, LACKS_REAL2, LACKS_REAL16, Representation, UnknownRepresentation};
pub use signature::Signature;
pub use stream::Foreign;
