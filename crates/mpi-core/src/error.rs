// SPDX-License-Identifier: Apache-2.0
//! What went wrong, as MPI sees it: an error class and a sentence.

/// An error class of the MPI standard (section 9.4): `MPI_ERR_…`.
pub type Class = i32;

/// An error on its way to an error handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Error class or a code that the program added.
    pub class: Class,
    /// What is wrong with which argument or peer, and why; completes "MPI_X failed: ".
    pub message: String,
}

/// Result of everything in this room.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of this class.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
        }
    }

    /// The same error as the program knows it: where the sentence speaks of an argument, that is called `argument` there.
    #[must_use]
    pub fn about(self, argument: &str) -> Self {
        let rest = self.message.strip_prefix("argument ").and_then(|m| m.split_once(' '));
        let message = match rest {
            Some((_, rest)) => format!("argument {argument} {rest}"),
            None => format!("argument {argument}: {}", self.message),
        };
        Self { message, ..self }
    }
}

/// Naming the argument in the error of a room that does not know what the program calls it.
pub trait About {
    /// See [`Error::about`].
    #[must_use]
    fn about(self, argument: &str) -> Self;
}

impl<T> About for Result<T> {
    fn about(self, argument: &str) -> Self {
        self.map_err(|error| error.about(argument))
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// `Err` of this class with a formatted message.
#[macro_export]
macro_rules! fail {
    ($class:expr, $($text:tt)*) => {
        return Err($crate::error::Error::new($class, format!($($text)*)))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_gets_the_name_that_the_program_knows() {
        let error = Error::new(1, "argument datatype is MPI_DATATYPE_NULL").about("sendtype");
        assert_eq!(error.message, "argument sendtype is MPI_DATATYPE_NULL");
        let error: Result<()> = Err(Error::new(1, "too large"));
        assert_eq!(
            error.about("count").map_err(|e| e.message),
            Err("argument count: too large".to_owned())
        );
    }
}
