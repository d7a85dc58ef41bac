// SPDX-License-Identifier: Apache-2.0
//! Schedulers: found by their commands; queues, accounts, load and the wait that is to be expected.

use super::command::run;
use isthmus_wire::grid::Scheduler;
use isthmus_wire::service::Queue;
use std::time::Duration;

/// How long a command of a scheduler may take.
const LIMIT: Duration = Duration::from_secs(10);
/// The same where no configuration is found.
const UNCONFIGURED: Duration = Duration::from_secs(2);
/// Most queues and accounts.
const MAX: usize = 500;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) schedulers: Vec<Scheduler>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) accounts: Vec<String>,
}

/// Asks every scheduler whose commands are there.
pub(crate) fn look() -> Found {
    let mut found = Found::default();
    for scheduler in [Scheduler::Slurm, Scheduler::GridEngine, Scheduler::Pbs, Scheduler::Lsf] {
        // A command that nobody answers is no scheduler.
        if let Some(mut queues) = ask(scheduler) {
            if scheduler == Scheduler::Slurm {
                slurm_load(&mut queues);
            }
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

/// The queues of a scheduler, when it can be used here.
pub(crate) fn ask(scheduler: Scheduler) -> Option<Vec<Queue>> {
    match scheduler {
        Scheduler::Slurm => slurm(),
        Scheduler::GridEngine => grid_engine(),
        Scheduler::Pbs => pbs(),
        Scheduler::Lsf => lsf(),
    }
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
    let nodes = run("sinfo", &["-h", "-e", "-o", "%P|%a|%l|%D|%C|%m"], slurm_patience())?;
    Some(slurm_queues(&nodes))
}

/// A client without configuration asks the name server where it is, which may take long where there is none.
fn slurm_patience() -> Duration {
    let files = [
        "/etc/slurm/slurm.conf",
        "/etc/slurm-llnl/slurm.conf",
        "/run/slurm/conf/slurm.conf",
    ];
    let configured = std::env::var_os("SLURM_CONF").is_some() || files.iter().any(|f| std::path::Path::new(f).exists());
    if configured { LIMIT } else { UNCONFIGURED }
}

/// How many jobs there are, and how long one would wait.
fn slurm_load(queues: &mut [Queue]) {
    let jobs = run("squeue", &["-h", "-a", "-o", "%P|%t"], LIMIT).unwrap_or_default();
    slurm_jobs(&jobs, queues);
    for queue in queues {
        queue.wait = if queue.free > 0 && queue.pending == 0 {
            0
        } else {
            slurm_wait(&queue.name)
        };
    }
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
    let nodes = run("qstat", &["-f"], LIMIT).unwrap_or_default();
    let names: Vec<&str> = queues.iter().map(|q| q.name.as_str()).collect();
    let limits = run("qconf", &["-sq", &names.join(",")], LIMIT).unwrap_or_default();
    grid_engine_nodes(&nodes, &mut queues);
    grid_engine_limits(&limits, &mut queues);
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

/// A queue has an instance on each of its nodes: lines `NAME@HOST BIP 0/2/4 0.01 lx-amd64 au`.
fn grid_engine_nodes(text: &str, queues: &mut [Queue]) {
    for line in text.lines() {
        let first = line.split_whitespace().next().unwrap_or_default();
        let Some((name, _)) = first.split_once('@') else {
            continue;
        };
        if let Some(queue) = queues.iter_mut().find(|q| q.name == name) {
            queue.nodes = queue.nodes.saturating_add(1);
        }
    }
}

/// Configurations of queues: `qname NAME` and `h_rt 24:00:00` or `h_rt INFINITY,[HOST=1:00:00]`; the longest counts.
fn grid_engine_limits(text: &str, queues: &mut [Queue]) {
    let mut name = "";
    for line in text.lines() {
        match line.split_once(char::is_whitespace) {
            Some(("qname", value)) => name = value.trim(),
            Some(("h_rt", value)) if !value.contains("INFINITY") => {
                let values = value.split(',').map(|v| v.rsplit('=').next().unwrap_or(v));
                let longest = values.map(|v| clock(v.trim().trim_end_matches(']'))).max();
                if let Some(queue) = queues.iter_mut().find(|q| q.name == name) {
                    queue.limit = longest.unwrap_or(0);
                }
            }
            _ => {}
        }
    }
}

fn pbs() -> Option<Vec<Queue>> {
    let mut queues = pbs_queues(&run("qstat", &["-Q"], LIMIT)?);
    let (nodes, cores) = pbs_nodes(&run("pbsnodes", &["-a"], LIMIT).unwrap_or_default());
    for queue in &mut queues {
        (queue.nodes, queue.cores) = (nodes, cores);
    }
    Some(queues)
}

/// Blocks that begin with the name of a node and say `resources_available.ncpus = N`: nodes and processors in all.
fn pbs_nodes(text: &str) -> (u32, u32) {
    let cores = text.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "resources_available.ncpus").then(|| value.trim().parse::<u32>().unwrap_or(0))
    });
    cores.fold((0, 0), |(nodes, sum), n| (nodes + 1, u32::saturating_add(sum, n)))
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
    let mut queues = lsf_queues(&run("bqueues", &[], LIMIT)?);
    let (nodes, slots) = lsf_hosts(&run("bhosts", &["-w"], LIMIT).unwrap_or_default());
    for queue in &mut queues {
        (queue.nodes, queue.cores) = (nodes, slots);
    }
    Some(queues)
}

/// `HOST_NAME STATUS JL/U MAX NJOBS RUN SSUSP USUSP RSV`: hosts and slots in all; none where a host has no number.
fn lsf_hosts(text: &str) -> (u32, u32) {
    let rows = text.lines().skip(1).filter(|l| !l.trim().is_empty());
    let slots: Option<Vec<u32>> = rows.map(|line| line.split_whitespace().nth(3)?.parse().ok()).collect();
    slots.map_or((0, 0), |slots| {
        let nodes = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        (nodes, slots.into_iter().fold(0, u32::saturating_add))
    })
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
pub(crate) fn fuzz(text: &str) {
    let mut queues = slurm_queues(text);
    slurm_jobs(text, &mut queues);
    grid_engine_nodes(text, &mut queues);
    grid_engine_limits(text, &mut queues);
    let _ = (
        pbs_nodes(text),
        lsf_hosts(text),
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
        let mut queues = grid_engine_queues(text);
        let instances = "queuename                      qtype resv/used/tot. load_avg arch          states\n\
            ---------------------------------------------------------------------------------\n\
            all.q@b1n2                     BIP   0/0/4          0.01     lx-amd64\n\
            ---------------------------------------------------------------------------------\n\
            all.q@b1n3                     BIP   0/0/4          0.01     lx-amd64      au\n";
        grid_engine_nodes(instances, &mut queues);
        assert_eq!(queues[0].nodes, 2);
        for (limit, seconds) in [("INFINITY", 0), ("1:00:00", 3600), ("0:30:00,[b1n2=2:00:00]", 7200)] {
            queues[0].limit = 0;
            grid_engine_limits(&format!("qname   all.q\nh_rt    {limit}\n"), &mut queues);
            assert_eq!(queues[0].limit, seconds);
        }
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
        let nodes = "n1\n     Mom = n1\n     resources_available.ncpus = 4\n\nn2\n     resources_available.ncpus = 8\n";
        assert_eq!(pbs_nodes(nodes), (2, 12));
        let hosts = "HOST_NAME STATUS JL/U MAX NJOBS RUN SSUSP USUSP RSV\nn1 ok - 4 0 0 0 0 0\nn2 ok - 8 0 0 0 0 0\n";
        assert_eq!(
            (lsf_hosts(hosts), lsf_hosts(&hosts.replace(" 8 ", " - "))),
            ((2, 12), (0, 0))
        );
        let lsf = "QUEUE_NAME      PRIO STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP\n\
            normal           30  Open:Active       -    -    -    -    12     4     8     0\n";
        let queue = &lsf_queues(lsf)[0];
        assert_eq!((queue.pending, queue.running, queue.open), (4, 8, true));
    }
}
