// SPDX-License-Identifier: Apache-2.0
//! Who takes steps together: all, those of a node, or those of a job of a vendor MPI.

use isthmus_schedule::step::{Circle, Rank, StepId};
use isthmus_schedule::{Jobs, Steps};
use isthmus_topology::Topology;
use rustc_hash::FxHashMap;

/// Who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Who {
    All,
    /// Those of the node with this number.
    Node(u32),
    /// Those of the job on the machine with this number.
    Job(u32),
}

/// The members of a circle, once all of them have come.
pub(super) struct Met {
    /// Each with the step that it takes.
    pub(super) members: Vec<(Rank, StepId)>,
    /// The job that they are, if the step is one of a vendor MPI.
    pub(super) job: Option<Jobs>,
}

/// Who has come where.
pub(super) struct Circles<'a> {
    topology: &'a Topology,
    /// Whether those of jobs take steps with their own MPIs.
    natively: bool,
    waiting: FxHashMap<(Rank, Who), Vec<(Rank, StepId)>>,
    /// Processes of each node, once asked for.
    nodes: FxHashMap<u32, u32>,
    /// Each job and how many processes it has, once asked for.
    jobs: FxHashMap<u32, (Jobs, u32)>,
}

impl<'a> Circles<'a> {
    pub(super) fn new(topology: &'a Topology, steps: Steps) -> Self {
        Self {
            topology,
            natively: steps == Steps::Jobs,
            waiting: FxHashMap::default(),
            nodes: FxHashMap::default(),
            jobs: FxHashMap::default(),
        }
    }

    /// A process has come to a step of a circle (its number, as of [`Circle`]). When the last one is there it is told
    /// who they are.
    pub(super) fn come(&mut self, circle: Rank, rank: Rank, step: StepId) -> Option<Met> {
        let who = self.who(circle, rank);
        let (job, expected) = match who {
            Who::All => (None, self.topology.size()),
            Who::Node(node) => (None, self.nodes.get(&node).copied().unwrap_or(1)),
            Who::Job(job) => {
                let (job, members) = self.jobs.get(&job).copied().unwrap_or_default();
                (Some(job), members)
            }
        };
        let here = self.waiting.entry((circle, who)).or_default();
        here.push((rank, step));
        let complete = here.len() >= expected as usize;
        complete.then(|| Met {
            members: std::mem::take(here),
            job,
        })
    }

    fn who(&mut self, circle: Rank, rank: Rank) -> Who {
        if circle == Circle::All as Rank {
            return Who::All;
        }
        if self.nodes.is_empty() {
            self.count();
        }
        let [_, machine, node] = self.topology.clusters_of(rank);
        match self.natively && self.topology.is_in_vendor_job(rank) {
            true => Who::Job(machine),
            false => Who::Node(node),
        }
    }

    fn count(&mut self) {
        for rank in 0..self.topology.size() {
            let [_, machine, node] = self.topology.clusters_of(rank);
            let on_node = self.nodes.entry(node).or_default();
            *on_node += 1;
            if self.topology.is_in_vendor_job(rank) {
                let (job, members) = self.jobs.entry(machine).or_default();
                *members += 1;
                job.nodes += u32::from(*on_node == 1);
                job.on_node = job.on_node.max(*on_node);
            }
        }
    }
}
