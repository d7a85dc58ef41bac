// SPDX-License-Identifier: Apache-2.0
//! Shared memory between the processes of a node: rings, doorbells, cross-memory copies.
