// SPDX-License-Identifier: Apache-2.0
//! Datatypes against an oracle that writes every type map out in full, byte by byte.

#![expect(clippy::unwrap_used, reason = "a test may")]

use isthmus_abi::constants as abi;
use isthmus_datatype::describe::{from_bytes, to_bytes};
use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_datatype::{ALL, Basic, Datatype, Distribution, Kind, Order, Packer, Unpacker};
use proptest::collection::vec;
use proptest::prelude::*;

/// A type to build, both for real and as an oracle.
#[derive(Clone, Debug)]
enum Recipe {
    Basic(Basic),
    Contiguous(i64, Box<Self>),
    Vector(i64, i64, i64, Box<Self>),
    Hvector(i64, i64, i64, Box<Self>),
    Indexed(Vec<(i64, i64)>, Box<Self>),
    Hindexed(Vec<(i64, i64)>, Box<Self>),
    IndexedBlock(i64, Vec<i64>, Box<Self>),
    HindexedBlock(i64, Vec<i64>, Box<Self>),
    Struct(Vec<(i64, i64, Self)>),
    Resized(i64, i64, Box<Self>),
    Dup(Box<Self>),
    /// Size, part, start of each dimension.
    Subarray(Vec<(i64, i64, i64)>, Order, Box<Self>),
    /// Size, distribution, processes, own coordinate of each dimension.
    Darray(Vec<(i64, Distribution, i64, i64)>, Order, Box<Self>),
}

/// The type map written out: basics at offsets, in order, and the bounds by the rules of section 5.1.6.
#[derive(Clone, Debug)]
struct Oracle {
    map: Vec<(i64, Basic)>,
    lower: i64,
    upper: i64,
    marked: bool,
    alignment: i64,
}

impl Oracle {
    fn basic(basic: Basic) -> Self {
        let map = match basic.kind() {
            Kind::Pair(value, index) => vec![(0, value), (basic.index_offset() as i64, index)],
            _ => vec![(0, basic)],
        };
        Self {
            map,
            lower: 0,
            upper: basic.extent() as i64,
            marked: false,
            alignment: basic.alignment() as i64,
        }
    }

    /// Copies of types at displacements.
    fn of(copies: Vec<(i64, &Self)>, padded: bool) -> Self {
        let copies: Vec<_> = copies
            .into_iter()
            .filter(|(_, o)| !o.map.is_empty() || o.marked)
            .collect();
        let marked = copies.iter().any(|(_, o)| o.marked);
        let counted = || copies.iter().filter(|(_, o)| o.marked == marked);
        let lower = counted().map(|(d, o)| d + o.lower).min().unwrap_or(0);
        let mut upper = counted().map(|(d, o)| d + o.upper).max().unwrap_or(0);
        let alignment = copies.iter().map(|(_, o)| o.alignment).max().unwrap_or(1);
        while padded && !marked && (upper - lower) % alignment != 0 {
            upper += 1;
        }
        let map = copies
            .iter()
            .flat_map(|(d, o)| o.map.iter().map(move |(at, b)| (d + at, *b)))
            .collect();
        Self {
            map,
            lower,
            upper,
            marked,
            alignment,
        }
    }

    fn extent(&self) -> i64 {
        self.upper - self.lower
    }

    fn blocks(&self, blocks: &[(i64, i64)]) -> Self {
        let copies = blocks
            .iter()
            .flat_map(|&(l, d)| (0..l).map(move |i| (d + i * self.extent(), self)));
        Self::of(copies.collect(), false)
    }

    /// The chosen elements of an array, in storage order.
    fn array(&self, sizes: &[i64], order: Order, chosen: impl Fn(usize, i64) -> bool) -> Self {
        let mut fastest: Vec<usize> = (0..sizes.len()).collect();
        if order == Order::C {
            fastest.reverse();
        }
        let all: i64 = sizes.iter().product();
        let is_chosen = |element: &i64| {
            let mut rest = *element;
            fastest.iter().all(|&d| {
                let index = rest % sizes[d];
                rest /= sizes[d];
                chosen(d, index)
            })
        };
        let copies = (0..all).filter(is_chosen).map(|i| (i * self.extent(), self)).collect();
        let alignment = self.alignment;
        Self {
            lower: 0,
            upper: all * self.extent(),
            marked: true,
            alignment,
            ..Self::of(copies, false)
        }
    }

    /// Offsets of the bytes of the stream of `count` elements.
    fn bytes(&self, count: i64) -> Vec<i64> {
        let element = |i: i64| {
            self.map
                .iter()
                .flat_map(move |&(at, b)| (0..b.size() as i64).map(move |k| i * self.extent() + at + k))
        };
        (0..count).flat_map(element).collect()
    }
}

impl Recipe {
    fn oracle(&self) -> Oracle {
        match self {
            Self::Basic(basic) => Oracle::basic(*basic),
            Self::Contiguous(count, old) => old.oracle().blocks(&[(*count, 0)]),
            Self::Vector(count, length, stride, old) => {
                let old = old.oracle();
                old.blocks(
                    &(0..*count)
                        .map(|i| (*length, i * stride * old.extent()))
                        .collect::<Vec<_>>(),
                )
            }
            Self::Hvector(count, length, stride, old) => old
                .oracle()
                .blocks(&(0..*count).map(|i| (*length, i * stride)).collect::<Vec<_>>()),
            Self::Indexed(blocks, old) => {
                let old = old.oracle();
                old.blocks(&blocks.iter().map(|(l, d)| (*l, d * old.extent())).collect::<Vec<_>>())
            }
            Self::Hindexed(blocks, old) => old.oracle().blocks(blocks),
            Self::IndexedBlock(length, at, old) => {
                let old = old.oracle();
                old.blocks(&at.iter().map(|d| (*length, d * old.extent())).collect::<Vec<_>>())
            }
            Self::HindexedBlock(length, at, old) => old
                .oracle()
                .blocks(&at.iter().map(|d| (*length, *d)).collect::<Vec<_>>()),
            Self::Struct(members) => {
                let olds: Vec<_> = members.iter().map(|(_, _, old)| old.oracle()).collect();
                let copies = members.iter().zip(&olds);
                let copies = copies.flat_map(|((l, d, _), o)| (0..*l).map(move |i| (d + i * o.extent(), o)));
                Oracle::of(copies.collect(), true)
            }
            Self::Resized(lower, extent, old) => Oracle {
                lower: *lower,
                upper: lower + extent,
                marked: true,
                ..old.oracle()
            },
            Self::Dup(old) => old.oracle(),
            Self::Subarray(dimensions, order, old) => {
                let sizes: Vec<_> = dimensions.iter().map(|d| d.0).collect();
                old.oracle().array(&sizes, *order, |d, i| {
                    let (_, part, start) = dimensions[d];
                    (start..start + part).contains(&i)
                })
            }
            Self::Darray(dimensions, order, old) => {
                let sizes: Vec<_> = dimensions.iter().map(|d| d.0).collect();
                old.oracle()
                    .array(&sizes, *order, |d, i| owner(dimensions[d], i) == dimensions[d].3)
            }
        }
    }

    fn build(&self) -> Datatype {
        let unzip = |blocks: &[(i64, i64)]| blocks.iter().copied().unzip::<i64, i64, Vec<_>, Vec<_>>();
        match self {
            Self::Basic(basic) => Ok(Datatype::of(*basic)),
            Self::Contiguous(count, old) => Datatype::contiguous_type(*count, &old.build()),
            Self::Vector(count, length, stride, old) => Datatype::vector(*count, *length, *stride, &old.build()),
            Self::Hvector(count, length, stride, old) => Datatype::hvector(*count, *length, *stride, &old.build()),
            Self::Indexed(blocks, old) => {
                let (lengths, at) = unzip(blocks);
                Datatype::indexed(&lengths, &at, &old.build())
            }
            Self::Hindexed(blocks, old) => {
                let (lengths, at) = unzip(blocks);
                Datatype::hindexed(&lengths, &at, &old.build())
            }
            Self::IndexedBlock(length, at, old) => Datatype::indexed_block(*length, at, &old.build()),
            Self::HindexedBlock(length, at, old) => Datatype::hindexed_block(*length, at, &old.build()),
            Self::Struct(members) => {
                let lengths: Vec<_> = members.iter().map(|m| m.0).collect();
                let at: Vec<_> = members.iter().map(|m| m.1).collect();
                let types: Vec<_> = members.iter().map(|m| m.2.build()).collect();
                Datatype::structure(&lengths, &at, &types)
            }
            Self::Resized(lower, extent, old) => Datatype::resized(&old.build(), *lower, *extent),
            Self::Dup(old) => Ok(Datatype::dup(&old.build())),
            Self::Subarray(dimensions, order, old) => {
                let list = |f: fn(&(i64, i64, i64)) -> i64| dimensions.iter().map(f).collect::<Vec<_>>();
                Datatype::subarray(&list(|d| d.0), &list(|d| d.1), &list(|d| d.2), *order, &old.build())
            }
            Self::Darray(dimensions, order, old) => {
                let list = |f: fn(&(i64, Distribution, i64, i64)) -> i64| dimensions.iter().map(f).collect::<Vec<_>>();
                let how: Vec<_> = dimensions.iter().map(|d| d.1).collect();
                let rank = dimensions.iter().fold(0, |rank, d| rank * d.2 + d.3);
                let (sizes, grid) = (list(|d| d.0), list(|d| d.2));
                let (kinds, arguments) = how.iter().copied().map(as_given).unzip();
                let arguments: [Vec<i64>; 2] = [kinds, arguments];
                let given = [&arguments[0][..], &arguments[1][..]];
                Datatype::darray(rank, &sizes, &how, given, &grid, *order, &old.build())
            }
        }
        .unwrap()
    }
}

/// A distribution and its argument, as programs give them.
fn as_given(how: Distribution) -> (i64, i64) {
    let default = i64::from(abi::MPI_DISTRIBUTE_DFLT_DARG);
    let (kind, argument) = match how {
        Distribution::None => (abi::MPI_DISTRIBUTE_NONE, None),
        Distribution::Block(block) => (abi::MPI_DISTRIBUTE_BLOCK, block),
        Distribution::Cyclic(block) => (abi::MPI_DISTRIBUTE_CYCLIC, block),
    };
    (i64::from(kind), argument.unwrap_or(default))
}

/// Which process has index `i` of a dimension.
fn owner((size, how, processes, _): (i64, Distribution, i64, i64), i: i64) -> i64 {
    match how {
        Distribution::None => 0,
        Distribution::Block(block) => i / block.unwrap_or((size + processes - 1) / processes),
        Distribution::Cyclic(block) => i / block.unwrap_or(1) % processes,
    }
}

fn dealt() -> impl Strategy<Value = (i64, Distribution, i64, i64)> {
    (1..8i64, 1..4i64, 0..4i64, 0..6usize, 1..4i64).prop_map(|(size, processes, at, how, block)| {
        let least = (size + processes - 1) / processes;
        match how {
            0 => (size, Distribution::None, 1, 0),
            1 => (size, Distribution::Block(None), processes, at % processes),
            2 => (
                size,
                Distribution::Block(Some(least + block - 1)),
                processes,
                at % processes,
            ),
            3 => (size, Distribution::Cyclic(None), processes, at % processes),
            _ => (size, Distribution::Cyclic(Some(block)), processes, at % processes),
        }
    })
}

fn part() -> impl Strategy<Value = (i64, i64, i64)> {
    (1..6i64, 0..6i64, 0..6i64).prop_map(|(size, part, start)| {
        let part = 1 + part % size;
        (size, part, start % (size - part + 1))
    })
}

/// More blocks than are written out one by one, of a few lengths, at growing displacements.
fn long_lists() -> impl Strategy<Value = Recipe> {
    let blocks = vec((1..4i64, 0..3i64), 30..80);
    (blocks, 0..ALL.len(), 1..3i64).prop_map(|(blocks, basic, most)| {
        let mut place = 0;
        let block = |(length, gap): (i64, i64)| {
            let at = place + gap;
            place = at + length.min(most);
            (length.min(most), at)
        };
        Recipe::Indexed(
            blocks.into_iter().map(block).collect(),
            Box::new(Recipe::Basic(ALL[basic])),
        )
    })
}

/// More blocks than are written out one by one, at equal distances.
fn long_vectors() -> impl Strategy<Value = Recipe> {
    (20..60i64, 1..3i64, -5..6i64, 0..ALL.len()).prop_map(|(count, length, stride, basic)| {
        Recipe::Vector(count, length, stride, Box::new(Recipe::Basic(ALL[basic])))
    })
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let count = || 0..4i64;
    let order = || prop_oneof![Just(Order::C), Just(Order::Fortran)];
    let leaf = (0..ALL.len()).prop_map(|i| Recipe::Basic(ALL[i]));
    let leaf = prop_oneof![4 => leaf, 1 => long_lists(), 1 => long_vectors()];
    let recipe = leaf.prop_recursive(4, 24, 4, move |inner| {
        let old = inner.clone().prop_map(Box::new);
        let blocks = |least: i64, most: i64| vec((count(), least..most), 0..6);
        prop_oneof![
            (count(), old.clone()).prop_map(|(c, o)| Recipe::Contiguous(c, o)),
            (count(), count(), -4..6i64, old.clone()).prop_map(|(c, l, s, o)| Recipe::Vector(c, l, s, o)),
            (count(), count(), -40..60i64, old.clone()).prop_map(|(c, l, s, o)| Recipe::Hvector(c, l, s, o)),
            (blocks(-4, 8), old.clone()).prop_map(|(b, o)| Recipe::Indexed(b, o)),
            (blocks(-40, 80), old.clone()).prop_map(|(b, o)| Recipe::Hindexed(b, o)),
            (count(), vec(-4..8i64, 0..6), old.clone()).prop_map(|(l, d, o)| Recipe::IndexedBlock(l, d, o)),
            (count(), vec(-40..80i64, 0..6), old.clone()).prop_map(|(l, d, o)| Recipe::HindexedBlock(l, d, o)),
            vec((count(), -40..80i64, inner), 0..4).prop_map(Recipe::Struct),
            (-8..8i64, -8..40i64, old.clone()).prop_map(|(l, e, o)| Recipe::Resized(l, e, o)),
            (vec(part(), 1..4), order(), old.clone()).prop_map(|(d, r, o)| Recipe::Subarray(d, r, o)),
            (vec(dealt(), 1..4), order(), old.clone()).prop_map(|(d, r, o)| Recipe::Darray(d, r, o)),
            old.prop_map(Recipe::Dup),
        ]
    });
    recipe.prop_filter("small enough to write out", |r| r.oracle().map.len() <= 1500)
}

/// Memory with the window of a type, and a way to look at a byte of it.
struct Buffer {
    bytes: Vec<u8>,
    low: isize,
    high: isize,
}

impl Buffer {
    fn new(datatype: &Datatype, count: u64, fill: impl FnMut(usize) -> u8) -> Self {
        let (low, high) = datatype.window(count).unwrap();
        Self {
            bytes: (0..(high - low) as usize).map(fill).collect(),
            low,
            high,
        }
    }

    fn reading(&self) -> ReadMemory {
        // SAFETY: the buffer outlives the packers of a test and is not written meanwhile.
        unsafe { ReadMemory::new(self.bytes.as_ptr().wrapping_offset(-self.low), self.low, self.high) }
    }

    fn writing(&mut self) -> WriteMemory {
        // SAFETY: the buffer outlives the unpackers of a test and is not used meanwhile.
        unsafe { WriteMemory::new(self.bytes.as_mut_ptr().wrapping_offset(-self.low), self.low, self.high) }
    }

    fn at(&self, offset: i64) -> u8 {
        self.bytes[(offset as isize - self.low) as usize]
    }

    fn put(&mut self, offset: i64, byte: u8) {
        self.bytes[(offset as isize - self.low) as usize] = byte;
    }
}

fn noise(i: usize) -> u8 {
    (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[1]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn sizes_and_bounds(recipe in recipes()) {
        let (oracle, datatype) = (recipe.oracle(), recipe.build());
        let bytes = oracle.bytes(1);
        prop_assert_eq!(datatype.size(), bytes.len() as u64);
        prop_assert_eq!((datatype.lower_bound(), datatype.extent()), (oracle.lower, oracle.upper - oracle.lower));
        let low = bytes.iter().min().copied().unwrap_or(0);
        let high = bytes.iter().max().map_or(0, |b| b + 1);
        prop_assert_eq!((datatype.true_lower_bound(), datatype.true_extent()), (low, high - low));
    }

    #[test]
    fn a_type_that_travels_is_the_same(recipe in recipes(), large in any::<bool>()) {
        let datatype = recipe.build();
        let named = datatype.basic().is_some() && datatype.contents().types.is_empty();
        let datatype = if large && !named { datatype.large() } else { datatype };
        let there = from_bytes(&to_bytes(&datatype).unwrap()).unwrap();
        let what = |ty: &Datatype| {
            let (contents, bounds) = (ty.contents().clone(), (ty.lower_bound(), ty.extent(), ty.window(3)));
            let lists = (contents.combiner, contents.integers, contents.addresses, contents.counts);
            (lists, bounds, ty.basic(), ty.size(), ty.contiguous(2))
        };
        prop_assert_eq!(what(&there), what(&datatype));
        prop_assert!(there.signature() == datatype.signature());
        let buffer = Buffer::new(&datatype, 2, noise);
        let packed = |ty: &Datatype| {
            let mut packer = Packer::new(ty, 2, buffer.reading()).unwrap();
            let mut bytes = vec![0; packer.size() as usize];
            packer.pack(&mut bytes);
            bytes
        };
        prop_assert_eq!(packed(&there), packed(&datatype));
    }

    #[test]
    fn bytes_that_were_changed_are_another_type_or_none(
        recipe in recipes(), changes in vec((any::<u16>(), any::<u8>()), 1..4), end in any::<u16>()
    ) {
        let mut bytes = to_bytes(&recipe.build()).unwrap();
        for (at, byte) in changes {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(1 + usize::from(end) % (2 * bytes.len()));
        if let Ok(there) = from_bytes(&bytes) {
            let again = from_bytes(&to_bytes(&there).unwrap()).unwrap();
            prop_assert_eq!((again.size(), again.extent()), (there.size(), there.extent()));
        }
    }

    #[test]
    fn signatures(recipe in recipes(), count in 0..4i64) {
        let (oracle, datatype) = (recipe.oracle(), recipe.build());
        let mut basics = Vec::new();
        datatype.signature().each(&mut |basic, n| basics.extend((0..n).map(|_| basic)));
        prop_assert_eq!(&basics, &oracle.map.iter().map(|(_, b)| *b).collect::<Vec<_>>());
        prop_assert_eq!(datatype.signature().elements(), basics.len() as u64);
        let (mut end, mut whole) = (0, 0);
        for basic in (0..count).flat_map(|_| &basics) {
            prop_assert_eq!(datatype.elements(end), Some(whole));
            for inside in 1..basic.size() as u64 {
                prop_assert_eq!(datatype.signature().elements_in(end + inside), (whole, inside));
            }
            end += basic.size() as u64;
            whole += 1;
        }
        prop_assert_eq!(datatype.elements(end), Some(whole));
    }

    #[test]
    fn one_piece_is_recognized(recipe in recipes(), count in 0..3i64) {
        let (oracle, datatype) = (recipe.oracle(), recipe.build());
        let bytes = oracle.bytes(count);
        let expected = match bytes.first() {
            None => Some((0, 0)),
            Some(&first) => bytes.iter().enumerate().all(|(i, b)| *b == first + i as i64)
                .then_some((first as isize, bytes.len() as u64)),
        };
        prop_assert_eq!(datatype.contiguous(count as u64), expected);
    }

    #[test]
    fn packs_in_any_pieces(recipe in recipes(), count in 0..4u64, pieces in vec(0..40usize, 1..20)) {
        let (oracle, datatype) = (recipe.oracle(), recipe.build());
        let buffer = Buffer::new(&datatype, count, noise);
        let expected: Vec<u8> = oracle.bytes(count as i64).into_iter().map(|at| buffer.at(at)).collect();
        let mut packer = Packer::new(&datatype, count, buffer.reading()).unwrap();
        prop_assert_eq!(packer.size(), expected.len() as u64);
        let mut packed = Vec::new();
        for limit in pieces.iter().copied().chain([expected.len(), 1]) {
            let mut piece = vec![0; limit];
            let n = packer.pack(&mut piece);
            packed.extend_from_slice(&piece[..n]);
        }
        prop_assert_eq!(packed, expected);
        prop_assert_eq!(packer.remaining(), 0);
    }

    #[test]
    fn seeks_anywhere(recipe in recipes(), count in 1..4u64, places in vec((any::<u32>(), 0..50usize), 1..20)) {
        let (oracle, datatype) = (recipe.oracle(), recipe.build());
        let buffer = Buffer::new(&datatype, count, noise);
        let expected: Vec<u8> = oracle.bytes(count as i64).into_iter().map(|at| buffer.at(at)).collect();
        let mut packer = Packer::new(&datatype, count, buffer.reading()).unwrap();
        for (place, limit) in places {
            let from = place as usize % (expected.len() + 1);
            packer.seek(from as u64);
            let mut piece = vec![0; limit];
            let n = packer.pack(&mut piece);
            prop_assert_eq!(&piece[..n], &expected[from..(from + limit).min(expected.len())]);
        }
    }

    #[test]
    fn unpacks_in_any_pieces_and_touches_nothing_else(
        recipe in recipes(), count in 0..4u64, pieces in vec(0..40usize, 1..20),
    ) {
        let (oracle, datatype) = (recipe.oracle(), recipe.build());
        let bytes = oracle.bytes(count as i64);
        let mut distinct = bytes.clone();
        distinct.sort_unstable();
        distinct.dedup();
        // A type map for receiving must not overlap (section 5.1.11): in which order it would be written is open.
        prop_assume!(distinct.len() == bytes.len());
        let stream: Vec<u8> = (0..bytes.len()).map(noise).collect();
        let mut expected = Buffer::new(&datatype, count, |_| 0xee);
        bytes.iter().zip(&stream).for_each(|(&at, &byte)| expected.put(at, byte));
        let mut buffer = Buffer::new(&datatype, count, |_| 0xee);
        let mut unpacker = Unpacker::new(&datatype, count, buffer.writing()).unwrap();
        let mut rest = &stream[..];
        for limit in pieces.iter().copied().chain([stream.len()]) {
            let (piece, after) = rest.split_at(limit.min(rest.len()));
            prop_assert_eq!(unpacker.unpack(piece), piece.len());
            rest = after;
        }
        prop_assert_eq!(unpacker.unpack(&[1, 2, 3]), 0, "nothing is taken beyond the end");
        prop_assert_eq!(buffer.bytes, expected.bytes);
    }
}
