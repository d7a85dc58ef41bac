// SPDX-License-Identifier: Apache-2.0
//! Side-by-side measurements with peers.

fn main() {}
