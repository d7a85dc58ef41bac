// SPDX-License-Identifier: Apache-2.0
//! The process's world: who is there, and the engine that reaches them.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use isthmus_engine::{Completion, NativeComm, Operation, Request, Shared};
use isthmus_schedule as schedule;
use isthmus_schedule::Overrides;
use isthmus_topology::{Known, Topology};
use isthmus_wire::chosen::Chosen;
use isthmus_wire::place::PlaceTable;

use crate::chosen::Choices;
use crate::comm::Comm;
use crate::context::{self, Contexts};
use crate::error::Result;
use crate::frames::Freed;
use crate::group::Group;
use crate::links::WorldLinks;
use crate::p2p;

/// The memory that is there for all processes of a node together.
const WORLD_FRAME: u32 = 0;

/// Everything that a process knows of the job.
pub struct World {
    rank: u32,
    places: Arc<PlaceTable>,
    topology: Arc<Topology>,
    unlike: bool,
    engine: Shared,
    operations: Operations,
    contexts: Arc<Contexts>,
    frames: Arc<Freed>,
    pub(crate) links: WorldLinks,
    overrides: OnceLock<Arc<Overrides>>,
    comm_world: OnceLock<Arc<Comm>>,
    comm_self: OnceLock<Arc<Comm>>,
    traffic_tuned: AtomicBool,
    /// Of MPI_COMM_WORLD, until that is made.
    native: Mutex<Option<NativeComm>>,
    /// Whether communicators can be those of the machine's own MPI.
    has_native: bool,
    pub(crate) choices: Choices,
}

impl World {
    /// The world of process `rank`. The table has been checked: `rank` is in it.
    pub fn new(rank: u32, places: Arc<PlaceTable>, engine: Shared) -> Self {
        let topology = Arc::new(Topology::new(&places));
        let operations = Operations::new(&engine);
        let has_native = engine.lock().underneath().is_there();
        let mut representations = places.places.iter().map(|place| place.representation);
        let first = representations.next();
        let unlike = representations.any(|other| Some(other) != first);
        let contexts = Arc::new(Contexts::new(rank, topology.size()));
        let links = WorldLinks::new(&places, Known::default(), None);
        Self {
            rank,
            places,
            topology,
            unlike,
            engine,
            operations,
            contexts,
            frames: Arc::default(),
            links,
            overrides: OnceLock::new(),
            comm_world: OnceLock::new(),
            comm_self: OnceLock::new(),
            traffic_tuned: AtomicBool::new(false),
            native: Mutex::new(None),
            has_native,
            choices: Choices::default(),
        }
    }

    /// The same world, all processes of which live in one job of a machine's own MPI.
    #[must_use]
    pub fn with_native(self, comm: Option<NativeComm>) -> Self {
        Self {
            native: Mutex::new(comm),
            ..self
        }
    }

    /// Whether these processes, given by their ranks in MPI_COMM_WORLD, live in one job of their machine's own MPI, and communicators of
    /// theirs can be those of that MPI. Equal at all of them.
    pub(crate) fn is_one_vendor_job(&self, members: &[u32]) -> bool {
        let job = |rank: u32| {
            self.topology
                .is_in_vendor_job(rank)
                .then(|| self.topology.clusters_of(rank)[1])
        };
        let own = job(self.rank);
        self.has_native && own.is_some() && members.iter().all(|&member| job(member) == own)
    }

    /// Whether this process is part of a job of its machine's own MPI.
    pub(crate) fn is_in_vendor_job(&self) -> bool {
        self.topology.is_in_vendor_job(self.rank)
    }

    /// The largest tag (attribute MPI_TAG_UB): where a machine's own MPI is underneath anywhere, one that all such have.
    pub fn largest_tag(&self) -> i32 {
        if self.places.places.iter().any(|place| place.vendor.is_some()) {
            p2p::LARGEST_VENDOR_TAG
        } else {
            p2p::MAX_TAG
        }
    }

    /// Rank in MPI_COMM_WORLD.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of processes.
    pub fn size(&self) -> u32 {
        self.topology.size()
    }

    /// Index of the program that this process runs (MPI_APPNUM).
    pub fn appnum(&self) -> u32 {
        let place = &self.places.places[self.rank as usize];
        self.places.subjobs[place.subjob as usize].appnum
    }

    /// Where everybody is.
    pub fn places(&self) -> &PlaceTable {
        &self.places
    }

    /// Distances.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Distances, for who lives longer.
    pub(crate) fn shared_topology(&self) -> Arc<Topology> {
        self.topology.clone()
    }

    /// Whether the processes of the job represent data differently.
    #[inline]
    pub fn unlike(&self) -> bool {
        self.unlike
    }

    /// What the user said about the choice of algorithms.
    pub fn overrides(&self) -> &Arc<Overrides> {
        self.overrides.get_or_init(Arc::default)
    }

    /// The user's word about the choice of algorithms: before the first communicator is used, equal on all processes.
    pub fn set_overrides(&self, overrides: Overrides) {
        _ = self.overrides.set(Arc::new(overrides));
    }

    /// The engine.
    #[inline]
    pub fn engine(&self) -> &Shared {
        &self.engine
    }

    /// Whether any communicator had hints about its traffic.
    pub(crate) fn traffic_tuned(&self) -> &AtomicBool {
        &self.traffic_tuned
    }

    /// Name of an operation for the counters.
    #[inline]
    pub(crate) fn operation(&self, operation: schedule::Operation) -> Operation {
        self.operations.collective[operation as usize]
    }

    /// What was chosen for collective operations between sites whose communicators have this process as rank 0.
    pub fn choices(&self) -> Vec<Chosen> {
        self.choices.all()
    }

    /// Counts what the library sends to make communicators.
    pub(crate) fn agreement(&self) -> Operation {
        self.operations.agreement
    }

    /// MPI_COMM_WORLD.
    pub fn comm_world(&self) -> Arc<Comm> {
        self.comm_world
            .get_or_init(|| {
                let everybody = (0..self.size()).collect::<Vec<_>>();
                let mut comm = Comm::new(Group::new(everybody), self.rank, context::WORLD, "MPI_COMM_WORLD");
                comm.meet_in_frame(self, WORLD_FRAME);
                let native = self.native.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(native) = native {
                    comm.set_native(native);
                }
                Arc::new(comm)
            })
            .clone()
    }

    /// MPI_COMM_SELF.
    pub fn comm_self(&self) -> Arc<Comm> {
        self.comm_self
            .get_or_init(|| {
                Arc::new(Comm::new(
                    Group::new(vec![self.rank]),
                    0,
                    context::SELF,
                    "MPI_COMM_SELF",
                ))
            })
            .clone()
    }

    /// The contexts that this process owns.
    pub(crate) fn contexts(&self) -> &Arc<Contexts> {
        &self.contexts
    }

    /// Frames of communicators that this process has freed.
    pub(crate) fn frames(&self) -> &Arc<Freed> {
        &self.frames
    }

    /// Waits until a request is complete.
    pub fn wait(&self, request: Request) -> Result<Completion> {
        let completion = self.engine.wait(|engine| engine.take(request));
        match &completion.error {
            Some(error) => Err(error.into()),
            None => Ok(completion),
        }
    }
}

/// Names for the counters, by number of the collective.
struct Operations {
    collective: [Operation; NAMES.len()],
    agreement: Operation,
}

const AGREEMENT: &str = "communicator-setup";

const NAMES: [(schedule::Operation, &str); 22] = [
    (schedule::Operation::Barrier, "barrier"),
    (schedule::Operation::Bcast, "bcast"),
    (schedule::Operation::Reduce, "reduce"),
    (schedule::Operation::Allreduce, "allreduce"),
    (schedule::Operation::Gather, "gather"),
    (schedule::Operation::Gatherv, "gatherv"),
    (schedule::Operation::Scatter, "scatter"),
    (schedule::Operation::Scatterv, "scatterv"),
    (schedule::Operation::Allgather, "allgather"),
    (schedule::Operation::Allgatherv, "allgatherv"),
    (schedule::Operation::Alltoall, "alltoall"),
    (schedule::Operation::Alltoallv, "alltoallv"),
    (schedule::Operation::Alltoallw, "alltoallw"),
    (schedule::Operation::Scan, "scan"),
    (schedule::Operation::Exscan, "exscan"),
    (schedule::Operation::ReduceScatterBlock, "reduce_scatter_block"),
    (schedule::Operation::ReduceScatter, "reduce_scatter"),
    (schedule::Operation::NeighborAllgather, "neighbor_allgather"),
    (schedule::Operation::NeighborAllgatherv, "neighbor_allgatherv"),
    (schedule::Operation::NeighborAlltoall, "neighbor_alltoall"),
    (schedule::Operation::NeighborAlltoallv, "neighbor_alltoallv"),
    (schedule::Operation::NeighborAlltoallw, "neighbor_alltoallw"),
];

/// Names that the counters have rows for.
pub fn operation_names() -> &'static [&'static str] {
    const ALL: [&str; NAMES.len() + 2] = {
        let mut all = ["point-to-point"; NAMES.len() + 2];
        all[NAMES.len() + 1] = AGREEMENT;
        let mut i = 0;
        while i < NAMES.len() {
            all[i + 1] = NAMES[i].1;
            i += 1;
        }
        all
    };
    &ALL
}

impl Operations {
    fn new(engine: &Shared) -> Self {
        let mut engine = engine.lock();
        let mut numbers = [Operation::POINT_TO_POINT; NAMES.len()];
        for (operation, name) in NAMES {
            numbers[operation as usize] = engine.operation(name);
        }
        let agreement = engine.operation(AGREEMENT);
        Self {
            collective: numbers,
            agreement,
        }
    }
}
