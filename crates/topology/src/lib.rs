// SPDX-License-Identifier: Apache-2.0
//! Places, levels, depths, colours and the clustering of any group of processes.
