// SPDX-License-Identifier: Apache-2.0
//! The project's own chores: `cargo xtask codegen`, `cargo xtask tidy`, `cargo xtask dist`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command for people")]

use std::process::ExitCode;

mod codegen;
mod dist;
mod fortran;
mod glibc;
mod interfaces;
mod spec;
mod tidy;
mod tools;
mod tree;

const USAGE: &str = "\
usage: cargo xtask codegen [--check]              write the generated files, or say which are stale
       cargo xtask profiler                       prints a library in C that intercepts every function
       cargo xtask tidy                           the house rules: layers, circles, absences, sizes, texts, stale files
       cargo xtask circles ROOM                   the imports that close the circles of crates/ROOM
       cargo xtask dist --out DIR [--release] [--workshop]
                                                  build everything and lay it out in DIR/{bin,lib,include,share}
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["codegen"] => codegen::write(),
        ["codegen", "--check"] => codegen::check(),
        ["profiler"] => codegen::profiler(),
        ["tidy"] => tidy::run(),
        ["circles", room] => tidy::circles_of(room),
        ["dist", rest @ ..] => dist::Options::parse(rest).and_then(|options| dist::run(&options)),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
