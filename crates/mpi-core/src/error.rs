// SPDX-License-Identifier: Apache-2.0
//! What went wrong, as MPI sees it: an error class and a sentence.

use isthmus_wire::word;

/// An error class of the MPI standard (section 9.4): `MPI_ERR_…`.
pub type Class = i32;

/// An error on its way to an error handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Error class or a code that the program added.
    pub class: Class,
    /// What the message speaks of.
    pub subject: Subject,
    /// What is wrong, and why. With the subject it completes "MPI_X failed: ".
    pub message: String,
}

/// What the message of an error speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The message is a sentence of its own.
    Message,
    /// This argument: the message goes on behind its name.
    Argument(String),
    /// Something within this argument: the message is a sentence of its own.
    Within(String),
    /// An object that the message names, with all that it takes to find it: nobody has to add anything.
    Named,
}

/// Result of everything in this room.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of this class.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            subject: Subject::Message,
            message: message.into(),
        }
    }

    /// An error of this class about an argument; `message` goes on behind its name.
    pub fn of_argument(class: Class, argument: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            class,
            subject: Subject::Argument(argument.into()),
            message: message.into(),
        }
    }

    /// An error of this class whose message names the object that it is about.
    pub fn named(class: Class, message: impl Into<String>) -> Self {
        Self {
            subject: Subject::Named,
            ..Self::new(class, message)
        }
    }

    /// The same error as the program knows it, where the argument is called `argument`.
    #[must_use]
    pub fn about(self, argument: &str) -> Self {
        let subject = match self.subject {
            Subject::Argument(_) => Subject::Argument(argument.to_owned()),
            Subject::Message | Subject::Within(_) => Subject::Within(argument.to_owned()),
            Subject::Named => Subject::Named,
        };
        Self { subject, ..self }
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
        match &self.subject {
            Subject::Message | Subject::Named => {}
            Subject::Argument(name) => write!(f, "argument {name} ")?,
            Subject::Within(name) => write!(f, "argument {name}: ")?,
        }
        f.write_str(&word::show(&word::without_numbers(&self.message)))
    }
}

impl std::error::Error for Error {}

/// `Err` of this class with a formatted message; `argument(NAME)` before it: the message goes on behind "argument
/// NAME".
#[macro_export]
macro_rules! fail {
    ($class:expr, argument($name:expr), $($text:tt)*) => {
        return Err($crate::error::Error::of_argument($class, $name, format!($($text)*)))
    };
    ($class:expr, $($text:tt)*) => {
        return Err($crate::error::Error::new($class, format!($($text)*)))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_gets_the_name_that_the_program_knows() {
        let error = Error::of_argument(1, "datatype", "is MPI_DATATYPE_NULL").about("sendtype");
        assert_eq!(error.to_string(), "argument sendtype is MPI_DATATYPE_NULL");
        let error = Error::new(1, "cannot open it: No such file or directory (os error 2)");
        assert_eq!(error.to_string(), "cannot open it: No such file or directory");
        let error: Result<()> = Err(Error::new(1, "too large"));
        assert_eq!(
            error.about("count").map_err(|e| e.to_string()),
            Err("argument count: too large".to_owned())
        );
    }
}
