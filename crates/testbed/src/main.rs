// SPDX-License-Identifier: Apache-2.0
//! `isthmus-testbed`: hosts and wide-area links on one machine, for people.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its user")]

mod command;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = command::Arguments::parse();
    match command::execute(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("isthmus-testbed: {error}");
            ExitCode::from(125)
        }
    }
}
