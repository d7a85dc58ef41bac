// SPDX-License-Identifier: Apache-2.0
//! Members of which nothing comes, and what is asked of others.

use isthmus_schedule::step::Action;
use isthmus_transport::Peer;

use super::{Execution, StepState};
use crate::base::requests::NONE;

/// From now on nothing is expected of a member. Returns the steps that wait for it, with their requests.
#[cold]
pub(crate) fn expect_nothing_of(execution: &mut Execution, member: u32) -> Vec<(u32, u32)> {
    execution.silent.push(member);
    waits_for(execution, member)
}

/// Whether nothing comes of a member.
#[inline]
pub(crate) fn is_silent(execution: &Execution, member: u32) -> bool {
    execution.silent.contains(&member)
}

/// Steps that receive of a member, with their requests.
#[cold]
pub(crate) fn waits_for(execution: &Execution, member: u32) -> Vec<(u32, u32)> {
    let receives = |state: &StepState| match state.action {
        Action::Receive { from, .. } | Action::Forward { from, .. } => from == member && state.request != NONE,
        _ => false,
    };
    let waiting = execution.window.iter().zip(execution.base..);
    waiting
        .filter(|(state, _)| receives(state))
        .map(|(state, step)| (step, state.request))
        .collect()
}

/// A peer that was asked has answered, and may be asked again; its rank. `None`: it was not asked.
#[cold]
pub(crate) fn has_answered(execution: &mut Execution, peer: Peer) -> Option<u32> {
    let members = &execution.channel.members;
    let at = execution.asked.iter().position(|&rank| members.names(rank, peer))?;
    Some(execution.asked.swap_remove(at))
}
