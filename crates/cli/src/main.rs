// SPDX-License-Identifier: Apache-2.0
//! The commands: isthmus, mpiexec, mpirun, mpicc, mpicxx.

fn main() {}
