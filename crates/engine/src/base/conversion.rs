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
use isthmus_protocol::matching::Envelope;
use isthmus_transport::Peer;

use crate::EngineError;
use crate::base::buffer::{Conversion, Elements, ReceiveBuffer, ReceiveForm};
use crate::base::requests::Task;
use crate::base::state::State;

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

    fn stage(&mut self, conversion: &Conversion, room: u64) {
        self.form = match conversion {
            Conversion::Whole { bytes, .. } => ReceiveForm::Contiguous(bytes.memory()),
            Conversion::Refused(_) => ReceiveForm::Contiguous(WriteMemory::EMPTY),
        };
        self.length = room;
    }
}

impl State {
    /// How the stream of a message is represented; `None`: as here.
    pub(crate) fn form_of(&self, peer: Peer, common: bool) -> Option<Representation> {
        if self.representations.is_empty() {
            return None;
        }
        let form = if common {
            Representation::COMMON
        } else {
            self.representations
                .get(peer.index())
                .copied()
                .unwrap_or(Representation::LOCAL)
        };
        (form != Representation::LOCAL).then_some(form)
    }

    /// Before a receive takes a message of `message` bytes that it has matched: makes room for it in the sender's form.
    #[inline]
    pub(crate) fn prepare(&mut self, index: u32, envelope: &Envelope, origin: (Peer, bool), message: u64) {
        if !self.representations.is_empty() {
            self.prepare_conversion(index, envelope, origin, message);
        }
    }

    /// Whether a message may not go straight to the buffer of a receive.
    #[cold]
    pub(crate) fn is_prepared_first(&mut self, index: u32, (peer, common): (Peer, bool)) -> bool {
        let form = self.form_of(peer, common);
        let elements = self
            .requests
            .receive(index)
            .and_then(|task| task.buffer.elements.as_ref());
        elements.is_some_and(|elements| form.is_some() || elements.are_packed() && !common)
    }

    #[cold]
    fn prepare_conversion(&mut self, index: u32, envelope: &Envelope, (peer, common): (Peer, bool), message: u64) {
        let form = self.form_of(peer, common);
        let Some(task) = self.requests.receive(index) else {
            return;
        };
        let Some(elements) = task.buffer.elements.take() else {
            return;
        };
        let (source, tag) = (envelope.source, envelope.tag);
        if elements.are_packed() {
            if !common && message > 0 {
                let refused = Conversion::Refused(EngineError::NotPacked { source, tag });
                task.buffer.stage(&refused, 0);
                task.conversion = Some(Box::new(refused));
            }
            return;
        }
        let Some(form) = form else { return };
        let staged = Foreign::new(&elements.datatype, form).map(|foreign| {
            foreign.map(|foreign| {
                let room = foreign.bytes(elements.count).unwrap_or(u64::MAX);
                (foreign, room)
            })
        });
        let (conversion, room) = match staged {
            Ok(None) => return,
            Ok(Some((foreign, room))) => {
                let bytes = OwnMemory::new(0, message.min(room) as isize);
                let whole = Conversion::Whole {
                    foreign,
                    bytes,
                    elements: *elements,
                };
                (whole, room)
            }
            Err(what) => (Conversion::Refused(EngineError::Conversion { source, tag, what }), 0),
        };
        task.buffer.stage(&conversion, room);
        task.conversion = Some(Box::new(conversion));
    }

    /// A receive is complete: converts what it has received.
    #[cold]
    pub(crate) fn convert(&mut self, index: u32) {
        let slot = self.requests.slot_mut(index);
        let Task::Receive(task) = &mut slot.task else { return };
        let Some(conversion) = task.conversion.take() else {
            return;
        };
        let completion = &mut slot.completion;
        if completion.error.as_ref().is_some_and(EngineError::is_fatal) {
            return;
        }
        match *conversion {
            Conversion::Refused(error) => completion.error = Some(error),
            Conversion::Whole {
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
