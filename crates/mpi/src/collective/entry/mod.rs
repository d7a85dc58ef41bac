// SPDX-License-Identifier: Apache-2.0
//! The functions that C calls.

mod data;
mod data_nonblocking;
mod reduction;
mod reduction_nonblocking;
