// SPDX-License-Identifier: Apache-2.0
//! The machine that executes plans: collective operations as steps.

pub(crate) mod execution;
pub(crate) mod plan;
pub(crate) mod scratch;
pub(crate) mod staged;
