// SPDX-License-Identifier: Apache-2.0
//! The values of library memory: what operations get of it, and what comes into it and out of it whole.

use super::own::OwnMemory;
use super::{Owner, ReadMemory, WriteMemory};

impl OwnMemory {
    /// Memory with this content from the origin on.
    pub fn with(content: &[u8]) -> Self {
        let own = Self::new(0, content.len() as isize);
        own.memory().write(0, content);
        own
    }

    /// The memory, to read and write.
    #[inline]
    pub fn memory(&self) -> WriteMemory {
        let (low, high) = self.bounds();
        WriteMemory {
            origin: self.origin(),
            low,
            high,
            owner: Owner::Library(self.clone()),
        }
    }

    /// The memory, to read.
    #[inline]
    pub fn reading(&self) -> ReadMemory {
        let (low, high) = self.bounds();
        ReadMemory {
            origin: self.origin(),
            low,
            high,
            owner: Owner::Library(self.clone()),
        }
    }

    /// A copy of the bytes `low .. high`. As other copies it takes its turn where threads write meanwhile.
    pub fn content(&self) -> Vec<u8> {
        let (low, high) = self.bounds();
        let mut bytes = vec![0; high.abs_diff(low)];
        self.reading().read(low, &mut bytes);
        bytes
    }

    /// The content, which is not copied if the memory is [a vector's](Self::of) and nobody else has it.
    pub fn into_content(self) -> Vec<u8> {
        self.into_vector().unwrap_or_else(|own| own.content())
    }
}
