// SPDX-License-Identifier: Apache-2.0
//! An opened adaptor.
//!
//! The loader is asked for deep binding: the MPI_ names that the adaptor and its vendor use are found in the vendor
//! before they are found in our library, which has the same ones and was there first. It is never closed: MPI libraries
//! do not survive that.

use crate::VendorError;
use crate::comm::Comm;
use crate::interface::{ANY, Functions, INTERFACE, RawArrival};
use crate::turn::Table;
use crate::used::{Kept, Request};
use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_longlong};
use std::path::Path;

/// `RTLD_DEEPBIND` of the GNU C library.
const DEEP_BINDING: c_int = 0x8;
/// Room for texts of the vendor.
const TEXT: usize = 1024;

/// A vendor MPI. Between [`Vendor::begin`] and [`Vendor::end`] its processes can talk.
///
/// One call at a time, whichever copy and thread it is made on ([turn](crate::turn)).
pub struct Vendor {
    pub(crate) table: Table,
    /// Of this process in the vendor's job, and how many that has, once it has begun.
    rank: u32,
    count: u32,
}

/// A message that has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Rank in the communicator.
    pub source: u32,
    /// Tag.
    pub tag: i32,
    /// Bytes.
    pub bytes: u64,
    /// It was longer than the room.
    pub truncated: bool,
    /// The receive was cancelled.
    pub cancelled: bool,
    /// Its name, if it was found and not received.
    pub(crate) message: u64,
}

impl From<RawArrival> for Arrival {
    fn from(raw: RawArrival) -> Self {
        Self {
            source: raw.source.max(0) as u32,
            tag: raw.tag,
            bytes: raw.bytes.max(0) as u64,
            truncated: raw.bytes < 0,
            cancelled: raw.cancelled != 0,
            message: raw.message,
        }
    }
}

impl Vendor {
    /// Opens an adaptor.
    pub fn open(path: &Path) -> Result<Self, VendorError> {
        let refused = |why: libloading::Error| VendorError::Open {
            path: path.to_owned(),
            why: why.to_string(),
        };
        // SAFETY: runs the initializers of an MPI library that the user named; the file is one that `build` made.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | DEEP_BINDING) }.map_err(refused)?;
        type Entry = unsafe extern "C" fn() -> *const Functions;
        // SAFETY: the adaptor's one symbol has this type.
        let entry = unsafe { library.get::<Entry>(b"isthmus_vendor\0") }.map_err(refused)?;
        // SAFETY: it returns the address of a constant table.
        let table = unsafe { entry() };
        // SAFETY: the table begins with two numbers in every version, and is never unmapped because the library is
        // never closed.
        let functions = unsafe { table.as_ref() };
        std::mem::forget(library);
        match functions {
            Some(functions)
                if functions.interface == INTERFACE && functions.size as usize == size_of::<Functions>() =>
            {
                Ok(Self {
                    table: Table::of(functions),
                    rank: 0,
                    count: 0,
                })
            }
            found => Err(VendorError::Interface {
                path: path.to_owned(),
                found: found.map_or(0, |f| f.interface),
            }),
        }
    }

    /// What the vendor calls itself, first line.
    pub fn version(&self) -> Result<String, VendorError> {
        // SAFETY: the memory has the length that is said.
        let text = text(|to, room| unsafe { (self.table.turn().version)(to, room) });
        let text = text.map_err(|code| self.failed("tell its version", code))?;
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }

    #[cold]
    fn failed(&self, function: &'static str, code: c_int) -> VendorError {
        // SAFETY: the memory has the length that is said.
        let text = text(|to, room| unsafe { (self.table.turn().explain)(code, to, room) });
        VendorError::Call {
            function,
            code,
            text: text.unwrap_or_else(|_| "no text".to_owned()),
        }
    }

    #[inline]
    pub(crate) fn done(&self, function: &'static str, code: c_int) -> Result<(), VendorError> {
        if code == 0 {
            Ok(())
        } else {
            Err(self.failed(function, code))
        }
    }

    /// MPI_Init: rank and number of processes in the vendor's job. `single`: this thread alone will use it.
    pub fn begin(&mut self, single: bool) -> Result<(u32, u32), VendorError> {
        let (mut rank, mut count) = (0, 0);
        // SAFETY: both are written.
        let code = unsafe { (self.table.turn().begin)(single.into(), &raw mut rank, &raw mut count) };
        self.done("begin", code)?;
        (self.rank, self.count) = (rank.max(0) as u32, count.max(0) as u32);
        Ok((self.rank, self.count))
    }

    /// All processes of the vendor's job, which has begun.
    pub fn world(&self) -> Comm {
        Comm {
            name: 1,
            rank: self.rank,
            members: self.count,
        }
    }

    /// MPI_Finalize.
    pub fn end(&mut self) -> Result<(), VendorError> {
        // SAFETY: no conditions.
        let code = unsafe { (self.table.turn().end)() };
        self.done("end", code)
    }

    /// MPI_Abort: ends the vendor's job.
    pub fn abort(&mut self, status: i32) {
        // SAFETY: no conditions.
        _ = unsafe { (self.table.turn().abort)(status) };
    }

    /// A communicator with the same members. Collective.
    pub fn duplicate(&mut self, comm: &Comm) -> Result<Comm, VendorError> {
        let mut made = 0;
        // SAFETY: `made` is written.
        let code = unsafe { (self.table.turn().duplicate)(comm.name, &raw mut made) };
        self.done("duplicate a communicator", code)?;
        Ok(Comm { name: made, ..*comm })
    }

    /// A second holder of the same vendor.
    pub fn share(&self) -> Self {
        Self { ..*self }
    }

    /// The largest tag.
    pub fn largest_tag(&mut self) -> Result<i32, VendorError> {
        let mut limit = 0;
        // SAFETY: `limit` is written.
        let code = unsafe { (self.table.turn().tags)(&raw mut limit) };
        self.done("tell its largest tag", code)?;
        Ok(limit)
    }

    /// A communicator of these ranks of the vendor's job, in this order. Collective over them only.
    pub fn among(&mut self, ranks: &[i32], tag: i32) -> Result<Option<Comm>, VendorError> {
        let mut made = 0;
        let count = c_int::try_from(ranks.len()).unwrap_or(c_int::MAX);
        // SAFETY: so many ranks are read, and `made` is written.
        let code = unsafe { (self.table.turn().among)(ranks.as_ptr(), count, tag, &raw mut made) };
        self.done("make a communicator", code)?;
        let own = ranks.iter().position(|&rank| rank == self.rank as i32);
        Ok(own.filter(|_| made > 0).map(|rank| Comm {
            name: made,
            rank: rank as u32,
            members: ranks.len() as u32,
        }))
    }

    /// Frees a communicator that was made. Collective.
    pub fn release(&mut self, comm: Comm) -> Result<(), VendorError> {
        let Comm { name, .. } = comm;
        // SAFETY: no conditions; unknown names are errors.
        let code = unsafe { (self.table.turn().release)(name) };
        self.done("free a communicator", code)
    }

    /// Starts to send `length` bytes from the memory's origin; the request keeps them as they are until it is complete.
    /// `None`: it is.
    pub fn start_send(
        &mut self,
        comm: &Comm,
        memory: &ReadMemory,
        length: u64,
        to: u32,
        tag: i32,
        synchronous: bool,
    ) -> Result<Option<Request>, VendorError> {
        let mut request = 0;
        let memory = memory.exposed(0, length as usize);
        let data = memory.first().cast();
        let kept = Kept::read(memory);
        // SAFETY: the memory is as long, which `exposed` has checked; it is kept until the request is complete, and for
        // good where that is never known.
        let code = unsafe {
            (self.table.turn().start_send)(
                comm.name,
                data,
                length as c_longlong,
                to as c_int,
                tag,
                synchronous.into(),
                &raw mut request,
            )
        };
        self.done("send", code)?;
        Ok(if request > 0 {
            Some(Request { name: request, kept })
        } else {
            kept.release();
            None
        })
    }

    /// Sends; blocks until the memory is free again.
    #[inline]
    pub fn send(
        &mut self,
        comm: &Comm,
        memory: &ReadMemory,
        length: u64,
        to: u32,
        tag: i32,
    ) -> Result<(), VendorError> {
        let memory = memory.exposed(0, length as usize);
        let data = memory.first().cast();
        // SAFETY: the memory is as long, which `exposed` has checked, and is used during the call.
        let code = unsafe { (self.table.turn().send)(comm.name, data, length as c_longlong, to as c_int, tag) };
        self.done("send", code)
    }

    /// Receives, from anybody or anything (`None`); blocks.
    #[inline]
    pub fn receive(
        &mut self,
        comm: &Comm,
        memory: &WriteMemory,
        length: u64,
        (from, tag): (Option<u32>, Option<i32>),
    ) -> Result<Arrival, VendorError> {
        let mut arrival = RawArrival::default();
        let memory = memory.exposed(0, length as usize);
        let room = memory.first().cast();
        let from = from.map_or(ANY, |rank| rank as c_int);
        let (bytes, tag) = (length as c_longlong, tag.unwrap_or(ANY));
        // SAFETY: the memory is as long, which `exposed` has checked, and is used during the call.
        let code = unsafe { (self.table.turn().receive)(comm.name, room, bytes, from, tag, &raw mut arrival) };
        self.done("receive", code)?;
        Ok(arrival.into())
    }

    /// Starts to receive up to `length` bytes (from anybody: `None`) to the memory's origin; the request keeps that
    /// until it is complete.
    pub fn start_receive(
        &mut self,
        comm: &Comm,
        memory: &WriteMemory,
        length: u64,
        from: Option<u32>,
        tag: i32,
    ) -> Result<Request, VendorError> {
        let mut request = 0;
        let memory = memory.exposed(0, length as usize);
        let (room, from) = (memory.first().cast(), from.map_or(ANY, |rank| rank as c_int));
        let kept = Kept::written(memory);
        // SAFETY: the memory is as long, which `exposed` has checked; it is kept as in `start_send`.
        let code = unsafe {
            (self.table.turn().start_receive)(comm.name, room, length as c_longlong, from, tag, &raw mut request)
        };
        self.done("receive", code)?;
        Ok(Request { name: request, kept })
    }

    /// As [`Vendor::start_receive`], from anybody or anything (`None`), and looks up to `rounds` times whether it is
    /// complete.
    pub fn receive_soon(
        &mut self,
        comm: &Comm,
        memory: &WriteMemory,
        length: u64,
        (from, tag): (Option<u32>, Option<i32>),
        rounds: u32,
    ) -> Result<Result<Arrival, Request>, VendorError> {
        let (mut request, mut arrival) = (0, RawArrival::default());
        let memory = memory.exposed(0, length as usize);
        let room = memory.first().cast();
        let kept = Kept::written(memory);
        // SAFETY: the memory is as long, which `exposed` has checked; it is kept as in `start_send`.
        let code = unsafe {
            (self.table.turn().receive_soon)(
                comm.name,
                room,
                length as c_longlong,
                from.map_or(ANY, |rank| rank as c_int),
                tag.unwrap_or(ANY),
                rounds as c_int,
                &raw mut request,
                &raw mut arrival,
            )
        };
        self.done("receive", code)?;
        Ok(if request > 0 {
            Err(Request { name: request, kept })
        } else {
            kept.release();
            Ok(arrival.into())
        })
    }

    /// Asks to cancel a receive.
    pub fn cancel(&mut self, request: &Request) -> Result<(), VendorError> {
        self.cancel_named(request.name)
    }

    /// The same by name.
    pub(crate) fn cancel_named(&mut self, request: u64) -> Result<(), VendorError> {
        // SAFETY: no conditions; unknown names are errors.
        let code = unsafe { (self.table.turn().cancel)(request) };
        self.done("cancel a receive", code)
    }

    /// A message, if one is there; `take`: taken out of the matching.
    pub fn probe(
        &self,
        comm: &Comm,
        (from, tag): (Option<u32>, Option<i32>),
        take: bool,
    ) -> Result<Option<Arrival>, VendorError> {
        let (mut found, mut arrival) = (0, RawArrival::default());
        let (from, tag) = (from.map_or(ANY, |rank| rank as c_int), tag.unwrap_or(ANY));
        let turn = self.table.turn();
        let look = if take { turn.find } else { turn.peek };
        // SAFETY: both are written.
        let code = unsafe { look(comm.name, from, tag, &raw mut found, &raw mut arrival) };
        drop(turn);
        self.done("look for messages", code)?;
        Ok((found != 0).then(|| arrival.into()))
    }

    /// Starts to receive a message that was found.
    pub fn start_take(&mut self, message: u64, memory: &WriteMemory, length: u64) -> Result<Request, VendorError> {
        let mut request = 0;
        let memory = memory.exposed(0, length as usize);
        let room = memory.first().cast();
        let kept = Kept::written(memory);
        // SAFETY: the memory is as long, which `exposed` has checked; it is kept as in `start_send`.
        let code = unsafe { (self.table.turn().start_take)(message, room, length as c_longlong, &raw mut request) };
        self.done("receive a message", code)?;
        Ok(Request { name: request, kept })
    }

    /// Whether a request is complete; then it is gone, and its memory free again.
    pub fn test(&mut self, request: &mut Request) -> Result<Option<Arrival>, VendorError> {
        let arrival = self.look(&mut request.name)?;
        if arrival.is_some() {
            std::mem::take(&mut request.kept).release();
        }
        Ok(arrival)
    }

    /// The same of the vendor's part of it.
    #[inline]
    pub(crate) fn look(&mut self, request: &mut u64) -> Result<Option<Arrival>, VendorError> {
        let (mut complete, mut arrival) = (0, RawArrival::default());
        // SAFETY: all three are written; unknown names are errors.
        let code = unsafe { (self.table.turn().test)(&raw mut *request, &raw mut complete, &raw mut arrival) };
        self.done("complete a request", code)?;
        Ok((complete != 0).then(|| arrival.into()))
    }

    /// Nobody leaves before everybody has entered.
    pub fn barrier(&mut self, comm: &Comm) -> Result<(), VendorError> {
        // SAFETY: no conditions; unknown names are errors.
        let code = unsafe { (self.table.turn().barrier)(comm.name) };
        self.done("synchronize", code)
    }

    /// To be called where members on several nodes have done something together and may next stay away from this MPI
    /// for long. What it sent last may wait inside its library for a connection, and who waits for that as long as the
    /// sender is away (MPICH 5 over OFI). Nobody leaves the second barrier before everybody has left the first: what
    /// passes in the second has connections.
    pub fn settle(&mut self, comm: &Comm) -> Result<(), VendorError> {
        self.barrier(comm)?;
        self.barrier(comm)
    }
}

/// A text that a function writes.
fn text(write: impl FnOnce(*mut c_char, c_int) -> c_int) -> Result<String, c_int> {
    let mut room = vec![0u8; TEXT];
    match write(room.as_mut_ptr().cast(), TEXT as c_int) {
        0 => Ok(CStr::from_bytes_until_nul(&room).map_or_else(|_| String::new(), |t| t.to_string_lossy().into_owned())),
        code => Err(code),
    }
}
