// SPDX-License-Identifier: Apache-2.0
//! Opening (MPI 5.0 section 14.2), and who reaches the file.
//!
//! One process, the opener, opens first and creates what has to be created: with MPI_MODE_EXCL all others would fail.
//! Then the others open what they see under the name. Whether that is the same file is proven, never guessed: on one
//! kernel by device and inode, on others by a nonce, a time of change that the opener gives the file while it is being
//! opened. Who cannot prove it accesses the file through those who reach it.

use std::fs::File as SystemFile;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use isthmus_abi::constants as abi;
use isthmus_core::comm::{Comm, Whereabouts};
use isthmus_core::create;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::info::Info;
use isthmus_core::world::World;
use isthmus_engine::Peer;
use isthmus_wire::file::{Call, Open, Path as FilePath, ranges};
use isthmus_wire::stripe::Layout;

use crate::alike::Alike;
use crate::allowed;
use crate::among::{Circumstances, Had};
use crate::calls;
use crate::error::{self, Whose};
use crate::file::File;
use crate::group::{Members, Sites, TAGS, not_same};
use crate::here::{Here, Particulars, Serves};
use crate::hints::Hints;
use crate::homes;
use crate::mode::Mode;
use crate::name::{self, Name, Scope, Shown, Site};
use crate::processes::{Processes, Reach};
use crate::same::First;
use crate::service::Service;
use crate::task::{self, Post};
use crate::told::{Description, said};

/// Tag of opening: below those of operations.
const OPENING: i32 = 0;

/// What processes say when they have opened what their name leads to: it is not the opener's file, it is, or it cannot
/// be, since they are at the opener's site and their name is another one.
const IS_FAR: u64 = 0;
const REACHES: u64 = 1;
const HAS_ANOTHER: u64 = 2;
/// Far, and at another site than the opener, or of another job.
const IS_OUTSIDE: u64 = 3;
/// It is the opener's file, which may not be used through this process by all for whom the opener has it open.
const REACHES_ALONE: u64 = 4;

/// The process that opens first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opener {
    /// One of the communicator.
    Member(u32),
    /// Another one of those whom all know, by its rank among them: the communicator has none at the file's site.
    Guest(u32),
}

impl Opener {
    /// At the site that a name says. Where sites of two jobs are called so, it is that of the lower rank.
    fn at(all: &Whereabouts<'_>, comm: &Comm, site: &str) -> Result<Self> {
        let is_there = |peer: &Peer| Site::of(all, *peer).is_some_and(|own| own.is_called(site));
        match comm.group().members().iter().position(is_there) {
            Some(rank) => Ok(Self::Member(rank as u32)),
            None => {
                let may = |rank| all.are_connected(comm.group(), rank);
                name::first_at(all, site, may).map(Self::Guest)
            }
        }
    }

    /// At the site of who has opened that name before.
    fn again(all: &Whereabouts<'_>, comm: &Comm, before: u32) -> Self {
        let site = all.peer(before).and_then(|peer| Site::of(all, peer));
        let is_there = |peer: &Peer| Site::of(all, *peer) == site;
        let member = comm.group().members().iter().position(is_there);
        member.map_or(Self::Guest(before), |rank| Self::Member(rank as u32))
    }

    /// As a word that is the same on all processes; 0 is none.
    fn word(self) -> u64 {
        match self {
            Self::Member(rank) => u64::from(rank) + 1,
            Self::Guest(rank) => u64::from(rank) + (1 << 32),
        }
    }

    fn peer(self, all: &Whereabouts<'_>, comm: &Comm) -> Option<Peer> {
        match self {
            Self::Member(rank) => comm.group().members().get(rank as usize).copied(),
            Self::Guest(rank) => all.peer(rank),
        }
    }
}

/// What opening comes to.
struct Opened {
    disk: Option<SystemFile>,
    reach: Vec<Reach>,
    /// Who has opened it first.
    opener: Option<Peer>,
    /// Who has the file open for all.
    guest: Option<Peer>,
    layout: Layout,
    /// Its size when it was opened; `None`: only the guest knows.
    size: Option<u64>,
    serves: Serves,
}

/// What a process says before it opens, and what it keeps for itself.
struct Wish {
    amode: i32,
    scope: Scope,
    /// How to open; the error that keeps all from it.
    checked: Result<Mode>,
    /// The one at the site that the name says; `None`: it says none.
    named: Option<Opener>,
    /// Who has opened a file of this name before, by the rank among those whom all know.
    before: Option<u32>,
    path: Shown,
    sent: FilePath,
}

impl Wish {
    fn new(all: &Whereabouts<'_>, comm: &Comm, name: Result<Name>, amode: i32, scope: Scope) -> Self {
        let placed = name.and_then(|name| {
            let opener = name.site.as_deref().map(|site| Opener::at(all, comm, site));
            Ok((opener.transpose()?, name::local(&name.path)?, name.path))
        });
        let (named, checked) = match &placed {
            Ok((opener, ..)) => (*opener, Mode::new(amode)),
            Err(error) => (None, Err(error.clone())),
        };
        let (path, sent) = placed.map_or_else(|_| Default::default(), |(_, path, sent)| (path, sent));
        let asks = scope == Scope::Job && checked.is_ok() && named.is_none();
        Self {
            amode,
            scope,
            before: asks
                .then(|| homes::find(all, &sent.bytes))
                .flatten()
                // Whoever has left is not asked.
                .filter(|&before| all.are_connected(comm.group(), before)),
            checked,
            named,
            path,
            sent,
        }
    }

    /// The class of an error, what must be equal everywhere, the name, which may differ if it leads to the same file,
    /// who is to open it, and the last part of the name, which may not differ where nobody sees what it leads to.
    fn words(&self) -> [u64; 7] {
        let class = self.checked.as_ref().err().map_or(0, |error| error.class as u64);
        let scope = u64::from(self.scope == Scope::Site);
        let before = self.before.map_or(0, |rank| u64::from(rank) + 1);
        let named = self.named.map_or(0, Opener::word);
        [
            class,
            self.amode as u32 as u64,
            scope,
            before,
            digest(&self.sent),
            named,
            last_part(&self.sent),
        ]
    }

    fn encode(&self) -> Vec<u8> {
        self.words().into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// The same outcome for all from what all have said: no error anywhere, and equal arguments; then what the first
    /// process says that has opened that name before. Tells of errors in two phases.
    fn agreed(&self, all: &Whereabouts<'static>, heard: &create::Heard) -> Result<Option<u32>> {
        let (world, members, words) = (all.world(), opening(all, &heard.comm), self.words());
        let me = members.me;
        let word = |said: &[u8], at: usize| crate::group::word(said.get(8 * at..).unwrap_or_default());
        if heard.said.iter().any(|said| word(said, 0) != 0) {
            let mine = self.checked.clone().map(drop);
            let tell = |post: Post| -> task::Operation {
                Box::pin(async move { members.agree(&post, 1, mine).await.map(|()| 0) })
            };
            task::run(world, heard.comm.channel(), tell)?;
        }
        let other = |at: usize| heard.said.iter().position(|said| word(said, at) != words[at]);
        if let Some(rank) = other(1) {
            return Err(not_same("amode", rank, me));
        }
        if let Some(rank) = other(2) {
            fail!(
                abi::MPI_ERR_NOT_SAME,
                "the environment variable ISTHMUS_FILE_SCOPE must be the same on all processes, but rank {rank} has another one than rank {me}"
            );
        }
        let before = heard.said.iter().map(|said| word(said, 3)).find(|before| *before != 0);
        let before = before.and_then(|before| u32::try_from(before - 1).ok());
        Ok(before.filter(|before| *before < all.count()))
    }
}

/// What a process needs to open.
struct Wanted {
    /// All whom the processes know that open it.
    all: Whereabouts<'static>,
    comm: Arc<Comm>,
    mode: Mode,
    /// What a guest is told.
    open: Open,
    opener: Opener,
    path: Shown,
    alike: Alike,
    spans_kernels: bool,
    /// Whether it is opened by processes of several sites, or jobs.
    spans_sites: bool,
}

impl Wanted {
    fn run(self, members: Members) -> Result<Opened> {
        let (world, comm) = (self.all.world(), self.comm.clone());
        let place = Arc::new(OnceLock::new());
        let result = place.clone();
        task::run(world, comm.channel(), |post| {
            Box::pin(async move {
                let _ = result.set(self.open(&post, &members).await?);
                Ok(0)
            })
        })?;
        match Arc::into_inner(place).and_then(OnceLock::into_inner) {
            Some(opened) => Ok(opened),
            None => fail!(abi::MPI_ERR_INTERN, "it could not be opened"),
        }
    }

    /// Opens what this process sees.
    fn had(&self, is_first: bool) -> io::Result<Had> {
        Had::open(&self.path, self.mode, self.open.permissions, is_first, self.spans_sites)
    }

    /// As the opener.
    fn first(&self, me: u32, site: Option<Site<'_>>) -> Result<(Circumstances, First)> {
        match self.had(true) {
            Ok(had) => Ok((had.known, First::new(had.file, self.spans_kernels))),
            Err(what) => {
                let whose = Whose {
                    rank: me,
                    site: site.map(|site| site.name).filter(|_| Site::are_several(&self.all)),
                };
                Err(error::error("open", &self.path, whose, &what))
            }
        }
    }

    /// Two exchanges: what the opener has open; who reaches it.
    async fn open(self, post: &Post, members: &Members) -> Result<Opened> {
        let site = self.opener.peer(&self.all, &self.comm);
        let site = site.and_then(|peer| Site::of(&self.all, peer));
        let opener = match self.opener {
            Opener::Member(rank) => rank,
            Opener::Guest(guest) => return self.open_by(guest, post, members).await,
        };
        let (mut known, mut first, mut outcome) = (Circumstances::default(), None, Ok(()));
        if members.me == opener {
            match self.first(members.me, site) {
                Ok((is, file)) => (known, first) = (is, Some(file)),
                Err(error) => outcome = Err(error),
            }
        }
        let all = members.gather(post, 3, &said(first.as_ref(), known.is_allowed)).await?;
        let from_opener = Description::of(&all[opener as usize]);
        if !from_opener.is_open() {
            members.agree(post, 4, outcome).await?;
        }
        let mut disk = None;
        if members.me != opener {
            if let Ok(had) = self.had(false) {
                (known, disk) = (had.known, Some(had.file));
            }
        }
        let is_same = members.me == opener || from_opener.is_same(disk.as_ref());
        // Who cannot serve all whom the opener serves serves nobody.
        let serves = known.is_allowed || !from_opener.is_allowed;
        let own = Site::own(&self.all);
        let is_near = site.map(|site| site.lan) == own.map(|own| own.lan);
        let says = match is_same {
            true if serves => REACHES,
            true => REACHES_ALONE,
            false if self.alike.tells(is_near) => HAS_ANOTHER,
            false if site != own => IS_OUTSIDE,
            false => IS_FAR,
        };
        let all = members.words(post, 6, says).await?;
        if let Some(first) = first {
            disk = Some(first.settle());
        }
        if let Some(rank) = all.iter().position(|said| *said == HAS_ANOTHER) {
            fail!(
                abi::MPI_ERR_NOT_SAME,
                argument("filename"),
                "must name the same file on all processes, but on rank {rank} it names another one than on rank {opener}"
            );
        }
        if let Some(rank) = all
            .iter()
            .position(|said| *said == IS_OUTSIDE && !from_opener.is_allowed)
        {
            known.undo(&self.path);
            let whose = Whose {
                rank: rank as u32,
                site: site.map(|site| site.name),
            };
            return Err(allowed::outside("open", &self.path, whose));
        }
        Ok(Opened {
            serves: if known.is_allowed { Serves::All } else { Serves::Site },
            disk: disk.filter(|_| is_same),
            reach: all.iter().map(|said| Reach::of(*said)).collect(),
            opener: self.comm.group().members().get(opener as usize).copied(),
            guest: None,
            layout: from_opener.layout,
            size: Some(from_opener.size),
        })
    }

    /// Through a guest, whom rank 0 asks for all.
    async fn open_by(self, guest: u32, post: &Post, members: &Members) -> Result<Opened> {
        let done = match members.me {
            0 => calls::ask(&self.all, guest, &Call::Open(self.open)),
            _ => Ok(()),
        };
        members.agree(post, 4, done).await?;
        Ok(Opened {
            disk: None,
            reach: Reach::of_guest(members.size),
            opener: self.all.peer(guest),
            guest: self.all.peer(guest),
            layout: Layout::default(),
            size: None,
            serves: Serves::Site,
        })
    }
}

impl Reach {
    /// From what a process says.
    fn of(said: u64) -> Self {
        match said {
            REACHES => Self::ForAll,
            REACHES_ALONE => Self::Alone,
            _ => Self::Not,
        }
    }
}

/// Different names have different ones. (Fowler, Noll, Vo: FNV-1a.)
fn digest(path: &FilePath) -> u64 {
    let bytes = path.bytes.iter().copied().chain([u8::from(path.below_home)]);
    bytes.fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The same of what follows the last slash: directories are called otherwise at other sites, a file is not.
fn last_part(path: &FilePath) -> u64 {
    let bytes = path.bytes.rsplit(|byte| *byte == b'/').find(|part| !part.is_empty());
    digest(&FilePath {
        below_home: false,
        bytes: bytes.unwrap_or_default().to_vec(),
    })
}

impl File {
    /// MPI_File_open; collective. `comm` is an intracommunicator. `given`: name and hints, or what is wrong with them,
    /// of which all hear. The second value is what close needs.
    pub fn open(
        world: &'static World,
        comm: &Comm,
        given: Result<(&[u8], Info)>,
        amode: i32,
        scope: Scope,
    ) -> Result<(Arc<Self>, Option<isthmus_engine::Request>)> {
        let whose = Whose {
            rank: comm.rank(),
            site: None,
        };
        let name = given
            .as_ref()
            .map_or_else(|_| Shown::default(), |(name, _)| Shown::given(name));
        opened(world, comm, given, amode, scope).map_err(|error| error::named(error, &name, whose))
    }

    /// All pointers are at the end of the file. `known`: where that is, set before anybody is answered; `None`: only
    /// the guest knows.
    fn begin_at_end(self: &Arc<Self>, known: Option<u64>) -> Result<()> {
        let end = known.map_or_else(|| self.size(), Ok);
        if let Ok(end) = end {
            self.state().pointer = end;
            self.shared.store(end, Ordering::SeqCst);
            self.moved_shared.store(true, Ordering::Relaxed);
        }
        if known.is_none() {
            // Nobody writes before all have seen the end.
            self.processes.meet()?;
        }
        end.map(drop)
    }
}

fn opened(
    world: &'static World,
    comm: &Comm,
    given: Result<(&[u8], Info)>,
    amode: i32,
    scope: Scope,
) -> Result<(Arc<File>, Option<isthmus_engine::Request>)> {
    let plain = given.as_ref().is_ok_and(|(name, _)| name::is_plain(name));
    let (name, info) = match given {
        Ok((name, info)) => (Name::new(name, &info), info),
        Err(error) => (Err(error), Info::default()),
    };
    // A name with a site is one file all the same.
    let one = scope == Scope::Job || name.as_ref().is_ok_and(|name| name.site.is_some());
    let scope = if one { Scope::Job } else { Scope::Site };
    let known = name.as_ref().ok().filter(|_| one && plain);
    let abroad = known.and_then(|name| homes::abroad_if_alone(world, comm, &name.path.bytes));
    let comm = abroad.as_deref().unwrap_or(comm);
    let all = Whereabouts::of(world, comm);
    let wish = Wish::new(&all, comm, name, amode, scope);
    // What everybody asks for, so that nothing is created before all have come.
    let heard = create::duplicate_and_say(world, comm, &wish.encode())?;
    let before = wish.agreed(&all, &heard)?;
    let mode = wish.checked.clone()?;
    let whole = heard.comm;
    let comm = match one {
        true => whole.clone(),
        false => of_site(&all, &whole)?,
    };
    let unnamed = before.map_or(Opener::Member(0), |before| Opener::again(&all, &comm, before));
    let opener = wish.named.unwrap_or(unnamed);
    all_at_one_site(&heard.said, opener, unnamed, whole.rank())?;
    let alike = Alike::new(&heard.said, &whole, opener.peer(&all, &comm), wish.words());
    let path = wish.path;
    let kept = (one && plain).then(|| wish.sent.bytes.clone());
    let wanted = Wanted {
        mode,
        open: Open {
            amode,
            permissions: permissions(&info),
            context: comm.channel().context.number(),
            members: ranges(&all.ranks_of(comm.group())),
            path: wish.sent,
        },
        opener,
        path: path.clone(),
        alike,
        spans_kernels: spans_nodes(&all, &comm),
        spans_sites: spans_sites(&all, &comm),
        comm: comm.clone(),
        all: all.clone(),
    };
    let members = opening(&all, &comm);
    let sites = members.sites.clone();
    let opened = wanted.run(members);
    if !one {
        everywhere(&all, &whole, opened.as_ref().map(drop).map_err(Error::clone))?;
    }
    let opened = opened?;
    if let Some(path) = kept {
        remember(&all, &path, &opened);
    }
    let site = opened.opener.and_then(|peer| Site::of(&all, peer));
    let named = Particulars {
        path,
        site: site.map_or_else(String::new, |site| site.name.to_owned()),
        names_site: Site::are_several(&all),
        rank: comm.rank(),
        mode,
        serves: opened.serves,
    };
    let end = opened.size;
    let hints = Hints::of(&info).laid_out(opened.layout);
    let processes = Processes::new(world, comm, opened.guest, sites, opened.reach);
    let here = Here::new(named, opened.disk);
    let file = Arc::new(File::new(processes, here, whole.group().clone(), hints));
    let service = begin(&file, end)?;
    Ok((file, service))
}

/// Where the name is from now on. What a process of another job has opened, and this one too, is here for its own job.
fn remember(all: &Whereabouts<'_>, path: &[u8], opened: &Opened) {
    let me = all.world().me();
    let is_here = |by: &Peer| opened.disk.is_some() && all.world_of(*by) != all.world_of(me);
    if let Some(by) = opened.opener {
        homes::keep(all, path, if is_here(&by) { me } else { by });
    }
}

/// Whether the same process opens for all. `said`: by rank, [`Wish::words`]; `unnamed`: who does it where a name says
/// no site.
fn all_at_one_site(said: &[Vec<u8>], opener: Opener, unnamed: Opener, me: u32) -> Result<()> {
    let other = |said: &Vec<u8>| match crate::group::word(said.get(5 * 8..).unwrap_or_default()) {
        0 => unnamed != opener,
        named => named != opener.word(),
    };
    match said.iter().position(other) {
        None => Ok(()),
        Some(rank) => fail!(
            abi::MPI_ERR_NOT_SAME,
            argument("filename"),
            "must name the same file on all processes, but rank {rank} names one at another site than rank {me}"
        ),
    }
}

/// Sets the pointers of a file that was just opened, and answers others from now on. `end`: of the file, if that is
/// known without asking.
fn begin(file: &Arc<File>, end: Option<u64>) -> Result<Option<isthmus_engine::Request>> {
    let begins = |known: bool| file.here.mode().has(abi::MPI_MODE_APPEND) && end.is_some() == known;
    if begins(true) {
        file.begin_at_end(end)?;
    }
    let service = Service::of(file.clone()).start();
    if begins(false) {
        file.begin_at_end(None)?;
    }
    Ok(service)
}

/// Where a file is open at some sites only it is open nowhere.
fn everywhere(all: &Whereabouts<'static>, whole: &Comm, done: Result<()>) -> Result<()> {
    let members = opening(all, whole);
    let agree =
        |post: Post| -> task::Operation { Box::pin(async move { members.agree(&post, 7, done).await.map(|()| 0) }) };
    task::run(all.world(), whole.channel(), agree).map(drop)
}

/// The processes of one site, when each has a file of its own.
fn of_site(all: &Whereabouts<'_>, whole: &Comm) -> Result<Arc<Comm>> {
    let members = opening(all, whole);
    let color = members.sites.of(members.me) as i32;
    match create::split(all.world(), whole, Some(color), 0)? {
        Some(comm) => Ok(comm),
        None => fail!(
            abi::MPI_ERR_INTERN,
            "the processes of site number {color} have no communicator"
        ),
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
fn opening(all: &Whereabouts<'_>, comm: &Comm) -> Members {
    let members = comm.group().members().iter();
    Members {
        me: comm.rank(),
        size: comm.size(),
        tag: OPENING + 2,
        sites: Arc::new(Sites::new(
            members.map(|member| Site::of(all, *member).map(|site| site.lan)),
        )),
    }
}

/// Whether processes are at more than one site, or of more than one job.
fn spans_sites(all: &Whereabouts<'_>, comm: &Comm) -> bool {
    let own = Site::own(all);
    let mut members = comm.group().members().iter();
    members.any(|member| Site::of(all, *member) != own)
}

/// Whether processes are on more than one node.
fn spans_nodes(all: &Whereabouts<'_>, comm: &Comm) -> bool {
    let members = comm.group().members().iter();
    let mut nodes = members.map(|&member| all.place(member).map(|place| place.node));
    let first = nodes.next();
    nodes.any(|node| node != first.flatten())
}

const _: () = assert!(OPENING + 2 + 8 < TAGS, "opening has tags of its own");
