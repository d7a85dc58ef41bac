// SPDX-License-Identifier: Apache-2.0
//! Enumerations: names for numbers (MPI 5.0 section 15.3.6).

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::world::operation_names;

use super::types::TYPES;
use super::values::{Code, nth, set, text, tool};
use crate::c::Out;
use crate::handle::{Kind, fixed, fixed_index};

/// Which enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Enumeration {
    /// A setting that is off or on.
    Switch,
    /// How far this process has come.
    Phase,
    /// What messages are sent for.
    Operation,
    /// The elements of the event of this index.
    Elements(usize),
}

struct Named {
    name: &'static str,
    items: Vec<(c_int, &'static str)>,
}

fn all() -> &'static [Named] {
    static ALL: OnceLock<Vec<Named>> = OnceLock::new();
    ALL.get_or_init(|| {
        let number = |names: &[&'static str]| (0..).zip(names.iter().copied()).collect();
        let mut all = vec![
            Named {
                name: "isthmus_switch",
                items: number(&["off", "on"]),
            },
            Named {
                name: "isthmus_phase",
                items: number(&["before MPI_Init", "running", "after MPI_Finalize"]),
            },
            Named {
                name: "isthmus_operation",
                items: number(operation_names()),
            },
        ];
        all.extend(TYPES.iter().map(|event| Named {
            name: event.name,
            items: (0..).zip(event.elements.iter().map(|e| e.name)).collect(),
        }));
        all
    })
}

impl Enumeration {
    pub(super) fn handle(self) -> h::TEnum {
        h::TEnum(fixed(
            Kind::Enum,
            match self {
                Self::Switch => 0,
                Self::Phase => 1,
                Self::Operation => 2,
                Self::Elements(event) => 3 + event,
            },
        ))
    }
}

fn find(handle: h::TEnum) -> Code<&'static Named> {
    let index = fixed_index(Kind::Enum, handle.0).ok_or(abi::MPI_T_ERR_INVALID_HANDLE)?;
    all().get(index).ok_or(abi::MPI_T_ERR_INVALID_HANDLE)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_enum_get_info(
    enumeration: h::TEnum,
    number: Out<c_int>,
    name: Out<c_char>,
    name_length: Out<c_int>,
) -> c_int {
    tool(|| {
        let found = find(enumeration)?;
        number.put(found.items.len() as c_int);
        text(name, name_length, found.name)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_enum_get_item(
    enumeration: h::TEnum,
    index: c_int,
    value: Out<c_int>,
    name: Out<c_char>,
    name_length: Out<c_int>,
) -> c_int {
    tool(|| {
        let (number, label) = nth(&find(enumeration)?.items, index)?;
        set(value, *number)?;
        text(name, name_length, label)
    })
}
