// SPDX-License-Identifier: Apache-2.0
//! Independent access: with the disk here, or through a process that reaches the file.

use std::collections::VecDeque;
use std::sync::Arc;

use isthmus_core::error::Result;
use isthmus_wire::file::{What, encode_runs};

use crate::asking::{Ask, Asked};
use crate::file::File;
use crate::memory::{Source, Target};

use crate::task::Port;
use crate::view::View;

/// Bytes of the stream in one question. Even as runs of one byte each they fit a payload.
const PIECE: u64 = 2 << 20;
/// Questions under way: while one is answered others travel.
const UNDER_WAY: usize = 4;

/// An independent access.
pub(crate) struct Alone {
    pub(crate) file: Arc<File>,
    pub(crate) view: Arc<View>,
    /// Byte of the view's stream.
    pub(crate) at: u64,
}

impl Alone {
    /// Writes; gives the bytes of the stream.
    pub(crate) async fn write(self, port: &Port, mut source: Source) -> Result<u64> {
        let length = source.length();
        let (here, processes) = (self.file.here.clone(), &self.file.processes);
        if here.is_reached() {
            let work = move || here.write_view(&self.view, self.at, &mut source);
            return port.disk(work).await.map(|()| length);
        }
        let (mut done, mut written, mut asked) = (0, 0, VecDeque::new());
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
                asked.push_back(question.send(port, processes, processes.server()));
                done += take;
            } else if let Some(first) = asked.pop_front() {
                written += first.answer(&here, written).await?.bytes;
            }
        }
        Ok(written)
    }

    /// Reads; gives the bytes in the representation of this process.
    pub(crate) async fn read(self, port: &Port, mut target: Target) -> Result<u64> {
        let (here, processes) = (self.file.here.clone(), &self.file.processes);
        if here.is_reached() {
            let sieve = self.file.sieve();
            let work = move || here.read_view(&self.view, self.at, &mut target, sieve);
            return port.disk(work).await;
        }
        let length = target.length();
        let (mut done, mut got) = (0, 0);
        let mut asked: VecDeque<(u64, Asked)> = VecDeque::new();
        while done < length || !asked.is_empty() {
            if done < length && asked.len() < UNDER_WAY {
                let take = PIECE.min(length - done);
                let (number, payload) = self.runs(done, take);
                let question = Ask {
                    payload: &payload,
                    room: take as usize,
                    ..Ask::of(What::Read, number)
                };
                asked.push_back((done, question.send(port, processes, processes.server())));
                done += take;
            } else if let Some((from, first)) = asked.pop_front() {
                let data = first.answer(&here, got).await?.data;
                target.write(from, &data);
                got += data.len() as u64;
            }
        }
        target.finish(got)
    }

    /// How many runs of the file a part of the access has, and which.
    fn runs(&self, from: u64, length: u64) -> (u64, Vec<u8>) {
        let mut runs = Vec::new();
        let give = &mut |place, length| runs.push((place, length));
        self.view.runs(self.at + from, length, give);
        (runs.len() as u64, encode_runs(&runs))
    }
}
