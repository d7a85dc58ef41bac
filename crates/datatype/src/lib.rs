// SPDX-License-Identifier: Apache-2.0
//! Type maps, pack and unpack that stop and resume anywhere, representations, reduction operations.

pub mod raw;
