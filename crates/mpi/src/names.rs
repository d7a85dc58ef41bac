// SPDX-License-Identifier: Apache-2.0
//! Names of services (MPI 5.0 section 11.8.5).

use std::ffi::{c_char, c_int};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_boot::AskError;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::info::Info;
use isthmus_wire::question::{Kind, Scope};
use isthmus_wire::word;

use crate::c::{Out, Text};
use crate::call::call;
use crate::{info, process};

/// Longest name of a service, bytes.
const MAX_NAME: usize = 1024;
const SCOPE: &str = "isthmus_scope";
/// The same for programs written for Open MPI.
const GLOBAL: &str = "ompi_global_scope";

/// Who is to find a name, as the program says.
fn scope(info: &Info) -> Result<Option<Scope>> {
    if let Some(word) = info.get(SCOPE)? {
        return match [Scope::Job, Scope::User].into_iter().find(|scope| scope.word() == word) {
            Some(scope) => Ok(Some(scope)),
            None => fail!(
                abi::MPI_ERR_INFO_VALUE,
                argument("info"),
                "has {SCOPE} = '{word}', expected job or user"
            ),
        };
    }
    Ok(match info.get(GLOBAL)? {
        Some("true") => Some(Scope::User),
        Some("false") => Some(Scope::Job),
        _ => None,
    })
}

fn service_name(name: Text) -> Result<String> {
    let name = name.bytes("service_name", abi::MPI_ERR_ARG)?;
    match name.len() {
        0 => fail!(abi::MPI_ERR_ARG, argument("service_name"), "is empty"),
        1..=MAX_NAME => Ok(word::from_bytes(name)),
        long => fail!(
            abi::MPI_ERR_ARG,
            argument("service_name"),
            "has {long} characters, at most {MAX_NAME} are possible"
        ),
    }
}

fn port_name(port: Text) -> Result<String> {
    let port = port.bytes("port_name", abi::MPI_ERR_PORT)?;
    match port.len() < abi::MPI_MAX_PORT_NAME as usize {
        true if !port.is_empty() => Ok(word::from_bytes(port)),
        true => fail!(abi::MPI_ERR_PORT, argument("port_name"), "is empty"),
        false => fail!(
            abi::MPI_ERR_PORT,
            argument("port_name"),
            "has {} characters, more than the name of a port",
            port.len()
        ),
    }
}

/// `unknown`: the class for a name that is not published.
fn error(error: &AskError, unknown: c_int) -> Error {
    let class = match error {
        AskError::Refused(refusal) => match refusal.kind {
            Kind::Unknown => unknown,
            Kind::Taken => abi::MPI_ERR_SERVICE,
            Kind::Unable | Kind::NotStarted => abi::MPI_ERR_OTHER,
        },
        AskError::NoLauncher | AskError::Lost(_) => abi::MPI_ERR_OTHER,
    };
    Error::new(class, error.to_string())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Publish_name(name: Text, hints: h::Info, port: Text) -> c_int {
    call("MPI_Publish_name", || {
        let (name, port) = (service_name(name)?, port_name(port)?);
        let scope = scope(&info::find(hints)?)?;
        let published = process::underneath()?.publish(scope, &name, &port);
        published.map_err(|e| error(&e, abi::MPI_ERR_SERVICE))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Unpublish_name(name: Text, hints: h::Info, port: Text) -> c_int {
    call("MPI_Unpublish_name", || {
        let (name, port) = (service_name(name)?, port_name(port)?);
        let scope = scope(&info::find(hints)?)?;
        let unpublished = process::underneath()?.unpublish(scope, &name, &port);
        unpublished.map_err(|e| error(&e, abi::MPI_ERR_SERVICE))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Lookup_name(name: Text, hints: h::Info, port: Out<c_char>) -> c_int {
    call("MPI_Lookup_name", || {
        let name = service_name(name)?;
        let scope = scope(&info::find(hints)?)?;
        let found = process::underneath()?.look_up(scope, &name);
        let found = found.map_err(|e| error(&e, abi::MPI_ERR_NAME))?;
        port.bytes("port_name", &word::to_bytes(&found), abi::MPI_MAX_PORT_NAME as usize)
            .map(drop)
    })
}
