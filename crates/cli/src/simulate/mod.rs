// SPDX-License-Identifier: Apache-2.0
//! `isthmus simulate` and `isthmus explain`: a collective operation on a grid that need not exist.

mod report;
mod svg;

use clap::Args;
use isthmus_job::grid::Grid;
use isthmus_job::{JobError, document, grid, quantity};
use isthmus_schedule::simulate::{Limits, Outcome, simulate as run};
use isthmus_schedule::{Call, Network, Operation, explain as choices};
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

const OPERATIONS: [(&str, Operation); 11] = [
    ("allgather", Operation::Allgather),
    ("allreduce", Operation::Allreduce),
    ("alltoall", Operation::Alltoall),
    ("barrier", Operation::Barrier),
    ("bcast", Operation::Bcast),
    ("exscan", Operation::Exscan),
    ("gather", Operation::Gather),
    ("reduce", Operation::Reduce),
    ("reduce_scatter_block", Operation::ReduceScatterBlock),
    ("scan", Operation::Scan),
    ("scatter", Operation::Scatter),
];

/// Operations with a root.
const ROOTED: [Operation; 4] = [
    Operation::Bcast,
    Operation::Reduce,
    Operation::Gather,
    Operation::Scatter,
];

/// Bytes of an element of a reduction (a double), where the size is a multiple of them.
const ELEMENT: u64 = 8;

/// Simulate a collective operation on a described grid: time per rank, use of the links, critical path
#[derive(Args, Debug)]
pub(crate) struct Simulate {
    #[command(flatten)]
    what: What,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Explain what is chosen for a collective operation on a described grid, and what it costs
#[derive(Args, Debug)]
pub(crate) struct Explain {
    #[command(flatten)]
    what: What,
}

/// Which operation, on which grid.
#[derive(Args, Debug)]
struct What {
    /// allgather, allreduce, alltoall, barrier, bcast, exscan, gather, reduce, reduce_scatter_block, scan or scatter
    #[arg(value_name = "OPERATION")]
    operation: String,
    /// Size of the data; of gather, scatter, allgather, alltoall and reduce_scatter_block, of one block: 512, 64KiB, 8MiB; a barrier has none
    #[arg(value_name = "SIZE")]
    size: Option<String>,
    /// File that describes sites, machines, nodes, processes and links
    #[arg(short, long, value_name = "FILE")]
    topology: String,
    /// Root of bcast, reduce, gather, scatter
    #[arg(short, long, value_name = "RANK", default_value_t = 0)]
    root: u32,
    /// Draw who is busy when, and the messages, into a file
    #[arg(long, value_name = "FILE")]
    svg: Option<String>,
}

/// A simulated call.
struct Simulated {
    name: &'static str,
    call: Call,
    grid: Grid,
    network: Arc<Network>,
    outcome: Outcome,
}

/// `isthmus simulate`.
pub(crate) fn simulate(arguments: &Simulate) -> ExitCode {
    finish(simulated(&arguments.what).map(|all| {
        if arguments.json {
            report::json(&all)
        } else {
            report::simulated(&all)
        }
    }))
}

/// `isthmus explain`.
pub(crate) fn explain(arguments: &Explain) -> ExitCode {
    finish(simulated(&arguments.what).map(|all| report::explained(&all, &choices(&all.call, &all.network))))
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

/// Reads the file, simulates, and draws if that is asked for.
fn simulated(what: &What) -> Result<Simulated, JobError> {
    let (name, operation) = operation(&what.operation)?;
    let bytes = size(what.size.as_deref(), operation)?;
    let grid = grid::parse(&read(&what.topology)?, &what.topology)?;
    let call = call(operation, bytes, what.root, grid.topology.size())?;
    let network = Network::of_world(
        &grid.topology,
        Arc::new(grid.links.clone()),
        Arc::new(crate::run::overrides()?),
    );
    let outcome = run(&call, &grid.topology, &network, Limits::default()).map_err(|stopped| {
        let error = JobError::new(format!("{name} of {bytes} bytes on '{}': {stopped}", what.topology));
        error.hint("take a smaller size or fewer processes")
    })?;
    let all = Simulated {
        name,
        call,
        grid,
        network,
        outcome,
    };
    if let Some(file) = &what.svg {
        let drawing = svg::draw(&all)?;
        std::fs::write(file, drawing).map_err(|e| JobError::new(format!("cannot write drawing '{file}': {e}")))?;
    }
    Ok(all)
}

fn operation(name: &str) -> Result<(&'static str, Operation), JobError> {
    OPERATIONS.iter().find(|o| o.0 == name).copied().ok_or_else(|| {
        let known = OPERATIONS.map(|o| o.0).join(", ");
        JobError::new(format!("'{name}' is not an operation that can be simulated"))
            .hint(format!("choose from {known}"))
    })
}

fn size(text: Option<&str>, operation: Operation) -> Result<u64, JobError> {
    match text {
        Some(text) => quantity::size(text),
        None if operation == Operation::Barrier => Ok(0),
        None => Err(JobError::new("no size is given").hint("write for example: isthmus simulate bcast 64KiB")),
    }
}

fn call(operation: Operation, bytes: u64, root: u32, processes: u32) -> Result<Call, JobError> {
    use Operation as O;
    if root >= processes {
        let error = JobError::new(format!("--root {root}: the grid has {processes} processes"));
        return Err(error.hint(format!("choose a rank from 0 to {}", processes - 1)));
    }
    if root > 0 && !ROOTED.contains(&operation) {
        return Err(JobError::new("--root: this operation has none").hint("leave --root away"));
    }
    if bytes.checked_mul(u64::from(processes)).is_none_or(|all| all > 1 << 50) {
        return Err(JobError::new("the blocks of all processes are more than 1 PiB").hint("take a smaller size"));
    }
    let reduces = matches!(
        operation,
        O::Reduce | O::Allreduce | O::Scan | O::Exscan | O::ReduceScatterBlock
    );
    let unit = if reduces && bytes % ELEMENT == 0 { ELEMENT } else { 1 };
    let units = if operation == O::Barrier { 0 } else { bytes / unit };
    Ok(Call {
        root,
        unit_bytes: unit,
        ..Call::new(operation, units)
    })
}

fn read(file: &str) -> Result<String, JobError> {
    let cannot = |e: std::io::Error| JobError::new(format!("cannot read topology file '{file}': {e}"));
    let mut text = String::new();
    let most = document::MAX_BYTES as u64 + 1;
    let opened = std::fs::File::open(file).map_err(cannot)?;
    opened.take(most).read_to_string(&mut text).map_err(cannot)?;
    Ok(text)
}
