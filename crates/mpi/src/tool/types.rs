// SPDX-License-Identifier: Apache-2.0
//! Types of events: which there are, and what they carry.

use isthmus_engine::EventKind;

use super::values::Value;

/// An element of an event. `value` has the datatype; its number means nothing.
pub(super) struct Element {
    pub(super) name: &'static str,
    pub(super) value: Value,
}

/// A type of events.
pub(super) struct Type {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) elements: &'static [Element],
    /// The engine's kind; `None`: raised in this room.
    pub(super) kind: Option<EventKind>,
}

const fn int(name: &'static str) -> Element {
    Element {
        name,
        value: Value::Int(0),
    }
}

const fn wide(name: &'static str) -> Element {
    Element {
        name,
        value: Value::Wide(0),
    }
}

/// Index in [`TYPES`] of the event that this room raises.
pub(super) const ERROR_RAISED: usize = 4;

/// Operations are numbers of the enumeration `isthmus_operation`.
const PLAN: &[Element] = &[int("operation"), int("context"), int("sequence")];

pub(super) static TYPES: [Type; 5] = [
    Type {
        name: "isthmus_unexpected_message",
        description: "a message has arrived that matches no posted receive; the context numbers the communicator",
        elements: &[
            wide("bytes"),
            int("sender in MPI_COMM_WORLD"),
            int("context"),
            int("source"),
            int("tag"),
        ],
        kind: Some(EventKind::Unexpected),
    },
    Type {
        name: "isthmus_peer_lost",
        description: "a process cannot be reached any more",
        elements: &[int("process in MPI_COMM_WORLD")],
        kind: Some(EventKind::PeerLost),
    },
    Type {
        name: "isthmus_collective_started",
        description: "this process has begun its part of a collective operation",
        elements: PLAN,
        kind: Some(EventKind::PlanStarted),
    },
    Type {
        name: "isthmus_collective_ended",
        description: "this process has ended its part of a collective operation",
        elements: PLAN,
        kind: Some(EventKind::PlanEnded),
    },
    Type {
        name: "isthmus_error_raised",
        description: "an error was given to an error handler",
        elements: &[int("error class")],
        kind: None,
    },
];
