// SPDX-License-Identifier: Apache-2.0
//! `isthmus simulate` and `isthmus explain`: a collective operation on a grid that need not exist.

mod ask;
mod budget;
mod report;
mod simulated;
mod sites;
mod svg;
mod tree;
mod what;

use crate::overwritten::{self, Kind};
use crate::{described, json};
use ask::{Asked, Form};
use clap::Args;
use isthmus_job::grid::Grid;
use isthmus_job::{JobError, grid};
use isthmus_schedule::step::{Plan, Rank};
use isthmus_schedule::{
    Candidate, Network, Steps, explain as choices, inter_plan, neighbor_plan, nothing, plan, steps_together,
};
use isthmus_simulate::{Limits, call_of, plans, run};
use simulated::Simulated;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use what::What;

/// Simulate a collective operation on a described grid
///
/// Computes the time of each rank, the use of the links and the critical path. Nothing runs.
#[derive(Args, Debug)]
pub(crate) struct Simulate {
    #[command(flatten)]
    what: What,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Explain the algorithm that is chosen for a collective operation
///
/// Shows the candidates for a described grid, what each costs, and which one Isthmus chooses. Nothing runs.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    #[command(flatten)]
    what: What,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Names of the operations.
pub(crate) fn operations() -> impl Iterator<Item = &'static str> {
    ask::OPERATIONS.iter().map(|(name, _)| *name)
}

/// `isthmus simulate`.
pub(crate) fn simulate(arguments: &Simulate) -> ExitCode {
    finish(simulated(&arguments.what).map(|all| {
        if arguments.json {
            json::text("simulate", report::json(&all))
        } else {
            report::simulated(&all)
        }
    }))
}

/// `isthmus explain`.
pub(crate) fn explain(arguments: &Explain) -> ExitCode {
    finish(simulated(&arguments.what).map(|all| {
        let candidates = candidates(&all);
        if arguments.json {
            json::text("explain", report::explained_json(&all, &candidates))
        } else {
            report::explained(&all, &candidates)
        }
    }))
}

fn finish(text: Result<String, JobError>) -> ExitCode {
    match text {
        Ok(text) => {
            crate::print(text.trim_end());
            ExitCode::SUCCESS
        }
        Err(error) => crate::diagnostic::refuse(&error),
    }
}

/// What could be chosen, for operations of which the choices are known.
fn candidates(all: &Simulated) -> Vec<Candidate> {
    match all.asked.form {
        Form::Whole => choices(&all.asked.call, &all.network),
        Form::Grid(_) | Form::Groups(_) => Vec::new(),
    }
}

/// Reads the file, simulates, and draws if that is asked for.
fn simulated(what: &What) -> Result<Simulated, JobError> {
    let (text, name) = what.grid()?;
    let grid = grid::parse(&text, &name)?;
    let mut asked = Asked::new(what, grid.topology.size())?;
    // Between groups and among neighbours our own plans are used there too.
    if matches!(asked.form, Form::Whole) && is_one_job(&grid) {
        let error = JobError::new(format!(
            "all processes of '{}' are in one job of a machine's own MPI: it has its own collective operations, nothing is chosen",
            name
        ));
        return Err(error.hint("leave out 'mpi = true', or add a site"));
    }
    let (links, overrides) = (Arc::new(grid.links.clone()), Arc::new(crate::run::overrides()?));
    let network = Network::of_world(&grid.topology, links, overrides);
    // As the library does on one node, and, in blocking operations, on each of several.
    asked.call.together = matches!(asked.form, Form::Whole) && network.shares_memory();
    asked.call.nodes = matches!(asked.form, Form::Whole);
    let steps = match asked.form {
        Form::Whole => steps_together(&asked.call, &network, true),
        Form::Grid(_) | Form::Groups(_) => Steps::None,
    };
    let (simulated, coarse) = budget::affordable(&asked, &grid.topology, steps, &network, what.exact)?;
    let ranks = 0..grid.topology.size();
    let all: Box<dyn Iterator<Item = Box<dyn Plan>>> = match asked.form {
        Form::Whole => Box::new(plans(&asked.call, &simulated)),
        _ => Box::new(ranks.map(|me| asked.plan(&simulated, me))),
    };
    let limits = Limits::default();
    let outcome = run(all, asked.call.unit_bytes, &grid.topology, &grid.links, steps, limits).map_err(|stopped| {
        let error = JobError::new(format!("{} of {} on '{}': {stopped}", asked.name, asked.size, name));
        error.hint("take a smaller size or fewer processes")
    })?;
    let all = Simulated {
        asked,
        grid,
        network,
        coarse,
        outcome,
    };
    let picture = match svg::is_readable(&all) {
        true => svg::draw,
        false => sites::draw,
    };
    draw("--svg", what.svg.as_deref(), || Ok(picture(&all)))?;
    draw("--tree", what.tree.as_deref(), || Ok(tree::draw(&all)))?;
    Ok(all)
}

/// Whether the grid is one job of a machine's own MPI.
fn is_one_job(grid: &Grid) -> bool {
    let topology = &grid.topology;
    let machine = |rank| topology.clusters_of(rank)[1];
    (0..topology.size()).all(|rank| topology.is_in_vendor_job(rank) && machine(rank) == machine(0))
}

/// Writes a drawing into a file, if one was named.
fn draw(option: &str, file: Option<&str>, drawing: impl FnOnce() -> Result<String, JobError>) -> Result<(), JobError> {
    let Some(file) = file else { return Ok(()) };
    overwritten::check(option, Path::new(file), Kind::Page)?;
    std::fs::write(file, drawing()?).map_err(|e| JobError::new(format!("cannot write drawing '{file}': {e}")))
}

impl What {
    /// The topology file, and its name for messages.
    fn grid(&self) -> Result<(String, String), JobError> {
        match (&self.topology, &self.job) {
            (Some(file), _) => Ok((ask::read(file, "topology file")?, file.clone())),
            (None, Some(job)) => Ok((described::of_job(job)?, format!("job {job}"))),
            (None, None) => Ok((described::of_sites(&self.site)?, self.site.join(" "))),
        }
    }
}

impl Asked {
    /// The plan of a process. Operations with unequal blocks have a first phase besides: see [`plans`].
    fn plan(&self, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
        match &self.form {
            Form::Whole => plan(&call_of(&self.call, me), network, me),
            Form::Grid(dims) => neighbor_plan(&self.call, &Arc::new(ask::neighbours(dims, me)), me),
            Form::Groups(low) => {
                let sides = ask::sides(*low, network.size(), me);
                let with_root = self.call.operation.is_rooted() && sides.local.contains(&self.call.root);
                match with_root && me != self.call.root {
                    true => nothing(),
                    false => inter_plan(&self.call, network, &sides, me),
                }
            }
        }
    }
}
