// SPDX-License-Identifier: Apache-2.0
//! Frames of processes that send requests: what is to be done for them.

use isthmus_abi::constants as abi;
use isthmus_engine::{Peer, Taken};
use isthmus_wire::frame::Header;
use isthmus_wire::requests::{Target, What};
use isthmus_wire::rma::Failure;

use crate::origin::{Lie, Ready, Work};
use crate::state::{Desk, State};

impl Desk {
    /// What is to be done for a request.
    pub(crate) fn work(
        &self,
        state: &State,
        name: &str,
        target: Option<Target>,
        data: Vec<u8>,
    ) -> Result<Work, Failure> {
        let failure = |class: i32, text: String| Failure {
            class: class as u32,
            text,
        };
        let me = || match self.me() {
            Some((_, rank)) => format!("rank {rank} in MPI_COMM_WORLD"),
            None => "this process".to_owned(),
        };
        if state.closed {
            let me = me();
            let text = format!("{me} has called MPI_Finalize, so its handler \"{name}\" was not called");
            return Err(failure(abi::MPI_ERR_OTHER, text));
        }
        let handler = state.handlers.named(name).filter(|handler| handler.function.is_some());
        let Some(handler) = handler.cloned() else {
            let me = me();
            let text = format!(
                "{me} has no handler \"{name}\": it has to call isthmus_handler_register with this name before a request \
                 comes"
            );
            return Err(failure(abi::MPI_ERR_NAME, text));
        };
        if let Some(target) = target.filter(|target| !state.regions.have(target)) {
            let me = me();
            let text = format!(
                "{} bytes at {:#x} of {me} are not, or no longer, in memory that it has registered, so its handler \
                 \"{name}\" was not called",
                target.length, target.address
            );
            return Err(failure(abi::MPI_ERR_RMA_RANGE, text));
        }
        Ok(Work::Call { handler, target, data })
    }
}

impl State {
    /// A frame of a process that sends requests. The request, if it cannot be done and has to be answered so.
    pub(crate) fn take(
        &mut self,
        desk: &Desk,
        peer: Peer,
        header: &Header,
        payload: &[u8],
    ) -> Result<(Taken, Option<(Ready, Failure)>), Lie> {
        let Some((what, number)) = What::from_tag(header.tag) else {
            return Err("a remote service request of an unknown kind");
        };
        let origin = self.origins.entry(peer).or_default();
        if what == What::Name {
            origin.name(number, header, payload)?;
            return Ok((Taken::Done, None));
        }
        let known = (number as usize)
            .checked_sub(1)
            .and_then(|at| origin.names.get(at))
            .cloned();
        if known.is_none() != (what == What::Flush) || what == What::Flush && number != 0 {
            return Err("a remote service request for a handler that it has not named");
        }
        let Some(partial) = origin.piece(header, payload)? else {
            return Ok((Taken::Kept, None));
        };
        let mut ready = Ready {
            question: partial.question,
            work: None,
            frames: partial.frames,
        };
        let Some(name) = known else {
            if ready.question == 0 || partial.whole > 0 {
                return Err("a question about remote service requests that is none");
            }
            ready.work = Some(Work::Nothing);
            self.wait_for_turn(peer, ready);
            return Ok((Taken::Kept, None));
        };
        let (target, data) = match what {
            What::Point => {
                let (target, data) = Target::decode(&partial.data)
                    .map_err(|_| "a remote service request to a global pointer that is none")?;
                (Some(target), data.to_vec())
            }
            _ => (None, partial.data),
        };
        match desk.work(self, &name, target, data) {
            Ok(work) => {
                ready.work = Some(work);
                self.wait_for_turn(peer, ready);
                Ok((Taken::Kept, None))
            }
            Err(failure) => Ok((Taken::Kept, Some((ready, failure)))),
        }
    }
}
