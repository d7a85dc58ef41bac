// SPDX-License-Identifier: Apache-2.0
//! Intercommunicators (MPI 5.0 section 7.6): two disjoint groups that talk to each other.

use std::sync::Arc;

use isthmus_abi::constants as abi;

use crate::comm::{Blueprint, Comm, Whereabouts, is_joined};
use crate::context::{self, Numbers};
use crate::create::{self, string_tag};
use crate::errhandler::ErrorHandler;
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::internal::{self, Side};
use crate::joining;
use crate::meeting::reach::Exchange;
use crate::world::World;

/// What the leader of a group tells the other one, and then its own group.
///
/// ```text
///  | contexts (3) | world ranks of the group in order ... |   little-endian words
/// ```
struct Offer {
    numbers: Numbers,
    group: Group,
}

impl Offer {
    fn encode(&self, world: &World) -> Vec<u8> {
        let mut out = internal::encode(self.numbers).to_vec();
        let ranks = world.ranks_of(&self.group);
        out.extend(ranks.iter().flat_map(|rank| rank.to_le_bytes()));
        out
    }

    fn decode(world: &World, bytes: &[u8]) -> Result<Self> {
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .filter_map(<[u8]>::first_chunk)
            .map(|b| u32::from_le_bytes(*b))
            .collect();
        let Some((numbers, members)) = words.split_first_chunk::<{ context::MOST }>() else {
            fail!(
                abi::MPI_ERR_INTERN,
                "the other group's leader sent {} bytes",
                bytes.len()
            )
        };
        if let Some(stranger) = members.iter().find(|&&m| m >= world.size()) {
            fail!(
                abi::MPI_ERR_INTERN,
                "the other group has the process {stranger}, which is not in the job"
            );
        }
        Ok(Self {
            numbers: *numbers,
            group: world.group_of(members.iter().copied()),
        })
    }
}

/// The leaders of two groups, as one of them sees them.
struct LeaderPair {
    side: Side,
    /// The other leader, by its rank among those of `side`.
    other: u32,
    /// Their processes may be of several jobs.
    is_joined: bool,
}

/// Leaders that have a communicator in common, when their groups join.
struct Leaders<'w> {
    world: &'w World,
    pair: LeaderPair,
}

impl Exchange for Leaders<'_> {
    fn exchange(&mut self, mine: &[u8]) -> Result<Vec<u8>> {
        self.pair.side.exchange(self.world, self.pair.other, mine)
    }
}

/// In place of an [`Offer`]: the groups have to join, since processes of several jobs may be among them.
const JOIN: [u8; 1] = [1];

/// MPI_Intercomm_create; collective over `comm`, the local group. `peer`: at the leader, where the leaders meet,
/// and the rank there of the other leader.
pub fn create<'p>(
    world: &World,
    comm: &Comm,
    leader: i32,
    peer: impl FnOnce() -> Result<(&'p Comm, i32)>,
    tag: i32,
) -> Result<Arc<Comm>> {
    let leader = check_leader(comm, leader)?;
    let pair = || {
        let (peer, remote) = peer()?;
        check_remote(comm.group(), peer.remote().unwrap_or_else(|| peer.group()), remote)?;
        match u32::try_from(remote).ok().filter(|&r| r < peer.peers()) {
            Some(other) if peer.remote().is_some() || other != peer.rank() => Ok(LeaderPair {
                side: Side::of(peer, tag),
                other,
                is_joined: is_joined(peer) || is_joined(comm),
            }),
            _ => fail!(
                abi::MPI_ERR_RANK,
                argument("remote_leader"),
                "is {remote}, which is not the rank of another process in {}",
                peer.describe()
            ),
        }
    };
    bridge(world, comm, leader, pair, comm.user().error_handler())
}

/// MPI_Intercomm_create_from_groups; collective over both groups. `remote`: at the leader, the remote group and the
/// rank of its leader.
pub fn create_from_groups(
    world: &World,
    group: &Group,
    leader: i32,
    remote: impl FnOnce() -> Result<(Group, i32)>,
    tag: &str,
) -> Result<Arc<Comm>> {
    let local = create::from_group(world, group, tag)?;
    let leader = check_leader(&local, leader)?;
    let pair = || {
        let (remote, rank) = remote()?;
        let other = usize::try_from(rank).ok().and_then(|r| remote.members().get(r));
        check_remote(group, &remote, rank)?;
        let Some(&other) = other.filter(|&&peer| peer != world.me()) else {
            fail!(
                abi::MPI_ERR_RANK,
                argument("remote_leader"),
                "is {rank}, which is not the rank of another process in the remote group of {}",
                remote.size()
            )
        };
        let leaders = Whereabouts::of_group(world, &Group::new([world.me(), other]))?;
        let Some(place) = leaders.rank_of(other) else {
            fail!(abi::MPI_ERR_INTERN, "a process is not among those who have met");
        };
        Ok(LeaderPair {
            side: Side::among(&leaders, string_tag(tag, &[])),
            other: place,
            is_joined: leaders.have_met() || is_joined(&local) || world.ranks_of(&remote).len() < remote.size(),
        })
    };
    bridge(world, &local, leader, pair, None)
}

fn check_leader(comm: &Comm, leader: i32) -> Result<u32> {
    match u32::try_from(leader) {
        Ok(rank) if rank < comm.size() => Ok(rank),
        _ => fail!(
            abi::MPI_ERR_RANK,
            argument("local_leader"),
            "is {leader}, but the ranks of {} are 0 to {}",
            comm.describe(),
            i64::from(comm.size()) - 1
        ),
    }
}

/// The remote leader is not one of the local group: nobody would wait for this process there.
fn check_remote(local: &Group, among: &Group, remote: i32) -> Result<()> {
    let other = usize::try_from(remote).ok().and_then(|rank| among.members().get(rank));
    if other.is_some_and(|&other| local.rank_of(other).is_some()) {
        fail!(
            abi::MPI_ERR_RANK,
            argument("remote_leader"),
            "is {remote}, which is a process of the local group; the two groups must be disjoint"
        );
    }
    Ok(())
}

/// Exchanges what the groups know through their leaders. What is wrong at the leader is told to its group as an
/// empty message, so that nobody waits for ever.
fn bridge(
    world: &World,
    comm: &Comm,
    leader: u32,
    pair: impl FnOnce() -> Result<LeaderPair>,
    handler: Option<ErrorHandler>,
) -> Result<Arc<Comm>> {
    let at_leader = comm.rank() == leader;
    let mine = Offer {
        numbers: if at_leader {
            world.contexts().take(true)
        } else {
            Numbers::default()
        },
        group: comm.group().clone(),
    };
    let mut leaders = None;
    let met = match at_leader {
        true => pair().and_then(|pair| {
            let word = match pair.is_joined {
                true => JOIN.to_vec(),
                false => mine.encode(world),
            };
            let theirs = pair.side.exchange(world, pair.other, &word)?;
            // One of the two knows it, and then both groups do so.
            let joins = pair.is_joined || theirs == JOIN;
            leaders = joins.then_some(Leaders { world, pair });
            Ok(if joins { JOIN.to_vec() } else { theirs })
        }),
        false => Ok(Vec::new()),
    };
    // Which side is low the leaders know first.
    let told = met.as_ref().map_or(&[][..], |theirs| theirs);
    let theirs = internal::broadcast_all(world, comm, leader, told)?;
    if theirs == JOIN {
        world.contexts().give_back(mine.numbers);
        let pipe = || match leaders {
            Some(leaders) => Ok(Box::new(leaders) as Box<dyn Exchange>),
            None => fail!(abi::MPI_ERR_INTERN, "the leader has met nobody"),
        };
        return joining::join(world, comm, leader, pipe);
    }
    let ours = internal::broadcast(world, comm, leader, &internal::encode(mine.numbers))?;
    met?;
    if theirs.is_empty() {
        fail!(
            abi::MPI_ERR_OTHER,
            "rank {leader}, the leader of the local group, could not meet the other one"
        );
    }
    let theirs = Offer::decode(world, &theirs)?;
    if mine.group.intersection(&theirs.group).size() > 0 {
        fail!(
            abi::MPI_ERR_COMM,
            "the two groups of an intercommunicator have a process in common; they must be disjoint"
        );
    }
    let first = |group: &Group| world.rank_of(*group.members().first()?);
    let low = first(&mine.group) < first(&theirs.group);
    let numbers = if low { internal::decode(&ours) } else { theirs.numbers };
    if at_leader && !low {
        world.contexts().give_back(mine.numbers);
    }
    world.engine().lock().underneath().mix();
    let Some(blueprint) = Blueprint::new(world, mine.group) else {
        fail!(
            abi::MPI_ERR_INTERN,
            "the process is not a member of its own communicator"
        )
    };
    let remote = Some((theirs.group, low));
    let comm = Blueprint {
        remote,
        handler,
        ..blueprint
    }
    .build(context::granted(numbers)?);
    world.revocable.begins(world.engine(), &comm);
    Ok(comm)
}

/// MPI_Intercomm_merge; collective over both groups. The group that says `high` comes last; if both say the same,
/// the low one comes first.
pub fn merge(world: &World, comm: &Comm, high: bool) -> Result<Arc<Comm>> {
    let Some(joint) = comm.joint() else {
        fail!(abi::MPI_ERR_COMM, "{} is not an intercommunicator", comm.describe())
    };
    let Some(merged) = create::split(world, &joint.comm, Some(0), high.into())? else {
        fail!(abi::MPI_ERR_INTERN, "nobody is in the union of two groups")
    };
    if let Some(handler) = comm.user().error_handler() {
        merged.user().set_error_handler(handler);
    }
    Ok(merged)
}
