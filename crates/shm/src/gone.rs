// SPDX-License-Identifier: Apache-2.0
//! What is known of a partner of whom nothing comes any more.

/// What the engine is to be told of it.
pub(crate) enum Gone {
    /// It is lost, for this reason.
    Lost(String),
    /// It has left in order.
    Left,
}
