// SPDX-License-Identifier: Apache-2.0
//! Two groups of processes, of different jobs perhaps, become an intercommunicator.
//!
//! ```text
//!  members           leader                          leader           members
//!    place  --gather-->  Offer          <----->        Offer  <--gather--  place
//!    <--broadcast--      Terms           ----->                          certificates from one of the two
//!    start  --gather-->  Verdict        <----->        Verdict            all can talk to all, or nobody begins
//!    <--broadcast--
//! ```
//! What leaders say to each other goes by whatever they have: a connection that a port has named, the launcher of
//! both, or a communicator of both. Three times there and back, whatever the number of processes. Every member learns
//! of a failure of any other.
//!
//! Members that know each other already, of one job or met before, keep the connections that they have.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use isthmus_abi::constants as abi;
use isthmus_engine::{Members, Newcomers, Peer};
use isthmus_wire::joining::{MAX_ADDRESSES, MAX_MEETINGS, Member, Name, Offer, Terms, Verdict};

use crate::blocks::{self, Block};
use crate::comm::{Blueprint, Comm};
use crate::error::{Error, Result};
use crate::fail;
use crate::group::Group;
use crate::internal;
use crate::meeting::joint::Joint;
use crate::meeting::reach::id_of;
use crate::meeting::{self, Introduced, Meeting};
use crate::world::World;

mod leave;

pub use crate::meeting::reach::{
    Contact, Crossing, Door, Exchange, Held, Hindrance, Outcome, Passage, Prepared, Reach, ReachOf, Reacher, Sealed,
    Start, Started, Ways,
};
pub use leave::{disconnect, is_alone, part, stay_connected, wait_for_all};

/// How often another block is tried when somebody else was quicker.
const TRIES: u32 = 16;

/// What makes connections to processes of other jobs; set once.
pub fn set_reacher(world: &World, reacher: Box<dyn Reacher>) {
    _ = world.abroad().reacher.set(reacher);
}

/// What makes connections to processes of other jobs.
pub fn reacher(world: &World) -> Option<&dyn Reacher> {
    world.abroad().reacher.get().map(|reacher| &**reacher)
}

/// This process, as those of other jobs name it.
pub fn name(world: &World) -> Name {
    Name {
        world: world.id(),
        rank: world.rank(),
    }
}

/// An intercommunicator of two groups; collective over the intracommunicator `comm`. `to_other`: at its rank `leader`,
/// how that process talks to the leader of the other group.
pub fn join<'e>(
    world: &World,
    comm: &Comm,
    leader: u32,
    to_other: impl FnOnce() -> Result<Box<dyn Exchange + 'e>>,
) -> Result<Arc<Comm>> {
    leave::part_from_lost(world);
    let mut pipe = None;
    let mut failed = None;
    if comm.rank() == leader {
        match to_other() {
            Ok(exchange) => pipe = Some(exchange),
            Err(error) => failed = Some(error),
        }
    }
    let mut group = Side {
        world,
        comm,
        leader,
        pipe,
        failed,
        shares: true,
    };
    for _ in 0..TRIES {
        let told = world.abroad().meetings.all().clone();
        let joined = group.attempt(&told);
        let others_left = told.iter().any(|meeting| meeting.bonds.is_empty());
        drop(told);
        if others_left {
            // Other threads have left it meanwhile.
            part(world);
        }
        if let Some(joined) = joined? {
            return Ok(joined);
        }
    }
    fail!(
        abi::MPI_ERR_OTHER,
        "the two groups have found no numbers for the new communicator that none of their processes uses: too many \
         communicators over several jobs exist; disconnect some"
    )
}

fn decoded(offer: &[u8]) -> Result<Offer> {
    match Offer::decode(offer) {
        Ok(offer) if offer.refusal.is_empty() => Ok(offer),
        Ok(offer) => fail!(abi::MPI_ERR_OTHER, "{}", offer.refusal),
        Err(error) => fail!(
            abi::MPI_ERR_OTHER,
            "what the other group said of itself is invalid: {error}; use one version of Isthmus in both jobs"
        ),
    }
}

/// The root that a member has given, and its offer.
fn with_root(said: &[u8]) -> Option<(u32, &[u8])> {
    let (root, offer) = said.split_first_chunk()?;
    Some((u32::from_le_bytes(*root), offer))
}

/// One of the groups, at one of its members.
struct Side<'a, 'e> {
    world: &'a World,
    comm: &'a Comm,
    leader: u32,
    /// At the leader, while the other one can be talked to.
    pipe: Option<Box<dyn Exchange + 'e>>,
    /// At the leader: what it tells its program, where the others are told that it could not go on.
    failed: Option<Error>,
    /// Processes of one node share memory, unless it turns out that one cannot.
    shares: bool,
}

impl Side<'_, '_> {
    /// `None`: somebody has begun to use the numbers meanwhile, or cannot share memory, and all try again. `told`: the
    /// meetings that this process tells of. They stay until it is known who is met by them, whatever other threads
    /// leave: both ends of a pair have to find the same.
    fn attempt(&mut self, told: &[Arc<Meeting>]) -> Result<Option<Arc<Comm>>> {
        let world = self.world;
        let prepared = self.prepare();
        // What others look at stays there until all have said what they have found. They may use what this process has
        // brought even if it has nothing to start.
        let kept = prepared.as_ref().ok().map(|prepared| prepared.keep());
        let ours = self.gather(prepared.as_ref().map(|prepared| prepared.contact()), told)?;
        let theirs = self.exchange(&ours)?;
        let (ours, theirs) = (decoded(&ours)?, decoded(&theirs)?);
        let joint = Joint::of(&ours, &theirs, name(world))?;
        let terms = self.terms(&joint, &ours, &theirs)?;
        let begun = prepared
            .map_err(Verdict::Refused)
            .and_then(|prepared| begin(world, &joint, &terms, told, prepared));
        let (mine, meeting) = match begun {
            Ok(meeting) => (Verdict::Fine, Some(meeting)),
            Err(verdict) => (verdict, None),
        };
        let verdict = self.verdict(mine);
        drop(kept);
        if let (Ok(Verdict::Fine), Some(meeting)) = (&verdict, &meeting) {
            show(world, &joint, meeting);
            return build(world, self.comm, &joint, meeting.clone()).map(Some);
        }
        if let Some(meeting) = meeting {
            leave::undo(world, &meeting);
        }
        match verdict? {
            Verdict::Used => Ok(None),
            Verdict::Apart(why) => {
                self.shares = false;
                if let Some(reacher) = reacher(world) {
                    reacher.apart(&why);
                }
                Ok(None)
            }
            Verdict::Refused(why) => Err(Error::new(abi::MPI_ERR_OTHER, why)),
            Verdict::Fine => fail!(abi::MPI_ERR_INTERN, "a meeting that nobody has begun"),
        }
    }

    fn prepare(&self) -> Outcome<Box<dyn Prepared>> {
        match self.world.abroad().reacher.get() {
            Some(reacher) => reacher.prepare(self.shares),
            None => Err("this process cannot be reached by others".to_owned()),
        }
    }

    /// Everybody's place, equal at all members.
    fn gather(&self, contact: std::result::Result<Contact, &String>, told: &[Arc<Meeting>]) -> Result<Vec<u8>> {
        let mine = match (contact, &self.failed) {
            (_, Some(error)) => refusal(&format!(
                "rank {}, the root, could not meet the other group: {error}",
                self.leader
            )),
            (Err(why), None) => refusal(&format!("rank {} of the group: {why}", self.comm.rank())),
            (Ok(contact), None) => Offer {
                refusal: String::new(),
                leader: 0,
                used: self.world.abroad().blocks.used(),
                members: vec![member(self.world, contact, told)],
            },
        };
        // Members with several roots would wait for each other in the next step.
        let said = [&self.leader.to_le_bytes()[..], &mine.encode()].concat();
        let all = internal::gather_all(self.world, self.comm, &said)?;
        let all: Vec<(u32, &[u8])> = all.iter().filter_map(|said| with_root(said)).collect();
        if let Some(other) = all.iter().position(|(root, _)| *root != self.leader) {
            fail!(
                abi::MPI_ERR_ROOT,
                argument("root"),
                "must be the same on all processes, but rank {other} gave {} and rank {} gave {}",
                all[other].0,
                self.comm.rank(),
                self.leader
            );
        }
        let mut whole = Offer {
            refusal: String::new(),
            leader: self.leader,
            used: [0; isthmus_wire::joining::BLOCKS / 8],
            members: Vec::new(),
        };
        for (_, one) in all {
            let Ok(one) = Offer::decode(one) else {
                fail!(abi::MPI_ERR_INTERN, "a member of the own group sent an invalid place");
            };
            if whole.refusal.is_empty() {
                whole.refusal = one.refusal;
            }
            whole.used.iter_mut().zip(one.used).for_each(|(all, one)| *all |= one);
            whole.members.extend(one.members);
        }
        Ok(whole.encode())
    }

    /// Gives `mine` to the other group, and gets what that says: equal at all members, who call it together.
    fn exchange(&mut self, mine: &[u8]) -> Result<Vec<u8>> {
        let told = self.pipe.as_mut().map(|pipe| pipe.exchange(mine));
        self.spread(told)
    }

    /// What the other leader has told goes to all members, who call it together. `told`: nothing where there is no way
    /// to it.
    fn spread(&mut self, told: Option<Result<Vec<u8>>>) -> Result<Vec<u8>> {
        if let Some(Err(error)) = &told {
            self.failed = Some(error.clone());
            self.pipe = None;
        }
        let told = match (told, &self.failed) {
            (Some(Ok(theirs)), _) => [vec![0], theirs].concat(),
            (_, Some(error)) => [&[1], &error.class.to_le_bytes()[..], error.message.as_bytes()].concat(),
            (_, None) => Vec::new(),
        };
        let told = internal::broadcast_all(self.world, self.comm, self.leader, &told)?;
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        match told.split_first() {
            Some((0, theirs)) => Ok(theirs.to_vec()),
            Some((_, why)) => {
                let said = why.split_first_chunk();
                let (class, why) = said.map_or((abi::MPI_ERR_OTHER, why), |(class, why)| {
                    (i32::from_le_bytes(*class), why)
                });
                fail!(
                    class,
                    "rank {}, the root, could not talk to the other group: {}",
                    self.leader,
                    String::from_utf8_lossy(why)
                )
            }
            None => fail!(abi::MPI_ERR_INTERN, "the root has said nothing"),
        }
    }

    /// How the groups meet: the low one says so.
    fn terms(&mut self, joint: &Joint, ours: &Offer, theirs: &Offer) -> Result<Terms> {
        let at_leader = self.comm.rank() == self.leader;
        let mine = match at_leader && joint.is_low {
            true => self.make_terms(joint, ours, theirs).encode(),
            false => Vec::new(),
        };
        let told = self.exchange(&mine)?;
        let told = match joint.is_low {
            // What was made here the own members must hear, too.
            true => internal::broadcast_all(self.world, self.comm, self.leader, &mine)?,
            false => told,
        };
        match Terms::decode(&told) {
            Ok(terms) if terms.refusal.is_empty() => Ok(terms),
            Ok(terms) => fail!(abi::MPI_ERR_OTHER, "{}", terms.refusal),
            Err(error) => fail!(abi::MPI_ERR_OTHER, "the terms of the meeting are invalid: {error}"),
        }
    }

    fn make_terms(&self, joint: &Joint, ours: &Offer, theirs: &Offer) -> Terms {
        let refused = |why: String| Terms {
            refusal: why,
            name: String::new(),
            secret: [0; 32],
            block: 0,
            authority: Vec::new(),
            certificates: Vec::new(),
        };
        let Some(reacher) = self.world.abroad().reacher.get() else {
            return refused("the root cannot be reached by others".to_owned());
        };
        let requests: Vec<&[u8]> = joint.members.iter().map(|member| &*member.request).collect();
        let sealed = match reacher.seal(&requests) {
            Ok(sealed) => sealed,
            Err(why) => return refused(why),
        };
        let used = std::array::from_fn(|at| ours.used[at] | theirs.used[at]);
        let Some(block) = blocks::choose(&used, &sealed.secret) else {
            return refused(
                "processes of the two groups use all numbers for communicators over several jobs; disconnect some"
                    .to_owned(),
            );
        };
        Terms {
            refusal: String::new(),
            name: sealed.name,
            secret: sealed.secret,
            block,
            authority: sealed.authority,
            certificates: sealed.certificates,
        }
    }

    /// The worst of what all members of both groups say.
    fn verdict(&mut self, mine: Verdict) -> Result<Verdict> {
        let all = internal::gather_all(self.world, self.comm, &mine.encode())?;
        let read = |bytes: &[u8]| {
            Verdict::decode(bytes).unwrap_or_else(|error| Verdict::Refused(format!("an invalid verdict: {error}")))
        };
        let ours = all.iter().map(|bytes| read(bytes)).fold(Verdict::Fine, Verdict::and);
        let told = self.pipe.as_mut().map(|pipe| pipe.conclude(&ours.encode()));
        let theirs = self.spread(told)?;
        Ok(ours.and(read(&theirs)))
    }
}

/// People see with whom this process is connected from now on.
fn show(world: &World, joint: &Joint, meeting: &Meeting) {
    let others = joint.others(world.id());
    let shown = reacher(world).filter(|_| !others.is_empty());
    if let Some(shown) = shown.and_then(|reacher| reacher.show(meeting.id(), others)) {
        _ = meeting.shown.set(shown);
    }
}

fn refusal(why: &str) -> Offer {
    Offer {
        refusal: why.to_owned(),
        leader: 0,
        used: [0; isthmus_wire::joining::BLOCKS / 8],
        members: Vec::new(),
    }
}

/// Another world has lost somebody.
pub fn note_death(world: &World, other: [u8; 16], reason: &str) {
    world.abroad().deaths.note(other, reason);
}

/// Why somebody of another world is gone, if somebody is and its loss is one of the latest.
pub fn death_in(world: &World, other: [u8; 16]) -> Option<String> {
    world.abroad().deaths.of(other)
}

/// Processes of another world, by their ranks there, that this one is or was connected with.
pub fn known(world: &World, other: [u8; 16], ranks: &Range<u32>) -> Vec<Peer> {
    world.abroad().meetings.of_world(other, ranks)
}

/// All that this process is connected with: those of its world, and of others those that it has a communicator with.
pub fn connected(world: &World) -> Members {
    let mut all: Vec<Peer> = (0..world.size()).map(|rank| world.peer(rank)).collect();
    for meeting in world.abroad().meetings.all().iter() {
        let members = meeting.group().members();
        let bound = meeting.bonds.widest().into_iter().flatten();
        all.extend(bound.filter_map(|place| members.get(place as usize)));
    }
    all.sort_unstable();
    all.dedup();
    Members::of(&Arc::from(all))
}

/// A process, as those of other jobs name it; `None`: this one is connected with it no more.
pub fn name_of(world: &World, peer: Peer) -> Option<Name> {
    match world.rank_of(peer) {
        Some(rank) => Some(Name {
            world: world.id(),
            rank,
        }),
        None => world.abroad().meetings.name_of(peer),
    }
}

/// The process with this rank in a world of which this is so: the own one, or that of a process that this one is
/// connected with.
pub fn named(world: &World, rank: u32, is_it: impl Fn(&[u8; 16]) -> bool) -> Option<Peer> {
    if is_it(&world.id()) {
        return (rank < world.size()).then(|| world.peer(rank));
    }
    world.abroad().meetings.named(rank, is_it)
}

/// Gets to know the members that are new here.
fn begin(
    world: &World,
    joint: &Joint,
    terms: &Terms,
    told: &[Arc<Meeting>],
    prepared: Box<dyn Prepared>,
) -> std::result::Result<Arc<Meeting>, Verdict> {
    let refused = |why: String| Verdict::Refused(format!("{} of the two groups: {why}", joint.describe()));
    let Some(block) = Block::claim(&world.abroad().blocks, terms.block) else {
        return Err(Verdict::Used);
    };
    let Some(id) = id_of(&terms.name) else {
        return Err(refused("the meeting has an invalid name".to_owned()));
    };
    let known = meeting::known(told, world.id(), world.size(), joint);
    let job = world
        .engine()
        .lock()
        .core
        .processes()
        .job(&format!("met as {}", &terms.name[..16]));
    let mut started = Started::default();
    let failed = |why: Verdict, ways: &Ways| {
        leave::retire(world, ways, &Introduced { job, peers: Vec::new() });
        why
    };
    if known.peers.iter().any(Option::is_none) {
        started = start(world, joint, terms, job, &known.peers, prepared).map_err(|hindrance| {
            let why = match hindrance {
                Hindrance::Memory(why) => Verdict::Apart(why),
                Hindrance::Other(why) => refused(why),
            };
            failed(why, &Ways::default())
        })?;
    }
    let peers = take_in(world, joint, job, &known.peers, &started.ways)
        .map_err(|error| failed(refused(error.to_string()), &started.ways))?;
    let new = known.peers.iter().zip(&peers).filter(|(known, _)| known.is_none());
    let introduced = Introduced {
        job,
        peers: new.map(|(_, &peer)| peer).collect(),
    };
    let meeting = Meeting::new(id, joint, block, peers, introduced, started, known.through);
    Ok(world.abroad().meetings.add(meeting))
}

/// Starts what reaches those members that are new here: those of this job. `known`: by place, who is not.
fn start(
    world: &World,
    joint: &Joint,
    terms: &Terms,
    job: isthmus_engine::Job,
    known: &[Option<Peer>],
    prepared: Box<dyn Prepared>,
) -> std::result::Result<Started, Hindrance> {
    let Some(certificate) = terms.certificates.get(joint.me as usize) else {
        return Err(Hindrance::Other("there is no certificate for it".to_owned()));
    };
    let is_new: Vec<bool> = known.iter().map(Option::is_none).collect();
    if let Some((reacher, why)) = reacher(world).zip(joint.apart(&is_new)) {
        reacher.apart(&why);
    }
    let (reaches, me) = (joint.reaches.clone(), joint.me);
    prepared.start(Start {
        engine: world.engine(),
        job,
        name: &terms.name,
        me,
        places: joint.table.clone(),
        entries: joint.members.iter().map(|member| member.entry.clone()).collect(),
        gates: joint.members.iter().map(|member| member.gate.clone()).collect(),
        memories: joint.members.iter().map(|member| member.memory.clone()).collect(),
        reach: Arc::new(move |rank| is_new.get(rank as usize)?.then(|| reaches.between(me, rank))),
        area: joint.topology.clone(),
        secret: terms.secret,
        certificate,
        authority: &terms.authority,
    })
}

/// The peers of all members: those that are known, and those that are taken in now.
fn take_in(
    world: &World,
    joint: &Joint,
    job: isthmus_engine::Job,
    known: &[Option<Peer>],
    ways: &Ways,
) -> Result<Vec<Peer>> {
    let mut peers = Vec::with_capacity(known.len());
    if !joint.representations.is_empty() {
        world.unlike.store(true, Ordering::Relaxed);
    }
    let mut engine = world.engine().lock();
    while let Some(next) = known.get(peers.len()) {
        if let Some(peer) = next {
            peers.push(*peer);
            continue;
        }
        let start = peers.len();
        let count = known[start..].iter().take_while(|peer| peer.is_none()).count();
        let ranks = start as u32..(start + count) as u32;
        let reach = |rank| joint.reaches.between(joint.me, rank);
        let level = |rank| joint.reaches.level(joint.me, rank).index() as u8;
        let first = engine.take_in(Newcomers {
            job,
            contexts: isthmus_engine::Job::OWN,
            me: None,
            routes: ranks.clone().map(|rank| ways.of(reach(rank))).collect(),
            levels: ranks.clone().map(level).collect(),
            representations: joint.represented(ranks.clone()),
            ranks,
        });
        let first = first.map_err(|error| Error::from(&error))?;
        for (peer, called) in first.and_following(count as u32).zip(joint.called(start)) {
            engine.core.processes().call(peer, called);
        }
        peers.extend((0..count as u32).map(|at| first.plus(at)));
    }
    Ok(peers)
}

/// The new intercommunicator; all members make it.
fn build(world: &World, comm: &Comm, joint: &Joint, meeting: Arc<Meeting>) -> Result<Arc<Comm>> {
    let all = meeting.group().members();
    let (low, high) = all.split_at(joint.low);
    let (mine, theirs) = if joint.is_low { (low, high) } else { (high, low) };
    world.engine().lock().underneath().mix();
    let Some(blueprint) = Blueprint::new(world, Group::new(mine)) else {
        fail!(
            abi::MPI_ERR_INTERN,
            "the process is not a member of its own communicator"
        );
    };
    let numbers = meeting.contexts().first_of_all();
    let comm = Blueprint {
        remote: Some((Group::new(theirs), joint.is_low)),
        handler: comm.user().error_handler(),
        session: comm.user().session().cloned(),
        ..blueprint
    }
    .of_meeting(meeting)
    .build(numbers);
    world.revocable.begins(world.engine(), &comm);
    Ok(comm)
}

/// This process for others.
fn member(world: &World, contact: Contact, told: &[Arc<Meeting>]) -> Member {
    let (places, rank) = (world.places(), world.rank());
    let place = &places.places[rank as usize];
    let (subjob, node) = (
        &places.subjobs[place.subjob as usize],
        &places.nodes[place.node as usize],
    );
    let meetings = told.iter().take(MAX_MEETINGS).map(|meeting| meeting.id()).collect();
    let mut addresses = contact.addresses;
    addresses.truncate(MAX_ADDRESSES);
    Member {
        name: name(world),
        subjob: place.subjob,
        node: place.node,
        job: world.title.clone(),
        site: subjob.name.clone(),
        area: subjob.lan.clone(),
        host: node.host.clone(),
        machine: contact.machine,
        processors: node.processors,
        representation: place.representation,
        vendor: place.vendor.is_some(),
        addresses,
        port: contact.port,
        request: contact.request,
        meetings,
        entry: contact.entry,
        gate: contact.gate,
        memory: contact.memory,
    }
}
