// SPDX-License-Identifier: Apache-2.0
//! `long double` of x86-64: the 80-bit format, computed by the processor's x87 unit; the six bytes of padding become 0.

use super::element::{Element, Number, Ordered, Real};
use crate::raw::x87;

/// An 80-bit value in its 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extended(pub(super) [u8; 16]);

impl Element for Extended {
    const SIZE: usize = 16;

    fn read(bytes: &[u8]) -> Self {
        let mut own = [0; 16];
        own[..10].copy_from_slice(&bytes[..10]);
        Self(own)
    }

    fn write(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0);
    }
}

impl Number for Extended {
    fn plus(self, other: Self) -> Self {
        Self(x87::add(&self.0, &other.0))
    }

    fn times(self, other: Self) -> Self {
        Self(x87::multiply(&self.0, &other.0))
    }
}

impl Real for Extended {
    fn minus(self, other: Self) -> Self {
        Self(x87::subtract(&self.0, &other.0))
    }
}

impl Ordered for Extended {
    fn less(self, other: Self) -> bool {
        x87::less(&self.0, &other.0)
    }
}
