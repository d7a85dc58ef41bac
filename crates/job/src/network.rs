// SPDX-License-Identifier: Apache-2.0
//! What a user may pin of a site: of its network `path`, `ports`, `address`, of its processors `bind_to`, `map_by` and
//! their kin, of its files `umask`. They travel as variables of its processes, where a user can set them too.

use crate::error::JobError;
use crate::placement::Said;

/// Keys and the variables that they stand for.
pub const KEYS: [(&str, &str); 9] = [
    ("path", isthmus_settings::PATH.name),
    ("ports", isthmus_settings::PORTS.name),
    ("address", isthmus_settings::ADDRESS.name),
    ("bind_to", isthmus_settings::BIND_TO.name),
    ("bind_each", isthmus_settings::BIND_EACH.name),
    ("map_by", isthmus_settings::MAP_BY.name),
    ("map_each", isthmus_settings::MAP_EACH.name),
    ("report_bindings", isthmus_settings::REPORT_BINDINGS.name),
    ("umask", isthmus_settings::UMASK.name),
];

/// The variable for the key `files` of a job.
pub(crate) const FILE_SCOPE: &str = isthmus_settings::FILE_SCOPE.name;

/// The variables for a key, when the value makes sense; `None` for other keys.
pub fn variables(site: &str, key: &str, value: &str) -> Result<Option<Vec<(String, String)>>, JobError> {
    let Some((_, name)) = KEYS.iter().find(|(k, _)| *k == key) else {
        return Ok(None);
    };
    let wrong = |what: &str, hint: &str| JobError::new(format!("site '{site}': {key} = '{value}' {what}")).hint(hint);
    match key {
        "path" if !isthmus_settings::PATH.words.contains(&value) => {
            Err(wrong("is not a path", "auto, direct, gateway or ssh"))
        }
        "ports" if isthmus_settings::PORTS.read(|_| Some(value.into())).is_none() => {
            Err(wrong("is not a range of ports", "for example 5000-5100"))
        }
        "address" if value.trim().is_empty() => {
            Err(wrong("is empty", "addresses or names of interfaces, separated by ,"))
        }
        "umask" if umask(value).is_none() => Err(wrong(
            "is not a umask",
            "three octal digits from 000 to 077, for example 027",
        )),
        "bind_to" | "bind_each" | "map_by" | "map_each" | "report_bindings" => match Said::of_key(key, value) {
            Ok(variables) => Ok(Some(variables)),
            Err(error) => Err(JobError {
                problem: format!("site '{site}': {}", error.problem),
                ..error
            }),
        },
        _ => Ok(Some(vec![((*name).to_owned(), value.to_owned())])),
    }
}

/// The umask that these octal digits are. What it takes from the owner is not taken: our own files would be lost.
pub fn umask(value: &str) -> Option<u32> {
    let digits = (1..=4).contains(&value.len()) && value.bytes().all(|b| (b'0'..=b'7').contains(&b));
    let mask = digits.then(|| u32::from_str_radix(value, 8).ok()).flatten();
    mask.filter(|mask| *mask <= 0o077)
}

/// Variables, and what is left of the options.
type Split = (Vec<(String, String)>, Option<String>);

/// Takes these keys out of `KEY=VALUE,...`.
pub(crate) fn split(site: &str, options: Option<&str>) -> Result<Split, JobError> {
    let (mut own, mut rest) = (Vec::new(), Vec::new());
    for option in options.into_iter().flat_map(|o| o.split(',')) {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        match variables(site, key, value)? {
            Some(pairs) => own.extend(pairs),
            None => rest.push(option),
        }
    }
    Ok((own, (!rest.is_empty()).then(|| rest.join(","))))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let (own, _) = split("lab", Some("map_by=ppr:2:socket:pe=4,report_bindings,map_each=3")).unwrap();
        let names: Vec<String> = own.into_iter().map(|(n, v)| format!("{n}={v}")).collect();
        let placed =
            "ISTHMUS_MAP_BY=socket ISTHMUS_BIND_EACH=4 ISTHMUS_MAP_EACH=2 ISTHMUS_REPORT_BINDINGS=1 ISTHMUS_MAP_EACH=3";
        assert_eq!(names.join(" "), placed);
        let wrong = [
            "path=tunnel",
            "ports=0",
            "ports=9-8",
            "address=",
            "bind_to=cores",
            "map_by=none",
            "map_by=node:PE=2",
            "map_by=ppr:2:node",
            "map_by=",
            "bind_each=0",
            "map_each=x",
            "report_bindings=maybe",
            "umask=777",
            "umask=08",
            "umask=",
        ];
        for wrong in wrong {
            assert!(split("lab", Some(wrong)).is_err(), "{wrong}");
        }
    }
}
