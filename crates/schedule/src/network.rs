// SPDX-License-Identifier: Apache-2.0
//! What plans are made for: a group's shape, what its links cost, and what was chosen for it.
//!
//! Equal on all members of the group, so that each of them alone makes plans that match: the links are those agreed
//! when the communicator was created, the overrides come from the job.

use crate::call::{Operation, Steps};
use crate::choices::Choices;
use crate::overrides::Overrides;
use crate::ring;
use crate::routes::{Latency, Routes, Ways, arrangement};
use isthmus_topology::{Level, Link, Links, Rank, Shape, Topology};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The jobs of vendor MPIs, where they are the innermost clusters beside single nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jobs {
    /// Nodes of the largest of them.
    pub nodes: u32,
    /// Most processes on a node.
    pub on_node: u32,
}

/// The network among the members of one group. Reads as its [`Shape`].
#[derive(Debug)]
pub struct Network {
    shape: Arc<Shape>,
    links: Arc<Links>,
    overrides: Arc<Overrides>,
    /// Local area of each cluster of depth 1; empty unless the outermost tier is the wide area.
    areas: Vec<u32>,
    /// The same group as if all were in one local area, where positions are not ranks.
    by_rank: OnceLock<Arc<Self>>,
    /// The same group with its sites in a better order.
    arranged: OnceLock<Option<Arc<Self>>>,
    /// Whether there are processes of jobs of vendor MPIs.
    has_jobs: bool,
    /// The same group with each of these as one cluster of processes.
    with_whole_jobs: OnceLock<Option<Arc<Self>>>,
    /// This is such a network.
    jobs: Option<Jobs>,
    routes: OnceLock<Option<Arc<Routes>>>,
    ways: OnceLock<Option<Arc<Ways>>>,
    ring: OnceLock<Option<Arc<Ways>>>,
    choices: Choices,
}

impl Deref for Network {
    type Target = Shape;
    fn deref(&self) -> &Shape {
        &self.shape
    }
}

impl Network {
    /// The network of a group, given by the world ranks of its members in order.
    ///
    /// # Panics
    /// If a member is not a rank of the world.
    pub fn new(topology: &Topology, members: &[u32], links: Arc<Links>, overrides: Arc<Overrides>) -> Arc<Self> {
        let shape = Shape::new(topology, members);
        let areas = match shape.tiers() > 0 && shape.level(0) == Level::WideArea {
            true => (0..shape.clusters(1))
                .map(|cluster| {
                    let first = shape.rank_at(shape.span(1, cluster).start);
                    topology.clusters_of(members[first as usize])[0]
                })
                .collect(),
            false => Vec::new(),
        };
        Arc::new(Self {
            has_jobs: members.iter().any(|&member| topology.is_in_vendor_job(member)),
            ..Self::made_of(Arc::new(shape), links, overrides, areas)
        })
    }

    /// The network of all processes of a world.
    pub fn of_world(topology: &Topology, links: Arc<Links>, overrides: Arc<Overrides>) -> Arc<Self> {
        let members: Vec<u32> = (0..topology.size()).collect();
        Self::new(topology, &members, links, overrides)
    }

    /// The network of a group of which only the shape is known: local areas are numbered in order of position.
    pub fn of_shape(shape: &Arc<Shape>, links: Arc<Links>, overrides: Arc<Overrides>) -> Arc<Self> {
        let wide = shape.tiers() > 0 && shape.level(0) == Level::WideArea;
        let areas = if wide {
            (0..shape.clusters(1)).collect()
        } else {
            Vec::new()
        };
        Self::with(Arc::clone(shape), links, overrides, areas)
    }

    /// A network of whose links nothing is known.
    pub fn plain(shape: Shape) -> Arc<Self> {
        Self::of_shape(&Arc::new(shape), Arc::default(), Arc::default())
    }

    fn with(shape: Arc<Shape>, links: Arc<Links>, overrides: Arc<Overrides>, areas: Vec<u32>) -> Arc<Self> {
        Arc::new(Self::made_of(shape, links, overrides, areas))
    }

    fn made_of(shape: Arc<Shape>, links: Arc<Links>, overrides: Arc<Overrides>, areas: Vec<u32>) -> Self {
        let has_jobs = (0..shape.tiers()).any(|tier| shape.level(tier) == Level::Vendor);
        Self {
            shape,
            links,
            overrides,
            areas,
            by_rank: OnceLock::new(),
            arranged: OnceLock::new(),
            has_jobs,
            with_whole_jobs: OnceLock::new(),
            jobs: None,
            routes: OnceLock::new(),
            ways: OnceLock::new(),
            ring: OnceLock::new(),
            choices: Choices::default(),
        }
    }

    /// The same network in another order, or with other clusters inside.
    fn reshaped(&self, shape: Shape, areas: Vec<u32>, jobs: Option<Jobs>) -> Self {
        let (links, overrides) = (Arc::clone(&self.links), Arc::clone(&self.overrides));
        Self {
            jobs,
            ..Self::made_of(Arc::new(shape), links, overrides, areas)
        }
    }

    /// The network among some of the processes, given by their ranks; rank i of the new group is `members[i]`.
    pub fn among(&self, members: &[Rank]) -> Arc<Self> {
        let shape = self.shape.among(members);
        let wide = shape.tiers() > 0 && shape.level(0) == Level::WideArea && !self.areas.is_empty();
        let areas = match wide {
            true => (0..shape.clusters(1))
                .map(|cluster| {
                    let first = members[shape.rank_at(shape.span(1, cluster).start) as usize];
                    self.areas[self.cluster_of(1, self.position_of(first)) as usize]
                })
                .collect(),
            false => Vec::new(),
        };
        Self::with(
            Arc::new(shape),
            Arc::clone(&self.links),
            Arc::clone(&self.overrides),
            areas,
        )
    }

    /// A network of the same group whose positions are ranks, for what must go by rank: this one, or one without
    /// clusters.
    pub fn by_rank(self: &Arc<Self>) -> &Arc<Self> {
        if self.in_rank_order() {
            return self;
        }
        self.by_rank.get_or_init(|| {
            let shape = Arc::clone(self.shape.by_rank());
            Self::of_shape(&shape, Arc::clone(&self.links), Arc::clone(&self.overrides))
        })
    }

    /// A network of the same group for what may go by any order of sites: with its sites in the order in which routes
    /// between them are quickest, so that what goes through a site is an interval of positions.
    pub fn arranged(self: &Arc<Self>) -> &Arc<Self> {
        let arranged = self.arranged.get_or_init(|| {
            let order = arrangement(&self.latency()?)?;
            let areas = order.iter().map(|&cluster| self.areas[cluster as usize]).collect();
            let network = self.reshaped(self.shape.arranged(&order), areas, self.jobs);
            // It is as good as it gets.
            network.arranged.get_or_init(|| None);
            Some(Arc::new(network))
        });
        arranged.as_ref().unwrap_or(self)
    }

    /// A network of the same group in which each job of a vendor MPI is one innermost cluster, as a node is
    /// elsewhere: for operations in which its processes take steps together that are collective operations of that MPI.
    /// `None`: there are no such jobs, or there is nothing but one.
    pub fn with_whole_jobs(&self) -> Option<&Arc<Self>> {
        let network = self.with_whole_jobs.get_or_init(|| {
            let shape = self
                .shape
                .with_whole_jobs()
                .filter(|shape| self.has_jobs && shape.tiers() > 1)?;
            let most = |level| {
                let tier = (0..self.tiers()).find(|&tier| self.level(tier) == level)?;
                (0..self.clusters(tier)).map(|c| self.parts(tier, c).len() as u32).max()
            };
            let jobs = Jobs {
                nodes: most(Level::Vendor).unwrap_or(1),
                on_node: most(Level::Node).unwrap_or(1),
            };
            Some(Arc::new(self.reshaped(shape, self.areas.clone(), Some(jobs))))
        });
        network.as_ref()
    }

    /// The network that plans with such steps are made for.
    pub fn of_steps(self: &Arc<Self>, steps: Steps) -> &Arc<Self> {
        match steps {
            Steps::Jobs => self.with_whole_jobs().unwrap_or(self),
            Steps::None | Steps::Nodes => self,
        }
    }

    /// The jobs of vendor MPIs, if they are the innermost clusters here.
    pub fn jobs(&self) -> Option<Jobs> {
        self.jobs
    }

    /// The clusters of the group.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// What is known of the links.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// What was said about the choice of algorithms.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// The link between two parts of the outermost tier (clusters of depth 1).
    pub(crate) fn outer(&self, a: u32, b: u32) -> &Link {
        match self.areas.is_empty() {
            true => self.link(0),
            false => self.links.pair(self.areas[a as usize], self.areas[b as usize]),
        }
    }

    /// The links of a tier, where they have no parameters of their own.
    pub(crate) fn link(&self, tier: usize) -> &Link {
        self.links.level(self.level(tier))
    }

    /// Whether the members of some cluster of a tier, which is that of nodes, share fewer processors.
    pub(crate) fn is_crowded(&self, tier: usize) -> bool {
        let processors = self.links.processors as usize;
        let crowded = |cluster| self.parts(tier, cluster).len() > processors;
        processors < self.size() as usize && self.level(tier) == Level::Node && (0..self.clusters(tier)).any(crowded)
    }

    /// Whether several processes are all on one node and of one world, so that they can do operations together in its
    /// memory ([`Call::together`](crate::Call::together)).
    pub fn shares_memory(&self) -> bool {
        self.tiers() == 1 && self.shares_memory_inside()
    }

    /// Whether there are several nodes, or worlds on one, and in some of them several processes: the innermost tier is
    /// that of processes that share memory, or of jobs.
    pub(crate) fn has_nodes(&self) -> bool {
        self.tiers() > 1 && (self.jobs.is_some() || self.shares_memory_inside())
    }

    /// Whether processes of a node, or of a job, can take steps together in such an operation.
    pub(crate) fn takes_steps(&self, operation: Operation) -> bool {
        use Operation as O;
        let takes = matches!(
            operation,
            O::Barrier | O::Bcast | O::Reduce | O::Allreduce | O::Gather | O::Scatter | O::Allgather
        );
        takes && self.has_nodes()
    }

    /// The ranks of the processes of a process's world on its node (or of its [job](Self::with_whole_jobs)), itself
    /// among them, in order: those who share memory with it in a group over several nodes or worlds. One alone where
    /// they are on several machines of which nothing more is known.
    pub fn node(&self, me: Rank) -> Vec<Rank> {
        if !self.has_nodes() {
            return vec![me];
        }
        let tier = self.tiers() - 1;
        let span = self.span(tier, self.cluster_of(tier, self.position_of(me)));
        span.map(|position| self.rank_at(position)).collect()
    }

    /// Whether pairs of parts of the outermost tier have parameters of their own.
    pub(crate) fn has_pairs(&self) -> bool {
        self.areas.iter().enumerate().any(|(i, &a)| {
            let mut others = self.areas[..i].iter();
            others.any(|&b| self.links.has_pair(a, b))
        })
    }

    /// How many parts of the outermost tier there are, if links between them are unlike.
    fn outermost(&self) -> Option<u32> {
        (self.tiers() > 0 && self.has_pairs()).then(|| self.clusters(1))
    }

    /// How far the parts of the outermost tier are from each other, where they are few and their links unlike.
    pub(crate) fn latency(&self) -> Option<Latency> {
        Latency::among(self.outermost()?, |a, b| self.outer(a, b))
    }

    /// The best ways between the parts of the outermost tier, where they are few and their links unlike.
    pub(crate) fn routes(&self) -> Option<&Arc<Routes>> {
        let routes = self.routes.get_or_init(|| {
            let latency = self.latency()?;
            Some(Arc::new(Routes::of(&latency)))
        });
        routes.as_ref()
    }

    /// The ways around the widest ring of the parts of the outermost tier, where their links are unlike.
    pub(crate) fn ring(&self) -> Option<&Arc<Ways>> {
        let ring = || {
            let ways = ring::ways(self.outermost()?, |a, b| self.outer(a, b));
            ways.map(Arc::new)
        };
        self.ring.get_or_init(ring).as_ref()
    }

    /// The quickest ways between the parts of the outermost tier, where some lead through others.
    pub(crate) fn ways(&self) -> Option<&Arc<Ways>> {
        let ways = self.ways.get_or_init(|| {
            let latency = self.latency()?;
            Ways::new(&latency).map(Arc::new)
        });
        ways.as_ref()
    }

    pub(crate) fn choices(&self) -> &Choices {
        &self.choices
    }
}
