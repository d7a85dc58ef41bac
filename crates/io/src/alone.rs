// SPDX-License-Identifier: Apache-2.0
//! Independent access: with the disk here, or through a process that reaches the file.

use std::collections::VecDeque;
use std::sync::Arc;

use isthmus_core::error::Result;
use isthmus_wire::file::{What, encode_runs};

use crate::access;
use crate::file::File;
use crate::memory::{Source, Target};
use crate::service::Asked;
use crate::task::Port;
use crate::view::View;

/// Bytes of the stream in one question. Even as runs of one byte each they fit a payload.
const PIECE: u64 = 2 << 20;
/// Questions under way: while one is answered others travel.
const UNDER_WAY: usize = 4;

impl File {
    /// Writes at a byte of the stream; gives the bytes of the stream.
    pub(crate) async fn write_alone(
        self: &Arc<Self>,
        port: &Port,
        view: Arc<View>,
        at: u64,
        mut source: Source,
    ) -> Result<u64> {
        let length = source.length();
        if self.disk.is_some() {
            let file = self.clone();
            let work = move || write_here(&file, &view, at, &mut source);
            return port.disk(work).await.map(|()| length);
        }
        let (mut done, mut written, mut asked) = (0, 0, VecDeque::new());
        while done < length || !asked.is_empty() {
            if done < length && asked.len() < UNDER_WAY {
                let take = PIECE.min(length - done);
                let (runs, mut payload) = payload(&view, at + done, take);
                let start = payload.len();
                payload.resize(start + take as usize, 0);
                source.read(done, &mut payload[start..]);
                asked.push_back(self.ask(port, self.server(), What::Write, runs, &payload, 0));
                done += take;
            } else if let Some(first) = asked.pop_front() {
                written += self.answer(first, written).await?.bytes;
            }
        }
        Ok(written)
    }

    /// Reads from a byte of the stream on; gives the bytes in the representation of this process.
    pub(crate) async fn read_alone(
        self: &Arc<Self>,
        port: &Port,
        view: Arc<View>,
        at: u64,
        mut target: Target,
    ) -> Result<u64> {
        if self.disk.is_some() {
            let file = self.clone();
            return port.disk(move || read_here(&file, &view, at, &mut target)).await;
        }
        let length = target.length();
        let (mut done, mut got) = (0, 0);
        let mut asked: VecDeque<(u64, Asked)> = VecDeque::new();
        while done < length || !asked.is_empty() {
            if done < length && asked.len() < UNDER_WAY {
                let take = PIECE.min(length - done);
                let (runs, payload) = payload(&view, at + done, take);
                let question = self.ask(port, self.server(), What::Read, runs, &payload, take as usize);
                asked.push_back((done, question));
                done += take;
            } else if let Some((from, first)) = asked.pop_front() {
                let data = self.answer(first, got).await?.data;
                target.write(from, &data);
                got += data.len() as u64;
            }
        }
        target.finish(got)
    }
}

fn payload(view: &View, at: u64, length: u64) -> (u64, Vec<u8>) {
    let mut runs = Vec::new();
    view.runs(at, length, &mut |place, length| runs.push((place, length)));
    (runs.len() as u64, encode_runs(&runs))
}

/// Independent access to what this process reaches.
pub(crate) fn write_here(file: &File, view: &View, at: u64, source: &mut Source) -> Result<()> {
    let disk = file.disk()?;
    let _atom = file.atom(true)?;
    match access::write(&*disk, view, at, source).error {
        None => Ok(()),
        Some(error) => Err(file.failed("write", &error)),
    }
}

/// The same for reading; gives the bytes in the representation of this process.
pub(crate) fn read_here(file: &File, view: &View, at: u64, target: &mut Target) -> Result<u64> {
    let disk = file.disk()?;
    let _atom = file.atom(false)?;
    let sieve = file.hints().sieve;
    let moved = access::read(&*disk, view, at, target, sieve);
    drop(_atom);
    match moved.error {
        None => target.finish(moved.bytes),
        Some(error) => Err(file.failed("read", &error)),
    }
}
