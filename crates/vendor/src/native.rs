// SPDX-License-Identifier: Apache-2.0
//! Communicators of the vendor underneath communicators of ours.

use crate::attendance::Attendance;
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
}

/// What is known of a communicator.
#[derive(Clone)]
enum Made {
    /// All members are on this node: the row of attendance, and their places.
    Near(u32, Vec<u32>),
    /// They are on several nodes. Who has come is not known, so nobody blocks in a collective operation.
    Far,
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
        })
    }

    /// All members learn the row that the first one has, if it has any.
    fn row(&mut self, comm: Comm, first: bool) -> Result<Option<u32>, VendorError> {
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
        let made = match places {
            None => Made::Far,
            Some(places) => {
                let Some(row) = self.row(comm, places.first() == Some(&self.attendance.own()))? else {
                    self.vendor.release(comm)?;
                    return Ok(None);
                };
                self.attendance.begin(row);
                // Nobody counts before all have begun to.
                self.vendor.collective(comm, &Collective::Barrier)?;
                Made::Near(row, places)
            }
        };
        let (at, near) = (comm.0 as usize, matches!(made, Made::Near(..)));
        if at >= self.made.len() {
            self.made.resize(at + 1, None);
        }
        self.made[at] = Some(made);
        Ok(Some(Created { comm: comm.0, near }))
    }
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
            if let Made::Near(row, _) = made {
                self.attendance.free_row(row);
            }
            // A vendor that fails to free something is asked for more until it fails at that, and says so then.
            let _ = self.vendor.release(Comm(comm));
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
        let sent = self.vendor.start_send(Comm(comm), memory, length, to, tag, synchronous);
        sent.map(|request| request.map(|r| r.0)).map_err(failed)
    }

    #[inline]
    fn send_now(&mut self, comm: u64, memory: &ReadMemory, length: u64, to: u32, tag: i32) -> Result<(), String> {
        self.vendor.send(Comm(comm), memory, length, to, tag).map_err(failed)
    }

    #[inline]
    fn receive_now(&mut self, pattern: &Pattern, memory: &WriteMemory, length: u64) -> Result<native::Arrival, String> {
        let from = (pattern.source, pattern.tag);
        let received = self.vendor.receive(Comm(pattern.comm), memory, length, from);
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
        let received = self
            .vendor
            .receive_soon(Comm(pattern.comm), memory, length, from, rounds);
        received.map(|r| r.map(arrival).map_err(|r| r.0)).map_err(failed)
    }

    #[inline]
    fn test(&mut self, request: u64) -> Result<Option<native::Arrival>, String> {
        let tested = self.vendor.test(&mut Request(request));
        tested.map(|a| a.map(arrival)).map_err(failed)
    }

    fn cancel(&mut self, request: u64) {
        // One that cannot be cancelled goes on.
        let _ = self.vendor.cancel(&Request(request));
    }

    fn probe(&mut self, pattern: &Pattern, take: bool) -> Result<Option<native::Arrival>, String> {
        let found = self
            .vendor
            .probe(Comm(pattern.comm), (pattern.source, pattern.tag), take);
        found.map(|a| a.map(arrival)).map_err(failed)
    }

    fn receive_taken(&mut self, message: u64, memory: &WriteMemory, length: u64) -> Result<u64, String> {
        let request = self.vendor.start_take(message, memory, length);
        request.map(|r| r.0).map_err(failed)
    }

    #[inline(always)]
    fn come(&mut self, comm: u64) {
        if let Some(Some(Made::Near(row, _))) = self.made.get(comm as usize) {
            self.attendance.come(*row);
        }
    }

    fn have_all_come(&self, comm: u64) -> bool {
        match self.made.get(comm as usize) {
            Some(Some(Made::Near(row, places))) => self.attendance.have_come(*row, places),
            _ => true,
        }
    }

    fn come_and_do(&mut self, comm: u64, operation: &Collective<'_>) -> Result<(), String> {
        self.come(comm);
        self.vendor.collective(Comm(comm), operation).map_err(failed)
    }

    fn start(&mut self, comm: u64, operation: &General) -> Result<u64, String> {
        let started = self.vendor.start_collective(Comm(comm), operation);
        started.map(|request| request.0).map_err(failed)
    }

    #[inline]
    fn collective(&mut self, comm: u64, operation: &Collective<'_>) -> Result<(), String> {
        self.vendor.collective(Comm(comm), operation).map_err(failed)
    }
}
