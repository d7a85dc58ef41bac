// SPDX-License-Identifier: Apache-2.0
//! `mpiexec` inside an allocation of Slurm or PBS uses its nodes, as other launchers do.

use isthmus_job::form::{Described, Form, Input};
use isthmus_job::{Contact, Job, JobErrors};
use std::collections::BTreeMap;

/// Options that say where processes run.
const PLACES: [&str; 10] = [
    "-host",
    "--host",
    "-hosts",
    "--hosts",
    "-H",
    "-f",
    "-hostfile",
    "--hostfile",
    "-machinefile",
    "--machinefile",
];
/// Options that say how many there are.
const COUNTS: [&str; 6] = ["-n", "--n", "-np", "--np", "-c", "-N"];

/// The job over the nodes of the allocation that this process is in, unless the user has said where it runs.
pub(crate) fn spread(described: Described, words: &[String]) -> Result<Described, JobErrors> {
    let says = |options: &[&str]| {
        let mut words = words
            .iter()
            .take_while(|word| word.starts_with('-') || !word.contains('/'));
        words.any(|word| options.contains(&word.split('=').next().unwrap_or_default()))
    };
    let [subjob] = described.job.subjobs() else {
        return Ok(described);
    };
    if subjob.contact != Contact::Home || subjob.allocation.is_some() || says(&PLACES) {
        return Ok(described);
    }
    let Some(text) = nodes(&|name| std::env::var(name).ok()) else {
        return Ok(described);
    };
    let job: Described = Form::Slurm.read(&Input {
        program: Some(subjob),
        total: says(&COUNTS).then_some(subjob.count),
        ..Input::of(&text, "the environment")
    })?;
    let job: Job = job.job.with_links(described.job.links().clone());
    Ok(Described { job, ..described })
}

/// The nodes of an allocation with more than one, in Slurm's words.
fn nodes(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let many = |name: &str| variable(name)?.parse::<u32>().ok().filter(|nodes| *nodes > 1);
    if variable("SLURM_JOB_ID").is_some() && (many("SLURM_JOB_NUM_NODES").or_else(|| many("SLURM_NNODES"))).is_some() {
        return Some(crate::job::environment());
    }
    let file = variable("PBS_JOBID").and_then(|_| variable("PBS_NODEFILE"))?;
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    pbs(&std::fs::read_to_string(file).ok()?, &own)
}

/// A file of PBS has a line for every slot.
fn pbs(text: &str, own: &str) -> Option<String> {
    let mut slots: BTreeMap<&str, u32> = BTreeMap::new();
    for node in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        *slots.entry(node).or_default() += 1;
    }
    if slots.len() < 2 {
        return None;
    }
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let here = slots.keys().find(|node| short(node) == short(own));
    let names: Vec<&str> = slots.keys().copied().collect();
    let counts: Vec<String> = slots.values().map(u32::to_string).collect();
    Some(format!(
        "SLURM_JOB_NODELIST={}\nSLURM_TASKS_PER_NODE={}\nSLURMD_NODENAME={}\n",
        names.join(","),
        counts.join(","),
        here.unwrap_or(&"")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_pbs_are_slots() {
        assert_eq!(
            pbs("n1.x\nn2.x\nn1.x\n", "n2").unwrap(),
            "SLURM_JOB_NODELIST=n1.x,n2.x\nSLURM_TASKS_PER_NODE=2,1\nSLURMD_NODENAME=n2.x\n"
        );
        assert_eq!(pbs("n1\nn1\n", "n1"), None);
        assert_eq!(nodes(&|name| (name == "SLURM_JOB_ID").then(|| "1".to_owned())), None);
    }
}
