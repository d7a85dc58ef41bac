// SPDX-License-Identifier: Apache-2.0
//! Feeds mutated bytes to everything that parses bytes from outside.
//!
//! `isthmus-fuzz [TARGET…] [--seconds N] [--inputs M] [--seed S]` runs the targets (all of them if none is named) for
//! `N` seconds in all, each with at most `M` inputs; `isthmus-fuzz TARGET --input FILE` runs one input. A target fails
//! by panicking; then the input is kept and the command that repeats it is printed.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command for people")]

use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

mod datatypes;
mod files;
mod grid;
mod hello;
mod links;
mod memory;
mod mutate;
mod service;
mod targets;
mod traces;
mod words;

use mutate::Mutator;
use targets::{TARGETS, Target};

/// Inputs between two looks at the clock.
const BATCH: u32 = 256;

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("isthmus-fuzz: {message}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    targets: Vec<&'static Target>,
    time: Duration,
    seed: u64,
    inputs: u64,
    input: Option<PathBuf>,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            targets: Vec::new(),
            time: Duration::from_secs(60),
            seed: random_seed(),
            inputs: u64::MAX,
            input: None,
        };
        while let Some(word) = words.next() {
            let mut value = |what: &str| words.next().ok_or_else(|| format!("{word} needs {what}"));
            match word.as_str() {
                "--seconds" => options.time = Duration::from_secs(number(&value("a number")?)?),
                "--inputs" => options.inputs = number(&value("a number")?)?,
                "--seed" => options.seed = number(&value("a number")?)?,
                "--input" => options.input = Some(value("a file")?.into()),
                name => options.targets.push(targets::find(name)?),
            }
        }
        if options.targets.is_empty() {
            options.targets = TARGETS.iter().collect();
        }
        Ok(options)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn random_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |d| d.as_nanos() as u64)
}

fn run(options: &Options) -> Result<(), String> {
    if let Some(path) = &options.input {
        let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        options.targets.iter().for_each(|target| (target.run)(&bytes));
        return Ok(());
    }
    println!("seed {}", options.seed);
    let share = options.time / u32::try_from(options.targets.len()).unwrap_or(1);
    let failed = options
        .targets
        .iter()
        .filter(|target| !fuzz(target, share, options))
        .count();
    println!("{} passed, {failed} failed", options.targets.len() - failed);
    if failed == 0 {
        Ok(())
    } else {
        Err(format!("{failed} targets failed"))
    }
}

/// Runs one target for `time`, or for the inputs that are wanted. False if it panicked.
fn fuzz(target: &Target, time: Duration, options: &Options) -> bool {
    let seed = options.seed;
    let mut mutator = Mutator::new(seed, (target.corpus)());
    let start = Instant::now();
    let mut count = 0_u64;
    while start.elapsed() < time && count < options.inputs {
        for _ in 0..BATCH {
            let input = mutator.next_input();
            count += 1;
            if catch_unwind(|| (target.run)(&input)).is_err() {
                report(target, &input, seed);
                return false;
            }
        }
    }
    println!("{}: {count} inputs", target.name);
    true
}

fn report(target: &Target, input: &[u8], seed: u64) {
    let path = std::env::temp_dir().join(format!("isthmus-fuzz-{}-{seed}", target.name));
    match fs::write(&path, input) {
        Ok(()) => eprintln!(
            "{} failed; repeat: isthmus-fuzz {} --input {}",
            target.name,
            target.name,
            path.display()
        ),
        Err(e) => eprintln!("{} failed with seed {seed}; the input cannot be kept: {e}", target.name),
    }
}
