// SPDX-License-Identifier: Apache-2.0
//! Schedulers: found by their commands; queues, accounts, load and the wait that is to be expected.

use super::command::{find, run};
use isthmus_wire::grid::Scheduler;
use isthmus_wire::service::Queue;
use std::time::Duration;

/// How long a command of a scheduler may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Most queues and accounts.
const MAX: usize = 500;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) schedulers: Vec<Scheduler>,
    pub(super) queues: Vec<Queue>,
    pub(super) accounts: Vec<String>,
}

/// Asks every scheduler whose commands are there.
pub(super) fn look() -> Found {
    let mut found = Found::default();
    let asked = [
        (Scheduler::Slurm, "sbatch", slurm as fn() -> Option<Vec<Queue>>),
        (Scheduler::GridEngine, "qconf", grid_engine),
        (Scheduler::Pbs, "pbsnodes", pbs),
        (Scheduler::Lsf, "bqueues", lsf),
    ];
    for (scheduler, command, ask) in asked {
        if find(command).is_none() {
            continue;
        }
        // A command that nobody answers is no scheduler.
        if let Some(queues) = ask() {
            found.schedulers.push(scheduler);
            found.queues.extend(queues);
        }
    }
    found.queues.truncate(MAX);
    if found.schedulers.contains(&Scheduler::Slurm) {
        found.accounts = accounts();
    }
    found
}

fn empty(scheduler: Scheduler, name: &str) -> Queue {
    Queue {
        scheduler,
        name: name.to_owned(),
        nodes: 0,
        cores: 0,
        free: 0,
        memory: 0,
        limit: 0,
        running: 0,
        pending: 0,
        wait: Queue::UNKNOWN,
        open: true,
        usual: false,
    }
}

fn slurm() -> Option<Vec<Queue>> {
    let nodes = run("sinfo", &["-h", "-e", "-o", "%P|%a|%l|%D|%C|%m"], LIMIT)?;
    let jobs = run("squeue", &["-h", "-a", "-o", "%P|%t"], LIMIT).unwrap_or_default();
    let mut queues = slurm_queues(&nodes);
    slurm_jobs(&jobs, &mut queues);
    for queue in &mut queues {
        queue.wait = if queue.free > 0 && queue.pending == 0 {
            0
        } else {
            slurm_wait(&queue.name)
        };
    }
    Some(queues)
}

/// Lines `NAME[*]|up|1:00:00|2|allocated/idle/other/total|memory MiB`, one for each group of nodes of a partition.
fn slurm_queues(text: &str) -> Vec<Queue> {
    let mut queues: Vec<Queue> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [name, state, limit, nodes, cores, memory] = fields[..] else {
            continue;
        };
        let cores: Vec<u32> = cores.split('/').map(|n| n.trim().parse().unwrap_or(0)).collect();
        let [_, idle, _, total] = cores[..] else { continue };
        let bare = name.trim().trim_end_matches('*');
        let at = queues.iter().position(|q| q.name == bare).unwrap_or_else(|| {
            queues.push(empty(Scheduler::Slurm, bare));
            queues.len() - 1
        });
        let queue = &mut queues[at];
        let memory = number(memory).saturating_mul(1 << 20);
        queue.memory = if queue.memory == 0 {
            memory
        } else {
            queue.memory.min(memory)
        };
        queue.nodes = queue.nodes.saturating_add(u32::try_from(number(nodes)).unwrap_or(0));
        queue.cores = queue.cores.saturating_add(total);
        queue.free = queue.free.saturating_add(idle);
        queue.limit = clock(limit.trim());
        queue.open = state.trim() == "up";
        queue.usual |= name.trim().ends_with('*');
    }
    queues
}

fn slurm_jobs(text: &str, queues: &mut [Queue]) {
    for line in text.lines() {
        let Some((names, state)) = line.split_once('|') else {
            continue;
        };
        for queue in queues.iter_mut().filter(|q| names.split(',').any(|n| n == q.name)) {
            match state.trim() {
                "PD" => queue.pending = queue.pending.saturating_add(1),
                "R" | "CG" => queue.running = queue.running.saturating_add(1),
                _ => {}
            }
        }
    }
}

/// When the scheduler would start a job of one processor: it says so of one that is only tested.
fn slurm_wait(queue: &str) -> u32 {
    if queue.starts_with('-') {
        return Queue::UNKNOWN;
    }
    let test = format!(
        "exec 2>&1; now=$(date +%s); t=$(sbatch --test-only -p '{queue}' -n 1 --wrap=: | \
        sed -n 's/.* at \\([0-9T:-]*\\) using.*/\\1/p'); test -n \"$t\" && echo $(( $(date -d \"$t\" +%s) - now ))"
    );
    let safe = queue.chars().all(|c| c.is_ascii_alphanumeric() || "._-+".contains(c));
    let text = if safe { run("sh", &["-c", &test], LIMIT) } else { None };
    let seconds = text.and_then(|t| t.trim().parse::<i64>().ok());
    seconds.map_or(Queue::UNKNOWN, |s| u32::try_from(s.max(0)).unwrap_or(Queue::UNKNOWN))
}

/// `1-02:03:04`, `02:03:04`, `03:04`, `infinite`.
fn clock(text: &str) -> u32 {
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let parts: Option<Vec<u64>> = rest.split(':').map(|p| p.parse::<u32>().ok().map(u64::from)).collect();
    let (Some(parts), Ok(days)) = (parts, days.parse::<u32>()) else {
        return 0;
    };
    let seconds = parts
        .iter()
        .take(3)
        .fold(0u64, |sum, part| sum.saturating_mul(60).saturating_add(*part));
    u32::try_from(seconds.saturating_add(u64::from(days) * 86_400)).unwrap_or(u32::MAX)
}

fn accounts() -> Vec<String> {
    let user = std::env::var("USER")
        .or_else(|_| std::env::var("LOGNAME"))
        .unwrap_or_default();
    if user.is_empty() || user.starts_with('-') {
        return Vec::new();
    }
    let filter = format!("user={user}");
    let text = run("sacctmgr", &["-nP", "show", "assoc", "format=account", &filter], LIMIT).unwrap_or_default();
    let mut accounts: Vec<String> = text
        .lines()
        .map(|l| l.trim().to_owned())
        .filter(|l| !l.is_empty())
        .collect();
    accounts.sort();
    accounts.dedup();
    accounts.truncate(MAX);
    accounts
}

fn grid_engine() -> Option<Vec<Queue>> {
    let queues = run("qstat", &["-g", "c"], LIMIT)?;
    let jobs = run("qstat", &["-u", "*", "-s", "p"], LIMIT).unwrap_or_default();
    let pending = u32::try_from(jobs.lines().skip(2).count()).unwrap_or(u32::MAX);
    let mut queues = grid_engine_queues(&queues);
    for queue in &mut queues {
        queue.pending = pending;
        if queue.free > 0 && pending == 0 {
            queue.wait = 0;
        }
    }
    Some(queues)
}

/// `NAME CQLOAD USED RES AVAIL TOTAL aoACDS cdsuE` below a line of dashes.
fn grid_engine_queues(text: &str) -> Vec<Queue> {
    let rows = text.lines().skip_while(|l| !l.starts_with("---")).skip(1);
    rows.filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, _load, used, _reserved, available, total, ..] = words[..] else {
            return None;
        };
        let number = |text: &str| text.parse::<u32>().ok();
        Some(Queue {
            running: number(used)?,
            free: number(available)?,
            cores: number(total)?,
            usual: name == "all.q",
            ..empty(Scheduler::GridEngine, name)
        })
    })
    .collect()
}

fn pbs() -> Option<Vec<Queue>> {
    Some(pbs_queues(&run("qstat", &["-Q"], LIMIT)?))
}

/// `Queue Max Tot Ena Str Que Run ...` and a line of dashes above the rows.
fn pbs_queues(text: &str) -> Vec<Queue> {
    let rows = text.lines().skip_while(|l| !l.starts_with("---")).skip(1);
    rows.filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, _, _, enabled, started, pending, running, ..] = words[..] else {
            return None;
        };
        Some(Queue {
            pending: pending.parse().ok()?,
            running: running.parse().ok()?,
            open: enabled == "yes" && started == "yes",
            ..empty(Scheduler::Pbs, name)
        })
    })
    .collect()
}

fn lsf() -> Option<Vec<Queue>> {
    Some(lsf_queues(&run("bqueues", &[], LIMIT)?))
}

/// `QUEUE_NAME PRIO STATUS MAX JL/U JL/P JL/H NJOBS PEND RUN SUSP`.
fn lsf_queues(text: &str) -> Vec<Queue> {
    let rows = text.lines().skip(1);
    rows.filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, _, status, _, _, _, _, _, pending, running, ..] = words[..] else {
            return None;
        };
        Some(Queue {
            pending: pending.parse().ok()?,
            running: running.parse().ok()?,
            open: status == "Open:Active",
            ..empty(Scheduler::Lsf, name)
        })
    })
    .collect()
}

fn number(text: &str) -> u64 {
    let digits: String = text.trim().chars().take_while(char::is_ascii_digit).take(15).collect();
    digits.parse().unwrap_or(0)
}

/// Fuzz entry of the parsers.
pub(super) fn fuzz(text: &str) {
    let mut queues = slurm_queues(text);
    slurm_jobs(text, &mut queues);
    let _ = (
        grid_engine_queues(text),
        pbs_queues(text),
        lsf_queues(text),
        clock(text),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_partitions() {
        let text = "debug*|up|1:00:00|2|4/12/0/16|7900+\nlong|down|7-00:00:00|1|8/0/0/8|64000\nlong|down|7-00:00:00|1|0/8/0/8|32000\nnonsense\n";
        let mut queues = slurm_queues(text);
        slurm_jobs("debug|R\nlong|PD\ndebug,long|PD\n", &mut queues);
        assert_eq!(queues.len(), 2);
        let (debug, long) = (&queues[0], &queues[1]);
        assert!(debug.usual && debug.open && !long.open);
        assert_eq!((debug.nodes, debug.cores, debug.free, debug.limit), (2, 16, 12, 3600));
        assert_eq!((debug.running, debug.pending, long.pending), (1, 1, 2));
        assert_eq!(
            (long.cores, long.free, long.limit, long.memory),
            (16, 8, 604_800, 32_000 << 20)
        );
        assert_eq!(clock("infinite"), 0);
    }

    #[test]
    fn grid_engine_cluster_queues() {
        let text = "CLUSTER QUEUE                   CQLOAD   USED    RES  AVAIL  TOTAL aoACDS  cdsuE\n\
            --------------------------------------------------------------------------------\n\
            all.q                             0.01      2      0      6      8      0      0\n";
        let queues = grid_engine_queues(text);
        assert_eq!(
            (
                queues[0].name.as_str(),
                queues[0].running,
                queues[0].free,
                queues[0].cores
            ),
            ("all.q", 2, 6, 8)
        );
    }

    #[test]
    fn pbs_and_lsf_queues() {
        let pbs = "Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type\n\
            ---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----\n\
            workq                0     3 yes yes     1     2     0     0     0     0 Exec\n";
        assert_eq!((pbs_queues(pbs)[0].pending, pbs_queues(pbs)[0].running), (1, 2));
        let lsf = "QUEUE_NAME      PRIO STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP\n\
            normal           30  Open:Active       -    -    -    -    12     4     8     0\n";
        let queue = &lsf_queues(lsf)[0];
        assert_eq!((queue.pending, queue.running, queue.open), (4, 8, true));
    }
}
