// SPDX-License-Identifier: Apache-2.0
//! A datatype as bytes, and back: for a process that has to know how another one's elements lie.
//!
//! What travels are the calls that made the type (`isthmus_wire::datatype`). They are made again where it arrives, so
//! elements have the sizes that they have there. What was counted in elements counts those; what was given in bytes
//! stays.
//!
//! The layout of a type may take in those of the types that it is made of, so a short description can ask for much
//! memory. How much is reckoned before anything is made ([`cost`]).

use std::collections::HashMap;
use std::fmt;

use isthmus_abi::constants as abi;
use isthmus_wire::codec::DecodeError;
use isthmus_wire::datatype::{Call, Description, MAX_BYTES, MAX_CALLS};

use crate::datatype::identity;
use crate::error::TypeError;
use crate::{Basic, Combiner, Contents, Datatype, Distribution, Order, Parametric};

/// Parts of layouts that any description may ask for, and for each of its bytes. A list of blocks asks for about one
/// for each byte, and so does each structure that has it as its largest part.
const PARTS: (u64, u64) = (1 << 16, 12);

/// Why bytes are not a datatype. Whoever has sent them has made a mistake, or lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAType {
    /// They are no description.
    Bytes(DecodeError),
    /// No call with this combiner (or predefined datatype with this handle) makes a type here.
    Unknown(i64),
    /// The arguments are not those of such a call.
    Arguments(Combiner),
    /// They ask for more memory than such a description needs.
    TooMuch,
    /// A call fails.
    Call(TypeError),
}

impl fmt::Display for NotAType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(error) => write!(f, "no description of a datatype: {error}"),
            Self::Unknown(number) => write!(f, "a datatype that nothing makes: {number}"),
            Self::Arguments(combiner) => write!(f, "a datatype whose arguments are not those of {combiner:?}"),
            Self::TooMuch => f.write_str("a datatype that asks for more memory than its description needs"),
            Self::Call(error) => write!(f, "a datatype that cannot be: {error}"),
        }
    }
}

impl std::error::Error for NotAType {}

/// The type as bytes, for [`from_bytes`] in any process. An error is a type that is too long for that: of
/// more than a quarter of a million blocks, or made of thousands of types.
pub fn to_bytes(ty: &Datatype) -> Result<Vec<u8>, TypeError> {
    let description = description(ty)?;
    let bytes = description.encode();
    let most = |quantity, value: u64, most: usize| TypeError::Above {
        argument: quantity,
        index: 0,
        value: i64::try_from(value).unwrap_or(i64::MAX),
        most: most as i64,
    };
    if bytes.len() > MAX_BYTES {
        return Err(most(
            "description of the datatype, in bytes,",
            bytes.len() as u64,
            MAX_BYTES,
        ));
    }
    let cost = cost(&description);
    if cost > allowed(bytes.len()) {
        return Err(most(
            "size of the layout of the datatype",
            cost,
            allowed(bytes.len()) as usize,
        ));
    }
    Ok(bytes)
}

/// The type that was described by these bytes, with the sizes that elements have here.
pub fn from_bytes(bytes: &[u8]) -> Result<Datatype, NotAType> {
    let description = Description::decode(bytes).map_err(NotAType::Bytes)?;
    if cost(&description) > allowed(bytes.len()) {
        return Err(NotAType::TooMuch);
    }
    let mut made: Vec<Datatype> = Vec::new();
    for call in &description.calls {
        // Calls that nobody needs cost as much as others.
        made.push(make(call, &made)?);
    }
    made.pop().ok_or(NotAType::TooMuch)
}

/// The calls, each once, and without recursion: types that are made of types may be chains of any length, and have
/// the same type in many places.
fn description(ty: &Datatype) -> Result<Description, TypeError> {
    let (mut places, mut calls) = (HashMap::new(), Vec::new());
    let mut open = vec![ty.clone()];
    while let Some(ty) = open.last().cloned() {
        if places.contains_key(&identity(&ty)) {
            open.pop();
            continue;
        }
        let missing: Vec<Datatype> = ty
            .contents()
            .types
            .iter()
            .filter(|part| !places.contains_key(&identity(part)))
            .cloned()
            .collect();
        if !missing.is_empty() {
            open.extend(missing);
            continue;
        }
        let parts = ty.contents().types.iter();
        let types = parts.filter_map(|part| places.get(&identity(part)).copied()).collect();
        places.insert(identity(&ty), calls.len());
        calls.push(described(&ty, types));
        if calls.len() > MAX_CALLS {
            return Err(TypeError::Above {
                argument: "number of datatypes that the datatype is made of",
                index: 0,
                value: calls.len() as i64,
                most: MAX_CALLS as i64,
            });
        }
    }
    Ok(Description { calls })
}

fn described(ty: &Datatype, types: Vec<usize>) -> Call {
    let contents = ty.contents();
    let named = ty.basic().filter(|_| contents.combiner == Combiner::Named);
    Call {
        combiner: contents.combiner as i32,
        integers: named.map_or_else(|| contents.integers.to_vec(), |basic| vec![i64::from(basic.handle())]),
        addresses: contents.addresses.to_vec(),
        counts: contents.counts.to_vec(),
        types,
    }
}

/// Parts of layouts that a description of so many bytes may ask for.
fn allowed(bytes: usize) -> u64 {
    PARTS.0 + PARTS.1 * bytes as u64
}

/// A bound of the parts of all layouts and signatures that are made of a description. Those of a list of types have a
/// few parts for each argument, and take in those of the one that has most of the data. So may each dimension of an
/// array. All others share those of the type that they are made of.
fn cost(description: &Description) -> u64 {
    /// What of other types is written out part by part; and of a call without lists.
    const FEW: (u64, u64) = (4, 32);
    let mut parts: Vec<u64> = Vec::new();
    let mut sum = 0_u64;
    for call in &description.calls {
        let given = (call.integers.len() + call.addresses.len() + call.counts.len()) as u64;
        let largest = call.types.iter().filter_map(|&ty| parts.get(ty)).max();
        let largest = largest.copied().unwrap_or(2);
        let (all, asked) = match combiner(call.combiner) {
            Some(Combiner::Subarray | Combiner::Darray) => {
                let all = largest.saturating_add(2 * given + FEW.1);
                (all, all.saturating_mul(given.max(1)))
            }
            Some(
                Combiner::Indexed
                | Combiner::Hindexed
                | Combiner::IndexedBlock
                | Combiner::HindexedBlock
                | Combiner::Struct,
            ) => {
                // Two arguments for a block, or one.
                let all = largest.saturating_add(given.saturating_mul(FEW.0) / 2);
                (all, all)
            }
            _ => (largest, FEW.1),
        };
        parts.push(all);
        sum = sum.saturating_add(asked);
    }
    sum
}

/// Makes a call again, with types that were made before.
fn make(call: &Call, made: &[Datatype]) -> Result<Datatype, NotAType> {
    let combiner = combiner(call.combiner).ok_or_else(|| NotAType::Unknown(call.combiner.into()))?;
    let contents = Contents {
        combiner,
        integers: call.integers.clone().into(),
        addresses: call.addresses.clone().into(),
        counts: call.counts.clone().into(),
        types: call.types.iter().filter_map(|&ty| made.get(ty).cloned()).collect(),
    };
    let wrong = NotAType::Arguments(combiner);
    if combiner == Combiner::Named {
        let [handle] = call.integers[..] else { return Err(wrong) };
        let basic = u32::try_from(handle).ok().and_then(Basic::from_handle);
        let named = Datatype::of(basic.ok_or(NotAType::Unknown(handle))?);
        let alone = call.types.is_empty() && call.addresses.is_empty() && call.counts.is_empty();
        return if alone { Ok(named) } else { Err(wrong) };
    }
    let again = again(&contents, &contents.types).map_err(NotAType::Call)?;
    // What is not exactly what the call tells of itself is not one of its arguments.
    let is_same = |ty: &Datatype| {
        let own = ty.contents();
        (&own.integers, &own.addresses, &own.counts) == (&contents.integers, &contents.addresses, &contents.counts)
            && own.types.len() == call.types.len()
    };
    again.filter(is_same).ok_or(wrong)
}

fn combiner(number: i32) -> Option<Combiner> {
    const ALL: [Combiner; 16] = [
        Combiner::Named,
        Combiner::Dup,
        Combiner::Contiguous,
        Combiner::Vector,
        Combiner::Hvector,
        Combiner::Indexed,
        Combiner::Hindexed,
        Combiner::IndexedBlock,
        Combiner::HindexedBlock,
        Combiner::Struct,
        Combiner::Subarray,
        Combiner::Darray,
        Combiner::F90Real,
        Combiner::F90Complex,
        Combiner::F90Integer,
        Combiner::Resized,
    ];
    ALL.into_iter().find(|combiner| *combiner as i32 == number)
}

/// The call of these contents with these types. `None`: it has other arguments, or names a predefined type.
pub(crate) fn again(contents: &Contents, types: &[Datatype]) -> Result<Option<Datatype>, TypeError> {
    // The large-count calls have everything in the last list, but for what counts dimensions.
    let large = !contents.counts.is_empty();
    let all: Vec<i64> = match large {
        false => contents.integers.iter().chain(&contents.addresses).copied().collect(),
        true => contents.counts.to_vec(),
    };
    let made = match contents.combiner {
        Combiner::Named | Combiner::ValueIndex => return Ok(None),
        Combiner::F90Real | Combiner::F90Complex | Combiner::F90Integer => return Ok(chosen(contents)),
        Combiner::Struct => {
            let Some((lengths, displacements)) = two_lists(&all) else {
                return Ok(None);
            };
            Datatype::structure(lengths, displacements, types)
        }
        Combiner::Subarray | Combiner::Darray => return array(contents, large, types),
        _ => {
            let [old] = types else { return Ok(None) };
            match of_one(contents.combiner, &all, old) {
                Some(made) => made,
                None => return Ok(None),
            }
        }
    };
    made.map(|ty| Some(if large { ty.large() } else { ty }))
}

/// Those made of one type.
fn of_one(combiner: Combiner, all: &[i64], old: &Datatype) -> Option<Result<Datatype, TypeError>> {
    Some(match (combiner, all) {
        (Combiner::Dup, []) => Ok(Datatype::dup(old)),
        (Combiner::Contiguous, [count]) => Datatype::contiguous_type(*count, old),
        (Combiner::Vector, [count, length, stride]) => Datatype::vector(*count, *length, *stride, old),
        (Combiner::Hvector, [count, length, stride]) => Datatype::hvector(*count, *length, *stride, old),
        (Combiner::Indexed, all) => {
            let (lengths, displacements) = two_lists(all)?;
            Datatype::indexed(lengths, displacements, old)
        }
        (Combiner::Hindexed, all) => {
            let (lengths, displacements) = two_lists(all)?;
            Datatype::hindexed(lengths, displacements, old)
        }
        (Combiner::IndexedBlock, [_, length, displacements @ ..]) => {
            Datatype::indexed_block(*length, displacements, old)
        }
        (Combiner::HindexedBlock, [_, length, displacements @ ..]) => {
            Datatype::hindexed_block(*length, displacements, old)
        }
        (Combiner::Resized, [lower, extent]) => Datatype::resized(old, *lower, *extent),
        _ => return None,
    })
}

/// Two lists behind their common length.
fn two_lists(all: &[i64]) -> Option<(&[i64], &[i64])> {
    let (&count, lists) = all.split_first()?;
    let count = usize::try_from(count).ok()?;
    (count.checked_mul(2) == Some(lists.len())).then(|| lists.split_at(count))
}

/// A type that was chosen by precision and range.
fn chosen(contents: &Contents) -> Option<Datatype> {
    let undefined = i64::from(abi::MPI_UNDEFINED);
    let wish = |&number: &i64| match number {
        number if number == undefined => Some(None),
        number => u32::try_from(number).ok().map(Some),
    };
    let parametric = match (contents.combiner, &contents.integers[..]) {
        (Combiner::F90Real, [precision, range]) => Parametric::Real {
            precision: wish(precision)?,
            range: wish(range)?,
        },
        (Combiner::F90Complex, [precision, range]) => Parametric::Complex {
            precision: wish(precision)?,
            range: wish(range)?,
        },
        (Combiner::F90Integer, [range]) => Parametric::Integer { range: wish(range)?? },
        _ => return None,
    };
    parametric.datatype(undefined)
}

/// A subarray or darray.
fn array(contents: &Contents, large: bool, types: &[Datatype]) -> Result<Option<Datatype>, TypeError> {
    let [old] = types else { return Ok(None) };
    let Some(call) = ArrayCall::of(contents, large) else {
        return Ok(None);
    };
    let ArrayCall { lists, order, rank } = call;
    let made = match (contents.combiner, &lists[..]) {
        (Combiner::Subarray, [sizes, subsizes, starts]) => Datatype::subarray(sizes, subsizes, starts, order, old),
        (_, [sizes, kinds, arguments, grid]) => {
            let distributions: Option<Vec<_>> = kinds
                .iter()
                .zip(*arguments)
                .map(|(&kind, &argument)| distribution(kind, argument))
                .collect();
            let Some(distributions) = distributions else {
                return Ok(None);
            };
            Datatype::darray(rank, sizes, &distributions, [kinds, arguments], grid, order, old)
        }
        _ => return Ok(None),
    };
    made.map(|ty| Some(if large { ty.large() } else { ty }))
}

/// The arguments of the call of an array.
struct ArrayCall<'a> {
    /// One number for each dimension.
    lists: Vec<&'a [i64]>,
    order: Order,
    /// Of a darray.
    rank: i64,
}

impl<'a> ArrayCall<'a> {
    fn of(contents: &'a Contents, large: bool) -> Option<Self> {
        let (order, integers) = contents.integers.split_last()?;
        let order = [Order::C, Order::Fortran]
            .into_iter()
            .find(|known| *known as i64 == *order)?;
        let (rank, dimensions, rest) = match (contents.combiner, integers) {
            (Combiner::Subarray, [dimensions, rest @ ..]) => (0, dimensions, rest),
            (_, [_, rank, dimensions, rest @ ..]) => (*rank, dimensions, rest),
            _ => return None,
        };
        let dimensions = usize::try_from(*dimensions).ok().filter(|&dimensions| dimensions > 0)?;
        let counts: &[i64] = if large { &contents.counts } else { &[] };
        let of = |list: &'a [i64]| (list.len() % dimensions == 0).then(|| list.chunks_exact(dimensions));
        let lists: Vec<_> = of(counts)?.chain(of(rest)?).collect();
        Some(Self { lists, order, rank })
    }
}

fn distribution(kind: i64, argument: i64) -> Option<Distribution> {
    let given = (argument != i64::from(abi::MPI_DISTRIBUTE_DFLT_DARG)).then_some(argument);
    match i32::try_from(kind).ok()? {
        abi::MPI_DISTRIBUTE_NONE => Some(Distribution::None),
        abi::MPI_DISTRIBUTE_BLOCK => Some(Distribution::Block(given)),
        abi::MPI_DISTRIBUTE_CYCLIC => Some(Distribution::Cyclic(given)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(combiner: Combiner, integers: &[i64], types: &[usize]) -> Call {
        Call {
            combiner: combiner as i32,
            integers: integers.to_vec(),
            types: types.to_vec(),
            ..Call::default()
        }
    }

    fn read(calls: Vec<Call>) -> Result<Datatype, NotAType> {
        from_bytes(&Description { calls }.encode())
    }

    fn int() -> Call {
        call(Combiner::Named, &[i64::from(Basic::Int.handle())], &[])
    }

    #[test]
    fn arguments_that_no_such_call_has_are_refused() {
        let block = i64::from(abi::MPI_DISTRIBUTE_BLOCK);
        let wrong: &[(Combiner, &[i64], &[usize])] = &[
            (Combiner::Named, &[], &[]),
            (Combiner::Named, &[0x209], &[0]),
            (Combiner::Dup, &[1], &[0]),
            (Combiner::Dup, &[], &[]),
            (Combiner::Dup, &[], &[0, 0]),
            (Combiner::Contiguous, &[], &[0]),
            (Combiner::Contiguous, &[1, 2], &[0]),
            (Combiner::Vector, &[1, 2], &[0]),
            (Combiner::Indexed, &[], &[0]),
            (Combiner::Indexed, &[2, 1, 1, 0], &[0]),
            (Combiner::Indexed, &[-1], &[0]),
            (Combiner::Indexed, &[i64::MAX, 1, 1], &[0]),
            (Combiner::IndexedBlock, &[3, 1, 0, 1], &[0]),
            (Combiner::HindexedBlock, &[1, 1], &[0]),
            (Combiner::Struct, &[1, 1], &[0]),
            (Combiner::Resized, &[0, 8], &[0]),
            (Combiner::Subarray, &[0, 0xC], &[0]),
            (Combiner::Subarray, &[1, 4, 2, 1, 0xD], &[0]),
            (Combiner::Subarray, &[2, 4, 2, 1, 0xC], &[0]),
            (Combiner::Subarray, &[-1, 4, 2, 1, 0xC], &[0]),
            (Combiner::Darray, &[2, 1, 1, 10, 77, -1, 2, 0xC], &[0]),
            // It says that there are three processes.
            (Combiner::Darray, &[3, 1, 1, 10, block, 5, 2, 0xC], &[0]),
            (Combiner::F90Real, &[6], &[]),
            (Combiner::F90Real, &[6, -5], &[]),
            (Combiner::F90Real, &[600, 6], &[]),
            (Combiner::F90Integer, &[i64::from(abi::MPI_UNDEFINED)], &[]),
        ];
        for (combiner, integers, types) in wrong {
            let found = read(vec![int(), call(*combiner, integers, types)]);
            assert_eq!(found.err(), Some(NotAType::Arguments(*combiner)), "{integers:?}");
        }
        assert_eq!(
            read(vec![call(Combiner::Named, &[7], &[])]).err(),
            Some(NotAType::Unknown(7))
        );
        let index = call(Combiner::ValueIndex, &[], &[0]);
        assert_eq!(read(vec![int(), index]).err(), Some(NotAType::Unknown(117)));
    }

    #[test]
    fn products_that_do_not_fit_are_refused() {
        let huge = |count| call(Combiner::Contiguous, &[count], &[0]);
        assert!(matches!(read(vec![int(), huge(1 << 62)]), Err(NotAType::Call(_))));
        assert!(matches!(read(vec![int(), huge(-1)]), Err(NotAType::Call(_))));
        let again = |ty: usize| call(Combiner::Contiguous, &[1 << 30], &[ty]);
        assert!(matches!(
            read(vec![int(), again(0), again(1), again(2)]),
            Err(NotAType::Call(_))
        ));
        let spread = call(Combiner::Vector, &[1 << 31, 1, 1 << 31], &[0]);
        assert!(matches!(read(vec![int(), spread]), Err(NotAType::Call(_))));
    }

    /// Each structure takes in the layout of the one before it, so that short descriptions can ask for much.
    #[test]
    fn what_asks_for_more_memory_than_its_length_is_refused_before_it_is_made() {
        let list: Vec<i64> = std::iter::once(20_000)
            .chain([1; 20_000])
            .chain((0..20_000).map(|at| 3 * at))
            .collect();
        let mut calls = vec![int(), call(Combiner::Indexed, &list, &[0])];
        let more = |ty: usize| Call {
            addresses: vec![0, 1 << 30],
            ..call(Combiner::Struct, &[2, 1, 1], &[ty, 0])
        };
        assert!(read(calls.clone()).is_ok());
        calls.extend((1..4).map(more));
        assert!(read(calls.clone()).is_ok(), "as programs do");
        calls.extend((4..400).map(more));
        assert_eq!(read(calls).err(), Some(NotAType::TooMuch));
        // Arrays of thousands of dimensions.
        let dimensions = 5000;
        let sizes = std::iter::once(dimensions)
            .chain([1; 10_000])
            .chain([0; 5000])
            .chain([0xC]);
        let array = call(Combiner::Subarray, &sizes.collect::<Vec<_>>(), &[0]);
        assert_eq!(read(vec![int(), array]).err(), Some(NotAType::TooMuch));
    }

    #[test]
    fn chains_and_webs_travel_and_what_is_too_long_is_told_to_who_sends_it() {
        let int = Datatype::of(Basic::Int);
        let chain = |n| (0..n).fold(int.clone(), |ty, _| Datatype::dup(&ty));
        let bytes = to_bytes(&chain(2000)).unwrap();
        assert_eq!(from_bytes(&bytes).unwrap().size(), 4);
        assert!(matches!(to_bytes(&chain(10_000)), Err(TypeError::Above { .. })));
        let pair = |ty: Datatype| Datatype::structure(&[1, 1], &[0, 0], &[ty.clone(), ty]).unwrap();
        let web = (0..40).fold(int.clone(), |ty, _| pair(ty));
        let bytes = to_bytes(&web).unwrap();
        assert!(bytes.len() < 600, "{}", bytes.len());
        assert_eq!(from_bytes(&bytes).unwrap().size(), 4 << 40);
        let places: Vec<i64> = (0..600_000).map(|at| 2 * at).collect();
        let long = Datatype::indexed_block(1, &places, &int).unwrap();
        assert!(matches!(to_bytes(&long), Err(TypeError::Above { .. })));
        let long = Datatype::indexed_block(1, &places[..200_000], &int).unwrap();
        let there = from_bytes(&to_bytes(&long).unwrap()).unwrap();
        assert_eq!((there.size(), there.extent()), (800_000, long.extent()));
    }
}
