// SPDX-License-Identifier: Apache-2.0
//! Control variables (MPI 5.0 section 15.3.6): the settings of `spec/settings.tsv` that this library reads, under their
//! names.
//!
//! | scope in the table | scope here | |
//! | --- | --- | --- |
//! | tunable | LOCAL | written at any time, before MPI_Init too; acts at once, on this process |
//! | job, library | CONSTANT | what the environment said, or the default |

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_settings::{SETTINGS, Setting};

use super::enumeration::Enumeration;
use super::values::{Code, Value, get, name, nth, set, text, tool};
use crate::c::{In, Out, Text};
use crate::handle::{Kind, Table};
use crate::settings::{self, Number};

/// Room for the value of a variable that is a text.
const TEXT: usize = 256;

static HANDLES: Table<&'static Variable> = Table::new(Kind::CvarHandle);

pub(super) struct Variable {
    pub(super) setting: &'static Setting,
    /// What it acts on; `None`: cannot be changed.
    number: Option<Number>,
}

/// All of them, in the order of the table.
pub(super) fn all() -> &'static [Variable] {
    static ALL: OnceLock<Vec<Variable>> = OnceLock::new();
    ALL.get_or_init(|| {
        let here = |s: &&Setting| matches!(s.scope, "tunable" | "job" | "library");
        let variable = |setting: &'static Setting| Variable {
            setting,
            number: settings::number(setting.name),
        };
        SETTINGS.iter().filter(here).map(variable).collect()
    })
}

impl Variable {
    fn is_text(&self) -> bool {
        !matches!(
            self.setting.unit,
            "flag" | "number" | "bytes" | "microseconds" | "seconds"
        )
    }

    fn datatype(&self) -> h::Datatype {
        match self.setting.unit {
            "flag" => h::MPI_INT,
            _ if self.is_text() => h::MPI_CHAR,
            _ => h::MPI_UNSIGNED_LONG_LONG,
        }
    }

    fn count(&self) -> usize {
        if self.is_text() { TEXT } else { 1 }
    }

    /// A switch that can be written takes any number, as C's truth values do, so only the others are enumerations.
    fn enumeration(&self) -> h::TEnum {
        if self.setting.unit == "flag" && self.number.is_none() {
            Enumeration::Switch.handle()
        } else {
            h::MPI_T_ENUM_NULL
        }
    }

    fn constant(&self) -> String {
        std::env::var(self.setting.name).unwrap_or_else(|_| self.setting.default.to_owned())
    }

    fn read(&self, buffer: Out<u8>) -> Code {
        if self.is_text() {
            let target = buffer.slice("buf", TEXT).map_err(|_| abi::MPI_T_ERR_INVALID)?;
            let value = self.constant();
            let length = value.len().min(TEXT - 1);
            target[..length].copy_from_slice(&value.as_bytes()[..length]);
            target[length] = 0;
            return Ok(());
        }
        let value = match self.number {
            Some(number) => settings::read(number),
            None => self.setting.number(std::env::var_os).unwrap_or(0),
        };
        if self.setting.unit == "flag" {
            Value::Int(value as c_int).give(buffer)
        } else {
            Value::Wide(value).give(buffer)
        }
    }

    fn write(&self, buffer: In<u8>) -> Code {
        let Some(number) = self.number else {
            return Err(abi::MPI_T_ERR_CVAR_SET_NEVER);
        };
        let bytes = |n| buffer.slice("buf", n).map_err(|_| abi::MPI_T_ERR_INVALID);
        let value = if self.setting.unit == "flag" {
            let content = bytes(size_of::<c_int>())?.first_chunk();
            content.map(|b| c_int::from_ne_bytes(*b) as u64)
        } else {
            bytes(size_of::<u64>())?.first_chunk().map(|b| u64::from_ne_bytes(*b))
        };
        settings::write(number, value.ok_or(abi::MPI_T_ERR_INVALID)?);
        Ok(())
    }
}

fn find(handle: h::TCvarHandle) -> Code<&'static Variable> {
    HANDLES.get(handle.0).copied().ok_or(abi::MPI_T_ERR_INVALID_HANDLE)
}

/// MPI_T_finalize: handles are gone.
pub(super) fn end() {
    HANDLES.clear();
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_cvar_get_num(n: Out<c_int>) -> c_int {
    tool(|| set(n, all().len() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_cvar_get_info(
    index: c_int,
    name: Out<c_char>,
    name_length: Out<c_int>,
    verbosity: Out<c_int>,
    datatype: Out<h::Datatype>,
    enumeration: Out<h::TEnum>,
    description: Out<c_char>,
    description_length: Out<c_int>,
    bind: Out<c_int>,
    scope: Out<c_int>,
) -> c_int {
    tool(|| {
        let variable = nth(all(), index)?;
        let setting = variable.setting;
        text(name, name_length, setting.name)?;
        text(description, description_length, setting.help)?;
        verbosity.put(match variable.number {
            Some(Number::Knob(_)) => abi::MPI_T_VERBOSITY_TUNER_BASIC,
            Some(Number::Check) | None => abi::MPI_T_VERBOSITY_USER_BASIC,
        });
        datatype.put(variable.datatype());
        enumeration.put(variable.enumeration());
        bind.put(abi::MPI_T_BIND_NO_OBJECT);
        scope.put(match variable.number {
            Some(_) => abi::MPI_T_SCOPE_LOCAL,
            None => abi::MPI_T_SCOPE_CONSTANT,
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_cvar_get_index(text: Text, index: Out<c_int>) -> c_int {
    tool(|| {
        let wanted = name(text)?;
        let found = all().iter().position(|v| v.setting.name == wanted);
        set(index, found.ok_or(abi::MPI_T_ERR_INVALID_NAME)? as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_cvar_handle_alloc(
    index: c_int,
    _object: usize,
    handle: Out<h::TCvarHandle>,
    count: Out<c_int>,
) -> c_int {
    tool(|| {
        let variable = nth(all(), index)?;
        set(handle, h::MPI_T_CVAR_HANDLE_NULL)?;
        set(count, variable.count() as c_int)?;
        set(handle, h::TCvarHandle(HANDLES.insert(variable)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_cvar_handle_free(handle: Out<h::TCvarHandle>) -> c_int {
    tool(|| {
        HANDLES.remove(get(handle)?.0).ok_or(abi::MPI_T_ERR_INVALID_HANDLE)?;
        set(handle, h::MPI_T_CVAR_HANDLE_NULL)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_cvar_read(handle: h::TCvarHandle, buffer: Out<u8>) -> c_int {
    tool(|| find(handle)?.read(buffer))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_cvar_write(handle: h::TCvarHandle, buffer: In<u8>) -> c_int {
    tool(|| find(handle)?.write(buffer))
}
