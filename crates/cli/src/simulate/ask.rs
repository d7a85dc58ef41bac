// SPDX-License-Identifier: Apache-2.0
//! What is asked for: operation, sizes, root, neighbourhood or groups.

use super::what::What;
use crate::given;
use isthmus_job::{JobError, quantity};
use isthmus_schedule::step::Rank;
use isthmus_schedule::{Blocks, Call, Edge, Neighbours, Operation, Sides};
use isthmus_stage::words;
use isthmus_wire::word::counted;

/// Operations by the names that MPI has for them, and what makes them special.
pub(super) const OPERATIONS: [(&str, Operation); 18] = [
    ("allgather", Operation::Allgather),
    ("allgatherv", Operation::Allgatherv),
    ("allreduce", Operation::Allreduce),
    ("alltoall", Operation::Alltoall),
    ("alltoallv", Operation::Alltoallv),
    ("barrier", Operation::Barrier),
    ("bcast", Operation::Bcast),
    ("exscan", Operation::Exscan),
    ("gather", Operation::Gather),
    ("gatherv", Operation::Gatherv),
    ("neighbor_allgather", Operation::NeighborAllgather),
    ("neighbor_alltoall", Operation::NeighborAlltoall),
    ("reduce", Operation::Reduce),
    ("reduce_scatter", Operation::ReduceScatter),
    ("reduce_scatter_block", Operation::ReduceScatterBlock),
    ("scan", Operation::Scan),
    ("scatter", Operation::Scatter),
    ("scatterv", Operation::Scatterv),
];

/// Operations that MPI has and this command has not, and why.
const OTHERS: [(&str, &str); 4] = [
    (
        "alltoallw",
        "datatypes make no difference to its messages: simulate alltoallv",
    ),
    (
        "neighbor_allgatherv",
        "unequal blocks of neighbours are not simulated: simulate neighbor_allgather",
    ),
    (
        "neighbor_alltoallv",
        "unequal blocks of neighbours are not simulated: simulate neighbor_alltoall",
    ),
    (
        "neighbor_alltoallw",
        "unequal blocks of neighbours are not simulated: simulate neighbor_alltoall",
    ),
];

/// Bytes of an element of a reduction (a double), where the size is a multiple of them.
const ELEMENT: u64 = 8;
/// Seed of sizes drawn at random.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Who takes part, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// All processes as one group.
    Whole,
    /// Neighbours in a grid of these sizes, closed in all dimensions.
    Grid(Vec<u32>),
    /// The processes below this rank, and the others.
    Groups(Rank),
}

/// A call, as all members would say it together.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) name: &'static str,
    pub(super) call: Call,
    pub(super) form: Form,
    /// For people: `64 bytes`.
    pub(super) size: String,
}

impl Asked {
    /// From the command line, for so many processes.
    pub(super) fn new(what: &What, processes: u32) -> Result<Self, JobError> {
        let (name, operation) = operation(&what.operation)?;
        check_root(what, operation, processes)?;
        let (blocks, size) = blocks(what, operation, processes)?;
        let form = form(what, operation, processes)?;
        let unit = unit(operation, &blocks);
        let mut call = Call {
            root: what.root,
            unit_bytes: unit,
            blocks: in_units(blocks, unit),
            ..Call::new(operation, 0)
        };
        if let (Form::Groups(_) | Form::Grid(_), Blocks::Equal(_)) = (&form, &call.blocks) {
            call.receive_blocks = call.blocks.clone();
        }
        Ok(Self { name, call, form, size })
    }
}

/// The neighbours of a process in a closed grid, row-major, in MPI's order: down and up in each dimension.
pub(super) fn neighbours(dims: &[u32], me: Rank) -> Neighbours {
    let mut all = Neighbours::default();
    let mut stride = dims.iter().product::<u32>();
    for (dimension, &length) in (0..).zip(dims) {
        stride /= length;
        let at = me / stride % length;
        let moved = |to: u32| Some(me - at * stride + to % length * stride);
        let edge = |rank, slot| Edge { rank, slot };
        let (down, up) = (moved(at + length - 1), moved(at + 1));
        let (descends, ascends) = (2 * dimension, 2 * dimension + 1);
        all.destinations.extend([edge(down, descends), edge(up, ascends)]);
        all.sources.extend([edge(down, ascends), edge(up, descends)]);
    }
    all
}

/// The groups of an intercommunicator as a process sees them.
pub(super) fn sides(low: Rank, processes: u32, me: Rank) -> Sides {
    let (first, second) = (0..low, low..processes);
    match me < low {
        true => Sides {
            local: first,
            remote: second,
        },
        false => Sides {
            local: second,
            remote: first,
        },
    }
}

/// The operation of this name, which may be that of the function: `MPI_Bcast`.
fn operation(name: &str) -> Result<(&'static str, Operation), JobError> {
    let lower = name.to_ascii_lowercase();
    let name = lower.strip_prefix("mpi_").unwrap_or(&lower);
    if let Some((name, why)) = OTHERS.iter().find(|o| o.0 == name) {
        return Err(JobError::new(format!("{name} cannot be simulated")).hint(*why));
    }
    OPERATIONS.iter().find(|o| o.0 == name).copied().ok_or_else(|| {
        let known = OPERATIONS.map(|o| o.0);
        let hint = match isthmus_settings::nearest(name, &known) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("choose from {}", known.join(", ")),
        };
        JobError::new(format!("'{name}' is not an operation that can be simulated")).hint(hint)
    })
}

fn is_uneven(operation: Operation) -> bool {
    use Operation as O;
    matches!(
        operation,
        O::Gatherv | O::Scatterv | O::Allgatherv | O::Alltoallv | O::ReduceScatter
    )
}

fn check_root(what: &What, operation: Operation, processes: u32) -> Result<(), JobError> {
    if what.root >= processes {
        let error = JobError::new(format!(
            "--root {}: the grid has {}",
            what.root,
            counted(processes, "process")
        ));
        return Err(error.hint(format!("choose a rank from 0 to {}", processes - 1)));
    }
    if what.root > 0 && !operation.is_rooted() {
        return Err(JobError::new("--root: this operation has none").hint("leave out --root"));
    }
    Ok(())
}

/// Blocks in bytes, and how to say it.
fn blocks(what: &What, operation: Operation, processes: u32) -> Result<(Blocks, String), JobError> {
    let (blocks, said) = match what.size.as_deref() {
        None if operation == Operation::Barrier => (Blocks::Equal(0), "0 bytes".to_owned()),
        None => return Err(JobError::new("no size is given").hint("write it after the operation: bcast 64KiB")),
        Some(text) => match (text.strip_prefix('@'), text.split_once("..")) {
            (Some(file), _) => (Blocks::known(sizes(file, processes)?), format!("sizes from '{file}'")),
            (None, Some((least, most))) => drawn(text, least, most, processes)?,
            (None, None) => {
                let bytes = quantity::size(text)?;
                let blocks = match is_uneven(operation) {
                    true => Blocks::known((0..processes).map(|_| bytes)),
                    false => Blocks::Equal(if operation == Operation::Barrier { 0 } else { bytes }),
                };
                (blocks, format!("{bytes} bytes"))
            }
        },
    };
    if matches!(blocks, Blocks::Known(_)) && !is_uneven(operation) {
        let error = JobError::new(format!("'{}': this operation has equal blocks", what.operation));
        return Err(error.hint("give one size, or simulate gatherv, scatterv, allgatherv, alltoallv or reduce_scatter"));
    }
    let all = match &blocks {
        Blocks::Equal(bytes) => bytes.checked_mul(u64::from(processes)),
        known => Some(known.offset(processes)),
    };
    if all.is_none_or(|all| all > 1 << 50) {
        return Err(JobError::new("the blocks of all processes are more than 1 PiB").hint("take a smaller size"));
    }
    Ok((blocks, said))
}

/// Sizes that look random, equal on every run.
fn drawn(text: &str, least: &str, most: &str, processes: u32) -> Result<(Blocks, String), JobError> {
    let (least, most) = (quantity::size(least)?, quantity::size(most)?);
    if least > most {
        let error = JobError::new(format!("'{text}': the first size is above the second"));
        return Err(error.hint("write the smaller one first: 0..64KiB"));
    }
    let mut state = SEED;
    let sizes = (0..processes).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        least + state % (most - least + 1)
    });
    Ok((Blocks::known(sizes), format!("{least} to {most} bytes")))
}

/// Sizes by rank, one on a line; empty lines and what follows a # do not count.
fn sizes(file: &str, processes: u32) -> Result<Vec<u64>, JobError> {
    let mut sizes = Vec::new();
    for (number, line) in (1..).zip(read(file, "file of sizes")?.lines()) {
        let word = line.split('#').next().unwrap_or_default().trim();
        if word.is_empty() {
            continue;
        }
        let column = line.chars().take_while(|c| c.is_whitespace()).count() + 1;
        let size = quantity::size(word).map_err(|error| JobError::new(format!("{file}:{number}:{column}: {error}")))?;
        sizes.push(size);
    }
    if sizes.len() != processes as usize {
        let error = JobError::new(format!(
            "{file}: {} for {}",
            counted(sizes.len(), "size"),
            counted(processes, "process")
        ));
        return Err(error.hint("write one size on a line for each rank, rank 0 first"));
    }
    Ok(sizes)
}

/// A file of a bounded size as text.
pub(super) fn read(file: &str, what: &str) -> Result<String, JobError> {
    given::read(&words::path(file)).map_err(|e| JobError::new(format!("cannot read {what} '{file}': {e}")))
}

fn form(what: &What, operation: Operation, processes: u32) -> Result<Form, JobError> {
    match (&what.dims, what.groups) {
        (Some(_), _) if !operation.is_neighborhood() => Err(JobError::new("--dims: this operation has no neighbours")
            .hint("it goes with neighbor_allgather and neighbor_alltoall")),
        (Some(dims), _) => grid(dims, processes),
        (None, _) if operation.is_neighborhood() => {
            let error = JobError::new(format!("{} needs --dims", what.operation));
            Err(error.hint(format!(
                "the processes as a closed grid, for example --dims {processes}"
            )))
        }
        (None, None) => Ok(Form::Whole),
        (None, Some(low)) => groups(low, operation, processes),
    }
}

fn grid(text: &str, processes: u32) -> Result<Form, JobError> {
    let wrong = || {
        let error = JobError::new(format!(
            "--dims {text}: not a grid of {}",
            counted(processes, "process")
        ));
        error.hint("write lengths whose product is the number of processes: --dims 6x4")
    };
    let dims: Vec<u32> = text
        .split('x')
        .map(|d| d.trim().parse::<u32>().ok().filter(|d| *d > 0).ok_or_else(wrong))
        .collect::<Result<_, _>>()?;
    let all = dims.iter().try_fold(1u32, |all, &d| all.checked_mul(d));
    if all != Some(processes) || dims.len() > 32 {
        return Err(wrong());
    }
    Ok(Form::Grid(dims))
}

fn groups(low: Rank, operation: Operation, processes: u32) -> Result<Form, JobError> {
    use Operation as O;
    if low == 0 || low >= processes {
        let error = JobError::new(format!("--groups {low}: one of the groups would be empty"));
        return Err(error.hint(format!("choose a number from 1 to {}", processes - 1)));
    }
    match operation {
        O::Scan | O::Exscan => Err(JobError::new("MPI has no scan between two groups").hint("leave out --groups")),
        O::Gatherv | O::Scatterv | O::Allgatherv | O::Alltoallv | O::ReduceScatter => {
            let error = JobError::new("unequal blocks between two groups are not simulated");
            Err(error.hint("leave out --groups, or take the operation with equal blocks"))
        }
        O::ReduceScatterBlock if low * 2 != processes => {
            let error =
                JobError::new("reduce_scatter_block between two groups with equal blocks needs groups of equal size");
            Err(error.hint(format!("choose --groups {}", processes / 2)))
        }
        _ => Ok(Form::Groups(low)),
    }
}

/// Bytes of a unit: reductions combine elements.
fn unit(operation: Operation, blocks: &Blocks) -> u64 {
    use Operation as O;
    let reduces = matches!(
        operation,
        O::Reduce | O::Allreduce | O::Scan | O::Exscan | O::ReduceScatter | O::ReduceScatterBlock
    );
    let whole = match blocks {
        Blocks::Known(sums) => sums.iter().all(|sum| sum % ELEMENT == 0),
        equal => equal.size(0) % ELEMENT == 0,
    };
    if reduces && whole { ELEMENT } else { 1 }
}

fn in_units(blocks: Blocks, unit: u64) -> Blocks {
    match blocks {
        Blocks::Known(sums) => Blocks::Known(sums.iter().map(|sum| sum / unit).collect()),
        other => Blocks::Equal(other.size(0) / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_a_closed_grid_match() {
        let dims = [3, 1, 4];
        let all: Vec<Neighbours> = (0..12).map(|me| neighbours(&dims, me)).collect();
        for (me, own) in (0..).zip(&all) {
            assert_eq!((own.sources.len(), own.destinations.len()), (6, 6));
            for edge in &own.destinations {
                let other = &all[edge.rank.unwrap() as usize];
                let back = Edge {
                    rank: Some(me),
                    slot: edge.slot,
                };
                assert_eq!(other.sources.iter().filter(|s| **s == back).count(), 1);
            }
        }
    }
}
