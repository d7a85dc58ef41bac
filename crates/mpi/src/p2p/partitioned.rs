// SPDX-License-Identifier: Apache-2.0
//! Partitioned communication (MPI 5.0 chapter 4).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_abi::{Count, Status};
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;

use crate::c::{In, Out, Source, Target, count, flag};
use crate::call::call_on;
use crate::entry::entry;
use crate::p2p::{Envelope, inbound, outbound};
use crate::process;
use crate::request::{self, Operation, Partitioned, null_status};

/// The message of all partitions, and their number.
fn whole(partitions: c_int, each: Envelope) -> Result<(u32, Envelope)> {
    let number = count("partitions", partitions)? as u32;
    match count("count", each.count)?
        .checked_mul(number.into())
        .and_then(|n| i64::try_from(n).ok())
    {
        Some(all) => Ok((number, Envelope { count: all, ..each })),
        None => fail!(
            abi::MPI_ERR_COUNT,
            "{partitions} partitions of {} elements are more than can be addressed",
            each.count
        ),
    }
}

fn psend_init(
    buffer: Source,
    partitions: c_int,
    each: Envelope,
    info: h::Info,
    request: Out<h::Request>,
) -> Result<()> {
    request.set("request", h::MPI_REQUEST_NULL)?;
    crate::info::find(info)?;
    let (number, all) = whole(partitions, each)?;
    let Some(message) = outbound(buffer, all)? else {
        let starter = Box::new(|| Ok(Operation::Done(Status::empty())));
        return request.set(
            "request",
            request::insert_partitioned(each.comm, starter, Partitioned::to_nobody(number)),
        );
    };
    let outlet = process::world()?.engine().lock().partitioned().psend_init(
        message.to.comm.channel(),
        message.to.rank,
        message.to.tag,
    );
    let data = message.data;
    let starter = move || {
        let mut engine = process::world()?.engine().lock();
        Ok(Operation::Send(engine.partitioned().psend_start(
            outlet,
            data.clone(),
            number,
        )))
    };
    let role = Partitioned::sending(number, outlet);
    request.set(
        "request",
        request::insert_partitioned(each.comm, Box::new(starter), role),
    )
}

fn precv_init(
    buffer: Target,
    partitions: c_int,
    each: Envelope,
    info: h::Info,
    request: Out<h::Request>,
) -> Result<()> {
    request.set("request", h::MPI_REQUEST_NULL)?;
    crate::info::find(info)?;
    if each.rank == abi::MPI_ANY_SOURCE {
        fail!(
            abi::MPI_ERR_RANK,
            argument("source"),
            "is MPI_ANY_SOURCE, which partitioned communication does not have"
        );
    }
    if each.tag == abi::MPI_ANY_TAG {
        fail!(
            abi::MPI_ERR_TAG,
            argument("tag"),
            "is MPI_ANY_TAG, which partitioned communication does not have"
        );
    }
    let (number, all) = whole(partitions, each)?;
    let message = inbound(buffer, all)?.and_then(|m| Some((m.from.comm, m.from.rank?, m.from.tag?, m.room)));
    let Some((comm, source, tag, room)) = message else {
        let starter = Box::new(|| Ok(Operation::Done(null_status())));
        return request.set(
            "request",
            request::insert_partitioned(each.comm, starter, Partitioned::from_nobody(number)),
        );
    };
    let inlet = process::world()?
        .engine()
        .lock()
        .partitioned()
        .precv_init(comm.channel(), source, tag);
    let starter = move || {
        let mut engine = process::world()?.engine().lock();
        Ok(Operation::Receive(engine.partitioned().precv_start(
            inlet,
            room.clone(),
            number,
        )))
    };
    let role = Partitioned::receiving(number, inlet);
    request.set(
        "request",
        request::insert_partitioned(each.comm, Box::new(starter), role),
    )
}

// The number of partitions is an `int`, the count a MPI_Count: there is no second form.
entry! {
    isthmus_MPI_Psend_init<Count>:
    (buf: Source, partitions: c_int, count: N, datatype: h::Datatype, rank: c_int, tag: c_int, comm: h::Comm,
     info: h::Info, request: Out<h::Request>) on comm =>
    psend_init(buf, partitions, Envelope { count, datatype, rank, tag, comm }, info, request)
}

entry! {
    isthmus_MPI_Precv_init<Count>:
    (buf: Target, partitions: c_int, count: N, datatype: h::Datatype, rank: c_int, tag: c_int, comm: h::Comm,
     info: h::Info, request: Out<h::Request>) on comm =>
    precv_init(buf, partitions, Envelope { count, datatype, rank, tag, comm }, info, request)
}

/// Marks partitions of an active send as ready.
fn ready(handle: h::Request, partitions: impl Iterator<Item = c_int> + Clone) -> Result<()> {
    let (role, operation) = request::partitioned(handle)?;
    if !role.is_send() {
        fail!(
            abi::MPI_ERR_REQUEST,
            argument("request"),
            "is a partitioned receive, whose partitions only the sender marks"
        );
    }
    let Some(operation) = operation else {
        fail!(
            abi::MPI_ERR_REQUEST,
            "the partitioned send is not active; call MPI_Start first"
        );
    };
    // Nothing is marked if one of them is wrong.
    partitions.clone().try_for_each(|p| role.partition(p).map(drop))?;
    for partition in partitions {
        request::part(handle, partition, false);
        let partition = role.partition(partition)?;
        if let Operation::Send(request) = operation {
            let mut engine = process::world()?.engine().lock();
            engine
                .partitioned()
                .pready(request, partition)
                .map_err(|error| Error::from(&error))?;
        }
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Pready(partition: c_int, request: h::Request) -> c_int {
    call_on("MPI_Pready", request::whose(request), || {
        ready(request, std::iter::once(partition))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Pready_range(low: c_int, high: c_int, request: h::Request) -> c_int {
    call_on("MPI_Pready_range", request::whose(request), || {
        if low > high {
            fail!(
                abi::MPI_ERR_ARG,
                argument("partition_low"),
                "is {low}, which is more than partition_high, {high}"
            );
        }
        ready(request, low..=high)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Pready_list(length: c_int, partitions: In<c_int>, request: h::Request) -> c_int {
    call_on("MPI_Pready_list", request::whose(request), || {
        let list = partitions.slice("array_of_partitions", count("length", length)? as usize)?;
        ready(request, list.iter().copied())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Parrived(request: h::Request, partition: c_int, arrived: Out<c_int>) -> c_int {
    call_on("MPI_Parrived", request::whose(request), || {
        if request == h::MPI_REQUEST_NULL {
            // As an inactive one (MPI 5.0 section 4.2.2).
            return arrived.set("flag", flag(true));
        }
        let (role, operation) = request::partitioned(request)?;
        if role.is_send() {
            fail!(
                abi::MPI_ERR_REQUEST,
                argument("request"),
                "is a partitioned send, in which nothing arrives"
            );
        }
        let partition = role.partition(partition)?;
        let Some(Operation::Receive(receive)) = operation else {
            // Inactive, or from MPI_PROC_NULL.
            return arrived.set("flag", flag(true));
        };
        let mut engine = process::world()?.engine().lock();
        let mut there = engine.partitioned().parrived(receive, partition);
        if !there {
            engine.progress();
            there = engine.partitioned().parrived(receive, partition);
        }
        drop(engine);
        if !there {
            process::world()?.engine().idle();
        } else {
            request::part(request, partition as c_int, true);
        }
        arrived.set("flag", flag(there))
    })
}
