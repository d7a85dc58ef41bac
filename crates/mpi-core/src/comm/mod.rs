// SPDX-License-Identifier: Apache-2.0
//! Communicators (MPI 5.0 section 7.4).

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use isthmus_abi::constants as abi;
use isthmus_engine::{Channel, Context, Members, NativeComm, Peer, Special};
use isthmus_schedule::Steps;
use isthmus_topology::LinkEstimates;

use crate::context::Lease;
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::meeting::Meeting;
use crate::meeting::bonds::Bond;
use crate::remembered::Remembered;
use crate::revocable::{Cause, Registration, Revoked};
use crate::slabs;
use crate::topology::{Neighbours, Topology};
use crate::world::World;

mod blueprint;
mod guest;
mod hints;
mod in_force;
pub(crate) mod joined;
mod network;
pub(crate) mod nodes;
mod predefined;
mod shortcuts;
mod topology_attributes;
mod traffic;
mod tuned;
mod user;
mod whereabouts;

pub(crate) use blueprint::Blueprint;
pub use guest::with_guest;
pub use hints::{Hints, kept};
pub(crate) use hints::{RESOURCE_HINT, asks_for_placement};
use in_force::InForce;
pub use joined::is_joined;
use nodes::Nodes;
pub use predefined::{of_self, of_world};
pub use topology_attributes::TopologyAttributes;
pub use tuned::set_hints;
pub(crate) use tuned::tune;
pub use user::UserState;
pub use whereabouts::{Remembered as RememberedWhereabouts, Whereabouts};

/// An intracommunicator or an intercommunicator.
pub struct Comm {
    group: Group,
    channel: Channel,
    /// What it is of a vendor MPI, if all members live in one job of that.
    native: Option<Box<NativeComm>>,
    /// It is one of the vendor MPI, and all members are on one node.
    blocks_natively: bool,
    /// Number of the next collective operation: equal on all members, who call them in the same order.
    sequence: AtomicU32,
    /// Number of the next persistent collective operation.
    persistent: AtomicU32,
    /// How often its members have begun to agree.
    agreements: AtomicU64,
    /// A member is lost, and another one has given up to wait for all in MPI_Comm_disconnect.
    parted: AtomicBool,
    pub(super) in_force: InForce,
    /// Whether the members represent data differently.
    unlike: OnceLock<bool>,
    colours: OnceLock<Box<TopologyAttributes>>,
    user: UserState,
    hints: Hints,
    pub(super) remembered: Remembered,
    inter: Option<Box<Inter>>,
    arranged: Option<Box<Arranged>>,
    pub(super) nodes: Nodes,
    pub(super) near: OnceLock<Arc<Near>>,
    /// Where its members have met, if they are not all of one job, or it was made of one whose members are not.
    joined: Option<Arc<Meeting>>,
    /// What connects them with it.
    bond: Option<Box<Bond>>,
    /// Known until its context is free.
    registration: Registration,
    /// Frees the context in the end.
    _lease: Option<Lease>,
    /// Gives the slab back in the end.
    _slab: Option<slabs::Use>,
}

/// What a communicator with a process topology has beyond one without.
struct Arranged {
    topology: Topology,
    /// Of this process.
    neighbours: Arc<Neighbours>,
}

/// What an intercommunicator has beyond a communicator.
struct Inter {
    remote: Group,
    local: Arc<Comm>,
    joint: Joint,
}

/// Both groups of an intercommunicator as one: what its collective operations run on.
pub struct Joint {
    /// Internal intracommunicator of both groups, the low one first: the same order on both sides. It has a context of
    /// its own.
    pub comm: Arc<Comm>,
    /// Its ranks of the local group, in order.
    pub local: Range<u32>,
    /// Its ranks of the remote group, in order.
    pub remote: Range<u32>,
}

impl Joint {
    /// Is the local group the low one, which comes first? Exactly one of the two sides says yes.
    pub fn is_low(&self) -> bool {
        self.local.start == 0
    }
}

/// Members of a communicator that share memory with this process, for rooms that build on that. A communicator keeps
/// them, so that what is made again and again needs no communicator of a node each time.
#[derive(Debug)]
pub struct Near {
    members: Box<[bool]>,
    comm: Option<Arc<Comm>>,
}

impl Near {
    pub(crate) fn of(members: Box<[bool]>, comm: Option<Arc<Comm>>) -> Self {
        Self { members, comm }
    }

    /// Of each rank, whether it shares memory with this process, which does.
    pub fn members(&self) -> &[bool] {
        &self.members
    }

    /// A communicator of those that do; `None`: this process is alone.
    pub fn comm(&self) -> Option<&Comm> {
        self.comm.as_deref()
    }

    /// The same for a process that must not reach the memory of others.
    pub fn alone(comm: &Comm) -> Arc<Self> {
        let members = (0..comm.size()).map(|rank| rank == comm.rank()).collect();
        Arc::new(Self { members, comm: None })
    }
}

impl std::fmt::Debug for Comm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Whether a group has several members, who all share memory.
pub(crate) fn are_near(world: &World, group: &Group) -> bool {
    let members = group.members().iter().copied();
    group.size() > 1 && world.engine().lock().slabs().are_shared_with(members)
}

/// A communicator of this group, whose members are these.
fn among(members: Members, group: Group, rank: u32, context: Context, name: &str) -> Comm {
    Comm {
        group,
        channel: Channel {
            context,
            rank,
            members,
            slab: None,
            node: None,
            special: Special::none(),
            notes: Some(Arc::default()),
        },
        native: None,
        blocks_natively: false,
        sequence: AtomicU32::new(0),
        persistent: AtomicU32::new(0),
        agreements: AtomicU64::new(0),
        parted: AtomicBool::new(false),
        in_force: InForce::default(),
        unlike: OnceLock::new(),
        colours: OnceLock::new(),
        user: UserState::new(name),
        hints: Hints::default(),
        remembered: Remembered::default(),
        inter: None,
        arranged: None,
        nodes: Nodes::default(),
        near: OnceLock::new(),
        joined: None,
        bond: None,
        registration: Registration::default(),
        _lease: None,
        _slab: None,
    }
}

impl Comm {
    pub(crate) fn new(group: Group, rank: u32, context: Context, name: &str) -> Self {
        let members = Members::of(group.members());
        among(members, group, rank, context, name)
    }

    /// Whether all members share memory.
    pub(crate) fn shares_memory(&self, world: &World) -> bool {
        self.inter.is_none() && are_near(world, &self.group)
    }

    /// The members meet by a slab that they have agreed on.
    pub(crate) fn meet_by(&mut self, world: &World, own: slabs::Use) {
        self.meet_in_slab(world, own.slab());
        self._slab = Some(own);
    }

    /// The members, who share memory, meet in this slab of it.
    fn meet_in_slab(&mut self, world: &World, slab: u32) {
        world.engine().lock().slabs().open(slab);
        self.channel.slab = Some(slab);
        self.remembered.forget();
    }

    pub(crate) fn set_native(&mut self, native: NativeComm) {
        self.channel.special = Special::native(native.name());
        self.blocks_natively = native.is_near();
        self.native = Some(Box::new(native));
        self.remembered.forget();
    }

    /// Whether it is a communicator of the vendor MPI underneath.
    #[inline]
    pub fn is_native(&self) -> bool {
        self.channel.special.name() != 0
    }

    /// Whether its blocking collective operations are blocking ones there. Where members are on several nodes a process
    /// cannot know that all have come, so it must not block there while others wait for it, and all start them instead.
    #[inline]
    pub fn blocks_natively(&self) -> bool {
        self.blocks_natively
    }

    /// Own rank.
    #[inline]
    pub fn rank(&self) -> u32 {
        self.channel.rank
    }

    /// Number of processes of the (local) group.
    #[inline]
    pub fn size(&self) -> u32 {
        self.group.size() as u32
    }

    /// Number of processes that a rank in a message may name: of the remote group of an intercommunicator, else of the
    /// group.
    #[inline]
    pub fn peers(&self) -> u32 {
        self.channel.members.count()
    }

    /// The remote group, if this is an intercommunicator.
    pub fn remote(&self) -> Option<&Group> {
        self.inter.as_ref().map(|inter| &inter.remote)
    }

    /// Both groups of an intercommunicator as one.
    pub fn joint(&self) -> Option<&Joint> {
        self.inter.as_ref().map(|inter| &inter.joint)
    }

    /// The intracommunicator over which all members agree: the communicator, or both groups of an intercommunicator.
    pub(crate) fn everybody(&self) -> &Self {
        self.joint().map_or(self, |joint| &*joint.comm)
    }

    /// Internal intracommunicator of the local group of an intercommunicator.
    pub fn local(&self) -> Option<&Arc<Self>> {
        self.inter.as_ref().map(|inter| &inter.local)
    }

    /// The neighbours of this process, if the communicator has a process topology.
    pub fn neighbours(&self) -> Option<Arc<Neighbours>> {
        self.arranged.as_ref().map(|arranged| arranged.neighbours.clone())
    }

    /// The process topology.
    pub fn topology(&self) -> Option<&Topology> {
        self.arranged.as_ref().map(|arranged| &arranged.topology)
    }

    /// The members of the (local) group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The context of its messages; no two communicators of a process have the same.
    pub fn context(&self) -> Context {
        self.channel.context
    }

    /// For the engine.
    #[inline]
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The links in force, if they are not those of the world.
    pub(crate) fn own_links(&self) -> Option<Arc<LinkEstimates>> {
        self.in_force.links()
    }

    /// From now on these are in force.
    pub(crate) fn set_links(&self, links: Option<Arc<LinkEstimates>>) {
        self.in_force.set(links);
        self.remembered.forget();
    }

    /// Collective operations that this process has started on it.
    pub fn started(&self) -> u32 {
        self.sequence.load(Ordering::Relaxed)
    }

    /// Number of a collective operation: below 2^15.
    #[inline]
    pub(crate) fn next_sequence(&self) -> u32 {
        // The program starts the operations of a communicator one after the other, so nobody else counts meanwhile.
        let number = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(number.wrapping_add(1), Ordering::Relaxed);
        number & 0x7fff
    }

    /// The number that the next one will have.
    #[inline]
    pub(crate) fn sequence(&self) -> u32 {
        self.sequence.load(Ordering::Relaxed) & 0x7fff
    }

    /// Number of a persistent collective operation: 2^15 and above, so that it is never that of another kind.
    pub(crate) fn next_persistent(&self) -> u32 {
        self.persistent.fetch_add(1, Ordering::Relaxed) & 0x7fff | 0x8000
    }

    /// Whether it was revoked.
    #[inline]
    pub fn is_revoked(&self) -> bool {
        self.channel.special.is_revoked()
    }

    /// What the program has set on it, other than hints.
    pub fn user(&self) -> &UserState {
        &self.user
    }

    /// Its info hints.
    #[inline]
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// For messages: the name, or what it is.
    pub fn describe(&self) -> String {
        let name = self.user.name();
        if name.is_empty() {
            format!("a communicator of {} processes", self.size())
        } else {
            name
        }
    }
}

/// Number of the next agreement, which all members count.
pub(crate) fn next_agreement(comm: &Comm) -> u64 {
    comm.agreements.fetch_add(1, Ordering::Relaxed)
}

/// Whether a member is lost, and another one has given up to wait for all in MPI_Comm_disconnect.
pub(crate) fn is_parted(comm: &Comm) -> bool {
    comm.parted.load(Ordering::Relaxed)
}

impl Revoked for Comm {
    fn context(&self) -> Context {
        self.channel.context
    }

    fn everybody(&self) -> (Arc<[Peer]>, u32) {
        let everybody = Self::everybody(self);
        (everybody.group.members().clone(), everybody.rank())
    }

    fn is_revoked(&self) -> bool {
        self.channel.special.is_revoked()
    }

    fn can_be_revoked(&self) -> bool {
        !self.is_native()
    }

    fn registration(&self) -> &Registration {
        &self.registration
    }

    fn meeting(&self) -> u32 {
        let first = |meeting: &Arc<Meeting>| {
            let [a, b, c, d, ..] = meeting.id();
            u32::from_le_bytes([a, b, c, d])
        };
        self.joined.as_ref().map_or(0, first)
    }

    fn hear(&self, cause: Cause) -> Option<Vec<Channel>> {
        if cause == Cause::Loss {
            return (!self.parted.swap(true, Ordering::Relaxed)).then(Vec::new);
        }
        if self.is_revoked() || !self.can_be_revoked() {
            return None;
        }
        let inner = self.inter.as_ref().map(|inter| [&inter.local, &inter.joint.comm]);
        let mut channels: Vec<Channel> = inner
            .iter()
            .flatten()
            .filter_map(|comm| comm.hear(cause))
            .flatten()
            .collect();
        self.channel.special.revoke();
        self.remembered.forget();
        channels.push(self.channel.clone());
        let steps = [Steps::Nodes, Steps::Jobs];
        for channel in steps.iter().filter_map(|&steps| self.nodes.channel(steps)) {
            channel.special.revoke();
            channels.push(channel.clone());
        }
        Some(channels)
    }
}

/// Refuses what is not possible on a communicator that was revoked.
#[inline]
pub fn usable(comm: &Comm) -> Result<()> {
    match comm.is_revoked() {
        false => Ok(()),
        true => revoked(comm),
    }
}

#[cold]
fn revoked<T>(comm: &Comm) -> Result<T> {
    fail!(
        abi::MPIX_ERR_REVOKED,
        "{} was revoked (MPIX_Comm_revoke): nothing but MPIX_Comm_shrink, MPIX_Comm_agree, questions about it and MPI_Comm_free is \
         possible on it any more",
        comm.describe()
    )
}

#[cfg(test)]
mod tests {
    use super::Comm;

    #[test]
    fn a_communicator_is_small() {
        // Each window has one, and programs have thousands. With its two counts it is 416 bytes, which with malloc's
        // own takes 432.
        assert!(size_of::<Comm>() <= 400, "{}", size_of::<Comm>());
    }
}
