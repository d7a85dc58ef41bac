// SPDX-License-Identifier: Apache-2.0
//! The processes that have a file open: who reaches it, who does what for all, and what they have told each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use isthmus_core::comm::{self, Comm, Whereabouts};
use isthmus_core::error::Result;
use isthmus_core::world::World;
use isthmus_engine::{Channel, Peer};

use crate::group::{Members, Sites, TAGS};
use crate::name::Site;
use crate::task::{self, Operation, Post};

/// Bits of the number of a question that its tags carry.
const NUMBERS: u32 = (1 << 20) - 1;

/// Whether a process reaches a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It does not: others access the file for it.
    Not,
    /// It accesses the file for itself only.
    Alone,
    /// It does so for others, too.
    ForAll,
}

impl Reach {
    /// Of so many processes and the guest behind them, who has the file.
    pub(crate) fn of_guest(size: u32) -> Vec<Self> {
        let mut reach = vec![Self::Not; size as usize];
        reach.push(Self::ForAll);
        reach
    }
}

/// What a process has sent for accesses.
#[derive(Default)]
struct Sent {
    messages: AtomicU64,
    bytes: AtomicU64,
}

/// See the module.
pub(crate) struct Processes {
    world: &'static World,
    /// A duplicate of the program's communicator, so that nothing of ours meets anything of its. With a guest behind
    /// its processes, if none of them is where the file is.
    comm: Arc<Comm>,
    /// What it is a duplicate with a guest of.
    _own: Arc<Comm>,
    /// Its processes without a guest.
    size: u32,
    /// Who is where.
    sites: Arc<Sites>,
    /// Which processes reach the file. The first of those that do so for all has the shared pointer.
    reach: Vec<Reach>,
    /// What this process has sent: inside its site, and to other sites.
    sent: [Sent; 2],
    /// Of collective operations, for their tags.
    sequence: AtomicU32,
    /// Of questions, for the tags of their answers.
    questions: AtomicU32,
}

impl Processes {
    /// Those of a communicator, and the guest that has the file open for them.
    pub(crate) fn new(
        world: &'static World,
        own: Arc<Comm>,
        guest: Option<Peer>,
        sites: Arc<Sites>,
        reach: Vec<Reach>,
    ) -> Self {
        let comm = guest.map_or_else(|| own.clone(), |guest| comm::with_guest(&own, guest));
        Self {
            world,
            size: own.size(),
            comm,
            _own: own,
            sites,
            reach,
            sent: Default::default(),
            sequence: AtomicU32::new(0),
            questions: AtomicU32::new(0),
        }
    }

    /// The same as the guest sees it, who is the last one of the communicator and the only one that reaches the file.
    pub(crate) fn hosted(world: &'static World, comm: Arc<Comm>) -> Self {
        let size = comm.size() - 1;
        let reach = Reach::of_guest(size);
        let sites = Arc::new(Sites::new(std::iter::empty::<u32>()));
        Self {
            size,
            ..Self::new(world, comm, None, sites, reach)
        }
    }

    pub(crate) fn world(&self) -> &'static World {
        self.world
    }

    pub(crate) fn comm(&self) -> &Comm {
        &self.comm
    }

    pub(crate) fn channel(&self) -> &Channel {
        self.comm.channel()
    }

    pub(crate) fn rank(&self) -> u32 {
        self.comm.rank()
    }

    pub(crate) fn sites(&self) -> &Arc<Sites> {
        &self.sites
    }

    /// The process that has the shared pointer and does what one does for all.
    pub(crate) fn home(&self) -> u32 {
        self.serving().next().unwrap_or(0)
    }

    /// A process that none of those is which opened the file: it has the file open for them.
    pub(crate) fn guest(&self) -> Option<u32> {
        (self.comm.size() > self.size).then_some(self.size)
    }

    /// Whether this process is one.
    pub(crate) fn is_guest(&self) -> bool {
        self.guest() == Some(self.rank())
    }

    /// Whether this process does, or asks a guest to do, what one does for all.
    pub(crate) fn is_deputy(&self) -> bool {
        self.rank() == self.deputy()
    }

    /// The process that does.
    pub(crate) fn deputy(&self) -> u32 {
        if self.guest().is_some() { 0 } else { self.home() }
    }

    /// Whether this process asks a guest for what each does that reaches the file.
    pub(crate) fn asks_guest(&self) -> bool {
        self.guest().is_some() && self.is_deputy()
    }

    /// Whether a process belongs to another site than this one, or to another job.
    pub(crate) fn is_elsewhere(&self, rank: u32) -> bool {
        let all = Whereabouts::of(self.world, &self.comm);
        let peer = self.comm.group().members().get(rank as usize);
        peer.is_none_or(|peer| Site::of(&all, *peer) != Site::own(&all))
    }

    /// Those that access the file for others, too.
    fn serving(&self) -> impl Iterator<Item = u32> {
        (0..)
            .zip(&self.reach)
            .filter(|(_, reach)| **reach == Reach::ForAll)
            .map(|(rank, _)| rank)
    }

    /// Whether some processes do not reach the file.
    pub(crate) fn has_far(&self) -> bool {
        self.reach.contains(&Reach::Not)
    }

    /// Those that reach the file, but for a guest.
    pub(crate) fn near(&self) -> Vec<u32> {
        (0..self.size)
            .filter(|rank| self.reach[*rank as usize] != Reach::Not)
            .collect()
    }

    /// Who reaches the file for this process.
    pub(crate) fn server(&self) -> u32 {
        let serving: Vec<u32> = self.serving().collect();
        let at = self.rank() as usize % serving.len().max(1);
        serving.get(at).copied().unwrap_or(0)
    }

    /// Whether this process answers questions of others.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked().contains(&self.rank())
    }

    /// Who answers questions of others.
    pub(crate) fn asked(&self) -> Vec<u32> {
        let (far, home) = (self.has_far(), self.home());
        let some = self.serving().filter(|rank| far || *rank == home);
        some.filter(|_| self.comm.size() > 1).collect()
    }

    /// All but this one that have the file open, but for a guest.
    pub(crate) fn others(&self) -> Vec<u32> {
        (0..self.size).filter(|rank| *rank != self.rank()).collect()
    }

    /// Those that use the disk in collective operations. Without a wish one for each node that reaches the file, on one
    /// node alone all of them, at most eight. For processes of other sites one for each node: the more connections
    /// share a link, the worse each gets on.
    pub(crate) fn aggregators(&self, wanted: u32) -> Vec<u32> {
        let near: Vec<u32> = match self.has_far() {
            true => self.serving().filter(|rank| *rank < self.size).collect(),
            false => self.near(),
        };
        let mut seen = Vec::new();
        let mut first = Vec::new();
        for &rank in &near {
            if !seen.contains(&self.node_of(rank)) {
                seen.push(self.node_of(rank));
                first.push(rank);
            }
        }
        match wanted as usize {
            0 if first.len() > 1 || self.has_far() => first,
            0 => near.into_iter().take(8).collect(),
            wanted if wanted <= first.len() => first.into_iter().take(wanted).collect(),
            wanted => near.into_iter().take(wanted).collect(),
        }
    }

    /// Number of the node of a process.
    fn node_of(&self, rank: u32) -> Option<u32> {
        let peer = *self.comm.group().members().get(rank as usize)?;
        Whereabouts::of(self.world, &self.comm)
            .place(peer)
            .map(|place| place.node)
    }

    /// Whether all who use the file by themselves are on the node of the first process of its site. To them it is there
    /// when its name is gone: their system knows that they have it open.
    pub(crate) fn are_near_home(&self) -> bool {
        let home = self.home();
        let is_first = self.sites.all()[self.sites.of(home)].first() == Some(&home);
        is_first && self.near().iter().all(|rank| self.node_of(*rank) == self.node_of(home))
    }

    /// Counts a message.
    pub(crate) fn count(&self, to: u32, bytes: usize) {
        if to == self.rank() {
            return;
        }
        let far = self.guest().is_some() || self.sites.of(to) != self.sites.of(self.rank());
        let sent = &self.sent[usize::from(far)];
        sent.messages.fetch_add(1, Ordering::Relaxed);
        sent.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Messages and bytes that this process has sent: inside its site, and to other sites.
    pub(crate) fn sent(&self) -> [[u64; 2]; 2] {
        let sent = self.sent.each_ref();
        sent.map(|level| [&level.messages, &level.bytes].map(|number| number.load(Ordering::Relaxed)))
    }

    /// The number of the next question.
    pub(crate) fn next_question(&self) -> u32 {
        Self::question(self.questions.fetch_add(1, Ordering::Relaxed))
    }

    /// What is left of the number of a question in the tags of its messages.
    pub(crate) fn question(number: u32) -> u32 {
        number & NUMBERS
    }

    /// The processes, for the next collective operation.
    pub(crate) fn members(&self) -> Members {
        let number = self.sequence.fetch_add(1, Ordering::Relaxed) & 0xff_ffff;
        Members {
            me: self.rank(),
            size: self.size,
            tag: (number as i32 + 1) * TAGS,
            sites: self.sites.clone(),
        }
    }

    /// Does something with all others, and waits.
    pub(crate) fn together(&self, operation: impl FnOnce(Post, Members) -> Operation) -> Result<u64> {
        let members = self.members();
        self.alone(|post| operation(post, members))
    }

    /// Does something without the others, and waits.
    pub(crate) fn alone(&self, operation: impl FnOnce(Post) -> Operation) -> Result<u64> {
        task::run(self.world, self.channel(), operation)
    }

    /// Returns when all have come; collective.
    pub(crate) fn meet(&self) -> Result<()> {
        self.together(|post, members| {
            Box::pin(async move {
                members.words(&post, 0, 0).await?;
                Ok(0)
            })
        })
        .map(drop)
    }
}
