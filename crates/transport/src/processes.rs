// SPDX-License-Identifier: Apache-2.0
//! Who is which peer: the processes that this one knows, by job and rank.
//!
//! A job is known as a whole or in parts; each part is one row, whatever the number of its processes. A peer stays what
//! it is until it is forgotten, and no other process gets its number. All that are forgotten beside each other are one
//! row, so a process that meets others for years keeps nothing of each.
//!
//! ```text
//!   first peer   job        first rank   count
//!   0            0 (own)    0            1000
//!   1000         forgotten  -            16
//!   1016         2          40           1
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use isthmus_wire::place::Rank;

use crate::Peer;

/// A job as one process numbers them, in the order in which it hears of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Job(u32);

impl Job {
    /// The one that started this process.
    pub const OWN: Self = Self(0);
    /// Of those who are forgotten.
    const NONE: Self = Self(u32::MAX);

    /// Its number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A process as everybody names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Its job.
    pub job: Job,
    /// Its rank in the MPI_COMM_WORLD of that.
    pub rank: Rank,
}

/// Processes of one job that get consecutive numbers.
#[derive(Clone, Debug)]
struct RankRange {
    first: Peer,
    job: Job,
    ranks: Range<u32>,
}

impl RankRange {
    fn count(&self) -> u32 {
        self.ranks.end - self.ranks.start
    }
}

/// What people call a process of another world.
#[derive(Clone, Debug)]
pub struct Called {
    /// Its rank in its own MPI_COMM_WORLD; by its number here only those know it that have met it.
    pub rank: u32,
    /// Where it is: `host lab-2 of site lab`. Processes of one host share it.
    pub place: Arc<str>,
}

impl std::fmt::Display for Called {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of another MPI_COMM_WORLD ({})", self.rank, self.place)
    }
}

/// Why processes cannot be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// Nobody has said what job this is.
    UnknownJob,
    /// One of them is known already.
    Known,
    /// There would be more than 2^31 peers.
    TooMany,
}

impl std::fmt::Display for NotTaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::UnknownJob => "internal error: processes of a job that has no name here",
            Self::Known => "internal error: a process of another job was introduced twice",
            Self::TooMany => "a process can know 2147483648 others at most, of all jobs together",
        })
    }
}

impl std::error::Error for NotTaken {}

/// Most peers.
const MOST: u32 = 1 << 31;

#[derive(Debug, Default)]
struct Table {
    /// Names, by number.
    jobs: BTreeMap<u32, Arc<str>>,
    /// The number of the next one.
    next_job: u32,
    /// In order of peers.
    rows: Vec<RankRange>,
    /// Of processes of other worlds.
    called: BTreeMap<Peer, Called>,
}

/// The processes that this one knows. It is looked at where connections are made and where people read names, never
/// for a message.
#[derive(Debug)]
pub struct Processes(RwLock<Table>);

impl Processes {
    /// Those of the own job, so many: the first peers, in order of rank.
    pub fn of(job: &str, size: u32) -> Arc<Self> {
        let row = RankRange {
            first: Peer::new(0),
            job: Job::OWN,
            ranks: 0..size,
        };
        Arc::new(Self(RwLock::new(Table {
            jobs: BTreeMap::from([(0, job.into())]),
            next_job: 1,
            rows: vec![row],
            called: BTreeMap::new(),
        })))
    }

    fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job of this name, which may be a new one.
    pub fn job(&self, name: &str) -> Job {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let known = table.jobs.iter().find(|(_, known)| &***known == name);
        if let Some((&number, _)) = known {
            return Job(number);
        }
        let number = table.next_job;
        table.next_job += 1;
        table.jobs.insert(number, name.into());
        Job(number)
    }

    /// Nobody of this job is talked to any more: its processes are nobody from now on.
    pub fn forget(&self, job: Job) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if job == Job::OWN || table.jobs.remove(&job.0).is_none() {
            return;
        }
        let Table { rows, called, .. } = &mut *table;
        let mut kept: Vec<RankRange> = Vec::with_capacity(rows.len());
        for mut row in std::mem::take(rows) {
            if row.job == job {
                for peer in row.first.and_following(row.count()) {
                    called.remove(&peer);
                }
                (row.job, row.ranks) = (Job::NONE, 0..row.count());
            }
            match kept.last_mut() {
                Some(last) if last.job == Job::NONE && row.job == Job::NONE => last.ranks.end += row.count(),
                _ => kept.push(row),
            }
        }
        *rows = kept;
    }

    /// Takes in processes of a job; the first of them. The others follow in order of rank.
    pub fn take_in(&self, job: Job, ranks: Range<u32>) -> Result<Peer, NotTaken> {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !table.jobs.contains_key(&job.0) {
            return Err(NotTaken::UnknownJob);
        }
        let meets = |row: &RankRange| row.job == job && row.ranks.start < ranks.end && ranks.start < row.ranks.end;
        if table.rows.iter().any(meets) {
            return Err(NotTaken::Known);
        }
        let first = table.next();
        let count = ranks.end.saturating_sub(ranks.start);
        if MOST - first.number() < count {
            return Err(NotTaken::TooMany);
        }
        if count > 0 {
            table.rows.push(RankRange { first, job, ranks });
        }
        Ok(first)
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.table().next().number()
    }

    /// Who this is; `None`: nobody.
    pub fn process(&self, peer: Peer) -> Option<Process> {
        let table = self.table();
        let row = table.row_of(peer).filter(|row| row.job != Job::NONE)?;
        Some(Process {
            job: row.job,
            rank: Rank(row.ranks.start + peer.index_from(row.first) as u32),
        })
    }

    /// Which peer this is; `None`: it is not known.
    pub fn peer(&self, process: Process) -> Option<Peer> {
        let table = self.table();
        let is_in = |row: &&RankRange| row.job == process.job && row.ranks.contains(&process.rank.0);
        let row = table.rows.iter().find(is_in)?;
        Some(row.first.plus(process.rank.0 - row.ranks.start))
    }

    /// Those of a job that have these ranks, as far as they are known.
    pub fn among(&self, job: Job, ranks: Range<u32>) -> Vec<Peer> {
        let mut peers = Vec::new();
        for row in self.table().rows.iter().filter(|row| row.job == job) {
            let (start, end) = (row.ranks.start.max(ranks.start), row.ranks.end.min(ranks.end));
            let count = end.saturating_sub(start);
            if count > 0 {
                peers.extend(row.first.plus(start - row.ranks.start).and_following(count));
            }
        }
        peers
    }

    /// Name of a job.
    pub fn job_name(&self, job: Job) -> Option<Arc<str>> {
        self.table().jobs.get(&job.0).cloned()
    }

    /// People call a process this.
    pub fn call(&self, peer: Peer, called: Called) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.called.insert(peer, called);
    }

    /// What people call a process of another world; `None`: nobody has said it.
    pub fn called(&self, peer: Peer) -> Option<String> {
        self.table().called.get(&peer).map(Called::to_string)
    }

    /// For people: `rank 3`, or `rank 3 of another MPI_COMM_WORLD (host lab-2 of site lab)`.
    pub fn name(&self, peer: Peer) -> String {
        if let Some(called) = self.called(peer) {
            return called;
        }
        match self.process(peer) {
            Some(Process { job: Job::OWN, rank }) => format!("rank {rank}"),
            Some(Process { job, rank }) => {
                let name = self.job_name(job);
                format!("rank {rank} of the job {}", name.as_deref().unwrap_or("?"))
            }
            None if peer < self.table().next() => "a process that this one is connected with no more".to_owned(),
            None => "a process of no job".to_owned(),
        }
    }
}

impl Table {
    /// The first number that no peer has.
    fn next(&self) -> Peer {
        self.rows.last().map_or(Peer::new(0), |row| row.first.plus(row.count()))
    }

    fn row_of(&self, peer: Peer) -> Option<&RankRange> {
        let behind = self.rows.partition_point(|row| row.first <= peer);
        let row = self.rows.get(behind.checked_sub(1)?)?;
        (peer.index_from(row.first) < row.count() as usize).then_some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(job: Job, rank: u32) -> Process {
        Process { job, rank: Rank(rank) }
    }

    #[test]
    fn peers_are_dense_and_go_both_ways() {
        let all = Processes::of("home", 3);
        let other = all.job("other");
        assert_eq!(all.take_in(other, 0..2), Ok(Peer::new(3)));
        assert_eq!(all.take_in(other, 7..8), Ok(Peer::new(5)), "in parts");
        assert_eq!(all.count(), 6);
        for peer in Peer::first(6) {
            let process = all.process(peer).unwrap();
            assert_eq!(all.peer(process), Some(peer));
        }
        assert_eq!(all.process(Peer::new(5)), Some(process(other, 7)));
        assert_eq!(all.peer(process(Job::OWN, 1)), Some(Peer::new(1)));
        assert_eq!(
            all.peer(process(other, 1)),
            Some(Peer::new(4)),
            "the same rank of another job"
        );
        for nobody in [process(Job::OWN, 3), process(other, 2), process(other, 8)] {
            assert_eq!(all.peer(nobody), None);
        }
        assert_eq!(
            all.among(other, 1..u32::MAX),
            [Peer::new(4), Peer::new(5)],
            "those that are known"
        );
        for nobody in [Peer::new(6), Peer::NONE] {
            assert_eq!(all.process(nobody), None);
        }
    }

    #[test]
    fn jobs_that_come_and_go_leave_nothing_behind() {
        let all = Processes::of("home", 3);
        let meet = |name: &str| {
            let job = all.job(name);
            let first = all.take_in(job, 0..2).unwrap();
            let place = "host lab-2 of site lab".into();
            all.call(first.plus(1), Called { rank: 9, place });
            (job, first)
        };
        let (stays, there) = meet("stays");
        for round in 0..1000 {
            let (job, first) = meet(&format!("visit {round}"));
            assert_eq!(first, Peer::new(5 + 2 * round), "no number is given twice");
            all.forget(job);
            assert_eq!((all.process(first), all.called(first.plus(1))), (None, None));
            assert_eq!(all.peer(process(job, 0)), None);
            assert_eq!(all.name(first), "a process that this one is connected with no more");
        }
        let table = all.table();
        assert_eq!((table.jobs.len(), table.rows.len(), table.called.len()), (2, 3, 1));
        drop(table);
        assert_eq!(all.process(there), Some(process(stays, 0)));
        all.forget(stays);
        all.forget(Job::OWN);
        assert_eq!(
            (all.table().rows.len(), all.count()),
            (2, 2005),
            "what is beside each other is one"
        );
        assert_eq!(
            all.process(Peer::new(2)),
            Some(process(Job::OWN, 2)),
            "the own job stays"
        );
        let again = all.job("stays");
        assert_eq!(
            all.take_in(again, 0..2),
            Ok(Peer::new(2005)),
            "whoever is met again is new"
        );
    }

    #[test]
    fn nobody_is_taken_in_twice_and_jobs_have_names() {
        let all = Processes::of("home", 3);
        assert_eq!(all.job("home"), Job::OWN);
        let other = all.job("other");
        assert_eq!(
            (all.job("other"), all.job_name(other).as_deref()),
            (other, Some("other"))
        );
        assert_eq!(all.take_in(Job(2), 0..1), Err(NotTaken::UnknownJob));
        assert_eq!(all.take_in(other, 4..6), Ok(Peer::new(3)));
        assert_eq!(all.take_in(other, 0..5), Err(NotTaken::Known));
        assert_eq!(all.take_in(other, 6..u32::MAX), Err(NotTaken::TooMany));
        assert_eq!(all.take_in(other, 0..0), Ok(Peer::new(5)), "nobody");
        assert_eq!(all.name(Peer::new(2)), "rank 2");
        assert_eq!(all.name(Peer::new(4)), "rank 5 of the job other");
        assert_eq!(all.name(Peer::NONE), "a process of no job");
        let place = "host lab-2 of site lab".into();
        all.call(Peer::new(4), Called { rank: 9, place });
        assert_eq!(
            all.name(Peer::new(4)),
            "rank 9 of another MPI_COMM_WORLD (host lab-2 of site lab)"
        );
    }
}
