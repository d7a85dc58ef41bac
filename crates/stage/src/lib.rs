// SPDX-License-Identifier: Apache-2.0
//! Content-addressed staging and stdio by whole lines.
//!
//! * [`content`]: hashes of files, and what machine a program is for.
//! * [`store`]: the cache of staged files at a site.
//! * [`lines`]: cutting output into whole lines.
#![forbid(unsafe_code)]

pub mod content;
pub mod lines;
pub mod store;
