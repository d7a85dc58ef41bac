// SPDX-License-Identifier: Apache-2.0
//! Put and get (MPI 5.0 section 12.3): within a node they are done when the call returns.

use isthmus_core::error::Result;
use isthmus_core::world::WindowCount;
use isthmus_engine::Request;
use isthmus_wire::rma::Does;

use crate::data::{Side, Sink, Source, TargetData, When, check_fits};
use crate::error::unreached;
use crate::far;
use crate::reach::Stream;
use crate::spot::Spot;
use crate::target;
use crate::window::Window;

/// Bytes that are moved at once where data do not lie in one piece.
const MOVED: usize = 64 << 10;

impl Window {
    /// MPI_Put, MPI_Rput; the latter gives a request if it is not over.
    pub fn put(&self, source: &Source<'_>, place: &TargetData<'_>, when: When) -> Result<Option<Request>> {
        let Some(target) = target::find(self, place, when)? else {
            return Ok(None);
        };
        let bytes = source.bytes()?;
        check_fits(
            &Side::new("origin", bytes),
            &Side::new("target", place.datatype.bytes(place.count)?),
        )?;
        if bytes == 0 {
            return Ok(None);
        }
        if let Spot::Far(_) = target.spot {
            return far::operate(self, &target, (Does::Put, 0), (Some(source), None), place, when);
        }
        self.counted.add(WindowCount::Put, bytes);
        let pieces = (
            source.datatype.contiguous(source.count),
            place.datatype.contiguous(place.count),
        );
        if let (Some((from, _)), Some((to, _))) = pieces {
            let length = bytes as usize;
            return match target.spot {
                Spot::Here(mut memory) => {
                    memory.copy(to, &source.memory, from, length);
                    Ok(None)
                }
                Spot::There(reach, address) => source.memory.with(from, length, |data| {
                    let runs = [(address.wrapping_add_signed(to as i64), length)];
                    reach
                        .write(&runs, data)
                        .map(|()| None)
                        .map_err(|error| unreached(&error))
                }),
                Spot::Far(_) => Ok(None),
            };
        }
        let mut stream = Stream::new(&target.spot, place.datatype, place.count)?;
        let mut packer = source.packer()?;
        let mut piece = vec![0; MOVED.min(bytes as usize)];
        let mut at = 0;
        while at < bytes {
            let packed = packer.pack(&mut piece);
            stream.write(at, &piece[..packed])?;
            at += packed as u64;
        }
        Ok(None)
    }

    /// MPI_Get, MPI_Rget; the latter gives a request if it is not over.
    pub fn get(&self, sink: &mut Sink<'_>, place: &TargetData<'_>, when: When) -> Result<Option<Request>> {
        let Some(target) = target::find(self, place, when)? else {
            return Ok(None);
        };
        let bytes = place.datatype.bytes(place.count)?;
        check_fits(&Side::new("target", bytes), &Side::new("origin", sink.bytes()?))?;
        if bytes == 0 {
            return Ok(None);
        }
        if let Spot::Far(_) = target.spot {
            return far::operate(self, &target, (Does::Get, 0), (None, Some(sink)), place, when);
        }
        self.counted.add(WindowCount::Get, bytes);
        let pieces = (
            sink.datatype.contiguous(sink.count),
            place.datatype.contiguous(place.count),
        );
        if let (Some((to, _)), Some((from, _))) = pieces {
            let length = bytes as usize;
            return match target.spot {
                Spot::Here(memory) => {
                    sink.memory.copy(to, &memory.reading(), from, length);
                    Ok(None)
                }
                Spot::There(reach, address) => sink.memory.with_mut(to, length, |data| {
                    let runs = [(address.wrapping_add_signed(from as i64), length)];
                    reach
                        .read(&runs, data)
                        .map(|()| None)
                        .map_err(|error| unreached(&error))
                }),
                Spot::Far(_) => Ok(None),
            };
        }
        let mut stream = Stream::new(&target.spot, place.datatype, place.count)?;
        let mut unpacker = sink.unpacker()?;
        let mut piece = vec![0; MOVED.min(bytes as usize)];
        let mut at = 0;
        while at < bytes {
            let length = piece.len().min((bytes - at) as usize);
            stream.read(at, &mut piece[..length])?;
            unpacker.unpack(&piece[..length]);
            at += length as u64;
        }
        Ok(None)
    }
}
