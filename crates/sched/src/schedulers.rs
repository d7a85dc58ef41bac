// SPDX-License-Identifier: Apache-2.0
//! The adaptors of all schedulers.

use isthmus_wire::grid::Scheduler;

use crate::adaptor::Adaptor;
use crate::{grid_engine, lsf, pbs, slurm};

/// The adaptor for a scheduler.
pub fn adaptor(scheduler: Scheduler) -> &'static dyn Adaptor {
    match scheduler {
        Scheduler::Slurm => &slurm::Slurm,
        Scheduler::GridEngine => &grid_engine::GridEngine,
        Scheduler::Pbs => &pbs::Pbs,
        Scheduler::Lsf => &lsf::Lsf,
    }
}
