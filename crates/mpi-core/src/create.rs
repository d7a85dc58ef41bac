// SPDX-License-Identifier: Apache-2.0
//! Construction of communicators (MPI 5.0 section 7.4.2): who belongs to the new one, and who names its contexts.

use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_engine::Request;

use crate::comm::{Blueprint, Comm, Near, Whereabouts, are_near, joined, tune};
use crate::context::{self, Numbers};
use crate::error::{Error, Result};
use crate::fail;
use crate::group::Group;
use crate::info::Info;
use crate::internal::{self, Side, SplitWish};
use crate::links;
use crate::shared_slab::{self as slabs, For};
use crate::slabs::Use;
use crate::topology::Topology;
use crate::words;
use crate::world::World;

mod split_type;
pub mod topologies;

pub use split_type::{RESOURCES, Resource, SplitType, split_type};

/// Longest tag of MPI_Comm_create_from_group, bytes.
const MAX_STRING_TAG: usize = abi::MPI_MAX_STRINGTAG_LEN as usize;

/// What one of the members takes for all of them, and tells them.
pub(crate) struct Taken {
    numbers: Numbers,
    slab: Slab,
}

/// Where the members meet, if they share memory.
enum Slab {
    /// They agree on that when there is a communicator.
    Open,
    /// They have heard it with the numbers.
    Told(Option<Use>),
}

impl From<Numbers> for Taken {
    fn from(numbers: Numbers) -> Self {
        Self {
            numbers,
            slab: Slab::Open,
        }
    }
}

impl Taken {
    /// Bytes of the words that travel.
    const BYTES: usize = size_of::<Numbers>() + size_of::<u32>();

    /// Numbers, and a slab if the members of the new communicator share memory.
    fn take(world: &World, comm: &Comm, new: Option<&Blueprint>) -> Self {
        let inter = new.is_some_and(Blueprint::is_inter);
        let members = new.filter(|new| new.shares_memory(world)).map(|new| new.group.size());
        let taken = joined::contexts(world, comm).take(inter);
        let numbers = match new.and_then(|new| new.in_force.as_ref()) {
            Some(begins_with) => links::marked_beside(world, comm, begins_with.links(), taken),
            None => links::marked(world, comm, taken),
        };
        Self {
            numbers,
            slab: Slab::Told(members.and_then(|members| slabs::take(world, members))),
        }
    }

    /// What another member has taken.
    fn told(world: &World, words: &[u8], new: Option<&Blueprint>) -> Self {
        let (numbers, slab) = words.split_at(size_of::<Numbers>());
        let meets = new.is_some_and(|new| new.shares_memory(world));
        let number = || slab.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let slab = meets.then(number).flatten();
        Self {
            numbers: internal::decode(numbers),
            slab: Slab::Told(slab.and_then(|number| slabs::told(world, number))),
        }
    }

    fn words(&self) -> [u8; Self::BYTES] {
        let slab = match &self.slab {
            Slab::Open => None,
            Slab::Told(slab) => slab.as_ref(),
        };
        let mut words = [0; Self::BYTES];
        let (numbers, number) = words.split_at_mut(size_of::<Numbers>());
        numbers.copy_from_slice(&internal::encode(self.numbers));
        number.copy_from_slice(&slabs::number(slab).to_le_bytes());
        words
    }
}

impl Blueprint {
    /// Whether all members share memory.
    fn shares_memory(&self, world: &World) -> bool {
        self.remote.is_none() && (self.near || are_near(world, &self.group))
    }

    /// The communicator with what one process has taken for all, and with what that knows of the links; collective
    /// over the new one.
    pub(crate) fn build_and_hear(self, world: &World, taken: impl Into<Taken>) -> Result<Arc<Comm>> {
        self.build_over(world, taken.into(), None)
    }

    /// The same where `same` has the same members in the same order: it hears the news, too.
    fn build_over(self, world: &World, taken: Taken, same: Option<&Comm>) -> Result<Arc<Comm>> {
        let (Taken { numbers, slab }, hidden) = (taken, self.hidden);
        let part_of = self.part_of.clone();
        let (numbers, news) = context::without_news(numbers);
        let mut comm = self.build(context::granted(numbers)?);
        if let Some(comm) = Arc::get_mut(&mut comm) {
            go_underneath(world, comm)?;
        }
        tune(world, &comm);
        if news {
            links::hear(world, &comm)?;
            if let Some(same) = same {
                same.in_force.heard_by(&comm.in_force);
            }
        }
        let own = match slab {
            Slab::Told(own) => own,
            Slab::Open if comm.shares_memory(world) => slabs::agree(world, &comm, For::Communicator, part_of.as_ref())?,
            Slab::Open => None,
        };
        if let (Some(own), Some(comm)) = (own, Arc::get_mut(&mut comm)) {
            comm.meet_by(world, own);
        }
        if !hidden {
            world.revocable.begins(world.engine(), &comm);
        }
        Ok(comm)
    }
}

/// Memory for the members of a new communicator, if they share any and all of them live; collective. Without it their
/// operations go in messages: should some of them have it and others not because a member fails meanwhile, the lost
/// member is what ends their operations.
pub(crate) fn meet_if_near(world: &World, comm: &mut Comm) {
    if !comm.shares_memory(world) {
        return;
    }
    if let Ok(Some(own)) = slabs::agree(world, comm, For::Communicator, None) {
        comm.meet_by(world, own);
    }
}

/// Makes it a communicator of the vendor MPI underneath, if all members live in one job of that; collective.
fn go_underneath(world: &World, comm: &mut Comm) -> Result<()> {
    if comm.remote().is_some() || comm.size() < 2 || !world.is_one_vendor_job(comm.group().members()) {
        return Ok(());
    }
    // Afterwards nobody waits for anything that this process would have to do, but all are on their way to the next
    // line.
    internal::gather_equal(world, comm, &[0])?;
    let made = world
        .engine()
        .lock()
        .underneath()
        .create(comm.group().members(), comm.context().number() as i32 & i32::MAX);
    if let Some(native) = made.map_err(|error| Error::from(&error))? {
        comm.set_native(native);
    }
    Ok(())
}

/// Everything of a duplicate but its contexts.
fn copy(world: &World, comm: &Comm, hints: Info) -> Result<Blueprint> {
    let Some(copy) = Blueprint::from(world, comm, comm.group().clone()) else {
        fail!(
            abi::MPI_ERR_INTERN,
            "the process is not a member of its own communicator"
        )
    };
    Ok(Blueprint {
        remote: comm.joint().and_then(|j| Some((comm.remote()?.clone(), j.is_low()))),
        topology: comm.topology().cloned(),
        hints,
        members: Some(comm.channel().members.clone()),
        near: comm.channel().slab.is_some(),
        in_force: Some(comm.in_force.of_copy()),
        ..copy
    })
}

/// What `root`, a rank of [`Comm::everybody`] and the first member of the new communicator, takes for all, for
/// [`Blueprint::build_and_hear`]; collective. `new`: the new communicator, at its members.
fn agree(world: &World, comm: &Comm, root: u32, new: Option<&Blueprint>) -> Result<Taken> {
    let everybody = comm.everybody();
    if everybody.rank() == root {
        let mine = Taken::take(world, comm, new);
        internal::broadcast(world, everybody, root, &mine.words())?;
        return Ok(mine);
    }
    let words = internal::broadcast(world, everybody, root, &[0; Taken::BYTES])?;
    Ok(Taken::told(world, &words, new))
}

/// As [`agree`]; in the same exchange the others hear what `root` has said, `mine` there.
fn agree_and_compare(
    world: &World,
    comm: &Comm,
    root: u32,
    new: Option<&Blueprint>,
    mine: u64,
) -> Result<(Taken, u64)> {
    let everybody = comm.everybody();
    let own = (everybody.rank() == root).then(|| Taken::take(world, comm, new));
    let mut words = own.as_ref().map_or([0; Taken::BYTES], Taken::words).to_vec();
    words.extend(mine.to_le_bytes());
    let words = internal::broadcast(world, everybody, root, &words)?;
    let (taken, said) = words.split_at(Taken::BYTES);
    let said = said.first_chunk().map_or(0, |said| u64::from_le_bytes(*said));
    Ok((own.unwrap_or_else(|| Taken::told(world, taken, new)), said))
}

/// MPI_Comm_dup and MPI_Comm_dup_with_info without attributes; collective.
pub fn duplicate(world: &World, comm: &Comm, hints: Info) -> Result<Arc<Comm>> {
    let copy = copy(world, comm, hints)?;
    let taken = agree(world, comm, 0, Some(&copy))?;
    copy.build_over(world, taken, Some(comm))
}

/// A duplicate, and what its members have said when it was made.
pub struct Heard {
    /// The duplicate.
    pub comm: Arc<Comm>,
    /// What each member has said, by rank.
    pub said: Vec<Vec<u8>>,
}

/// As [`duplicate`] without hints, of an intracommunicator; in the same exchange everybody hears what all say, `mine`
/// here and as long everywhere. The program must not see the duplicate. Collective.
pub fn duplicate_and_say(world: &World, comm: &Comm, mine: &[u8]) -> Result<Heard> {
    let copy = Blueprint {
        hidden: true,
        ..copy(world, comm, Info::default())?
    };
    let own = (comm.rank() == 0).then(|| Taken::take(world, comm, Some(&copy)));
    let mut words = own.as_ref().map_or([0; Taken::BYTES], Taken::words).to_vec();
    words.extend(mine);
    let all = internal::gather_equal(world, comm, &words)?;
    let taken = own.unwrap_or_else(|| Taken::told(world, &all[..Taken::BYTES], Some(&copy)));
    let comm = copy.build_over(world, taken, Some(comm))?;
    let said = all
        .chunks_exact(words.len())
        .map(|words| words[Taken::BYTES..].to_vec());
    Ok(Heard {
        comm,
        said: said.collect(),
    })
}

/// MPI_Comm_idup: `then` gets the duplicate when the request is complete. It must not use the engine.
pub fn duplicate_later(
    world: &World,
    comm: &Comm,
    hints: Info,
    then: impl FnOnce(Arc<Comm>) + Send + 'static,
) -> Result<Request> {
    let copy = copy(world, comm, hints)?;
    world.engine().lock().underneath().mix();
    let everybody = comm.everybody();
    let mine = if everybody.rank() == 0 {
        joined::contexts(world, comm).take(copy.is_inter())
    } else {
        Numbers::default()
    };
    let revocable = world.revocable.clone();
    internal::broadcast_later(world, everybody, &internal::encode(mine), move |numbers| {
        let comm = copy.build(internal::decode(numbers));
        revocable.register(&comm);
        then(comm);
    })
}

/// MPI_Comm_create; collective. `None` for processes outside the group, and if one side of an intercommunicator is
/// empty.
pub fn create(world: &World, comm: &Comm, group: &Group) -> Result<Option<Arc<Comm>>> {
    check_subgroup(comm, group)?;
    // Disjoint groups at once are disjoint colours: the rank of the first member. Both sides of an
    // intercommunicator: one.
    let first = group
        .members()
        .first()
        .and_then(|&m| comm.group().rank_of(m))
        .unwrap_or(0);
    let color = if comm.remote().is_some() { 0 } else { first as i32 };
    let rank = group.rank_of(world.me());
    let made = split(world, comm, rank.map(|_| color), rank.unwrap_or(0) as i32)?;
    if made.as_ref().is_some_and(|made| made.group() != group) {
        fail!(
            abi::MPI_ERR_NOT_SAME,
            "the group must be the same on all its processes, but some of them gave another one than rank {}",
            comm.rank()
        );
    }
    Ok(made)
}

fn check_subgroup(comm: &Comm, group: &Group) -> Result<()> {
    if comm.group().intersection(group).size() != group.size() {
        fail!(
            abi::MPI_ERR_GROUP,
            "the group has members that are not in {}",
            comm.describe()
        );
    }
    Ok(())
}

/// Those near this process; collective until all have them.
pub fn near(world: &World, comm: &Comm) -> Result<Arc<Near>> {
    if let Some(known) = comm.near.get() {
        return Ok(known.clone());
    }
    let members: Box<[bool]> = {
        let mut engine = world.engine().lock();
        let all = comm.group().members().iter().enumerate();
        let me = comm.rank() as usize;
        all.map(|(rank, &peer)| rank == me || engine.slabs().are_shared_with([peer]))
            .collect()
    };
    let first = members.iter().position(|&near| near).unwrap_or(0);
    let node = split(world, comm, Some(first as i32), 0)?;
    let expected = members.iter().filter(|&&near| near).count();
    let Some(node) = node.filter(|node| node.size() as usize == expected) else {
        let why = format!(
            "the processes of {} do not agree on who shares memory; this is a bug in Isthmus",
            comm.describe()
        );
        return Err(Error::new(abi::MPI_ERR_INTERN, why));
    };
    let node = (node.size() > 1).then_some(node);
    let found = Near::of(members, node);
    Ok(comm.near.get_or_init(|| Arc::new(found)).clone())
}

/// MPI_Comm_split; collective. Processes without a colour get `None`.
pub fn split(world: &World, comm: &Comm, color: Option<i32>, key: i32) -> Result<Option<Arc<Comm>>> {
    split_as(world, comm, color, key, Info::default(), None)
}

/// As [`split`]; the new communicator has these hints and this topology.
pub(crate) fn split_as(
    world: &World,
    comm: &Comm,
    color: Option<i32>,
    key: i32,
    hints: Info,
    topology: Option<Topology>,
) -> Result<Option<Arc<Comm>>> {
    let everybody = comm.everybody();
    let numbers = match color {
        Some(_) => joined::contexts(world, comm).take(comm.remote().is_some()),
        None => Numbers::default(),
    };
    let marked = links::marked(world, comm, numbers);
    let mine = SplitWish {
        color,
        key,
        numbers: marked,
    };
    let wishes = internal::gather_wishes(world, everybody, mine)?;
    let chosen = color.and_then(|color| chosen(comm, color, &wishes));
    // Somebody else's numbers count: nobody uses mine.
    if chosen.as_ref().is_none_or(|c| c.numbers != marked) {
        joined::contexts(world, comm).give_back(numbers);
    }
    let Some(chosen) = chosen else { return Ok(None) };
    let Some(blueprint) = Blueprint::from(world, comm, chosen.group) else {
        fail!(abi::MPI_ERR_INTERN, "a process is not in the group of its own colour")
    };
    let blueprint = Blueprint {
        remote: chosen.remote,
        hints,
        topology,
        part_of: Some((everybody.group().clone(), comm.channel().context)),
        ..blueprint
    };
    blueprint.build_and_hear(world, chosen.numbers).map(Some)
}

/// Who has chosen a colour. `None`: nobody in one of the groups of an intercommunicator.
fn chosen(comm: &Comm, color: i32, wishes: &[SplitWish]) -> Option<Chosen> {
    let Some(joint) = comm.joint() else {
        let ranks = sorted(color, wishes, 0..comm.size());
        let numbers = wishes[*ranks.first()? as usize].numbers;
        let group = comm.group().pick(&ranks);
        return Some(Chosen {
            group,
            remote: None,
            numbers,
        });
    };
    let local = sorted(color, wishes, joint.local.clone());
    let remote = sorted(color, wishes, joint.remote.clone());
    let low = if joint.is_low() { &local } else { &remote };
    if local.is_empty() || remote.is_empty() {
        return None;
    }
    let all = joint.comm.group();
    Some(Chosen {
        numbers: wishes[*low.first()? as usize].numbers,
        group: all.pick(&local),
        remote: Some((all.pick(&remote), joint.is_low())),
    })
}

/// Arguments of a call that makes a communicator which must be the same on all processes.
pub(crate) struct Alike {
    /// For people.
    what: &'static str,
    /// Others have another one.
    digest: u32,
}

impl Alike {
    pub(crate) fn new(what: &'static str, words: impl Iterator<Item = u64>) -> Self {
        // An odd number near 2^64 divided by the golden ratio: each bit of a word reaches the upper half.
        let mix = |digest: u64, word: u64| (digest.rotate_left(32) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let digest = (words.fold(1, mix) >> 32) as u32;
        Self { what, digest }
    }

    /// As it travels.
    fn words(&self) -> [u8; 4] {
        self.digest.to_le_bytes()
    }
}

/// A communicator of these ranks of this one, in this order, with a topology; collective. `None` for the others.
pub(crate) fn with_topology(
    world: &World,
    comm: &Comm,
    ranks: &[u32],
    topology: Topology,
    hints: Info,
    said: &Alike,
) -> Result<Option<Arc<Comm>>> {
    let Some(&root) = ranks.first() else { return Ok(None) };
    let blueprint = Blueprint::from(world, comm, comm.group().pick(ranks));
    let topology = Some(topology);
    let blueprint = blueprint.map(|b| Blueprint { topology, hints, ..b });
    let mine = u64::from(said.digest) << u32::BITS | ranks.len() as u64;
    let (taken, theirs) = agree_and_compare(world, comm, root, blueprint.as_ref(), mine)?;
    // Who differs takes part all the same, for the others wait for it, if their communicator has as many members.
    let build = |b: Blueprint| b.build_and_hear(world, taken);
    let made = blueprint
        .filter(|_| theirs as u32 == mine as u32)
        .map(build)
        .transpose()?;
    if theirs != mine {
        fail!(
            abi::MPI_ERR_NOT_SAME,
            "the {} must be the same on all processes, but rank {root} gave others than rank {}",
            said.what,
            comm.rank()
        );
    }
    Ok(made)
}

/// MPI_Comm_create_group: only the members of the group call. `None` for a process outside.
pub fn create_group(world: &World, comm: &Comm, group: &Group, tag: i32) -> Result<Option<Arc<Comm>>> {
    check_subgroup(comm, group)?;
    let Some(blueprint) = Blueprint::from(world, comm, group.clone()) else {
        return Ok(None);
    };
    let ranks = comm.group().places(group);
    let take = || links::marked(world, comm, joined::contexts(world, comm).take(false));
    let side = Side::of(comm, tag).of_all(group);
    let said = Alike::new("group", ranks.iter().map(|&rank| rank.into()));
    let (numbers, theirs) = first_takes(world, &side, &ranks, blueprint.rank, take, &said.words())?;
    if theirs != said.words() {
        fail!(
            abi::MPI_ERR_NOT_SAME,
            "the {} must be the same on all its processes, but rank {} gave another one than rank {}",
            said.what,
            ranks.first().copied().unwrap_or_default(),
            comm.rank()
        );
    }
    blueprint.build_and_hear(world, numbers).map(Some)
}

/// MPI_Comm_create_from_group: only the members of the group call, with the same tag.
pub fn from_group(world: &World, group: &Group, tag: &str) -> Result<Arc<Comm>> {
    check_string_tag(tag)?;
    let all = Whereabouts::of_group(world, group)?;
    let Some(blueprint) = all.blueprint(group.clone()) else {
        fail!(
            abi::MPI_ERR_GROUP,
            "this process is not a member of the group of {} processes",
            group.size()
        )
    };
    world.engine().lock().underneath().mix();
    let ranks = all.ranks_of(group);
    let side = Side::among(&all, string_tag(tag, &ranks)).of_all(group);
    let take = || all.contexts().take(false);
    let (numbers, theirs) = first_takes(world, &side, &ranks, blueprint.rank, take, tag.as_bytes())?;
    if theirs != tag.as_bytes() {
        fail!(
            abi::MPI_ERR_ARG,
            "another member constructs a communicator of the same group with the tag '{}', this one with '{tag}'",
            String::from_utf8_lossy(&theirs)
        );
    }
    let comm = blueprint.build(context::granted(numbers)?);
    world.revocable.begins(world.engine(), &comm);
    Ok(comm)
}

/// The first of some processes takes numbers for all, and tells them what it has, which should be `what`.
fn first_takes(
    world: &World,
    side: &Side,
    ranks: &[u32],
    me: u32,
    take: impl FnOnce() -> Numbers,
    what: &[u8],
) -> Result<(Numbers, Vec<u8>)> {
    let numbers = if me == 0 { take() } else { Numbers::default() };
    let mut content = internal::encode(numbers).to_vec();
    content.extend_from_slice(what);
    let content = side.spread(world, ranks, me as usize, &content)?;
    let (numbers, theirs) = content.split_at(size_of::<Numbers>());
    Ok((internal::decode(numbers), theirs.to_vec()))
}

pub(crate) fn check_string_tag(tag: &str) -> Result<()> {
    let length = words::length(tag);
    if length > MAX_STRING_TAG {
        fail!(
            abi::MPI_ERR_ARG,
            argument("stringtag"),
            "has {length} bytes, allowed are {MAX_STRING_TAG}"
        );
    }
    Ok(())
}

/// A message tag that differs between calls with different tags or groups, almost certainly.
pub(crate) fn string_tag(tag: &str, members: &[u32]) -> i32 {
    let members = members.iter().flat_map(|m| m.to_le_bytes());
    let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = tag.bytes().chain(members).fold(0xcbf2_9ce4_8422_2325, mix);
    ((hash ^ (hash >> 32)) & 0x7fff_ffff) as i32
}

/// The processes of one new communicator, and its numbers.
struct Chosen {
    group: Group,
    remote: Option<(Group, bool)>,
    numbers: Numbers,
}

/// Ranks out of a range with this colour, by key, then by rank.
fn sorted(color: i32, wishes: &[SplitWish], ranks: std::ops::Range<u32>) -> Vec<u32> {
    let mut chosen: Vec<u32> = ranks.filter(|&r| wishes[r as usize].color == Some(color)).collect();
    chosen.sort_by_key(|&r| wishes[r as usize].key);
    chosen
}
