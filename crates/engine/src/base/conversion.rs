// SPDX-License-Identifier: Apache-2.0
//! Messages from processes that represent data differently: the receiver makes them right.
//!
//! Such a message is received whole into memory of the library's own, in the form it was sent in, and is converted when
//! it is complete: it costs that memory, and a pass over the data. Sizes are compared in the sender's form, and the
//! status counts in ours. Messages from processes like this one never come here.
//!
//! MPI_PACKED travels as the bytes it is; the header says when these are data in the common form, which MPI_Pack writes
//! in a communicator with unlike members.

use isthmus_datatype::raw::{OwnMemory, WriteMemory};
use isthmus_datatype::{Datatype, Foreign, Representation, Unpacker};

use crate::base::buffer::{Conversion, Elements, ReceiveBuffer, ReceiveForm};
use crate::{Completion, EngineError};

/// How the stream of a message is represented.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    form: Option<Representation>,
    common: bool,
}

impl Stream {
    /// `form`: `None`: as here. `common`: packed data in the common form.
    pub(crate) fn new(form: Option<Representation>, common: bool) -> Self {
        Self { form, common }
    }
}

impl ReceiveBuffer {
    /// Says what the buffer is made of, so that messages of unlike processes can be converted. `memory` has the
    /// [window](Datatype::window) of the elements.
    pub fn described(mut self, memory: WriteMemory, datatype: &Datatype, count: u64) -> Self {
        self.elements = Some(Box::new(Elements {
            memory,
            datatype: datatype.clone(),
            count,
        }));
        self
    }

    /// Whether such a message may not go straight to the buffer.
    pub(crate) fn is_prepared_first(&self, stream: Stream) -> bool {
        let elements = self.elements.as_ref();
        elements.is_some_and(|elements| stream.form.is_some() || elements.are_packed() && !stream.common)
    }

    /// Makes room for such a message of so many bytes in the sender's form, and says what is to be done with it when it
    /// is here. `source`, `tag`: of the message.
    pub(crate) fn prepare(&mut self, stream: Stream, bytes: u64, source: u32, tag: i32) -> Option<Conversion> {
        let elements = self.elements.take()?;
        if elements.are_packed() {
            if stream.common || bytes == 0 {
                return None;
            }
            return Some(self.staged(Conversion::Refused(EngineError::NotPacked { source, tag }), 0));
        }
        match Foreign::new(&elements.datatype, stream.form?) {
            Ok(None) => None,
            Ok(Some(foreign)) => {
                let room = foreign.bytes(elements.count).unwrap_or(u64::MAX);
                let bytes = OwnMemory::new(0, bytes.min(room) as isize);
                let whole = Conversion::Whole {
                    foreign,
                    bytes,
                    elements: *elements,
                };
                Some(self.staged(whole, room))
            }
            Err(what) => Some(self.staged(Conversion::Refused(EngineError::Conversion { source, tag, what }), 0)),
        }
    }

    fn staged(&mut self, conversion: Conversion, room: u64) -> Conversion {
        self.form = match &conversion {
            Conversion::Whole { bytes, .. } => ReceiveForm::Contiguous(bytes.memory()),
            Conversion::Refused(_) => ReceiveForm::Contiguous(WriteMemory::EMPTY),
        };
        self.length = room;
        conversion
    }
}

impl Conversion {
    /// The receive is complete: converts what it has received.
    #[cold]
    pub(crate) fn convert(self, completion: &mut Completion) {
        if completion.error.as_ref().is_some_and(EngineError::is_fatal) {
            return;
        }
        match self {
            Self::Refused(error) => completion.error = Some(error),
            Self::Whole {
                foreign,
                bytes,
                elements,
            } => {
                let (basics, rest) = foreign.basics_in(completion.bytes);
                let whole = foreign.bytes_of(basics) as usize;
                // The constructor has succeeded with the same arguments when the buffer was made.
                if let Ok(mut unpacker) = Unpacker::new(&elements.datatype, elements.count, elements.memory) {
                    let unpacked = bytes
                        .reading()
                        .with(0, whole, |data| foreign.unpack(0, basics, data, &mut unpacker));
                    if let Err(what) = unpacked {
                        let (source, tag) = (completion.source, completion.tag);
                        completion.error = Some(EngineError::Conversion { source, tag, what });
                    }
                }
                // A part of a basic counts as a part of one here.
                completion.bytes = foreign.local_bytes_of(basics) + u64::from(rest > 0);
            }
        }
    }
}
