// SPDX-License-Identifier: Apache-2.0
//! The order in which `--help` shows commands and options: by what they are for.

use clap::{Arg, Command};
use std::fmt::Write as _;

/// The commands, by what they are for.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("Run jobs", &["run", "job", "add", "join"]),
    (
        "Watch and control jobs",
        &[
            "ps", "attach", "logs", "top", "where", "report", "trace", "signal", "edit", "kill", "names",
        ],
    ),
    (
        "Sites and files",
        &["doctor", "sites", "discover", "links", "cp", "cache", "login"],
    ),
    ("Collective operations", &["explain", "simulate"]),
    ("This installation", &["info", "fortran", "adaptor", "completions"]),
];

/// Options of commands that start processes, by what they are for. The most common ones have no heading.
const OPTIONS: [(&str, &[&str]); 7] = [
    ("Sites", &["select", "place", "ssh", "links"]),
    (
        "Binding processes",
        &["bind_to", "bind_each", "map_by", "map_each", "report_bindings"],
    ),
    ("Files", &["inputs", "outputs", "results", "shared", "no_stage"]),
    ("Standard input and output", &["output_dir", "outfile_pattern", "stdin"]),
    ("Job descriptions", &["file", "from", "define", "dump_rsl"]),
    ("Watching", &["progress", "hang", "events", "trace"]),
    ("Parts and other jobs", &["world", "meet"]),
];

/// Options of run that concern a launcher, which a job that gets more processes already has: add refuses them.
pub(crate) const LAUNCHER: [&str; 17] = [
    "stdin",
    "ssh",
    "links",
    "world",
    "at",
    "detach",
    "dry_run",
    "json",
    "dump_rsl",
    "output_dir",
    "outfile_pattern",
    "time",
    "hang",
    "events",
    "trace",
    "meet",
    "label",
];

/// Widest name of a command in the list, columns.
const NAME: usize = 12;
/// Lines that begin so far to the right are descriptions, columns.
const DEEP: usize = 8;
/// Descriptions in less space than this are not broken, columns.
const NARROWEST: usize = 20;

/// The command as its help shows it.
pub(crate) fn sorted(command: Command) -> Command {
    let head = command.get_styles().get_header();
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{}\n{head}Options:{head:#}\n{{options}}{{after-help}}",
        commands(&command)
    );
    let command = command.help_template(template).after_help(
        "'isthmus COMMAND --help' explains a command, as does 'man isthmus-COMMAND'.\n\
             The book: share/doc/isthmus/html/index.html of the installation.",
    );
    let command = command.mut_subcommand("add", |verb| verb.mut_args(|argument| hidden(argument, &LAUNCHER)));
    ["run", "join", "add"].into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |verb| verb.mut_args(headed))
    })
}

fn hidden(argument: Arg, which: &[&str]) -> Arg {
    let hides = which.contains(&argument.get_id().as_str());
    argument.hide(hides)
}

/// The list of commands. Braces would be read as parts of a template.
fn commands(command: &Command) -> String {
    let head = command.get_styles().get_header();
    let name = command.get_styles().get_literal();
    let mut list = String::new();
    for (title, members) in COMMANDS {
        let _ = write!(list, "\n{head}{title}:{head:#}\n");
        for verb in members.iter().filter_map(|member| command.find_subcommand(member)) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(list, "  {name}{:NAME$}{name:#} {about}", verb.get_name());
        }
    }
    list
}

fn headed(argument: Arg) -> Arg {
    let id = argument.get_id().as_str();
    match OPTIONS.iter().find(|(_, members)| members.contains(&id)) {
        Some((title, _)) => argument.help_heading(*title),
        None => argument,
    }
}

/// The text in lines that fit into a terminal. What does not fit goes on below the description that it belongs to.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| wrapped_line(line, columns)).collect();
    lines.join("\n")
}

fn wrapped_line(line: &str, columns: usize) -> String {
    let (at, indent) = description(line);
    if width(line) <= columns || indent + NARROWEST > columns {
        return line.to_owned();
    }
    let mut out = line[..at].to_owned();
    let mut used = indent;
    for word in line[at..].split(' ') {
        let begins = used == indent;
        if !begins && used + 1 + width(word) > columns {
            let _ = write!(out, "\n{:indent$}", "");
            used = indent;
        } else if !begins {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += width(word);
    }
    out
}

/// Where the description of an option or a command begins in its line: bytes, columns.
fn description(line: &str) -> (usize, usize) {
    let (mut column, mut spaces, mut styled) = (0, 0, false);
    let mut begun = None;
    for (at, sign) in line.char_indices() {
        match sign {
            '\x1b' => styled = true,
            'm' if styled => styled = false,
            _ if styled => {}
            ' ' => (column, spaces) = (column + 1, spaces + 1),
            _ => {
                match begun {
                    None if column >= DEEP => return (at, column),
                    None => begun = Some((at, column)),
                    // Behind a short name and a gap.
                    Some(_) if spaces >= 2 => return (at, column),
                    Some(_) => {}
                }
                (column, spaces) = (column + 1, 0);
            }
        }
    }
    begun.unwrap_or((0, 0))
}

/// Columns of a text, without what makes it bold.
fn width(text: &str) -> usize {
    let mut styled = false;
    let shown = text.chars().filter(|sign| {
        let was = styled;
        styled = *sign == '\x1b' || styled && *sign != 'm';
        !was && !styled
    });
    shown.count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_is_listed_once_in_a_short_line() {
        let command = crate::Command::command();
        let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
        let shown: BTreeSet<&str> = shown.map(Command::get_name).collect();
        let listed: Vec<&str> = COMMANDS
            .iter()
            .flat_map(|(_, members)| members.iter().copied())
            .collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), shown);
        assert_eq!(listed.len(), shown.len());
        let list = sorted(command).render_help().to_string();
        for line in list.lines() {
            assert!(line.chars().count() <= 80, "wider than a terminal: {line}");
        }
    }

    #[test]
    fn headings_name_options_that_there_are() {
        let command = crate::Command::command();
        let run = command.find_subcommand("run").unwrap();
        let there: BTreeSet<&str> = run.get_arguments().map(|a| a.get_id().as_str()).collect();
        for id in OPTIONS.iter().flat_map(|(_, members)| members.iter()) {
            assert!(there.contains(id), "{id}");
        }
    }

    #[test]
    fn long_lines_go_on_below_their_description() {
        let line = "  \x1b[1m-n\x1b[0m, --number <N>  one two three four five six seven";
        assert_eq!(
            wrapped(line, 42),
            "  \x1b[1m-n\x1b[0m, --number <N>  one two three four\n                    five six seven"
        );
        assert_eq!(
            wrapped("          one two three four five", 30),
            "          one two three four\n          five"
        );
        assert_eq!(wrapped("about words of no option", 22), "about words of no\noption");
        for whole in ["", "short", "  --a-very-long-name-of-an-option <VALUE>  word word"] {
            assert_eq!(wrapped(whole, 45), whole);
        }
    }
}
