// SPDX-License-Identifier: Apache-2.0
//! The machine that sends and takes frames of one-sided communication (`isthmus_wire::rma`), for all windows of this
//! process that have members on other nodes.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use isthmus_core::error::{Error, Result as Outcome};
use isthmus_core::world::WindowCount;
use isthmus_datatype::raw::WriteMemory;
use isthmus_engine::{
    Completion, Core, Engine, EngineError, Lease, Lent, Machine, Operation as Counted, Peer, Port, Request, SendBuffer,
    Sending, Taken, with_machine,
};
use isthmus_wire::frame::{Header, protocol};
use isthmus_wire::rma::{Failure, Operation, What};

use super::doing::refuse_late;
use super::freed::Freed;
use super::landing::Landing;
use super::open::Open;
use super::outgoing::{Among, Frame, Key, Leaving, Memory, Outgoing, halves, key};
use crate::window::Window;

fn lost_desk() -> EngineError {
    EngineError::Misuse {
        what: "an operation on a window that is no more",
    }
}

/// Does something with the desk of this process.
pub(super) fn with_desk<T>(
    engine: &mut Engine,
    act: impl FnOnce(&mut Desk, &mut Port<'_>) -> Result<T, EngineError>,
) -> Outcome<T> {
    let acted = with_machine(engine, protocol::RMA, act).unwrap_or_else(|| Err(lost_desk()));
    acted.map_err(|error| (&error).into())
}

/// The window that a frame of a peer names. Equal numbers of two worlds have no member in common.
fn named(windows: &mut BTreeMap<Key, Box<Open>>, number: u32, peer: Peer) -> Option<(Key, &mut Open)> {
    let mut all = windows.range_mut((number, 0)..=(number, u32::MAX));
    all.find(|(_, open)| open.has(peer))
        .map(|(&key, open)| (key, &mut **open))
}

/// A question of this process that is not answered, or not wholly.
struct Question {
    key: Key,
    peer: Peer,
    /// Whether data were asked for.
    data: bool,
    /// Where they go; `None`: nowhere, or not any more.
    to: Option<Landing>,
    length: u64,
    got: u64,
    /// Its next bytes are being read straight into this memory.
    placing: Option<Lease<WriteMemory>>,
    /// A part of what is over when the answer has come.
    request: Option<Request>,
}

impl Question {
    /// The program gets its memory back.
    fn keep_off(&mut self) {
        self.to = None;
        self.placing = None;
    }
}

/// See the module.
pub(crate) struct Desk {
    /// How things are counted.
    pub(super) counted: [Counted; WindowCount::ALL.len()],
    windows: BTreeMap<Key, Box<Open>>,
    asked: BTreeMap<u32, Question>,
    numbers: u32,
    /// Requests that are not complete, and how many of their parts are not over.
    requests: HashMap<Request, u32>,
    freed: Freed,
    out: Outgoing,
    /// Locks that this process has called for, in that order, and does not know to have: the windows and the ranks.
    pub(super) unsure: Vec<(Key, u32)>,
    /// A thread tries to get them.
    pub(super) tries: bool,
    /// Questions that were answered with no.
    pub(super) refused: BTreeSet<u32>,
}

impl Desk {
    /// `counted`: how things are counted, each [`WindowCount`] at its value.
    pub(super) fn new(counted: [Counted; WindowCount::ALL.len()]) -> Self {
        Self {
            counted,
            windows: BTreeMap::default(),
            asked: BTreeMap::default(),
            numbers: 0,
            requests: HashMap::default(),
            freed: Freed::default(),
            out: Outgoing::default(),
            unsure: Vec::new(),
            tries: false,
            refused: BTreeSet::new(),
        }
    }

    pub(super) fn window(&self, key: Key) -> Option<&Arc<Window>> {
        Some(self.windows.get(&key)?.window())
    }

    /// Whether something about a window is not answered.
    pub(super) fn has_questions(&self, key: Key) -> bool {
        self.asked.values().any(|asked| asked.key == key)
    }

    /// From now on the window's members may operate on it.
    pub(crate) fn open(&mut self, window: &Arc<Window>) {
        let key = key(window.comm.channel().context);
        self.freed.remove(key);
        self.windows.insert(key, Box::new(Open::new(window.clone())));
    }

    /// Nobody operates on it any more; `early`: or so it should be.
    pub(crate) fn close(&mut self, port: &mut Port<'_>, key: Key, early: bool) {
        let window = self.windows.remove(&key);
        if let Some(open) = window.filter(|_| early) {
            self.freed.insert(port, &mut self.out, key, *open);
        }
        // What was given up after a loss is answered all the same.
        for asked in self.asked.values_mut().filter(|asked| asked.key == key) {
            asked.keep_off();
        }
    }

    /// Whether answers about the window have not left yet.
    pub(crate) fn has_to_say(&self, key: Key) -> bool {
        self.windows.get(&key).is_some_and(|open| open.leaving > 0)
    }

    /// Bytes of operations that have not left for a peer: all, and those in memory of our own.
    pub(crate) fn waiting(&self, peer: Peer) -> (u64, u64) {
        let [own, program] = self.out.waiting.get(&peer).copied().unwrap_or_default();
        let own = own + self.out.bundled(peer);
        (own + program, own)
    }

    /// Whether nothing for those of whom this is so is read from memory of the program.
    pub(crate) fn has_left(&self, is_asked: impl Fn(Peer) -> bool) -> bool {
        let mut all = self.out.waiting.iter();
        all.all(|(&peer, bytes)| bytes[Memory::Program as usize] == 0 || !is_asked(peer))
    }

    /// Whether all data that this process has asked for have come.
    pub(crate) fn has_heard(&self, key: Key) -> bool {
        self.windows.get(&key).is_none_or(|open| open.asks == 0)
    }

    /// Data of the window that this process has asked for and that have not come: of one member, or of all.
    pub(crate) fn questions(&self, key: Key, peer: Option<Peer>) -> Vec<u32> {
        if self.has_heard(key) {
            return Vec::new();
        }
        let of = |asked: &Question| asked.data && asked.key == key && peer.is_none_or(|peer| asked.peer == peer);
        let all = self.asked.iter().filter(|(_, asked)| of(asked));
        all.map(|(&question, _)| question).collect()
    }

    /// Takes those out that are over; whether these are all.
    pub(crate) fn are_answered(&self, questions: &mut Vec<u32>) -> bool {
        while questions.last().is_some_and(|last| !self.asked.contains_key(last)) {
            questions.pop();
        }
        questions.is_empty()
    }

    /// Whether so many bytes of operations were done since the last fence, or a member is lost. Then those since this
    /// fence count.
    pub(crate) fn has_done(&mut self, port: &mut Port<'_>, key: Key, odd: bool, bytes: u64) -> bool {
        let Some(open) = self.windows.get_mut(&key) else {
            return true;
        };
        let done = open.has_done(odd, bytes);
        if done {
            open.go_on(port, &mut self.out);
        }
        done
    }

    /// Whether so many bytes of operations of a member were done since there is the window, or it is lost.
    pub(crate) fn has_done_of(&self, key: Key, peer: Peer, bytes: u64) -> bool {
        self.windows.get(&key).is_none_or(|open| open.has_done_of(peer, bytes))
    }

    /// The first mistake in operations on the window that this process has not heard of.
    pub(crate) fn failed(&mut self, key: Key) -> Option<Error> {
        self.windows.get_mut(&key)?.failed()
    }

    /// See [`Outgoing::bundle`].
    pub(crate) fn bundle(
        &mut self,
        port: &mut Port<'_>,
        peer: Peer,
        among: Among,
        operation: &Operation<'_>,
    ) -> Option<u64> {
        let bytes = self.out.bundle(port, peer, among, operation)?;
        port.count(self.counted[WindowCount::Bundled as usize], peer, bytes);
        Some(bytes)
    }

    /// Says something.
    pub(crate) fn say(
        &mut self,
        port: &mut Port<'_>,
        peer: Peer,
        header: Header,
        payload: SendBuffer,
    ) -> Result<(), EngineError> {
        self.out
            .operate(port, peer, header, (payload, Memory::Own), None)
            .map(drop)
    }

    /// See [`Outgoing::hold`].
    pub(crate) fn hold(
        &mut self,
        port: &mut Port<'_>,
        peer: Peer,
        frame: Frame,
        asks: bool,
    ) -> Result<(), EngineError> {
        self.out.hold(port, peer, frame, asks)
    }

    /// See [`Outgoing::flush`].
    pub(crate) fn flush(
        &mut self,
        port: &mut Port<'_>,
        peer: Peer,
        context: u32,
        question: u32,
    ) -> Result<(), EngineError> {
        self.out.flush(port, peer, context, question)
    }

    /// See [`Outgoing::leave`].
    pub(super) fn leave(&mut self, port: &mut Port<'_>, peer: Peer) {
        self.out.leave(port, peer);
    }

    /// See [`Outgoing::let_go`].
    pub(crate) fn let_go(&mut self, port: &mut Port<'_>) {
        self.out.let_go(port);
    }

    /// The same with memory of the program, as a part of a request.
    pub(crate) fn lend(
        &mut self,
        port: &mut Port<'_>,
        peer: Peer,
        header: Header,
        payload: SendBuffer,
        request: Option<Request>,
    ) -> Result<(), EngineError> {
        let lent = (payload, Memory::Program);
        if self.out.operate(port, peer, header, lent, request)? == Sending::Left {
            self.part_is_over(port, request, None);
        }
        Ok(())
    }

    /// A request that is complete when so many parts of it are over.
    pub(crate) fn begin(&mut self, port: &mut Port<'_>, parts: u32) -> Request {
        let request = port.request();
        self.requests.insert(request, parts);
        request
    }

    /// A request that nobody waits for any more.
    pub(crate) fn give_up(&mut self, request: Request) {
        self.requests.remove(&request);
    }

    /// A part of a request is over; if that is an error, all of it.
    fn part_is_over(&mut self, port: &mut Port<'_>, request: Option<Request>, error: Option<EngineError>) {
        part_is_over(&mut self.requests, port, request, error);
    }

    /// A number for a question about a window, which is a part of a request. `data`: where the answer goes, and its
    /// length.
    pub(crate) fn ask(
        &mut self,
        (key, peer): (Key, Peer),
        data: Option<(Landing, u64)>,
        request: Option<Request>,
    ) -> u32 {
        loop {
            self.numbers = self.numbers.wrapping_add(1);
            if self.numbers != 0 && !self.asked.contains_key(&self.numbers) {
                break;
            }
        }
        if let (Some(_), Some(open)) = (&data, self.windows.get_mut(&key)) {
            open.asks += 1;
        }
        let asks = data.is_some();
        let (to, length) = data.map_or((None, 0), |(to, length)| (Some(to), length));
        let asked = Question {
            key,
            peer,
            data: asks,
            to,
            length,
            got: 0,
            placing: None,
            request,
        };
        self.asked.insert(self.numbers, asked);
        self.numbers
    }

    /// A question that could not be asked.
    pub(crate) fn forget(&mut self, port: &mut Port<'_>, question: u32) {
        self.answered(port, question, None);
    }

    /// A question is over.
    fn answered(&mut self, port: &mut Port<'_>, question: u32, error: Option<EngineError>) {
        let Some(asked) = self.asked.remove(&question) else {
            return;
        };
        if let (true, Some(open)) = (asked.data, self.windows.get_mut(&asked.key)) {
            open.asks -= 1;
        }
        self.part_is_over(port, asked.request, error);
    }

    /// A lock of the window may be free: lets in who is next, and does what has waited.
    pub(crate) fn go_on(&mut self, port: &mut Port<'_>, key: Key) -> bool {
        let Some(open) = self.windows.get_mut(&key) else {
            return false;
        };
        open.go_on(port, &mut self.out)
    }

    /// So many more bytes of an answer are here.
    fn got(&mut self, port: &mut Port<'_>, question: u32, bytes: u64) {
        let Some(asked) = self.asked.get_mut(&question) else {
            return;
        };
        asked.got += bytes;
        if asked.got == asked.length {
            self.answered(port, question, None);
        }
    }

    /// The question that a frame with data answers, if these are the next of it.
    fn answers(&mut self, peer: Peer, header: &Header) -> Option<(u32, &mut Question)> {
        let (context, question) = halves(header);
        let asked = self.asked.get_mut(&question)?;
        let next = header.auxiliary() == asked.got && (1..=asked.length - asked.got).contains(&header.length);
        let its = asked.peer == peer && asked.key.0 == context && asked.data;
        (its && next).then_some((question, asked))
    }

    /// What a target says.
    fn heard(&mut self, port: &mut Port<'_>, peer: Peer, header: &Header, payload: &[u8]) {
        let (context, question) = halves(header);
        let what = What::from_tag(header.tag);
        let known = self.asked.get_mut(&question);
        let known = known.filter(|asked| asked.peer == peer && asked.key.0 == context);
        match (what, known) {
            (Some(What::Answer), Some(asked)) if asked.data && !payload.is_empty() => {
                let at = header.auxiliary();
                let left = asked.length - asked.got;
                if at != asked.got || payload.len() as u64 > left {
                    return port.accuse(peer, "more data of a window than were asked for");
                }
                if let Err(error) = asked.to.as_mut().map_or(Ok(()), |to| to.take(payload)) {
                    // The rest arrives all the same.
                    self.failed_here(port, context, peer, question, error);
                }
                self.got(port, question, payload.len() as u64);
            }
            (Some(What::Done), Some(asked)) if !asked.data && payload.is_empty() => {
                self.answered(port, question, None);
            }
            (Some(What::Refused), Some(asked)) if !asked.data && asked.request.is_none() && payload.is_empty() => {
                self.refused.insert(question);
                self.answered(port, question, None);
            }
            (Some(What::Failed), known) if known.is_some() || question == 0 => {
                let is_known = question != 0 || named(&mut self.windows, context, peer).is_some();
                let (Ok(failure), true) = (Failure::decode(payload), is_known) else {
                    return port.accuse(peer, "a failure of no operation on a window");
                };
                let error = Error::new(failure.class as i32, failure.text);
                self.failed_here(port, context, peer, question, error);
                self.answered(port, question, None);
            }
            _ => port.accuse(peer, "an answer about a window that nobody has asked for"),
        }
    }

    /// An operation has failed: whoever waits for its request hears of it, or else whoever ends the epoch.
    fn failed_here(&mut self, port: &mut Port<'_>, context: u32, peer: Peer, question: u32, error: Error) {
        let asked = self.asked.get_mut(&question);
        let request = asked.and_then(|asked| asked.request.take());
        let Some((_, open)) = named(&mut self.windows, context, peer) else {
            return self.part_is_over(port, request, None);
        };
        match request {
            Some(_) => {
                let told = open.told(&error);
                self.part_is_over(port, request, Some(told));
            }
            None => open.fail(error),
        }
    }

    /// What an origin says.
    fn told(&mut self, port: &mut Port<'_>, peer: Peer, header: &Header, payload: &[u8]) -> Taken {
        let (context, _) = halves(header);
        let Some((_, open)) = named(&mut self.windows, context, peer) else {
            if self.freed.has(context, peer) {
                refuse_late(port, peer, header, payload);
            } else {
                port.accuse(peer, "an operation on a window that it is no member of");
            }
            return Taken::Done;
        };
        let taken = open.take(port, &mut self.out, (peer, header), payload);
        if std::mem::take(&mut open.left) {
            open.go_on(port, &mut self.out);
        }
        taken
    }
}

impl Machine for Desk {
    fn frame(&mut self, port: &mut Port<'_>, peer: Peer, header: &Header, payload: &[u8]) -> Taken {
        match What::from_tag(header.tag) {
            Some(What::Answer | What::Done | What::Failed | What::Refused) => {
                self.heard(port, peer, header, payload);
                Taken::Done
            }
            Some(What::Look) => {
                if let Some((key, _)) = named(&mut self.windows, halves(header).0, peer) {
                    self.go_on(port, key);
                }
                Taken::Done
            }
            Some(_) => self.told(port, peer, header, payload),
            None => {
                port.accuse(peer, "a frame about windows of an unknown kind");
                Taken::Done
            }
        }
    }

    fn place(&mut self, _: &mut Port<'_>, peer: Peer, header: &Header) -> Option<Lent<WriteMemory>> {
        match What::from_tag(header.tag)? {
            What::Data => named(&mut self.windows, halves(header).0, peer)?.1.place(peer, header),
            What::Answer => {
                let (_, asked) = self.answers(peer, header)?;
                let lease = Lease::new(asked.to.as_ref()?.memory(header.length)?);
                Some(asked.placing.insert(lease).lent())
            }
            _ => None,
        }
    }

    fn placed(&mut self, port: &mut Port<'_>, peer: Peer, header: &Header) {
        port.count(self.counted[WindowCount::Placed as usize], peer, header.length);
        if What::from_tag(header.tag) == Some(What::Data) {
            if let Some((_, open)) = named(&mut self.windows, halves(header).0, peer) {
                open.placed(peer, header);
            }
        } else if let Some((question, asked)) = self.answers(peer, header) {
            asked.placing = None;
            if let Some(to) = &mut asked.to {
                to.passes(header.length);
            }
            self.got(port, question, header.length);
        }
    }

    fn sent(&mut self, port: &mut Port<'_>, peer: Peer, name: u64, sent: Result<(), EngineError>) {
        match self.out.leaving.remove(&name) {
            Some(Leaving::Operation(memory, bytes, request)) => {
                let waiting = self.out.waiting.entry(peer).or_default();
                waiting[memory as usize] -= bytes;
                if *waiting == [0; 2] {
                    self.out.waiting.remove(&peer);
                    self.out.release(port, peer);
                }
                self.part_is_over(port, request, sent.err());
            }
            Some(Leaving::Answer(key, answered)) => {
                port.done(peer, answered.frame);
                if let Some(open) = self.windows.get_mut(&key) {
                    open.answered(peer, answered);
                    if answered.copied > 0 || answered.lent {
                        open.go_on(port, &mut self.out);
                    }
                }
            }
            None => {}
        }
    }

    fn expects(&self) -> bool {
        !self.windows.is_empty() || self.freed.has_tickets()
    }

    fn itself(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn advance(&mut self, core: &mut Core) -> bool {
        let mut port = core.port(protocol::RMA);
        let mut any = self.out.let_go(&mut port);
        for open in self.windows.values_mut().filter(|open| open.waits()) {
            any |= open.go_on(&mut port, &mut self.out);
        }
        any | self.freed.go_on(&mut port, &mut self.out)
    }

    fn may_sleep(&mut self, core: &mut Core) -> bool {
        let any = self.advance(core) || self.freed.has_tickets();
        !any && !self.windows.values().any(|open| open.is_busy())
    }

    fn lose(&mut self, core: &mut Core, peer: Peer) {
        let mut port = core.port(protocol::RMA);
        let Some(error) = port.loss(peer) else { return };
        let Self {
            windows,
            freed,
            asked,
            out,
            requests,
            ..
        } = self;
        out.lose(peer);
        freed.lose(&mut port, out, peer);
        // Who waits in a window for anybody may wait for the one that is lost: it may have had a lock.
        for (&key, open) in windows.iter_mut().filter(|(_, open)| open.has(peer)) {
            open.fail((&error).into());
            open.lose(&mut port, out, peer);
            for asked in asked.values_mut().filter(|asked| asked.key == key) {
                // The program gets its memory back. What others answer comes all the same.
                asked.keep_off();
                part_is_over(requests, &mut port, asked.request.take(), Some(error.clone()));
            }
        }
        asked.retain(|_, asked| {
            let open = windows.get_mut(&asked.key).filter(|_| asked.data && asked.peer == peer);
            if let Some(open) = open {
                open.asks -= 1;
            }
            asked.peer != peer
        });
    }
}

/// A part of a request is over; if that is an error, all of it.
fn part_is_over(
    requests: &mut HashMap<Request, u32>,
    port: &mut Port<'_>,
    request: Option<Request>,
    error: Option<EngineError>,
) {
    let Some((request, left)) = request.and_then(|request| Some((request, requests.get_mut(&request)?))) else {
        return;
    };
    *left -= 1;
    if *left == 0 || error.is_some() {
        requests.remove(&request);
        let completion = Completion {
            error,
            ..Completion::default()
        };
        port.complete(request, completion);
    }
}
