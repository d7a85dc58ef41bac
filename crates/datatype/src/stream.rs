// SPDX-License-Identifier: Apache-2.0
//! The packed stream of a datatype as another representation has it.

use crate::basic::Basic;
use crate::convert::{Conversion, ConversionError};
use crate::error::{TypeError, narrow};
use crate::representation::Representation;
use crate::{Datatype, Packer, Unpacker};

/// Basics that are converted between two copies.
const PIECE: u64 = 256;
/// The same in bytes, for the largest basic in any representation.
const ROOM: usize = 32 * PIECE as usize;

/// The packed stream of elements of a datatype in the representation of another process (or in a common one).
#[derive(Clone, Debug)]
pub struct Foreign {
    datatype: Datatype,
    representation: Representation,
    /// Bytes of one element there.
    size: u64,
}

impl Foreign {
    /// `None`: the stream is the same there and here. Fails if a machine lacks one of the types.
    pub fn new(datatype: &Datatype, representation: Representation) -> Result<Option<Self>, ConversionError> {
        let conversion = Conversion {
            from: representation,
            to: Representation::LOCAL,
        };
        let (mut result, mut changes) = (Ok(()), false);
        if representation != Representation::LOCAL {
            datatype
                .signature()
                .basics(&mut |basic| match conversion.changes(basic) {
                    Ok(yes) => changes |= yes,
                    Err(error) => result = Err(error),
                });
        }
        result?;
        Ok(changes.then(|| Self {
            datatype: datatype.clone(),
            representation,
            size: datatype.signature().bytes_as(representation),
        }))
    }

    /// Bytes of `count` elements.
    pub fn bytes(&self, count: u64) -> Result<u64, TypeError> {
        narrow(i128::from(count) * i128::from(self.size), "size").map(|bytes| bytes as u64)
    }

    /// Whole basics in the first `bytes` bytes, and the bytes that are left over.
    pub fn basics_in(&self, bytes: u64) -> (u64, u64) {
        self.datatype.signature().elements_in_as(self.representation, bytes)
    }

    /// Bytes of the first `basics` basics.
    pub fn bytes_of(&self, basics: u64) -> u64 {
        self.datatype.signature().prefix_as(self.representation, basics)
    }

    /// Bytes of the first `basics` basics in the representation of this process.
    pub fn local_bytes_of(&self, basics: u64) -> u64 {
        self.datatype.signature().prefix_as(Representation::LOCAL, basics)
    }

    /// Converts `basics` basics from number `first` on to the elements in memory. `data` holds them. Values that do not
    /// fit leave their places alone; the first of them is the error, all others arrive.
    pub fn unpack(&self, first: u64, basics: u64, data: &[u8], unpacker: &mut Unpacker) -> Result<(), ConversionError> {
        let conversion = Conversion {
            from: self.representation,
            to: Representation::LOCAL,
        };
        let start = self.local_bytes_of(first);
        let (mut read, mut at, mut refused) = (0, start, Ok(()));
        let mut piece = [0; ROOM];
        self.each(first, basics, &mut |basic, number, count| {
            let from = &data[read..][..count as usize * self.representation.size(basic)];
            let to = &mut piece[..count as usize * basic.size()];
            read += from.len();
            let mut result = conversion.run(basic, number, from, to);
            unpacker.seek(at);
            if result.is_err() {
                result = self.one_by_one(conversion, basic, number, (from, to, unpacker));
            } else {
                unpacker.unpack(to);
            }
            at += to.len() as u64;
            if refused.is_ok() {
                refused = result;
            }
        });
        refused
    }

    /// Delivers those that fit.
    fn one_by_one(
        &self,
        conversion: Conversion,
        basic: Basic,
        number: u64,
        (from, to, unpacker): (&[u8], &mut [u8], &mut Unpacker),
    ) -> Result<(), ConversionError> {
        let mut refused = Ok(());
        let sizes = (self.representation.size(basic), basic.size());
        let start = unpacker.position();
        for (i, (from, to)) in from.chunks_exact(sizes.0).zip(to.chunks_exact_mut(sizes.1)).enumerate() {
            unpacker.seek(start + (i * sizes.1) as u64);
            match conversion.run(basic, number + i as u64, from, to) {
                Ok(()) => {
                    unpacker.unpack(to);
                }
                Err(error) if refused.is_ok() => refused = Err(error),
                Err(_) => {}
            }
        }
        refused
    }

    /// Basics in so many bytes of this process's stream: those that are whole.
    pub fn local_basics_in(&self, bytes: u64) -> u64 {
        self.datatype.signature().elements_in(bytes).0
    }

    /// Converts `basics` basics from number `first` on to a packed stream of this process. `data` holds them. The first
    /// value that does not fit is an error of all of them.
    pub fn localize(&self, first: u64, basics: u64, data: &[u8]) -> Result<Vec<u8>, ConversionError> {
        let conversion = Conversion {
            from: self.representation,
            to: Representation::LOCAL,
        };
        let length = self.local_bytes_of(first + basics) - self.local_bytes_of(first);
        let mut stream = vec![0; length as usize];
        let (mut read, mut written, mut refused) = (0, 0, Ok(()));
        self.each(first, basics, &mut |basic, number, count| {
            let from = &data[read..][..count as usize * self.representation.size(basic)];
            let to = &mut stream[written..][..count as usize * basic.size()];
            (read, written) = (read + from.len(), written + to.len());
            let result = conversion.run(basic, number, from, to);
            if refused.is_ok() {
                refused = result;
            }
        });
        refused.map(|()| stream)
    }

    /// Converts `basics` basics from number `first` on from the elements in memory to `out`, which has room for exactly
    /// them.
    pub fn pack(&self, first: u64, basics: u64, packer: &mut Packer, out: &mut [u8]) -> Result<(), ConversionError> {
        let conversion = Conversion {
            from: Representation::LOCAL,
            to: self.representation,
        };
        packer.seek(self.local_bytes_of(first));
        let (mut written, mut refused) = (0, Ok(()));
        let mut piece = [0; ROOM];
        self.each(first, basics, &mut |basic, number, count| {
            let from = &mut piece[..count as usize * basic.size()];
            packer.pack(from);
            let to = &mut out[written..][..count as usize * self.representation.size(basic)];
            written += to.len();
            let result = conversion.run(basic, number, from, to);
            if refused.is_ok() {
                refused = result;
            }
        });
        refused
    }

    /// Runs of at most [`PIECE`] basics: basic, number of the first, how many.
    fn each(&self, first: u64, basics: u64, give: &mut dyn FnMut(Basic, u64, u64)) {
        let mut number = first;
        self.datatype.signature().range(first, basics, &mut |basic, mut count| {
            while count > 0 {
                let now = count.min(PIECE);
                give(basic, number, now);
                number += now;
                count -= now;
            }
        });
    }
}
