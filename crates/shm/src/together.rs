// SPDX-License-Identifier: Apache-2.0
//! Which processes can be copied from, and the two ends of a message that both copy ([`assist`]): the receiver, which
//! asks, and the sender, which is asked by a frame of the kind [`Assist`](Kind::Assist).

use isthmus_datatype::raw::{Exposed, WriteMemory};
use isthmus_transport::{Peer, SendError};
use isthmus_wire::frame::{Header, Kind};
use rustix::io::Errno;

use crate::assist::{self, HelpWanted, Missing, Opened};
use crate::pull::{self, Handle};
use crate::segment::{Block, STATE_LEFT, STATE_PRESENT};
use crate::sync::{Ordering, fence};
use crate::transport::ShmTransport;

/// Looks in vain for a piece that another process writes before the core is offered to others: 0.25 ms, or 1 ms where
/// the pause between two looks is one of the long ones. A process that runs has written the longest piece, 512 KiB, in
/// 0.1 ms; whoever is still waited for needs a core. So it may be any time between that of a piece and that of a turn
/// on a core, some milliseconds (`docs/measured/waiting.md`).
const SPINS: u64 = 20_000;
/// Yields from one look whether it still lives to the next: 0.2 ms at least, for a system call of a microsecond.
const LIVES: u64 = 1000;

impl HelpWanted {
    pub(crate) fn read(slot: usize, header: &Header) -> Self {
        Self {
            slot,
            copy: header.tag as u32,
            source: header.token,
            target: header.auxiliary(),
            length: header.length,
            pieces: 0,
        }
    }
}

/// Where a process shows others whether they can copy from it, and what stands there.
#[derive(Clone, Copy)]
pub(crate) struct Probe {
    pid: u32,
    address: u64,
    bytes: [u8; 16],
}

impl Probe {
    pub(crate) fn of(block: &Block) -> Self {
        let mut bytes = [0; 16];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(&block.probe) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        Self {
            pid: block.pid.load(Ordering::Relaxed),
            address: block.probe_address.load(Ordering::Relaxed),
            bytes,
        }
    }

    /// Whether it stands there.
    fn look(&self) -> Result<bool, Errno> {
        let mut found = [0; 16];
        pull::copy(self.pid, self.address, &mut found)?;
        Ok(found == self.bytes)
    }
}

impl ShmTransport {
    /// The process id of `slot` if its memory can be copied; tries it the first time.
    pub(crate) fn source(&mut self, slot: usize) -> Option<u32> {
        if let Some(pid) = self.links[slot].pull_from {
            return Some(pid);
        }
        let block = self.segment.block(slot);
        let state = block.state.load(Ordering::Acquire);
        if (state != STATE_PRESENT && state != STATE_LEFT) || block.bit_refused(self.slot) {
            return None;
        }
        let probe = Probe::of(block);
        if probe.look() != Ok(true) {
            self.refuse(slot);
            return None;
        }
        let pid = probe.pid;
        self.links[slot].pull_from = Some(pid);
        Some(pid)
    }

    /// Tells `slot` that we cannot copy from it.
    #[cold]
    pub(crate) fn refuse(&mut self, slot: usize) {
        self.links[slot].pull_from = None;
        self.segment.block(slot).refuse(self.slot);
    }

    /// What came of a copy of so many bytes from or to `slot`.
    pub(crate) fn outcome(&mut self, slot: usize, copied: Result<(), Errno>, length: u64) -> Result<bool, SendError> {
        match copied {
            Ok(()) => {
                self.copied.straight += length;
                Ok(true)
            }
            Err(Errno::SRCH) => Err(SendError::Lost(format!(
                "{} on this node (process {}) has ended",
                self.name_of(self.links[slot].peer),
                self.segment.block(slot).pid.load(Ordering::Relaxed)
            ))),
            // Its memory cannot be read or written that way (a device, protection keys): the data go another way.
            Err(Errno::FAULT) => Ok(false),
            // What forbids writes forbids reads too: neither is tried again.
            Err(_) => {
                self.refuse(slot);
                Ok(false)
            }
        }
    }

    /// Copies a message that `peer` has, together with it if it can be asked.
    pub(crate) fn copy_from(
        &mut self,
        peer: Peer,
        handle: &[u8],
        memory: WriteMemory,
        length: u64,
    ) -> Result<bool, SendError> {
        let slot = self.slot_of(peer)?;
        let source = Handle::decode(handle).and_then(|h| h.part(0, length));
        if let Some(source) = source.filter(|_| length >= assist::SHORTEST) {
            if let Some(pid) = self.may_ask(slot) {
                // Before it is asked: nobody here comes to what it writes.
                let exposed = memory.exposed(0, length as usize);
                if let Some(opened) = self.ask(slot, source, &exposed)? {
                    return self.copy_together(slot, pid, source, exposed, opened);
                }
            }
        }
        self.copy_part(peer, handle, 0, memory, length)
    }

    /// Copies a part of a message that `peer` has.
    pub(crate) fn copy_part(
        &mut self,
        peer: Peer,
        handle: &[u8],
        offset: u64,
        mut memory: WriteMemory,
        length: u64,
    ) -> Result<bool, SendError> {
        let slot = self.slot_of(peer)?;
        let part = Handle::decode(handle).and_then(|h| h.part(offset, length));
        let (Some(address), Ok(length)) = (part, usize::try_from(length)) else {
            return Err(SendError::Lost(format!(
                "rank {peer} on this node has sent a bad description of a message's memory"
            )));
        };
        let Some(pid) = self.source(slot) else {
            return Ok(false);
        };
        let copied = memory.with_mut(0, length, |into| pull::copy(pid, address, into));
        self.outcome(slot, copied, length as u64)
    }

    /// After a copy: whether the sender has left the memory alone until now.
    pub(crate) fn is_good(&self, peer: Peer, revoked: Option<u64>) -> Result<bool, SendError> {
        fence(Ordering::SeqCst);
        let now = self.segment.block(self.slot_of(peer)?).revoked.load(Ordering::SeqCst);
        Ok(revoked == Some(now))
    }

    /// The process id of `slot` if it is worth asking to copy a part of its message: it has a core, is not asleep, and
    /// its memory can be copied.
    fn may_ask(&mut self, slot: usize) -> Option<u32> {
        let may = self.spread.is_sensible()
            && !self.links[slot].refuses
            && self.links[slot].writer.has_room(0)
            && !self.segment.block(slot).bell.wants_ring(self.slot);
        self.source(slot).filter(|_| may)
    }

    /// Asks `slot` to copy a part of its message, which lies at address `source` there. `None`: it cannot be asked now.
    fn ask(&mut self, slot: usize, source: u64, memory: &Exposed<WriteMemory>) -> Result<Option<Opened>, SendError> {
        let length = memory.length() as u64;
        let opened = self.segment.block(self.slot).desk.open(length);
        let mut header = Header::control(Kind::Assist, source, memory.first().addr() as u64, length);
        header.tag = opened.copy as i32;
        match self.push(self.links[slot].peer, &header, 0, |_| ()) {
            Ok(()) => Ok(Some(opened)),
            Err(SendError::WouldBlock) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Copies a message from address `source` of `slot`, which has been asked to copy a part. All of it lies at
    /// addresses that there are.
    fn copy_together(
        &mut self,
        slot: usize,
        pid: u32,
        source: u64,
        mut memory: Exposed<WriteMemory>,
        opened: Opened,
    ) -> Result<bool, SendError> {
        let fetch = |at: u64, bytes: u64| pull::copy_beside(pid, source + at, &mut memory, at, bytes);
        let length = opened.length;
        let lives = awaiting(Probe::of(self.segment.block(slot)), true);
        let desk = &self.segment.block(self.slot).desk;
        let copied = match desk.receive(opened, fetch, lives) {
            Ok(together) => {
                self.links[slot].refuses |= !together;
                Ok(())
            }
            Err(Missing::Failed(errno)) => Err(errno),
            Err(Missing::Gone) => Err(Errno::SRCH),
            Err(Missing::Corrupt) => {
                // The sender may still have a piece.
                std::mem::forget(memory);
                return Err(SendError::Lost(format!(
                    "what this process and {} on this node know of a message that both copy is corrupt: a process of the job has overwritten it",
                    self.name_of(self.links[slot].peer)
                )));
            }
        };
        self.outcome(slot, copied, length)
    }

    /// Copies a piece of each message of which we have been asked to copy a part.
    #[cold]
    pub(crate) fn assist(&mut self) {
        let mut index = 0;
        while index < self.asked.len() {
            if self.assist_with(index) {
                index += 1;
            } else {
                self.asked.swap_remove(index);
            }
        }
    }

    /// True if there may be more of it to do.
    fn assist_with(&mut self, index: usize) -> bool {
        let slot = self.asked[index].slot;
        // Nothing is taken, and so nothing has to be given back, before it is certain who is written to.
        let Some(pid) = self.source(slot) else { return false };
        let desk = &self.segment.block(slot).desk;
        desk.give(&mut self.asked[index], |source, target, bytes| {
            pull::write(pid, source, target, bytes).is_ok()
        })
    }
}

/// To be called again and again while a process is about to write: whether it lives. Of one that has ended, nothing can
/// be read any more, and no call of it writes. Another process may have its number by now, which shows something else,
/// or nothing that can be read. `readable`: it could be read before.
pub(crate) fn awaiting(probe: Probe, readable: bool) -> impl FnMut() -> bool + use<> {
    let mut rounds = 0_u64;
    move || {
        rounds += 1;
        if rounds < SPINS {
            std::hint::spin_loop();
            return true;
        }
        std::thread::yield_now();
        rounds % LIVES != 0
            || match probe.look() {
                Ok(is_same) => is_same,
                Err(Errno::SRCH | Errno::FAULT) => false,
                Err(_) => !readable,
            }
    }
}

#[cfg(test)]
mod tests {
    use isthmus_datatype::raw::OwnMemory;
    use isthmus_transport::{Placement, Sink, Transport};

    use super::*;

    const LENGTH: usize = 1_000_001;

    /// Nobody sends anything that the transport does not take itself.
    struct Nothing;

    impl Sink for Nothing {
        fn frame(&mut self, peer: Peer, header: &Header, _: &[u8]) {
            panic!("{:?} from {peer}", header.kind);
        }
        fn place(&mut self, _: Peer, _: &Header) -> Placement {
            Placement::Collect
        }
        fn placed(&mut self, _: Peer, _: &Header) {}
        fn received(&mut self, _: Peer, _: u64) {}
        fn sent(&mut self, _: Peer, _: u64) {}
        fn writable(&mut self, _: Peer) {}
        fn lost(&mut self, peer: Peer, reason: &str) {
            panic!("{peer} lost: {reason}");
        }
    }

    /// The two ends of a message, its memory and that of its receiver.
    struct Message {
        sender: ShmTransport,
        receiver: ShmTransport,
        source: OwnMemory,
        target: OwnMemory,
        _at: tempfile::TempDir,
    }

    impl Message {
        fn new() -> Self {
            let at = tempfile::tempdir().expect("a directory");
            let end = |slot| {
                let path = at.path().join("segment");
                ShmTransport::join(&path, at.path(), "both", slot, 2, Peer::first(2).collect()).expect("joined")
            };
            let (sender, receiver) = (end(0), end(1));
            let (source, target) = (OwnMemory::new(0, LENGTH as isize), OwnMemory::new(0, LENGTH as isize));
            let pattern: Vec<u8> = (0..LENGTH).map(|i| (i % 251) as u8).collect();
            source.memory().write(0, &pattern);
            Self {
                sender,
                receiver,
                source,
                target,
                _at: at,
            }
        }

        fn address(&self) -> u64 {
            self.source.reading().address() as u64
        }

        /// Where the message goes. The tests look at it before its receiver has done with it.
        fn exposed(&self) -> Exposed<WriteMemory> {
            self.target.memory().exposed(0, LENGTH)
        }

        /// None where the system does not let processes copy.
        fn copy(&mut self, opened: Opened) -> Option<Result<bool, SendError>> {
            let pid = self.receiver.source(0)?;
            let (address, memory) = (self.address(), self.exposed());
            Some(self.receiver.copy_together(0, pid, address, memory, opened))
        }

        fn ask(&mut self) -> Opened {
            let (address, memory) = (self.address(), self.exposed());
            let asked = self.receiver.ask(0, address, &memory);
            asked.expect("room in the ring").expect("room in the ring")
        }

        /// The receiver waits for a piece that the process which shows this does not write.
        fn waits_for(&self, probe: Probe) -> Result<bool, Missing<Errno>> {
            let desk = &self.receiver.segment.block(1).desk;
            let opened = desk.open(LENGTH as u64);
            assert!(desk.back(opened.copy).is_some());
            desk.receive(opened, |_, _| Ok::<(), Errno>(()), awaiting(probe, true))
        }

        fn is_whole(&self) -> bool {
            self.target.content() == self.source.content()
        }

        fn wrong(&self) -> usize {
            let (to, from) = (self.target.content(), self.source.content());
            to.iter().zip(&from).filter(|(a, b)| a != b).count()
        }
    }

    fn skipped() {
        println!("skipped: the system does not let processes copy from each other");
    }

    #[test]
    fn a_sender_that_polls_copies_all_that_its_receiver_has_not_taken() {
        let mut message = Message::new();
        if message.receiver.source(0).is_none() {
            return skipped();
        }
        let opened = message.ask();
        let mut polls = 0;
        while message.sender.poll(&mut Nothing) {
            polls += 1;
        }
        assert!(polls >= 4, "a piece for each poll");
        assert!(message.is_whole(), "written by the sender alone");
        assert_eq!(message.copy(opened), Some(Ok(true)));
    }

    #[test]
    fn a_receiver_copies_alone_what_its_sender_does_not() {
        let mut message = Message::new();
        if message.receiver.source(0).is_none() {
            return skipped();
        }
        let opened = message.ask();
        assert_eq!(message.copy(opened), Some(Ok(true)));
        assert!(message.is_whole());
        // The sender comes too late, and leaves the memory alone, which may be used for something else now.
        message.target.memory().with_mut(0, LENGTH, |bytes| bytes.fill(0));
        while message.sender.poll(&mut Nothing) {}
        assert!(message.target.content().iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_piece_that_the_sender_cannot_write_is_copied_by_the_receiver() {
        let mut message = Message::new();
        if message.receiver.source(0).is_none() {
            return skipped();
        }
        let opened = message.ask();
        // The first piece is written, and nothing of the next one can be.
        assert!(message.sender.poll(&mut Nothing));
        message.sender.asked[0].target = 8;
        assert!(!message.sender.assist_with(0));
        assert!(message.wrong() > LENGTH / 2);
        assert_eq!(message.copy(opened), Some(Ok(true)));
        assert!(message.is_whole() && message.receiver.links[0].refuses);
    }

    #[test]
    fn memory_that_is_too_short_is_not_written_by_the_sender() {
        let mut message = Message::new();
        if message.receiver.source(0).is_none() {
            return skipped();
        }
        let memory = message.source.reading();
        let handle = message.sender.handle(Peer::new(1), memory, LENGTH as u64);
        let short = message.target.memory().part(0, LENGTH - 1);
        let pulled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            message
                .receiver
                .pull_together(Peer::new(0), &handle, short, LENGTH as u64)
        }));
        assert!(pulled.is_err(), "a bug of ours");
        while message.sender.poll(&mut Nothing) {}
        assert!(message.target.content().iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_sender_that_has_ended_is_not_waited_for() {
        let mut message = Message::new();
        if message.receiver.source(0).is_none() {
            return skipped();
        }
        let mut child = std::process::Command::new("true").spawn().expect("started");
        child.wait().expect("ended");
        let probe = Probe {
            pid: child.id(),
            ..Probe::of(message.receiver.segment.block(0))
        };
        assert_eq!(message.waits_for(probe), Err(Missing::Gone));
    }

    #[test]
    fn another_process_with_the_number_of_one_that_has_ended_is_not_waited_for() {
        let mut message = Message::new();
        if message.receiver.source(0).is_none() {
            return skipped();
        }
        let right = Probe::of(message.receiver.segment.block(0));
        let shows_else = Probe {
            bytes: [!right.bytes[0]; 16],
            ..right
        };
        let shows_nothing = Probe { address: 8, ..right };
        for probe in [shows_else, shows_nothing] {
            assert_eq!(message.waits_for(probe), Err(Missing::Gone));
        }
    }

    #[test]
    fn a_desk_that_was_overwritten_ends_the_copy() {
        let mut message = Message::new();
        if message.receiver.source(0).is_none() {
            return skipped();
        }
        let opened = message.ask();
        // Of a message that is not this one; its sender would be waited for in vain.
        message.receiver.segment.block(1).desk.open(64 << 20);
        let Some(Err(SendError::Lost(why))) = message.copy(opened) else {
            panic!("the message came");
        };
        assert!(why.contains("rank 0 on this node") && why.contains("corrupt"), "{why}");
    }

    #[test]
    fn of_requests_of_one_process_the_last_counts() {
        let mut message = Message::new();
        if message.receiver.source(0).is_none() {
            return skipped();
        }
        let opened = message.ask();
        let (address, memory) = (message.address(), message.target.memory());
        let mut header = Header::control(Kind::Assist, address, memory.address() as u64, LENGTH as u64);
        header.tag = opened.copy as i32;
        for _ in 0..20 {
            assert_eq!(message.receiver.push(Peer::new(0), &header, 0, |_| ()), Ok(()));
        }
        assert!(message.sender.poll(&mut Nothing));
        assert_eq!(message.sender.asked.len(), 1);
        assert_eq!(message.receiver.segment.block(1).desk.done().pieces, 1);
        while message.sender.poll(&mut Nothing) {}
        assert!(message.is_whole() && message.sender.asked.is_empty());
    }
}
