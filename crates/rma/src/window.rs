// SPDX-License-Identifier: Apache-2.0
//! A window: what one of its processes knows of it.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::comm::Comm;
use isthmus_core::error::{Error, Result, Subject};
use isthmus_core::fail;
use isthmus_core::group::Group;
use isthmus_core::info::Info;
use isthmus_core::world::World;
use isthmus_datatype::Representation;
use isthmus_datatype::raw::{Promised, WriteMemory};
use isthmus_engine::{Reach, with_port};
use isthmus_wire::frame::protocol;

use crate::counted::Counted;
use crate::epoch::Epoch;
use crate::hints::Hints;
use crate::partners::Partners;
use crate::parts::{Part, Parts};
use crate::regions::Attached;
use crate::sent::{Far, Sent};
use crate::shareable::Mapping;
use crate::store::Store;

/// How a window was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// Of memory that the program had (MPI_Win_create).
    Create,
    /// With memory (MPI_Win_allocate).
    Allocate,
    /// With memory that all processes see (MPI_Win_allocate_shared).
    Shared,
    /// Without memory; it is attached later (MPI_Win_create_dynamic).
    Dynamic,
}

impl Flavor {
    pub(crate) const ALL: [Self; 4] = [Self::Create, Self::Allocate, Self::Shared, Self::Dynamic];

    /// Value of the attribute MPI_WIN_CREATE_FLAVOR.
    pub fn value(self) -> i32 {
        match self {
            Self::Create => abi::MPI_WIN_FLAVOR_CREATE,
            Self::Allocate => abi::MPI_WIN_FLAVOR_ALLOCATE,
            Self::Shared => abi::MPI_WIN_FLAVOR_SHARED,
            Self::Dynamic => abi::MPI_WIN_FLAVOR_DYNAMIC,
        }
    }

    /// Whether the window brings its memory.
    pub(crate) fn allocates(self) -> bool {
        matches!(self, Self::Allocate | Self::Shared)
    }

    /// The function that makes such a window.
    pub(crate) fn function(self) -> &'static str {
        match self {
            Self::Create => "MPI_Win_create",
            Self::Allocate => "MPI_Win_allocate",
            Self::Shared => "MPI_Win_allocate_shared",
            Self::Dynamic => "MPI_Win_create_dynamic",
        }
    }
}

/// See the module.
pub struct Window {
    pub(crate) world: &'static World,
    /// A duplicate of the program's communicator, so that nothing of ours meets anything of its.
    pub(crate) comm: Arc<Comm>,
    pub(crate) flavor: Flavor,
    pub(crate) parts: Parts,
    pub(crate) store: Store,
    /// The part of this process. If all parts on the node are mapped here, these bytes go on to all of them.
    pub(crate) own: WriteMemory,
    /// For what is mapped later.
    pub(crate) promise: Promised,
    /// They are.
    pub(crate) shares: bool,
    /// Members represent data differently.
    pub(crate) unlike: bool,
    /// The job goes on when it loses processes.
    pub(crate) goes_on: bool,
    pub(crate) epochs: Epoch,
    pub(crate) counted: Counted,
    /// If it has members on other nodes.
    pub(crate) far: Option<Far>,
    pub(crate) seldom: Lazy,
}

/// Made when it is needed: programs have thousands of windows.
#[derive(Default)]
pub(crate) struct Lazy(OnceLock<Box<Seldom>>);

impl Deref for Lazy {
    type Target = Seldom;

    fn deref(&self) -> &Seldom {
        self.0.get_or_init(Box::default)
    }
}

impl Lazy {
    /// What has been needed.
    #[inline]
    pub(crate) fn made(&self) -> Option<&Seldom> {
        self.0.get().map(|made| &**made)
    }

    /// With hints, if there are any.
    pub(crate) fn with(hints: Hints) -> Self {
        if hints.is_empty() {
            return Self::default();
        }
        let hints = Mutex::new(hints);
        let rest = Seldom::default();
        Self(Box::new(Seldom { hints, ..rest }).into())
    }
}

/// What only some windows need.
#[derive(Default)]
pub(crate) struct Seldom {
    /// How the memory of others is reached that the window has not brought: of those that were asked for.
    pub(crate) reaches: Mutex<BTreeMap<u32, Arc<dyn Reach>>>,
    /// What of it is mapped here.
    pub(crate) mapped: Mutex<BTreeMap<u32, Mapping>>,
    pub(crate) attached: Attached,
    pub(crate) partners: Partners,
    pub(crate) hints: Mutex<Hints>,
    /// What members on other nodes were sent, once it was anything.
    sent: OnceLock<Box<Mutex<Sent>>>,
    /// What the program calls the window; nothing at first.
    name: Mutex<String>,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Window {
    /// Rank of this process.
    pub fn rank(&self) -> u32 {
        self.comm.rank()
    }

    /// Its processes.
    pub fn group(&self) -> &Group {
        self.comm.group()
    }

    /// How it was made.
    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// Where the part of this process begins; 0: it has none.
    pub fn base(&self) -> usize {
        match self.flavor {
            Flavor::Dynamic => 0,
            _ => self.own.address(),
        }
    }

    /// Bytes of the part of this process.
    pub fn size(&self) -> u64 {
        self.part().size
    }

    /// Bytes of a displacement at this process.
    pub fn unit(&self) -> u64 {
        self.part().unit
    }

    /// The memory of this process.
    pub fn own_memory(&self) -> WriteMemory {
        self.own.part(0, self.size() as usize)
    }

    /// How messages about it name it.
    pub fn context_number(&self) -> u32 {
        self.comm.channel().context.number()
    }

    pub(crate) fn part(&self) -> Part {
        self.parts.get(self.comm.rank())
    }

    /// Changes hints.
    pub fn set_info(&self, given: &Info) -> Result<()> {
        let mut hints = locked(&self.seldom.hints);
        *hints = hints.clone().later(given)?;
        Ok(())
    }

    /// All hints that are known, with what is in force.
    pub fn info(&self) -> Result<Info> {
        match self.seldom.made() {
            Some(seldom) => locked(&seldom.hints).all(),
            None => Hints::default().all(),
        }
    }

    /// What the program calls it from now on.
    pub fn set_name(&self, name: &str) {
        name.clone_into(&mut locked(&self.seldom.name));
    }

    /// What the program calls it.
    pub fn name(&self) -> String {
        let seldom = self.seldom.made();
        seldom.map_or_else(String::new, |seldom| locked(&seldom.name).clone())
    }

    /// An error of a call on this window, which tells what window that is.
    pub fn named(&self, error: &Error) -> Error {
        if error.subject == Subject::Named {
            return error.clone();
        }
        let name = self.name();
        let window = if name.is_empty() {
            format!("a window of {} processes", self.comm.size())
        } else {
            format!("window \"{name}\"")
        };
        // A loss that this process finds itself is the same to the program as one that it is told of.
        let class = match error.class {
            abi::MPIX_ERR_PROC_FAILED if !self.goes_on => abi::MPI_ERR_OTHER,
            class => class,
        };
        Error::named(class, format!("rank {}, {window}: {error}", self.comm.rank()))
    }

    /// The process that an argument names; `None`: MPI_PROC_NULL.
    #[inline]
    pub(crate) fn target(&self, argument: &str, rank: i32) -> Result<Option<u32>> {
        match u32::try_from(rank) {
            Ok(rank) if (rank as usize) < self.parts.count() => Ok(Some(rank)),
            _ if rank == abi::MPI_PROC_NULL => Ok(None),
            _ => fail!(
                abi::MPI_ERR_RANK,
                argument(argument),
                "is {rank}, but the ranks of the window are 0 to {}",
                self.parts.count() - 1
            ),
        }
    }

    /// Whether a member is on another node.
    pub(crate) fn is_far(&self, rank: u32) -> bool {
        self.far.as_ref().is_some_and(|far| !far.is_near(rank))
    }
}

/// What members on other nodes were sent.
pub(crate) fn sent_of(window: &Window) -> MutexGuard<'_, Sent> {
    locked(window.seldom.sent.get_or_init(Box::default))
}

/// How a member represents data, if differently.
pub(crate) fn form_of(window: &Window, rank: u32) -> Option<Representation> {
    if !window.unlike {
        return None;
    }
    let peer = window.comm.channel().members.peer(rank);
    let mut engine = window.world.engine().lock();
    let form = with_port(&mut engine, protocol::RMA, |port| port.representation(peer));
    (form != Representation::LOCAL).then_some(form)
}
