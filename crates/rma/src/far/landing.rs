// SPDX-License-Identifier: Apache-2.0
//! Data that were asked for, on their way into memory of the program. A target sends them as it represents them;
//! whoever has asked makes them right.

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_datatype::raw::WriteMemory;
use isthmus_datatype::{ConversionError, Datatype, Foreign, Representation, Unpacker};

use crate::data::Sink;

/// See the module.
#[derive(Clone)]
pub(super) enum Landing {
    /// As they come, in one piece: memory of all of it, and where the next byte goes.
    Straight(WriteMemory, u64),
    /// As they come.
    Alike(Unpacker),
    /// After a conversion.
    Unlike(Box<Unlike>),
}

/// A stream that comes in pieces of any length.
#[derive(Clone)]
pub(super) struct Unlike {
    foreign: Foreign,
    unpacker: Unpacker,
    /// Basics that have come, and all that there is room for.
    basics: u64,
    most: u64,
    /// The beginning of the next one.
    rest: Vec<u8>,
}

impl Landing {
    /// `form`: how the target represents data, if differently.
    pub(super) fn new(sink: &Sink<'_>, form: Option<Representation>) -> Result<Self> {
        let foreign = foreign(sink.datatype, form)?;
        if let (None, Some((offset, bytes))) = (&foreign, sink.datatype.contiguous(sink.count)) {
            return Ok(Self::Straight(sink.memory.part(offset, bytes as usize), 0));
        }
        let unpacker = sink.unpacker()?;
        Ok(match foreign {
            None => Self::Alike(unpacker),
            Some(foreign) => Self::Unlike(Box::new(Unlike {
                most: foreign.local_basics_in(sink.bytes()?),
                foreign,
                unpacker,
                basics: 0,
                rest: Vec::new(),
            })),
        })
    }

    /// The next piece begins with this byte of the target's stream, which begins a basic.
    pub(super) fn seek(&mut self, byte: u64) {
        match self {
            Self::Straight(_, at) => *at = byte,
            Self::Alike(unpacker) => unpacker.seek(byte),
            Self::Unlike(unlike) => unlike.basics = unlike.foreign.basics_in(byte).0,
        }
    }

    /// Memory for the next `length` bytes, if they lie there as they come. Whoever has filled it says so
    /// ([`passes`](Self::passes)).
    pub(super) fn memory(&self, length: u64) -> Option<WriteMemory> {
        let Self::Straight(memory, at) = self else { return None };
        let fits = at
            .checked_add(length)
            .is_some_and(|end| end <= memory.window().1 as u64);
        fits.then(|| memory.part(*at as isize, length as usize))
    }

    /// So many bytes are there already.
    pub(super) fn passes(&mut self, length: u64) {
        if let Self::Straight(_, at) = self {
            *at += length;
        }
    }

    /// Takes a piece. Values that do not fit leave their places alone, and are an error.
    pub(super) fn take(&mut self, data: &[u8]) -> Result<()> {
        match self {
            Self::Straight(memory, at) => {
                let room = memory.window().1 as u64;
                let fits = room.saturating_sub(*at).min(data.len() as u64);
                memory.write(*at as isize, &data[..fits as usize]);
                *at += fits;
                Ok(())
            }
            Self::Alike(unpacker) => {
                unpacker.unpack(data);
                Ok(())
            }
            Self::Unlike(unlike) => unlike.take(data).map_err(|error| refused(&error)),
        }
    }
}

impl Unlike {
    fn take(&mut self, data: &[u8]) -> std::result::Result<(), ConversionError> {
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(data);
        let start = self.foreign.bytes_of(self.basics);
        let end = self.foreign.basics_in(start + all.len() as u64).0;
        let whole = (self.foreign.bytes_of(end) - start) as usize;
        self.rest = all.split_off(whole);
        let first = std::mem::replace(&mut self.basics, end);
        // A program whose types do not fit each other has asked for more than it has room for.
        let fit = end.min(self.most).saturating_sub(first);
        self.foreign.unpack(first, fit, &all, &mut self.unpacker)
    }
}

/// How a stream of these elements looks at a process with this form; `None`: as here.
pub(super) fn foreign(datatype: &Datatype, form: Option<Representation>) -> Result<Option<Foreign>> {
    let Some(form) = form else { return Ok(None) };
    Foreign::new(datatype, form).map_err(|error| refused(&error))
}

/// Bytes of a stream there that has so many here, whole basics.
pub(super) fn bytes_there(foreign: Option<&Foreign>, here: u64) -> u64 {
    foreign.map_or(here, |foreign| foreign.bytes_of(foreign.local_basics_in(here)))
}

/// Data that cannot be converted.
pub(super) fn refused(error: &ConversionError) -> Error {
    let class = match error {
        ConversionError::Lacking { .. } => abi::MPI_ERR_TYPE,
        ConversionError::DoesNotFit { .. } => abi::MPI_ERR_TRUNCATE,
    };
    Error::new(class, error.to_string())
}

#[cfg(test)]
mod tests {
    use isthmus_datatype::Basic;
    use isthmus_datatype::raw::OwnMemory;

    use super::*;

    #[test]
    fn what_comes_in_pieces_of_any_length_is_converted_and_stays_within_its_room() {
        let ty = Datatype::vector(2, 1, 2, &Datatype::of(Basic::Int32)).expect("a type");
        let stream: Vec<u8> = (1..=6_i32).flat_map(i32::to_be_bytes).collect();
        for length in [1, 3, 4, 7, 24] {
            let memory = OwnMemory::new(0, 24);
            let sink = Sink {
                memory: memory.memory(),
                count: 2,
                datatype: &ty,
            };
            let mut landing = Landing::new(&sink, Some(Representation::COMMON)).expect("made");
            assert!(stream.chunks(length).all(|piece| landing.take(piece).is_ok()));
            let words = |at: usize| i32::from_ne_bytes(*memory.content()[4 * at..].first_chunk().expect("four"));
            assert_eq!([0, 2, 3, 5].map(words), [1, 2, 3, 4], "pieces of {length}");
            let mut last = Landing::new(&sink, Some(Representation::COMMON)).expect("made");
            last.seek(12);
            assert!(last.take(&9_i32.to_be_bytes()).is_ok());
            assert_eq!([3, 5].map(words), [3, 9]);
        }
    }
}
