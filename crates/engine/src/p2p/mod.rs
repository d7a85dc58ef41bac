// SPDX-License-Identifier: Apache-2.0
//! The machine of point-to-point messages.

pub(crate) mod calls;
pub(crate) mod cancel;
pub(crate) mod direct;
pub(crate) mod itself;
pub(crate) mod long;
pub(crate) mod placing;
pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod unanswered;
