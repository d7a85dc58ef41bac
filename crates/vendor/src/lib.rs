// SPDX-License-Identifier: Apache-2.0
//! A vendor MPI ("vendor MPI") underneath ours.
//!
//! An *adaptor* is a small C library compiled by the vendor's `mpicc` ([`adaptor`]); it offers the vendor's functions
//! as a table that uses C's built-in types only. [`Vendor`] opens it beside our own library, whose symbols have the
//! same names, and [`VendorTransport`] moves the engine's frames over it; [`VendorNative`] gives communicators of ours
//! one of the vendor's underneath.

mod adaptor;
mod attendance;
mod collective;
mod comm;
mod error;
mod interface;
mod native;
mod transport;
mod turn;
mod used;
mod vendor;

pub use adaptor::{Adaptor, Built, build, known};
pub use comm::Comm;
pub use error::VendorError;
pub use native::VendorNative;
pub use transport::VendorTransport;
pub use used::Request;
pub use vendor::{Arrival, Vendor};
