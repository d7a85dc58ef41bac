// SPDX-License-Identifier: Apache-2.0
//! `isthmus info`: what this Isthmus is and can do.

use clap::Args;
use std::process::ExitCode;

/// Show what this Isthmus is and can do
#[derive(Args, Debug)]
pub(crate) struct Info {
    /// List the MPI functions and whether each is implemented
    #[arg(long)]
    functions: bool,
    /// List the settings (environment variables)
    #[arg(long)]
    settings: bool,
}

/// `isthmus info`.
pub(crate) fn info(arguments: &Info) -> ExitCode {
    if arguments.functions {
        crate::complain("isthmus: error: the list of functions is not built into this command yet");
        return ExitCode::FAILURE;
    }
    if arguments.settings {
        for (name, text) in SETTINGS {
            crate::print(&format!("{name:<28} {text}"));
        }
        return ExitCode::SUCCESS;
    }
    crate::print(&format!(
        "isthmus {} for {} on {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    ));
    ExitCode::SUCCESS
}

const SETTINGS: [(&str, &str); 4] = [
    ("ISTHMUS_LIBRARY_DIRECTORY", "directory of libmpi_abi.so.1 [default: beside the command]"),
    ("ISTHMUS_SSH", "command of the ssh client [default: ssh]"),
    ("ISTHMUS_START_TIMEOUT", "seconds without progress before a start is given up [default: 300]"),
    ("ISTHMUS_STATS", "1: print at the end what was sent by operation and level [default: 0]"),
];
