// SPDX-License-Identifier: Apache-2.0
//! The parts of all processes in a window. Most windows have equal ones at equal distances, which are three numbers
//! whatever the number of processes.

/// What all know of the part that a process has in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Bytes.
    pub(crate) size: u64,
    /// Bytes of a displacement.
    pub(crate) unit: u64,
    /// Where it begins in the memory that the window has brought; 0 if it has brought none.
    pub(crate) at: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) enum Parts {
    /// The first one, the distance to the next, and how many there are.
    Equal(Part, u64, u32),
    /// One for each process.
    Table(Box<[Part]>),
}

impl Parts {
    pub(crate) fn new(all: Vec<Part>) -> Self {
        let Some(first) = all.first().copied() else {
            return Self::Table(Box::default());
        };
        let distance = all.get(1).map_or(0, |second| second.at.wrapping_sub(first.at));
        let parts = Self::Equal(first, distance, all.len() as u32);
        if (0..).zip(&all).all(|(rank, part)| parts.get(rank) == *part) {
            return parts;
        }
        Self::Table(all.into())
    }

    /// That of a process, which there is.
    #[inline]
    pub(crate) fn get(&self, rank: u32) -> Part {
        match self {
            Self::Equal(first, distance, _) => Part {
                at: first.at.wrapping_add(distance.wrapping_mul(u64::from(rank))),
                ..*first
            },
            Self::Table(all) => all[rank as usize],
        }
    }

    /// How many there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Equal(_, _, count) => *count as usize,
            Self::Table(all) => all.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_need_no_table_and_others_are_found() {
        let part = |size, at| Part { size, unit: 8, at };
        for (all, is_equal) in [
            (vec![part(8, 0), part(8, 64), part(8, 128)], true),
            (vec![part(8, 5)], true),
            (vec![part(8, 100), part(8, 50), part(8, 0)], true),
            (vec![part(8, 0), part(8, 64), part(8, 100)], false),
            (vec![part(8, 0), part(9, 64)], false),
        ] {
            let parts = Parts::new(all.clone());
            assert_eq!(matches!(parts, Parts::Equal(..)), is_equal, "{all:?}");
            assert_eq!(parts.count(), all.len());
            assert!((0..).zip(&all).all(|(rank, part)| parts.get(rank) == *part));
        }
    }
}
