// SPDX-License-Identifier: Apache-2.0
//! Code generation, tidy checks, assembling the distribution.

fn main() {}
