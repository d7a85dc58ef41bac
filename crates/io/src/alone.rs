// SPDX-License-Identifier: Apache-2.0
//! Independent access: with the disk here, or through a process that reaches the file.

use std::collections::VecDeque;
use std::sync::Arc;

use isthmus_core::error::Result;
use isthmus_wire::file::{What, encode_runs};

use crate::asking::{Ask, UNLOCKS, Unanswered};
use crate::file::File;
use crate::memory::{Buffer, Source, Target};
use crate::task::{Done, Post};
use crate::view::View;

/// Bytes of the stream in one question. Even as runs of one byte each they fit a payload.
const PIECE: u64 = 2 << 20;
/// Questions under way: while one is answered others travel.
pub(crate) const UNDER_WAY: usize = 4;

/// An independent access.
pub(crate) struct Alone {
    pub(crate) file: Arc<File>,
    pub(crate) view: Arc<View>,
    /// Byte of the view's stream.
    pub(crate) at: u64,
}

impl Alone {
    /// Does it; gives the bytes in memory.
    pub(crate) async fn act(self, post: &Post, buffer: Buffer) -> Done {
        match buffer {
            Buffer::Write(source, bytes) => self.write(post, source).await.map(|_| bytes),
            Buffer::Read(target) => self.read(post, target).await,
        }
    }

    /// Writes; gives the bytes of the stream.
    async fn write(self, post: &Post, mut source: Source) -> Result<u64> {
        let (length, here) = (source.length(), self.file.here.clone());
        let atom = here.atom(post, true).await?;
        if here.is_reached() {
            let work = move || {
                let _atom = atom;
                here.write_view(&self.view, self.at, &mut source)
            };
            return post.disk(work).await.map(|()| length);
        }
        let held = self.hold(post, length, true).await?;
        let (mut asked, mut written) = (VecDeque::new(), 0);
        let done = self.write_far(post, &mut source, &mut asked, &mut written).await;
        self.end(post, held, asked).await;
        drop(atom);
        done.map(|()| written)
    }

    async fn write_far(
        &self,
        post: &Post,
        source: &mut Source,
        asked: &mut VecDeque<Unanswered>,
        written: &mut u64,
    ) -> Result<()> {
        let (here, processes) = (&self.file.here, &self.file.processes);
        let (length, mut done) = (source.length(), 0);
        while done < length || !asked.is_empty() {
            if done < length && asked.len() < UNDER_WAY {
                let take = PIECE.min(length - done);
                let (number, mut payload) = self.runs(done, take);
                let start = payload.len();
                payload.resize(start + take as usize, 0);
                source.read(done, &mut payload[start..]);
                let question = Ask {
                    payload: &payload,
                    ..Ask::of(What::Write, number)
                };
                asked.push_back(question.send(post, processes, processes.server()));
                done += take;
            } else if let Some(first) = asked.pop_front() {
                *written += first.answer(here, *written).await?.bytes;
            }
        }
        Ok(())
    }

    /// Reads; gives the bytes in the representation of this process.
    async fn read(self, post: &Post, mut target: Target) -> Result<u64> {
        let here = self.file.here.clone();
        let atom = here.atom(post, false).await?;
        // Functions of the program convert without the lock.
        if here.is_reached() {
            let sieve = self.file.sieve();
            let work = move || {
                let _atom = atom;
                let got = here.read_view(&self.view, self.at, &mut target, sieve);
                got.map(|got| (got, target))
            };
            let (got, mut target) = post.disk(work).await?;
            return target.finish(got);
        }
        let held = self.hold(post, target.length(), false).await?;
        let mut asked = VecDeque::new();
        let done = self.read_far(post, &mut target, &mut asked).await;
        self.end(post, held, asked).await;
        drop(atom);
        target.finish(done?)
    }

    async fn read_far(&self, post: &Post, target: &mut Target, asked: &mut VecDeque<Unanswered>) -> Result<u64> {
        let (here, processes) = (&self.file.here, &self.file.processes);
        let (length, mut done, mut from, mut got) = (target.length(), 0, 0, 0);
        while done < length || !asked.is_empty() {
            if done < length && asked.len() < UNDER_WAY {
                let take = PIECE.min(length - done);
                let (number, payload) = self.runs(done, take);
                let question = Ask {
                    payload: &payload,
                    room: take as usize,
                    ..Ask::of(What::Read, number)
                };
                asked.push_back(question.send(post, processes, processes.server()));
                done += take;
            } else if let Some(first) = asked.pop_front() {
                let data = first.answer(here, got).await?.data;
                target.write(from, &data);
                got += data.len() as u64;
                from += PIECE;
            }
        }
        Ok(got)
    }

    /// In atomic mode, for an access in several pieces: the right to access the file, from who does it. Of a single
    /// piece that one takes it itself.
    async fn hold(&self, post: &Post, length: u64, writes: bool) -> Result<bool> {
        let (here, processes) = (&self.file.here, &self.file.processes);
        if !here.is_atomic() || length <= PIECE {
            return Ok(false);
        }
        let asked = Ask::of(What::Lock, writes.into()).send(post, processes, processes.server());
        asked.answer(here, 0).await.map(|_| true)
    }

    /// Ends an access: what was asked is answered, and then the right is given back, if it is `held`.
    async fn end(&self, post: &Post, held: bool, asked: VecDeque<Unanswered>) {
        for one in asked {
            // The first error was told.
            let _ = one.answer(&self.file.here, 0).await;
        }
        if held {
            let server = self.file.processes.server();
            // Who is lost has lost the lock too.
            let _ = post.send(server, UNLOCKS, Vec::new()).sent().await;
        }
    }

    /// How many runs of the file a part of the access has, and which.
    fn runs(&self, from: u64, length: u64) -> (u64, Vec<u8>) {
        let mut runs = Vec::new();
        let give = &mut |place, length| runs.push((place, length));
        self.view.runs(self.at + from, length, give);
        (runs.len() as u64, encode_runs(&runs))
    }
}
