// SPDX-License-Identifier: Apache-2.0
//! Jobs as job files. What all subjobs share stands once, at the top.

use crate::attributes::{Operator, Request, Shape};
use crate::model::{Job, Program, Section, Subjob};
use crate::quoted::text;
use crate::terms;
use isthmus_wire::grid::Allocation;
use toml_edit::Key;

/// The job file.
pub(super) fn write(job: &Job) -> String {
    let subjobs = job.subjobs();
    let lines: Vec<Vec<String>> = subjobs.iter().map(common).collect();
    let shared = |line: &String| lines.iter().all(|other| other.contains(line));
    let top: Vec<&String> = lines[0].iter().filter(|line| shared(line)).collect();
    let name = job.name().map(|name| format!("name = {}\n", text(name.as_str())));
    let mut out: String = name
        .into_iter()
        .chain(top.iter().map(|line| format!("{line}\n")))
        .collect();
    for (subjob, lines) in subjobs.iter().zip(&lines) {
        out.push_str(if out.is_empty() {
            "[[subjob]]\n"
        } else {
            "\n[[subjob]]\n"
        });
        out.push_str(&own(subjob));
        let rest = lines.iter().filter(|line| !top.contains(line));
        out.extend(rest.map(|line| format!("{line}\n")));
        out.extend(subjob.scheduler().map(|word| format!("scheduler = {}\n", text(word))));
        out.push_str(&subjob.allocation.as_ref().map(allocation).unwrap_or_default());
        out.push_str(&sections(subjob));
    }
    let takes_part = |name: &str| subjobs.iter().any(|s| s.lan == name || s.site == name);
    out.push_str(&job.links().write(takes_part));
    out
}

/// What may stand at the top as well.
fn common(subjob: &Subjob) -> Vec<String> {
    let mut lines = match &subjob.sections[..] {
        [only] => run(only),
        _ => Vec::new(),
    };
    lines.extend(environment(&subjob.environment));
    lines.extend(subjob.directory.iter().map(|d| format!("directory = {}", text(d))));
    if !subjob.stage {
        lines.push("stage = false".to_owned());
    }
    let inputs: Vec<String> = subjob.files.inputs.iter().map(ToString::to_string).collect();
    let outputs: Vec<String> = subjob.files.outputs.iter().map(|p| p.text().to_owned()).collect();
    for (key, list) in [
        ("inputs", &inputs),
        ("outputs", &outputs),
        ("share", &subjob.files.shared),
        ("setup", &subjob.setup),
    ] {
        if !list.is_empty() {
            lines.push(format!("{key} = {}", texts(list)));
        }
    }
    lines.extend(subjob.files.results.iter().map(|r| format!("results = {}", text(r))));
    let mut requests = Vec::new();
    for request in &subjob.requests {
        match term(request) {
            Some(line) => lines.push(line),
            None => requests.push(request.text()),
        }
    }
    if !requests.is_empty() {
        lines.push(format!("requests = {}", texts(&requests)));
    }
    lines
}

/// A program and its arguments.
fn run(section: &Section) -> Vec<String> {
    let mut lines = program(&section.program);
    if !section.arguments.is_empty() {
        lines.push(format!("arguments = {}", texts(&section.arguments)));
    }
    lines
}

fn environment(variables: &[(String, String)]) -> Option<String> {
    let pairs = variables.iter();
    let pairs: Vec<String> = pairs.map(|(n, v)| format!("{} = {}", Key::new(n), text(v))).collect();
    (!pairs.is_empty()).then(|| format!("environment = {{ {} }}", pairs.join(", ")))
}

/// The programs of a subjob of several: nothing of them stands above, where those that lack it would take it.
fn sections(subjob: &Subjob) -> String {
    if subjob.sections.len() < 2 {
        return String::new();
    }
    let mut out = String::new();
    for (number, (section, count)) in (0u32..).zip(subjob.sections()) {
        let mut lines = vec![format!("count = {count}")];
        lines.extend(run(section));
        lines.extend(environment(&section.environment));
        lines.extend(section.directory.iter().map(|d| format!("directory = {}", text(d))));
        lines.extend((section.appnum != number).then(|| format!("appnum = {}", section.appnum)));
        out.push_str(&format!("\n[[subjob.section]]\n{}\n", lines.join("\n")));
    }
    out
}

/// An attribute that has a key.
fn term(request: &Request) -> Option<String> {
    let key = terms::key(request.attribute.name).filter(|_| request.operator == Operator::Equal)?;
    let values: Vec<String> = request
        .values
        .iter()
        .map(|v| v.text().map(|text| terms::value_of_key(key, text)))
        .collect::<Option<_>>()?;
    match (request.attribute.shape, values.as_slice()) {
        (Shape::Texts, values) => Some(format!("{key} = {}", texts(values))),
        (_, [value]) => Some(format!("{key} = {}", text(value))),
        _ => None,
    }
}

fn program(program: &Program) -> Vec<String> {
    if let Some(path) = &program.any {
        return vec![format!("program = {}", text(path))];
    }
    let each = program.by_architecture.iter();
    let each: Vec<String> = each
        .map(|(a, path)| format!("{} = {}", Key::new(a), text(path)))
        .collect();
    vec![format!("program = {{ {} }}", each.join(", "))]
}

fn own(subjob: &Subjob) -> String {
    let mut out = format!("site = {}\n", text(&subjob.site));
    let contact = subjob.contact.to_string();
    if contact != subjob.site {
        out.push_str(&format!("contact = {}\n", text(&contact)));
    }
    let only = (subjob.sections.len() == 1).then(|| &subjob.sections[0]);
    if only.is_some() {
        out.push_str(&format!("count = {}\n", subjob.count));
    }
    if subjob.lan != subjob.site {
        out.push_str(&format!("lan = {}\n", text(&subjob.lan)));
    }
    if let Some(section) = only.filter(|section| section.appnum != 0) {
        out.push_str(&format!("appnum = {}\n", section.appnum));
    }
    out
}

fn allocation(asked: &Allocation) -> String {
    let mut out = String::new();
    for (key, value) in [("queue", &asked.queue), ("account", &asked.account)] {
        if !value.is_empty() {
            out.push_str(&format!("{key} = {}\n", text(value)));
        }
    }
    if asked.limit > 0 {
        out.push_str(&format!("limit = \"{}\"\n", limit(asked.limit)));
    }
    if asked.nodes > 0 {
        out.push_str(&format!("nodes = {}\n", asked.nodes));
    }
    if asked.exclusive {
        out.push_str("exclusive = true\n");
    }
    if !asked.directives.is_empty() {
        out.push_str(&format!("directives = {}\n", texts(&asked.directives)));
    }
    out
}

/// In the largest unit that it is a multiple of.
fn limit(seconds: u32) -> String {
    match seconds {
        s if s % 3600 == 0 => format!("{}h", s / 3600),
        s if s % 60 == 0 => format!("{}min", s / 60),
        s => format!("{s}s"),
    }
}

fn texts(texts: &[String]) -> String {
    let all: Vec<String> = texts.iter().map(|t| text(t)).collect();
    format!("[{}]", all.join(", "))
}
