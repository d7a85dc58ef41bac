// SPDX-License-Identifier: Apache-2.0
//! A communicator is revoked: what is pending on it here ends. What comes for it later finds nobody, and what is
//! started later is refused where [`Special`](crate::Special) is read.

use isthmus_protocol::matching::Context;

use crate::EngineError;
use crate::base::requests::NONE;
use crate::p2p::cancel::cancel;
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

/// The receiver knows whether it has matched the message, and is asked, as for cancelling: a message that it has begun
/// to take arrives, and it does not wait for one that does not come.
fn end_send(core: &mut Core, index: u32, context: Context) {
    let slot = core.state.requests.slot(index);
    let waits = slot.owner() == NONE && !slot.done();
    let ends = match slot.task() {
        Task::Send(task) => {
            let of_it = task.header.context & !BESIDE == context.number();
            of_it && !task.has_begun_in_parts() && !matches!(task.stage, SendStage::Streaming | SendStage::Bulk)
        }
        _ => false,
    };
    if waits && ends {
        core.state.requests.slot_mut(index).completion_mut().error = Some(EngineError::Revoked);
        let request = core.state.requests.name(index);
        cancel(core, request);
    }
}
