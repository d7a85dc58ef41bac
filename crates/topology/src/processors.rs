// SPDX-License-Identifier: Apache-2.0
//! The processors of a machine and which of them each process gets: thinking only; who asks has read what there is.
//!
//! *Mapping* deals processes out to parts of the machine, one after the other in turn; *binding* says to how much
//! around its place a process is bound:
//!
//! ```text
//!  8 cores in 2 sockets, 4 processes       bound to core     to socket
//!  mapped by core                          0 1 2 3           0-3 0-3 0-3 0-3
//!  mapped by socket                        0 4 1 5           0-3 4-7 0-3 4-7
//! ```

use std::collections::BTreeMap;
use std::fmt;

/// A part of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HardwareType {
    /// What the system schedules on.
    Hwthread,
    /// All hardware threads of a core.
    Core,
    /// All cores that share a cache of the third level.
    L3cache,
    /// All cores with the same memory.
    Numa,
    /// All cores of a package.
    Socket,
}

impl HardwareType {
    /// From the finest to the coarsest.
    pub const ALL: [Self; 5] = [Self::Hwthread, Self::Core, Self::L3cache, Self::Numa, Self::Socket];

    /// Its name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hwthread => "hwthread",
            Self::Core => "core",
            Self::L3cache => "l3cache",
            Self::Numa => "numa",
            Self::Socket => "socket",
        }
    }

    /// The part with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// A processor and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// The system's number.
    pub number: u32,
    /// Number of its core; different cores of a machine have different ones.
    pub core: u32,
    /// Number of its cache of the third level.
    pub l3cache: u32,
    /// Number of its memory.
    pub numa: u32,
    /// Number of its package.
    pub socket: u32,
}

impl Processor {
    fn part(&self, part: HardwareType) -> u32 {
        match part {
            HardwareType::Hwthread => self.number,
            HardwareType::Core => self.core,
            HardwareType::L3cache => self.l3cache,
            HardwareType::Numa => self.numa,
            HardwareType::Socket => self.socket,
        }
    }
}

/// How processes are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// To what.
    pub to: HardwareType,
    /// Dealt out to what.
    pub by: HardwareType,
    /// So many of these parts for each process, of cores and hardware threads.
    pub each: usize,
    /// So many processes on a part of `by` before the next part has its turn, and no more on any; 0: one after the
    /// other, and again from the first one.
    pub row: usize,
}

/// There are fewer parts than processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFew {
    /// Parts of this kind.
    pub part: HardwareType,
    /// So many that may be used.
    pub parts: usize,
    /// For so many processes.
    pub processes: usize,
    /// So many for each.
    pub each: usize,
    /// So many processes on each part, where the user says so.
    pub row: usize,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (part, parts, processes) = (self.part.name(), self.parts, self.processes);
        if self.row > 0 {
            let (row, room) = (self.row, self.row * parts);
            return write!(
                f,
                "{processes} processes, {row} on each {part}, have room for {room}: {parts} may be used here"
            );
        }
        let own = match self.each {
            1 => format!("a {part}"),
            each => format!("{each} {part}s"),
        };
        write!(
            f,
            "{processes} processes cannot each be bound to {own} of their own: {parts} may be used here"
        )
    }
}

impl std::error::Error for TooFew {}

/// The processors that `processes` processes are bound to, each; sorted.
///
/// # Errors
/// When two would have to share a hardware thread or a core.
pub fn bind(machine: &[Processor], processes: usize, rule: Rule) -> Result<Vec<Vec<u32>>, TooFew> {
    // Cores of their own: going by hardware threads would come to a core twice.
    let by = if rule.to == HardwareType::Core {
        rule.by.max(HardwareType::Core)
    } else {
        rule.by
    };
    let rule = Rule { by, ..rule };
    let room = rule.row * parts(machine, rule.by).len();
    if rule.row > 0 && processes > room {
        return Err(TooFew {
            part: rule.by,
            parts: parts(machine, rule.by).len(),
            processes,
            each: rule.each,
            row: rule.row,
        });
    }
    if rule.each > 1 && rule.to <= HardwareType::Core {
        return bind_to_several(machine, processes, rule);
    }
    if rule.row > 0 {
        return bind_in_rows(machine, processes, rule);
    }
    let available = parts(machine, rule.to).len();
    if rule.to <= HardwareType::Core && processes > available {
        return Err(TooFew {
            part: rule.to,
            parts: available,
            processes,
            each: 1,
            row: 0,
        });
    }
    let mut queues: Vec<Vec<Vec<u32>>> = parts(machine, rule.by)
        .into_iter()
        .map(|place| places(&place, rule))
        .collect();
    let mut bound = Vec::with_capacity(processes);
    let mut turn = 0;
    while bound.len() < processes && !queues.is_empty() {
        for queue in &mut queues {
            if bound.len() < processes {
                // Coarse parts are shared: they are given again and again, fine ones once.
                let at = if rule.to <= HardwareType::Core {
                    turn
                } else {
                    turn % queue.len()
                };
                bound.extend(queue.get(at).cloned());
            }
        }
        turn += 1;
    }
    // To sockets, say, when mapped by core: a place stands for the part around it.
    for set in &mut bound {
        *set = around(machine, set, rule.to);
    }
    Ok(bound)
}

/// Several cores or hardware threads for each process. They lie in one part of those to which processes are dealt out,
/// and in one socket in any case.
fn bind_to_several(machine: &[Processor], processes: usize, rule: Rule) -> Result<Vec<Vec<u32>>, TooFew> {
    let in_turn = rule.by > HardwareType::Core;
    let mut queues: Vec<Vec<Vec<u32>>> = parts(machine, if in_turn { rule.by } else { HardwareType::Socket })
        .into_iter()
        .map(|place| {
            let single = parts(&place, rule.to);
            let several = single.chunks_exact(rule.each).map(|chunk| chunk.concat());
            several.map(|set| numbers(&set)).collect()
        })
        .collect();
    let mut bound = Vec::with_capacity(processes);
    while bound.len() < processes {
        let before = bound.len();
        for queue in queues.iter_mut().filter(|queue| !queue.is_empty()) {
            let most = match rule.row {
                0 if in_turn => 1,
                0 => queue.len(),
                row => row.min(queue.len()),
            };
            bound.extend(queue.drain(..most.min(processes - bound.len())));
        }
        if bound.len() == before {
            return Err(TooFew {
                part: rule.to,
                parts: parts(machine, rule.to).len(),
                processes,
                each: rule.each,
                row: 0,
            });
        }
    }
    Ok(bound)
}

/// So many processes on each part, one part after the other. Those that are bound to the whole part share it.
fn bind_in_rows(machine: &[Processor], processes: usize, rule: Rule) -> Result<Vec<Vec<u32>>, TooFew> {
    let mut bound = Vec::with_capacity(processes);
    for place in parts(machine, rule.by) {
        let own = places(&place, rule);
        let shares = rule.to >= rule.by || rule.to > HardwareType::Core;
        if !shares && own.len() < rule.row {
            return Err(TooFew {
                part: rule.to,
                parts: parts(machine, rule.to).len(),
                processes,
                each: 1,
                row: 0,
            });
        }
        let row = own.iter().cycle().take(rule.row.min(processes - bound.len()));
        bound.extend(row.map(|set| around(machine, set, rule.to)));
    }
    Ok(bound)
}

fn numbers(set: &[Processor]) -> Vec<u32> {
    let mut numbers: Vec<u32> = set.iter().map(|p| p.number).collect();
    numbers.sort_unstable();
    numbers
}

/// How many parts of a kind there are.
pub fn count(machine: &[Processor], part: HardwareType) -> usize {
    parts(machine, part).len()
}

/// The parts of a kind, in the order of sockets, memories and numbers.
fn parts(machine: &[Processor], part: HardwareType) -> Vec<Vec<Processor>> {
    let mut all: BTreeMap<(u32, u32, u32), Vec<Processor>> = BTreeMap::new();
    for processor in machine {
        let key = match part {
            HardwareType::Socket => (processor.socket, 0, 0),
            HardwareType::Numa => (processor.socket, processor.numa, 0),
            // It may be larger than a memory or smaller.
            HardwareType::L3cache => (processor.socket, 0, processor.l3cache),
            part => (processor.socket, processor.numa, processor.part(part)),
        };
        all.entry(key).or_default().push(*processor);
    }
    all.into_values().collect()
}

/// The places in a part where processes go, one after the other: parts to which they are bound, or the part itself if
/// that is finer.
fn places(place: &[Processor], rule: Rule) -> Vec<Vec<u32>> {
    parts(place, rule.to.min(rule.by))
        .into_iter()
        .map(|part| part.iter().map(|p| p.number).collect())
        .collect()
}

fn around(machine: &[Processor], set: &[u32], part: HardwareType) -> Vec<u32> {
    let wanted: Vec<u32> = machine
        .iter()
        .filter(|p| set.contains(&p.number))
        .map(|p| p.part(part))
        .collect();
    let mut all: Vec<u32> = machine
        .iter()
        .filter(|p| wanted.contains(&p.part(part)))
        .map(|p| p.number)
        .collect();
    all.sort_unstable();
    all
}

/// A list as the system writes them: `0-3,8`. `None`: it is none.
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last - first > MOST_PROCESSORS {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// More than any system has.
const MOST_PROCESSORS: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// The other way round.
    fn write_list(sorted: &[u32]) -> String {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &number in sorted {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        let texts = ranges.into_iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        texts.collect::<Vec<_>>().join(",")
    }

    /// Sockets of `memories` memories of `cores` cores of two threads, numbered as usual: second threads after all
    /// cores.
    fn machine(sockets: u32, memories: u32, cores: u32) -> Vec<Processor> {
        let all = sockets * memories * cores;
        (0..2 * all)
            .map(|number| Processor {
                number,
                core: number % all,
                l3cache: number % all / cores,
                numa: number % all / cores,
                socket: number % all / (memories * cores),
            })
            .collect()
    }

    fn bound(machine: &[Processor], processes: usize, to: HardwareType, by: HardwareType) -> String {
        let sets = bind(
            machine,
            processes,
            Rule {
                to,
                by,
                each: 1,
                row: 0,
            },
        )
        .unwrap();
        sets.iter().map(|set| write_list(set)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn processes_are_dealt_out_and_bound() {
        use HardwareType::*;
        let m = machine(2, 1, 4);
        assert_eq!(bound(&m, 4, Core, Core), "0,8 1,9 2,10 3,11");
        assert_eq!(bound(&m, 4, Core, Socket), "0,8 4,12 1,9 5,13");
        assert_eq!(bound(&m, 3, Hwthread, Core), "0 1 2");
        assert_eq!(bound(&m, 3, Hwthread, Hwthread), "0 1 2");
        assert_eq!(
            bound(&m, 5, Socket, Core),
            "0-3,8-11 0-3,8-11 0-3,8-11 0-3,8-11 4-7,12-15"
        );
        assert_eq!(bound(&m, 3, Socket, Socket), "0-3,8-11 4-7,12-15 0-3,8-11");
        assert_eq!(
            bound(&machine(2, 2, 2), 4, Numa, Numa),
            "0-1,8-9 2-3,10-11 4-5,12-13 6-7,14-15"
        );
        assert_eq!(
            bound(&machine(2, 2, 2), 4, Numa, Socket),
            "0-1,8-9 4-5,12-13 2-3,10-11 6-7,14-15"
        );
        assert_eq!(bound(&m, 20, Socket, Core).split(' ').count(), 20);
    }

    #[test]
    fn all_cores_are_used_before_any_second_thread() {
        let m = machine(1, 1, 2);
        assert_eq!(bound(&m, 4, HardwareType::Hwthread, HardwareType::Core), "0 1 2 3");
    }

    #[test]
    fn nobody_shares_a_core() {
        let m = machine(1, 1, 2);
        let rule = |to| Rule {
            to,
            by: HardwareType::Core,
            each: 1,
            row: 0,
        };
        let error = bind(&m, 3, rule(HardwareType::Core)).unwrap_err();
        assert!(error.to_string().contains("2 may be used"), "{error}");
        assert!(bind(&m, 5, rule(HardwareType::Hwthread)).is_err());
        assert!(bind(&m, 100, rule(HardwareType::Socket)).is_ok());
    }

    #[test]
    fn sockets_of_unequal_size_are_filled() {
        let mut m = machine(2, 1, 4);
        m.retain(|p| p.core < 5);
        assert_eq!(
            bound(&m, 5, HardwareType::Core, HardwareType::Socket),
            "0,8 4,12 1,9 2,10 3,11"
        );
    }

    #[test]
    fn lists_go_both_ways() {
        assert_eq!(parse_list("0-2,7\n"), Some(vec![0, 1, 2, 7]));
        assert_eq!(write_list(&[0, 1, 2, 7]), "0-2,7");
        assert_eq!(
            (parse_list("3-1"), parse_list("x"), parse_list("0-99999999")),
            (None, None, None)
        );
        assert_eq!(parse_list(""), Some(vec![]));
    }

    #[test]
    fn several_cores_for_each_process_lie_together() {
        // Two sockets of three cores of two threads each.
        let machine: Vec<Processor> = (0..12)
            .map(|number| Processor {
                number,
                core: number % 6,
                l3cache: number % 6 / 3,
                numa: number % 6 / 3,
                socket: number % 6 / 3,
            })
            .collect();
        let rule = |to, by| Rule {
            to,
            by,
            each: 2,
            row: 0,
        };
        let cores = bind(&machine, 2, rule(HardwareType::Core, HardwareType::Core)).unwrap();
        assert_eq!(cores, [vec![0, 1, 6, 7], vec![3, 4, 9, 10]]);
        let threads = bind(&machine, 3, rule(HardwareType::Hwthread, HardwareType::Socket)).unwrap();
        assert!(threads.iter().all(|set| set.len() == 2), "{threads:?}");
        assert!(threads[0].iter().all(|n| n % 6 < 3) && threads[1].iter().all(|n| n % 6 >= 3));
        let few = bind(&machine, 3, rule(HardwareType::Core, HardwareType::Core)).unwrap_err();
        let told = "3 processes cannot each be bound to 2 cores of their own: 6 may be used here";
        assert_eq!(few.to_string(), told);
    }
    #[test]
    fn so_many_processes_go_to_each_part() {
        use HardwareType::*;
        let m = machine(2, 1, 4);
        let rows = |processes, to, by, each, row| {
            let sets = bind(&m, processes, Rule { to, by, each, row });
            sets.map(|sets| sets.iter().map(|set| write_list(set)).collect::<Vec<_>>().join(" "))
                .map_err(|few| few.to_string())
        };
        let left = "0-3,8-11";
        assert_eq!(
            rows(3, Socket, Socket, 1, 2).unwrap(),
            format!("{left} {left} 4-7,12-15")
        );
        assert_eq!(rows(4, Core, Socket, 1, 2).unwrap(), "0,8 1,9 4,12 5,13");
        assert_eq!(
            rows(4, Core, Socket, 2, 2).unwrap(),
            "0-1,8-9 2-3,10-11 4-5,12-13 6-7,14-15"
        );
        assert_eq!(rows(3, Core, Core, 1, 2).unwrap(), "0,8 0,8 1,9");
        assert_eq!(rows(4, Hwthread, Core, 1, 2).unwrap(), "0 8 1 9");
        assert_eq!(rows(2, L3cache, L3cache, 1, 1).unwrap(), format!("{left} 4-7,12-15"));
        let few = rows(5, Socket, Socket, 1, 2).unwrap_err();
        assert_eq!(
            few,
            "5 processes, 2 on each socket, have room for 4: 2 may be used here"
        );
        assert!(rows(6, Core, Socket, 1, 5).unwrap_err().contains("a core of their own"));
        assert!(
            rows(4, Core, Socket, 3, 2)
                .unwrap_err()
                .contains("3 cores of their own")
        );
    }
}
