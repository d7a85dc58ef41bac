// SPDX-License-Identifier: Apache-2.0
//! Members of a window on other nodes: operations and locks travel in messages, and the target does them in its own
//! memory, whatever its program does meanwhile.
//!
//! Nothing waits before a flush, an unlock, a fence or the like. The request for a lock travels with the first
//! operation on a process, so a lock, operations and the unlock cost one round trip; a lock of all costs nothing until
//! then.

mod counts;
mod desk;
mod doing;
mod landing;
pub(crate) mod make;
mod open;
mod origin;
mod outgoing;
mod send;
mod settle;
mod types;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use isthmus_core::comm::Near;
use isthmus_core::error::Result;
use isthmus_datatype::op::Predefined;
use isthmus_datatype::{Datatype, Representation};
use isthmus_engine::{Engine, EngineError, Port, Request, SendBuffer, with_machine, with_port};
use isthmus_wire::frame::protocol;
use isthmus_wire::rma::{Does, PIECE, What};

use self::counts::Counts;
use self::desk::Desk;
use self::landing::{Landing, bytes_there, foreign};
use self::outgoing::header;
use self::send::Call;
pub(crate) use self::settle::{complete, has_done_of, meet};
use self::types::Told;

use crate::data::{Sink, Source, TargetData, When};
use crate::spot::Target;
use crate::window::{Window, locked};

/// What a process knows of a window that has members on other nodes.
pub(crate) struct Far {
    /// Which members share this process's node.
    near: Arc<Near>,
    sent: OnceLock<Box<Mutex<Sent>>>,
}

impl Far {
    fn sent(&self) -> MutexGuard<'_, Sent> {
        locked(self.sent.get_or_init(Box::default))
    }
}

/// What members on other nodes were sent.
#[derive(Default)]
struct Sent {
    /// Those that were asked for their locks.
    locked: BTreeSet<u32>,
    /// Those that have operations nobody has waited for.
    open: BTreeSet<u32>,
    /// How many threads wait for operations on each.
    settling: BTreeMap<u32, u32>,
    counts: Counts,
    /// Datatypes that they keep.
    types: BTreeMap<u32, Told>,
}

impl Sent {
    /// A thread waits no longer for operations on these.
    fn has_settled(&mut self, ranks: &BTreeSet<u32>) {
        for rank in ranks {
            let left = self.settling.get_mut(rank).map(|threads| {
                *threads -= 1;
                *threads
            });
            if left == Some(0) {
                self.settling.remove(rank);
            }
        }
    }
}

fn lost_desk() -> EngineError {
    EngineError::Misuse {
        what: "an operation on a window that is no more",
    }
}

fn with_desk<T>(
    engine: &mut Engine,
    act: impl FnOnce(&mut Desk, &mut Port<'_>) -> std::result::Result<T, EngineError>,
) -> Result<T> {
    let acted = with_machine(engine, protocol::RMA, act).unwrap_or_else(|| Err(lost_desk()));
    acted.map_err(|error| (&error).into())
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

impl Window {
    /// Whether a member is on another node.
    pub(crate) fn is_far(&self, rank: u32) -> bool {
        self.far.as_ref().is_some_and(|far| !far.near.members()[rank as usize])
    }

    fn key(&self) -> outgoing::Key {
        outgoing::key(self.comm.channel().context)
    }

    /// MPI_Put to another node.
    pub(crate) fn far_put(
        &self,
        target: &Target,
        source: &Source<'_>,
        place: &TargetData<'_>,
        when: When,
    ) -> Result<Option<Request>> {
        let call = Call {
            does: Does::Put,
            op: 0,
            count: place.count,
            datatype: place.datatype,
            length: source.bytes()?,
            moved: source.bytes()?,
        };
        let data = SendBuffer::typed(source.memory.clone(), source.datatype, source.count)?;
        self.send(target, &call, data, Vec::new(), when)
    }

    /// MPI_Get from another node.
    pub(crate) fn far_get(
        &self,
        target: &Target,
        sink: &Sink<'_>,
        place: &TargetData<'_>,
        when: When,
    ) -> Result<Option<Request>> {
        let bytes = place.datatype.bytes(place.count)?;
        let form = form_of(self, target.rank);
        let there = bytes_there(foreign(place.datatype, form)?.as_ref(), bytes);
        let call = Call {
            does: Does::Get,
            op: 0,
            count: place.count,
            datatype: place.datatype,
            length: 0,
            moved: bytes,
        };
        let sinks = vec![(Landing::new(sink, form)?, 0, there)];
        self.send(target, &call, SendBuffer::EMPTY, sinks, when)
    }

    /// MPI_Accumulate and its kin at another node. Their arguments fit each other.
    pub(crate) fn far_accumulate(
        &self,
        target: &Target,
        operation: Predefined,
        (source, result): (Option<&Source<'_>>, Option<&Sink<'_>>),
        place: &TargetData<'_>,
        when: When,
    ) -> Result<Option<Request>> {
        let bytes = place.datatype.bytes(place.count)?;
        let given = source.map_or(Ok(0), Source::bytes)?;
        let form = form_of(self, target.rank);
        let foreign = foreign(place.datatype, form)?;
        let mut sinks = Vec::new();
        if let Some(result) = result {
            let landing = Landing::new(result, form)?;
            if source.is_some() {
                sinks.push((landing, 0, bytes_there(foreign.as_ref(), given)));
            } else {
                // Nobody keeps much of an answer in memory of its own.
                let unit = crate::accumulate::element(place.datatype);
                let unit = unit.map_or(1, |basic| form.unwrap_or(Representation::LOCAL).size(basic).max(1)) as u64;
                let all = bytes_there(foreign.as_ref(), bytes);
                let (mut from, piece) = (0, PIECE / unit * unit);
                while from < all {
                    let length = piece.min(all - from);
                    let mut landing = landing.clone();
                    landing.seek(from);
                    sinks.push((landing, from, length));
                    from += length;
                }
            }
        }
        let call = Call {
            does: if result.is_some() {
                Does::Fetch
            } else {
                Does::Accumulate
            },
            op: operation.handle(),
            count: place.count,
            datatype: place.datatype,
            length: given,
            moved: bytes,
        };
        let data = match source {
            Some(source) => SendBuffer::typed(source.memory.clone(), source.datatype, source.count)?,
            None => SendBuffer::EMPTY,
        };
        self.send(target, &call, data, sinks, when)
    }

    /// MPI_Compare_and_swap at another node.
    pub(crate) fn far_swap(
        &self,
        target: &Target,
        data: Vec<u8>,
        result: &Sink<'_>,
        datatype: &Datatype,
    ) -> Result<()> {
        let call = Call {
            does: Does::Swap,
            op: 0,
            count: 1,
            datatype,
            length: data.len() as u64,
            moved: data.len() as u64 / 2,
        };
        let form = form_of(self, target.rank);
        let bytes = bytes_there(foreign(datatype, form)?.as_ref(), data.len() as u64 / 2);
        let sinks = vec![(Landing::new(result, form)?, 0, bytes)];
        self.send(target, &call, SendBuffer::owned(data.into()), sinks, When::Always)
            .map(drop)
    }

    /// The lock of a process of this node was given back: whoever waits for it on another node is let in.
    #[cold]
    pub(crate) fn let_in(&self, rank: u32) {
        let context = self.context_number();
        let mut engine = self.world.engine().lock();
        let peer = self.comm.channel().members.peer(rank);
        // The window's end waits for all that is under way.
        let _ = with_desk(&mut engine, |desk, port| {
            if rank == self.comm.rank() {
                desk.go_on(port, self.key());
                return Ok(());
            }
            desk.say(port, peer, header(What::Look, context, 0, 0), SendBuffer::EMPTY)
        });
    }

    /// When all members have ended: no message about the window comes any more; `early`: there may come some.
    pub(crate) fn close(&self, early: bool) {
        if self.far.is_none() {
            return;
        }
        let key = self.key();
        self.world.engine().wait(|engine| {
            let more = with_machine(engine, protocol::RMA, |desk: &mut Desk, _| desk.has_to_say(key));
            (more != Some(true)).then_some(())
        });
        with_machine(&mut self.world.engine().lock(), protocol::RMA, |desk: &mut Desk, _| {
            desk.close(key, early);
        });
    }
}
