// SPDX-License-Identifier: Apache-2.0
//! Where an access begins: explicit offsets, the individual pointer, the shared one (MPI 5.0 section 14.4); and how
//! accesses are started and ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_engine::Request;
use isthmus_wire::file::What;

use crate::alone::Alone;
use crate::collective::Part;
use crate::file::File;
use crate::group::Members;
use crate::memory::{Source, Target};
use crate::task::{self, Operation, Port};
use crate::view::View;

/// Phases of operations in rank order.
const COUNTS: i32 = 8;
const BASE: i32 = 9;

/// Where an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this offset, in etypes.
    At(i64),
    /// At the individual pointer.
    Individual,
    /// At the shared pointer, in any order.
    Shared,
    /// At the shared pointer, in order of rank; collective.
    Ordered,
}

/// What is moved.
pub enum Buffer {
    /// To the file; and how many bytes the data have in memory.
    Write(Source, u64),
    /// From the file.
    Read(Target),
}

impl Buffer {
    fn length(&self) -> u64 {
        match self {
            Self::Write(source, _) => source.length(),
            Self::Read(target) => target.length(),
        }
    }
}

/// From where MPI_File_seek counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// MPI_SEEK_SET.
    Start,
    /// MPI_SEEK_CUR.
    Current,
    /// MPI_SEEK_END.
    End,
}

/// An access of which it is known where it begins, or how that is found out.
enum Start {
    /// Byte of the stream.
    Known(u64),
    /// Etypes that it takes.
    Shared(u64),
    Ordered(u64),
}

impl File {
    fn check(&self, place: Place, buffer: &Buffer) -> Result<()> {
        match buffer {
            Buffer::Write(..) if !self.here.mode().writes() => {
                fail!(abi::MPI_ERR_READ_ONLY, "it was opened with MPI_MODE_RDONLY")
            }
            Buffer::Read(_) if !self.here.mode().reads() => {
                fail!(abi::MPI_ERR_ACCESS, "it was opened with MPI_MODE_WRONLY")
            }
            _ => {}
        }
        if self.here.mode().is_sequential() && matches!(place, Place::At(_) | Place::Individual) {
            return sequential();
        }
        Ok(())
    }

    /// Where an access begins; moves the individual pointer.
    fn begin(&self, place: Place, buffer: &Buffer) -> Result<(Start, Arc<View>)> {
        self.check(place, buffer)?;
        let mut state = self.state();
        let (unit, view, length) = (state.view.unit(), state.view.clone(), buffer.length());
        if length % unit != 0 {
            fail!(
                abi::MPI_ERR_TYPE,
                "the access has {length} bytes, which is no multiple of the {unit} bytes of the view's etype"
            );
        }
        let etypes = length / unit;
        let first = match place {
            Place::At(offset) => match u64::try_from(offset) {
                Ok(offset) => offset,
                Err(_) => fail!(
                    abi::MPI_ERR_ARG,
                    argument("offset"),
                    "is {offset}, an offset must not be negative"
                ),
            },
            Place::Individual => state.pointer,
            Place::Shared => return Ok((Start::Shared(etypes), view)),
            Place::Ordered => return Ok((Start::Ordered(etypes), view)),
        };
        let at = checked(&view, first, length)?;
        if place == Place::Individual {
            state.pointer += etypes;
        }
        Ok((Start::Known(at), view))
    }

    /// An access, and the wait for its end; gives its bytes in memory. `together`: collective.
    pub fn access(self: &Arc<Self>, place: Place, together: bool, buffer: Buffer) -> Result<u64> {
        let (start, view) = self.begin(place, &buffer)?;
        if let (Start::Known(at), false, true) = (&start, together, self.here.is_reached()) {
            return match buffer {
                Buffer::Write(mut source, bytes) => self.here.write_view(&view, *at, &mut source).map(|()| bytes),
                Buffer::Read(mut target) => self.here.read_view(&view, *at, &mut target, self.sieve()),
            };
        }
        let members = together.then(|| self.processes.members());
        let file = self.clone();
        self.processes
            .alone(|port| file.operation(port, members, start, view, buffer))
    }

    /// Starts an access. The individual pointer has moved when this returns.
    pub fn start(self: &Arc<Self>, place: Place, together: bool, buffer: Buffer) -> Result<Request> {
        let (start, view) = self.begin(place, &buffer)?;
        let members = together.then(|| self.processes.members());
        let file = self.clone();
        // Conversion functions of the program run on its own threads only.
        let calls_user = matches!(buffer, Buffer::Read(Target::Converted(..)));
        let (world, channel) = (self.processes.world(), self.processes.channel());
        Ok(task::start(world, channel, calls_user, |port| {
            file.operation(port, members, start, view, buffer)
        }))
    }

    fn operation(
        self: Arc<Self>,
        port: Port,
        members: Option<Members>,
        start: Start,
        view: Arc<View>,
        buffer: Buffer,
    ) -> Operation {
        Box::pin(async move {
            let here = self.here.clone();
            // Requests are waited for where nobody knows the file.
            let done = act_from(self, port, members, start, view, buffer).await;
            done.map_err(|error| here.named(error))
        })
    }

    /// MPI_File_…_begin: starts a collective access, at most one at a time.
    pub fn begin_split(self: &Arc<Self>, name: &'static str, place: Place, buffer: Buffer) -> Result<()> {
        self.splits.begin(name, || self.start(place, true, buffer))
    }

    /// The end of the file in etypes of the view, rounded up.
    fn end(self: &Arc<Self>, view: &View) -> Result<u64> {
        Ok(view.before(self.size()?).div_ceil(view.unit()))
    }

    fn target(self: &Arc<Self>, offset: i64, whence: Whence, current: u64) -> Result<u64> {
        let view = self.view();
        let from = match whence {
            Whence::Start => 0,
            Whence::Current => current,
            Whence::End => self.end(&view)?,
        };
        match from.checked_add_signed(offset) {
            Some(to) if i64::try_from(to).is_ok() => Ok(to),
            _ => fail!(
                abi::MPI_ERR_ARG,
                argument("offset"),
                "is {offset}, which from etype {from} on leads outside of the file"
            ),
        }
    }

    /// MPI_File_seek.
    pub fn seek(self: &Arc<Self>, offset: i64, whence: Whence) -> Result<()> {
        if self.here.mode().is_sequential() {
            return sequential();
        }
        let current = self.state().pointer;
        let to = self.target(offset, whence, current)?;
        self.state().pointer = to;
        Ok(())
    }

    /// MPI_File_get_position, in etypes.
    pub fn position(&self) -> Result<u64> {
        match self.here.mode().is_sequential() {
            true => sequential(),
            false => Ok(self.state().pointer),
        }
    }

    /// MPI_File_get_byte_offset.
    pub fn byte_offset(&self, offset: i64) -> Result<u64> {
        if self.here.mode().is_sequential() {
            return sequential();
        }
        let view = self.view();
        let place = u64::try_from(offset)
            .ok()
            .and_then(|offset| offset.checked_mul(view.unit()))
            .and_then(|at| view.begins(at))
            .filter(|place| i64::try_from(*place).is_ok());
        match place {
            Some(place) => Ok(place),
            None => fail!(
                abi::MPI_ERR_ARG,
                argument("offset"),
                "is {offset}, which has no place in the view"
            ),
        }
    }

    /// MPI_File_get_position_shared, in etypes.
    pub fn position_shared(self: &Arc<Self>) -> Result<u64> {
        let file = self.clone();
        self.processes
            .alone(|port| Box::pin(async move { file.advance_shared(&port, 0).await }))
    }

    /// MPI_File_seek_shared; collective.
    pub fn seek_shared(self: &Arc<Self>, offset: i64, whence: Whence) -> Result<()> {
        let file = self.clone();
        let current = match self.processes.asks_guest() {
            true => self.position_shared(),
            false => Ok(self.shared.load(Ordering::SeqCst)),
        };
        let code = match whence {
            Whence::Start => 0_i64,
            Whence::Current => 1,
            Whence::End => 2,
        };
        self.processes
            .together(|port, members| {
                Box::pin(async move {
                    let arguments = [offset, code].map(i64::to_le_bytes).concat();
                    members.same(&port, 0, &arguments, "offset or whence").await?;
                    let done = match file.processes.is_deputy() {
                        true => match current.and_then(|current| file.target(offset, whence, current)) {
                            Ok(to) => file.act(&port, What::Seek, to).await,
                            Err(error) => Err(error),
                        },
                        false => Ok(()),
                    };
                    members.agree(&port, 1, done).await?;
                    Ok(0)
                })
            })
            .map(drop)
    }
}

/// An access, wherever it begins.
async fn act_from(
    file: Arc<File>,
    port: Port,
    members: Option<Members>,
    start: Start,
    view: Arc<View>,
    buffer: Buffer,
) -> task::Done {
    let length = buffer.length();
    let at = match (start, &members) {
        (Start::Known(at), _) => at,
        (Start::Shared(etypes) | Start::Ordered(etypes), None) => {
            let first = file.advance_shared(&port, etypes).await?;
            checked(&view, first, length)?
        }
        (Start::Shared(etypes) | Start::Ordered(etypes), Some(members)) => {
            let first = advance_in_order(&file, &port, members, etypes).await?;
            checked(&view, first, length)?
        }
    };
    let access = Alone { file, view, at };
    let Some(members) = members else {
        return match buffer {
            Buffer::Write(source, bytes) => access.write(&port, source).await.map(|_| bytes),
            Buffer::Read(target) => access.read(&port, target).await,
        };
    };
    let part = Part { access, members };
    match buffer {
        Buffer::Write(source, bytes) => part.write(port, source).await.map(|_| bytes),
        Buffer::Read(target) => part.read(port, target).await,
    }
}

/// Moves the shared pointer by what all take; gives where this process's part begins.
async fn advance_in_order(file: &File, port: &Port, members: &Members, etypes: u64) -> Result<u64> {
    let counts = members.words(port, COUNTS, etypes).await?;
    let processes = &file.processes;
    let mine = match processes.is_deputy() {
        true => file.advance_shared(port, counts.iter().sum()).await,
        false => Ok(0),
    };
    let bases = members.words(port, BASE, *mine.as_ref().unwrap_or(&0)).await?;
    if processes.guest().is_some() {
        members.agree(port, BASE + 1, mine.map(drop)).await?;
    }
    Ok(bases[processes.deputy() as usize] + counts[..processes.rank() as usize].iter().sum::<u64>())
}

/// The byte of the stream where an access begins, if all of it has a place in a file.
fn checked(view: &View, etypes: u64, length: u64) -> Result<u64> {
    let at = etypes.checked_mul(view.unit());
    let end = at
        .and_then(|at| at.checked_add(length.max(1)))
        .and_then(|end| view.place(end - 1))
        // Of a file the system counts no more bytes.
        .filter(|last| *last < i64::MAX as u64);
    match (at, end) {
        (Some(at), Some(_)) => Ok(at),
        (Some(at), None) if length == 0 => Ok(at),
        _ => fail!(
            abi::MPI_ERR_ARG,
            "an access of {length} bytes at etype {etypes} of the view leaves what a file can have"
        ),
    }
}

fn sequential<T>() -> Result<T> {
    fail!(
        abi::MPI_ERR_UNSUPPORTED_OPERATION,
        "it was opened with MPI_MODE_SEQUENTIAL, which leaves only the functions of the shared pointer"
    )
}
