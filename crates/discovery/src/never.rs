// SPDX-License-Identifier: Apache-2.0
//! What a scheduler would let wait for ever: more nodes or slots than there are, longer than the limit, a queue that
//! does not exist. Most schedulers take such a job and say nothing.

use crate::look::schedulers;
use isthmus_wire::grid::{Allocation, Scheduler};
use isthmus_wire::service::Queue;
use isthmus_wire::word::counted;

/// Most queues that are named.
const SHOWN: usize = 6;

/// Why a job can never start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Never {
    /// What is wrong, with the scheduler's numbers.
    pub reason: String,
    /// What there is.
    pub hint: String,
}

/// Asks the scheduler of this machine whether `count` processes can ever start. What it does not say is no reason to
/// refuse.
pub fn never(asked: &Allocation, count: u32) -> Option<Never> {
    judge(asked, count, &schedulers::ask(asked.scheduler)?)
}

/// The scheduler that can be used at this machine, if there is one and we are not in one of its jobs.
pub fn usable() -> Option<Scheduler> {
    let inside = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE"];
    if inside.iter().any(|name| std::env::var_os(name).is_some()) {
        return None;
    }
    let all = [Scheduler::Slurm, Scheduler::GridEngine, Scheduler::Pbs, Scheduler::Lsf];
    all.into_iter()
        .find(|one| schedulers::ask(*one).is_some_and(|queues| !queues.is_empty()))
}

fn judge(asked: &Allocation, count: u32, queues: &[Queue]) -> Option<Never> {
    if queues.is_empty() || asked.directives.iter().any(|d| names_queue(d)) {
        return None;
    }
    let scheduler = asked.scheduler;
    let plain = !asked.queue.contains(['@', '*', '!', '?', '[']);
    let named: Vec<&str> = asked
        .queue
        .split(',')
        .map(str::trim)
        .filter(|n| !n.is_empty())
        .collect();
    let unknown = named.iter().find(|name| queues.iter().all(|q| q.name != **name));
    if let (Some(name), true) = (unknown, plain) {
        return Some(Never {
            reason: format!("{scheduler} has no queue '{name}' there"),
            hint: format!("its queues are {}", list(queues)),
        });
    }
    let usual = scheduler == Scheduler::Slurm && queues.iter().any(|q| q.usual);
    let chosen: Vec<&Queue> = match named.is_empty() {
        true => queues.iter().filter(|q| q.usual || !usual).collect(),
        false if plain => queues.iter().filter(|q| named.contains(&q.name.as_str())).collect(),
        false => queues.iter().collect(),
    };
    let of = match chosen.as_slice() {
        [one] => format!("queue '{}' of {scheduler}", one.name),
        _ => format!("{scheduler}"),
    };
    let reason = too_much(asked, count, &chosen)
        .map(|(wanted, there)| format!("can never start: it asks for {wanted}, and {of} has {there}"));
    reason.map(|reason| Never {
        reason,
        hint: format!("ask for less, or for another queue: {}", list(queues)),
    })
}

/// What is asked for that is more than there is, and what there is.
fn too_much(asked: &Allocation, count: u32, chosen: &[&Queue]) -> Option<(String, String)> {
    // What one queue does not say of itself, the others do not know either.
    let all_say = |value: fn(&Queue) -> u32| chosen.iter().all(|q| value(q) > 0) && !chosen.is_empty();
    let most = |value: fn(&Queue) -> u32| chosen.iter().map(|q| value(q)).max().unwrap_or(0);
    let nodes = most(|q| q.nodes);
    if all_say(|q| q.nodes) && asked.nodes > nodes {
        return Some((counted(asked.nodes, "node"), nodes.to_string()));
    }
    // Processes of one job may be in several queues of Grid Engine.
    let slots = match asked.scheduler {
        Scheduler::GridEngine => chosen.iter().fold(0u32, |sum, q| sum.saturating_add(q.cores)),
        _ => most(|q| q.cores),
    };
    let shared = asked.directives.iter().any(|d| d.contains("overcommit") || d == "-O");
    if all_say(|q| q.cores) && !shared && count > slots {
        return Some((counted(count, "processor"), slots.to_string()));
    }
    let limit = most(|q| q.limit);
    if all_say(|q| q.limit) && asked.limit > limit {
        return Some((time(asked.limit), format!("a limit of {}", time(limit))));
    }
    None
}

/// Whether the user's own words to the scheduler say in which queue, or on which cluster.
fn names_queue(directive: &str) -> bool {
    let name = directive.split(['=', ' ']).next().unwrap_or_default();
    let short = |letter: &str| name.starts_with(letter) && !name.starts_with("-pe") && !name.starts_with("--");
    matches!(name, "--partition" | "--clusters" | "--cluster") || ["-p", "-q", "-M", "-m"].into_iter().any(short)
}

fn list(queues: &[Queue]) -> String {
    let one = |q: &Queue| {
        let mut parts = Vec::new();
        if q.nodes > 0 {
            parts.push(counted(q.nodes, "node"));
        }
        if q.cores > 0 {
            parts.push(counted(q.cores, "processor"));
        }
        if q.limit > 0 {
            parts.push(format!("at most {}", time(q.limit)));
        }
        match parts.is_empty() {
            true => q.name.clone(),
            false => format!("{} ({})", q.name, parts.join(", ")),
        }
    };
    let mut shown: Vec<String> = queues.iter().take(SHOWN).map(one).collect();
    if queues.len() > SHOWN {
        shown.push(format!("and {} more", queues.len() - SHOWN));
    }
    shown.join(", ")
}

/// `90 s`, `30 min`, `2 h`, `3 days`.
fn time(seconds: u32) -> String {
    match seconds {
        s if s % 86_400 == 0 && s > 86_400 => format!("{} days", s / 86_400),
        s if s % 3600 == 0 => format!("{} h", s / 3600),
        s if s % 60 == 0 => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(scheduler: Scheduler, name: &str, nodes: u32, cores: u32, limit: u32) -> Queue {
        Queue {
            scheduler,
            name: name.to_owned(),
            nodes,
            cores,
            free: 0,
            memory: 0,
            limit,
            running: 0,
            pending: 0,
            wait: Queue::UNKNOWN,
            open: true,
            usual: name == "main",
        }
    }

    fn why(count: u32, ask: impl FnOnce(&mut Allocation)) -> String {
        let queues = [
            queue(Scheduler::Slurm, "main", 2, 8, 3600),
            queue(Scheduler::Slurm, "long", 4, 16, 0),
        ];
        let mut asked = Allocation::new(Scheduler::Slurm);
        ask(&mut asked);
        judge(&asked, count, &queues)
            .map(|never| never.reason)
            .unwrap_or_default()
    }

    #[test]
    fn what_there_is_can_start() {
        assert_eq!(why(8, |a| (a.nodes, a.limit) = (2, 3600)), "");
        assert_eq!(why(16, |a| (a.queue, a.limit) = ("long".to_owned(), 999_999)), "");
        assert_eq!(why(16, |a| a.queue = "main,long".to_owned()), "");
        assert_eq!(why(99, |a| a.directives = vec!["--overcommit".to_owned()]), "");
        assert_eq!(why(99, |a| a.directives = vec!["--partition=other".to_owned()]), "");
        assert_eq!(judge(&Allocation::new(Scheduler::Pbs), 99, &[]), None);
        // A scheduler that says nothing of its nodes.
        let silent = [queue(Scheduler::Lsf, "normal", 0, 0, 0)];
        assert_eq!(judge(&Allocation::new(Scheduler::Lsf), 9999, &silent), None);
    }

    #[test]
    fn what_there_is_not_cannot() {
        assert!(why(8, |a| a.nodes = 3).contains("it asks for 3 nodes, and queue 'main' of Slurm has 2"));
        assert!(why(9, |_| {}).contains("it asks for 9 processors, and queue 'main' of Slurm has 8"));
        assert!(why(1, |a| a.limit = 7200).contains("it asks for 2 h, and queue 'main' of Slurm has a limit of 1 h"));
        assert_eq!(
            why(1, |a| a.queue = "nope".to_owned()),
            "Slurm has no queue 'nope' there"
        );
        let two = ["a.q", "b.q"].map(|name| queue(Scheduler::GridEngine, name, 1, 4, 0));
        let asked = Allocation::new(Scheduler::GridEngine);
        assert_eq!(judge(&asked, 8, &two), None);
        assert!(judge(&asked, 9, &two).is_some());
    }
}
