// SPDX-License-Identifier: Apache-2.0
//! Where an access begins: explicit offsets, the individual pointer, the shared one (MPI 5.0 section 14.4); and how
//! accesses are started and ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_engine::Request;
use isthmus_wire::file::What;

use crate::alone::Alone;
use crate::collective;
use crate::file::File;
use crate::group::{Members, word};
use crate::memory::{Buffer, Target};
use crate::task::{self, Operation, Post};
use crate::view::View;

/// Phases of operations in rank order.
const COUNTS: i32 = 11;
const BASE: i32 = 13;

/// Where an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// At this offset, in etypes.
    At(i64),
    /// At the individual pointer.
    Individual,
    /// At the shared pointer, in any order.
    Shared,
    /// At the shared pointer, in order of rank; collective.
    Ordered,
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

/// Where an access begins.
#[derive(Clone, Copy)]
enum Start {
    /// At this byte of the stream.
    Known(u64),
    /// At the shared pointer.
    Shared,
}

/// An access that makes sense.
struct Begun {
    start: Start,
    /// What it takes.
    etypes: u64,
    view: Arc<View>,
    buffer: Buffer,
    /// Of the individual pointer, if it was moved: how often that had been set.
    seeks: Option<u64>,
}

impl File {
    fn check(&self, place: Position, buffer: &Buffer) -> Result<()> {
        match buffer {
            Buffer::Write(..) if !self.here.mode().writes() => {
                fail!(abi::MPI_ERR_READ_ONLY, "it was opened with MPI_MODE_RDONLY")
            }
            Buffer::Read(_) if !self.here.mode().reads() => {
                fail!(abi::MPI_ERR_ACCESS, "it was opened with MPI_MODE_WRONLY")
            }
            _ => {}
        }
        if self.here.mode().is_sequential() && matches!(place, Position::At(_) | Position::Individual) {
            return sequential();
        }
        Ok(())
    }

    /// Where an access begins; moves the individual pointer.
    fn begin(&self, place: Position, buffer: Buffer) -> Result<Begun> {
        self.check(place, &buffer)?;
        let mut state = self.state();
        let (unit, view, length) = (state.view.unit(), state.view.clone(), buffer.length());
        if length % unit != 0 {
            fail!(
                abi::MPI_ERR_TYPE,
                "the access has {length} bytes, which is not a multiple of the {unit} bytes of the view's etype"
            );
        }
        let etypes = length / unit;
        let first = match place {
            Position::At(offset) => match u64::try_from(offset) {
                Ok(offset) => Some(offset),
                Err(_) => fail!(
                    abi::MPI_ERR_ARG,
                    argument("offset"),
                    "is {offset}, an offset must not be negative"
                ),
            },
            Position::Individual => Some(state.pointer),
            Position::Shared | Position::Ordered => None,
        };
        let start = match first {
            Some(first) => Start::Known(checked(&view, first, length)?),
            None => Start::Shared,
        };
        let seeks = (place == Position::Individual).then(|| {
            state.pointer += etypes;
            state.seeks
        });
        Ok(Begun {
            start,
            etypes,
            view,
            buffer,
            seeks,
        })
    }

    /// An access, and the wait for its end; gives its bytes in memory. `together`: collective. `buffer`: an error, if
    /// the arguments make none, of which all hear if it is collective.
    pub fn access(self: &Arc<Self>, place: Position, together: bool, buffer: Result<Buffer>) -> Result<u64> {
        let begun = buffer.and_then(|buffer| self.begin(place, buffer));
        let file = self.clone();
        if together {
            let operation = |post, members| for_all(file, post, members, place, begun);
            return self.processes.together(operation);
        }
        let begun = begun?;
        let here = &self.here;
        if let (Start::Known(at), true, false) = (begun.start, here.is_reached(), here.is_atomic()) {
            return match begun.buffer {
                Buffer::Write(mut source, bytes) => here.write_view(&begun.view, at, &mut source).map(|()| bytes),
                Buffer::Read(mut target) => {
                    let got = here.read_view(&begun.view, at, &mut target, self.sieve())?;
                    target.finish(got)
                }
            };
        }
        self.processes.alone(|post| for_one(file, post, begun))
    }

    /// Starts an access. The individual pointer has moved when this returns.
    pub fn start(self: &Arc<Self>, place: Position, together: bool, buffer: Result<Buffer>) -> Result<Request> {
        let begun = buffer.and_then(|buffer| self.begin(place, buffer));
        // Conversion functions of the program run on its own threads only.
        let converts = |begun: &Begun| matches!(begun.buffer, Buffer::Read(Target::Converted(..)));
        let calls_user = begun.as_ref().is_ok_and(converts);
        let (file, processes) = (self.clone(), &self.processes);
        let (world, channel) = (processes.world(), processes.channel());
        if !together {
            let begun = begun?;
            return Ok(task::start(world, channel, calls_user, |post| {
                for_one(file, post, begun)
            }));
        }
        let (members, wrong) = (processes.members(), begun.as_ref().err().cloned());
        let request = task::start(world, channel, calls_user, |post| {
            for_all(file, post, members, place, begun)
        });
        match wrong {
            None => Ok(request),
            Some(error) => {
                self.splits.refuse(world, request);
                Err(error)
            }
        }
    }

    /// MPI_File_…_begin: starts a collective access, at most one at a time.
    pub fn begin_split(self: &Arc<Self>, name: &'static str, place: Position, buffer: Result<Buffer>) -> Result<()> {
        let buffer = self.splits.is_free().and(buffer);
        self.splits.begin(name, self.start(place, true, buffer)?);
        Ok(())
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
        let mut state = self.state();
        state.pointer = to;
        state.seeks += 1;
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
                "is {offset}, which is outside the view"
            ),
        }
    }

    /// MPI_File_get_position_shared, in etypes.
    pub fn position_shared(self: &Arc<Self>) -> Result<u64> {
        let file = self.clone();
        self.processes
            .alone(|post| Box::pin(async move { file.advance_shared(&post, 0).await }))
    }

    /// MPI_File_seek_shared; collective. `whence`: an error, if this process's argument is none.
    pub fn seek_shared(self: &Arc<Self>, offset: i64, whence: Result<Whence>) -> Result<()> {
        let file = self.clone();
        let current = match self.processes.asks_guest() {
            true => self.position_shared(),
            false => Ok(self.shared.load(Ordering::SeqCst)),
        };
        let said = whence.clone().map(|whence| {
            let mut said = [0; 9];
            said[..8].copy_from_slice(&offset.to_le_bytes());
            said[8] = whence as u8;
            said
        });
        self.processes
            .together(|post, members| {
                Box::pin(async move {
                    members.same(&post, 0, said, "offset or whence").await?;
                    let to = || file.target(offset, whence?, current?);
                    let done = match file.processes.is_deputy() {
                        true => match to() {
                            Ok(to) => file.act(&post, What::Seek, to).await,
                            Err(error) => Err(error),
                        },
                        false => Ok(()),
                    };
                    members.agree(&post, 2, done).await?;
                    Ok(0)
                })
            })
            .map(drop)
    }
}

fn for_one(file: Arc<File>, post: Post, begun: Begun) -> Operation {
    Box::pin(async move {
        let here = file.here.clone();
        // Requests are waited for where nobody knows the file.
        act_alone(file, &post, begun).await.map_err(|error| here.named(error))
    })
}

fn for_all(file: Arc<File>, post: Post, members: Members, place: Position, begun: Result<Begun>) -> Operation {
    Box::pin(async move {
        let here = file.here.clone();
        let done = act_together(file, post, members, place, begun).await;
        done.map_err(|error| here.named(error))
    })
}

/// An access of all came to nothing, since one of them gave arguments that make no sense: the individual pointer is
/// where it was, as there.
fn take_back(file: &File, seeks: Option<u64>, etypes: u64) {
    let mut state = file.state();
    if seeks == Some(state.seeks) {
        state.pointer = state.pointer.saturating_sub(etypes);
    }
}

async fn act_alone(file: Arc<File>, post: &Post, begun: Begun) -> task::Done {
    let Begun {
        start,
        etypes,
        view,
        buffer,
        ..
    } = begun;
    let at = match start {
        Start::Known(at) => at,
        Start::Shared => {
            let first = file.advance_shared(post, etypes).await?;
            checked(&view, first, buffer.length())?
        }
    };
    Alone { file, view, at }.act(post, buffer).await
}

/// An access of all processes. `begun`: an error, if this one's arguments make none; then all hear of it, and nothing
/// is accessed.
async fn act_together(
    file: Arc<File>,
    post: Post,
    members: Members,
    place: Position,
    begun: Result<Begun>,
) -> task::Done {
    let (seeks, etypes) = begun.as_ref().map_or((None, 0), |begun| (begun.seeks, begun.etypes));
    let first = match place {
        Position::Ordered => {
            let takes = begun.as_ref().map(|begun| begun.etypes).map_err(Error::clone);
            Some(advance_in_order(&file, &post, &members, takes).await?)
        }
        _ => None,
    };
    let mine = begun.and_then(|begun| {
        let at = match (begun.start, first) {
            (Start::Known(at), _) => at,
            (Start::Shared, first) => checked(&begun.view, first.unwrap_or_default(), begun.buffer.length())?,
        };
        let (file, view) = (file.clone(), begun.view);
        Ok((Alone { file, view, at }, begun.buffer))
    });
    match collective::begin(&file, &post, &members, &mine).await? {
        Ok(told) => {
            let (access, buffer) = mine?;
            collective::act(post, members, access, buffer, told).await
        }
        Err(error) => {
            take_back(&file, seeks, etypes);
            Err(error)
        }
    }
}

/// Moves the shared pointer by what all take; gives where this process's part begins.
async fn advance_in_order(file: &File, post: &Post, members: &Members, takes: Result<u64>) -> Result<u64> {
    let takes = takes.map(u64::to_le_bytes);
    let said = takes.as_ref().map(|takes| &takes[..]).map_err(Error::clone);
    let counts = members.gather_all(post, COUNTS, said, 8).await??;
    let add = |sum: u64, count: &Vec<u8>| sum.saturating_add(word(count));
    let processes = &file.processes;
    let mine = match processes.is_deputy() {
        true => file.advance_shared(post, counts.iter().fold(0, add)).await,
        false => Ok(0),
    };
    let bases = members.words(post, BASE, *mine.as_ref().unwrap_or(&0)).await?;
    if processes.guest().is_some() {
        members.agree(post, BASE + 1, mine.map(drop)).await?;
    }
    let before = counts[..processes.rank() as usize].iter().fold(0, add);
    Ok(bases[processes.deputy() as usize].saturating_add(before))
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
