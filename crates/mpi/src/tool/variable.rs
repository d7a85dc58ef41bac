// SPDX-License-Identifier: Apache-2.0
//! Which performance variables there are, and their present values.
//!
//! ```text
//!  isthmus_OPERATION_LEVEL_messages, _bytes   what was sent, per operation and level of the network
//!  isthmus_OPERATION_calls                    how often the program called it
//!  isthmus_wide_sent_bytes …                  what has passed to and from other sites
//!  isthmus_node_straight_bytes …              what processes of a node have copied, and by which way
//!  isthmus_posted_receives …                  lengths of queues
//!  isthmus_sleep_time, isthmus_sleeps         waiting
//!  isthmus_wait_messages_LEVEL …              the same by what was waited for: also _collectives_LEVEL
//!  isthmus_comm_collectives                   per communicator
//!  isthmus_last_collective                    what the process is at
//!  isthmus_phase                              how far the process has come
//! ```

use std::sync::OnceLock;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::world::operation_names;
use isthmus_engine::{Copied, Gauges};
use isthmus_topology::Level;
use isthmus_wire::boot::{Counters, LinkTraffic};
use isthmus_wire::time::Wait;

use super::enumeration::Enumeration;
use super::values::Value;
use crate::process;

/// What a variable of messages counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Messages,
    Bytes,
}

/// A queue of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Posted,
    Unexpected,
    UnexpectedPeak,
    Sends,
}

/// What passes between this process and other sites, as the connections count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wide {
    Sent,
    Received,
    Compressed,
    Uncompressed,
    Retransmitted,
    Resent,
    Duplicates,
    Cuts,
    Connections,
    Away,
}

impl Wide {
    const ALL: [Self; 10] = [
        Self::Sent,
        Self::Received,
        Self::Compressed,
        Self::Uncompressed,
        Self::Retransmitted,
        Self::Resent,
        Self::Duplicates,
        Self::Cuts,
        Self::Connections,
        Self::Away,
    ];

    /// Name, description, number.
    fn facts(self, of: &LinkTraffic) -> (&'static str, &'static str, u64) {
        match self {
            Self::Sent => ("sent_bytes", "bytes given to connections with other sites", of.sent),
            Self::Received => ("received_bytes", "bytes that came from other sites", of.received),
            Self::Compressed => (
                "compressed_bytes",
                "compressed bytes sent to other sites",
                of.compressed,
            ),
            Self::Uncompressed => ("uncompressed_bytes", "the same before compression", of.plain),
            Self::Retransmitted => (
                "retransmitted_bytes",
                "bytes to other sites that TCP sent again",
                of.retransmitted,
            ),
            Self::Resent => (
                "resent_segments",
                "segments sent again because a connection broke",
                of.resent,
            ),
            Self::Duplicates => ("duplicate_segments", "segments that came more than once", of.duplicates),
            Self::Cuts => ("cuts", "how often a channel lost all connections and went on", of.cuts),
            Self::Connections => ("connections", "connections with other sites now", of.connections),
            Self::Away => ("channels_away", "channels that have no connection now", of.away),
        }
    }

    fn is_level(self) -> bool {
        matches!(self, Self::Connections | Self::Away)
    }
}

/// By which way data go between processes of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copies {
    Straight,
    Cells,
    Frames,
}

impl Copies {
    const ALL: [Self; 3] = [Self::Straight, Self::Cells, Self::Frames];

    fn key(self) -> &'static str {
        match self {
            Self::Straight => "straight",
            Self::Cells => "cells",
            Self::Frames => "frames",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Straight => "bytes that came straight out of the memory of other processes of the node, copied once",
            Self::Cells => "bytes that this process gave in memory where a group of the node meets, for others to copy",
            Self::Frames => "bytes of messages that this process wrote into shared memory, for others to copy",
        }
    }

    fn bytes(self, of: &Copied) -> u64 {
        match self {
            Self::Straight => of.straight,
            Self::Cells => of.cells,
            Self::Frames => of.frames,
        }
    }
}

/// What calls wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    Messages,
    Collectives,
}

impl Awaited {
    fn key(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Collectives => "collectives",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Messages => "for messages",
            Self::Collectives => "in collective operations",
        }
    }

    /// Nanoseconds.
    fn time(self, level: Level) -> u64 {
        let time = process::world()
            .map(|w| w.engine().reports().time())
            .unwrap_or_default();
        let counts = |w: &&Wait| w.collective == (self == Self::Collectives) && usize::from(w.level) == level.index();
        time.waits.iter().filter(counts).map(|w| w.nanoseconds).sum()
    }
}

/// A performance variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    Sent(&'static str, Level, Quantity),
    Calls(&'static str),
    Wide(Wide),
    Copied(Copies),
    Queue(Queue),
    /// Waits for messages, or in collective operations, that something from this level ended.
    Waited(Awaited, Level),
    SleepTime,
    Sleeps,
    Collectives,
    LastCollective,
    Phase,
}

/// How a variable may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Always active; can be set back.
    Counting,
    /// Counts while it is started.
    Stoppable,
    /// Only read.
    Fixed,
}

/// The levels that messages can cross without a vendor MPI.
pub(super) const LEVELS: [Level; 4] = [Level::WideArea, Level::LocalArea, Level::Machine, Level::Node];
const QUANTITIES: [Quantity; 2] = [Quantity::Messages, Quantity::Bytes];

/// All of them, operation by operation, level by level, messages before bytes.
pub(super) fn all() -> &'static [Variable] {
    static ALL: OnceLock<Vec<Variable>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        for operation in operation_names() {
            for level in LEVELS {
                all.extend(QUANTITIES.map(|quantity| Variable::Sent(operation, level, quantity)));
            }
        }
        all.extend(operation_names().iter().map(|operation| Variable::Calls(operation)));
        all.extend(Wide::ALL.map(Variable::Wide));
        all.extend(Copies::ALL.map(Variable::Copied));
        all.extend([Queue::Posted, Queue::Unexpected, Queue::UnexpectedPeak, Queue::Sends].map(Variable::Queue));
        for awaited in [Awaited::Messages, Awaited::Collectives] {
            all.extend(LEVELS.map(|level| Variable::Waited(awaited, level)));
        }
        all.extend([
            Variable::SleepTime,
            Variable::Sleeps,
            Variable::Collectives,
            Variable::LastCollective,
            Variable::Phase,
        ]);
        all
    })
}

/// A communicator that a handle is bound to: its handle, and its context to find out that it was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    comm: h::Comm,
    context: isthmus_engine::Context,
}

impl Bound {
    pub(super) fn to(comm: h::Comm) -> Option<Self> {
        let context = crate::comm::find(comm).ok()?.context();
        Some(Self { comm, context })
    }

    /// Collective operations started since the communicator was made; `None`: it was freed.
    fn collectives(self) -> Option<u64> {
        let comm = crate::comm::find(self.comm).ok()?;
        (comm.context() == self.context).then(|| comm.started().into())
    }
}

impl Variable {
    pub(super) fn name(self) -> String {
        let plain = |operation: &str| operation.replace('-', "_");
        match self {
            Self::Sent(operation, level, quantity) => {
                let quantity = match quantity {
                    Quantity::Messages => "messages",
                    Quantity::Bytes => "bytes",
                };
                format!("isthmus_{}_{}_{quantity}", plain(operation), level.key())
            }
            Self::Calls(operation) => format!("isthmus_{}_calls", plain(operation)),
            Self::Wide(wide) => format!("isthmus_wide_{}", wide.facts(&LinkTraffic::default()).0),
            Self::Copied(copies) => format!("isthmus_node_{}_bytes", copies.key()),
            Self::Queue(Queue::Posted) => "isthmus_posted_receives".into(),
            Self::Queue(Queue::Unexpected) => "isthmus_unexpected_messages".into(),
            Self::Queue(Queue::UnexpectedPeak) => "isthmus_unexpected_messages_peak".into(),
            Self::Queue(Queue::Sends) => "isthmus_pending_sends".into(),
            Self::Waited(awaited, level) => format!("isthmus_wait_{}_{}", awaited.key(), level.key()),
            Self::SleepTime => "isthmus_sleep_time".into(),
            Self::Sleeps => "isthmus_sleeps".into(),
            Self::Collectives => "isthmus_comm_collectives".into(),
            Self::LastCollective => "isthmus_last_collective".into(),
            Self::Phase => "isthmus_phase".into(),
        }
    }

    pub(super) fn description(self) -> String {
        match self {
            Self::Sent(operation, level, quantity) => {
                let quantity = match quantity {
                    Quantity::Messages => "messages",
                    Quantity::Bytes => "bytes of data",
                };
                let level = level.name();
                format!("{quantity} that this process has sent for {operation} across the {level} level")
            }
            Self::Calls(operation) => format!("how often this process has called {operation}"),
            Self::Wide(wide) => wide.facts(&LinkTraffic::default()).1.into(),
            Self::Copied(copies) => copies.words().into(),
            Self::Queue(Queue::Posted) => "receives that wait for a message".into(),
            Self::Queue(Queue::Unexpected) => "messages that wait for a receive".into(),
            Self::Queue(Queue::UnexpectedPeak) => {
                "the most messages that have waited for a receive at once since MPI_Init".into()
            }
            Self::Queue(Queue::Sends) => "sends that have not completed".into(),
            Self::Waited(awaited, level) => format!(
                "nanoseconds that calls have waited {} until something came across the {} level",
                awaited.words(),
                level.name()
            ),
            Self::SleepTime => "nanoseconds that threads have slept inside MPI because nothing was to be done".into(),
            Self::Sleeps => "how often threads have slept inside MPI because nothing was to be done".into(),
            Self::Collectives => "collective operations that this process has started on the communicator".into(),
            Self::LastCollective => "the collective operation that this process started last".into(),
            Self::Phase => "how far the process has come: before MPI_Init, running, after MPI_Finalize".into(),
        }
    }

    pub(super) fn class(self) -> i32 {
        match self {
            Self::Sent(..) | Self::Calls(_) | Self::Copied(_) | Self::Sleeps | Self::Collectives => {
                abi::MPI_T_PVAR_CLASS_COUNTER
            }
            Self::Queue(Queue::UnexpectedPeak) => abi::MPI_T_PVAR_CLASS_HIGHWATERMARK,
            Self::Wide(wide) if !wide.is_level() => abi::MPI_T_PVAR_CLASS_COUNTER,
            Self::Wide(_) | Self::Queue(_) => abi::MPI_T_PVAR_CLASS_LEVEL,
            Self::Waited(..) | Self::SleepTime => abi::MPI_T_PVAR_CLASS_TIMER,
            Self::LastCollective | Self::Phase => abi::MPI_T_PVAR_CLASS_STATE,
        }
    }

    pub(super) fn verbosity(self) -> i32 {
        match self {
            Self::Sent(..) | Self::Calls(_) | Self::Waited(..) | Self::Phase => abi::MPI_T_VERBOSITY_USER_BASIC,
            Self::Wide(_) | Self::Collectives | Self::LastCollective | Self::SleepTime | Self::Sleeps => {
                abi::MPI_T_VERBOSITY_TUNER_BASIC
            }
            Self::Copied(_) | Self::Queue(_) => abi::MPI_T_VERBOSITY_TUNER_DETAIL,
        }
    }

    pub(super) fn enumeration(self) -> h::TEnum {
        match self {
            Self::Phase => Enumeration::Phase.handle(),
            Self::LastCollective => Enumeration::Operation.handle(),
            _ => h::MPI_T_ENUM_NULL,
        }
    }

    pub(super) fn manner(self) -> Manner {
        match self {
            Self::Sent(..) | Self::Calls(_) | Self::Copied(_) | Self::Collectives => Manner::Counting,
            Self::Waited(..) | Self::SleepTime | Self::Sleeps => Manner::Stoppable,
            Self::Wide(wide) if !wide.is_level() => Manner::Counting,
            Self::Wide(_) | Self::Queue(_) | Self::LastCollective | Self::Phase => Manner::Fixed,
        }
    }

    pub(super) fn bind(self) -> i32 {
        match self {
            Self::Collectives => abi::MPI_T_BIND_MPI_COMM,
            _ => abi::MPI_T_BIND_NO_OBJECT,
        }
    }

    /// A number as the variable's datatype.
    pub(super) fn value(self, number: u64) -> Value {
        match self {
            Self::LastCollective | Self::Phase => Value::Int(number as i32),
            _ => Value::Wide(number),
        }
    }

    /// What the library has counted or measured so far; `None`: the communicator is gone.
    pub(super) fn number(self, bound: Option<Bound>) -> Option<u64> {
        Some(match self {
            Self::Sent(operation, level, quantity) => sent(&counters(), operation, level, quantity),
            Self::Calls(operation) => {
                let counters = counters();
                let row = counters.calls.iter().find(|(name, _)| name == operation);
                row.map_or(0, |(_, n)| *n)
            }
            Self::Wide(wide) => wide.facts(&process::traffic().unwrap_or_default()).2,
            Self::Copied(copies) => copies.bytes(&copied()),
            Self::Queue(queue) => queue.length(),
            Self::Waited(awaited, level) => awaited.time(level),
            Self::SleepTime => slept().0,
            Self::Sleeps => slept().1,
            Self::Collectives => bound?.collectives()?,
            Self::LastCollective => {
                let last = gauges().operation;
                operation_names().iter().position(|name| *name == last).unwrap_or(0) as u64
            }
            Self::Phase => match (process::was_started(), process::was_finished()) {
                (_, true) => 2,
                (true, false) => 1,
                (false, false) => 0,
            },
        })
    }
}

impl Queue {
    fn length(self) -> u64 {
        let Gauges {
            posted,
            unexpected,
            unexpected_peak,
            sends,
            ..
        } = gauges();
        match self {
            Self::Posted => posted,
            Self::Unexpected => unexpected,
            Self::UnexpectedPeak => unexpected_peak,
            Self::Sends => sends,
        }
    }
}

fn gauges() -> Gauges {
    process::world()
        .map(|w| w.engine().lock().core.gauges())
        .unwrap_or_default()
}

fn copied() -> Copied {
    process::world()
        .map(|w| isthmus_engine::copied(&w.engine().lock().core))
        .unwrap_or_default()
}

fn counters() -> Counters {
    process::world()
        .map(|w| w.engine().lock().core.tools().counters())
        .unwrap_or_default()
}

fn sent(counters: &Counters, operation: &str, level: Level, quantity: Quantity) -> u64 {
    let mut rows = counters.rows.iter();
    let row = rows.find(|(name, at, _)| name == operation && usize::from(*at) == level.index());
    row.map_or(0, |(_, _, counter)| match quantity {
        Quantity::Messages => counter.messages,
        Quantity::Bytes => counter.bytes,
    })
}

/// Nanoseconds, times.
fn slept() -> (u64, u64) {
    let slept = process::world().map(|w| w.engine().pace().slept()).unwrap_or_default();
    (slept.0.as_nanos().try_into().unwrap_or(u64::MAX), slept.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let names: std::collections::BTreeSet<_> = all().iter().map(|v| v.name()).collect();
        assert_eq!(names.len(), all().len());
        assert!(names.contains("isthmus_bcast_wan_messages") || names.iter().any(|n| n.starts_with("isthmus_bcast_")));
    }

    #[test]
    fn before_mpi_init_everything_is_zero() {
        for variable in all().iter().filter(|v| v.bind() == abi::MPI_T_BIND_NO_OBJECT) {
            assert_eq!(variable.number(None), Some(0), "{}", variable.name());
        }
    }
}
