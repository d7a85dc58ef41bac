// SPDX-License-Identifier: Apache-2.0
//! Other parts of a world that was put together by hand: how they come in, and what the coordinator has of each.

pub(crate) mod door;
pub(crate) mod here;
mod lines;
pub(crate) mod place;
pub(crate) mod stream;

pub(crate) use lines::{Gathered, Line, Part};
