// SPDX-License-Identifier: Apache-2.0
//! An opened adaptor.
//!
//! The loader is asked for deep binding: the MPI_ names that the adaptor and its vendor use are found in the vendor
//! before they are found in our library, which has the same ones and was there first. It is never closed: MPI libraries
//! do not survive that.

use crate::VendorError;
use crate::interface::{ANY, Functions, INTERFACE, RawArrival, RawOperation};
use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_transport::native::{Collective, Element, General, Kind, Operator};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::path::Path;

/// `RTLD_DEEPBIND` of the GNU C library.
const DEEP_BINDING: c_int = 0x8;
/// Room for texts of the vendor.
const TEXT: usize = 1024;

/// A vendor MPI. Between [`Vendor::begin`] and [`Vendor::end`] its processes can talk.
///
/// One call at a time, whichever copy it is made on: copies live under one lock.
pub struct Vendor {
    functions: &'static Functions,
}

// The table is constant; calls come one at a time because they need `&mut self`, from any thread
// (MPI_THREAD_SERIALIZED).

/// A communicator of the vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm(pub(crate) u64);

impl Comm {
    /// All processes of the vendor's job.
    pub const WORLD: Self = Self(1);
}

/// A send or receive under way.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Request(pub(crate) u64);

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
                Ok(Self { functions })
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
        let text = text(|to, room| unsafe { (self.functions.version)(to, room) });
        let text = text.map_err(|code| self.failed("tell its version", code))?;
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }

    #[cold]
    fn failed(&self, function: &'static str, code: c_int) -> VendorError {
        // SAFETY: the memory has the length that is said.
        let text = text(|to, room| unsafe { (self.functions.explain)(code, to, room) });
        VendorError::Call {
            function,
            code,
            text: text.unwrap_or_else(|_| "no text".to_owned()),
        }
    }

    #[inline]
    fn done(&self, function: &'static str, code: c_int) -> Result<(), VendorError> {
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
        let code = unsafe { (self.functions.begin)(single.into(), &raw mut rank, &raw mut count) };
        self.done("begin", code)?;
        Ok((rank.max(0) as u32, count.max(0) as u32))
    }

    /// MPI_Finalize.
    pub fn end(&mut self) -> Result<(), VendorError> {
        // SAFETY: no conditions.
        let code = unsafe { (self.functions.end)() };
        self.done("end", code)
    }

    /// MPI_Abort: ends the vendor's job.
    pub fn abort(&mut self, status: i32) {
        // SAFETY: no conditions.
        _ = unsafe { (self.functions.abort)(status) };
    }

    /// A communicator with the same members. Collective.
    pub fn duplicate(&mut self, comm: Comm) -> Result<Comm, VendorError> {
        let mut made = 0;
        // SAFETY: `made` is written.
        let code = unsafe { (self.functions.duplicate)(comm.0, &raw mut made) };
        self.done("duplicate a communicator", code)?;
        Ok(Comm(made))
    }

    /// A second holder of the same vendor; see there.
    pub fn share(&self) -> Self {
        Self {
            functions: self.functions,
        }
    }

    /// The largest tag.
    pub fn largest_tag(&mut self) -> Result<i32, VendorError> {
        let mut limit = 0;
        // SAFETY: `limit` is written.
        let code = unsafe { (self.functions.tags)(&raw mut limit) };
        self.done("tell its largest tag", code)?;
        Ok(limit)
    }

    /// Whether all processes of the job say yes. Collective over it.
    pub fn all_agree(&self, yes: bool) -> Result<bool, VendorError> {
        let mine = OwnMemory::with(&i32::from(yes).to_ne_bytes());
        let all = OwnMemory::with(&[0; 4]);
        let minimum = Collective::Allreduce {
            from: Some(mine.reading()),
            into: all.memory(),
            count: 1,
            element: Element::Int32,
            operator: Operator::Minimum,
        };
        self.collective(Comm::WORLD, &minimum)?;
        Ok(all.content() == 1i32.to_ne_bytes())
    }

    /// A communicator of these ranks of the vendor's job, in this order. Collective over them only.
    pub fn among(&mut self, ranks: &[i32], tag: i32) -> Result<Option<Comm>, VendorError> {
        let mut made = 0;
        let count = c_int::try_from(ranks.len()).unwrap_or(c_int::MAX);
        // SAFETY: so many ranks are read, and `made` is written.
        let code = unsafe { (self.functions.among)(ranks.as_ptr(), count, tag, &raw mut made) };
        self.done("make a communicator", code)?;
        Ok((made > 0).then_some(Comm(made)))
    }

    /// Frees a communicator that was made. Collective.
    pub fn release(&mut self, comm: Comm) -> Result<(), VendorError> {
        // SAFETY: no conditions; unknown names are errors.
        let code = unsafe { (self.functions.release)(comm.0) };
        self.done("free a communicator", code)
    }

    /// Starts to send `length` bytes from the memory's origin, which stays as it is until the request is complete;
    /// `None`: it is.
    pub fn start_send(
        &mut self,
        comm: Comm,
        memory: &ReadMemory,
        length: u64,
        to: u32,
        tag: i32,
        synchronous: bool,
    ) -> Result<Option<Request>, VendorError> {
        let mut request = 0;
        let data = memory.part(0, length as usize).address() as *const c_void;
        // SAFETY: the memory is as long, which `part` has checked; it lives as its maker has promised.
        let code = unsafe {
            (self.functions.start_send)(
                comm.0,
                data,
                length as c_longlong,
                to as c_int,
                tag,
                synchronous.into(),
                &raw mut request,
            )
        };
        self.done("send", code)?;
        Ok((request > 0).then_some(Request(request)))
    }

    /// Sends; blocks until the memory is free again.
    #[inline]
    pub fn send(&mut self, comm: Comm, memory: &ReadMemory, length: u64, to: u32, tag: i32) -> Result<(), VendorError> {
        let data = memory.part(0, length as usize).address() as *const c_void;
        // SAFETY: the memory is as long, which `part` has checked; it lives as its maker has promised.
        let code = unsafe { (self.functions.send)(comm.0, data, length as c_longlong, to as c_int, tag) };
        self.done("send", code)
    }

    /// Receives, from anybody or anything (`None`); blocks.
    #[inline]
    pub fn receive(
        &mut self,
        comm: Comm,
        memory: &WriteMemory,
        length: u64,
        (from, tag): (Option<u32>, Option<i32>),
    ) -> Result<Arrival, VendorError> {
        let mut arrival = RawArrival::default();
        let room = memory.part(0, length as usize).address() as *mut c_void;
        let from = from.map_or(ANY, |rank| rank as c_int);
        let (bytes, tag) = (length as c_longlong, tag.unwrap_or(ANY));
        // SAFETY: the memory is as long, which `part` has checked; it lives as its maker has promised.
        let code = unsafe { (self.functions.receive)(comm.0, room, bytes, from, tag, &raw mut arrival) };
        self.done("receive", code)?;
        Ok(arrival.into())
    }

    /// Starts to receive up to `length` bytes (from anybody: `None`) to the memory's origin, which nobody else touches
    /// until the request is complete.
    pub fn start_receive(
        &mut self,
        comm: Comm,
        memory: &WriteMemory,
        length: u64,
        from: Option<u32>,
        tag: i32,
    ) -> Result<Request, VendorError> {
        let mut request = 0;
        let room = memory.part(0, length as usize).address() as *mut c_void;
        let from = from.map_or(ANY, |rank| rank as c_int);
        // SAFETY: the memory is as long, which `part` has checked; it lives as its maker has promised.
        let code =
            unsafe { (self.functions.start_receive)(comm.0, room, length as c_longlong, from, tag, &raw mut request) };
        self.done("receive", code)?;
        Ok(Request(request))
    }

    /// As [`Vendor::start_receive`], from anybody or anything (`None`), and looks up to `rounds` times whether it is
    /// complete.
    pub fn receive_soon(
        &mut self,
        comm: Comm,
        memory: &WriteMemory,
        length: u64,
        (from, tag): (Option<u32>, Option<i32>),
        rounds: u32,
    ) -> Result<Result<Arrival, Request>, VendorError> {
        let (mut request, mut arrival) = (0, RawArrival::default());
        let room = memory.part(0, length as usize).address() as *mut c_void;
        // SAFETY: the memory is as long, which `part` has checked; it lives as its maker has promised.
        let code = unsafe {
            (self.functions.receive_soon)(
                comm.0,
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
            Err(Request(request))
        } else {
            Ok(arrival.into())
        })
    }

    /// Asks to cancel a receive.
    pub fn cancel(&mut self, request: &Request) -> Result<(), VendorError> {
        // SAFETY: no conditions; unknown names are errors.
        let code = unsafe { (self.functions.cancel)(request.0) };
        self.done("cancel a receive", code)
    }

    /// A message, if one is there; `take`: taken out of the matching.
    pub fn probe(
        &self,
        comm: Comm,
        (from, tag): (Option<u32>, Option<i32>),
        take: bool,
    ) -> Result<Option<Arrival>, VendorError> {
        let (mut found, mut arrival) = (0, RawArrival::default());
        let (from, tag) = (from.map_or(ANY, |rank| rank as c_int), tag.unwrap_or(ANY));
        let look = if take { self.functions.find } else { self.functions.peek };
        // SAFETY: both are written.
        let code = unsafe { look(comm.0, from, tag, &raw mut found, &raw mut arrival) };
        self.done("look for messages", code)?;
        Ok((found != 0).then(|| arrival.into()))
    }

    /// Starts to receive a message that was found.
    pub fn start_take(&mut self, message: u64, memory: &WriteMemory, length: u64) -> Result<Request, VendorError> {
        let mut request = 0;
        let room = memory.part(0, length as usize).address() as *mut c_void;
        // SAFETY: the memory is as long, which `part` has checked; it lives as its maker has promised.
        let code = unsafe { (self.functions.start_take)(message, room, length as c_longlong, &raw mut request) };
        self.done("receive a message", code)?;
        Ok(Request(request))
    }

    /// A collective operation.
    #[inline(always)]
    pub fn collective(&self, comm: Comm, operation: &Collective<'_>) -> Result<(), VendorError> {
        let (name, code) = self.call(comm.0, operation);
        self.done(name, code)
    }

    #[inline(always)]
    fn call(&self, comm: u64, operation: &Collective<'_>) -> (&'static str, c_int) {
        let f = self.functions;
        let read = |memory: &Option<ReadMemory>, bytes: u64| match memory {
            Some(memory) => memory.part(0, bytes as usize).address() as *const c_void,
            None => std::ptr::null(),
        };
        let write = |memory: &WriteMemory, bytes: u64| memory.part(0, bytes as usize).address() as *mut c_void;
        match operation {
            Collective::General(general) => {
                // SAFETY: the memory is as long as the description says, as its maker has promised, and stays during
                // the call.
                let code = unsafe { (f.collective)(comm, &raw_operation(general)) };
                (name(general), code)
            }
            // SAFETY: no conditions; unknown names are errors.
            Collective::Barrier => ("synchronize", unsafe { (f.barrier)(comm) }),
            Collective::Bcast { memory, bytes, root } => {
                let memory = write(memory, *bytes);
                // SAFETY: the memory is as long, which `part` has checked; it lives as its maker has promised.
                let code = unsafe { (f.bcast)(comm, memory, *bytes as c_longlong, *root as c_int) };
                ("broadcast", code)
            }
            Collective::Reduce {
                from,
                into,
                count,
                element,
                operator,
                root,
            } => {
                let bytes = count * element.width();
                let (from, into) = (
                    read(from, bytes),
                    into.as_ref().map_or(std::ptr::null_mut(), |m| write(m, bytes)),
                );
                let (ty, op) = (*element as c_int, *operator as c_int);
                // SAFETY: as above; those who are not the root have no result.
                let code = unsafe { (f.reduce)(comm, from, into, *count as c_longlong, ty, op, *root as c_int) };
                ("reduce", code)
            }
            Collective::Allreduce {
                from,
                into,
                count,
                element,
                operator,
            } => {
                let bytes = count * element.width();
                let (from, into) = (read(from, bytes), write(into, bytes));
                let (ty, op) = (*element as c_int, *operator as c_int);
                // SAFETY: as above.
                let code = unsafe { (f.allreduce)(comm, from, into, *count as c_longlong, ty, op) };
                ("reduce for all", code)
            }
            Collective::Allgather { from, into, bytes } => {
                let (from, into) = (read(from, *bytes), into.address() as *mut c_void);
                // SAFETY: as above; the caller has made room for the blocks of all members.
                let code = unsafe { (f.allgather)(comm, from, into, *bytes as c_longlong) };
                ("gather for all", code)
            }
            Collective::Alltoall { from, into, bytes } => {
                let (from, into) = (
                    from.as_ref().map_or(std::ptr::null(), |m| m.address() as *const c_void),
                    into.address(),
                );
                // SAFETY: as above.
                let code = unsafe { (f.alltoall)(comm, from, into as *mut c_void, *bytes as c_longlong) };
                ("exchange", code)
            }
        }
    }

    /// Starts a collective operation, whose memory and description stay until [`Vendor::test`] says that it is over.
    pub fn start_collective(&mut self, comm: Comm, operation: &General) -> Result<Request, VendorError> {
        let mut request = 0;
        // SAFETY: the memory is as long as the description says, and both live as the maker has promised.
        let code = unsafe { (self.functions.start_collective)(comm.0, &raw_operation(operation), &raw mut request) };
        self.done(name(operation), code)?;
        Ok(Request(request))
    }

    /// Whether a request is complete; then it is gone.
    pub fn test(&mut self, request: &mut Request) -> Result<Option<Arrival>, VendorError> {
        let (mut complete, mut arrival) = (0, RawArrival::default());
        // SAFETY: all three are written.
        let code = unsafe { (self.functions.test)(&raw mut request.0, &raw mut complete, &raw mut arrival) };
        self.done("complete a request", code)?;
        Ok((complete != 0).then(|| arrival.into()))
    }

    /// Nobody leaves before everybody has entered.
    pub fn barrier(&mut self, comm: Comm) -> Result<(), VendorError> {
        // SAFETY: no conditions; unknown names are errors.
        let code = unsafe { (self.functions.barrier)(comm.0) };
        self.done("synchronize", code)
    }

    /// To be called where members on several nodes have done something together and may next stay away from this MPI
    /// for long. What it sent last may wait inside its library for a connection, and who waits for that as long as the
    /// sender is away (MPICH 5 over OFI). Nobody leaves the second barrier before everybody has left the first: what
    /// passes in the second has connections.
    pub fn settle(&mut self, comm: Comm) -> Result<(), VendorError> {
        self.barrier(comm)?;
        self.barrier(comm)
    }
}

/// For the text of errors.
fn name(operation: &General) -> &'static str {
    match operation.kind {
        Kind::Barrier => "synchronize",
        Kind::Bcast => "broadcast",
        Kind::Gather | Kind::Gatherv => "gather",
        Kind::Scatter | Kind::Scatterv => "scatter",
        Kind::Allgather | Kind::Allgatherv => "gather for all",
        Kind::Alltoall | Kind::Alltoallv => "exchange",
        Kind::Reduce => "reduce",
        Kind::Allreduce => "reduce for all",
        Kind::Scan | Kind::Exscan => "scan",
        Kind::ReduceScatterBlock | Kind::ReduceScatter => "reduce and scatter",
    }
}

fn raw_operation(operation: &General) -> RawOperation {
    let row = |row: &[i64]| if row.is_empty() { std::ptr::null() } else { row.as_ptr() };
    RawOperation {
        kind: operation.kind as c_int,
        root: operation.root as c_int,
        element: operation.reduction.map_or(0, |(element, _)| element as c_int),
        operator: operation.reduction.map_or(0, |(_, operator)| operator as c_int),
        in_place: operation.in_place.into(),
        rank: operation.rank as c_int,
        members: operation.members as c_int,
        data: operation
            .from
            .as_ref()
            .map_or(std::ptr::null(), |m| m.address() as *const c_void),
        result: operation
            .into
            .as_ref()
            .map_or(std::ptr::null_mut(), |m| m.address() as *mut c_void),
        count: operation.count as c_longlong,
        given: row(&operation.given.sizes),
        given_at: row(&operation.given.places),
        taken: row(&operation.taken.sizes),
        taken_at: row(&operation.taken.places),
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
