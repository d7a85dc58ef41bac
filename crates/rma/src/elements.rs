// SPDX-License-Identifier: Apache-2.0
//! Elements of accumulate and its kin: of which predefined type they are, and what can be done with them.

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_datatype::op::{OnType, Predefined};
use isthmus_datatype::{Basic, Datatype, Kind};

/// The predefined type that a type consists of, if it is one.
pub(crate) fn element(datatype: &Datatype) -> Option<Basic> {
    if let Some(basic) = datatype.basic() {
        return Some(basic);
    }
    match datatype.signature().uniform() {
        // Both halves of some pairs have one type, so it does not tell whether elements are pairs.
        Some(half) if PAIRED.contains(&half) => Some(part(datatype).unwrap_or(half)),
        Some(basic) => Some(basic),
        None => part(datatype),
    }
}

/// What both halves of some pairs are.
const PAIRED: [Basic; 4] = [
    Basic::Int,
    Basic::FortranReal,
    Basic::FortranDoublePrecision,
    Basic::FortranInteger,
];

/// The predefined type that the calls which made a type began with, if that is one. Pairs have two basics in the
/// signature, and are one element.
fn part(datatype: &Datatype) -> Option<Basic> {
    let mut found = None;
    let mut left = vec![datatype.clone()];
    while let Some(next) = left.pop() {
        match next.basic() {
            Some(basic) if found.is_none_or(|other| other == basic) => found = Some(basic),
            Some(_) => return None,
            None if next.size() == 0 => {}
            None => left.extend(next.contents().types.iter().cloned()),
        }
    }
    found
}

/// The same for an argument of a call.
pub(crate) fn element_of(argument: &str, datatype: &Datatype) -> Result<Basic> {
    match element(datatype) {
        Some(basic) => Ok(basic),
        None => fail!(
            abi::MPI_ERR_TYPE,
            argument(argument),
            "consists of elements of different predefined types; accumulate operations need one"
        ),
    }
}

/// Elements of two arguments must be of one type.
pub(crate) fn check_alike(argument: &str, datatype: &Datatype, target: Basic) -> Result<()> {
    let basic = element_of(argument, datatype)?;
    if basic == target || (basic.kind(), basic.size()) == (target.kind(), target.size()) {
        return Ok(());
    }
    fail!(
        abi::MPI_ERR_TYPE,
        argument(argument),
        "consists of {}, but target_datatype of {}; both must be the same",
        basic.name(),
        target.name()
    )
}

/// Whether MPI_Compare_and_swap takes elements of this type.
pub(crate) fn takes_swaps(basic: Basic) -> bool {
    match basic.kind() {
        Kind::Floating | Kind::Complex | Kind::Packed | Kind::Pair(..) => false,
        Kind::Character => basic == Basic::Char,
        _ => true,
    }
}

/// The type of an operation on one element.
pub(crate) fn single(datatype: &Datatype) -> Result<Basic> {
    match datatype.basic() {
        Some(basic) => Ok(basic),
        None => fail!(
            abi::MPI_ERR_TYPE,
            argument("datatype"),
            "is a derived datatype; operations on one element take predefined ones"
        ),
    }
}

/// The numbers that a `char` of C has.
const CHAR: Basic = if std::ffi::c_char::MIN == 0 {
    Basic::UnsignedChar
} else {
    Basic::SignedChar
};

/// Beyond the standard, as with MPICH and Open MPI, MPI_CHAR is a number here.
#[inline]
fn number(basic: Basic) -> Basic {
    if basic == Basic::Char { CHAR } else { basic }
}

/// An operation on a type, for less than [`on`]; `None`: that says why there is none.
#[inline]
pub(crate) fn known_on(operation: Predefined, basic: Basic) -> Option<OnType> {
    operation.known_on(number(basic))
}

/// An operation on a type, for the accumulate family.
pub(crate) fn on(operation: Predefined, basic: Basic) -> Result<OnType> {
    operation
        .on(number(basic))
        .map_err(|error| Error::of_argument(abi::MPI_ERR_OP, "op", format!("cannot be used: {error}")))
}

#[cfg(test)]
mod tests {
    use isthmus_datatype::ALL;

    use super::*;

    #[test]
    fn types_of_one_predefined_type_are_found_and_pairs_count_as_one() {
        let pair = Datatype::of(Basic::DoubleInt);
        let pairs = Datatype::vector(3, 1, 2, &pair).expect("a type");
        assert_eq!(element(&pair), Some(Basic::DoubleInt));
        assert_eq!(element(&pairs), Some(Basic::DoubleInt));
        let of_pairs = |basic: &Basic| matches!(basic.kind(), Kind::Pair(..));
        for &basic in ALL.iter().filter(|&basic| of_pairs(basic) || PAIRED.contains(basic)) {
            let several = Datatype::vector(3, 1, 2, &Datatype::of(basic)).expect("a type");
            assert_eq!(element(&several), Some(basic), "{}", basic.name());
            if let Kind::Pair(value, index) = basic.kind() {
                assert!(value != index || PAIRED.contains(&value), "{}", basic.name());
            }
        }
        let ints = Datatype::vector(3, 1, 2, &Datatype::of(Basic::Int)).expect("a type");
        assert_eq!(element(&ints), Some(Basic::Int));
        let nested = Datatype::vector(2, 1, 2, &ints).expect("a type");
        assert_eq!(element(&nested), Some(Basic::Int));
        assert_eq!(element_of("origin_datatype", &pairs), Ok(Basic::DoubleInt));
        assert!(check_alike("origin_datatype", &ints, Basic::Double).is_err());
        assert!(check_alike("origin_datatype", &ints, Basic::Int32).is_ok());
    }
}
