// SPDX-License-Identifier: Apache-2.0
//! The processors of this machine, as Linux tells of them in /sys, and which of them the processes of a subjob get.
//!
//! Only those that the agent itself may use count: what a scheduler, a container or taskset has taken away is no place
//! for a process.

use crate::program::Refusal;
use isthmus_settings::among;
use isthmus_topology::processors::{self, HardwareType, Processor, Rule};
use isthmus_wire::grid::Start;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::path::Path;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// What a subjob's processes are bound to, by index; `None`: to nothing.
pub(crate) fn of(start: &Start) -> Result<Option<Vec<Vec<u32>>>, Refusal> {
    let count = start.count as usize;
    let by = isthmus_settings::MAP_BY.read(among(&start.environment)).and_then(part);
    let each = isthmus_settings::BIND_EACH.read(among(&start.environment));
    let each = usize::try_from(each).unwrap_or(1);
    let row = isthmus_settings::MAP_EACH.read(among(&start.environment));
    let row = row.and_then(|row| usize::try_from(row).ok()).unwrap_or(0);
    let to = match isthmus_settings::BIND_TO.read(among(&start.environment)) {
        Some(value) => part(value),
        // Who says for how many threads wants cores for them.
        None if each > 1 => Some(HardwareType::Core),
        // Who says where processes go wants them to stay there.
        None if by.is_some() => by,
        None => return Ok(own_cores(count)),
    };
    let Some(to) = to else {
        return match by {
            None => Ok(None),
            Some(_) => Err(Refusal::new(
                "processes are mapped but bound to nothing".to_owned(),
                "leave out --map-by, or bind them: --bind-to core",
            )),
        };
    };
    let rule = Rule {
        to,
        by: by.unwrap_or_else(|| to.min(HardwareType::Core)),
        each,
        row: if by.is_some() { row } else { 0 },
    };
    let asked = isthmus_settings::BIND_TO.read(among(&start.environment)).is_some();
    match processors::bind(&machine(), count, rule) {
        Ok(sets) => Ok(Some(sets)),
        // Who says in which order processors are taken has not said that nobody may share one.
        Err(few) if !asked && few.each == 1 && few.row == 0 => Ok(None),
        Err(few) if few.row > 0 => Err(Refusal::new(
            few.to_string(),
            "start fewer processes there, or more on each part: --map-by ppr:N:PART",
        )),
        Err(error) => Err(Refusal::new(
            error.to_string(),
            "start fewer processes there, bind them to larger parts (--bind-to socket), or do not (--bind-to none)",
        )),
    }
}

/// A core for each process where nobody asked for anything: only if something has confined this job to some of the
/// machine's processors, so that no other job is on them, and there are enough.
fn own_cores(count: usize) -> Option<Vec<Vec<u32>>> {
    let machine = machine();
    let online = std::fs::read_to_string(Path::new(CPUS).join("online")).ok()?;
    let confined = machine.len() < processors::parse_list(&online)?.len();
    let rule = Rule {
        to: HardwareType::Core,
        by: HardwareType::Core,
        each: 1,
        row: 0,
    };
    confined.then(|| processors::bind(&machine, count, rule).ok()).flatten()
}

/// `None`: nothing.
fn part(word: &str) -> Option<HardwareType> {
    // Open MPI's and MPICH's word for the order of slots.
    HardwareType::named(if word == "slot" { "core" } else { word })
}

/// What there is and may be used, in the order of numbers.
fn machine() -> Vec<Processor> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    let memories = memories();
    let mut caches: Vec<Vec<u32>> = Vec::new();
    (0..CpuSet::MAX_CPU as u32)
        .filter(|&number| allowed.is_set(number as usize))
        .map(|number| {
            let about = Path::new(CPUS).join(format!("cpu{number}/topology"));
            let read = |name: &str| std::fs::read_to_string(about.join(name)).ok();
            // A core is named by the first of its threads. What is not told is taken for one package, and a core for
            // each processor.
            let siblings = read("thread_siblings_list").and_then(|list| processors::parse_list(&list));
            if !caches.iter().any(|list| list.contains(&number)) {
                caches.extend(third_cache(number));
            }
            let memory = memories.iter().find(|(_, list)| list.contains(&number));
            Processor {
                number,
                l3cache: caches
                    .iter()
                    .find(|list| list.contains(&number))
                    .and_then(|list| list.first().copied())
                    .unwrap_or(0),
                core: siblings.and_then(|s| s.first().copied()).unwrap_or(number),
                numa: memory.map_or(0, |(memory, _)| *memory),
                socket: read("physical_package_id")
                    .and_then(|id| id.trim().parse().ok())
                    .unwrap_or(0),
            }
        })
        .collect()
}

/// How many parts of this kind there are here for processes.
pub fn count(part: HardwareType) -> usize {
    processors::count(&machine(), part)
}

/// The processors that share a cache of the third level with this one.
fn third_cache(number: u32) -> Option<Vec<u32>> {
    let caches = Path::new(CPUS).join(format!("cpu{number}/cache"));
    let all = std::fs::read_dir(caches).ok()?.flatten();
    let third = all
        .map(|entry| entry.path())
        .find(|path| std::fs::read_to_string(path.join("level")).is_ok_and(|level| level.trim() == "3"))?;
    processors::parse_list(&std::fs::read_to_string(third.join("shared_cpu_list")).ok()?)
}

/// The processors of each memory.
fn memories() -> Vec<(u32, Vec<u32>)> {
    let Ok(nodes) = std::fs::read_dir(NODES) else {
        return Vec::new();
    };
    let node = |entry: std::fs::DirEntry| {
        let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
        let list = std::fs::read_to_string(entry.path().join("cpulist")).ok()?;
        Some((number, processors::parse_list(&list)?))
    };
    nodes.flatten().filter_map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_understood() {
        let machine = machine();
        assert!(!machine.is_empty());
        let everything = Rule {
            to: HardwareType::Core,
            by: HardwareType::Core,
            each: 1,
            row: 0,
        };
        assert_eq!(processors::bind(&machine, 1, everything).unwrap().len(), 1);
    }

    #[test]
    fn names_are_checked() {
        let words = isthmus_settings::BIND_TO.words;
        let nothing: Vec<&&str> = words.iter().filter(|word| part(word).is_none()).collect();
        assert_eq!(nothing, [&"none"]);
        assert_eq!(
            (part("numa"), part("slot")),
            (Some(HardwareType::Numa), Some(HardwareType::Core))
        );
    }
}
