// SPDX-License-Identifier: Apache-2.0
//! Error handlers (MPI 5.0 section 9.3).

use std::sync::Arc;

/// A handler made by the program.
pub struct UserHandler {
    /// What it was made for.
    pub owner: Owner,
    /// Calls it: (handle of the object, error code); gives the code that it leaves.
    pub call: Box<dyn Fn(usize, i32) -> i32 + Send + Sync>,
}

/// Kinds of objects that have error handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Made by MPI_Comm_create_errhandler.
    Comm,
    /// Made by MPI_Session_create_errhandler.
    Session,
    /// Made by MPI_File_create_errhandler.
    File,
    /// Made by MPI_Win_create_errhandler.
    Win,
}

impl Owner {
    /// As in names of functions, and in sentences.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Comm => ("Comm", "communicators"),
            Self::Session => ("Session", "sessions"),
            Self::File => ("File", "files"),
            Self::Win => ("Win", "windows"),
        }
    }
}

impl std::fmt::Debug for UserHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UserHandler")
    }
}

/// What becomes of an error.
#[derive(Clone, Debug, Default)]
pub enum ErrorHandler {
    /// MPI_ERRORS_ARE_FATAL: the job ends.
    #[default]
    Fatal,
    /// MPI_ERRORS_ABORT: the processes of the communicator end; here that is the job.
    Abort,
    /// MPI_ERRORS_RETURN: the call returns the code.
    Return,
    /// A function of the program.
    User(Arc<UserHandler>),
}
