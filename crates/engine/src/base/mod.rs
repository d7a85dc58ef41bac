// SPDX-License-Identifier: Apache-2.0
//! What all machines stand on: requests, the work list, matching, what is known of peers.

pub(crate) mod activity;
pub(crate) mod binding;
pub(crate) mod block;
pub(crate) mod buffer;
pub(crate) mod callbacks;
pub(crate) mod channel;
pub(crate) mod conversion;
pub(crate) mod counters;
pub(crate) mod error;
pub(crate) mod mistake;
pub(crate) mod notes;
pub(crate) mod parcels;
pub(crate) mod peers;
pub(crate) mod request;
pub(crate) mod requests;
pub(crate) mod retired;
pub(crate) mod tuning;
pub(crate) mod work;
