// SPDX-License-Identifier: Apache-2.0
//! The generated half of `crates/settings`: a constant for each setting, the table of all, our info keys.

use std::fmt::Write as _;

use super::rust::HEAD;
use crate::spec::{Setting, Spec, rows};
use crate::tree::Result;

/// The constants and the table.
pub(crate) fn table(spec: &Spec) -> Result<String> {
    let mut out = format!(
        "{HEAD}//! Every setting as a constant, and the table of all.\n\n\
         use crate::kind::*;\nuse crate::{{Kind, Setting}};\n"
    );
    let mut rows = String::from("\n/// Every setting.\npub static SETTINGS: &[Setting] = &[\n");
    for setting in &spec.settings {
        let reading = Reading::of(setting).ok_or_else(|| {
            let Setting {
                name, kind, default, ..
            } = setting;
            format!("spec/settings.tsv: {name}: kind `{kind}` with the default `{default}`")
        })?;
        let constant = setting.name.trim_start_matches("ISTHMUS_");
        let Reading { kind, of, fields } = reading;
        let Setting { name, help, .. } = setting;
        let _ = writeln!(
            out,
            "\n/// {}\npub const {constant}: {of} = {of} {{ name: {name:?}{fields} }};",
            help.replace('[', "\\[")
        );
        let _ = writeln!(
            rows,
            "    Setting {{\n        name: {name:?},\n        unit: {:?},\n        default: {:?},\n        \
             reason: {:?},\n        scope: {:?},\n        help: {help:?},\n        kind: Kind::{kind}({constant}),\n    }},",
            setting.unit, setting.default, setting.reason, setting.scope
        );
    }
    Ok(out + &rows + "];\n")
}

/// Our own info keys.
pub(crate) fn hints() -> Result<String> {
    let mut out = format!("{HEAD}\n/// Info keys of ours that have a meaning.\npub const HINTS: &[&str] = &[\n");
    for [key, ..] in rows::<5>("spec/hints.tsv")? {
        if key.starts_with("isthmus_") {
            let _ = writeln!(out, "    {key:?},");
        }
    }
    Ok(out + "];\n")
}

/// How one is read, as code.
struct Reading {
    /// Name of the variant of `Kind`.
    kind: &'static str,
    /// Name of the type.
    of: &'static str,
    /// Its fields after the name.
    fields: String,
}

impl Reading {
    /// `None`: the row does not fit together.
    fn of(setting: &Setting) -> Option<Self> {
        let (kind, rest) = setting.kind.split_once(' ').unwrap_or((&setting.kind, ""));
        let plain = |kind, of| Some((kind, of, String::new()));
        let number = || setting.default.parse::<u64>().ok();
        let (kind, of, fields) = match kind {
            "flag" => ("Flag", "Flag", format!(", default: {}", truth(&setting.default)?)),
            "switch" => plain("Switch", "Switch")?,
            "seconds" => (
                "Seconds",
                "Seconds",
                format!(", default: {}{}", number()?, bounds(rest)?),
            ),
            "number" => ("Number", "Number", format!(", default: {}{}", number()?, bounds(rest)?)),
            "optional" => {
                let (range, none) = rest
                    .split_once(' ')
                    .map_or((rest, None), |(range, none)| (range, Some(none)));
                ("Optional", "Optional", format!(", none: {none:?}{}", bounds(range)?))
            }
            "word" => ("Word", "Word", words(rest, &setting.default)),
            "ports" => plain("Ports", "Ports")?,
            "list" => plain("List", "List")?,
            "command" => ("Command", "Command", format!(", default: {:?}", setting.default)),
            "text" => plain("Text", "Text")?,
            "path" => plain("Path", "PathName")?,
            _ => return None,
        };
        Some(Self { kind, of, fields })
    }
}

fn truth(default: &str) -> Option<bool> {
    match default {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

/// `1..64`, or `0..` without an upper bound.
fn bounds(text: &str) -> Option<String> {
    let (least, most) = text.split_once("..")?;
    let least: u64 = least.parse().ok()?;
    let most = match most {
        "" => "u64::MAX".to_owned(),
        most => most.parse::<u64>().ok().filter(|m| *m >= least)?.to_string(),
    };
    Some(format!(", least: {least}, most: {most}"))
}

/// `a|b|c`. The default in the table is for people; where it is one of the words, it is the value.
fn words(text: &str, default: &str) -> String {
    let words: Vec<&str> = text.split('|').collect();
    let default = words.iter().find(|word| **word == default);
    format!(", default: {default:?}, words: &{words:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, default: &str) -> Option<String> {
        let setting = Setting {
            name: "ISTHMUS_X".into(),
            unit: String::new(),
            kind: kind.into(),
            default: default.into(),
            reason: String::new(),
            scope: String::new(),
            help: String::new(),
        };
        Reading::of(&setting).map(|r| r.fields)
    }

    #[test]
    fn a_default_must_fit_its_kind() {
        assert_eq!(read("number 1..64", "1").unwrap(), ", default: 1, least: 1, most: 64");
        assert_eq!(
            read("optional 0..", "none").unwrap(),
            ", none: None, least: 0, most: u64::MAX"
        );
        assert_eq!(
            read("word a|b", "b").unwrap(),
            ", default: Some(\"b\"), words: &[\"a\", \"b\"]"
        );
        for (kind, default) in [
            ("flag", "perhaps"),
            ("number 1..64", "auto"),
            ("number 9..1", "1"),
            ("colour", "red"),
        ] {
            assert_eq!(read(kind, default), None, "{kind}");
        }
    }
}
