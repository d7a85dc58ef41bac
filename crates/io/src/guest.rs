// SPDX-License-Identifier: Apache-2.0
//! What a guest has: a file that is open here for processes that are all elsewhere.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use isthmus_abi::constants as abi;
use isthmus_core::comm::Whereabouts;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_engine::Peer;
use isthmus_wire::file::Open;

use crate::allowed;
use crate::error::Whose;
use crate::file::File;
use crate::here::{Here, Particulars, Serves};
use crate::hints::Hints;
use crate::mode::Mode;
use crate::name::{self, Site};
use crate::processes::Processes;

impl File {
    /// As a guest of those who open: has the file open for them. Their ranks are those among `all`.
    pub(crate) fn hosted(all: &Whereabouts<'static>, open: &Open) -> Result<Arc<Self>> {
        let world = all.world();
        let mode = Mode::new(open.amode)?;
        let path = name::local(&open.path)?;
        let site = Site::own(all).map_or("", |site| site.name);
        let whose = Whose {
            rank: world.rank(),
            site: Some(site),
        };
        let ranks = open
            .members
            .iter()
            .flat_map(|&(first, count)| first..first.saturating_add(count));
        let hosts: Option<Vec<Peer>> = ranks
            .take(all.count() as usize + 1)
            .map(|rank| all.peer(rank))
            .collect();
        let Some(hosts) = hosts.filter(|hosts| !hosts.is_empty()) else {
            fail!(abi::MPI_ERR_INTERN, "processes that are not known there open it")
        };
        // Nothing is made for those who may not have it.
        let disk =
            allowed::open(&path, mode, open.permissions, true).map_err(|refused| refused.told("open", &path, whose))?;
        let processes = Processes::hosted(world, all.of_guest(&hosts, open.context));
        let known = Particulars {
            path,
            site: site.to_owned(),
            names_site: Site::are_several(all),
            rank: world.rank(),
            mode,
            serves: Serves::Others,
        };
        let group = processes.comm().group().clone();
        let file = Self::new(processes, Here::new(known, Some(disk)), group, Hints::default());
        if mode.has(abi::MPI_MODE_APPEND) {
            file.shared.store(file.here.size()?, Ordering::SeqCst);
        }
        Ok(Arc::new(file))
    }
}
