// SPDX-License-Identifier: Apache-2.0
//! What Slurm tells a job about its nodes, in environment variables: of a job, or of every component of a heterogeneous
//! one.
//!
//! ```text
//! SLURM_HET_SIZE=2
//! SLURM_JOB_NODELIST_HET_GROUP_0=cpu[01-03,07]
//! SLURM_TASKS_PER_NODE_HET_GROUP_0=4(x3),2
//! SLURM_JOB_NODELIST_HET_GROUP_1=gpu1
//! SLURM_TASKS_PER_NODE_HET_GROUP_1=1
//! ```
//!
//! srun tells a step's in `SLURM_STEP_NODELIST` and `SLURM_STEP_TASKS_PER_NODE`. Every node becomes a
//! subjob that ssh reaches; all of them share a local network.

use super::described::Described;
use super::hosts as on_hosts;
use super::input::Input;
use crate::error::{JobError, JobErrors};
use crate::forms::hostfile::Host;
use crate::forms::sites::parse_count;
use crate::model::{Contact, Job, MAX_SUBJOBS, Subjob, check_count};
use std::collections::HashMap;

/// Local network of a cluster that does not say its name.
const CLUSTER: &str = "slurm";
/// Steps from here on are no user's: those of batch scripts, interactive allocations and the like (`slurm.h`).
const FIRST_SPECIAL_STEP: u32 = 0xffff_fff0;

type Variables<'a> = HashMap<&'a str, &'a str>;

/// The program on the nodes of the job.
pub(super) fn read(input: &Input<'_>, program: &Subjob) -> Result<Described, JobErrors> {
    let (mut all, cluster) = nodes(input.text)?;
    if input.per_host.is_some() {
        all.iter_mut().for_each(|host| host.slots = input.per_host);
    }
    let input = Input {
        lan: Some(input.lan.unwrap_or(&cluster)),
        ..*input
    };
    Ok(Described::of(Job::new(on_hosts::deal(all, &input, program))?))
}

/// The nodes of the job step, otherwise of the job, each with its slots, and the name of the cluster.
pub(super) fn nodes(text: &str) -> Result<(Vec<Host>, String), JobErrors> {
    let lines = text.lines().filter_map(|line| line.trim().split_once('='));
    // An empty variable is how a shell takes one back.
    let lines = lines.filter(|(name, value)| name.starts_with("SLURM") && !value.trim().is_empty());
    let variables: Variables<'_> = lines.collect();
    let cluster = variables.get("SLURM_CLUSTER_NAME").copied().unwrap_or(CLUSTER);
    if let Some(hosts) = step(&variables)? {
        return Ok((hosts, cluster.to_owned()));
    }
    let components = match variables.get("SLURM_HET_SIZE") {
        None => vec![String::new()],
        Some(size) => (0..parse_count(size)
            .map_err(|e| named("SLURM_HET_SIZE", size, e))?
            .min(MAX_SUBJOBS as u32))
            .map(|number| format!("_HET_GROUP_{number}"))
            .collect(),
    };
    let (mut errors, mut all) = (JobErrors::default(), Vec::new());
    for suffix in components {
        all.extend(errors.take(component(&variables, &suffix)).into_iter().flatten());
    }
    Ok((errors.or(Some(all))?, cluster.to_owned()))
}

/// The nodes of the step that srun has made. The step of an interactive allocation is one process on the first node,
/// made for the user's shell: there the job counts. So it does where the step's variables are those of another job,
/// left in the environment that sbatch has passed on.
fn step(variables: &Variables<'_>) -> Result<Option<Vec<Host>>, JobError> {
    let value = |name: &str| variables.get(name).copied();
    let (Some(id), Some(list), Some(tasks)) = (
        value("SLURM_STEP_ID"),
        value("SLURM_STEP_NODELIST"),
        value("SLURM_STEP_TASKS_PER_NODE"),
    ) else {
        return Ok(None);
    };
    if !id.parse::<u32>().is_ok_and(|id| id < FIRST_SPECIAL_STEP) {
        return Ok(None);
    }
    let nodes = node_list(list).map_err(|e| named("SLURM_STEP_NODELIST", list, e))?;
    if let Some(job) = value("SLURM_JOB_NODELIST") {
        let job = node_list(job).map_err(|e| named("SLURM_JOB_NODELIST", job, e))?;
        if nodes.iter().any(|node| !job.contains(node)) {
            return Ok(None);
        }
    }
    let counts = counts(tasks, nodes.len()).map_err(|e| named("SLURM_STEP_TASKS_PER_NODE", tasks, e))?;
    hosts(variables, nodes, counts).map(Some)
}

fn named(name: &str, value: &str, error: JobError) -> JobError {
    JobError {
        problem: format!("{name} is '{}': {}", crate::quoted::shown(value), error.problem),
        hint: Some("Slurm sets these variables inside a job".to_owned()),
        ..error
    }
}

fn component(variables: &Variables<'_>, suffix: &str) -> Result<Vec<Host>, JobError> {
    let find = |name: &str| {
        let name = format!("{name}{suffix}");
        variables.get(name.as_str()).map(|value| (name, *value))
    };
    let Some((name, list)) = find("SLURM_JOB_NODELIST").or_else(|| find("SLURM_NODELIST")) else {
        let error = JobError::new(format!("SLURM_JOB_NODELIST{suffix} is not set"));
        return Err(error.hint("run this inside a Slurm job, or name a file with its variables"));
    };
    let nodes = node_list(list).map_err(|e| named(&name, list, e))?;
    // What `--ntasks-per-node` says, of every node.
    if let (None, Some((name, value))) = (find("SLURM_TASKS_PER_NODE"), find("SLURM_NTASKS_PER_NODE")) {
        let each = parse_count(value).map_err(|e| named(&name, value, e))?;
        let counts = vec![each; nodes.len()];
        return hosts(variables, nodes, counts);
    }
    let single = if nodes.len() == 1 { find("SLURM_NTASKS") } else { None };
    let counts = match (find("SLURM_TASKS_PER_NODE").or(single), find("SLURM_JOB_CPUS_PER_NODE")) {
        (Some((name, value)), _) => counts(value, nodes.len()).map_err(|e| named(&name, value, e))?,
        (None, Some((name, value))) => {
            let processors = counts(value, nodes.len()).map_err(|e| named(&name, value, e))?;
            let each = find("SLURM_CPUS_PER_TASK").and_then(|(_, each)| each.parse().ok());
            let each: u32 = each.filter(|each| *each > 0).unwrap_or(1);
            processors.into_iter().map(|all| (all / each).max(1)).collect()
        }
        (None, None) => vec![1; nodes.len()],
    };
    hosts(variables, nodes, counts)
}

fn hosts(variables: &Variables<'_>, nodes: Vec<String>, counts: Vec<u32>) -> Result<Vec<Host>, JobError> {
    let host = |(node, count): (String, u32)| {
        check_count(&node, count)?;
        let home = node == "localhost" || variables.get("SLURMD_NODENAME") == Some(&node.as_str());
        Ok(Host {
            contact: if home { Contact::Home } else { Contact::parse(&node)? },
            slots: Some(count),
        })
    };
    nodes.into_iter().zip(counts).map(host).collect()
}

/// `4(x3),2` for so many nodes.
fn counts(text: &str, nodes: usize) -> Result<Vec<u32>, JobError> {
    let mut counts = Vec::new();
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, parse_count(times.strip_suffix(')').unwrap_or_default())?),
            None => (part, 1),
        };
        let count = parse_count(count)?;
        let room = nodes.saturating_sub(counts.len());
        counts.extend(std::iter::repeat_n(count, room.min(times as usize)));
    }
    if counts.len() < nodes {
        return Err(JobError::new(format!(
            "these are {} numbers for {nodes} nodes",
            counts.len()
        )));
    }
    Ok(counts)
}

/// `cpu[01-03,07],gpu1`.
fn node_list(text: &str) -> Result<Vec<String>, JobError> {
    let mut nodes = Vec::new();
    for part in split_outside(text) {
        expand(part, &mut nodes)?;
    }
    if nodes.is_empty() || nodes.iter().any(String::is_empty) {
        return Err(JobError::new("a node has no name"));
    }
    Ok(nodes)
}

/// At the commas that are not in brackets.
fn split_outside(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut inside) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            ',' if !inside => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// One name with any number of ranges in brackets.
fn expand(part: &str, nodes: &mut Vec<String>) -> Result<(), JobError> {
    let mut names = vec![String::new()];
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((ranges, after)) = after.split_once(']') else {
            return Err(JobError::new("a '[' is not closed"));
        };
        let numbers = numbers(ranges)?;
        if numbers.len().saturating_mul(names.len()) + nodes.len() > MAX_SUBJOBS {
            return Err(too_many());
        }
        let longer = names
            .iter()
            .flat_map(|n| numbers.iter().map(move |i| format!("{n}{before}{i}")));
        names = longer.collect();
        rest = after;
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    nodes.extend(names);
    if nodes.len() > MAX_SUBJOBS {
        return Err(too_many());
    }
    Ok(())
}

fn too_many() -> JobError {
    JobError::new(format!("more than {MAX_SUBJOBS} nodes"))
}

/// `01-03,07`: as wide as the first number of a range.
fn numbers(text: &str) -> Result<Vec<String>, JobError> {
    let mut all = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let digits = (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
            let number = digits.then(|| text.parse::<usize>().ok()).flatten();
            number.ok_or_else(|| JobError::new(format!("'{}' is not a range of numbers", crate::quoted::shown(range))))
        };
        let (from, to) = (number(first)?, number(last)?);
        if to < from || to - from + all.len() >= MAX_SUBJOBS {
            return Err(JobError::new(format!(
                "'{range}' is not a range of at most {MAX_SUBJOBS} numbers"
            )));
        }
        all.extend((from..=to).map(|i| format!("{i:0width$}", width = first.len())));
    }
    Ok(all)
}

/// One component for every run of subjobs with one queue.
pub(super) fn write(job: &Job) -> String {
    let queue = |s: &Subjob| s.allocation.as_ref().map_or(String::new(), |a| a.queue.clone());
    let components: Vec<&[Subjob]> = job.subjobs().chunk_by(|a, b| queue(a) == queue(b)).collect();
    let mut text = format!("SLURM_CLUSTER_NAME={}\n", job.subjobs()[0].lan);
    if components.len() > 1 {
        text.push_str(&format!("SLURM_HET_SIZE={}\n", components.len()));
    }
    for (number, component) in components.iter().enumerate() {
        let suffix = if components.len() > 1 {
            format!("_HET_GROUP_{number}")
        } else {
            String::new()
        };
        let names: Vec<String> = component.iter().map(|s| on_hosts::host(&s.contact)).collect();
        let counts: Vec<String> = component.iter().map(|s| s.count.to_string()).collect();
        let tasks: u32 = component.iter().map(|s| s.count).sum();
        text.push_str(&format!("SLURM_JOB_NODELIST{suffix}={}\n", names.join(",")));
        text.push_str(&format!("SLURM_JOB_NUM_NODES{suffix}={}\n", names.len()));
        text.push_str(&format!("SLURM_NTASKS{suffix}={tasks}\n"));
        text.push_str(&format!("SLURM_TASKS_PER_NODE{suffix}={}\n", counts.join(",")));
        if !queue(&component[0]).is_empty() {
            text.push_str(&format!("SLURM_JOB_PARTITION{suffix}={}\n", queue(&component[0])));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        let (hosts, _) = nodes(text).unwrap();
        let words: Vec<String> = hosts
            .iter()
            .map(|h| format!("{} {}", h.contact, h.slots.unwrap_or(0)))
            .collect();
        words.join(", ")
    }

    #[test]
    fn one_node_has_its_tasks() {
        for (variables, expected) in [
            // sbatch --ntasks=8; --ntasks-per-node=4; --cpus-per-task=2 on 8 processors.
            (
                "SLURM_NTASKS=8\nSLURM_TASKS_PER_NODE=8\nSLURM_JOB_CPUS_PER_NODE=8",
                "n1 8",
            ),
            (
                "SLURM_NTASKS=4\nSLURM_NTASKS_PER_NODE=4\nSLURM_TASKS_PER_NODE=4",
                "n1 4",
            ),
            (
                "SLURM_CPUS_PER_TASK=2\nSLURM_TASKS_PER_NODE=4\nSLURM_JOB_CPUS_PER_NODE=8",
                "n1 4",
            ),
            // Fewer variables.
            ("SLURM_NTASKS=8", "n1 8"),
            ("SLURM_CPUS_PER_TASK=3\nSLURM_JOB_CPUS_PER_NODE=8", "n1 2"),
            ("SLURM_CPUS_PER_TASK=16\nSLURM_JOB_CPUS_PER_NODE=8", "n1 1"),
            ("SLURMD_NODENAME=n1\nSLURM_TASKS_PER_NODE=8", "home 8"),
            ("", "n1 1"),
        ] {
            let text = format!("SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=n1\n{variables}\n");
            assert_eq!(told(&text), expected, "{variables}");
        }
        assert!(nodes("SLURM_JOB_NODELIST=n1\nSLURM_TASKS_PER_NODE=many\n").is_err());
    }

    #[test]
    fn a_step_has_its_own_nodes_and_tasks() {
        let job = "SLURM_JOB_NODELIST=n[1-4]\nSLURM_STEP_NODELIST=n2\nSLURM_STEP_TASKS_PER_NODE=3\n";
        // srun sets the variable of the job to what the step has.
        assert_eq!(told(&format!("{job}SLURM_TASKS_PER_NODE=3\nSLURM_STEP_ID=0\n")), "n2 3");
        // The shell of salloc is a step too.
        let shell = format!("{job}SLURM_TASKS_PER_NODE=2(x4)\nSLURM_STEP_ID=4294967290\n");
        assert_eq!(told(&shell), "n1 2, n2 2, n3 2, n4 2");
        // Left behind by another job.
        let other = "SLURM_JOB_NODELIST=m1\nSLURM_TASKS_PER_NODE=5\nSLURM_STEP_ID=0\nSLURM_STEP_NODELIST=n2\n\
            SLURM_STEP_TASKS_PER_NODE=3\n";
        assert_eq!(told(other), "m1 5");
    }

    #[test]
    fn lists_of_nodes() {
        let list = |text: &str| node_list(text).map(|n| n.join(" "));
        assert_eq!(list("cpu[01-03,07],gpu1").unwrap(), "cpu01 cpu02 cpu03 cpu07 gpu1");
        assert_eq!(list("r[1-2]n[9-10]x").unwrap(), "r1n9x r1n10x r2n9x r2n10x");
        for bad in [
            "",
            "a[",
            "a[1",
            "a[2-1]",
            "a[x]",
            "a,,b",
            "a[1-99999]",
            "a[1-99][1-99]",
            "a[]",
        ] {
            assert!(list(bad).is_err(), "{bad}");
        }
        assert_eq!(counts("4(x3),2", 4).unwrap(), [4, 4, 4, 2]);
        assert!(counts("4(x2", 2).is_err() && counts("4", 2).is_err());
    }
}
