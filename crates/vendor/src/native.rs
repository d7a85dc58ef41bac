// SPDX-License-Identifier: Apache-2.0
//! Communicators of the vendor underneath communicators of ours.

use crate::attendance::Attendance;
use crate::used::Kept;
use crate::{Arrival, Comm, Request, Vendor, VendorError};
use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_transport::Peer;
use isthmus_transport::native::{self, Collective, Created, General, Native, Pattern};
use std::collections::HashMap;
use std::path::Path;

/// Tags of messages among those who make a communicator: any vendor has as many.
const TAGS: i32 = 32_767;

/// A vendor's communicators.
pub struct VendorNative {
    vendor: Vendor,
    /// Rank in the vendor's job by peer, and this process's.
    ranks: HashMap<Peer, i32>,
    attendance: Attendance,
    /// Ranks in the vendor's job of the processes on this node, in the order of their places.
    near: Vec<i32>,
    /// By name, which adaptors give one after the other.
    made: Vec<Option<Made>>,
    /// Memory of the library that requests with these names use; most use the user's.
    kept: Vec<(u64, Kept)>,
}

/// A communicator.
struct Made {
    comm: Comm,
    /// All members are on this node: the row of attendance, and their places. Of members on several nodes
    /// nobody knows who has come, so they do not block in a collective operation.
    near: Option<(u32, Vec<u32>)>,
}

impl VendorNative {
    /// Over a vendor that has begun. `peers[i]` is who has rank i in the vendor's job; `near` are those on this node,
    /// in an order that is the same at all of them, `own` is this process's place there, and `directory` one of the
    /// node.
    pub fn new(
        vendor: Vendor,
        peers: &[Peer],
        (near, own): (&[Peer], u32),
        directory: &Path,
    ) -> Result<Self, VendorError> {
        let path = directory.join("attendance");
        let attendance =
            Attendance::open(&path, own, near.len() as u32).map_err(|why| VendorError::File { path, why })?;
        let rank = |peer: &Peer| peers.iter().position(|p| p == peer).map(|rank| rank as i32);
        Ok(Self {
            near: near.iter().filter_map(rank).collect(),
            vendor,
            ranks: (0..).zip(peers).map(|(rank, &peer)| (peer, rank)).collect(),
            attendance,
            made: Vec::new(),
            kept: Vec::new(),
        })
    }

    /// All members learn the row that the first one has, if it has any.
    fn row(&mut self, comm: &Comm, first: bool) -> Result<Option<u32>, VendorError> {
        const NONE: u32 = u32::MAX;
        let mine = if first {
            self.attendance.take_row().unwrap_or(NONE)
        } else {
            NONE
        };
        let memory = OwnMemory::with(&mine.to_ne_bytes());
        let bcast = Collective::Bcast {
            memory: memory.memory(),
            bytes: 4,
            root: 0,
        };
        self.vendor.collective(comm, &bcast)?;
        let row = memory.content().first_chunk().map_or(NONE, |b| u32::from_ne_bytes(*b));
        Ok((row != NONE).then_some(row))
    }

    fn make(&mut self, ranks: &[i32], tag: i32) -> Result<Option<Created>, VendorError> {
        let Some(comm) = self.vendor.among(ranks, tag % TAGS)? else {
            return Ok(None);
        };
        let place = |rank: &i32| self.near.iter().position(|near| near == rank).map(|at| at as u32);
        let places: Option<Vec<u32>> = ranks.iter().map(place).collect();
        let near = match places {
            None => None,
            Some(places) => {
                let Some(row) = self.row(&comm, places.first() == Some(&self.attendance.own()))? else {
                    self.vendor.release(comm)?;
                    return Ok(None);
                };
                self.attendance.begin(row);
                // Nobody counts before all have begun to.
                self.vendor.collective(&comm, &Collective::Barrier)?;
                Some((row, places))
            }
        };
        let created = Created {
            comm: comm.name,
            near: near.is_some(),
        };
        let at = comm.name as usize;
        if at >= self.made.len() {
            self.made.resize_with(at + 1, || None);
        }
        self.made[at] = Some(Made { comm, near });
        Ok(Some(created))
    }

    /// The name of a request whose memory is kept here.
    #[inline]
    fn keep(&mut self, Request { name, kept }: Request) -> u64 {
        if kept.is_there() {
            self.kept.push((name, kept));
        }
        name
    }

    /// A request has ended, so another one may have its name. `free`: the vendor uses its memory no longer.
    #[cold]
    fn ended(&mut self, request: u64, free: bool) {
        let Some(at) = self.kept.iter().position(|(name, _)| *name == request) else {
            return;
        };
        let (_, kept) = self.kept.swap_remove(at);
        if free {
            kept.release();
        }
    }
}

/// A communicator by name.
#[inline(always)]
fn known(made: &[Option<Made>], comm: u64) -> Result<&Comm, String> {
    match made.get(comm as usize) {
        Some(Some(made)) => Ok(&made.comm),
        _ => Err(unknown(comm)),
    }
}

#[cold]
fn unknown(comm: u64) -> String {
    format!("a communicator of this machine's MPI is used that is not there: {comm}")
}

#[cold]
fn failed(error: VendorError) -> String {
    error.to_string()
}

fn arrival(arrival: Arrival) -> native::Arrival {
    native::Arrival {
        source: arrival.source,
        tag: arrival.tag,
        bytes: (!arrival.truncated).then_some(arrival.bytes),
        cancelled: arrival.cancelled,
        message: arrival.message,
    }
}

impl Native for VendorNative {
    fn create(&mut self, peers: &[Peer], tag: i32) -> Result<Option<Created>, String> {
        let ranks: Option<Vec<i32>> = peers.iter().map(|peer| self.ranks.get(peer).copied()).collect();
        let Some(ranks) = ranks else { return Ok(None) };
        self.make(&ranks, tag).map_err(failed)
    }

    fn release(&mut self, comm: u64) {
        if let Some(made) = self.made.get_mut(comm as usize).and_then(Option::take) {
            if let Some((row, _)) = made.near {
                self.attendance.free_row(row);
            }
            // A vendor that fails to free something is asked for more until it fails at that, and says so then.
            let _ = self.vendor.release(made.comm);
        }
    }

    #[inline]
    fn send(
        &mut self,
        comm: u64,
        memory: &ReadMemory,
        length: u64,
        to: u32,
        tag: i32,
        synchronous: bool,
    ) -> Result<Option<u64>, String> {
        let comm = Comm::named(comm);
        let sent = self.vendor.start_send(&comm, memory, length, to, tag, synchronous);
        sent.map(|request| request.map(|r| self.keep(r))).map_err(failed)
    }

    #[inline]
    fn send_now(&mut self, comm: u64, memory: &ReadMemory, length: u64, to: u32, tag: i32) -> Result<(), String> {
        self.vendor
            .send(&Comm::named(comm), memory, length, to, tag)
            .map_err(failed)
    }

    #[inline]
    fn receive_now(&mut self, pattern: &Pattern, memory: &WriteMemory, length: u64) -> Result<native::Arrival, String> {
        let from = (pattern.source, pattern.tag);
        let received = self.vendor.receive(&Comm::named(pattern.comm), memory, length, from);
        received.map(arrival).map_err(failed)
    }

    #[inline]
    fn receive(
        &mut self,
        pattern: &Pattern,
        memory: &WriteMemory,
        length: u64,
        rounds: u32,
    ) -> Result<Result<native::Arrival, u64>, String> {
        let from = (pattern.source, pattern.tag);
        let comm = Comm::named(pattern.comm);
        let received = self.vendor.receive_soon(&comm, memory, length, from, rounds);
        received
            .map(|r| r.map(arrival).map_err(|r| self.keep(r)))
            .map_err(failed)
    }

    #[inline]
    fn test(&mut self, request: u64) -> Result<Option<native::Arrival>, String> {
        let tested = self.vendor.look(&mut { request });
        if !self.kept.is_empty() && !matches!(tested, Ok(None)) {
            self.ended(request, tested.is_ok());
        }
        tested.map(|a| a.map(arrival)).map_err(failed)
    }

    fn cancel(&mut self, request: u64) {
        // One that cannot be cancelled goes on.
        let _ = self.vendor.cancel_named(request);
    }

    fn probe(&mut self, pattern: &Pattern, take: bool) -> Result<Option<native::Arrival>, String> {
        let (comm, from) = (Comm::named(pattern.comm), (pattern.source, pattern.tag));
        let found = self.vendor.probe(&comm, from, take);
        found.map(|a| a.map(arrival)).map_err(failed)
    }

    fn receive_taken(&mut self, message: u64, memory: &WriteMemory, length: u64) -> Result<u64, String> {
        let request = self.vendor.start_take(message, memory, length);
        request.map(|r| self.keep(r)).map_err(failed)
    }

    #[inline(always)]
    fn come(&mut self, comm: u64) {
        if let Some(Some(Made {
            near: Some((row, _)), ..
        })) = self.made.get(comm as usize)
        {
            self.attendance.come(*row);
        }
    }

    fn have_all_come(&self, comm: u64) -> bool {
        match self.made.get(comm as usize) {
            Some(Some(Made {
                near: Some((row, places)),
                ..
            })) => self.attendance.have_come(*row, places),
            _ => true,
        }
    }

    fn come_and_do(&mut self, comm: u64, operation: &Collective<'_>) -> Result<(), String> {
        self.come(comm);
        self.collective(comm, operation)
    }

    fn start(&mut self, comm: u64, operation: &General) -> Result<u64, String> {
        let started = self.vendor.start_collective(known(&self.made, comm)?, operation);
        started.map(|request| self.keep(request)).map_err(failed)
    }

    #[inline]
    fn collective(&mut self, comm: u64, operation: &Collective<'_>) -> Result<(), String> {
        let comm = known(&self.made, comm)?;
        self.vendor.collective(comm, operation).map_err(failed)
    }
}
