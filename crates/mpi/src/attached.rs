// SPDX-License-Identifier: Apache-2.0
//! Buffers of buffered mode (MPI 5.0 section 3.6), attached to the process, a session or a communicator.

use std::ffi::c_int;

use isthmus_abi::Count;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::attached::Attachment;
use isthmus_core::comm::Comm;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::session::Session;
use isthmus_engine::Charge;

use crate::c::{Out, Target, count};
use crate::call::{call, call_on};
use crate::entry::{entry, wide};
use crate::request::{self, Operation};
use crate::session::call_in;
use crate::{comm, process};

/// The buffer of the process.
static PROCESS: Attachment = Attachment::new();

const THE_PROCESS: &str = "the process";

/// Charges a message to the first buffer that is attached: to its communicator, to the session that this comes from, to
/// the process (MPI 5.0 section 3.6).
pub(crate) fn charge(comm: &Comm, length: u64) -> Result<Charge> {
    let own = comm.user().buffer().charge(length, || comm.describe());
    let of_session = || {
        comm.user()
            .session_buffer()?
            .charge(length, || "its session".to_owned())
    };
    let of_process = || PROCESS.charge(length, || THE_PROCESS.to_owned());
    match own.or_else(of_session).or_else(of_process) {
        Some(charge) => charge,
        None => fail!(
            abi::MPI_ERR_BUFFER,
            "a buffered send of {length} bytes needs a buffer, but none is attached to {}{} or to {THE_PROCESS}; attach one with \
             MPI_Buffer_attach or MPI_Comm_attach_buffer",
            comm.describe(),
            if comm.user().session_buffer().is_some() {
                ", to its session"
            } else {
                ""
            }
        ),
    }
}

/// Something that a buffer is attached to, with its description.
pub(crate) struct Holder<'a>(pub(crate) &'a Attachment, pub(crate) String);

impl Holder<'static> {
    fn process() -> Self {
        Self(&PROCESS, THE_PROCESS.to_owned())
    }

    fn comm(handle: h::Comm) -> Result<Self> {
        let comm = comm::find(handle)?;
        Ok(Self(comm.user().buffer(), comm.describe()))
    }
}

impl<'a> Holder<'a> {
    fn session(session: &'a Session) -> Self {
        Self(session.buffer(), "the session".to_owned())
    }

    pub(crate) fn attach(&self, buffer: Target, size: i64) -> Result<()> {
        let automatic = buffer.address() == abi::MPI_BUFFER_AUTOMATIC;
        let size = if automatic { 0 } else { count("size", size)? };
        if size > 0 && buffer.address() == 0 {
            fail!(
                abi::MPI_ERR_BUFFER,
                argument("buffer"),
                "is a null pointer, expected {size} bytes, or MPI_BUFFER_AUTOMATIC"
            );
        }
        self.0.attach(buffer.address(), size, &self.1)
    }

    /// Gives address and bytes when every message has left. `convert` makes the size what the program expects.
    pub(crate) fn detach<N>(
        &self,
        buffer: Out<usize>,
        size: Out<N>,
        convert: impl FnOnce(u64) -> Option<N>,
    ) -> Result<()> {
        let (address, bytes, rest) = self.0.detach(&self.1)?;
        process::world()?.engine().wait(|_| rest.is_complete().then_some(()));
        buffer.set("buffer_addr", address)?;
        match convert(bytes) {
            Some(bytes) => size.set("size", bytes),
            None => fail!(
                abi::MPI_ERR_ARG,
                "the detached buffer has {bytes} bytes, more than an int holds; use the function that ends with _c"
            ),
        }
    }

    pub(crate) fn flush(&self) -> Result<()> {
        if let Some(flush) = self.0.flush() {
            process::world()?.engine().wait(|_| flush.is_complete().then_some(()));
        }
        Ok(())
    }

    pub(crate) fn iflush(&self, comm: h::Comm, request: Out<h::Request>) -> Result<()> {
        let operation = match self.0.flush() {
            Some(flush) => Operation::Flush(flush),
            None => Operation::Done(isthmus_abi::Status::empty()),
        };
        request.set("request", request::insert(comm, operation))
    }
}

entry! {
    isthmus_MPI_Buffer_attach<c_int>, isthmus_MPI_Buffer_attach_c<Count>:
    (buffer: Target, size: N) => Holder::process().attach(buffer, wide(size))
}

entry! {
    isthmus_MPI_Buffer_detach<c_int>, isthmus_MPI_Buffer_detach_c<Count>:
    (buffer: Out<usize>, size: Out<N>) => Holder::process().detach(buffer, size, |n| N::try_from(n).ok())
}

entry! {
    isthmus_MPI_Comm_attach_buffer<c_int>, isthmus_MPI_Comm_attach_buffer_c<Count>:
    (comm: h::Comm, buffer: Target, size: N) on comm => Holder::comm(comm)?.attach(buffer, wide(size))
}

entry! {
    isthmus_MPI_Comm_detach_buffer<c_int>, isthmus_MPI_Comm_detach_buffer_c<Count>:
    (comm: h::Comm, buffer: Out<usize>, size: Out<N>) on comm =>
    Holder::comm(comm)?.detach(buffer, size, |n| N::try_from(n).ok())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Buffer_flush() -> c_int {
    call("MPI_Buffer_flush", || Holder::process().flush())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Buffer_iflush(request: Out<h::Request>) -> c_int {
    call("MPI_Buffer_iflush", || {
        Holder::process().iflush(h::MPI_COMM_SELF, request)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_flush_buffer(comm: h::Comm) -> c_int {
    call_on("MPI_Comm_flush_buffer", comm, || Holder::comm(comm)?.flush())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_iflush_buffer(comm: h::Comm, request: Out<h::Request>) -> c_int {
    call_on("MPI_Comm_iflush_buffer", comm, || {
        Holder::comm(comm)?.iflush(comm, request)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_attach_buffer(session: h::Session, buffer: Target, size: c_int) -> c_int {
    call_in("MPI_Session_attach_buffer", session, |s| {
        Holder::session(s).attach(buffer, size.into())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_attach_buffer_c(session: h::Session, buffer: Target, size: Count) -> c_int {
    call_in("MPI_Session_attach_buffer_c", session, |s| {
        Holder::session(s).attach(buffer, size)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_detach_buffer(session: h::Session, buffer: Out<usize>, size: Out<c_int>) -> c_int {
    call_in("MPI_Session_detach_buffer", session, |s| {
        Holder::session(s).detach(buffer, size, |n| c_int::try_from(n).ok())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_detach_buffer_c(session: h::Session, buffer: Out<usize>, size: Out<Count>) -> c_int {
    call_in("MPI_Session_detach_buffer_c", session, |s| {
        Holder::session(s).detach(buffer, size, |n| Count::try_from(n).ok())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_flush_buffer(session: h::Session) -> c_int {
    call_in("MPI_Session_flush_buffer", session, |s| Holder::session(s).flush())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_iflush_buffer(session: h::Session, request: Out<h::Request>) -> c_int {
    call_in("MPI_Session_iflush_buffer", session, |s| {
        Holder::session(s).iflush(h::MPI_COMM_SELF, request)
    })
}
