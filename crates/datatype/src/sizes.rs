// SPDX-License-Identifier: Apache-2.0
//! The datatype that the same constructor calls make where basics have other sizes: types of files in another
//! representation.

use isthmus_abi::constants as abi;

use crate::error::TypeError;
use crate::{Basic, Combiner, Datatype, Distribution, Order};

impl Datatype {
    /// This datatype with basics of other sizes, which are runs of bytes without a meaning. Displacements and extents
    /// that the program gave in bytes stay; those in elements count the new ones. Nothing is padded.
    pub fn with_sizes(&self, size: &dyn Fn(Basic) -> u64) -> Result<Self, TypeError> {
        if let Some(basic) = self.basic() {
            return Self::contiguous_type(size(basic) as i64, &Self::of(Basic::Byte));
        }
        let contents = self.contents();
        let types = contents.types.iter().map(|ty| ty.with_sizes(size));
        let types: Vec<Self> = types.collect::<Result<_, _>>()?;
        // The large-count calls have everything in the last list, but for what counts dimensions.
        let all: Vec<i64> = match contents.counts.is_empty() {
            true => contents.integers.iter().chain(&contents.addresses).copied().collect(),
            false => contents.counts.to_vec(),
        };
        let lists = |from: usize| {
            let n = all.first().map_or(0, |n| *n as usize);
            (&all[from..from + n], &all[from + n..from + 2 * n])
        };
        match contents.combiner {
            Combiner::Named
            | Combiner::F90Real
            | Combiner::F90Complex
            | Combiner::F90Integer
            | Combiner::ValueIndex => {
                let mut bytes = 0;
                self.signature().each(&mut |basic, count| bytes += size(basic) * count);
                Self::contiguous_type(bytes as i64, &Self::of(Basic::Byte))
            }
            Combiner::Dup => Ok(Self::dup(&types[0])),
            Combiner::Contiguous => Self::contiguous_type(all[0], &types[0]),
            Combiner::Vector => Self::vector(all[0], all[1], all[2], &types[0]),
            Combiner::Hvector => Self::hvector(all[0], all[1], all[2], &types[0]),
            Combiner::Indexed => Self::indexed(lists(1).0, lists(1).1, &types[0]),
            Combiner::Hindexed => Self::hindexed(lists(1).0, lists(1).1, &types[0]),
            Combiner::IndexedBlock => Self::indexed_block(all[1], lists(2).0, &types[0]),
            Combiner::HindexedBlock => Self::hindexed_block(all[1], lists(2).0, &types[0]),
            Combiner::Struct => Self::structure(lists(1).0, lists(1).1, &types),
            Combiner::Resized => Self::resized(&types[0], all[0], all[1]),
            Combiner::Subarray | Combiner::Darray => self.array_with(&types[0]),
        }
    }
}

impl Datatype {
    /// A subarray or darray of other elements.
    fn array_with(&self, old: &Self) -> Result<Self, TypeError> {
        let contents = self.contents();
        let large = !contents.counts.is_empty();
        let integers = &contents.integers;
        let order = match integers.last() {
            Some(&order) if order == Order::Fortran as i64 => Order::Fortran,
            _ => Order::C,
        };
        if contents.combiner == Combiner::Subarray {
            let n = integers[0] as usize;
            let lists = if large { &contents.counts[..] } else { &integers[1..] };
            return Self::subarray(&lists[..n], &lists[n..2 * n], &lists[2 * n..3 * n], order, old);
        }
        let n = integers[2] as usize;
        let (sizes, rest) = match large {
            true => (&contents.counts[..n], &integers[3..]),
            false => integers[3..].split_at(n),
        };
        let (kinds, arguments, grid) = (&rest[..n], &rest[n..2 * n], &rest[2 * n..3 * n]);
        let of = |(&kind, &argument): (&i64, &i64)| {
            let given = (argument != i64::from(abi::MPI_DISTRIBUTE_DFLT_DARG)).then_some(argument);
            match i32::try_from(kind) {
                Ok(abi::MPI_DISTRIBUTE_BLOCK) => Distribution::Block(given),
                Ok(abi::MPI_DISTRIBUTE_CYCLIC) => Distribution::Cyclic(given),
                _ => Distribution::None,
            }
        };
        let distributions: Vec<_> = kinds.iter().zip(arguments).map(of).collect();
        Self::darray(integers[1], sizes, &distributions, [kinds, arguments], grid, order, old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_keep_their_form_with_other_basics() {
        let long = Datatype::of(Basic::Long);
        let four = |basic: Basic| if basic == Basic::Long { 4 } else { basic.size() as u64 };
        let vector = Datatype::vector(3, 1, 2, &long).unwrap().with_sizes(&four).unwrap();
        assert_eq!((vector.size(), vector.extent()), (12, 20));
        for large in [false, true] {
            let part = Datatype::subarray(&[4, 4], &[2, 2], &[1, 1], Order::C, &long).unwrap();
            let part = if large { part.large() } else { part };
            let part = part.with_sizes(&four).unwrap();
            assert_eq!((part.size(), part.extent(), part.true_lower_bound()), (16, 64, 20));
            let kinds = [i64::from(abi::MPI_DISTRIBUTE_BLOCK)];
            let dealt = Datatype::darray(
                1,
                &[10],
                &[Distribution::Block(None)],
                [&kinds, &[i64::from(abi::MPI_DISTRIBUTE_DFLT_DARG)]],
                &[2],
                Order::C,
                &long,
            )
            .unwrap();
            let dealt = if large { dealt.large() } else { dealt };
            let dealt = dealt.with_sizes(&four).unwrap();
            assert_eq!((dealt.size(), dealt.true_lower_bound()), (20, 20));
        }
        let byte = Datatype::of(Basic::Char);
        let mixed = Datatype::structure(&[1, 1], &[0, 8], &[byte, long]).unwrap();
        let mixed = mixed.with_sizes(&four).unwrap();
        assert_eq!((mixed.size(), mixed.extent()), (5, 12), "no padding");
    }
}
