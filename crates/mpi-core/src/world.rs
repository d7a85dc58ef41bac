// SPDX-License-Identifier: Apache-2.0
//! The process's world: who is there, and the engine that reaches them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use isthmus_engine::{Completion, Context, Engine, Job, NativeComm, Operation, Peer, Request, Shared};
use isthmus_schedule as schedule;
use isthmus_schedule::Overrides;
use isthmus_topology::{LinkEstimates, Topology};
use isthmus_wire::chosen::Chosen;
use isthmus_wire::place::{Place, PlaceTable};

use crate::asker::Asker;
use crate::carrying::Carrying;
use crate::chosen::Choices;
use crate::context::Contexts;
use crate::error::Result;
use crate::group::Group;
use crate::meeting::Abroad;
use crate::revocable::Revocable;
use crate::slabs::Freed;

mod links;

pub use links::Measuring;
pub(crate) use links::WorldLinks;

/// Largest tag (attribute MPI_TAG_UB).
pub const MAX_TAG: i32 = i32::MAX;
/// The same where a vendor MPI is underneath: the known ones have as many; of one that has fewer only frames are used.
pub const LARGEST_VENDOR_TAG: i32 = (1 << 28) - 1;

/// The processes that have one MPI_COMM_WORLD, as one of them knows them.
pub struct World {
    rank: u32,
    places: Arc<PlaceTable>,
    topology: Arc<Topology>,
    /// Processes that it knows, of the job or others, represent data differently.
    pub(crate) unlike: AtomicBool,
    engine: Shared,
    operations: Operations,
    contexts: Arc<Contexts>,
    slabs: Arc<Freed>,
    pub(super) links: WorldLinks,
    overrides: OnceLock<Arc<Overrides>>,
    traffic_tuned: AtomicBool,
    /// Of MPI_COMM_WORLD, until that is made.
    native: Mutex<Option<NativeComm>>,
    /// Whether communicators can be those of the vendor MPI.
    has_native: bool,
    pub(super) choices: Choices,
    id: [u8; 16],
    /// What people call its job; empty: it has no launcher.
    pub(crate) title: String,
    abroad: Abroad,
    /// Communicators that can be revoked.
    pub(crate) revocable: Arc<Revocable>,
    /// By whom members agree; without a launcher there is nobody to ask.
    pub(crate) asker: OnceLock<Arc<dyn Asker>>,
    /// What launchers of two jobs say to each other.
    pub(crate) carrying: Arc<Carrying>,
}

impl World {
    /// The world of process `rank`, with which it begins. The table has been checked: `rank` is in it.
    pub fn new(rank: u32, places: Arc<PlaceTable>, engine: Shared) -> Self {
        let topology = Arc::new(Topology::new(&places));
        let operations = Operations::new(&engine);
        let has_native = engine.lock().underneath().is_there();
        let mut representations = places.places.iter().map(|place| place.representation);
        let representation = representations.next();
        let unlike = representations.any(|other| Some(other) != representation);
        let contexts = Arc::new(Contexts::new(Job::OWN, rank, topology.size()));
        let links = WorldLinks::new(&places, LinkEstimates::default(), None);
        let revocable = Revocable::new(&engine);
        Self {
            rank,
            places,
            topology,
            unlike: AtomicBool::new(unlike),
            engine,
            operations,
            contexts,
            slabs: Arc::default(),
            links,
            overrides: OnceLock::new(),
            traffic_tuned: AtomicBool::new(false),
            native: Mutex::new(None),
            has_native,
            choices: Choices::default(),
            id: [0; 16],
            title: String::new(),
            abroad: Abroad::default(),
            revocable,
            asker: OnceLock::new(),
            carrying: Arc::default(),
        }
    }

    /// The same world with a name that no other one has, for processes of other jobs.
    #[must_use]
    pub fn with_id(self, id: [u8; 16]) -> Self {
        Self { id, ..self }
    }

    /// The same world, whose job people call this.
    #[must_use]
    pub fn with_title(self, title: String) -> Self {
        Self { title, ..self }
    }

    /// The name that no other world has.
    pub(crate) fn id(&self) -> [u8; 16] {
        self.id
    }

    /// What this process knows of processes of other jobs.
    pub(crate) fn abroad(&self) -> &Abroad {
        &self.abroad
    }

    /// The same world, all processes of which live in one job of a vendor MPI.
    #[must_use]
    pub fn with_native(self, comm: Option<NativeComm>) -> Self {
        Self {
            native: Mutex::new(comm),
            ..self
        }
    }

    /// Whether these processes live in one job of their vendor MPI, and communicators of theirs can be those of that
    /// MPI. Equal at all of them.
    pub(crate) fn is_one_vendor_job(&self, members: &[Peer]) -> bool {
        let job = |rank: u32| {
            self.topology
                .is_in_vendor_job(rank)
                .then(|| self.topology.clusters_of(rank)[1])
        };
        let own = job(self.rank);
        self.has_native && own.is_some() && members.iter().all(|&member| self.rank_of(member).and_then(job) == own)
    }

    /// Whether this process is part of a job of its vendor MPI.
    pub(crate) fn is_in_vendor_job(&self) -> bool {
        self.topology.is_in_vendor_job(self.rank)
    }

    /// The largest tag (attribute MPI_TAG_UB): where a vendor MPI is underneath anywhere, one that all such have.
    pub fn largest_tag(&self) -> i32 {
        if self.places.places.iter().any(|place| place.vendor.is_some()) {
            LARGEST_VENDOR_TAG
        } else {
            MAX_TAG
        }
    }

    /// Rank in MPI_COMM_WORLD.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// This process.
    pub fn me(&self) -> Peer {
        self.peer(self.rank)
    }

    /// The process with this rank, which is below the size.
    #[inline]
    pub fn peer(&self, rank: u32) -> Peer {
        Peer::new(rank)
    }

    /// Rank of a process in MPI_COMM_WORLD; `None`: it is of another world.
    #[inline]
    pub fn rank_of(&self, peer: Peer) -> Option<u32> {
        let rank = peer.number();
        (rank < self.size()).then_some(rank)
    }

    /// Ranks in MPI_COMM_WORLD of the members of a group, in order.
    pub fn ranks_of(&self, group: &Group) -> Vec<u32> {
        group.members().iter().filter_map(|&peer| self.rank_of(peer)).collect()
    }

    /// The group of the processes with these ranks.
    pub(crate) fn group_of(&self, ranks: impl IntoIterator<Item = u32>) -> Group {
        Group::new(ranks.into_iter().map(|rank| self.peer(rank)).collect::<Vec<_>>())
    }

    /// Where a process is; `None`: it is of another world.
    pub fn place_of(&self, peer: Peer) -> Option<&Place> {
        self.places.places.get(self.rank_of(peer)? as usize)
    }

    /// The local area of a process of this world.
    pub(crate) fn area_of(&self, peer: Peer) -> Option<u32> {
        Some(self.topology.clusters_of(self.rank_of(peer)?)[0])
    }

    /// Number of processes.
    pub fn size(&self) -> u32 {
        self.topology.size()
    }

    /// Index of the program that this process runs (MPI_APPNUM).
    pub fn appnum(&self) -> u32 {
        let place = &self.places.places[self.rank as usize];
        let subjob = &self.places.subjobs[place.subjob as usize];
        subjob.appnum(self.rank.saturating_sub(subjob.first_rank))
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

    /// Whether processes of the job, or others that this one has met, represent data differently.
    #[inline]
    pub fn unlike(&self) -> bool {
        self.unlike.load(Ordering::Relaxed)
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

    /// What other things than the program's operations are counted as.
    pub(crate) fn operations(&self) -> &Operations {
        &self.operations
    }

    /// The vendor MPI's communicator of all processes, for who asks first.
    pub(crate) fn take_native(&self) -> Option<NativeComm> {
        self.native.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The context of this world with this number.
    pub(crate) fn context(&self, number: u32) -> Context {
        self.contexts.named(number)
    }

    /// The contexts that this process owns.
    pub(crate) fn contexts(&self) -> &Arc<Contexts> {
        &self.contexts
    }

    /// Slabs of communicators that this process has freed.
    pub(crate) fn slabs(&self) -> &Arc<Freed> {
        &self.slabs
    }

    /// Waits until a request is complete.
    pub fn wait(&self, request: Request) -> Result<Completion> {
        let completion = self.engine.wait(|engine| engine.core.take(request));
        match &completion.error {
            Some(error) => Err(error.into()),
            None => Ok(completion),
        }
    }
}

/// Names for the counters, by number of the collective.
pub(crate) struct Operations {
    collective: [Operation; NAMES.len()],
    /// Calls that make persistent ones.
    making: [Operation; NAMES.len()],
    agreement: Operation,
    exchange: Operation,
}

/// Of the library's own, by which communicators are made: from one to all, and from all to all.
const AGREEMENT: &str = "communicator-setup";
const EXCHANGE: &str = "communicator-exchange";

/// Operations on windows, locks that are asked for, questions whether operations are done, data that nobody copied, and
/// operations that left together: see [`WindowCount`].
const WINDOWS: [&str; 7] = [
    "window-put",
    "window-get",
    "window-accumulate",
    "window-lock",
    "window-wait",
    "window-placed",
    "window-bundled",
];

/// What is counted of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowCount {
    /// Puts.
    Put,
    /// Gets.
    Get,
    /// Accumulates, fetches and swaps.
    Accumulate,
    /// Locks that were asked for in messages.
    Lock,
    /// Round trips to learn that operations are done.
    Wait,
    /// Frames whose data a transport has read straight to their place, counted where they come.
    Placed,
    /// Operations that left together with others, with their heads.
    Bundled,
}

impl WindowCount {
    /// All, in the order of their values.
    pub const ALL: [Self; WINDOWS.len()] = [
        Self::Put,
        Self::Get,
        Self::Accumulate,
        Self::Lock,
        Self::Wait,
        Self::Placed,
        Self::Bundled,
    ];
}

/// How what is counted of windows is called.
pub fn window_operation(engine: &mut Engine, what: WindowCount) -> Operation {
    engine.core.operation(WINDOWS[what as usize])
}

macro_rules! names {
    ($($operation:ident $name:literal,)*) => {
        [$((schedule::Operation::$operation, $name, concat!($name, "_init"))),*]
    };
}

/// Operations, and the calls that make persistent ones of them.
const NAMES: [(schedule::Operation, &str, &str); 22] = names![
    Barrier "barrier",
    Bcast "bcast",
    Reduce "reduce",
    Allreduce "allreduce",
    Gather "gather",
    Gatherv "gatherv",
    Scatter "scatter",
    Scatterv "scatterv",
    Allgather "allgather",
    Allgatherv "allgatherv",
    Alltoall "alltoall",
    Alltoallv "alltoallv",
    Alltoallw "alltoallw",
    Scan "scan",
    Exscan "exscan",
    ReduceScatterBlock "reduce_scatter_block",
    ReduceScatter "reduce_scatter",
    NeighborAllgather "neighbor_allgather",
    NeighborAllgatherv "neighbor_allgatherv",
    NeighborAlltoall "neighbor_alltoall",
    NeighborAlltoallv "neighbor_alltoallv",
    NeighborAlltoallw "neighbor_alltoallw",
];

/// Names that the counters have rows for.
pub fn operation_names() -> &'static [&'static str] {
    const ALL: [&str; NAMES.len() + 3 + WINDOWS.len()] = {
        let mut all = ["point-to-point"; NAMES.len() + 3 + WINDOWS.len()];
        all[NAMES.len() + 1] = AGREEMENT;
        all[NAMES.len() + 2] = EXCHANGE;
        let mut i = 0;
        while i < NAMES.len() {
            all[i + 1] = NAMES[i].1;
            i += 1;
        }
        i = 0;
        while i < WINDOWS.len() {
            all[NAMES.len() + 3 + i] = WINDOWS[i];
            i += 1;
        }
        all
    };
    &ALL
}

impl Operations {
    /// What the library sends to make communicators, by such an operation.
    pub(crate) fn agreement(&self, operation: schedule::Operation) -> Operation {
        match operation {
            schedule::Operation::Bcast => self.agreement,
            _ => self.exchange,
        }
    }

    /// The call that makes a persistent operation.
    pub(crate) fn making(&self, operation: schedule::Operation) -> Operation {
        self.making[operation as usize]
    }

    fn new(engine: &Shared) -> Self {
        let mut engine = engine.lock();
        let mut collective = [Operation::POINT_TO_POINT; NAMES.len()];
        let mut making = collective;
        for (operation, name, call) in NAMES {
            collective[operation as usize] = engine.core.operation(name);
            making[operation as usize] = engine.core.operation(call);
        }
        let [agreement, exchange] = [AGREEMENT, EXCHANGE].map(|name| engine.core.operation(name));
        // All processes name everything in one order.
        for name in WINDOWS {
            engine.core.operation(name);
        }
        Self {
            collective,
            making,
            agreement,
            exchange,
        }
    }
}
