// SPDX-License-Identifier: Apache-2.0
//! The datatype that the same constructor calls make where basics have other sizes: types of files in another
//! representation.

use std::collections::HashMap;

use crate::datatype::identity;
use crate::describe::again;
use crate::error::{TypeError, narrow};
use crate::{Basic, Datatype};

impl Datatype {
    /// This datatype with basics of other sizes, which are runs of bytes without a meaning. Displacements and extents
    /// that the program gave in bytes stay; those in elements count the new ones. Nothing is padded.
    ///
    /// Types that are made of types may be chains of any length, and have the same type in many places: so each is made
    /// once, and without recursion.
    pub fn with_sizes(&self, size: &dyn Fn(Basic) -> u64) -> Result<Self, TypeError> {
        let mut made = HashMap::new();
        let mut open = vec![self.clone()];
        while let Some(ty) = open.last().cloned() {
            let is_open = |part: &&Self| !made.contains_key(&identity(part));
            if made.contains_key(&identity(&ty)) {
                open.pop();
                continue;
            }
            let parts: Vec<Self> = ty.contents().types.iter().filter(is_open).cloned().collect();
            if parts.is_empty() {
                let types = ty.contents().types.iter().filter_map(|part| made.get(&identity(part)));
                let types: Vec<Self> = types.cloned().collect();
                made.insert(identity(&ty), of_types(&ty, &types, size)?);
            } else {
                open.extend(parts);
            }
        }
        Ok(made.remove(&identity(self)).unwrap_or_else(|| self.clone()))
    }
}

/// The same call with other types, or basics of other sizes.
fn of_types(ty: &Datatype, types: &[Datatype], size: &dyn Fn(Basic) -> u64) -> Result<Datatype, TypeError> {
    if let Some(basic) = ty.basic() {
        return bytes(i128::from(size(basic)));
    }
    match again(ty.contents(), types)? {
        Some(made) => Ok(made),
        None => {
            let mut sum = 0;
            let mut add = |basic, count| sum += i128::from(size(basic)) * i128::from(count);
            ty.signature().each(&mut add);
            bytes(sum)
        }
    }
}

/// Bytes without a meaning.
fn bytes(number: i128) -> Result<Datatype, TypeError> {
    Datatype::contiguous_type(narrow(number, "size")?, &Datatype::of(Basic::Byte))
}

#[cfg(test)]
mod tests {
    use isthmus_abi::constants as abi;

    use super::*;
    use crate::{Distribution, Order, Parametric, Representation};

    /// A type of each combiner with a `long`, and its size, extent and true lower bound where a `long` has 4 bytes.
    fn of_each_combiner() -> Vec<(Datatype, (u64, i64, i64))> {
        let (long, int) = (Datatype::of(Basic::Long), Datatype::of(Basic::Int));
        let part = Datatype::subarray(&[4, 4], &[2, 2], &[1, 1], Order::C, &long);
        let kinds = [i64::from(abi::MPI_DISTRIBUTE_BLOCK)];
        let arguments = [i64::from(abi::MPI_DISTRIBUTE_DFLT_DARG)];
        let block = [Distribution::Block(None)];
        let dealt = Datatype::darray(1, &[10], &block, [&kinds, &arguments], &[2], Order::C, &long);
        let real = Parametric::Real {
            precision: Some(6),
            range: None,
        };
        let all = [
            (Ok(long.clone()), (4, 4, 0)),
            (Ok(Datatype::of(Basic::LongInt)), (8, 8, 0)),
            (Ok(Datatype::dup(&long)), (4, 4, 0)),
            (Datatype::contiguous_type(3, &long), (12, 12, 0)),
            (Datatype::vector(3, 1, 2, &long), (12, 20, 0)),
            (Datatype::hvector(3, 1, 16, &long), (12, 36, 0)),
            (Datatype::indexed(&[1, 2], &[0, 3], &long), (12, 20, 0)),
            (Datatype::hindexed(&[1, 2], &[8, 32], &long), (12, 32, 8)),
            (Datatype::indexed_block(2, &[1, 4], &long), (16, 20, 4)),
            (Datatype::hindexed_block(1, &[8, 24], &long), (8, 20, 8)),
            (
                Datatype::structure(&[1, 2], &[0, 16], &[long.clone(), int]),
                (12, 24, 0),
            ),
            (Datatype::resized(&long, -8, 40), (4, 40, 0)),
            (part, (16, 64, 20)),
            (dealt, (20, 40, 20)),
            (Datatype::indexed_block(2, &[], &long), (0, 0, 0)),
            (Datatype::hindexed(&[], &[], &long), (0, 0, 0)),
        ];
        let real = real.datatype(-1).map(|real| (real, (4, 4, 0)));
        all.into_iter()
            .map(|(ty, expected)| (ty.unwrap(), expected))
            .chain(real)
            .collect()
    }

    #[test]
    fn every_combiner_has_other_sizes() {
        let external = |basic: Basic| Representation::EXTERNAL32.size(basic) as u64;
        let own = |basic: Basic| basic.extent() as u64;
        for (ty, expected) in of_each_combiner() {
            for ty in [ty.clone(), ty.clone().large(), Datatype::dup(&ty).large()] {
                let there = ty.with_sizes(&external).unwrap();
                let found = (there.size(), there.extent(), there.true_lower_bound());
                assert_eq!(found, expected, "{:?}", ty.contents());
                assert_eq!(there.size(), ty.signature().bytes_as(Representation::EXTERNAL32));
                let (same, is_pair) = (ty.with_sizes(&own).unwrap(), ty.signature().uniform().is_none());
                assert!(is_pair || same.window(1) == ty.window(1), "{:?}", ty.contents());
            }
            // One upon the other, in every combination.
            for (outer, _) in of_each_combiner() {
                let both = Datatype::structure(&[1, 2], &[0, 512], &[ty.clone(), outer]).unwrap();
                let size = both.signature().bytes_as(Representation::EXTERNAL32);
                assert_eq!(both.with_sizes(&external).unwrap().size(), size);
            }
        }
    }

    #[test]
    fn chains_and_webs_of_types_are_made_in_time_and_without_a_deep_stack() {
        let external = |basic: Basic| Representation::EXTERNAL32.size(basic) as u64;
        let long = Datatype::of(Basic::Long);
        let chain = (0..50_000).fold(long.clone(), |ty, _| Datatype::dup(&ty));
        assert_eq!(chain.with_sizes(&external).unwrap().size(), 4);
        let web = (0..40).fold(long, |ty, _| {
            Datatype::structure(&[1, 1], &[0, 0], &[ty.clone(), ty]).unwrap()
        });
        assert_eq!(web.with_sizes(&external).unwrap().size(), 4 << 40);
    }

    #[test]
    fn sizes_that_do_not_fit_are_told() {
        let many = Datatype::contiguous_type(1 << 40, &Datatype::of(Basic::Byte)).unwrap();
        assert!(many.with_sizes(&|_| 1 << 30).is_err());
        assert!(Datatype::of(Basic::Byte).with_sizes(&|_| u64::MAX).is_err());
    }

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
