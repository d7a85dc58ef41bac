// SPDX-License-Identifier: Apache-2.0
//! What goes wrong with a vendor MPI.

use std::path::PathBuf;

/// Why a vendor MPI cannot be used.
#[derive(Debug)]
pub enum VendorError {
    /// The compiler wrapper cannot be run.
    NoCompiler {
        /// What was called.
        mpicc: String,
        /// Why not.
        why: std::io::Error,
    },
    /// The wrapper does not compile the adaptor.
    Compile {
        /// The whole command.
        command: String,
        /// What it printed, cut.
        output: String,
    },
    /// A file cannot be written or read.
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: std::io::Error,
    },
    /// The adaptor cannot be opened.
    Open {
        /// Which.
        path: PathBuf,
        /// The loader's text.
        why: String,
    },
    /// The adaptor was made for another version of this library.
    Interface {
        /// Which.
        path: PathBuf,
        /// Its version of the interface.
        found: u32,
    },
    /// A message came from a rank that the vendor's job does not have.
    Stranger {
        /// The rank.
        rank: u32,
    },
    /// A function of the vendor failed.
    Call {
        /// Which.
        function: &'static str,
        /// The vendor's code.
        code: i32,
        /// The vendor's text.
        text: String,
    },
}

impl std::fmt::Display for VendorError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoCompiler { mpicc, why } => {
                write!(
                    f,
                    "'{mpicc}' cannot be run: {why}; name the compiler wrapper of the machine's MPI"
                )
            }
            Self::Compile { command, output } => {
                write!(
                    f,
                    "'{command}' does not compile the adaptor; it needs an MPI of version 3.1 or later:\n{output}"
                )
            }
            Self::File { path, why } => write!(f, "'{}': {why}", path.display()),
            Self::Open { path, why } => write!(f, "adaptor '{}' cannot be opened: {why}", path.display()),
            Self::Interface { path, found } => write!(
                f,
                "adaptor '{}' has interface {found}, this is {}; build it again",
                path.display(),
                crate::interface::INTERFACE
            ),
            Self::Stranger { rank } => write!(
                f,
                "the machine's MPI delivered a message of rank {rank}, which its job does not have; its memory was \
                 overwritten, or its version is another one than the adaptor's"
            ),
            Self::Call { function, code, text } => {
                write!(f, "the machine's MPI failed to {function}: {text} (code {code})")
            }
        }
    }
}

impl std::error::Error for VendorError {}
