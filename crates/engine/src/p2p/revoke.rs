// SPDX-License-Identifier: Apache-2.0
//! A communicator is revoked: what is pending on it here ends. What comes for it later finds nobody, and what is
//! started later is refused where [`Special`](crate::Special) is read.

use isthmus_protocol::matching::Context;

use crate::EngineError;
use crate::base::requests::NONE;
use crate::p2p::cancel::throw_own_send;
use crate::p2p::state::withdraw;
use crate::p2p::{Core, SendStage, Task};

/// Contexts beside that of a communicator, of what it carries besides messages of the program.
const BESIDE: u32 = 1 << 31 | 1;

/// Messages of a communicator whose matching has not begun end. Those that are under way arrive: both sides have agreed
/// on that, and nobody else is waited for.
pub(crate) fn end_messages(core: &mut Core, context: Context) {
    let posted = core.state.matcher.posted();
    let receives: Vec<u32> = posted
        .filter(|(pattern, _)| is_of(pattern.context, context))
        .map(|(_, &index)| index)
        .collect();
    for index in receives {
        if withdraw(&mut core.state, index) {
            core.state.fail(index, EngineError::Revoked);
        }
    }
    for index in core.state.requests.indices() {
        end_send(core, index, context);
    }
    core.state.events += 1;
}

fn is_of(other: Context, context: Context) -> bool {
    other.world() == context.world() && other.number() & !BESIDE == context.number()
}

fn end_send(core: &mut Core, index: u32, context: Context) {
    let slot = core.state.requests.slot(index);
    let waits = slot.owner() == NONE && !slot.done();
    let peer = match slot.task() {
        Task::Send(task) if waits && task.header.context & !BESIDE == context.number() => task.peer,
        _ => return,
    };
    let token = core.state.requests.token(index);
    let own = core.state.is_own(peer);
    let Some(task) = core.state.requests.send(index) else {
        return;
    };
    if matches!(task.stage, SendStage::Streaming | SendStage::Bulk) {
        return;
    }
    let (offered, waiting) = (task.offered, task.stage == SendStage::Waiting);
    match own {
        true => throw_own_send(core, index),
        false => {
            if waiting {
                core.state.unanswered.abandoned(token, peer);
            }
            if let Some(queue) = core.state.outgoing.get_mut(&peer) {
                queue.messages.retain(|&i| i != index);
            }
        }
    }
    if offered {
        // The program has its memory back: nobody copies out of it any more.
        let route = core.state.peers[peer].route();
        core.transports[usize::from(route)].revoke();
    }
    core.state.fail(index, EngineError::Revoked);
}
