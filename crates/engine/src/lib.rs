// SPDX-License-Identifier: Apache-2.0
//! Progress, requests, waiting, executing schedules.
//!
//! [`Engine`] is a `&mut self` state machine: messages between this process and its peers ([`Engine::isend`],
//! [`Engine::irecv`]) and collective plans ([`Engine::start_plan`]), over any number of transports. [`Shared`] wraps
//! the one engine of a process: locking, waiting, progress from other threads. User memory arrives as values
//! ([`SendBuffer`], [`ReceiveBuffer`]) that stay valid until the request is complete.
#![forbid(unsafe_code)]

mod base;
mod core;
mod engine;
mod groups;
mod interface;
mod leaving;
mod machine;
mod machines;
mod mismatch;
mod p2p;
mod partitioned;
mod plans;
mod tools;
mod vendor;
mod waiting;

pub use self::core::{Look, copied, matched, surviving};
pub use base::activity::Activity;
pub use base::binding::{Binding, BoundBuffer, Next, Reducer, Unit};
pub use base::block::Block;
pub use base::buffer::{Charge, ReceiveBuffer, SendBuffer};
pub use base::callbacks::{Callbacks, Caller};
pub use base::channel::{Channel, Members, NodeMembers, Special, StepsBy};
pub use base::counters::Operation;
pub use base::error::EngineError;
pub use base::notes::{Made, Notes};
pub use base::request::{Arrived, CompletedPart, Completion, MatchedMessage, Mode, Request};
pub use base::requests::Kept;
pub use base::tuning::{Knob, Tuning};
pub use engine::{Engine, Newcomers, Setup, awaken, give_up_plan, register_later, revoke, with_machine, with_port};
pub use groups::data::{Arithmetic, Pieces, Unequal};
pub use groups::short::Short;
pub use groups::unmoved::Unmoved;
pub use interface::{LongBlocks, Partitions, Slabs, Turns, Underneath, in_own_memory};
pub use isthmus_protocol::matching::Context;
pub use isthmus_transport::native::{Collective, Element, Operator};
pub use leaving::{close_transport, drop_transport, forget, retire_transport, unreceived};
pub use machine::{Machine, Port, Sending, Taken};
pub use machines::Maker;
pub use p2p::direct::{Direct, Received};
pub use p2p::loss::{acknowledge, acknowledged, doubt, end_in_doubt, goes_on, is_gone, losses, set_goes_on};
pub use p2p::{Core, Sent, State};
pub use tools::observe::{Event, EventKind, Observed, PlanEvent};
pub use tools::trace::Trace;
pub use tools::{Gauges, Tools};
pub use vendor::NativeComm;
pub use vendor::NativeOperation;
pub use waiting::keeper::Keeper;
pub use waiting::pace::Pace;
pub use waiting::shared::{Along, GroupCall, Guard, Looking, Moment, Policy, Shared, Until};
pub use waiting::waits::{Reports, Teller, Watcher};

pub use isthmus_transport::sharing::{Reach, Run, SharedMemory, Sharing, Unreached};
pub use isthmus_transport::{
    Called, Class as TrafficClass, Copied, Job, Lease, Lent, Path as TrafficPath, Peer, Process, Processes, Rates,
    Tuning as TrafficTuning,
};
