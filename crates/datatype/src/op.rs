// SPDX-License-Identifier: Apache-2.0
//! The predefined reduction operations (MPI 5.0, section 6.9.2) on every basic they are defined for.

mod element;
#[cfg(target_arch = "x86_64")]
mod extended;
mod half;
mod kernels;
mod predefined;
mod quad;
mod table;

pub use predefined::{OpError, Predefined, Spacing};

use crate::basic::Basic;

impl Predefined {
    /// The operation for elements of a type, if it is defined for it and implemented.
    pub fn on(self, basic: Basic) -> Result<OnType, OpError> {
        match self.known_on(basic) {
            Some(found) => Ok(found),
            None => table::find(self, basic).map(|kernel| OnType { kernel, basic }),
        }
    }

    /// The same, for less where it is asked for again and again; `None`: [`Predefined::on`] says why there is none.
    #[inline]
    pub fn known_on(self, basic: Basic) -> Option<OnType> {
        table::known(self, basic).map(|kernel| OnType { kernel, basic })
    }
}

/// An operation that was found for a type: what is done again and again is looked up once.
#[derive(Clone, Copy, Debug)]
pub struct OnType {
    kernel: kernels::Kernel,
    basic: Basic,
}

impl OnType {
    /// As [`apply`].
    #[inline]
    pub fn apply(&self, spacing: Spacing, operand: &[u8], target: &mut [u8], operand_is_left: bool) {
        (self.kernel)(self.basic, spacing, operand, target, operand_is_left);
    }
}

/// `target[i] = operand[i] op target[i]` if `operand_is_left`, else `target[i] = target[i] op operand[i]`, for as many
/// whole elements as both slices hold. The slices need no alignment. MPI_REPLACE takes the operand, MPI_NO_OP leaves
/// the target.
pub fn apply(
    op: Predefined,
    basic: Basic,
    spacing: Spacing,
    operand: &[u8],
    target: &mut [u8],
    operand_is_left: bool,
) -> Result<(), OpError> {
    op.on(basic)?.apply(spacing, operand, target, operand_is_left);
    Ok(())
}
