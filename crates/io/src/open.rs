// SPDX-License-Identifier: Apache-2.0
//! Opening and closing (MPI 5.0 section 14.2), and who reaches the file.
//!
//! One process, the opener, opens first and creates what has to be created: with MPI_MODE_EXCL all others would fail.
//! Then the others open what they see under the name. Whether that is the same file is proven, never guessed: on one
//! kernel by device and inode, on others by a nonce, a time of change that the opener gives the file while it is being
//! opened. Who cannot prove it accesses the file through those who reach it.

use std::fs::{File as SystemFile, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::comm::{Comm, create};
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::group::Group;
use isthmus_core::info::Info;
use isthmus_core::world::World;
use isthmus_engine::Peer;
use isthmus_wire::file::{Call, Open, What, ranges};
use rustix::fs::{OFlags, Timespec, Timestamps, fcntl_getfl, fcntl_setfl, futimens};
use rustix::io::Errno;

use crate::calls;
use crate::disk::Own;
use crate::error::{self, Whose};
use crate::file::{File, State, again};
use crate::group::{Members, Sites, TAGS, not_same};
use crate::hints::Hints;
use crate::mode::Mode;
use crate::name::{self, Name, Shown, Site};
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
    fn find(world: &World, comm: &Comm, site: Option<&str>) -> Result<Self> {
        let Some(site) = site else { return Ok(Self::Member(0)) };
        let is_there = |peer: &Peer| Site::of(world, *peer).is_some_and(|own| own.is_called(site));
        match comm.group().members().iter().position(is_there) {
            Some(rank) => Ok(Self::Member(rank as u32)),
            None => name::first_at(world, site).map(Self::Guest),
        }
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

/// What a name without a site means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// One file for all processes.
    #[default]
    Job,
    /// The processes of each site have one for themselves.
    Site,
}

/// What all need to know of what one has opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Identity {
    /// 1: open.
    open: u64,
    /// Kernel.
    boot: u64,
    device: u64,
    inode: u64,
    /// Time of change, seconds.
    changed: i64,
}

impl Identity {
    fn of(file: Option<&SystemFile>) -> Self {
        let Some(known) = file.and_then(|file| file.metadata().ok()) else {
            return Self::default();
        };
        Self {
            open: 1,
            boot: boot(),
            device: known.dev(),
            inode: known.ino(),
            changed: known.mtime(),
        }
    }

    fn encode(self) -> Vec<u8> {
        let words = [self.open, self.boot, self.device, self.inode, self.changed as u64];
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Whether another process has the same file open as the opener. `nonce`: 0 if there is none.
    fn is_same(opener: &[u8], other: &[u8], nonce: u64) -> bool {
        let word = |bytes: &[u8], i: usize| crate::group::word(bytes.get(8 * i..).unwrap_or_default());
        let alike = |i| word(opener, i) == word(other, i);
        let kernel = word(opener, 1) != 0 && alike(1);
        word(other, 0) == 1 && alike(3) && (kernel && alike(2) || !kernel && nonce != 0 && word(other, 4) == nonce)
    }
}

/// A number for the kernel that runs here: equal for processes on one, by its random name; 0: not known.
fn boot() -> u64 {
    let Ok(name) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") else {
        return 0;
    };
    let digits: String = name.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

/// A time of change that no file has by chance: some second of the years 2001 to 2020.
fn nonce() -> u64 {
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    1_000_000_000 + random % 600_000_000
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

/// Gives a file a time of change; its former one.
fn mark(file: &SystemFile, seconds: i64, nanoseconds: i64) -> io::Result<(i64, i64)> {
    let before = file.metadata()?;
    let keep = Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_OMIT,
    };
    let last_modification = Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds as _,
    };
    futimens(
        file,
        &Timestamps {
            last_access: keep,
            last_modification,
        },
    )?;
    Ok((before.mtime(), before.mtime_nsec()))
}

/// What opening comes to.
pub(crate) struct Opened {
    pub(crate) mode: Mode,
    pub(crate) disk: Option<SystemFile>,
    pub(crate) reach: Vec<bool>,
    /// Who has the file open for all.
    pub(crate) guest: Option<Peer>,
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
    /// What a guest is told.
    open: Open,
    opener: Result<Opener>,
    path: Shown,
    /// Of the opener, for errors; `None`: all are at one.
    site: Option<String>,
    spans_kernels: bool,
}

/// A file that the opener has open, as it is until all have looked for it.
struct First {
    file: SystemFile,
    /// The nonce and the time of change before.
    marked: Option<(u64, (i64, i64))>,
}

impl First {
    fn open(wanted: &Wanted, mode: Mode) -> io::Result<Self> {
        let file = open_here(&wanted.path, mode, wanted.open.permissions, true)?;
        let wished = wanted.spans_kernels.then(nonce);
        let marked = wished.and_then(|nonce| Some((nonce, mark(&file, nonce as i64, 0).ok()?)));
        Ok(Self { file, marked })
    }

    /// The file as everybody shall have it. Who has written since has given it a time of its own.
    fn settle(self) -> SystemFile {
        if let Some((nonce, (seconds, nanoseconds))) = self.marked {
            let untouched = |known: std::fs::Metadata| known.mtime() == nonce as i64 && known.mtime_nsec() == 0;
            if self.file.metadata().is_ok_and(untouched) {
                // It has succeeded a moment ago; that it should fail now harms nobody but a time.
                let _ = mark(&self.file, seconds, nanoseconds);
            }
        }
        self.file
    }
}

impl Wanted {
    /// Three exchanges: what everybody asks for, so that nothing is created before all have come; what the opener has
    /// open; who reaches it.
    async fn open(self, port: &Port, members: &Members, scope: Scope) -> Result<Opened> {
        let checked = Mode::new(self.open.amode).and_then(|mode| Ok((mode, self.opener.clone()?)));
        Said::agree(members, port, self.open.amode, scope, checked.clone().map(drop)).await?;
        let (mode, opener) = match checked? {
            (mode, Opener::Member(rank)) => (mode, rank),
            (mode, Opener::Guest(guest)) => return self.open_by(guest, mode, port, members).await,
        };
        let is_opener = members.me == opener;
        let (mut first, mut outcome) = (None, Ok(()));
        if is_opener {
            match First::open(&self, mode) {
                Ok(file) => first = Some(file),
                Err(what) => {
                    let whose = Whose {
                        rank: members.me,
                        site: self.site.as_deref(),
                    };
                    outcome = Err(error::error("open", &self.path, whose, &what));
                }
            }
        }
        let nonce = first
            .as_ref()
            .and_then(|first| first.marked)
            .map_or(0, |marked| marked.0);
        let mut own = nonce.to_le_bytes().to_vec();
        own.extend(Identity::of(first.as_ref().map(|first| &first.file)).encode());
        let all = members.gather(port, 3, &own).await?;
        let own = all[opener as usize].get(8..).unwrap_or_default();
        if crate::group::word(own) == 0 {
            members.agree(port, 4, outcome).await?;
        }
        let nonce = crate::group::word(&all[opener as usize]);
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
            guest: None,
        })
    }
}

impl Wanted {
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
            guest: Some(self.world.peer(guest)),
        })
    }
}

/// What everybody says first of all: the class of an error, access mode, scope.
struct Said;

impl Said {
    /// The same outcome for all: no error anywhere, and equal arguments. Takes three phases.
    async fn agree(members: &Members, port: &Port, amode: i32, scope: Scope, mine: Result<()>) -> Result<()> {
        let class = mine.as_ref().err().map_or(0, |error| error.class as u64);
        let words = [class, amode as u32 as u64, u64::from(scope == Scope::Site)];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let all = members.gather(port, 0, &bytes).await?;
        let word = |bytes: &[u8], at: usize| crate::group::word(bytes.get(8 * at..).unwrap_or_default());
        if all.iter().any(|said| word(said, 0) != 0) {
            return members.agree(port, 1, mine).await;
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
        Ok(())
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
        let name = Name::new(name, info);
        // A name with a site is one file all the same.
        let one = scope == Scope::Job || name.as_ref().is_ok_and(|name| name.site.is_some());
        let comm = match one {
            true => whole.clone(),
            false => Self::of_site(world, &whole, &name, amode)?,
        };
        let opener = name.as_ref().map_err(Error::clone).and_then(|name| {
            let path = name::local(&name.path)?;
            Ok((Opener::find(world, &comm, name.site.as_deref())?, path))
        });
        let path = opener.as_ref().map(|(_, path)| path.clone()).unwrap_or_default();
        let opener = opener.map(|(opener, _)| opener);
        let first = opener.as_ref().ok().and_then(|opener| opener.peer(world, &comm));
        let site = first
            .and_then(|peer| Site::of(world, peer))
            .map(|site| site.name.to_owned());
        let wanted = Wanted {
            world,
            open: Open {
                amode,
                permissions: permissions(info),
                context: comm.channel().context.number(),
                members: ranges(&world.ranks_of(comm.group())),
                path: name.map(|name| name.path).unwrap_or_default(),
            },
            opener,
            path: path.clone(),
            site: site.clone().filter(|_| Site::are_several(world)),
            spans_kernels: spans_nodes(world, &comm),
        };
        let members = opening(world, &comm);
        let sites = members.sites.clone();
        let place = Arc::new(Mutex::new(None));
        let result = place.clone();
        let scope = if one { Scope::Job } else { Scope::Site };
        let done = task::run(world, comm.channel(), |port| {
            Box::pin(async move {
                let opened = wanted.open(&port, &members, scope).await?;
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
        let parts = Parts {
            comm,
            group: whole.group().clone(),
            sites,
            path,
            site: site.unwrap_or_default(),
        };
        let mode = opened.mode;
        let file = Self::made(world, parts, opened, Hints::of(info));
        let service = file.start_service();
        if mode.has(abi::MPI_MODE_APPEND) {
            file.begin_at_end()?;
        }
        Ok((file, service))
    }

    pub(crate) fn made(world: &'static World, parts: Parts, opened: Opened, hints: Hints) -> Arc<Self> {
        let own = parts.comm;
        let comm = opened.guest.map_or_else(|| own.clone(), |guest| own.with_guest(guest));
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
                Said::agree(&members, &port, amode, Scope::Site, outcome).await?;
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
