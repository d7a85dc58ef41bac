// SPDX-License-Identifier: Apache-2.0
//! Answers of others to what this process has asked.

use isthmus_core::error::Error;
use isthmus_engine::{Peer, Port};
use isthmus_wire::frame::Header;
use isthmus_wire::requests::{Answer, MAX_BYTES, halves};
use isthmus_wire::rma::Failure;

use crate::state::State;

impl State {
    /// A frame of a process that was asked. An error: an honest process does not send it.
    pub(crate) fn answered(
        &mut self,
        port: &mut Port<'_>,
        peer: Peer,
        header: &Header,
        payload: &[u8],
    ) -> Result<(), &'static str> {
        let (question, whole) = halves(header.token);
        let known = self.asked.get_mut(&question).filter(|asked| asked.peer == peer);
        match (Answer::from_tag(header.tag), known) {
            (Some(Answer::Reply), Some(asked)) => {
                let (at, bytes, whole) = (header.auxiliary(), payload.len() as u64, u64::from(whole));
                let fits = whole <= MAX_BYTES as u64 && at == asked.got && bytes <= whole - at.min(whole);
                if !fits || bytes == 0 && whole > 0 || whole > 0 && asked.room.is_none() {
                    return Err("a reply to a remote service request in pieces that do not follow each other");
                }
                asked.take(at, payload);
                asked.got += bytes;
                if asked.got == whole {
                    if let Some(asked) = self.asked.remove(&question) {
                        asked.complete(port, whole);
                    }
                }
                Ok(())
            }
            (Some(Answer::Failed), known) if question == 0 || known.as_ref().is_some_and(|asked| asked.got == 0) => {
                let failure =
                    Failure::decode(payload).map_err(|_| "a failure of a remote service request that is none")?;
                match self.asked.remove(&question) {
                    Some(asked) => asked.fail(port, failure),
                    None => match self.to.get_mut(&peer) {
                        Some(to) => {
                            let error = Error::named(failure.class as i32, failure.text);
                            to.failed.get_or_insert(error);
                        }
                        None => return Err("a failure of a remote service request that nobody has sent"),
                    },
                }
                Ok(())
            }
            _ => Err("an answer to a remote service request that nobody has sent"),
        }
    }
}
