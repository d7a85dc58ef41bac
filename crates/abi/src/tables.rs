// SPDX-License-Identifier: Apache-2.0
//! Tables about the standard and about Isthmus itself.

#[path = "generated/errors.rs"]
#[rustfmt::skip]
mod errors;
#[path = "generated/functions.rs"]
#[rustfmt::skip]
mod functions;

pub use errors::ERROR_CLASSES;
pub use functions::FUNCTIONS;

/// An error class of the standard, or one that other libraries have too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorClass {
    /// Its value.
    pub class: i32,
    /// Its name in C.
    pub name: &'static str,
    /// What MPI_Error_string says.
    pub text: &'static str,
}

/// A C function of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// `MPI_X`
    pub name: &'static str,
    /// Chapter of the standard, one word.
    pub chapter: &'static str,
    /// First version of the standard that has it.
    pub since: &'static str,
    /// Whether this library implements it; otherwise it raises MPI_ERR_UNSUPPORTED_OPERATION.
    pub implemented: bool,
}

/// The row of an error class.
pub fn error_class(class: i32) -> Option<&'static ErrorClass> {
    ERROR_CLASSES
        .binary_search_by_key(&class, |row| row.class)
        .ok()
        .map(|index| &ERROR_CLASSES[index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::{MPI_ERR_ABI, MPI_ERR_TRUNCATE};
    use crate::handles::{DATATYPES, MPI_CHARACTER, MPI_COMM_WORLD, MPI_ERRORS_RETURN};

    #[test]
    fn classes_are_found_by_value() {
        assert!(ERROR_CLASSES.is_sorted_by_key(|row| row.class));
        assert_eq!(
            error_class(MPI_ERR_TRUNCATE).map(|row| row.name),
            Some("MPI_ERR_TRUNCATE")
        );
        assert_eq!(error_class(MPI_ERR_ABI).map(|row| row.name), Some("MPI_ERR_ABI"));
        assert_eq!(error_class(63), None);
    }

    #[test]
    fn every_function_of_the_abi_is_listed() {
        assert_eq!(FUNCTIONS.len(), 662);
    }

    #[test]
    fn handles_have_the_values_of_the_standard() {
        assert_eq!(
            (MPI_COMM_WORLD.0, MPI_CHARACTER.0, MPI_ERRORS_RETURN.0),
            (0x101, 0x21e, 0x143)
        );
        assert!(
            DATATYPES
                .iter()
                .all(|(_, datatype)| (0x201..0x300).contains(&datatype.0))
        );
    }
}
