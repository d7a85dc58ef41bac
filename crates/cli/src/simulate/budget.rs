// SPDX-License-Identifier: Apache-2.0
//! How much is simulated: where all pieces of a long message would take too long, larger ones.

use super::ask::{Asked, Form};
use isthmus_job::JobError;
use isthmus_schedule::{Network, Operation, Overrides, Steps, explain};
use isthmus_topology::Topology;
use std::sync::Arc;

/// Steps of all processes that take some seconds: about two events each, of about 0.2 microseconds.
const STEPS: u64 = 16_000_000;
/// Steps beyond which not even `--exact` helps: hours, and memory that nobody has.
const MOST: u64 = 2_000_000_000;
/// Processes whose plans are counted to know how many steps there are.
const SAMPLE: u32 = 48;

/// Larger pieces than the library's, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coarse {
    pub(super) library: u64,
    pub(super) simulated: u64,
    /// Steps that the library's pieces would take.
    pub(super) steps: u64,
}

/// The network to make plans for, in which processes take such steps together, with larger pieces where the library's
/// are too many.
pub(super) fn affordable(
    asked: &Asked,
    topology: &Topology,
    together: Steps,
    network: &Arc<Network>,
    exact: bool,
) -> Result<(Arc<Network>, Option<Coarse>), JobError> {
    let steps = steps(asked, network.of_steps(together));
    if steps > STEPS && !exact && asked.form == Form::Whole {
        let (pieces, library) = pieces(asked, network);
        let times = steps.div_ceil(STEPS).next_power_of_two().min(pieces);
        if times > 1 {
            let simulated = library.saturating_mul(times);
            let rule = format!("{}; {}=seg={simulated}", network.overrides(), asked.name);
            let overrides =
                Overrides::parse(rule.trim_start_matches("; ")).map_err(|e| JobError::new(e.to_string()))?;
            let links = Arc::new(network.links().clone());
            let coarse = Coarse {
                library,
                simulated,
                steps,
            };
            let network = Network::of_world(topology, links, Arc::new(overrides));
            return Ok((Arc::clone(network.of_steps(together)), Some(coarse)));
        }
    }
    if steps > MOST {
        let error = JobError::new(format!(
            "{} of {} among {} processes takes about {steps} steps: too many to simulate",
            asked.name,
            asked.size,
            network.size()
        ));
        return Err(error.hint(format!("at most {MOST} are: take fewer processes or a smaller size")));
    }
    Ok((Arc::clone(network.of_steps(together)), None))
}

/// Pieces of the chosen algorithm, and bytes of one.
fn pieces(asked: &Asked, network: &Arc<Network>) -> (u64, u64) {
    let candidates = explain(&asked.call, network);
    candidates.iter().find(|c| c.chosen).map_or((1, 0), |c| c.pieces)
}

/// Steps of all processes, from some of them.
fn steps(asked: &Asked, network: &Arc<Network>) -> u64 {
    let processes = network.size();
    if asked.call.operation == Operation::Alltoallv {
        return 4 * u64::from(processes) * u64::from(processes);
    }
    if matches!(asked.call.operation, Operation::Gatherv | Operation::Scatterv) {
        // Whose plans need what a first phase delivers. They are not cut.
        return 8 * u64::from(processes);
    }
    let sample = processes.min(SAMPLE);
    let count = |i: u32| {
        // Here and there: neither all leaders nor none.
        let me = (u64::from(i) * 2_654_435_761 % u64::from(processes)) as u32;
        let mut plan = asked.plan(network, me);
        let mut steps = 0u64;
        while steps < MOST && plan.next_step().is_some() {
            steps += 1;
        }
        steps
    };
    let all: u64 = (0..sample).map(count).sum();
    (u128::from(all) * u128::from(processes) / u128::from(sample.max(1))) as u64
}
