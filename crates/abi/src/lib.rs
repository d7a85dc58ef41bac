// SPDX-License-Identifier: Apache-2.0
//! The MPI 5.0 Standard ABI as data: handle and constant values, C types, error classes.
