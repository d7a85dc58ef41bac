// SPDX-License-Identifier: Apache-2.0
//! Names of datatypes and what programs cache on them (MPI 5.0 sections 7.7.4 and 7.8).

use std::ffi::{c_char, c_int};
use std::sync::PoisonError;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::attribute::{self, Keys, Owner};
use isthmus_core::error::Result;
use isthmus_core::words;

use super::{Object, object};
use crate::attribute::{Callback, copy_closure, delete_closure};
use crate::c::{Extra, Out, Text, flag};
use crate::call::call;

/// Keys for datatypes.
static KEYS: Keys = Keys::new(Owner::Type);

impl Object {
    fn set_name(&self, name: &str) {
        let name = words::cut(name, abi::MPI_MAX_OBJECT_NAME as usize - 1);
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = Some(name.to_owned());
    }

    fn name(&self) -> String {
        let given = self.name.lock().unwrap_or_else(PoisonError::into_inner).clone();
        given.unwrap_or_else(|| self.datatype.basic().map_or("", |b| b.name()).to_owned())
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_set_name(datatype: h::Datatype, name: Text) -> c_int {
    call("MPI_Type_set_name", || {
        object(datatype)?.set_name(&name.get("type_name", abi::MPI_ERR_ARG)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_get_name(datatype: h::Datatype, name: Out<c_char>, length: Out<c_int>) -> c_int {
    call("MPI_Type_get_name", || {
        let is_null = datatype == h::MPI_DATATYPE_NULL;
        let text = if is_null {
            "MPI_DATATYPE_NULL".to_owned()
        } else {
            object(datatype)?.name()
        };
        let n = name.text("type_name", &text, abi::MPI_MAX_OBJECT_NAME as usize)?;
        length.set("resultlen", n as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_keyval(copy: Callback, delete: Callback, key: Out<c_int>, extra: Extra) -> c_int {
    call("MPI_Type_create_keyval", || {
        key.set("type_keyval", abi::MPI_KEYVAL_INVALID)?;
        key.set(
            "type_keyval",
            KEYS.create(copy_closure(copy, extra), delete_closure(delete, extra)),
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_free_keyval(key: Out<c_int>) -> c_int {
    call("MPI_Type_free_keyval", || {
        KEYS.free(key.get("type_keyval")?)?;
        key.set("type_keyval", abi::MPI_KEYVAL_INVALID)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_set_attr(datatype: h::Datatype, key: c_int, value: usize) -> c_int {
    call("MPI_Type_set_attr", || {
        attribute::set(&object(datatype)?.attributes, datatype.0, &KEYS.usable(key)?, value)
    })
}

fn get(datatype: h::Datatype, key: c_int, value: Out<usize>, found: Out<c_int>) -> Result<()> {
    let object = object(datatype)?;
    KEYS.find(key)?;
    let content = attribute::get(&object.attributes, key);
    found.set("flag", flag(content.is_some()))?;
    content.map_or(Ok(()), |content| value.set("attribute_val", content))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_get_attr(
    datatype: h::Datatype,
    key: c_int,
    value: Out<usize>,
    found: Out<c_int>,
) -> c_int {
    call("MPI_Type_get_attr", || get(datatype, key, value, found))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_delete_attr(datatype: h::Datatype, key: c_int) -> c_int {
    call("MPI_Type_delete_attr", || {
        KEYS.find(key)?;
        attribute::delete(&object(datatype)?.attributes, datatype.0, key).map(drop)
    })
}
