// SPDX-License-Identifier: Apache-2.0
//! The C entry points of MPI.
