// SPDX-License-Identifier: Apache-2.0
//! The commands: isthmus, mpiexec, mpirun, mpicc, mpicxx.

use std::path::Path;
use std::process::ExitCode;

mod compiler;

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let name = arguments.next().unwrap_or_default();
    match Path::new(&name).file_name().and_then(|n| n.to_str()) {
        Some("mpicc" | "mpicc_abi") => compiler::main(false, arguments.collect()),
        Some("mpicxx" | "mpic++") => compiler::main(true, arguments.collect()),
        _ => ExitCode::FAILURE,
    }
}
