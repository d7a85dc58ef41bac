// SPDX-License-Identifier: Apache-2.0
//! An open file: what all its processes agree on, and what this one knows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::group::Group;
use isthmus_core::info::Info;
use isthmus_wire::file::What;
use isthmus_wire::word::to_bytes;

use crate::access::Sieve;
use crate::asking::Ask;
use crate::group::{Members, not_same, word};
use crate::here::Here;
use crate::hints::Hints;
use crate::mode::Mode;
use crate::processes::Processes;
use crate::split::Splits;
use crate::task::{Operation, Post};
use crate::view::View;

/// What MPI_File_set_view sets.
pub(crate) struct State {
    pub(crate) view: Arc<View>,
    /// Individual pointer, etypes.
    pub(crate) pointer: u64,
    /// How often it was set, and not moved by an access.
    pub(crate) seeks: u64,
}

/// See the module.
pub struct File {
    pub(crate) processes: Processes,
    pub(crate) here: Arc<Here>,
    /// The processes that opened it; more than those of `processes` where each site has a file of its own.
    group: Group,
    pub(crate) state: Mutex<State>,
    hints: Mutex<Hints>,
    /// The shared pointer, etypes, at the process that has it.
    pub(crate) shared: AtomicU64,
    /// Whether this process has moved the shared pointer since all were at the beginning of a view.
    pub(crate) moved_shared: AtomicBool,
    pub(crate) splits: Splits,
    /// Whether this process has used the disk for others in a collective access.
    pub(crate) aggregates: AtomicBool,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "file {:?}", self.here.path())
    }
}

impl File {
    /// A file that has been opened, with nothing done to it. `group`: those that opened it.
    pub(crate) fn new(processes: Processes, here: Here, group: Group, hints: Hints) -> Self {
        Self {
            processes,
            here: Arc::new(here),
            group,
            state: Mutex::new(State {
                view: Arc::new(View::default()),
                pointer: 0,
                seeks: 0,
            }),
            hints: Mutex::new(hints),
            shared: AtomicU64::new(0),
            moved_shared: AtomicBool::new(false),
            splits: Splits::default(),
            aggregates: AtomicBool::new(false),
        }
    }

    /// The file as this process has it.
    pub fn here(&self) -> &Here {
        &self.here
    }

    /// Split operations.
    pub fn splits(&self) -> &Splits {
        &self.splits
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How reads of many pieces are put together.
    pub(crate) fn sieve(&self) -> Sieve {
        self.hints().sieve
    }

    pub(crate) fn hints(&self) -> MutexGuard<'_, Hints> {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The processes that opened it.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Hints in force.
    pub fn info(&self) -> Info {
        let hints = self.hints();
        let aggregators = self.processes.aggregators(hints.aggregators);
        let mut told = hints.told(aggregators.len() as u32);
        let [read, bytes_read, written, bytes_written] = self.here.moved();
        let [near_sent, far_sent] = self.processes.sent();
        for (key, value) in [
            ("isthmus_site", self.here.site().to_owned()),
            ("isthmus_reach", ranges(&self.processes.near())),
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

    /// Takes hints; collective. `given`: an error, if this process gave none that make sense.
    pub fn set_info(self: &Arc<Self>, given: Result<Info>) -> Result<()> {
        let said = given.as_ref().map(drop).map_err(Error::clone);
        let agree = |post, members: Members| -> Operation {
            Box::pin(async move { members.agree(&post, 0, said).await.map(|()| 0) })
        };
        self.processes.together(agree)?;
        self.hints().extend(&given?);
        Ok(())
    }

    /// MPI_File_set_atomicity; collective. A file system without locks refuses it.
    pub fn set_atomicity(self: &Arc<Self>, atomic: bool) -> Result<()> {
        let file = self.clone();
        self.processes
            .together(|post, members| {
                Box::pin(async move {
                    members.same(&post, 0, Ok([u8::from(atomic)]), "flag").await?;
                    let acts = file.here.is_reached() || file.processes.asks_guest();
                    let done = match acts {
                        true => file.act(&post, What::Atomic, atomic.into()).await,
                        false => Ok(()),
                    };
                    let agreed = members.agree(&post, 2, done).await;
                    file.here.set_atomic(atomic && agreed.is_ok());
                    agreed.map(|()| 0)
                })
            })
            .map(drop)
    }

    /// What one process does with the file for all; collective. Before and after it all have come. `argument`: an
    /// error, if this process gave none that makes sense.
    fn once(self: &Arc<Self>, what: What, argument: Result<u64>, name: &'static str) -> Result<()> {
        let file = self.clone();
        self.processes
            .together(|post, members| {
                Box::pin(async move {
                    let said = members.same(&post, 0, argument.map(u64::to_le_bytes), name).await?;
                    let done = match file.processes.is_deputy() {
                        true => file.act(&post, what, u64::from_le_bytes(said)).await,
                        false => Ok(()),
                    };
                    members.agree(&post, 2, done).await?;
                    Ok(0)
                })
            })
            .map(drop)
    }

    /// MPI_File_set_size; collective.
    pub fn set_size(self: &Arc<Self>, size: i64) -> Result<()> {
        self.once(What::SetSize, new_size(self.here.mode(), size), "size")
    }

    /// MPI_File_preallocate; collective. The file is at least that long afterwards.
    pub fn preallocate(self: &Arc<Self>, size: i64) -> Result<()> {
        self.once(What::Preallocate, new_size(self.here.mode(), size), "size")
    }

    /// MPI_File_sync; collective.
    pub fn sync(self: &Arc<Self>) -> Result<()> {
        let file = self.clone();
        self.processes
            .together(|post, members| {
                Box::pin(async move {
                    let acts = file.here.is_reached() || file.processes.asks_guest();
                    let done = match acts && file.here.mode().writes() {
                        true => file.act(&post, What::Sync, 0).await,
                        false => Ok(()),
                    };
                    members.agree(&post, 0, done).await?;
                    Ok(0)
                })
            })
            .map(drop)
    }

    /// Bytes of the file at this moment.
    pub fn size(self: &Arc<Self>) -> Result<u64> {
        if self.here.is_reached() {
            return self.here.size();
        }
        let file = self.clone();
        self.processes
            .alone(|post| Box::pin(async move { file.ask(&post, Ask::of(What::Size, 0)).await }))
    }

    /// Asks the process that does what one does for all; gives the number that it answers.
    pub(crate) async fn ask(&self, post: &Post, question: Ask<'_>) -> Result<u64> {
        let asked = question.send(post, &self.processes, self.processes.home());
        Ok(asked.answer(&self.here, 0).await?.bytes)
    }

    /// Does something to the file here, or asks a guest to do it.
    pub(crate) async fn act(&self, post: &Post, what: What, argument: u64) -> Result<()> {
        if what == What::Seek {
            self.moved_shared.store(true, Ordering::Relaxed);
        }
        match self.here.is_reached() {
            true => self.act_here(post, what, argument).await,
            false => self.ask(post, Ask::of(what, argument)).await.map(drop),
        }
    }

    /// Does something to the file, which this process reaches, or to the shared pointer, which it has.
    pub(crate) async fn act_here(&self, post: &Post, what: What, argument: u64) -> Result<()> {
        if what == What::Seek {
            self.shared.store(argument, Ordering::SeqCst);
            return Ok(());
        }
        let here = self.here.clone();
        post.disk(move || here.change(what, argument)).await
    }

    /// Moves the shared pointer; gives where it was.
    pub(crate) async fn advance_shared(&self, post: &Post, etypes: u64) -> Result<u64> {
        if etypes > 0 {
            self.moved_shared.store(true, Ordering::Relaxed);
        }
        match self.processes.rank() == self.processes.home() {
            true => Ok(self.shared.fetch_add(etypes, Ordering::SeqCst)),
            false => self.ask(post, Ask::of(What::Advance, etypes)).await,
        }
    }

    /// MPI_File_set_view; collective. The pointers go to the beginning. `made`: the view, the name of the
    /// representation that all must give, and hints, if this process's arguments make them.
    pub fn set_view(self: &Arc<Self>, made: Result<(View, &str, Info)>) -> Result<()> {
        let (view, said, hints) = match made {
            Ok((view, representation, hints)) => {
                let mut name = [0; NAME];
                for (to, from) in name.iter_mut().zip(to_bytes(representation)) {
                    *to = from;
                }
                (view, Ok(name), hints)
            }
            Err(error) => (View::default(), Err(error), Info::default()),
        };
        let said = said.map(|name| Viewed {
            name,
            unit: view.unit(),
            moved: self.moved_shared.load(Ordering::Relaxed),
        });
        let all_said = self
            .processes
            .together(|post, members| Box::pin(async move { viewed(&post, &members, said).await.map(u64::from) }))?;
        let is_moved = all_said != 0;
        self.hints().extend(&hints);
        {
            let mut state = self.state();
            state.view = Arc::new(view);
            state.pointer = 0;
            state.seeks += 1;
        }
        // Where nobody has moved the shared pointer it is there, and no second exchange is needed.
        if is_moved {
            self.reset_shared()?;
        }
        self.moved_shared.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// The shared pointer goes to the beginning; collective. Nobody uses it before its owner has set it.
    fn reset_shared(self: &Arc<Self>) -> Result<()> {
        self.shared.store(0, Ordering::SeqCst);
        let file = self.clone();
        self.processes
            .together(|post, members| {
                Box::pin(async move {
                    let done = match file.processes.asks_guest() {
                        true => file.act(&post, What::Seek, 0).await,
                        false => Ok(()),
                    };
                    members.agree(&post, 0, done).await.map(|()| 0)
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
        self.processes.comm().common_form(self.processes.world())
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
}

/// Bytes of the name of a representation that travels.
const NAME: usize = abi::MPI_MAX_DATAREP_STRING as usize;

/// What a process says that sets a view.
struct Viewed {
    /// Name of the representation, filled up with zeros.
    name: [u8; NAME],
    /// Bytes of the etype in the file.
    unit: u64,
    /// Whether it has moved the shared pointer.
    moved: bool,
}

/// All set a view, in one exchange, and must give the same name and extent. True if any of them has moved the shared
/// pointer.
async fn viewed(post: &Post, members: &Members, mine: Result<Viewed>) -> Result<bool> {
    let said = mine.map(|mine| [&mine.name[..], &mine.unit.to_le_bytes(), &[u8::from(mine.moved)]].concat());
    let told = said.as_ref().map(|said| &said[..]).map_err(Error::clone);
    let all = members.gather_all(post, 0, told, NAME + 9).await??;
    let said = said?;
    if let Some(rank) = all.iter().position(|theirs| theirs.get(..NAME) != said.get(..NAME)) {
        return Err(not_same("datarep", rank, members.me));
    }
    let extents: Vec<u64> = all
        .iter()
        .map(|theirs| word(theirs.get(NAME..).unwrap_or_default()))
        .collect();
    if extents.iter().any(|other| *other != extents[members.me as usize]) {
        fail!(
            abi::MPI_ERR_NOT_SAME,
            argument("etype"),
            "must have the same extent in the file on all processes, which give {extents:?} bytes"
        )
    }
    Ok(all.iter().any(|theirs| theirs.get(NAME + 8) != Some(&0)))
}

/// The size that a file which is open so may be given.
fn new_size(mode: Mode, size: i64) -> Result<u64> {
    if !mode.writes() {
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
