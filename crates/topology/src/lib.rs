// SPDX-License-Identifier: Apache-2.0
//! Places, levels, depths, colours and the clustering of any group of processes.
//!
//! [`Topology`] is what a job's place table says about distance, per process of MPI_COMM_WORLD.
//! [`Colours`] is the view that programs get (depths and colours as in MPICH-G2).
//! [`Shape`] is the view that collective operations get: a group of processes, clustered level by level.
//! [`Links`] is what messages cost, per level and per pair of local areas.
//! [`LinkEstimates`] says where these numbers come from.
#![forbid(unsafe_code)]

mod colours;
mod estimates;
mod level;
mod links;
mod places;
pub mod processors;
mod shape;

pub use colours::{Colours, DEPTH, VENDOR_DEPTH};
pub use estimates::{LinkEstimates, Measured, Origin, Origins, Rate, combine};
pub use level::Level;
pub use links::{Curve, CurveError, Link, Links};
pub use places::Topology;
pub use shape::Shape;

/// Rank within a group.
pub type Rank = u32;
