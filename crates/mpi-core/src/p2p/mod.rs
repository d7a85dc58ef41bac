// SPDX-License-Identifier: Apache-2.0
//! Point-to-point communication (MPI 5.0 chapter 3): arguments that say who and which tag, here, and how a message goes
//! (`way`).

use isthmus_abi::constants as abi;
use isthmus_datatype::ConversionError;
use isthmus_engine::EngineError;

use crate::comm::{Comm, usable};
use crate::error::{Error, Result};
use crate::fail;

mod way;

pub use way::{
    Receiver, Sender, irecv, irecv_briefly, irecv_piece, isend, isend_briefly, isend_piece, receive, receive_briefly,
    receive_piece, send, send_briefly, send_piece,
};

/// The receiver of a send; `None`: MPI_PROC_NULL.
#[inline]
pub fn destination(comm: &Comm, rank: i32) -> Result<Option<u32>> {
    match u32::try_from(rank) {
        Ok(rank) if rank < comm.peers() => Ok(Some(rank)),
        _ if rank == abi::MPI_PROC_NULL => usable(comm).map(|()| None),
        _ => wrong_rank("dest", comm, rank),
    }
}

/// Where a receive may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// MPI_PROC_NULL: nothing will come.
    Nobody,
    /// MPI_ANY_SOURCE (`None`) or a rank.
    From(Option<u32>),
}

/// The source of a receive or probe.
#[inline]
pub fn source(comm: &Comm, rank: i32) -> Result<Source> {
    match u32::try_from(rank) {
        Ok(rank) if rank < comm.peers() => Ok(Source::From(Some(rank))),
        _ if rank == abi::MPI_ANY_SOURCE => Ok(Source::From(None)),
        _ if rank == abi::MPI_PROC_NULL => usable(comm).map(|()| Source::Nobody),
        _ => wrong_rank("source", comm, rank),
    }
}

#[cold]
fn wrong_rank<T>(argument: &str, comm: &Comm, rank: i32) -> Result<T> {
    fail!(
        abi::MPI_ERR_RANK,
        argument(argument),
        "is {rank}, but the ranks of {} are 0 to {}",
        comm.describe(),
        i64::from(comm.peers()) - 1
    )
}

/// The tag of a send.
#[inline]
pub fn send_tag(tag: i32) -> Result<i32> {
    if tag < 0 {
        return wrong_tag(tag, "");
    }
    Ok(tag)
}

#[cold]
fn wrong_tag<T>(tag: i32, also: &str) -> Result<T> {
    fail!(
        abi::MPI_ERR_TAG,
        argument("tag"),
        "is {tag}, a tag must not be negative{also}"
    )
}

/// The tag of a receive; `None`: MPI_ANY_TAG.
#[inline]
pub fn receive_tag(tag: i32) -> Result<Option<i32>> {
    match tag {
        abi::MPI_ANY_TAG => Ok(None),
        tag if tag < 0 => wrong_tag(tag, ", or be MPI_ANY_TAG"),
        tag => Ok(Some(tag)),
    }
}

impl From<&EngineError> for Error {
    fn from(error: &EngineError) -> Self {
        let class = match error {
            EngineError::Conversion { what, .. } => conversion_class(what),
            EngineError::NotPacked { .. } => abi::MPI_ERR_TYPE,
            EngineError::Truncate { .. } | EngineError::Untaken { .. } => abi::MPI_ERR_TRUNCATE,
            EngineError::Disagreement { lengths: true, .. } => abi::MPI_ERR_TRUNCATE,
            EngineError::PeerLost { goes_on: true, .. } => abi::MPIX_ERR_PROC_FAILED,
            EngineError::Pending { .. } => abi::MPIX_ERR_PROC_FAILED_PENDING,
            EngineError::Revoked => abi::MPIX_ERR_REVOKED,
            EngineError::PeerLost { .. } | EngineError::Vendor { .. } | EngineError::Disagreement { .. } => {
                abi::MPI_ERR_OTHER
            }
            EngineError::Elsewhere { class, .. } => *class,
            EngineError::Memory { .. } => abi::MPI_ERR_NO_MEM,
            EngineError::Misuse { .. } => abi::MPI_ERR_REQUEST,
            EngineError::Protocol { .. } | EngineError::Plan { .. } | EngineError::NotTaken { .. } => {
                abi::MPI_ERR_INTERN
            }
        };
        match error {
            EngineError::Elsewhere { .. } => Self::named(class, error.to_string()),
            _ => Self::new(class, error.to_string()),
        }
    }
}

impl From<isthmus_datatype::TypeError> for Error {
    fn from(error: isthmus_datatype::TypeError) -> Self {
        Self::new(abi::MPI_ERR_TYPE, error.to_string())
    }
}

impl From<ConversionError> for Error {
    fn from(error: ConversionError) -> Self {
        Self::new(conversion_class(&error), error.to_string())
    }
}

fn conversion_class(error: &ConversionError) -> i32 {
    match error {
        ConversionError::Lacking { .. } => abi::MPI_ERR_TYPE,
        ConversionError::DoesNotFit { .. } => abi::MPI_ERR_TRUNCATE,
    }
}
