// SPDX-License-Identifier: Apache-2.0
//! Opening and closing (MPI 5.0 section 14.2), and who reaches the file.
//!
//! One process, the opener, opens first and creates what has to be created: with MPI_MODE_EXCL all others would fail.
//! Then the others open what they see under the name. Whether that is the same file is proven, never guessed: on one
//! kernel by device and inode, on others by a nonce, a time of change that the opener gives the file while it is being
//! opened. Who cannot prove it accesses the file through those who reach it.

use std::fs::{File as SystemFile, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::comm::{self, Comm, create};
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::group::Group;
use isthmus_core::info::Info;
use isthmus_core::world::World;
use isthmus_engine::Peer;
use isthmus_wire::file::{Call, Open, What, ranges};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::calls;
use crate::disk::Own;
use crate::error::{self, Whose};
use crate::file::{File, State, again};
use crate::group::{Members, Sites, TAGS, not_same};
use crate::hints::Hints;
use crate::homes;
use crate::mode::Mode;
use crate::name::{self, Name, Scope, Shown, Site};
use crate::same::{First, Identity};
use crate::stripe::Layout;
use crate::task::{self, Port};
use crate::view::View;

/// Tag of opening: below those of operations.
const OPENING: i32 = 0;

/// The process that opens first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opener {
    /// One of the communicator.
    Member(u32),
    /// One of the job, by its rank in MPI_COMM_WORLD: the communicator has none at the file's site.
    Guest(u32),
}

impl Opener {
    /// At the site that a name says.
    fn at(world: &World, comm: &Comm, site: &str) -> Result<Self> {
        let is_there = |peer: &Peer| Site::of(world, *peer).is_some_and(|own| own.is_called(site));
        match comm.group().members().iter().position(is_there) {
            Some(rank) => Ok(Self::Member(rank as u32)),
            None => name::first_at(world, site).map(Self::Guest),
        }
    }

    /// At the site of who has opened that name before.
    fn again(world: &World, comm: &Comm, before: u32) -> Self {
        let site = Site::of(world, world.peer(before));
        let is_there = |peer: &Peer| Site::of(world, *peer) == site;
        let member = comm.group().members().iter().position(is_there);
        member.map_or(Self::Guest(before), |rank| Self::Member(rank as u32))
    }

    fn peer(self, world: &World, comm: &Comm) -> Option<Peer> {
        match self {
            Self::Member(rank) => comm.group().members().get(rank as usize).copied(),
            Self::Guest(rank) => Some(world.peer(rank)),
        }
    }
}

/// The site of a process of a communicator.
fn site_of<'a>(world: &'a World, comm: &Comm, rank: u32) -> Option<Site<'a>> {
    Site::of(world, *comm.group().members().get(rank as usize)?)
}

/// Opens as the system does; `first`: the opener. What has no offsets is refused, and nobody waits for the other end of
/// a pipe.
pub(crate) fn open_here(path: &Path, mode: Mode, permissions: u32, first: bool) -> io::Result<SystemFile> {
    let file = again(|| {
        OpenOptions::new()
            .read(mode.reads())
            .write(mode.writes())
            .create(first && mode.has(abi::MPI_MODE_CREATE) && !mode.has(abi::MPI_MODE_EXCL))
            .create_new(first && mode.has(abi::MPI_MODE_CREATE) && mode.has(abi::MPI_MODE_EXCL))
            .mode(permissions)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(path)
    })?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if kind.is_fifo() {
        return Err(Errno::SPIPE.into());
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// What opening comes to.
pub(crate) struct Opened {
    pub(crate) mode: Mode,
    pub(crate) disk: Option<SystemFile>,
    pub(crate) reach: Vec<bool>,
    /// Who has opened it first.
    pub(crate) opener: Option<Peer>,
    /// Who has the file open for all.
    pub(crate) guest: Option<Peer>,
    pub(crate) layout: Layout,
}

/// What is known of a file before it is open.
pub(crate) struct Parts {
    pub(crate) comm: Arc<Comm>,
    pub(crate) group: Group,
    pub(crate) sites: Arc<Sites>,
    pub(crate) path: Shown,
    pub(crate) site: String,
}

/// What a process needs to open.
struct Wanted {
    world: &'static World,
    comm: Arc<Comm>,
    /// What a guest is told.
    open: Open,
    /// The one at the site that the name says; `None`: it says none.
    opener: Result<Option<Opener>>,
    path: Shown,
    spans_kernels: bool,
    scope: Scope,
}

/// What the program asks for, beside the name.
struct Asked<'a> {
    amode: i32,
    info: &'a Info,
    scope: Scope,
}

impl Wanted {
    fn new(world: &'static World, comm: Arc<Comm>, name: Result<Name>, asked: &Asked<'_>) -> Self {
        let named = name.and_then(|name| {
            let opener = name
                .site
                .as_deref()
                .map(|site| Opener::at(world, &comm, site))
                .transpose()?;
            Ok((opener, name::local(&name.path)?, name.path))
        });
        let (opener, path, sent) = match named {
            Ok((opener, path, sent)) => (Ok(opener), path, sent),
            Err(error) => (Err(error), Shown::default(), Default::default()),
        };
        Self {
            world,
            open: Open {
                amode: asked.amode,
                permissions: permissions(asked.info),
                context: comm.channel().context.number(),
                members: ranges(&world.ranks_of(comm.group())),
                path: sent,
            },
            opener,
            path,
            spans_kernels: spans_nodes(world, &comm),
            scope: asked.scope,
            comm,
        }
    }

    /// Three exchanges: what everybody asks for, so that nothing is created before all have come; what the opener has
    /// open; who reaches it.
    async fn open(self, port: &Port, members: &Members) -> Result<Opened> {
        let checked = Mode::new(self.open.amode).and_then(|mode| Ok((mode, self.opener.clone()?)));
        let said = Said {
            amode: self.open.amode,
            scope: self.scope,
            before: self.before(),
        };
        let before = said.agree(members, port, checked.clone().map(drop)).await?;
        let (mode, named) = checked?;
        let opener = match (named, before) {
            (Some(named), _) => named,
            (None, Some(before)) => Opener::again(self.world, &self.comm, before),
            (None, None) => Opener::Member(0),
        };
        let site = opener.peer(self.world, &self.comm);
        let site = site.and_then(|peer| Site::of(self.world, peer));
        let opener = match opener {
            Opener::Member(rank) => rank,
            Opener::Guest(guest) => return self.open_by(guest, mode, port, members).await,
        };
        let is_opener = members.me == opener;
        let (mut first, mut outcome) = (None, Ok(()));
        if is_opener {
            match open_here(&self.path, mode, self.open.permissions, true) {
                Ok(file) => first = Some(First::new(file, self.spans_kernels)),
                Err(what) => {
                    let whose = Whose {
                        rank: members.me,
                        site: site.map(|site| site.name).filter(|_| Site::are_several(self.world)),
                    };
                    outcome = Err(error::error("open", &self.path, whose, &what));
                }
            }
        }
        let nonce = first.as_ref().map_or(0, First::nonce);
        let mut own = nonce.to_le_bytes().to_vec();
        own.extend(Identity::of(first.as_ref().map(First::file)).encode());
        let layout = first.as_ref().map(|first| Layout::of(first.file()));
        own.extend(layout.unwrap_or_default().encode());
        let all = members.gather(port, 3, &own).await?;
        let own = all[opener as usize].get(8..).unwrap_or_default();
        if crate::group::word(own) == 0 {
            members.agree(port, 4, outcome).await?;
        }
        let nonce = crate::group::word(&all[opener as usize]);
        let layout = Layout::decode(crate::group::word(own.get(Identity::BYTES..).unwrap_or_default()));
        let mut disk = match is_opener {
            true => None,
            false => open_here(&self.path, mode, self.open.permissions, false).ok(),
        };
        let reaches = is_opener || Identity::is_same(own, &Identity::of(disk.as_ref()).encode(), nonce);
        let all = members.words(port, 6, u64::from(reaches)).await?;
        if let Some(first) = first {
            disk = Some(first.settle());
        }
        Ok(Opened {
            mode,
            disk: disk.filter(|_| reaches),
            reach: all.iter().map(|word| *word == 1).collect(),
            opener: self.comm.group().members().get(opener as usize).copied(),
            guest: None,
            layout,
        })
    }

    /// Who has opened the file of this name before, as far as this process knows.
    fn before(&self) -> Option<u32> {
        let asks = self.scope == Scope::Job && matches!(self.opener, Ok(None)) && homes::is_own(self.world, &self.comm);
        let path = &self.open.path;
        asks.then(|| homes::find(self.world, &path.bytes)).flatten()
    }
    /// Through a guest, whom rank 0 asks for all.
    async fn open_by(self, guest: u32, mode: Mode, port: &Port, members: &Members) -> Result<Opened> {
        let done = match members.me {
            0 => calls::ask(self.world, guest, &Call::Open(self.open)),
            _ => Ok(()),
        };
        members.agree(port, 4, done).await?;
        Ok(Opened {
            mode,
            disk: None,
            reach: (0..=members.size).map(|rank| rank == members.size).collect(),
            opener: Some(self.world.peer(guest)),
            guest: Some(self.world.peer(guest)),
            layout: Layout::default(),
        })
    }
}

/// What everybody says first of all, beside the class of an error.
struct Said {
    amode: i32,
    scope: Scope,
    /// Who has opened a file of this name before, by the rank in MPI_COMM_WORLD.
    before: Option<u32>,
}

impl Said {
    /// The same outcome for all: no error anywhere, and equal arguments; then what the first process says that has
    /// opened that name before. Takes three phases.
    async fn agree(self, members: &Members, port: &Port, mine: Result<()>) -> Result<Option<u32>> {
        let class = mine.as_ref().err().map_or(0, |error| error.class as u64);
        let before = self.before.map_or(0, |rank| u64::from(rank) + 1);
        let scope = u64::from(self.scope == Scope::Site);
        let words = [class, self.amode as u32 as u64, scope, before];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let all = members.gather(port, 0, &bytes).await?;
        let word = |bytes: &[u8], at: usize| crate::group::word(bytes.get(8 * at..).unwrap_or_default());
        if all.iter().any(|said| word(said, 0) != 0) {
            return members.agree(port, 1, mine).await.map(|()| None);
        }
        let other = |at: usize| all.iter().position(|said| word(said, at) != words[at]);
        if let Some(rank) = other(1) {
            return Err(not_same("amode", rank, members.me));
        }
        if let Some(rank) = other(2) {
            fail!(
                abi::MPI_ERR_NOT_SAME,
                "the environment variable ISTHMUS_FILE_SCOPE must be the same on all processes, but rank {rank} has another one than rank {}",
                members.me
            );
        }
        let before = all.iter().map(|said| word(said, 3)).find(|before| *before != 0);
        Ok(before.and_then(|before| u32::try_from(before - 1).ok()))
    }
}

impl File {
    /// MPI_File_open; collective. `comm` is an intracommunicator. The second value is what close needs.
    pub fn open(
        world: &'static World,
        comm: &Comm,
        name: &[u8],
        amode: i32,
        info: &Info,
        scope: Scope,
    ) -> Result<(Arc<Self>, Option<isthmus_engine::Request>)> {
        let whole = create::duplicate(world, comm, Info::default())?;
        let plain = name::is_plain(name);
        let name = Name::new(name, info);
        // A name with a site is one file all the same.
        let one = scope == Scope::Job || name.as_ref().is_ok_and(|name| name.site.is_some());
        let comm = match one {
            true => whole.clone(),
            false => Self::of_site(world, &whole, &name, amode)?,
        };
        let scope = if one { Scope::Job } else { Scope::Site };
        let wanted = Wanted::new(world, comm.clone(), name, &Asked { amode, info, scope });
        let path = wanted.path.clone();
        let kept =
            (scope == Scope::Job && plain && homes::is_own(world, &comm)).then(|| wanted.open.path.bytes.clone());
        let members = opening(world, &comm);
        let sites = members.sites.clone();
        let place = Arc::new(Mutex::new(None));
        let result = place.clone();
        let done = task::run(world, comm.channel(), |port| {
            Box::pin(async move {
                let opened = wanted.open(&port, &members).await?;
                *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
                Ok(0)
            })
        });
        if !one {
            Self::everywhere(world, &whole, done.clone().map(drop))?;
        }
        done?;
        let Some(opened) = place.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            fail!(abi::MPI_ERR_INTERN, "opening {path:?} came to nothing")
        };
        let site = opened.opener.and_then(|peer| Site::of(world, peer));
        let opener = opened.opener.and_then(|peer| world.rank_of(peer));
        if let (Some(path), Some(opener)) = (kept, opener) {
            homes::keep(world, &path, opener);
        }
        let parts = Parts {
            comm,
            group: whole.group().clone(),
            sites,
            path,
            site: site.map_or_else(String::new, |site| site.name.to_owned()),
        };
        let mode = opened.mode;
        let hints = Hints::of(info).laid_out(opened.layout);
        let file = Self::made(world, parts, opened, hints);
        let service = file.start_service();
        if mode.has(abi::MPI_MODE_APPEND) {
            file.begin_at_end()?;
        }
        Ok((file, service))
    }

    pub(crate) fn made(world: &'static World, parts: Parts, opened: Opened, hints: Hints) -> Arc<Self> {
        let own = parts.comm;
        let comm = opened
            .guest
            .map_or_else(|| own.clone(), |guest| comm::with_guest(&own, guest));
        Arc::new(Self {
            world,
            comm,
            size: own.size(),
            _own: own,
            group: parts.group,
            sites: parts.sites,
            path: parts.path,
            mode: opened.mode,
            disk: opened.disk.map(|file| Arc::new(Own::new(file))),
            reach: opened.reach,
            site: parts.site,
            told: Default::default(),
            state: Mutex::new(State {
                view: Arc::new(View::default()),
                pointer: 0,
            }),
            hints: Mutex::new(hints),
            sequence: AtomicU32::new(0),
            questions: AtomicU32::new(0),
            shared: AtomicU64::new(0),
            atomic: AtomicBool::new(false),
            atoms: Mutex::new(()),
            split: Mutex::new(None),
            aggregates: AtomicBool::new(false),
        })
    }

    /// All pointers are at the end of the file.
    fn begin_at_end(self: &Arc<Self>) -> Result<()> {
        let end = self.size();
        if let Ok(end) = end {
            self.state().pointer = end;
            self.shared.store(end, Ordering::SeqCst);
        }
        // Nobody writes before all have seen the end, or uses the shared pointer before its owner has set it.
        self.meet()?;
        end.map(drop)
    }

    /// Where a file is open at some sites only it is open nowhere.
    fn everywhere(world: &World, whole: &Comm, done: Result<()>) -> Result<()> {
        let members = opening(world, whole);
        let agree = |port: Port| -> task::Operation {
            Box::pin(async move { members.agree(&port, 7, done).await.map(|()| 0) })
        };
        task::run(world, whole.channel(), agree).map(drop)
    }

    /// The processes of one site, when each has a file of its own. All have said before that they open in this way.
    fn of_site(world: &World, whole: &Comm, name: &Result<Name>, amode: i32) -> Result<Arc<Comm>> {
        let members = opening(world, whole);
        let color = members.sites.of(members.me) as i32;
        let outcome = name.as_ref().map(drop).map_err(Error::clone);
        task::run(world, whole.channel(), |port| {
            Box::pin(async move {
                let said = Said {
                    amode,
                    scope: Scope::Site,
                    before: None,
                };
                said.agree(&members, &port, outcome).await?;
                Ok(0)
            })
        })?;
        match create::split(world, whole, Some(color), 0)? {
            Some(comm) => Ok(comm),
            None => fail!(
                abi::MPI_ERR_INTERN,
                "the processes of site number {color} have no communicator"
            ),
        }
    }

    /// MPI_File_close; collective.
    pub fn close(self: &Arc<Self>, service: Option<isthmus_engine::Request>) -> Result<()> {
        if let Some(active) = &*self.split.lock().unwrap_or_else(PoisonError::into_inner) {
            fail!(
                abi::MPI_ERR_OTHER,
                "{active:?} on {:?} has not ended; end it before the file is closed",
                self.path
            );
        }
        self.meet()?;
        if let Some(service) = service {
            self.stop_service(service)?;
        }
        if self.guest().is_none() && !self.mode.has(abi::MPI_MODE_DELETE_ON_CLOSE) {
            return Ok(());
        }
        let file = self.clone();
        self.together(|port, members| {
            Box::pin(async move {
                let done = match (file.rank() == file.deputy(), file.guest()) {
                    (false, _) => Ok(()),
                    (true, None) => file.delete_if_asked(),
                    (true, Some(guest)) => {
                        let asked = file.ask(&port, guest, What::Stop, 0, &[], 0);
                        file.answer(asked, 0).await.map(drop)
                    }
                };
                members.agree(&port, 0, done).await?;
                Ok(0)
            })
        })
        .map(drop)
    }
}

/// Permissions of a file that is created, by the hint.
fn permissions(info: &Info) -> u32 {
    let given = info.get("file_perm").ok().flatten();
    given
        .and_then(|text| u32::from_str_radix(text, 8).ok())
        .unwrap_or(0o666)
        & 0o7777
}

/// The processes of a communicator, for opening.
fn opening(world: &World, comm: &Comm) -> Members {
    Members {
        me: comm.rank(),
        size: comm.size(),
        tag: OPENING + 2,
        sites: Arc::new(Sites::new(
            (0..comm.size()).map(|rank| site_of(world, comm, rank).map(|site| site.lan)),
        )),
    }
}

/// Whether processes are on more than one node.
fn spans_nodes(world: &World, comm: &Comm) -> bool {
    let mut nodes = comm
        .group()
        .members()
        .iter()
        .map(|&member| world.place_of(member).map(|place| place.node));
    let first = nodes.next();
    nodes.any(|node| Some(node) != first)
}

const _: () = assert!(OPENING + 2 + 8 < TAGS, "opening has tags of its own");
