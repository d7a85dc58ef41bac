// SPDX-License-Identifier: Apache-2.0
//! Collective access in two phases (Thakur, Gropp, Lusk 1999): some processes, the aggregators, each care for a part of the file,
//! its file domain; data go to them, or come from them, in messages, and they use the disk in long pieces.
//!
//! ```text
//!  file      |---- domain of aggregator 0 ----|---- domain of aggregator 1 ----|    boundaries at multiples of the stripe
//!             window 0 | window 1 | ...         window 0 | window 1 | ...           one window of each domain in a round
//! ```
//! Who exchanges messages in a round follows from where everybody's access begins and ends, which all know.

use std::sync::Arc;

use isthmus_core::error::Result;

use crate::disk::{read_all, write_all};
use crate::domains::{Access, Domains};
use crate::file::File;
use crate::group::{Members, word};
use crate::memory::{Source, Target};
use crate::task::{Message, Port};
use crate::view::View;
use isthmus_wire::file::{decode_runs, encode_runs};

/// Phases of an operation, by which its messages are told apart.
const ACCESSES: i32 = 0;
const SIZES: i32 = 1;
const BODIES: i32 = 2;
const REPLIES: i32 = 3;
const OUTCOME: i32 = 4;

/// A message that an aggregator expects: from whom, with how many runs.
type Coming = (u32, usize, Message);
/// By sender and round: runs and bytes of a message.
type Lengths = Vec<(u32, Vec<(u64, u64)>)>;

/// A process's part in a collective operation.
pub(crate) struct Part {
    pub(crate) file: Arc<File>,
    pub(crate) members: Members,
    pub(crate) view: Arc<View>,
    /// Byte of the view's stream.
    pub(crate) at: u64,
}

impl Part {
    /// The range of the access's stream that lies in a window of the file, and its runs.
    fn runs_in(&self, (low, high): (u64, u64), length: u64) -> (u64, Vec<(u64, u64)>) {
        let clamp = |place| self.view.before(place).clamp(self.at, self.at + length) - self.at;
        let (from, to) = (clamp(low), clamp(high));
        let mut runs = Vec::new();
        self.view.runs(self.at + from, to - from, &mut |place, length| {
            runs.push((place, length))
        });
        (from, runs)
    }

    fn domains(&self, all: &[Vec<u8>]) -> Option<Domains> {
        Domains::new(&self.file, all.iter().map(|bytes| Access::decode(bytes)).collect())
    }

    /// Writes; gives the bytes of the stream.
    pub(crate) async fn write(self, port: Port, mut source: Source) -> Result<u64> {
        let length = source.length();
        let mine = Access::of(&self.file, &self.view, self.at, length, true);
        let all = self.members.gather(&port, ACCESSES, &mine.encode()).await?;
        let Some(domains) = self.domains(&all) else {
            return self.file.write_alone(&port, self.view.clone(), self.at, source).await;
        };
        let (mut sent, lengths) = self.announce(&port, &domains, length, true).await?;
        let mut next = self.expect(&port, &domains, &lengths, 0);
        let (mut outcome, mut before) = (Ok(()), Vec::new());
        for round in 0..domains.rounds() {
            for (index, &aggregator) in domains.aggregators.iter().enumerate() {
                let window = domains.window(index, round);
                if domains.takes_part(self.members.me, window) {
                    let (from, runs) = self.runs_in(window, length);
                    let mut body = encode_runs(&runs);
                    let (start, bytes) = (body.len(), runs.iter().map(|run| run.1).sum::<u64>());
                    body.resize(start + bytes as usize, 0);
                    source.read(from, &mut body[start..]);
                    sent.push(self.send(&port, aggregator, BODIES, &body));
                }
            }
            let now = std::mem::replace(&mut next, self.expect(&port, &domains, &lengths, round + 1));
            if !now.is_empty() {
                let written = self.collect_and_write(&port, &domains, now).await?;
                outcome = outcome.and(written);
            }
            // The messages of two rounds are under way, so that a link does not wait for an aggregator.
            for message in std::mem::replace(&mut before, std::mem::take(&mut sent)) {
                message.sent().await?;
            }
        }
        for message in before {
            message.sent().await?;
        }
        self.members.agree(&port, OUTCOME, outcome).await?;
        Ok(length)
    }

    /// A message of this operation, counted.
    fn send(&self, port: &Port, to: u32, phase: i32, bytes: &[u8]) -> Message {
        self.file.count(to, bytes.len());
        port.send(to, self.members.tag + phase, bytes)
    }

    /// Tells every aggregator how long the messages of all rounds will be, and hears it as one: by sender and round, runs and bytes. So
    /// each can expect a round's messages while it is busy with the round before.
    async fn announce(
        &self,
        port: &Port,
        domains: &Domains,
        length: u64,
        data: bool,
    ) -> Result<(Vec<Message>, Lengths)> {
        let me = self.members.me;
        let mut sent = Vec::new();
        for (index, &aggregator) in domains.aggregators.iter().enumerate() {
            if !domains.takes_part(me, domains.whole(index)) {
                continue;
            }
            let mut lengths = Vec::new();
            for round in 0..domains.rounds() {
                let (_, runs) = self.runs_in(domains.window(index, round), length);
                let bytes = if data { runs.iter().map(|run| run.1).sum() } else { 0 };
                lengths.push((runs.len() as u64, 16 * runs.len() as u64 + bytes));
            }
            sent.push(self.send(port, aggregator, SIZES, &encode_runs(&lengths)));
        }
        let Some(index) = domains.aggregators.iter().position(|aggregator| *aggregator == me) else {
            return Ok((sent, Vec::new()));
        };
        let room = 16 * domains.rounds() as usize;
        let coming: Vec<_> = (0..self.members.size)
            .filter(|rank| domains.takes_part(*rank, domains.whole(index)))
            .map(|rank| (rank, port.receive(Some(rank), self.members.tag + SIZES, room)))
            .collect();
        let mut all = Vec::new();
        for (rank, message) in coming {
            let bytes = message.received().await?.bytes;
            let lengths: Vec<_> = bytes
                .chunks_exact(16)
                .map(|pair| (word(pair), word(&pair[8..])))
                .collect();
            // Runs of one byte each, with their data, are the most that there can be.
            let most = domains.window.saturating_mul(17);
            if let Some((_, bytes)) = lengths.iter().find(|(_, bytes)| *bytes > most) {
                return Err(self.file.garbled(&format_args!("{bytes} bytes for one window")));
            }
            all.push((rank, lengths));
        }
        Ok((sent, all))
    }

    /// As an aggregator: a round's messages, which may come from now on.
    fn expect(&self, port: &Port, domains: &Domains, lengths: &Lengths, round: u64) -> Vec<Coming> {
        let me = domains.aggregators.iter().position(|a| *a == self.members.me);
        let Some(window) = me
            .filter(|_| round < domains.rounds())
            .map(|index| domains.window(index, round))
        else {
            return Vec::new();
        };
        let taking_part = lengths.iter().filter(|(rank, _)| domains.takes_part(*rank, window));
        let expected = taking_part.map(|(rank, lengths)| {
            let (runs, bytes) = lengths.get(round as usize).copied().unwrap_or_default();
            let message = port.receive(Some(*rank), self.members.tag + BODIES, bytes as usize);
            (*rank, runs as usize, message)
        });
        expected.collect()
    }

    /// The bodies that were expected, by rank.
    async fn collect(&self, coming: Vec<Coming>) -> Result<Vec<(u32, usize, Vec<u8>)>> {
        let mut all = Vec::new();
        for (rank, runs, message) in coming {
            all.push((rank, runs, message.received().await?.bytes));
        }
        Ok(all)
    }

    /// The second phase of a write: what is one piece becomes one call. Outer error: of communication; inner one: of the disk.
    async fn collect_and_write(&self, port: &Port, domains: &Domains, coming: Vec<Coming>) -> Result<Result<()>> {
        let bodies = self.collect(coming).await?;
        let most = domains.window;
        let file = self.file.clone();
        let work = move || {
            let mut pieces = Vec::new();
            for (_, runs, body) in &bodies {
                let (runs, _, mut data) = decode_runs(body, *runs, most).map_err(|error| file.garbled(&error))?;
                for (place, length) in runs {
                    let Some((piece, rest)) = data.split_at_checked(length as usize) else {
                        return Err(file.garbled(&"data are missing"));
                    };
                    pieces.push((place, piece));
                    data = rest;
                }
            }
            // Of data for the same place those of the highest rank stay: they are written last.
            pieces.sort_by_key(|(place, _)| *place);
            write_pieces(&file, &pieces)
        };
        Ok(port.disk(work).await)
    }

    /// Reads; gives the bytes of the stream.
    pub(crate) async fn read(self, port: Port, mut target: Target) -> Result<u64> {
        let length = target.length();
        let mine = Access::of(&self.file, &self.view, self.at, length, false);
        let all = self.members.gather(&port, ACCESSES, &mine.encode()).await?;
        let Some(domains) = self.domains(&all) else {
            return self.file.read_alone(&port, self.view.clone(), self.at, target).await;
        };
        let (mut sent, lengths) = self.announce(&port, &domains, length, false).await?;
        let (mut outcome, mut got, mut before) = (Ok(()), 0, Vec::new());
        let mut next = self.expect(&port, &domains, &lengths, 0);
        let mut coming = self.want(&port, &domains, length, 0, &mut sent);
        for round in 0..domains.rounds() {
            // What is wanted in the next round is known to aggregators before this one is over.
            let later = self.want(&port, &domains, length, round + 1, &mut sent);
            let now = std::mem::replace(&mut next, self.expect(&port, &domains, &lengths, round + 1));
            if !now.is_empty() {
                let (replies, read) = self.read_and_send(&port, &domains, now).await?;
                outcome = outcome.and(read);
                sent.extend(replies);
            }
            for (from, message) in std::mem::replace(&mut coming, later) {
                let data = message.received().await?.bytes;
                target.write(from, &data);
                got += data.len() as u64;
            }
            for message in std::mem::replace(&mut before, std::mem::take(&mut sent)) {
                message.sent().await?;
            }
        }
        for message in before {
            message.sent().await?;
        }
        self.members.agree(&port, OUTCOME, outcome).await?;
        target.finish(got)
    }

    /// Asks the aggregators for what this process reads in a round; gives where it belongs, and the messages in which it comes.
    fn want(
        &self,
        port: &Port,
        domains: &Domains,
        length: u64,
        round: u64,
        sent: &mut Vec<Message>,
    ) -> Vec<(u64, Message)> {
        let mut coming = Vec::new();
        for (index, &aggregator) in domains.aggregators.iter().enumerate() {
            let window = domains.window(index, round);
            if round < domains.rounds() && domains.takes_part(self.members.me, window) {
                let (from, runs) = self.runs_in(window, length);
                let bytes = runs.iter().map(|run| run.1).sum::<u64>();
                let reply = port.receive(Some(aggregator), self.members.tag + REPLIES, bytes as usize);
                coming.push((from, reply));
                sent.push(self.send(port, aggregator, BODIES, &encode_runs(&runs)));
            }
        }
        coming
    }

    /// The second phase of a read. Data that are not there because the file ends are left out, which makes a message shorter.
    async fn read_and_send(
        &self,
        port: &Port,
        domains: &Domains,
        coming: Vec<Coming>,
    ) -> Result<(Vec<Message>, Result<()>)> {
        let bodies = self.collect(coming).await?;
        let most = domains.window;
        let file = self.file.clone();
        let ranks: Vec<u32> = bodies.iter().map(|body| body.0).collect();
        let work = move || {
            let mut lists = Vec::new();
            for (_, runs, body) in &bodies {
                let (runs, ..) = decode_runs(body, *runs, most).map_err(|error| file.garbled(&error))?;
                lists.push(runs);
            }
            read_lists(&file, &lists)
        };
        let (replies, outcome) = match port.disk(work).await {
            Ok(replies) => (replies, Ok(())),
            Err(error) => (vec![Vec::new(); ranks.len()], Err(error)),
        };
        let send = |(rank, data): (&u32, Vec<u8>)| self.send(port, *rank, REPLIES, &data);
        Ok((ranks.iter().zip(replies).map(send).collect(), outcome))
    }
}

/// Writes pieces in order of their places.
fn write_pieces(file: &File, pieces: &[(u64, &[u8])]) -> Result<()> {
    let (disk, _atom) = (file.disk()?, file.atom(true)?);
    let mut buffer = Vec::new();
    let mut rest = pieces;
    while let Some((first, _)) = rest.first() {
        let mut end = *first;
        let joined = rest.iter().take_while(|(place, piece)| {
            let joins = *place <= end;
            end = end.max(place + piece.len() as u64);
            joins
        });
        let count = joined.count();
        let (group, others) = rest.split_at(count);
        let end = group.iter().map(|(place, piece)| place + piece.len() as u64).max();
        let length = (end.unwrap_or(*first) - first) as usize;
        let moved = if let [(place, piece)] = group {
            write_all(&*disk, piece, *place)
        } else {
            buffer.resize(length, 0);
            for (place, piece) in group {
                buffer[(place - first) as usize..][..piece.len()].copy_from_slice(piece);
            }
            write_all(&*disk, &buffer, *first)
        };
        if let Some(error) = moved.error {
            return Err(file.failed("write", &error));
        }
        rest = others;
    }
    Ok(())
}

/// Reads what all of the lists want in one go, and gives each its own.
fn read_lists(file: &File, lists: &[Vec<(u64, u64)>]) -> Result<Vec<Vec<u8>>> {
    let all = || lists.iter().flatten().filter(|run| run.1 > 0);
    let (Some(low), Some(high)) = (all().map(|run| run.0).min(), all().map(|run| run.0 + run.1).max()) else {
        return Ok(vec![Vec::new(); lists.len()]);
    };
    let (disk, _atom) = (file.disk()?, file.atom(false)?);
    let mut buffer = vec![0; (high - low) as usize];
    let moved = read_all(&*disk, &mut buffer, low);
    if let Some(error) = moved.error {
        return Err(file.failed("read", &error));
    }
    let own = |runs: &Vec<(u64, u64)>| {
        let mut data = Vec::new();
        for (place, length) in runs {
            let from = (place - low).min(moved.bytes);
            let to = (place + length - low).min(moved.bytes);
            data.extend_from_slice(&buffer[from as usize..to as usize]);
        }
        data
    };
    Ok(lists.iter().map(own).collect())
}
