// SPDX-License-Identifier: Apache-2.0
//! An open file: what all its processes agree on, and what this one knows.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::comm::Comm;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::group::Group;
use isthmus_core::info::Info;
use isthmus_core::world::World;
use isthmus_engine::{Channel, Request};
use isthmus_wire::file::What;
use rustix::fs::{FlockOperation, flock};

use crate::disk::Own;
use crate::error::{self, Whose};
use crate::group::{Members, Sites, TAGS};
use crate::hints::Hints;
use crate::mode::Mode;
use crate::name::{Shown, Site};
use crate::task::{self, Operation, Port};
use crate::view::View;

/// What MPI_File_set_view sets.
pub(crate) struct State {
    pub(crate) view: Arc<View>,
    /// Individual pointer, etypes.
    pub(crate) pointer: u64,
}

/// Which split collective operation is active, by the name of its functions: `read_all` and the like.
#[derive(Debug)]
pub(crate) struct Split {
    pub(crate) name: &'static str,
    pub(crate) request: Request,
}

/// See the module.
pub struct File {
    pub(crate) world: &'static World,
    /// A duplicate of the program's communicator, so that nothing of ours meets anything of its. With a guest behind
    /// its processes, if none of them is where the file is.
    pub(crate) comm: Arc<Comm>,
    /// What it is a duplicate with a guest of.
    pub(crate) _own: Arc<Comm>,
    /// Its processes without a guest.
    pub(crate) size: u32,
    /// The processes that opened it; more than those of `comm` where each site has a file of its own.
    pub(crate) group: Group,
    /// Who is where.
    pub(crate) sites: Arc<Sites>,
    pub(crate) path: Shown,
    pub(crate) mode: Mode,
    /// `None`: this process does not reach the file; others do it for it.
    pub(crate) disk: Option<Arc<Own>>,
    /// Which processes reach the file. The first of them has the shared pointer.
    pub(crate) reach: Vec<bool>,
    /// Site where they are, for errors.
    pub(crate) site: String,
    /// Messages and bytes that this process has sent for accesses: inside its site, and to other sites.
    pub(crate) told: [[AtomicU64; 2]; 2],
    pub(crate) state: Mutex<State>,
    pub(crate) hints: Mutex<Hints>,
    /// Of collective operations, for their tags.
    pub(crate) sequence: AtomicU32,
    /// Of questions, for the tags of their answers.
    pub(crate) questions: AtomicU32,
    /// The shared pointer, etypes, at the process that has it.
    pub(crate) shared: AtomicU64,
    pub(crate) atomic: AtomicBool,
    /// Between threads of this process, where the system's lock does not tell them apart.
    pub(crate) atoms: Mutex<()>,
    pub(crate) split: Mutex<Option<Split>>,
    /// Whether this process has used the disk for others in a collective access.
    pub(crate) aggregates: AtomicBool,
}

/// Kept while an access in atomic mode lasts.
pub(crate) struct Atom<'a> {
    file: &'a File,
    _threads: MutexGuard<'a, ()>,
}

impl Drop for Atom<'_> {
    fn drop(&mut self) {
        if let Some(disk) = &self.file.disk {
            let _ = flock(&***disk, FlockOperation::Unlock);
        }
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "file {:?}", self.path)
    }
}

impl File {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hints(&self) -> MutexGuard<'_, Hints> {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn rank(&self) -> u32 {
        self.comm.rank()
    }

    /// The process that has the shared pointer and does what one does for all.
    pub(crate) fn home(&self) -> u32 {
        self.reach.iter().position(|reaches| *reaches).unwrap_or(0) as u32
    }

    /// A process that none of those is which opened the file: it has the file open for them.
    pub(crate) fn guest(&self) -> Option<u32> {
        (self.comm.size() > self.size).then_some(self.size)
    }

    /// Whether this process is one.
    pub(crate) fn is_guest(&self) -> bool {
        self.guest() == Some(self.rank())
    }

    /// The process that does, or asks a guest to do, what one does for all.
    pub(crate) fn deputy(&self) -> u32 {
        if self.guest().is_some() { 0 } else { self.home() }
    }

    /// Counts a message.
    pub(crate) fn count(&self, to: u32, bytes: usize) {
        if to == self.rank() {
            return;
        }
        let far = self.guest().is_some() || self.sites.of(to) != self.sites.of(self.rank());
        let [messages, sum] = &self.told[usize::from(far)];
        messages.fetch_add(1, Ordering::Relaxed);
        sum.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether some processes do not reach the file.
    pub(crate) fn has_far(&self) -> bool {
        self.reach.contains(&false)
    }

    /// The access mode that it was opened with.
    pub fn amode(&self) -> i32 {
        self.mode.bits()
    }

    /// The processes that opened it.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Whether accesses that conflict are done one after the other.
    pub fn is_atomic(&self) -> bool {
        self.atomic.load(Ordering::Relaxed)
    }

    /// Hints in force.
    pub fn info(&self) -> Info {
        let hints = self.hints();
        let aggregators = self.aggregators(hints.aggregators);
        let mut told = hints.told(aggregators.len() as u32);
        let near: Vec<u32> = (0..self.size).filter(|rank| self.reach[*rank as usize]).collect();
        let [read, bytes_read, written, bytes_written] = self.disk.as_ref().map_or([0; 4], |disk| disk.moved());
        let [near_sent, far_sent] = self
            .told
            .each_ref()
            .map(|level| level.each_ref().map(|number| number.load(Ordering::Relaxed)));
        for (key, value) in [
            ("isthmus_site", self.site.clone()),
            ("isthmus_reach", ranges(&near)),
            ("isthmus_aggregators", ranges(&aggregators)),
            ("isthmus_disk_reads", format!("{read} calls, {bytes_read} bytes")),
            ("isthmus_disk_writes", format!("{written} calls, {bytes_written} bytes")),
            (
                "isthmus_sent_near",
                format!("{} messages, {} bytes", near_sent[0], near_sent[1]),
            ),
            (
                "isthmus_sent_far",
                format!("{} messages, {} bytes", far_sent[0], far_sent[1]),
            ),
        ] {
            // Longer than a value may be only where hundreds of ranges are.
            let _ = told.set(key, &value);
        }
        told
    }

    /// Takes hints; collective.
    pub fn set_info(&self, given: &Info) {
        self.hints().extend(given);
    }

    /// Those that use the disk in collective operations. Without a wish one for each node that reaches the file, on one
    /// node alone all of them, at most eight. For processes of other sites one for each node: the more connections
    /// share a link, the worse each gets on.
    pub(crate) fn aggregators(&self, wanted: u32) -> Vec<u32> {
        let near: Vec<u32> = (0..self.size).filter(|rank| self.reach[*rank as usize]).collect();
        let mut seen = Vec::new();
        let mut first = Vec::new();
        for &rank in &near {
            if !seen.contains(&node_of(self, rank)) {
                seen.push(node_of(self, rank));
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

    pub(crate) fn channel(&self) -> &Channel {
        self.comm.channel()
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
    pub(crate) fn together(&self, operation: impl FnOnce(Port, Members) -> Operation) -> Result<u64> {
        let members = self.members();
        task::run(self.world, self.channel(), |port| operation(port, members))
    }

    /// The file as the system has it.
    pub(crate) fn disk(&self) -> Result<Arc<Own>> {
        match &self.disk {
            Some(disk) => Ok(disk.clone()),
            None => fail!(abi::MPI_ERR_INTERN, "this process does not reach it"),
        }
    }

    /// A system error of an access.
    pub(crate) fn failed(&self, doing: &str, what: &io::Error) -> Error {
        error::error(doing, &self.path, whose(self), what)
    }

    /// An error of this file with its name, this rank, and the site, if it does not have them.
    #[must_use]
    pub fn named(&self, error: Error) -> Error {
        error::named(error, &self.path, whose(self))
    }

    /// A message of another process that makes no sense.
    pub(crate) fn garbled(&self, what: &dyn std::fmt::Display) -> Error {
        self.named(Error::new(
            abi::MPI_ERR_INTERN,
            format!("a message about it makes no sense: {what}"),
        ))
    }

    /// In atomic mode, the right to access the file: for all processes of all jobs, by the system's lock of the whole
    /// file.
    pub(crate) fn atom(&self, writes: bool) -> Result<Option<Atom<'_>>> {
        if !self.is_atomic() {
            return Ok(None);
        }
        // Readers of one process, too, come one after the other: they share its lock, and the first to end would give
        // it up for all.
        let threads = self.atoms.lock().unwrap_or_else(PoisonError::into_inner);
        let operation = if writes {
            FlockOperation::LockExclusive
        } else {
            FlockOperation::LockShared
        };
        self.lock(operation).map_err(|error| self.failed("lock", &error))?;
        Ok(Some(Atom {
            file: self,
            _threads: threads,
        }))
    }

    pub(crate) fn lock(&self, operation: FlockOperation) -> io::Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        loop {
            match flock(&***disk, operation) {
                Err(rustix::io::Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    /// MPI_File_set_atomicity; collective. A file system without locks refuses it.
    pub fn set_atomicity(self: &Arc<Self>, atomic: bool) -> Result<()> {
        let file = self.clone();
        self.together(|port, members| {
            Box::pin(async move {
                members.same(&port, 0, &[u8::from(atomic)], "flag").await?;
                let acts = file.disk.is_some() || file.guest().is_some() && file.rank() == file.deputy();
                let done = match acts {
                    true => file.act(&port, What::Atomic, atomic.into()).await,
                    false => Ok(()),
                };
                let agreed = members.agree(&port, 1, done).await;
                file.atomic.store(atomic && agreed.is_ok(), Ordering::Relaxed);
                agreed.map(|()| 0)
            })
        })
        .map(drop)
    }

    /// What one process does with the file for all; collective. Before and after it all have come.
    fn once(self: &Arc<Self>, what: What, argument: u64, name: &'static str) -> Result<()> {
        let file = self.clone();
        self.together(|port, members| {
            Box::pin(async move {
                members.same(&port, 0, &argument.to_le_bytes(), name).await?;
                let done = match file.rank() == file.deputy() {
                    true => file.act(&port, what, argument).await,
                    false => Ok(()),
                };
                members.agree(&port, 1, done).await?;
                Ok(0)
            })
        })
        .map(drop)
    }

    fn size_argument(&self, size: i64) -> Result<u64> {
        if !self.mode.writes() {
            fail!(abi::MPI_ERR_READ_ONLY, "it was opened with MPI_MODE_RDONLY");
        }
        match u64::try_from(size) {
            Ok(size) => Ok(size),
            Err(_) => fail!(
                abi::MPI_ERR_ARG,
                argument("size"),
                "is {size}, a size must not be negative"
            ),
        }
    }

    /// MPI_File_set_size; collective.
    pub fn set_size(self: &Arc<Self>, size: i64) -> Result<()> {
        let size = self.size_argument(size)?;
        self.once(What::SetSize, size, "size")
    }

    /// MPI_File_preallocate; collective. The file is at least that long afterwards.
    pub fn preallocate(self: &Arc<Self>, size: i64) -> Result<()> {
        let size = self.size_argument(size)?;
        self.once(What::Preallocate, size, "size")
    }

    /// MPI_File_sync; collective.
    pub fn sync(self: &Arc<Self>) -> Result<()> {
        let file = self.clone();
        self.together(|port, members| {
            Box::pin(async move {
                let acts = file.disk.is_some() || file.guest().is_some() && file.rank() == file.deputy();
                let done = match acts && file.mode.writes() {
                    true => file.act(&port, What::Sync, 0).await,
                    false => Ok(()),
                };
                members.agree(&port, 0, done).await?;
                Ok(0)
            })
        })
        .map(drop)
    }

    /// Bytes of the file at this moment.
    pub fn size(self: &Arc<Self>) -> Result<u64> {
        match &self.disk {
            Some(disk) => match disk.metadata() {
                Ok(known) => Ok(known.len()),
                Err(error) => Err(self.failed("find the size of", &error)),
            },
            None => self.ask_size(),
        }
    }

    /// MPI_File_set_view; collective. The pointers go to the beginning. `made`: the view, if this process's
    /// arguments make one; `representation`: the name that all must give.
    pub fn set_view(self: &Arc<Self>, made: Result<View>, representation: &str) -> Result<()> {
        let view = match made {
            Ok(view) => view,
            Err(error) => {
                // The others have to hear that there is no view.
                let failed = self.together(|port, members| {
                    Box::pin(async move {
                        members.agree(&port, 0, Err(error)).await?;
                        Ok(0)
                    })
                });
                return failed.map(drop);
            }
        };
        let mut name = representation.as_bytes().to_vec();
        name.resize(abi::MPI_MAX_DATAREP_STRING as usize, 0);
        let unit = view.unit();
        self.together(|port, members| {
            Box::pin(async move {
                members.agree(&port, 0, Ok(())).await?;
                members.same(&port, 2, &name, "datarep").await?;
                let extents = members.words(&port, 3, unit).await?;
                match extents.iter().all(|other| *other == unit) {
                    true => Ok(0),
                    false => fail!(
                        abi::MPI_ERR_NOT_SAME,
                        argument("etype"),
                        "must have the same extent in the file on all processes, which give {extents:?} bytes"
                    ),
                }
            })
        })?;
        *self.state() = State {
            view: Arc::new(view),
            pointer: 0,
        };
        // Nobody uses the shared pointer before its owner has set it.
        self.shared.store(0, Ordering::SeqCst);
        let told = match self.guest().is_some() && self.rank() == self.deputy() {
            true => self.alone(|file, port| Box::pin(async move { file.act(&port, What::Seek, 0).await.map(|()| 0) })),
            false => Ok(0),
        };
        self.meet()?;
        told.map(drop)
    }

    /// Does something without the others, and waits.
    pub(crate) fn alone(self: &Arc<Self>, operation: impl FnOnce(Arc<Self>, Port) -> Operation) -> Result<u64> {
        let file = self.clone();
        task::run(self.world, self.channel(), |port| operation(file, port))
    }

    /// Returns when all have come; collective.
    pub(crate) fn meet(&self) -> Result<()> {
        self.together(|port, members| {
            Box::pin(async move {
                members.words(&port, 0, 0).await?;
                Ok(0)
            })
        })
        .map(drop)
    }

    /// The view in force.
    pub fn view(&self) -> Arc<View> {
        self.state().view.clone()
    }

    /// The representation that all processes of the file have in common; `None`: they represent data alike.
    pub fn common_form(&self) -> Option<isthmus_datatype::Representation> {
        self.comm.common_form(self.world)
    }

    /// Byte of the file where the shared pointer is: MPI_DISPLACEMENT_CURRENT.
    pub fn shared_byte(self: &Arc<Self>) -> Result<u64> {
        let at = self.position_shared()?;
        let view = self.view();
        match at.checked_mul(view.unit()).and_then(|at| view.place(at)) {
            Some(place) => Ok(place),
            None => fail!(abi::MPI_ERR_DISP, "its shared pointer has no place in a file"),
        }
    }

    /// Whether data may be written through a view of it.
    pub fn writes(&self) -> bool {
        self.mode.writes()
    }

    /// Whether it was opened with MPI_MODE_SEQUENTIAL.
    pub fn is_sequential(&self) -> bool {
        self.mode.has(abi::MPI_MODE_SEQUENTIAL)
    }
}

/// This process and the file's site, for errors.
fn whose(file: &File) -> Whose<'_> {
    Whose {
        rank: if file.is_guest() {
            file.world.rank()
        } else {
            file.rank()
        },
        site: Site::are_several(file.world).then_some(&*file.site),
    }
}

/// Number of the node of a process.
pub(crate) fn node_of(file: &File, rank: u32) -> Option<u32> {
    let peer = *file.comm.group().members().get(rank as usize)?;
    file.world.place_of(peer).map(|place| place.node)
}

/// Ranks, in order, as people write them: `0-3,8`.
fn ranges(ranks: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => parts.push((rank, rank)),
        }
    }
    let shown = parts.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(",")
}

/// Tries again what a signal interrupted.
pub(crate) fn again<T>(mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
