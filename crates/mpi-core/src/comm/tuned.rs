// SPDX-License-Identifier: Apache-2.0
//! Info hints take effect: what a communicator asks of its messages between sites is told to transports.

use std::sync::atomic::Ordering;

use isthmus_engine::{Job, TrafficTuning};

use super::Comm;
use super::traffic::tuning;
use crate::info::Info;
use crate::world::World;

/// MPI_Comm_set_info.
pub fn set_hints(world: &World, comm: &Comm, given: &Info) {
    comm.hints.add(given);
    comm.remembered.forget();
    tune(world, comm);
}

/// The hints of a communicator take effect on messages that are sent from now on.
pub(crate) fn tune(world: &World, comm: &Comm) {
    let tuning = match comm.hints().are_given() {
        true => tuning(&comm.hints().all()),
        false => TrafficTuning::default(),
    };
    // A context may have belonged to a communicator that was freed; as long as there was no hint it does not
    // matter.
    if tuning != TrafficTuning::default() {
        world.traffic_tuned().store(true, Ordering::Relaxed);
    } else if !world.traffic_tuned().load(Ordering::Relaxed) {
        return;
    }
    let context = comm.context().number();
    let mut engine = world.engine().lock();
    engine.core.tune_traffic(Job::OWN, &[context, context + 1], tuning);
}
