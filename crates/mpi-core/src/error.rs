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
