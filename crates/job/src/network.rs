// SPDX-License-Identifier: Apache-2.0
//! What a user may pin of a site's network: `path`, `ports`, `address`. They travel as variables of its processes, where a user can
//! set them too.

use crate::error::JobError;

/// Keys and the variables that they stand for.
pub const KEYS: [(&str, &str); 3] = [
    ("path", "ISTHMUS_PATH"),
    ("ports", "ISTHMUS_PORTS"),
    ("address", "ISTHMUS_ADDRESS"),
];

/// The variable for a key, when the value makes sense; `None` for other keys.
pub fn variable(site: &str, key: &str, value: &str) -> Result<Option<(String, String)>, JobError> {
    let Some((_, name)) = KEYS.iter().find(|(k, _)| *k == key) else {
        return Ok(None);
    };
    let wrong = |what: &str, hint: &str| JobError::new(format!("site '{site}': {key} = '{value}' {what}")).hint(hint);
    match key {
        "path" if !["auto", "direct", "gateway", "ssh"].contains(&value) => {
            Err(wrong("is no path", "auto, direct, gateway or ssh"))
        }
        "ports" if !is_range(value) => Err(wrong("is no range of ports", "for example 5000-5100")),
        "address" if value.trim().is_empty() => {
            Err(wrong("is empty", "addresses or names of interfaces, separated by ,"))
        }
        _ => Ok(Some(((*name).to_owned(), value.to_owned()))),
    }
}

fn is_range(text: &str) -> bool {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse::<u16>(), last.trim().parse::<u16>());
    matches!((first, last), (Ok(first), Ok(last)) if first > 0 && first <= last)
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
    fn keys_become_variables_and_others_stay() {
        let (own, rest) = split("lab", Some("path=gateway,scheduler=slurm,ports=5000-5010")).unwrap();
        let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        assert_eq!(
            own,
            [pair("ISTHMUS_PATH", "gateway"), pair("ISTHMUS_PORTS", "5000-5010")]
        );
        assert_eq!(rest.as_deref(), Some("scheduler=slurm"));
        for wrong in ["path=tunnel", "ports=0", "ports=9-8", "address="] {
            assert!(split("lab", Some(wrong)).is_err(), "{wrong}");
        }
    }
}
