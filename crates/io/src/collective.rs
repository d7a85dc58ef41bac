// SPDX-License-Identifier: Apache-2.0
//! Collective access in two phases (Thakur, Gropp, Lusk 1999): some processes, the aggregators, each care for a part of
//! the file, its file domain; data go to them, or come from them, in messages, and they use the disk in long pieces.
//!
//! ```text
//!  file      |---- domain of aggregator 0 ----|---- domain of aggregator 1 ----|   at multiples of the stripe
//!             window 0 | window 1 | ...         window 0 | window 1 | ...          one of each in a round
//!
//!  process --+
//!  process --+--> gatherer of their site == wide area ==> aggregator <--+-- process
//!  process --+                                                          +-- process      the same way back for reading
//! ```
//! At a site without the aggregator one process gathers what the others there have for it: between two sites goes one
//! stream, in which what lies side by side in the file is one run. Who exchanges messages in a round follows from where
//! everybody's data lie, which all know. What a process has for itself goes in no message.

use std::collections::VecDeque;

use isthmus_core::error::{Error, Result, Subject};
use isthmus_wire::file::{body_bytes, encode_body};

use crate::alone::Alone;
use crate::domains::{Access, Domains, Hop, Window, are_two_phases, extents_to_tell};
use crate::extents::{self, Extent};
use crate::file::File;
use crate::group::{Members, word};
use crate::memory::{Buffer, Source};
use crate::pieces::Pieces;
use crate::task::{Done, Message, Post};

/// Phases of an operation, by which its messages are told apart. That of accesses takes two, and that of outcomes.
const ACCESSES: i32 = 0;
const SIZES: i32 = 2;
/// Sizes of what a gatherer has gathered.
const GATHERED_SIZES: i32 = 3;
/// To gatherers.
pub(crate) const PARTS: i32 = 4;
/// To aggregators.
pub(crate) const BODIES: i32 = 5;
/// From aggregators.
pub(crate) const REPLIES: i32 = 6;
/// From gatherers.
pub(crate) const SHARES: i32 = 7;
pub(crate) const OUTCOME: i32 = 8;
const EXTENTS: i32 = 10;

/// What all access.
pub(crate) struct Accesses {
    accesses: Vec<Access>,
    /// Of this process.
    extents: Vec<Extent>,
}

/// All tell what they access. `mine`: an error, if this process cannot; then nothing is accessed, and the inner error
/// is the same for all. Outer error: of communication.
pub(crate) fn begin<'a>(
    file: &'a File,
    post: &'a Post,
    members: &'a Members,
    mine: &Result<(Alone, Buffer)>,
) -> impl Future<Output = Result<Result<Accesses>>> + Send + use<'a> {
    let (extents, doing) = match mine {
        Ok((access, buffer)) => {
            let most = extents::most(members.size);
            let extents = extents::of(&access.view, access.at, buffer.length(), most);
            (extents, buffer.doing())
        }
        Err(_) => (Vec::new(), "access"),
    };
    let said = Access::of(file, &extents, doing == "write").encode();
    let wrong = mine.as_ref().map(drop).map_err(Error::clone);
    async move {
        let said = wrong.map(|()| &said[..]);
        let all = members.gather_all(post, ACCESSES, said, Access::BYTES).await;
        let all = all.map_err(|error| lost(file, members.me, doing, error))?;
        Ok(all.map(|all| Accesses {
            accesses: all.iter().map(|bytes| Access::decode(bytes)).collect(),
            extents,
        }))
    }
}

/// The access itself, after all have told what they access.
pub(crate) async fn act(post: Post, members: Members, access: Alone, buffer: Buffer, told: Accesses) -> Done {
    let (file, doing) = (access.file.clone(), buffer.doing());
    let me = members.me;
    if !are_two_phases(&file, &told.accesses) {
        let done = access.act(&post, buffer).await;
        let mine = done.as_ref().map(drop).map_err(Error::clone);
        let agreed = members.outcome(&post, OUTCOME, mine).await;
        agreed.map_err(|error| lost(&file, me, doing, error))??;
        return done;
    }
    let part = Contribution { access, members };
    let done = part.in_rounds(&post, told, buffer).await;
    done.map_err(|error| lost(&file, me, doing, error))?
}

/// The error of a process that is lost, or cannot be reached, while all access the file.
fn lost(file: &File, me: u32, doing: &str, error: Error) -> Error {
    if error.subject == Subject::Named {
        return error;
    }
    let left = match doing {
        "write" => "; of what this call writes each block is old or new",
        _ => "",
    };
    Error::named(
        error.class,
        format!(
            "rank {me} cannot {doing} {:?}, which is at site {}, together with the other processes: {error}{left}",
            file.here.path(),
            file.here.site()
        ),
    )
}

/// A process's part in a collective operation.
pub(crate) struct Contribution {
    pub(crate) access: Alone,
    pub(crate) members: Members,
}

/// A part of an access that lies in a window.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    /// Runs of the file.
    pub(crate) runs: Vec<(u64, u64)>,
    /// Byte of the access's stream where each run begins.
    pub(crate) streams: Vec<u64>,
}

impl Slice {
    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.1).sum()
    }

    /// Where it begins in the stream, if it is one piece of that.
    pub(crate) fn start(&self) -> Option<u64> {
        let first = *self.streams.first()?;
        let last = self.streams.last()? + self.runs.last()?.1;
        (last - first == self.bytes()).then_some(first)
    }
}

/// By sender: bytes of its message in each round.
type Sizes = Vec<(u32, Vec<u64>)>;

/// Sizes of the messages that come to a process.
#[derive(Default)]
pub(crate) struct Rooms {
    /// As who gathers for an aggregator, by the number of that.
    gathered: Vec<(usize, Sizes)>,
    /// As the aggregator.
    own: Sizes,
}

/// Messages that will come in a round.
#[derive(Default)]
pub(crate) struct Coming {
    /// As who gathers for an aggregator: its number, messages by sender.
    pub(crate) gathered: Vec<(usize, Vec<(u32, Message)>)>,
    /// As an aggregator; `None`: it has nothing to do.
    pub(crate) own: Option<Vec<(u32, Message)>>,
}

/// Bodies by sender.
pub(crate) type Bodies = (Vec<u32>, Vec<Vec<u8>>);

/// Messages of the last rounds, so many that a link does not wait for an aggregator.
pub(crate) struct UnderWay {
    rounds: VecDeque<Vec<Message>>,
    most: usize,
}

impl UnderWay {
    pub(crate) fn new(domains: &Domains) -> Self {
        Self {
            rounds: VecDeque::new(),
            most: domains.depth.saturating_sub(1) as usize,
        }
    }

    /// Takes the messages of a round, and waits for those of an earlier one.
    pub(crate) async fn sent(&mut self, messages: Vec<Message>) -> Result<()> {
        self.rounds.push_back(messages);
        while self.rounds.len() > self.most {
            for message in self.rounds.pop_front().unwrap_or_default() {
                message.sent().await?;
            }
        }
        Ok(())
    }

    /// Waits for all of them.
    pub(crate) async fn end(self) -> Result<()> {
        for message in self.rounds.into_iter().flatten() {
            message.sent().await?;
        }
        Ok(())
    }
}

impl Contribution {
    /// What of the access lies in a window of the file.
    pub(crate) fn slice(&self, Window { low, high }: Window, length: u64) -> Slice {
        let mut slice = Slice::default();
        let orderly = self.access.view.is_orderly(self.access.at, length);
        let (from, to) = match orderly {
            true => {
                let clamp = |place| {
                    self.access
                        .view
                        .before(place)
                        .clamp(self.access.at, self.access.at + length)
                        - self.access.at
                };
                (clamp(low), clamp(high))
            }
            false => (0, length),
        };
        let mut stream = from;
        self.access
            .view
            .runs(self.access.at + from, to - from, &mut |place, length| {
                let (first, end) = (place.max(low), (place + length).min(high));
                if first < end {
                    slice.runs.push((first, end - first));
                    slice.streams.push(stream + (first - place));
                }
                stream += length;
            });
        slice
    }

    /// What an aggregator is told of an access: where it lies, and the data.
    fn body(&self, window: Window, source: &mut Source) -> Vec<u8> {
        let slice = self.slice(window, source.length());
        let runs = encode_body(&slice.runs);
        let mut at = runs.len();
        // In one go: what is fresh from the system is 0 already.
        let mut body = vec![0; at + slice.bytes() as usize];
        body[..at].copy_from_slice(&runs);
        if let Some(from) = slice.start() {
            source.read(from, &mut body[at..]);
            return body;
        }
        for (run, stream) in slice.runs.iter().zip(&slice.streams) {
            source.read(*stream, &mut body[at..][..run.1 as usize]);
            at += run.1 as usize;
        }
        body
    }

    /// Outer error: of communication; inner one: of the disk, the same for all.
    async fn in_rounds(&self, post: &Post, told: Accesses, mut buffer: Buffer) -> Result<Done> {
        let extents = match extents_to_tell(&told.accesses) {
            Some(room) => {
                let mine = extents::encode(&told.extents, room);
                let all = self.members.gather(post, EXTENTS, &mine).await?;
                Some(all.iter().map(|bytes| extents::decode(bytes)).collect())
            }
            None => None,
        };
        let domains = Domains::new(&self.access.file, &told.accesses, extents);
        match &mut buffer {
            Buffer::Write(source, bytes) => {
                let done = self.write_rounds(post, &domains, source).await?;
                Ok(done.map(|()| *bytes))
            }
            Buffer::Read(target) => {
                let end = self.read_rounds(post, &domains, target).await?;
                Ok(end.and_then(|end| target.finish(end)))
            }
        }
    }

    /// Outer error: of communication; inner one: of the disk, the same for all.
    async fn write_rounds(&self, post: &Post, domains: &Domains, source: &mut Source) -> Result<Result<()>> {
        let (mut sent, rooms) = self.announce(post, domains, source.length(), true).await?;
        let mut expected: VecDeque<Coming> = VecDeque::new();
        let (mut outcome, mut under_way) = (Ok(()), UnderWay::new(domains));
        for round in 0..domains.rounds() {
            let kept = self.send_bodies(post, domains, round, source, &mut sent);
            // Who cares for a part of the file expects messages of later rounds while it uses the disk.
            for ahead in round + expected.len() as u64..(round + domains.depth).min(domains.rounds()) {
                expected.push_back(self.expect(post, domains, &rooms, ahead));
            }
            let now = expected.pop_front().unwrap_or_default();
            let mut own = self.pass_on(post, domains, now.gathered, kept, &mut sent).await?;
            if let Some(coming) = now.own {
                own.extend(self.collect(coming).await?.1);
                outcome = outcome.and(self.write_bodies(post, domains, own).await);
            }
            under_way.sent(std::mem::take(&mut sent)).await?;
        }
        under_way.end().await?;
        self.members.outcome(post, OUTCOME, outcome).await
    }

    /// Own data of a round, to where they go first; gives those that stay here, by the number of the aggregator.
    fn send_bodies(
        &self,
        post: &Post,
        domains: &Domains,
        round: u64,
        source: &mut Source,
        sent: &mut Vec<Message>,
    ) -> Vec<(usize, Vec<u8>)> {
        let me = self.members.me;
        let mut kept = Vec::new();
        for index in 0..domains.aggregators.len() {
            let window = domains.window(index, round);
            if !domains.takes_part(me, window) {
                continue;
            }
            let body = self.body(window, source);
            match domains.towards(me, index) {
                Hop::Gatherer(next) | Hop::Aggregator(next) if next == me => kept.push((index, body)),
                Hop::Gatherer(next) => sent.push(self.send(post, next, PARTS, body)),
                Hop::Aggregator(next) => sent.push(self.send(post, next, BODIES, body)),
            }
        }
        kept
    }

    /// As who gathers: a round's data as one message for each aggregator. Gives what this process has for itself as an
    /// aggregator.
    async fn pass_on(
        &self,
        post: &Post,
        domains: &Domains,
        gathered: Vec<(usize, Vec<(u32, Message)>)>,
        mut kept: Vec<(usize, Vec<u8>)>,
        sent: &mut Vec<Message>,
    ) -> Result<Vec<Vec<u8>>> {
        for (index, coming) in gathered {
            let own = kept.iter().position(|(aggregator, _)| *aggregator == index);
            let mut bodies: Vec<_> = own.map(|at| kept.swap_remove(at).1).into_iter().collect();
            bodies.extend(self.collect(coming).await?.1);
            let aggregator = domains.aggregators[index];
            if bodies.len() == 1 {
                sent.extend(bodies.pop().map(|one| self.send(post, aggregator, BODIES, one)));
                continue;
            }
            let most = domains.most;
            let pieces = Pieces::new(&bodies, most).map_err(|error| self.access.file.here.garbled(&error))?;
            sent.push(self.send(post, aggregator, BODIES, pieces.body()));
        }
        Ok(kept.into_iter().map(|(_, body)| body).collect())
    }

    /// A message of this operation, counted.
    pub(crate) fn send(&self, post: &Post, to: u32, phase: i32, bytes: Vec<u8>) -> Message {
        self.access.file.processes.count(to, bytes.len());
        post.send(to, self.members.tag + phase, bytes)
    }

    /// Tells how long the bodies of all rounds will be to where they go first, and hears it: so each can expect a
    /// round's messages while it is busy with the round before. `data`: bodies have them.
    pub(crate) async fn announce(
        &self,
        post: &Post,
        domains: &Domains,
        length: u64,
        data: bool,
    ) -> Result<(Vec<Message>, Rooms)> {
        let (me, mut sent, mut kept, mut rooms) = (self.members.me, Vec::new(), Vec::new(), Rooms::default());
        for index in 0..domains.aggregators.len() {
            if !domains.takes_part(me, domains.whole(index)) {
                continue;
            }
            let sizes: Vec<u64> = (0..domains.rounds())
                .map(|round| self.slice(domains.window(index, round), length))
                .map(|slice| size(&slice, data))
                .collect();
            match domains.towards(me, index) {
                Hop::Gatherer(next) | Hop::Aggregator(next) if next == me => kept.push((index, sizes)),
                Hop::Gatherer(next) => sent.push(self.send(post, next, SIZES, encode_sizes(&sizes))),
                Hop::Aggregator(next) => sent.push(self.send(post, next, GATHERED_SIZES, encode_sizes(&sizes))),
            }
        }
        for index in (0..domains.aggregators.len()).filter(|index| domains.gathers(me, *index)) {
            let parts = domains.gathered(me, domains.whole(index));
            let heard = self.hear_sizes(post, domains, SIZES, parts).await?;
            let own = kept
                .iter()
                .find(|(aggregator, _)| *aggregator == index)
                .map(|kept| &kept.1);
            let all = heard.iter().map(|(_, sizes)| sizes).chain(own);
            let sums = all.fold(vec![0; domains.rounds() as usize], |mut sums, sizes| {
                sums.iter_mut().zip(sizes).for_each(|(sum, size)| *sum += size);
                sums
            });
            if heard.len() + usize::from(own.is_some()) > 0 {
                let sizes = encode_sizes(&sums);
                sent.push(self.send(post, domains.aggregators[index], GATHERED_SIZES, sizes));
            }
            rooms.gathered.push((index, heard));
        }
        if let Some(index) = domains.aggregators.iter().position(|aggregator| *aggregator == me) {
            let senders = domains.senders(index, domains.whole(index));
            rooms.own = self.hear_sizes(post, domains, GATHERED_SIZES, senders).await?;
        }
        Ok((sent, rooms))
    }

    async fn hear_sizes(&self, post: &Post, domains: &Domains, phase: i32, senders: Vec<u32>) -> Result<Sizes> {
        let room = 8 * domains.rounds() as usize;
        let coming: Vec<_> = senders
            .into_iter()
            .map(|rank| (rank, post.receive(Some(rank), self.members.tag + phase, room)))
            .collect();
        // Runs of one byte each, with their data, from every process are the most that there can be.
        let most = domains
            .most
            .saturating_mul(17)
            .saturating_add(8)
            .saturating_mul(self.members.size.into());
        let mut all = Vec::new();
        for (rank, message) in coming {
            let bytes = message.received().await?.bytes;
            let sizes: Vec<_> = bytes.chunks_exact(8).map(word).collect();
            if let Some(bytes) = sizes.iter().find(|size| **size > most) {
                return Err(self
                    .access
                    .file
                    .here
                    .garbled(&format_args!("{bytes} bytes for one window")));
            }
            all.push((rank, sizes));
        }
        Ok(all)
    }

    /// A round's messages, which may come from now on.
    pub(crate) fn expect(&self, post: &Post, domains: &Domains, rooms: &Rooms, round: u64) -> Coming {
        let me = self.members.me;
        if round >= domains.rounds() {
            return Coming::default();
        }
        let receive = |phase, rooms: &Sizes, senders: Vec<u32>| -> Vec<_> {
            let room = |rank| rooms.iter().find(|(sender, _)| *sender == rank).map(|known| &known.1);
            let sized = senders.into_iter().map(|rank| (rank, room(rank)));
            let one = |(rank, sizes): (u32, Option<&Vec<u64>>)| {
                let size = sizes.and_then(|sizes| sizes.get(round as usize)).copied();
                let room = size.unwrap_or_default() as usize;
                (rank, post.receive(Some(rank), self.members.tag + phase, room))
            };
            sized.map(one).collect()
        };
        let gathered = rooms.gathered.iter().filter_map(|(index, rooms)| {
            let window = domains.window(*index, round);
            let senders = domains.gathered(me, window);
            let active = !senders.is_empty() || domains.takes_part(me, window);
            active.then(|| (*index, receive(PARTS, rooms, senders)))
        });
        let own = domains.aggregators.iter().position(|aggregator| *aggregator == me);
        let own = own.and_then(|index| {
            let window = domains.window(index, round);
            let senders = domains.senders(index, window);
            let active = !senders.is_empty() || domains.takes_part(me, window);
            active.then(|| receive(BODIES, &rooms.own, senders))
        });
        Coming {
            gathered: gathered.collect(),
            own,
        }
    }

    /// Messages that were expected, by sender.
    pub(crate) async fn collect(&self, coming: Vec<(u32, Message)>) -> Result<Bodies> {
        let mut all = (Vec::new(), Vec::new());
        for (rank, message) in coming {
            all.0.push(rank);
            all.1.push(message.received().await?.bytes);
        }
        Ok(all)
    }

    /// The second phase of a write: what is one piece becomes one call.
    async fn write_bodies(&self, post: &Post, domains: &Domains, bodies: Vec<Vec<u8>>) -> Result<()> {
        let (most, here) = (domains.most, self.access.file.here.clone());
        let work = move || {
            let pieces = Pieces::new(&bodies, most).map_err(|error| here.garbled(&error))?;
            here.write_pieces(|write| pieces.each(write))
        };
        post.disk(work).await
    }
}

/// Bytes of a body.
fn size(slice: &Slice, data: bool) -> u64 {
    let all = body_bytes(&slice.runs) as u64;
    if data { all } else { all - slice.bytes() }
}

fn encode_sizes(sizes: &[u64]) -> Vec<u8> {
    sizes.iter().flat_map(|size| size.to_le_bytes()).collect()
}
