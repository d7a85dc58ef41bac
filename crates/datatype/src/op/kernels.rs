// SPDX-License-Identifier: Apache-2.0
//! The loops behind the operations, and the table of them.

use super::{OpError, Predefined, Spacing};
use crate::basic::Basic;

/// Applies one operation to as many elements as both slices hold.
pub(super) type Kernel = fn(Basic, Spacing, &[u8], &mut [u8], bool);

/// The kernel for an operation on a type.
pub(super) fn find(op: Predefined, basic: Basic) -> Result<Kernel, OpError> {
    Err(OpError::Unsupported { op, basic })
}
