// SPDX-License-Identifier: Apache-2.0
//! From a stream of bytes to frames, long payloads straight to their place.

use isthmus_datatype::raw::WriteMemory;
use isthmus_transport::{Lease, Lent, Placement};
use isthmus_wire::frame::{HEADER_BYTES, Header, HeaderError, Kind};
use isthmus_wire::hello::FAREWELL;
use rustc_hash::FxHashMap;

use crate::pages::MAX_PADDING;

/// Payloads with at least this many bytes still in the socket are asked a place for.
const PLACE: usize = 4096;
/// Longest fragment that is accepted, bytes; ours are shorter.
const MAX_FRAGMENT: u64 = 4 << 20;

/// Who gets what arrives. The same as `Sink`, for one peer.
pub(crate) trait Deliver {
    fn frame(&mut self, header: &Header, payload: &[u8]);
    /// A frame whose payload had to be collected, for those who can keep it.
    fn collected(&mut self, header: &Header, payload: Vec<u8>) {
        self.frame(header, &payload);
    }
    fn place(&mut self, header: &Header) -> Placement;
    fn placed(&mut self, header: &Header);
    fn received(&mut self, token: u64);
}

/// The peer does not speak our protocol; its connection is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    Header(HeaderError),
    TooLong { bytes: u64, limit: u64 },
    Outside { offset: u64, bytes: u64, length: u64 },
    AfterFarewell,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Header(e) => write!(f, "it sent a {e}"),
            Self::TooLong { bytes, limit } => write!(f, "it sent a frame of {bytes} bytes, above the limit of {limit}"),
            Self::Outside { offset, bytes, length } => {
                write!(f, "it sent {bytes} bytes at offset {offset} of a message of {length}")
            }
            Self::AfterFarewell => f.write_str("it went on after its farewell"),
        }
    }
}

#[derive(Debug)]
struct Expectation {
    memory: Lent<WriteMemory>,
    length: u64,
    arrived: u64,
}

#[derive(Debug)]
enum Stage {
    /// Between frames, with this many bytes of a header.
    Header(usize),
    Memory {
        header: Header,
        memory: Lent<WriteMemory>,
        base: u64,
        done: usize,
        expected: bool,
    },
    Collect {
        header: Header,
        bytes: Vec<u8>,
    },
    /// So many bytes without meaning are still to come.
    Skip(usize),
}

/// The receiving half of a channel.
#[derive(Debug)]
pub(crate) struct Inbound {
    stage: Stage,
    head: [u8; HEADER_BYTES],
    expectations: FxHashMap<u64, Expectation>,
    limit: u64,
    /// The peer has said farewell.
    pub(crate) farewell: bool,
}

impl Inbound {
    /// `limit`: longest payload of a frame that is not a fragment.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            stage: Stage::Header(0),
            head: [0; HEADER_BYTES],
            expectations: FxHashMap::default(),
            limit: limit as u64,
            farewell: false,
        }
    }

    /// Data frames with this token go to `memory`.
    pub(crate) fn expect(&mut self, token: u64, memory: Lent<WriteMemory>, length: u64) {
        self.expectations.insert(
            token,
            Expectation {
                memory,
                length,
                arrived: 0,
            },
        );
    }

    /// Nothing is half received.
    #[cfg(test)]
    fn between_frames(&self) -> bool {
        matches!(self.stage, Stage::Header(0))
    }

    /// Gives the place of the rest of a payload to `read`, when it has one and is long enough to be read there
    /// directly; then say [`Inbound::advance`]. Also the bytes of that place.
    pub(crate) fn direct<R>(&mut self, read: impl FnOnce(&mut [u8]) -> R) -> Option<(R, usize)> {
        let Stage::Memory {
            header,
            memory,
            base,
            done,
            ..
        } = &mut self.stage
        else {
            return None;
        };
        let rest = header.length as usize - *done;
        if rest < PLACE {
            return None;
        }
        let at = *base as isize + *done as isize;
        // Taken back: what comes is fed, and nobody wants it.
        let result = memory.with(|memory| memory.with_mut(at, rest, read))?;
        Some((result, rest))
    }

    /// `n` bytes were read by [`Inbound::direct`].
    pub(crate) fn advance(&mut self, n: usize, to: &mut dyn Deliver) {
        if let Stage::Memory {
            header, done, expected, ..
        } = &mut self.stage
        {
            *done += n;
            if *done as u64 == header.length {
                let (header, expected) = (*header, *expected);
                self.stage = Stage::Header(0);
                self.complete(&header, expected, to);
            }
        }
    }

    /// Takes bytes of the stream, all of them.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], to: &mut dyn Deliver) -> Result<(), Violation> {
        while !bytes.is_empty() {
            bytes = match &mut self.stage {
                Stage::Header(_) => self.header(bytes, to)?,
                Stage::Memory {
                    header,
                    memory,
                    base,
                    done,
                    ..
                } => {
                    let n = bytes.len().min(header.length as usize - *done);
                    let at = *base as isize + *done as isize;
                    // Taken back: nobody wants these bytes.
                    memory.with(|memory| memory.write(at, &bytes[..n]));
                    self.advance(n, to);
                    &bytes[n..]
                }
                Stage::Collect { .. } => self.collect(bytes, to),
                Stage::Skip(left) => {
                    let n = bytes.len().min(*left);
                    *left -= n;
                    if *left == 0 {
                        self.stage = Stage::Header(0);
                    }
                    &bytes[n..]
                }
            };
        }
        Ok(())
    }

    fn header<'b>(&mut self, bytes: &'b [u8], to: &mut dyn Deliver) -> Result<&'b [u8], Violation> {
        if self.farewell {
            return Err(Violation::AfterFarewell);
        }
        let have = if let Stage::Header(have) = self.stage { have } else { 0 };
        let n = bytes.len().min(HEADER_BYTES - have);
        self.head[have..have + n].copy_from_slice(&bytes[..n]);
        if have + n < HEADER_BYTES {
            self.stage = Stage::Header(have + n);
            return Ok(&bytes[n..]);
        }
        self.stage = Stage::Header(0);
        if self.head[0] == FAREWELL && self.head[1..] == [0; HEADER_BYTES - 1] {
            self.farewell = true;
            return Ok(&bytes[n..]);
        }
        let header = Header::decode(&self.head).map_err(Violation::Header)?;
        self.begin(header, &bytes[n..], to)
    }

    fn begin<'b>(&mut self, header: Header, rest: &'b [u8], to: &mut dyn Deliver) -> Result<&'b [u8], Violation> {
        let size = header.payload_bytes();
        let limit = match header.kind {
            Kind::Data => MAX_FRAGMENT,
            Kind::Padding => MAX_PADDING as u64,
            _ => self.limit,
        };
        if size > limit {
            return Err(Violation::TooLong { bytes: size, limit });
        }
        let size = size as usize;
        if header.kind == Kind::Padding {
            self.stage = Stage::Skip(size);
            return Ok(rest);
        }
        if header.kind == Kind::Data && self.expected(&header)? {
            return Ok(rest);
        }
        if rest.len() >= size {
            to.frame(&header, &rest[..size]);
            return Ok(&rest[size..]);
        }
        self.stage = match if size - rest.len() >= PLACE {
            to.place(&header)
        } else {
            Placement::Collect
        } {
            Placement::Into(memory) => Stage::Memory {
                header,
                memory,
                base: 0,
                done: 0,
                expected: false,
            },
            Placement::Collect => Stage::Collect {
                header,
                bytes: Vec::with_capacity(size),
            },
        };
        Ok(rest)
    }

    /// Prepares for a fragment that was announced. False: it was not.
    fn expected(&mut self, header: &Header) -> Result<bool, Violation> {
        let Some(expectation) = self.expectations.get(&header.token) else {
            return Ok(false);
        };
        let (offset, bytes, length) = (header.auxiliary(), header.length, expectation.length);
        if bytes == 0 || offset.checked_add(bytes).is_none_or(|end| end > length) {
            return Err(Violation::Outside { offset, bytes, length });
        }
        let memory = expectation.memory.clone();
        self.stage = Stage::Memory {
            header: *header,
            memory,
            base: offset,
            done: 0,
            expected: true,
        };
        Ok(true)
    }

    fn collect<'b>(&mut self, input: &'b [u8], to: &mut dyn Deliver) -> &'b [u8] {
        let Stage::Collect { header, bytes } = &mut self.stage else {
            return input;
        };
        let size = header.payload_bytes() as usize;
        let n = input.len().min(size - bytes.len());
        bytes.extend_from_slice(&input[..n]);
        if bytes.len() == size {
            let (header, bytes) = (*header, std::mem::take(bytes));
            self.stage = Stage::Header(0);
            to.collected(&header, bytes);
        }
        &input[n..]
    }

    fn complete(&mut self, header: &Header, expected: bool, to: &mut dyn Deliver) {
        if !expected {
            to.placed(header);
            return;
        }
        if let Some(expectation) = self.expectations.get_mut(&header.token) {
            expectation.arrived += header.length;
            if expectation.arrived >= expectation.length {
                self.expectations.remove(&header.token);
                to.received(header.token);
            }
        }
    }
}

/// For fuzzing: bytes of a peer inside the site that passed the handshake, cut in pieces. Bytes that reached somebody.
#[doc(hidden)]
pub fn fuzz_plain(bytes: &[u8], cut: usize) -> usize {
    struct Counting(usize);
    impl Deliver for Counting {
        fn frame(&mut self, _: &Header, payload: &[u8]) {
            self.0 += payload.len();
        }
        fn place(&mut self, _: &Header) -> Placement {
            Placement::Collect
        }
        fn placed(&mut self, _: &Header) {}
        fn received(&mut self, _: u64) {}
    }
    let (mut inbound, mut to, mut target) = (Inbound::new(4096), Counting(0), [0; 64]);
    // SAFETY: `target` outlives `inbound` and is not touched otherwise.
    let lease = Lease::new(unsafe { WriteMemory::new(target.as_mut_ptr(), 0, 64) });
    inbound.expect(1, lease.lent(), 64);
    for piece in bytes.chunks(cut.max(1)) {
        if inbound.feed(piece, &mut to).is_err() {
            break;
        }
    }
    assert!(to.0 <= bytes.len(), "more came out than went in");
    to.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log {
        frames: Vec<(Header, Vec<u8>)>,
        place: Option<Lent<WriteMemory>>,
        placed: usize,
        received: Vec<u64>,
    }

    impl Deliver for Log {
        fn frame(&mut self, header: &Header, payload: &[u8]) {
            self.frames.push((*header, payload.to_vec()));
        }
        fn place(&mut self, _: &Header) -> Placement {
            self.place.take().map_or(Placement::Collect, Placement::Into)
        }
        fn placed(&mut self, _: &Header) {
            self.placed += 1;
        }
        fn received(&mut self, token: u64) {
            self.received.push(token);
        }
    }

    fn eager(n: usize, fill: u8) -> Vec<u8> {
        let header = Header::new(Kind::Eager, 0, 0, 0, n as u64, 0);
        [&header.encode()[..], &vec![fill; n]].concat()
    }

    fn data(token: u64, offset: u64, bytes: &[u8]) -> Vec<u8> {
        [
            &Header::control(Kind::Data, token, offset, bytes.len() as u64).encode()[..],
            bytes,
        ]
        .concat()
    }

    #[test]
    fn frames_come_out_however_the_stream_is_cut() {
        let stream = [eager(3, 1), eager(0, 0), eager(9000, 2), data(1, 0, &[5; 10])].concat();
        for step in [1, 5, 31, 32, 33, 4096, 100_000] {
            let (mut inbound, mut log) = (Inbound::new(10_000), Log::default());
            for piece in stream.chunks(step) {
                inbound.feed(piece, &mut log).unwrap();
            }
            let sizes: Vec<_> = log.frames.iter().map(|(_, p)| p.len()).collect();
            assert_eq!(sizes, [3, 0, 9000, 10], "step {step}");
            assert!(inbound.between_frames());
        }
    }

    #[test]
    fn expected_fragments_go_to_their_place() {
        let mut target = [0u8; 20];
        // SAFETY: `target` is only touched through the memory until the log says received.
        let memory = unsafe { WriteMemory::new(target.as_mut_ptr(), 0, 20) };
        let (mut inbound, mut log) = (Inbound::new(64), Log::default());
        let lease = Lease::new(memory);
        inbound.expect(7, lease.lent(), 20);
        inbound.feed(&data(7, 12, &[2; 8]), &mut log).unwrap();
        assert!(log.received.is_empty());
        inbound.feed(&data(7, 0, &[1; 12]), &mut log).unwrap();
        assert_eq!(log.received, [7]);
        assert!(log.frames.is_empty());
        assert_eq!(target, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn a_long_payload_is_read_in_place() {
        let mut target = vec![0u8; 20_000];
        // SAFETY: as above, until `placed`.
        let lease = Lease::new(unsafe { WriteMemory::new(target.as_mut_ptr(), 0, 20_000) });
        let (mut inbound, mut log) = (
            Inbound::new(1 << 20),
            Log {
                place: Some(lease.lent()),
                ..Log::default()
            },
        );
        let stream = eager(20_000, 9);
        inbound.feed(&stream[..100], &mut log).unwrap();
        let (_, length) = inbound.direct(|rest| rest.copy_from_slice(&stream[100..])).unwrap();
        assert_eq!(length, 20_000 - 68);
        inbound.advance(20_000 - 68, &mut log);
        assert_eq!(log.placed, 1);
        assert!(target.iter().all(|b| *b == 9));
    }

    #[test]
    fn memory_that_was_given_back_is_not_written() {
        for in_place in [false, true] {
            let mut target = vec![0u8; 20_000];
            // SAFETY: below `target` is touched through the memory only as long as it is lent.
            let lease = Lease::new(unsafe { WriteMemory::new(target.as_mut_ptr(), 0, 20_000) });
            let (mut inbound, mut log) = (Inbound::new(1 << 20), Log::default());
            inbound.expect(7, lease.lent(), 20_000);
            let stream = data(7, 0, &[9; 20_000]);
            inbound.feed(&stream[..100], &mut log).unwrap();
            drop(lease);
            if in_place {
                let read = inbound.direct(|_: &mut [u8]| ());
                assert!(read.is_none(), "given back");
            }
            inbound.feed(&stream[100..], &mut log).unwrap();
            assert!(target[68..].iter().all(|b| *b == 0) && target[..68] == [9; 68]);
            inbound.feed(&eager(3, 1), &mut log).unwrap();
            assert_eq!(log.frames.len(), 1, "the stream goes on");
            assert_eq!(log.received, [7], "whoever gave it back hears that all has come");
        }
    }

    #[test]
    fn padding_is_skipped_however_the_stream_is_cut() {
        let padding = |n: usize| {
            [
                &Header::control(Kind::Padding, 0, 0, n as u64).encode()[..],
                &vec![7; n],
            ]
            .concat()
        };
        let stream = [padding(0), eager(3, 1), padding(MAX_PADDING), padding(64), eager(5, 2)].concat();
        for step in [1, 31, 32, 33, 4096, 100_000] {
            let (mut inbound, mut log) = (Inbound::new(64), Log::default());
            for piece in stream.chunks(step) {
                inbound.feed(piece, &mut log).unwrap();
            }
            let sizes: Vec<_> = log.frames.iter().map(|(_, p)| p.len()).collect();
            assert_eq!(sizes, [3, 5], "step {step}");
            assert!(inbound.between_frames());
        }
        let (mut inbound, mut log) = (Inbound::new(1 << 20), Log::default());
        let refused = inbound.feed(&padding(MAX_PADDING + 1), &mut log);
        assert!(matches!(refused, Err(Violation::TooLong { .. })), "{refused:?}");
    }

    #[test]
    fn peers_that_break_the_rules_are_named() {
        let fresh = || (Inbound::new(64), Log::default());
        let (mut inbound, mut log) = fresh();
        assert!(matches!(inbound.feed(&[0; 32], &mut log), Err(Violation::Header(_))));
        let (mut inbound, mut log) = fresh();
        assert!(matches!(
            inbound.feed(&eager(65, 0), &mut log),
            Err(Violation::TooLong { .. })
        ));
        let (mut inbound, mut log) = fresh();
        let lease = Lease::new(WriteMemory::EMPTY);
        inbound.expect(7, lease.lent(), 4);
        assert!(matches!(
            inbound.feed(&data(7, u64::MAX, &[0; 4]), &mut log),
            Err(Violation::Outside { .. })
        ));
        let (mut inbound, mut log) = fresh();
        let mut farewell = [0; HEADER_BYTES];
        farewell[0] = FAREWELL;
        inbound.feed(&farewell, &mut log).unwrap();
        assert!(inbound.farewell);
        assert_eq!(inbound.feed(&[1], &mut log), Err(Violation::AfterFarewell));
    }
}
