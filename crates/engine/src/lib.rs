// SPDX-License-Identifier: Apache-2.0
//! Progress, requests, waiting, executing schedules.
//!
//! [`Engine`] is a `&mut self` state machine: messages between this process and its peers ([`Engine::isend`],
//! [`Engine::irecv`]) and collective plans ([`Engine::start_plan`]), over any number of transports. [`Shared`] wraps the
//! one engine of a process: locking, waiting, progress from other threads. User memory arrives as values
//! ([`SendBuffer`], [`ReceiveBuffer`]) that stay valid until the request is complete.
#![forbid(unsafe_code)]

mod activity;
mod bell;
mod binding;
mod buffer;
mod calls;
mod cancel;
mod channel;
mod conversion;
mod counters;
mod cut;
mod direct;
mod disagreement;
mod engine;
mod error;
mod execution;
mod itself;
mod keeper;
mod known;
mod long;
mod loss;
mod meet;
mod meeting;
mod message;
mod native;
mod native_collective;
mod native_step;
mod observe;
mod partitioned;
mod patience;
mod placing;
mod plan;
mod pulling;
mod receive;
mod request;
mod requests;
mod scratch;
mod send;
mod shared;
mod short;
mod staged;
mod state;
mod trace;
mod tuning;
mod unanswered;
mod waits;

pub use activity::Activity;
pub use binding::{Binding, Block, BoundBuffer, Next, Reducer, Unit};
pub use buffer::{Charge, ReceiveBuffer, SendBuffer};
pub use channel::{Channel, Members, NodeMembers, StepsBy};
pub use counters::Operation;
pub use direct::{Direct, Received};
pub use engine::{Engine, Gauges, Setup};
pub use error::EngineError;
pub use isthmus_transport::native::{Collective, Element, Operator};
pub use native::NativeComm;
pub use native_collective::NativeOperation;
pub use observe::{Event, EventKind, Observed, PlanEvent};
pub use request::{Arrived, Completion, MatchedMessage, Mode, Request, Sent};
pub use shared::{Guard, Policy, Shared};
pub use short::Short;
pub use trace::Trace;
pub use tuning::{Knob, Tuning};
pub use waits::Watcher;

pub use isthmus_transport::{Class as TrafficClass, Path as TrafficPath, Rates, Tuning as TrafficTuning};
