// SPDX-License-Identifier: Apache-2.0
//! Sessions, and process sets (MPI 5.0 section 11.3): named groups of processes from which sessions make communicators.
//!
//! ```text
//!  mpi://WORLD               all processes of the job
//!  mpi://SELF                this process
//!  isthmus://site/NAME       the machines of one local area
//!  isthmus://machine/NAME    one machine
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use isthmus_abi::constants as abi;

use crate::attached::Attachment;
use crate::errhandler::ErrorHandler;
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::info::Info;
use crate::world::World;

/// What a session has of its own. The process underneath is common to all.
pub struct Session {
    handler: Mutex<ErrorHandler>,
    info: Info,
    buffer: Arc<Attachment>,
}

impl Session {
    /// A session with these hints in use.
    pub fn new(handler: ErrorHandler, info: Info) -> Self {
        Self {
            handler: Mutex::new(handler),
            info,
            buffer: Arc::default(),
        }
    }

    /// What becomes of errors.
    pub fn error_handler(&self) -> ErrorHandler {
        self.handler.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets what becomes of errors.
    pub fn set_error_handler(&self, handler: ErrorHandler) {
        *self.handler.lock().unwrap_or_else(PoisonError::into_inner) = handler;
    }

    /// Where a buffer of buffered mode can be attached: for communicators that come from this session.
    pub fn buffer(&self) -> &Arc<Attachment> {
        &self.buffer
    }

    /// Hints in use (MPI_Session_get_info).
    pub fn info(&self) -> &Info {
        &self.info
    }
}

const SITE: &str = "isthmus://site/";
const MACHINE: &str = "isthmus://machine/";

/// Names of the process sets that this process is a member of.
pub fn process_sets(world: &World) -> Vec<String> {
    let places = world.places();
    let machine = &places.subjobs[places.places[world.rank() as usize].subjob as usize];
    vec![
        "mpi://WORLD".to_owned(),
        "mpi://SELF".to_owned(),
        format!("{SITE}{}", machine.lan),
        format!("{MACHINE}{}", machine.name),
    ]
}

/// The members of a process set; `None` if there is none of this name.
pub fn process_set(world: &World, name: &str) -> Option<Group> {
    // The standard's own names are the same in small letters.
    if name.eq_ignore_ascii_case("mpi://WORLD") {
        return Some(world.group_of(0..world.size()));
    }
    if name.eq_ignore_ascii_case("mpi://SELF") {
        return Some(world.group_of([world.rank()]));
    }
    let places = world.places();
    let (lan, machine) = (name.strip_prefix(SITE), name.strip_prefix(MACHINE));
    let belongs = |&rank: &u32| {
        let subjob = &places.subjobs[places.places[rank as usize].subjob as usize];
        lan == Some(&subjob.lan) || machine == Some(&subjob.name)
    };
    let members: Vec<u32> = (0..world.size()).filter(belongs).collect();
    (!members.is_empty()).then(|| world.group_of(members))
}

/// As [`process_set`], for an argument.
pub fn find_process_set(world: &World, name: &str) -> Result<Group> {
    match process_set(world, name) {
        Some(group) => Ok(group),
        None => fail!(
            abi::MPI_ERR_ARG,
            "there is no process set '{name}'; this process is in {}",
            process_sets(world).join(", ")
        ),
    }
}

/// MPI_Session_get_pset_info.
pub fn process_set_info(world: &World, name: &str) -> Result<Info> {
    let mut info = Info::default();
    info.set("mpi_size", &find_process_set(world, name)?.size().to_string())?;
    Ok(info)
}
