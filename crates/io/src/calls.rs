// SPDX-License-Identifier: Apache-2.0
//! What a process asks of one at another site with whom it has no communicator: to delete a file,
//! or to have one open for processes that are all elsewhere.
//!
//! ```text
//!  caller                                        first process at the site
//!    | knock: meeting, number, bytes of the call -->|  a frame of a protocol of its own
//!    | call: what, path  -------------------------->|  a message about files, with that number
//!    |<------------------- answer: class, text, bytes
//! ```
//! A knock costs the one who is called nothing before it comes: there is no receive that waits. Its answer is an
//! operation that progress drives, and the program is not asked.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use isthmus_abi::constants as abi;
use isthmus_core::comm::Whereabouts;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::info::Info;
use isthmus_core::world::World;
use isthmus_engine::{Core, Machine, Maker, Peer, Port, Taken, awaken, with_port};
use isthmus_wire::file::{ANSWER, Answer, Call, MAX_CALL, MAX_TEXT, Path};
use isthmus_wire::frame::{Header, Kind, protocol};

use crate::allowed;
use crate::error::{self, Whose};
use crate::file::File;
use crate::guests::{Guests, OpenFile};
use crate::homes;
use crate::name::{self, Name, Scope, Shown, Site};
use crate::service::Service;
use crate::task::{self, Driver, Heard, Post};

/// Calls of one peer that a process answers at the same time: as many threads of the program may call at a time; who
/// knocks more often breaks the protocol. Nobody else notices that.
const MOST: usize = 256;
/// Tags of answers: with the number of the call.
const ANSWERS: i32 = 1 << 30;
const NUMBERS: u32 = (1 << 20) - 1;
/// A knock has the number of the call, and above these bits that of those among whom it is: 0 is the job's world.
const AMONG: u32 = 32;

/// Numbers of this process's calls.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The calls of others to this process.
#[derive(Default)]
pub struct Calls(Arc<OnceLock<&'static World>>);

impl Calls {
    /// What hears them, when somebody calls. It is registered with the engine as [`protocol::FILES`] before anybody
    /// can.
    pub fn machine(&self) -> Maker {
        let world = self.0.clone();
        Box::new(|| {
            Box::new(FileCalls {
                world,
                knocks: Vec::new(),
                answers: Vec::new(),
                services: Vec::new(),
                guests: Arc::default(),
            })
        })
    }

    /// From now on they are answered.
    pub fn begin(&self, world: &'static World) {
        if self.0.set(world).is_ok() {
            world.engine().wake();
        }
    }
}

struct ComingCall {
    from: Peer,
    /// Those among whom it is, by their number.
    among: u32,
    number: u32,
    bytes: u32,
}

/// Where calls come in.
struct FileCalls {
    world: Arc<OnceLock<&'static World>>,
    knocks: Vec<ComingCall>,
    answers: Vec<(Peer, Driver)>,
    /// Of files that are open here for others.
    services: Vec<(OpenFile, Driver)>,
    guests: Arc<Guests>,
}

impl Machine for FileCalls {
    fn frame(&mut self, port: &mut Port<'_>, peer: Peer, header: &Header, _: &[u8]) -> Taken {
        let (number, bytes) = (header.token & u64::from(u32::MAX), header.context);
        let knocks = self.knocks.iter().filter(|knock| knock.from == peer).count();
        let answers = self.answers.iter().filter(|(from, _)| *from == peer).count();
        if number > u64::from(NUMBERS) || bytes as usize > MAX_CALL || knocks + answers >= MOST {
            port.accuse(peer, "a call about files that is too long, or one too many");
            return Taken::Done;
        }
        self.knocks.push(ComingCall {
            from: peer,
            among: (header.token >> AMONG) as u32,
            number: number as u32,
            bytes,
        });
        Taken::Done
    }

    fn advance(&mut self, core: &mut Core) -> bool {
        if let Some(world) = self.world.get().filter(|_| !self.knocks.is_empty()) {
            for knock in std::mem::take(&mut self.knocks) {
                let from = knock.from;
                match begin(world, knock, &self.guests) {
                    Some(answer) => self.answers.push((from, answer)),
                    None => core.accuse(from, "a call about files among processes that it does not belong to"),
                }
            }
        }
        let before = self.answers.len() + self.services.len();
        // An answer that cannot be given is lost with who waits for it.
        self.answers.retain_mut(|(_, answer)| answer.go_on(core).is_none());
        self.services.append(&mut self.guests.coming());
        self.services.retain_mut(|(_, service)| service.go_on(core).is_none());
        before != self.answers.len() + self.services.len()
    }
}

/// `None`: it comes from a process that is not among those whom it names.
fn begin(world: &'static World, knock: ComingCall, guests: &Arc<Guests>) -> Option<Driver> {
    let guests = guests.clone();
    let all = Whereabouts::numbered(world, knock.among)?;
    let from = all.rank_of(knock.from)?;
    let driver = task::driven(world, &all.files(), |post| {
        Box::pin(async move {
            let coming = post.receive(Some(from), knock.number as i32, knock.bytes as usize);
            let heard = std::future::poll_fn(|_| coming.heard().map_or(Poll::Pending, Poll::Ready)).await;
            let call = match heard {
                Heard::Message(call) => call.bytes,
                Heard::TooLong(_) => Vec::new(),
                Heard::Nobody => return Ok(0),
            };
            let Some(call) = Call::decode(&call).ok().filter(|call| may(&all, from, call)) else {
                post.accuse(from, "a call about a file that it may not make");
                return Ok(0);
            };
            let path = Shown::given(&call.path().bytes);
            let done = answer(&all, &post, from, call, &guests).await;
            let answer = done.map_err(|error| error::named(error, &path, own(&all)));
            let answer = answer.map_or_else(
                |error| Answer::of_error(error.class as u32, error.to_string()),
                |()| Answer::default(),
            );
            let sent = post.send(from, ANSWERS | knock.number as i32, answer.encode());
            sent.sent().await?;
            Ok(0)
        })
    });
    Some(driver)
}

/// Whether a process may make such a call. Who opens a file for others is the first of them, has made their
/// communicator, and all of them are known: nobody asks a guest to take messages of others.
fn may(all: &Whereabouts<'_>, from: u32, call: &Call) -> bool {
    let Call::Open(open) = call else { return true };
    let inside =
        |&(first, count): &(u32, u32)| count > 0 && first.checked_add(count).is_some_and(|end| end <= all.count());
    let members: u64 = open.members.iter().map(|(_, count)| u64::from(*count)).sum();
    let me = all.rank_of(all.world().me());
    let own = |&(first, count): &(u32, u32)| me.is_some_and(|me| (first..first.saturating_add(count)).contains(&me));
    open.members.first().is_some_and(|(first, _)| *first == from)
        && open.members.iter().all(inside)
        && members <= u64::from(all.count())
        && !open.members.iter().any(own)
        && all.may_name(from, open.context)
}

/// Who is of another job uses only what this process has opened itself together with it.
fn check(all: &Whereabouts<'_>, from: Option<Peer>, path: &Path) -> Result<()> {
    let job = |peer| all.world_of(peer);
    if from.is_some_and(|from| job(from) == job(all.world().me())) || homes::is_shared(all, &path.bytes) {
        return Ok(());
    }
    fail!(
        abi::MPI_ERR_ACCESS,
        "the process there, which is of another job, has not opened a file of this name together with processes of this one: open it there \
         with a communicator of both jobs first"
    )
}

async fn answer(all: &Whereabouts<'static>, post: &Post, from: u32, call: Call, guests: &Arc<Guests>) -> Result<()> {
    let peer = all.peer(from);
    check(all, peer, call.path())?;
    let all = all.clone();
    match call {
        Call::Delete(path) => post.disk(move || remove_for(&all, from, &path)).await,
        Call::Open(open) => {
            let world = all.world();
            let place = guests.place(peer.map_or(from, Peer::number), open.context)?;
            let file = post.disk(move || File::hosted(&all, &open)).await?;
            let channel = file.processes.channel().clone();
            let service = Service::of(file);
            let service = task::driven(world, &channel, |post| {
                Box::pin(async move { service.run(&post).await })
            });
            guests.begin(place, service);
            Ok(())
        }
    }
}

/// This process, and its site.
fn own<'a>(all: &'a Whereabouts<'_>) -> Whose<'a> {
    Whose {
        rank: all.world().rank(),
        site: Site::own(all).filter(|_| Site::are_several(all)).map(|site| site.name),
    }
}

/// Deletes a file of this process's site.
fn remove(all: &Whereabouts<'_>, path: &Path) -> Result<()> {
    let path = name::local(path)?;
    std::fs::remove_file(&*path).map_err(|what| error::error("delete", &path, own(all), &what))
}

/// Deletes a file of this process's site for a process of another one, by its rank.
fn remove_for(all: &Whereabouts<'_>, whose: u32, path: &Path) -> Result<()> {
    let path = name::local(path)?;
    let whose = Whose {
        rank: whose,
        ..own(all)
    };
    allowed::remove(&path).map_err(|refused| refused.told("delete", &path, whose))
}

/// Asks one of these processes, and waits for its answer.
pub(crate) fn ask(all: &Whereabouts<'static>, whom: u32, call: &Call) -> Result<()> {
    let world = all.world();
    let Some(peer) = all.peer(whom) else {
        fail!(
            abi::MPI_ERR_INTERN,
            "nobody has rank {whom} among those who may have it"
        );
    };
    let bytes = call.encode();
    if bytes.len() > MAX_CALL {
        fail!(
            abi::MPI_ERR_BAD_FILE,
            argument("filename"),
            "is longer than any name of a file, or the processes that open it are too scattered"
        );
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed) & NUMBERS;
    let token = u64::from(all.number()) << AMONG | u64::from(number);
    let knock = Header::control(Kind::Protocol, token, bytes.len() as u64, 0);
    let mut engine = world.engine().lock();
    awaken(&mut engine, protocol::FILES);
    with_port(&mut engine, protocol::FILES, |port| port.tell(peer, knock));
    drop(engine);
    let place = Arc::new(OnceLock::new());
    let result = place.clone();
    let asked = task::run(world, &all.files(), |post| {
        Box::pin(async move {
            let answer = post.receive(Some(whom), ANSWERS | number as i32, ANSWER + MAX_TEXT);
            post.send(whom, number as i32, bytes).sent().await?;
            let _ = result.set(answer.received().await?.bytes);
            Ok(0)
        })
    });
    asked.map_err(|error| {
        let (me, site) = (world.rank(), Site::of(all, peer).map_or("", |site| site.name));
        Error::new(
            error.class,
            format!("rank {me} got no result for its call to site {site}: {error}"),
        )
    })?;
    let bytes = place.get().map(Vec::as_slice).unwrap_or_default();
    let answer = Answer::decode(bytes).map_err(|error| {
        Error::new(
            abi::MPI_ERR_INTERN,
            format!("the answer of rank {whom} about a file makes no sense: {error}"),
        )
    })?;
    match answer.class {
        0 => Ok(()),
        class => Err(Error::named(class as i32, answer.text)),
    }
}

/// MPI_File_delete: at the site in the name, at that where this process has opened the name, or here. `scope`: what
/// a name without a site means.
pub fn delete(world: &'static World, name: &[u8], info: &Info, scope: Scope) -> Result<()> {
    let whose = Whose {
        rank: world.rank(),
        site: None,
    };
    deleted(world, name, info, scope).map_err(|error| error::named(error, &Shown::given(name), whose))
}

fn deleted(world: &'static World, name: &[u8], info: &Info, scope: Scope) -> Result<()> {
    let Name { site, path } = Name::new(name, info)?;
    let job = Whereabouts::in_world(world);
    let here = Site::own(&job);
    let whom = match site {
        Some(site) if here.is_some_and(|here| here.is_called(&site)) => None,
        Some(site) => Some((job.clone(), name::first_at(&job, &site, |_| true)?)),
        None if scope == Scope::Job => match homes::find(&job, &path.bytes) {
            Some(rank) => Some((job.clone(), rank)),
            None => homes::abroad(world, &path.bytes),
        },
        None => None,
    };
    let is_elsewhere =
        |(all, rank): &(Whereabouts<'_>, u32)| all.peer(*rank).and_then(|peer| Site::of(all, peer)) != here;
    match whom.filter(is_elsewhere) {
        None => remove(&job, &path),
        Some((all, whom)) => ask(&all, whom, &Call::Delete(path)),
    }
}
