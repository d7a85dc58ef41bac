// SPDX-License-Identifier: Apache-2.0
//! What a user may pin of a site: of its network `path`, `ports`, `address`, of its processors `bind_to` and `map_by`,
//! of its files `umask`. They travel as variables of its processes, where a user can set them too.

use crate::error::JobError;
use isthmus_settings::nearest;
use isthmus_topology::processors::Part;

/// Keys and the variables that they stand for.
pub const KEYS: [(&str, &str); 6] = [
    ("path", isthmus_settings::PATH.name),
    ("ports", isthmus_settings::PORTS.name),
    ("address", isthmus_settings::ADDRESS.name),
    ("bind_to", isthmus_settings::BIND_TO.name),
    ("map_by", isthmus_settings::MAP_BY.name),
    ("umask", isthmus_settings::UMASK.name),
];

/// The variable for the key `files` of a job.
pub(crate) const FILE_SCOPE: &str = isthmus_settings::FILE_SCOPE.name;

/// The variable for a key, when the value makes sense; `None` for other keys.
pub fn variable(site: &str, key: &str, value: &str) -> Result<Option<(String, String)>, JobError> {
    let Some((_, name)) = KEYS.iter().find(|(k, _)| *k == key) else {
        return Ok(None);
    };
    let wrong = |what: &str, hint: &str| JobError::new(format!("site '{site}': {key} = '{value}' {what}")).hint(hint);
    match key {
        "path" if !isthmus_settings::PATH.words.contains(&value) => {
            Err(wrong("is no path", "auto, direct, gateway or ssh"))
        }
        "ports" if isthmus_settings::PORTS.read(|_| Some(value.into())).is_none() => {
            Err(wrong("is no range of ports", "for example 5000-5100"))
        }
        "address" if value.trim().is_empty() => {
            Err(wrong("is empty", "addresses or names of interfaces, separated by ,"))
        }
        "umask" if umask(value).is_none() => Err(wrong(
            "is no umask",
            "three octal digits from 000 to 077, for example 027",
        )),
        "bind_to" | "map_by" => match binding(key, value) {
            Ok(_) => Ok(Some(((*name).to_owned(), value.to_owned()))),
            Err(error) => Err(JobError {
                problem: format!("site '{site}': {}", error.problem),
                ..error
            }),
        },
        _ => Ok(Some(((*name).to_owned(), value.to_owned()))),
    }
}

/// The umask that these octal digits are. What it takes from the owner is not taken: our own files would be lost.
pub fn umask(value: &str) -> Option<u32> {
    let digits = (1..=4).contains(&value.len()) && value.bytes().all(|b| (b'0'..=b'7').contains(&b));
    let mask = digits.then(|| u32::from_str_radix(value, 8).ok()).flatten();
    mask.filter(|mask| *mask <= 0o077)
}

/// What processes are bound to, or mapped by; `None`: not bound.
pub fn binding(option: &str, value: &str) -> Result<Option<Part>, JobError> {
    let none = option.starts_with("bind").then_some("none");
    if Some(value) == none {
        return Ok(None);
    }
    // Open MPI's and MPICH's word for the order of slots.
    let value = if none.is_none() && value == "slot" {
        "core"
    } else {
        value
    };
    if let Some(part) = Part::named(value) {
        return Ok(Some(part));
    }
    let known: Vec<&str> = none.into_iter().chain(Part::ALL.map(Part::name)).collect();
    let error = JobError::new(format!("{option} is '{value}'"));
    // Other launchers say with it how many processes each host gets.
    let about_hosts = |word: &str| value == word || value.starts_with(&format!("{word}:"));
    if none.is_none() && ["node", "ppr", "host", "machine"].iter().any(|word| about_hosts(word)) {
        return Err(error.hint(format!(
            "to set the number of processes for each host, use -ppn N or NAME:N; this option is about parts of a machine: {}",
            known.join(", ")
        )));
    }
    Err(match nearest(value, &known) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint(format!("it can be {}", known.join(", "))),
    })
}

/// What another launcher's `map-by` says: of hosts, of parts of a machine, of processors of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// So many processes on each host: `ppr:N:node`.
    pub per_host: Option<u32>,
    /// Processes evenly over the hosts: `node`.
    pub evenly: bool,
    /// The part of a machine.
    pub part: Option<String>,
    /// So many processors for each process: `pe=N`.
    pub threads: Option<u32>,
}

/// Reads it: `PART`, `node` or `ppr:N:node`, each also with `:pe=N`.
pub fn mapping(value: &str) -> Result<Mapping, JobError> {
    let host = |word: &str| ["node", "host", "machine"].contains(&word);
    let parts: Vec<&str> = value.split([':', ',']).collect();
    let (mut mapping, rest) = match parts.as_slice() {
        ["ppr", each, place, rest @ ..] if host(place) => {
            let number = each.parse().ok().filter(|number| *number > 0);
            let per_host = Some(number.ok_or_else(|| JobError::new(format!("'{each}' is not a number of processes")))?);
            (
                Mapping {
                    per_host,
                    ..Mapping::default()
                },
                rest,
            )
        }
        [place, rest @ ..] if host(place) => (
            Mapping {
                evenly: true,
                ..Mapping::default()
            },
            rest,
        ),
        [part, rest @ ..] if *part != "ppr" => {
            binding("map-by", part)?;
            let part = Some((*part).to_owned());
            (
                Mapping {
                    part,
                    ..Mapping::default()
                },
                rest,
            )
        }
        _ => return Err(binding("map-by", value).err().unwrap_or_else(|| JobError::new(value))),
    };
    for modifier in rest {
        let (name, number) = modifier.split_once('=').unwrap_or((modifier, ""));
        match (&*name.to_ascii_lowercase(), number.parse::<u32>()) {
            ("pe", Ok(number)) if number > 0 => mapping.threads = Some(number),
            // More processes than processors are never refused.
            ("oversubscribe", _) if number.is_empty() => {}
            _ => {
                let shown = crate::quoted::shown(modifier);
                return Err(
                    JobError::new(format!("map-by is '{value}': '{shown}' is not understood"))
                        .hint("PART, node or ppr:N:node, each also with :pe=N"),
                );
            }
        }
    }
    Ok(mapping)
}

/// The variable for so many processors of each process.
pub fn bind_each(each: u32) -> (String, String) {
    (isthmus_settings::BIND_EACH.name.to_owned(), each.to_string())
}

/// Options for all sites: `--bind-to` and `--map-by`.
pub fn check_binding(to: Option<&str>, by: Option<&str>) -> Result<(), JobError> {
    let bound = to.map(|to| binding("bind-to", to)).transpose()?;
    let mapped = by.map(|by| binding("map-by", by)).transpose()?;
    match (bound, mapped) {
        (Some(None), Some(_)) => Err(JobError::new(
            "processes are mapped (map-by) but bound to nothing (bind-to none)",
        )
        .hint("leave out one of the two: without binding the system moves processes as it likes")),
        _ => Ok(()),
    }
}

/// Variables, and what is left of the options.
type Split = (Vec<(String, String)>, Option<String>);

/// Takes these keys out of `KEY=VALUE,...`.
pub(crate) fn split(site: &str, options: Option<&str>) -> Result<Split, JobError> {
    let (mut own, mut rest) = (Vec::new(), Vec::new());
    for option in options.into_iter().flat_map(|o| o.split(',')) {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        match variable(site, key, value)? {
            Some(pair) => own.push(pair),
            None => rest.push(option),
        }
    }
    Ok((own, (!rest.is_empty()).then(|| rest.join(","))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_are_checked() {
        assert_eq!(binding("bind-to", "none").unwrap(), None);
        assert_eq!(binding("bind-to", "core").unwrap(), Some(Part::Core));
        assert_eq!(binding("map-by", "slot").unwrap(), Some(Part::Core));
        let error = binding("bind-to", "sockets").unwrap_err();
        assert!(error.to_string().contains("did you mean 'socket'?"), "{error}");
        for theirs in ["node", "ppr:2:node"] {
            let error = binding("map-by", theirs).unwrap_err();
            assert!(error.to_string().contains("-ppn N"), "{error}");
        }
        assert!(check_binding(Some("none"), Some("core")).is_err());
        assert!(check_binding(Some("core"), Some("socket")).is_ok());
    }

    #[test]
    fn what_other_launchers_map_by() {
        let plain = Mapping::default();
        for (text, expected) in [
            (
                "core",
                Mapping {
                    part: Some("core".into()),
                    ..plain.clone()
                },
            ),
            (
                "ppr:4:node",
                Mapping {
                    per_host: Some(4),
                    ..plain.clone()
                },
            ),
            (
                "ppr:4:node:PE=2",
                Mapping {
                    per_host: Some(4),
                    threads: Some(2),
                    ..plain.clone()
                },
            ),
            (
                "node",
                Mapping {
                    evenly: true,
                    ..plain.clone()
                },
            ),
            (
                "node:pe=2",
                Mapping {
                    evenly: true,
                    threads: Some(2),
                    ..plain.clone()
                },
            ),
            (
                "socket:PE=8,OVERSUBSCRIBE",
                Mapping {
                    part: Some("socket".into()),
                    threads: Some(8),
                    ..plain.clone()
                },
            ),
        ] {
            assert_eq!(mapping(text), Ok(expected), "{text}");
        }
        for wrong in [
            "ppr:0:node",
            "ppr:x:node",
            "ppr:2:socket",
            "ppr",
            "node:pe=0",
            "node:pe",
            "node:x",
            "sockets",
            "",
        ] {
            assert!(mapping(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_become_variables_and_others_stay() {
        assert_eq!(umask("0027"), Some(0o027));
        let (own, rest) = split("lab", Some("path=gateway,scheduler=slurm,ports=5000-5010")).unwrap();
        let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        assert_eq!(
            own,
            [pair("ISTHMUS_PATH", "gateway"), pair("ISTHMUS_PORTS", "5000-5010")]
        );
        assert_eq!(rest.as_deref(), Some("scheduler=slurm"));
        let wrong = [
            "path=tunnel",
            "ports=0",
            "ports=9-8",
            "address=",
            "bind_to=cores",
            "map_by=none",
            "map_by=node:PE=2",
            "umask=777",
            "umask=08",
            "umask=",
        ];
        for wrong in wrong {
            assert!(split("lab", Some(wrong)).is_err(), "{wrong}");
        }
    }
}
