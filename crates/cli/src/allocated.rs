// SPDX-License-Identifier: Apache-2.0
//! `mpiexec` inside an allocation of Slurm or PBS uses its nodes, as other launchers do.

use isthmus_job::hostfile::Host;
use isthmus_job::{JobErrors, form};
use std::collections::BTreeMap;

/// The nodes of the allocation that this process is in, when there are several, and their local network.
pub(crate) fn hosts() -> Result<Option<(Vec<Host>, String)>, JobErrors> {
    let text = nodes(&|name| std::env::var(name).ok());
    text.map(|text| form::allocated(&text)).transpose()
}

/// The nodes of an allocation with more than one, in Slurm's words.
fn nodes(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let many = |name: &str| variable(name)?.parse::<u32>().ok().filter(|nodes| *nodes > 1);
    if variable("SLURM_JOB_ID").is_some() && (many("SLURM_JOB_NUM_NODES").or_else(|| many("SLURM_NNODES"))).is_some() {
        return Some(crate::job::environment());
    }
    let file = variable("PBS_JOBID").and_then(|_| variable("PBS_NODEFILE"))?;
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    pbs(&crate::given::read(file.as_ref()).ok()?, &own)
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
