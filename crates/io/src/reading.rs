// SPDX-License-Identifier: Apache-2.0
//! Collective reading: requests go to the aggregators, through who gathers them at other sites, and data come back the
//! same way.
//!
//! ```text
//!  step     0        1        2        3        ...
//!  ask      round 0  round 1  round 2  round 3           requests leave
//!  relay             round 0  round 1  round 2           gatherers ask for what their site wants
//!  finish                              round 0           disk, replies; later, the more rounds are under way
//! ```
//! So aggregators know what the next rounds want while the data of this one travel, and the link does not wait.

use std::collections::VecDeque;

use isthmus_core::error::Result;
use isthmus_wire::file::{Runs, decode_request, encode_body};

use crate::collective::{
    BODIES, Bodies, Coming, Contribution, OUTCOME, PARTS, REPLIES, Rooms, SHARES, Slice, UnderWay,
};
use crate::domains::{Domains, Hop};
use crate::extents::HOLE;
use crate::here::Here;
use crate::memory::Target;
use crate::pieces::{Found, union};
use crate::task::{Message, Post};

/// Where the data of a slice come from.
enum DataFrom {
    /// In a message.
    Message(Message),
    /// This process gathers them, or reads them itself.
    Here,
}

/// What a process has asked for in a round, of one aggregator.
struct Portion {
    index: usize,
    slice: Slice,
    /// What was asked for: in order and apart.
    runs: Runs,
    way: DataFrom,
}

/// What a gatherer has asked for.
struct Relay {
    index: usize,
    /// Who gets what.
    wanted: Vec<(u32, Runs)>,
    /// All of it.
    runs: Runs,
    reply: Message,
}

/// A round of a process.
struct Round {
    asked: Vec<Portion>,
    coming: Coming,
    relays: Vec<Relay>,
}

/// An operation under way.
struct Reading<'a> {
    part: &'a Contribution,
    post: &'a Post,
    domains: &'a Domains,
    sent: Vec<Message>,
}

impl Contribution {
    /// Gives the first byte of the stream that is not there. Outer error: of communication; inner one: of the disk, the
    /// same for all.
    pub(crate) async fn read_rounds(&self, post: &Post, domains: &Domains, target: &mut Target) -> Result<Result<u64>> {
        let length = target.length();
        let (sent, rooms) = self.announce(post, domains, length, false).await?;
        let mut reading = Reading {
            part: self,
            post,
            domains,
            sent,
        };
        let (mut outcome, mut end, mut under_way) = (Ok(()), length, UnderWay::new(domains));
        let ahead = domains.depth + 1;
        let mut rounds: VecDeque<Round> = VecDeque::new();
        for step in 0..domains.rounds() + ahead {
            let newest = rounds.len().checked_sub(1);
            if step < domains.rounds() {
                rounds.push_back(reading.ask(&rooms, step, length));
            }
            if let Some(round) = newest.filter(|_| step <= domains.rounds()) {
                reading.relay(&mut rounds[round]).await?;
            }
            if step >= ahead {
                let Some(round) = rounds.pop_front() else { break };
                end = end.min(reading.finish(round, target, &mut outcome).await?);
            }
            under_way.sent(std::mem::take(&mut reading.sent)).await?;
        }
        under_way.end().await?;
        let agreed = self.members.outcome(post, OUTCOME, outcome).await?;
        Ok(agreed.map(|()| end))
    }
}

impl Reading<'_> {
    fn send(&mut self, to: u32, phase: i32, bytes: Vec<u8>) {
        self.sent.push(self.part.send(self.post, to, phase, bytes));
    }

    fn receive(&self, from: u32, phase: i32, room: usize) -> Message {
        self.post.receive(Some(from), self.part.members.tag + phase, room)
    }

    /// Asks for what this process reads in a round, and expects what others ask of it.
    fn ask(&mut self, rooms: &Rooms, round: u64, length: u64) -> Round {
        let me = self.part.members.me;
        let mut asked = Vec::new();
        for index in 0..self.domains.aggregators.len() {
            let window = self.domains.window(index, round);
            if !self.domains.takes_part(me, window) {
                continue;
            }
            let slice = self.part.slice(window, length);
            let runs = union(std::slice::from_ref(&slice.runs));
            let bytes = runs.iter().map(|run| run.1 as usize).sum();
            let (next, request, reply) = match self.domains.towards(me, index) {
                Hop::Gatherer(next) => (next, PARTS, SHARES),
                Hop::Aggregator(next) => (next, BODIES, REPLIES),
            };
            let way = if next == me {
                DataFrom::Here
            } else {
                let coming = self.receive(next, reply, bytes);
                self.send(next, request, encode_body(&runs));
                DataFrom::Message(coming)
            };
            asked.push(Portion {
                index,
                slice,
                runs,
                way,
            });
        }
        Round {
            asked,
            coming: self.part.expect(self.post, self.domains, rooms, round),
            relays: Vec::new(),
        }
    }

    /// As who gathers: asks for what the processes of this site want together.
    async fn relay(&mut self, round: &mut Round) -> Result<()> {
        for (index, coming) in std::mem::take(&mut round.coming.gathered) {
            let mut wanted = self.requests(self.part.collect(coming).await?)?;
            let own = round.asked.iter().find(|asked| asked.index == index);
            wanted.extend(own.map(|asked| (self.part.members.me, asked.runs.clone())));
            let lists: Vec<_> = wanted.iter().map(|(_, runs)| runs.clone()).collect();
            let runs = union(&lists);
            let aggregator = self.domains.aggregators[index];
            let bytes = runs.iter().map(|run| run.1 as usize).sum();
            let reply = self.receive(aggregator, REPLIES, bytes);
            self.send(aggregator, BODIES, encode_body(&runs));
            round.relays.push(Relay {
                index,
                wanted,
                runs,
                reply,
            });
        }
        Ok(())
    }

    fn requests(&self, all: Bodies) -> Result<Vec<(u32, Runs)>> {
        let (ranks, bodies) = all;
        let most = self.domains.most;
        let decode = |(rank, body): (u32, Vec<u8>)| {
            let (runs, _) = decode_request(&body, most).map_err(|error| self.part.access.file.here.garbled(&error))?;
            Ok((rank, runs))
        };
        ranks.into_iter().zip(bodies).map(decode).collect()
    }

    /// The data of a round: from the disk, to others, to the program. Gives the first byte of the stream that is not
    /// there.
    async fn finish(&mut self, mut round: Round, target: &mut Target, outcome: &mut Result<()>) -> Result<u64> {
        let (me, mut here) = (self.part.members.me, Vec::new());
        if let Some(coming) = round.coming.own.take() {
            let mut wanted = self.requests(self.part.collect(coming).await?)?;
            let index = self.domains.aggregators.iter().position(|aggregator| *aggregator == me);
            let own = round.asked.iter().find(|asked| Some(asked.index) == index);
            wanted.extend(own.map(|asked| (me, asked.runs.clone())));
            let (ranks, lists): (Vec<_>, Vec<_>) = wanted.into_iter().unzip();
            for (rank, data) in ranks.into_iter().zip(self.read_lists(lists, outcome).await) {
                if rank == me {
                    here.push((index, data));
                } else {
                    self.send(rank, REPLIES, data);
                }
            }
        }
        for relay in std::mem::take(&mut round.relays) {
            let found = Found::new(relay.runs, relay.reply.received().await?.bytes);
            for (rank, runs) in relay.wanted {
                let data = found.of(&runs);
                if rank == me {
                    here.push((Some(relay.index), data));
                } else {
                    self.send(rank, SHARES, data);
                }
            }
        }
        let mut end = u64::MAX;
        for asked in round.asked {
            let data = match asked.way {
                DataFrom::Message(message) => message.received().await?.bytes,
                DataFrom::Here => here
                    .iter_mut()
                    .find(|(index, _)| *index == Some(asked.index))
                    .map(|(_, data)| std::mem::take(data))
                    .unwrap_or_default(),
            };
            end = end.min(place(&asked.slice, asked.runs, data, target));
        }
        Ok(end)
    }

    /// The second phase of a read. Data that are not there because the file ends are left out, which makes a message
    /// shorter.
    async fn read_lists(&self, lists: Vec<Runs>, outcome: &mut Result<()>) -> Vec<Vec<u8>> {
        let (here, number) = (self.part.access.file.here.clone(), lists.len());
        match self.post.disk(move || read_lists(&here, &lists)).await {
            Ok(replies) => replies,
            Err(error) => {
                if outcome.is_ok() {
                    *outcome = Err(error);
                }
                vec![Vec::new(); number]
            }
        }
    }
}

/// Gives data to the program, and back the first byte of the stream that is not there because the file ends.
fn place(slice: &Slice, runs: Runs, data: Vec<u8>, target: &mut Target) -> u64 {
    let after = |stream: u64, got: usize, wanted: u64| match (got as u64) < wanted {
        true => stream + got as u64,
        false => u64::MAX,
    };
    if let Some(from) = slice.start().filter(|_| runs == slice.runs) {
        target.write(from, &data);
        return after(from, data.len(), slice.bytes());
    }
    let (found, mut end) = (Found::new(runs, data), u64::MAX);
    for (run, stream) in slice.runs.iter().zip(&slice.streams) {
        let piece = found.of(std::slice::from_ref(run));
        target.write(*stream, &piece);
        end = end.min(after(*stream, piece.len(), run.1));
    }
    end
}

/// Reads what all of the lists want, large holes left out, and gives each its own.
fn read_lists(here: &Here, lists: &[Runs]) -> Result<Vec<Vec<u8>>> {
    let mut pieces: Runs = Vec::new();
    for (place, length) in union(lists) {
        match pieces.last_mut() {
            Some((first, known)) if place - (*first + *known) <= HOLE => *known = place + length - *first,
            _ => pieces.push((place, length)),
        }
    }
    let data = here.read_pieces(&pieces)?;
    let found = Found::new(pieces, data);
    Ok(lists.iter().map(|runs| found.of(runs)).collect())
}
