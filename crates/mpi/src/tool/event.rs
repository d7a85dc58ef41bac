// SPDX-License-Identifier: Apache-2.0
//! Events (MPI 5.0 section 15.3.8), and the functions that ask; `types` says which there are.
//!
//! One source, the library itself, with a clock in nanoseconds; its events come in the order in which they happened.

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;
use std::time::Instant;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_abi::{Aint, Count};
use isthmus_core::info::Info;
use isthmus_core::world::operation_names;
use isthmus_engine::Event;

use super::enumeration::Enumeration;
use super::types::{Element, TYPES, Type};
use super::values::{Code, Value, name, nth, set, text, tool};
use crate::c::{Out, Text};
use crate::handle::{Kind, Table};

/// One event, while its callbacks run.
pub(super) struct Instance {
    pub(super) event: usize,
    pub(super) at: Instant,
    pub(super) values: Vec<Value>,
}

static INSTANCES: Table<Instance> = Table::new(Kind::EventInstance);

impl Instance {
    /// An event of the engine.
    pub(super) fn of(at: Instant, event: Event) -> Self {
        let index = TYPES.iter().position(|t| t.kind == Some(event.kind())).unwrap_or(0);
        let number = |n: u32| Value::Int(n as c_int);
        let values = match event {
            Event::Unexpected {
                peer,
                context,
                source,
                tag,
                bytes,
            } => vec![
                Value::Wide(bytes),
                number(peer.number()),
                number(context),
                number(source),
                Value::Int(tag),
            ],
            Event::PeerLost { peer } => vec![number(peer.number())],
            Event::PlanStarted(plan) | Event::PlanEnded(plan) => {
                let operation = operation_names().iter().position(|n| *n == plan.operation);
                vec![
                    Value::Int(operation.map_or(-1, |n| n as c_int)),
                    number(plan.context),
                    number(plan.sequence),
                ]
            }
        };
        Self {
            event: index,
            at,
            values,
        }
    }

    /// Gives the event a handle for as long as `body` runs.
    pub(super) fn with_handle(self, body: impl FnOnce(&Self, h::TEventInstance)) {
        let handle = INSTANCES.insert(self);
        if let Some(instance) = INSTANCES.get(handle) {
            body(instance, h::TEventInstance(handle));
        }
        INSTANCES.remove(handle);
    }
}

/// Nanoseconds of the source's clock.
pub(super) fn timestamp(at: Instant) -> Count {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    // An event may be older than the first look at the clock: then both are at its beginning.
    let since = at.saturating_duration_since(*BEGIN.get_or_init(|| at));
    since.as_nanos().try_into().unwrap_or(Count::MAX)
}

/// Where each element lies in a copy of the event, each aligned to its size.
fn displacements(event: &Type) -> Vec<usize> {
    let mut end = 0_usize;
    let mut place = |element: &Element| {
        let size = element.value.size();
        let at = end.next_multiple_of(size);
        end = at + size;
        at
    };
    event.elements.iter().map(&mut place).collect()
}

fn instance(handle: h::TEventInstance) -> Code<&'static Instance> {
    INSTANCES.get(handle.0).ok_or(abi::MPI_T_ERR_INVALID_HANDLE)
}

fn source(index: c_int) -> Code {
    if index == 0 {
        Ok(())
    } else {
        Err(abi::MPI_T_ERR_INVALID_INDEX)
    }
}

/// An info object without hints, for those who ask which are in use.
pub(super) fn no_hints(out: Out<h::Info>) -> Code {
    set(out, h::MPI_INFO_NULL)?;
    set(out, crate::info::insert(Info::default()))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_source_get_num(n: Out<c_int>) -> c_int {
    tool(|| set(n, 1))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_source_get_info(
    index: c_int,
    name: Out<c_char>,
    name_length: Out<c_int>,
    description: Out<c_char>,
    description_length: Out<c_int>,
    ordering: Out<c_int>,
    ticks_per_second: Out<Count>,
    max_ticks: Out<Count>,
    info: Out<h::Info>,
) -> c_int {
    tool(|| {
        source(index)?;
        text(name, name_length, "isthmus")?;
        text(
            description,
            description_length,
            "the library in this process; nanoseconds since its first event",
        )?;
        ordering.put(abi::MPI_T_SOURCE_ORDERED);
        ticks_per_second.put(1_000_000_000);
        max_ticks.put(Count::MAX);
        if info.is_null() { Ok(()) } else { no_hints(info) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_source_get_timestamp(index: c_int, out: Out<Count>) -> c_int {
    tool(|| {
        source(index)?;
        set(out, timestamp(Instant::now()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_get_num(n: Out<c_int>) -> c_int {
    tool(|| set(n, TYPES.len() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_get_index(text: Text, index: Out<c_int>) -> c_int {
    tool(|| {
        let wanted = name(text)?;
        let found = TYPES.iter().position(|event| event.name == wanted);
        set(index, found.ok_or(abi::MPI_T_ERR_INVALID_NAME)? as c_int)
    })
}

/// Writes datatypes and displacements of as many elements as there is room for, and how many there are.
fn elements(event: &Type, types: Out<h::Datatype>, places: Out<Aint>, number: Out<c_int>) -> Code {
    if number.is_null() {
        return Ok(());
    }
    let room = usize::try_from(number.get("").unwrap_or(0)).unwrap_or(0);
    for (at, (element, place)) in event.elements.iter().zip(displacements(event)).enumerate().take(room) {
        if !types.is_null() {
            types.at(at).put(element.value.datatype());
        }
        if !places.is_null() {
            places.at(at).put(place as Aint);
        }
    }
    set(number, event.elements.len() as c_int)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_get_info(
    index: c_int,
    name: Out<c_char>,
    name_length: Out<c_int>,
    verbosity: Out<c_int>,
    types: Out<h::Datatype>,
    places: Out<Aint>,
    number: Out<c_int>,
    enumeration: Out<h::TEnum>,
    info: Out<h::Info>,
    description: Out<c_char>,
    description_length: Out<c_int>,
    bind: Out<c_int>,
) -> c_int {
    tool(|| {
        let event = nth(&TYPES, index)?;
        text(name, name_length, event.name)?;
        text(description, description_length, event.description)?;
        elements(event, types, places, number)?;
        verbosity.put(abi::MPI_T_VERBOSITY_USER_DETAIL);
        enumeration.put(Enumeration::Elements(index as usize).handle());
        bind.put(abi::MPI_T_BIND_NO_OBJECT);
        if info.is_null() { Ok(()) } else { no_hints(info) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_get_source(handle: h::TEventInstance, index: Out<c_int>) -> c_int {
    tool(|| {
        instance(handle)?;
        set(index, 0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_get_timestamp(handle: h::TEventInstance, out: Out<Count>) -> c_int {
    tool(|| set(out, timestamp(instance(handle)?.at)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_read(handle: h::TEventInstance, element: c_int, buffer: Out<u8>) -> c_int {
    tool(|| nth(&instance(handle)?.values, element)?.give(buffer))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_copy(handle: h::TEventInstance, buffer: Out<u8>) -> c_int {
    tool(|| {
        let found = instance(handle)?;
        if buffer.is_null() {
            return Err(abi::MPI_T_ERR_INVALID);
        }
        let places = displacements(&TYPES[found.event]);
        let mut all = found.values.iter().zip(places);
        all.try_for_each(|(value, place)| value.give(buffer.at(place)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::types::ERROR_RAISED;
    use super::*;
    use isthmus_engine::EventKind;

    #[test]
    fn every_kind_of_the_engine_is_a_type_and_elements_do_not_overlap() {
        assert!(
            EventKind::ALL
                .iter()
                .all(|kind| TYPES.iter().any(|t| t.kind == Some(*kind)))
        );
        assert_eq!(TYPES[ERROR_RAISED].kind, None);
        assert_eq!(displacements(&TYPES[0]), [0, 8, 12, 16, 20]);
    }
}
