// SPDX-License-Identifier: Apache-2.0
//! What users say of processors: to what processes are bound (`bind-to`), in which order they take the parts of a
//! machine (`map-by`), in which order they are numbered (`rank-by`).
//!
//! The words are ours, and those of the launchers of MPICH and Open MPI, in their old and new spellings. Each one is
//! done, has a note that it does nothing here, or is refused by its name.

use crate::error::JobError;
use crate::quoted::shown;
use isthmus_settings::nearest;
use isthmus_topology::processors::HardwareType;

/// What was said, as it was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// `--bind-to`.
    pub bind_to: Option<String>,
    /// `--map-by`.
    pub map_by: Option<String>,
    /// `--rank-by`.
    pub rank_by: Option<String>,
    /// `--bind-each`: cores for each process, without another word.
    pub bind_each: Option<String>,
    /// `--map-each`: processes in a row on each part.
    pub map_each: Option<String>,
    /// `--report-bindings`.
    pub report: bool,
}

/// What comes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// So many processes on each host: `ppr:N:node`.
    pub per_host: Option<u32>,
    /// Processes evenly over the hosts: `node`.
    pub evenly: bool,
    /// So many processes on each of these parts, which also says how many there are: `ppr:N:PART`.
    pub per_part: Option<(u32, HardwareType)>,
    /// Variables for the processes.
    pub variables: Vec<(String, String)>,
    /// What has no effect.
    pub notes: Vec<JobError>,
}

/// What one option says.
#[derive(Default)]
struct Bound {
    /// `Some(None)`: to nothing.
    to: Option<Option<HardwareType>>,
    each: Option<u32>,
    report: bool,
    notes: Vec<JobError>,
}

#[derive(Default)]
struct Mapped {
    by: Option<HardwareType>,
    per_host: Option<u32>,
    evenly: bool,
    per_part: Option<u32>,
    each: Option<u32>,
    threads: bool,
    notes: Vec<JobError>,
}

/// Words for a whole machine.
const HOST: [&str; 4] = ["node", "host", "machine", "board"];
/// Parts as users write them.
const PARTS: [(&str, HardwareType); 7] = [
    ("hwthread", HardwareType::Hwthread),
    ("core", HardwareType::Core),
    ("l3cache", HardwareType::L3cache),
    ("numa", HardwareType::Numa),
    ("socket", HardwareType::Socket),
    ("package", HardwareType::Socket),
    ("l3", HardwareType::L3cache),
];

impl Said {
    /// What the options come to together.
    ///
    /// # Errors
    /// What is not understood, or cannot be.
    pub fn placement(&self) -> Result<Placement, JobError> {
        let bound = self.bind_to.as_deref().map(bound).transpose()?.unwrap_or_default();
        let mapped = self.map_by.as_deref().map(mapped).transpose()?.unwrap_or_default();
        let number = |option: &str, text: &Option<String>| text.as_deref().map(|t| number(option, t)).transpose();
        let each = number("bind-each", &self.bind_each)?.or(mapped.each).or(bound.each);
        let in_row = number("map-each", &self.map_each)?.or(mapped.per_part);
        let mut to = bound.to;
        // Of processors in the sense of the hardware's threads.
        if mapped.threads && to.is_none() && each.is_some() {
            to = Some(Some(HardwareType::Hwthread));
        }
        // Who says for how many cores, wants cores of their own.
        if to.is_none() && each == Some(1) {
            to = Some(Some(HardwareType::Core));
        }
        let unbound = to == Some(None);
        if unbound && mapped.by.is_some() && each.is_none() {
            return Err(
                JobError::new("processes are mapped (map-by) but bound to nothing (bind-to none)")
                    .hint("leave out one of the two: without binding the system moves processes as it likes"),
            );
        }
        if in_row.is_some() && mapped.by.is_none() {
            let error = JobError::new("map-each says how many processes go to each part, and not to which parts");
            return Err(error.hint("add --map-by socket"));
        }
        let mut notes = [bound.notes, mapped.notes].concat();
        notes.extend(
            self.rank_by
                .as_deref()
                .map(|by| numbered(by, mapped.by))
                .transpose()?
                .flatten(),
        );
        let by = mapped.by.filter(|_| !unbound);
        let word = |part: HardwareType| part.name().to_owned();
        let given = [
            (
                isthmus_settings::BIND_TO.name,
                to.map(|to| to.map_or_else(|| "none".to_owned(), word)),
            ),
            (isthmus_settings::MAP_BY.name, by.map(word)),
            (
                isthmus_settings::BIND_EACH.name,
                each.filter(|each| !unbound && *each > 1).map(|each| each.to_string()),
            ),
            (
                isthmus_settings::MAP_EACH.name,
                in_row.filter(|_| !unbound).map(|row| row.to_string()),
            ),
            (
                isthmus_settings::REPORT_BINDINGS.name,
                (self.report || bound.report).then(|| "1".to_owned()),
            ),
        ];
        let given = given.into_iter();
        Ok(Placement {
            per_host: mapped.per_host,
            evenly: mapped.evenly,
            per_part: mapped.per_part.zip(mapped.by),
            variables: given
                .filter_map(|(name, value)| Some((name.to_owned(), value?)))
                .collect(),
            notes,
        })
    }

    /// What one key of a file or a site says: `bind_to`, `map_by`, `bind_each`, `map_each`, `report_bindings`. Numbers
    /// of processes are given there in other words.
    ///
    /// # Errors
    /// It makes no sense.
    pub(crate) fn of_key(key: &str, value: &str) -> Result<Vec<(String, String)>, JobError> {
        let value = Some(value.to_owned());
        let mut said = Self::default();
        match key {
            "bind_to" => said.bind_to = value,
            "map_by" => said.map_by = value,
            "bind_each" => said.bind_each = value,
            // What it counts may stand in another key.
            "map_each" => {
                let number = number("map-each", value.as_deref().unwrap_or_default())?;
                return Ok(vec![(isthmus_settings::MAP_EACH.name.to_owned(), number.to_string())]);
            }
            _ => match value.as_deref() {
                Some("true" | "yes" | "1" | "") => said.report = true,
                Some("false" | "no" | "0") => {}
                _ => return Err(JobError::new("report_bindings is true or false")),
            },
        }
        let placement = said.placement()?;
        if placement.per_host.is_some() || placement.evenly {
            let error = JobError::new(format!(
                "{key} cannot be '{}' here",
                shown(said.map_by.as_deref().unwrap_or_default())
            ));
            return Err(error.hint(format!(
                "the number of processes of a site is its count; {key} can be {}",
                parts()
            )));
        }
        if placement.variables.is_empty() && said.map_by.is_some() {
            return Err(
                JobError::new(format!("{key} names no part of a machine")).hint(format!("it can be {}", parts()))
            );
        }
        Ok(placement.variables)
    }
}

/// `ppr:N:PART` without a number of processes, for hosts whose parts nobody here knows.
pub fn unknown_parts(each: u32, part: HardwareType) -> JobError {
    let part = part.name();
    let problem = format!("map-by is 'ppr:{each}:{part}': the number of such parts on other hosts is not known here");
    JobError::new(problem).hint(format!(
        "add the number of processes, for example -n 8, or write ppr:{each}:node"
    ))
}

/// All parts, for people.
fn parts() -> String {
    HardwareType::ALL.map(HardwareType::name).join(", ")
}

fn number(option: &str, text: &str) -> Result<u32, JobError> {
    let number = text.parse().ok().filter(|number| (1..=65_536).contains(number));
    number.ok_or_else(|| {
        JobError::new(format!("{option} is '{}', which is not a number from 1", shown(text))).hint("for example 2")
    })
}

/// Words that other launchers have and that are not done here.
fn refused(option: &str, word: &str) -> Option<JobError> {
    let first = word.split([':', ',']).next();
    if PARTS.iter().any(|(name, _)| Some(*name) == first) {
        return None;
    }
    let starts = |with: &str| word == with || word.starts_with(&format!("{with}:"));
    let hint = match word {
        _ if starts("user") || word.starts_with("pe-list") => {
            "processors are not named one by one: --bind-to core or --map-by PART:pe=N, or taskset -c LIST in front of the command"
        }
        _ if word.starts_with("pci")
            || word.starts_with("gpu")
            || word.starts_with("ib")
            || word.starts_with("hfi") =>
        {
            "devices are not looked at: --bind-to numa or socket; programs find their rank on the node with MPI_Comm_split_type"
        }
        _ if starts("en") || starts("eth") || word.starts_with("dist") => {
            "devices are not looked at: --bind-to numa or socket, --map-by numa or socket"
        }
        "seq" | "sequential" => "processes go to the hosts in their order: -host A:1,B:1 gives A rank 0 and B rank 1",
        _ if word.starts_with("rankfile") => "ranks follow the order of the hosts: -host A:2,B:1 gives A ranks 0 and 1",
        _ if word.starts_with('l') && word.contains("cache") => {
            "of the caches only l3cache is a part here: processes that share a smaller one share a core, so use core"
        }
        _ => return None,
    };
    Some(JobError::new(format!("{option} is '{}', which Isthmus does not support", shown(word))).hint(hint))
}

fn part(option: &str, word: &str) -> Result<HardwareType, JobError> {
    if let Some((_, part)) = PARTS.iter().find(|(name, _)| *name == word) {
        return Ok(*part);
    }
    if let Some(error) = refused(option, word) {
        return Err(error);
    }
    let none = (option == "bind-to").then_some("none");
    let known: Vec<&str> = none
        .into_iter()
        .chain(HardwareType::ALL.map(HardwareType::name))
        .collect();
    let error = JobError::new(format!("{option} cannot be '{}'", shown(word)));
    Err(match nearest(word, &known) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None if option == "map-by" => error.hint(format!("it can be {}, node or ppr:N:PART", known.join(", "))),
        None => error.hint(format!("it can be {}", known.join(", "))),
    })
}

fn not_understood(option: &str, value: &str, modifier: &str, hint: &str) -> JobError {
    let (value, modifier) = (shown(value), shown(modifier));
    JobError::new(format!("{option} is '{value}': '{modifier}' is not understood")).hint(hint)
}

fn without_effect(option: &str, value: &str, word: &str, why: &str) -> JobError {
    JobError::new(format!("'{}' of {option} {} has no effect", shown(word), shown(value))).hint(why)
}

/// Reads the value of `--bind-to`: `PART`, `PART:N` as MPICH has it, with the modifiers of Open MPI.
fn bound(value: &str) -> Result<Bound, JobError> {
    let low = value.to_ascii_lowercase();
    if let Some(error) = refused("bind-to", &low) {
        return Err(error);
    }
    let mut words = low.split([':', ',']);
    let first = words.next().unwrap_or_default();
    let mut found = Bound {
        to: match first {
            // As every job does it.
            "" | "default" => None,
            "none" => Some(None),
            word if HOST.contains(&word) => Some(None),
            // In the order of the system's numbers.
            "rr" => Some(Some(HardwareType::Hwthread)),
            word => Some(Some(part("bind-to", word)?)),
        },
        ..Bound::default()
    };
    let single = matches!(found.to, Some(Some(part)) if part <= HardwareType::Core);
    for word in words {
        match (word, word.parse::<u32>()) {
            ("if-supported" | "no-overload" | "nooverload" | "ordered", _) => {}
            ("report", _) => found.report = true,
            ("overload-allowed" | "overload", _) => found.notes.push(without_effect(
                "bind-to",
                value,
                word,
                "a core is given once; where there are too few, bind to a larger part (--bind-to socket) or to none",
            )),
            (_, Ok(1)) => {}
            (_, Ok(number)) if single && (2..=65_536).contains(&number) => found.each = Some(number),
            (_, Ok(_)) => {
                let hint = "several can be given of cores and hardware threads: --bind-to core:2";
                return Err(not_understood("bind-to", value, word, hint));
            }
            _ => {
                let hint = "PART, or core:N and hwthread:N for N of them, each also with :if-supported";
                return Err(not_understood("bind-to", value, word, hint));
            }
        }
    }
    Ok(found)
}

/// What `--map-by` can be.
const FORMS: &str = "PART, node, ppr:N:node or ppr:N:PART, each also with :pe=N, :span, :oversubscribe";

/// Reads the value of `--map-by`: `PART`, `node`, `ppr:N:node`, `ppr:N:PART`, each with modifiers.
fn mapped(value: &str) -> Result<Mapped, JobError> {
    let low = value.to_ascii_lowercase();
    if let Some(error) = refused("map-by", &low) {
        return Err(error);
    }
    let words: Vec<&str> = low.split([':', ',']).collect();
    let mut found = Mapped::default();
    let rest = match words.as_slice() {
        ["ppr", each, place, rest @ ..] => {
            let each = number("the number in map-by ppr", each)?;
            match HOST.contains(place) {
                true => found.per_host = Some(each),
                false => {
                    found.by = Some(part("map-by", place)?);
                    found.per_part = Some(each);
                }
            }
            rest
        }
        ["ppr", ..] => {
            return Err(JobError::new(format!("map-by cannot be '{}'", shown(value)))
                .hint("write ppr:N:node for N processes on each host, or ppr:N:socket"));
        }
        [place, rest @ ..] if HOST.contains(place) => {
            found.evenly = true;
            rest
        }
        // The order of the slots is the order in which processes are placed anyway.
        ["slot" | "", rest @ ..] => rest,
        ["rr", rest @ ..] => {
            found.by = Some(HardwareType::Hwthread);
            rest
        }
        [place, rest @ ..] => {
            found.by = Some(part("map-by", place)?);
            rest
        }
        [] => &[],
    };
    for word in rest {
        modify(&mut found, value, word)?;
    }
    Ok(found)
}

/// Takes one modifier of `--map-by`.
fn modify(found: &mut Mapped, value: &str, word: &str) -> Result<(), JobError> {
    let (name, text) = word.split_once('=').unwrap_or((word, ""));
    match (name, text.parse::<u32>()) {
        ("pe", Ok(each)) if (1..=65_536).contains(&each) => found.each = Some(each),
        // More processes than processors are never refused; the rest is so in any case.
        ("oversubscribe" | "inherit" | "noinherit" | "ordered" | "corecpus" | "1", _) if text.is_empty() => {}
        // Over all of them at once, and not first those of one host.
        ("span", _) if text.is_empty() => found.evenly = true,
        ("hwtcpus", _) if text.is_empty() => found.threads = true,
        ("nooversubscribe" | "nolocal" | "donotlaunch", _) if text.is_empty() => {
            let why = match name {
                "nolocal" => "name the other hosts with -host",
                "donotlaunch" => "isthmus run --dry-run starts nothing",
                _ => "give each host as many processes as it has slots: -host A:4",
            };
            found.notes.push(without_effect("map-by", value, word, why));
        }
        _ if name.starts_with("display") => {
            let why = "--report-bindings shows which processors each process has";
            found.notes.push(without_effect("map-by", value, word, why));
        }
        ("pe-list" | "device" | "file" | "qfile", _) => {
            return Err(refused("map-by", "pe-list").unwrap_or_else(|| JobError::new(word)));
        }
        _ => return Err(not_understood("map-by", value, word, FORMS)),
    }
    Ok(())
}

/// `--rank-by`: processes of a host are numbered in the order in which they are mapped, and hosts one after the other.
fn numbered(value: &str, by: Option<HardwareType>) -> Result<Option<JobError>, JobError> {
    let low = value.to_ascii_lowercase();
    let first = low.split(':').next().unwrap_or_default();
    let as_it_is = match first {
        "slot" | "fill" => true,
        word if HOST.contains(&word) || word == "span" => false,
        word => Some(part("rank-by", word)?) == by || (by.is_none() && word == "core"),
    };
    Ok((!as_it_is).then(|| {
        JobError::new(format!("--rank-by {} has no effect", shown(value))).hint(
            "ranks of a host follow each other, in the order in which --map-by places them; hosts follow in the order of -host",
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Result<Placement, JobError> {
        let mut said = Said::default();
        for word in line.split_whitespace() {
            let (option, value) = word.split_once('=').unwrap();
            let value = Some(value.to_owned());
            match option {
                "to" => said.bind_to = value,
                "by" => said.map_by = value,
                "rank" => said.rank_by = value,
                "each" => said.bind_each = value,
                _ => said.map_each = value,
            }
        }
        said.placement()
    }

    /// Variables without their common beginning, and what is said of hosts.
    fn means(line: &str) -> String {
        let found = said(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let variables = found.variables.iter();
        let mut all: Vec<String> = variables
            .map(|(name, value)| format!("{}={value}", name.trim_start_matches("ISTHMUS_")))
            .collect();
        all.extend(found.per_host.map(|each| format!("{each} a host")));
        all.extend(found.evenly.then(|| "evenly".to_owned()));
        all.extend(found.per_part.map(|(each, part)| format!("{each} a {}", part.name())));
        all.extend((!found.notes.is_empty()).then(|| "note".to_owned()));
        all.join(" ")
    }

    #[test]
    fn words_of_all_launchers_are_done() {
        for (line, expected) in [
            ("to=core", "BIND_TO=core"),
            ("to=package", "BIND_TO=socket"),
            ("to=L3cache", "BIND_TO=l3cache"),
            ("to=core:2", "BIND_TO=core BIND_EACH=2"),
            ("to=numa:1", "BIND_TO=numa"),
            ("to=hwthread:if-supported", "BIND_TO=hwthread"),
            ("to=core:report", "BIND_TO=core REPORT_BINDINGS=1"),
            ("to=machine", "BIND_TO=none"),
            ("to=default", ""),
            ("to=rr", "BIND_TO=hwthread"),
            ("to=core:overload-allowed", "BIND_TO=core note"),
            ("by=core", "MAP_BY=core"),
            ("by=slot", ""),
            ("by=:oversubscribe", ""),
            ("by=socket:span", "MAP_BY=socket evenly"),
            ("by=node:span", "evenly"),
            ("by=node:pe=2", "BIND_EACH=2 evenly"),
            ("by=socket:PE=8,OVERSUBSCRIBE", "MAP_BY=socket BIND_EACH=8"),
            ("by=slot:pe=2:hwtcpus", "BIND_TO=hwthread BIND_EACH=2"),
            ("by=ppr:4:node", "4 a host"),
            ("by=ppr:4:node:PE=2", "BIND_EACH=2 4 a host"),
            ("by=ppr:2:package", "MAP_BY=socket MAP_EACH=2 2 a socket"),
            ("by=ppr:1:numa:pe=4", "MAP_BY=numa BIND_EACH=4 MAP_EACH=1 1 a numa"),
            ("by=numa:nolocal", "MAP_BY=numa note"),
            ("by=socket each=4", "MAP_BY=socket BIND_EACH=4"),
            (
                "by=ppr:2:socket:pe=1",
                "BIND_TO=core MAP_BY=socket MAP_EACH=2 2 a socket",
            ),
            ("by=socket row=4", "MAP_BY=socket MAP_EACH=4"),
            ("by=slot:pe=2 to=none", "BIND_TO=none"),
            ("rank=slot", ""),
            ("rank=fill by=core", "MAP_BY=core"),
            ("rank=package by=socket", "MAP_BY=socket"),
            ("rank=core by=socket", "MAP_BY=socket note"),
            ("rank=node", "note"),
        ] {
            assert_eq!(means(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_not_done_is_refused_by_name() {
        for (line, words) in [
            ("to=cores", "did you mean 'core'?"),
            ("to=user:0+2,1", "taskset"),
            ("to=gpu:1", "devices"),
            ("to=pci:0000", "devices"),
            ("to=ib0", "devices"),
            ("to=l2cache", "l3cache"),
            ("to=socket:2", "several can be given"),
            ("to=core:x", "not understood"),
            ("to=core:0", "several can be given"),
            ("by=seq", "-host A:1,B:1"),
            ("by=dist:span", "devices"),
            ("by=pe-list=0,1", "taskset"),
            ("by=rankfile:file=x", "order of the hosts"),
            ("by=ppr", "ppr:N:node"),
            ("by=ppr:0:node", "not a number from 1"),
            ("by=ppr:x:socket", "not a number from 1"),
            ("by=ppr:2:sockets", "did you mean 'socket'?"),
            ("by=node:pe=0", "not understood"),
            ("by=node:pe", "not understood"),
            ("by=core:4", "not understood"),
            ("by=core to=none", "bound to nothing"),
            ("row=2", "--map-by socket"),
            ("each=0", "not a number from 1"),
            ("rank=nonsense", "rank-by cannot be 'nonsense'"),
        ] {
            let error = said(line).expect_err(line).to_string();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
