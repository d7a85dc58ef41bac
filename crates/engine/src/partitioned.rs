// SPDX-License-Identifier: Apache-2.0
//! Partitioned communication (MPI 5.0 chapter 4): one message whose parts leave as they become ready.
//!
//! Senders and receivers are matched in the order of their initialization. So MPI_Psend_init tells the receiver at once
//! under which name its messages will come, in a message that carries the user's tag in a context of its own; the name
//! is the tag of the messages themselves:
//!
//! ```text
//!  Psend_init   Setup(name)  -> context | 2^31,      tag: the user's  ->  Precv_init
//!  Start        Rts(length)  -> context | 2^31 + 1,  tag: the name    ->  Start
//!               Cts          <-
//!  Pready       Data(offset) ->                                           Parrived
//! ```
//! Both sides cut the message as they like: what travels are ranges of bytes.

use isthmus_datatype::raw::OwnMemory;
use isthmus_protocol::matching::Pattern;
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::partitioned::{SETUP_BYTES, Setup};
use rustc_hash::FxHashMap;

use crate::base::request::CompletedPart;
use crate::base::requests::{Owned, Owner};
use crate::machine::Machine;
use crate::p2p::Core;
use crate::p2p::parts::NotMarked;
use crate::p2p::receive::{post, start_receive};
use crate::p2p::send::{begin, count, go_on_with_parts, start_or_send};
use crate::p2p::{Inbound, Outbound};
use crate::p2p::{ReceiveTask, SendTask, Task};
use crate::{Channel, EngineError, Mode, Operation, ReceiveBuffer, Request, SendBuffer};

/// Bit of the contexts of partitioned messages.
const PARTITIONED: u32 = 1 << 31;

/// Where a partitioned send goes.
#[derive(Debug)]
struct Outlet {
    channel: Channel,
    to: u32,
}

/// Where a partitioned receive comes from.
#[derive(Debug)]
struct Inlet {
    channel: Channel,
    from: u32,
    tag: i32,
    /// The sender's [`Setup`] arrives here.
    setup: OwnMemory,
    /// The sender's name for its messages, once known.
    name: Option<u32>,
    /// A receive that was started before.
    waiting: Option<u32>,
}

impl Inlet {
    fn pattern(&self, name: u32) -> Pattern {
        Pattern {
            context: self.channel.context.with(PARTITIONED | 1),
            source: Some(self.from),
            tag: Some(name as i32),
        }
    }
}

/// The machine of partitioned messages: where they go and come from between MPI_Psend_init, MPI_Precv_init and
/// MPI_Request_free. The messages themselves are those of point-to-point.
#[derive(Debug, Default)]
pub(crate) struct Partitioned {
    /// By the index of their requests.
    outlets: FxHashMap<u32, Outlet>,
    inlets: FxHashMap<u32, Inlet>,
}

impl Machine for Partitioned {
    /// The sender's word has arrived, or never will.
    fn completed(&mut self, core: &mut Core, part: CompletedPart) {
        if let Some((Owner::Partitioned, index)) = core.owner(part.of) {
            self.inlet_known(core, index);
        }
    }
}

impl Partitioned {
    pub(crate) fn psend_init(&mut self, core: &mut Core, channel: &Channel, to: u32, tag: i32) -> Request {
        let index = core.own(END);
        let outlet = Outlet {
            channel: channel.clone(),
            to,
        };
        self.outlets.insert(index, outlet);
        let setup = Setup { name: index }.encode();
        let context = channel.context.number() | PARTITIONED;
        let header = Header::new(Kind::Eager, context, channel.rank, tag, SETUP_BYTES as u64, 0);
        let setup = SendBuffer::owned(setup.into());
        let outbound = Outbound::to(channel.members.peer(to), header, Mode::Buffered, setup);
        let sent = start_or_send(core, outbound);
        core.release(core.state.requests().name(sent));
        core.state.requests().name(index)
    }

    pub(crate) fn precv_init(&mut self, core: &mut Core, channel: &Channel, from: u32, tag: i32) -> Request {
        let setup = OwnMemory::new(0, SETUP_BYTES as isize);
        let buffer = ReceiveBuffer::contiguous(setup.memory(), 0, SETUP_BYTES as u64);
        let inlet = Inlet {
            channel: channel.clone(),
            from,
            tag,
            setup,
            name: None,
            waiting: None,
        };
        // The sender's word is still to come, and must not be taken for that of the next one: so it stays until then.
        let index = core.own(Owned::by(Owner::Partitioned));
        self.inlets.insert(index, inlet);
        let request = core.state.requests().name(index);
        let pattern = Pattern {
            context: channel.context.with(PARTITIONED),
            source: Some(from),
            tag: Some(tag),
        };
        let inbound = Inbound::from(channel.members.peer(from), pattern, buffer);
        let receive = start_receive(core, inbound);
        let requests = core.state.requests_mut();
        if requests.slot(receive).done() {
            requests.slot_mut(index).completion_mut().error = requests.remove(receive).error;
            self.inlet_known(core, index);
        } else {
            requests.slot_mut(receive).belongs_to(index, 0);
        }
        request
    }

    /// The request of one of these ends is about to be released.
    pub(crate) fn released(&mut self, index: u32) {
        self.outlets.remove(&index);
        if self.inlets.get(&index).is_some_and(|inlet| inlet.name.is_some()) {
            self.inlets.remove(&index);
        }
    }

    fn inlet_known(&mut self, core: &mut Core, index: u32) {
        let slot = core.state.requests_mut().slot_mut(index);
        let (error, detached) = (slot.completion().error.clone(), slot.detached());
        *slot.task_mut() = Task::Of(END);
        let Some(inlet) = self.inlets.get_mut(&index) else {
            return;
        };
        let name = Setup::decode(&inlet.setup.content()).name;
        inlet.name = Some(name);
        let (waiting, pattern) = (inlet.waiting.take(), inlet.pattern(name));
        if detached {
            self.inlets.remove(&index);
            core.state.requests_mut().remove(index);
        }
        match (waiting, error) {
            // It may have failed by itself meanwhile.
            (Some(receive), _) if core.state.requests_mut().receive(receive).is_none() => {}
            (Some(receive), None) => post(core, receive, pattern),
            (Some(receive), Some(error)) => core.state.fail(receive, error),
            (None, _) => {}
        }
    }

    pub(crate) fn psend_start(&self, core: &mut Core, outlet: Request, buffer: SendBuffer, partitions: u32) -> Request {
        let index = core.state.requests_mut().insert(Task::Nothing);
        let request = core.state.requests().name(index);
        let Some((name, peer, header)) = self.outlet_header(core, outlet, buffer.length()) else {
            core.state.fail(index, STALE);
            return request;
        };
        if core.state.is_lost(peer) {
            let error = core.state.lost_error(peer);
            core.state.fail(index, error);
            return request;
        }
        count(core, Operation::POINT_TO_POINT, peer, buffer.length());
        let header = Header {
            tag: name as i32,
            common: buffer.common,
            ..header
        };
        let task = SendTask::in_parts(peer, header, buffer, partitions);
        if task.is_empty_until_ready() {
            core.state.requests_mut().set_send(index, task);
        } else {
            begin(core, index, task);
        }
        request
    }

    fn outlet_header(&self, core: &Core, outlet: Request, length: u64) -> Option<(u32, Peer, Header)> {
        let name = core.state.requests().index(outlet)?;
        let outlet = self.outlets.get(&name)?;
        let channel = &outlet.channel;
        let context = channel.context.number() | PARTITIONED | 1;
        let header = Header::new(Kind::Rts, context, channel.rank, 0, length, 0);
        Some((name, channel.members.peer(outlet.to), header))
    }

    pub(crate) fn precv_start(
        &mut self,
        core: &mut Core,
        inlet: Request,
        buffer: ReceiveBuffer,
        partitions: u32,
    ) -> Request {
        let at = core.state.requests().index(inlet);
        let found = at.and_then(|at| Some((at, self.inlets.get_mut(&at)?)));
        let Some((at, inlet)) = found else {
            let index = core.failed(STALE);
            return core.state.requests().name(index);
        };
        let from = inlet.channel.members.peer(inlet.from);
        let task = ReceiveTask::in_parts(buffer, from, inlet.tag, partitions);
        let error = core.state.requests().slot(at).completion().error.clone();
        let index = core.state.requests_mut().insert(Task::Receive(task));
        let request = core.state.requests().name(index);
        match (inlet.name.map(|name| inlet.pattern(name)), error) {
            (None, None) => inlet.waiting = Some(index),
            (_, Some(error)) => core.state.fail(index, error),
            (Some(pattern), None) => post(core, index, pattern),
        }
        request
    }
}

/// The partition of a send that was started may leave.
pub(crate) fn pready(core: &mut Core, request: Request, partition: u32) -> Result<(), EngineError> {
    let Some(index) = core.state.requests().index(request) else {
        return Err(MARKED);
    };
    let failed = core.state.requests().slot(index).completion().error.is_some();
    let Some(task) = core.state.requests_mut().send(index) else {
        return if failed { Ok(()) } else { Err(MARKED) };
    };
    task.mark(partition).map_err(|why| match why {
        NotMarked::NoSuch => NO_PARTITION,
        NotMarked::Before => MARKED,
    })?;
    go_on_with_parts(core, index);
    Ok(())
}

/// Whether a partition of a receive that was started has arrived. A request that has ended: yes.
pub(crate) fn parrived(core: &Core, request: Request, partition: u32) -> bool {
    let Some(index) = core.state.requests().index(request) else {
        return true;
    };
    match core.state.requests().slot(index).task() {
        Task::Receive(task) => task.has(partition),
        _ => true,
    }
}

/// An end of partitioned messages, which waits for nothing.
const END: Owned = Owned::still(Owner::Partitioned);

const NO_PARTITION: EngineError = EngineError::Misuse {
    what: "the request has no such partition",
};

const MARKED: EngineError = EngineError::Misuse {
    what: "the partition was marked as ready before",
};

const STALE: EngineError = EngineError::Misuse {
    what: "the partitioned request does not exist any more",
};
