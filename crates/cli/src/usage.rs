// SPDX-License-Identifier: Apache-2.0
//! Mistakes that the parser of the command line finds, told as all others are: what is wrong, and what to write.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use isthmus_job::JobError;
use std::ffi::OsString;

/// Options that mean something with another one only.
const NEEDED: [(&str, &str); 3] = [("--at", "--detach"), ("--json", "--dry-run"), ("--place", "--select")];

/// The mistake as a message; nothing where the parser shows the help instead.
pub(crate) fn mistake(error: &Error, words: &[OsString], top: &Command) -> Option<JobError> {
    let name = called(words, top);
    let lists = format!("see {name} --help");
    let argument = texts(error, ContextKind::InvalidArg).first().map(|a| option(a));
    let argument = argument.unwrap_or_default();
    let value = texts(error, ContextKind::InvalidValue).concat();
    let valid = texts(error, ContextKind::ValidValue).join(", ");
    let one_of = if valid.is_empty() {
        lists.clone()
    } else {
        format!("it is one of {valid}")
    };
    Some(match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        ErrorKind::UnknownArgument if !argument.starts_with('-') => {
            JobError::new(format!("{name} takes no argument '{argument}'")).hint(lists)
        }
        ErrorKind::UnknownArgument => {
            let near = texts(error, ContextKind::SuggestedArg);
            let near = near.first().map(|near| format!("did you mean '{}'?", option(near)));
            let advice = hyphened(&argument, words, top).or(near).unwrap_or(lists);
            JobError::new(format!("{name} has no option '{argument}'")).hint(advice)
        }
        ErrorKind::InvalidSubcommand => {
            let word = texts(error, ContextKind::InvalidSubcommand).concat();
            let near = texts(error, ContextKind::SuggestedSubcommand);
            let near = near.first().map(|near| format!("did you mean '{name} {near}'?"));
            JobError::new(format!("{name} has no command '{word}'")).hint(near.unwrap_or(lists))
        }
        ErrorKind::MissingRequiredArgument => missing(&name, &texts(error, ContextKind::InvalidArg), words),
        ErrorKind::InvalidValue if value.is_empty() => JobError::new(format!("{argument} needs a value")).hint(one_of),
        ErrorKind::InvalidValue => JobError::new(format!("{argument} cannot be '{value}'")).hint(one_of),
        ErrorKind::ValueValidation => {
            let why = std::error::Error::source(error).map_or_else(String::new, |why| format!(": {why}"));
            JobError::new(format!("{argument} cannot be '{value}'{why}")).hint(lists)
        }
        ErrorKind::ArgumentConflict => {
            let other = texts(error, ContextKind::PriorArg);
            match other
                .first()
                .map(|other| option(other))
                .filter(|other| *other != argument)
            {
                Some(other) => JobError::new(format!("{argument} and {other} cannot be used together"))
                    .hint("leave out one of them"),
                None => JobError::new(format!("{argument} is given twice")).hint("leave out one of them"),
            }
        }
        _ => {
            let text = error.render().to_string();
            let text = text.lines().next().unwrap_or_default();
            JobError::new(text.strip_prefix("error: ").unwrap_or(text).to_owned()).hint(lists)
        }
    })
}

/// That the last word is no program, but the value of an option.
fn taken(words: &[OsString]) -> Option<String> {
    let [.., before, last] = words.get(2..)? else {
        return None;
    };
    let (before, last) = (before.to_str()?, last.to_str()?);
    let is_value = before.starts_with('-') && !last.starts_with('-');
    is_value.then(|| format!("; '{last}' was taken as the value of {before}"))
}

/// What is missing, and what to write.
fn missing(name: &str, lacking: &[String], words: &[OsString]) -> JobError {
    let given = |option: &str| {
        let is_it = |word: &str| word == option || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
        words.iter().filter_map(|word| word.to_str()).any(is_it)
    };
    let needed = NEEDED
        .iter()
        .find(|(has, lacks)| given(has) && lacking.iter().any(|l| option(l) == *lacks));
    if let Some((has, lacks)) = needed {
        return JobError::new(format!("{has} is for jobs with {lacks}"))
            .hint(format!("add {lacks}, or leave out {has}"));
    }
    if lacking.iter().any(|what| what.contains("PROGRAM")) {
        let error = JobError::new("no program is named");
        let first = match name {
            "isthmus add" => " JOB",
            "isthmus join" => " TICKET",
            _ => "",
        };
        let taken = taken(words).unwrap_or_default();
        return error.hint(format!("write {name}{first} [OPTIONS] PROGRAM [ARGUMENT]...{taken}"));
    }
    let error = JobError::new(format!("{name} needs {}", lacking.join(" and ")));
    error.hint(format!("see {name} --help"))
}

/// The command that was typed, with its verbs.
fn called(words: &[OsString], top: &Command) -> String {
    let mut name = String::from("isthmus");
    let mut at = top;
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        let Some(verb) = at.find_subcommand(word) else { break };
        name.push(' ');
        name.push_str(word);
        at = verb;
    }
    name
}

/// An option without the name of its value.
fn option(argument: &str) -> String {
    argument.split([' ', '=']).next().unwrap_or_default().to_owned()
}

fn texts(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// How an option gets a value that begins with a hyphen, if the word was meant as one.
fn hyphened(unknown: &str, words: &[OsString], top: &Command) -> Option<String> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let verb = top.find_subcommand(&**words.get(1)?)?;
    let takes_value = |option: &str| {
        let name = option.strip_prefix("--");
        name.is_some()
            && verb
                .get_arguments()
                .any(|a| a.get_long() == name && a.get_action().takes_values())
    };
    let mut pairs = words.windows(2).take_while(|pair| pair[0] != "--");
    let pair = pairs.find(|pair| pair[1].starts_with(unknown) && takes_value(&pair[0]))?;
    let (option, value) = (&pair[0], &pair[1]);
    Some(format!(
        "to pass '{value}' as the value of {option}, write {option}={value}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> String {
        let top = crate::grammar();
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = top.clone().try_get_matches_from(words.clone()).unwrap_err();
        mistake(&error, &words, &top).map_or_else(String::new, |m| m.render(isthmus_job::Paint::Plain))
    }

    #[test]
    fn mistakes_name_the_command_and_what_to_write() {
        for (line, problem, hint) in [
            (
                "isthmus run --nprocs 2 a",
                "isthmus run has no option '--nprocs'",
                "did you mean '--processes'?",
            ),
            (
                "isthmus names extra",
                "isthmus names takes no argument 'extra'",
                "isthmus names --help",
            ),
            (
                "isthmus run",
                "no program is named",
                "write isthmus run [OPTIONS] PROGRAM [ARGUMENT]...",
            ),
            (
                "isthmus run --site ./a",
                "no program is named",
                "'./a' was taken as the value of --site",
            ),
            (
                "isthmus add tank",
                "no program is named",
                "write isthmus add JOB [OPTIONS] PROGRAM [ARGUMENT]...",
            ),
            (
                "isthmus join a.ticket -n 2",
                "no program is named",
                "write isthmus join TICKET [OPTIONS] PROGRAM [ARGUMENT]...; '2' was taken as the value of -n",
            ),
            ("isthmus run -n", "--processes needs a value", "isthmus run --help"),
            (
                "isthmus run --place spred a",
                "--place cannot be 'spred'",
                "it is one of compact, spread",
            ),
            (
                "isthmus run --host a --site b c",
                "--host and --site cannot be used together",
                "leave out one",
            ),
            (
                "isthmus run --json a",
                "--json is for jobs with --dry-run",
                "add --dry-run",
            ),
            (
                "isthmus run --at=lab a",
                "--at is for jobs with --detach",
                "add --detach",
            ),
            (
                "isthmus job convrt",
                "isthmus job has no command 'convrt'",
                "did you mean 'isthmus job convert'?",
            ),
            (
                "isthmus job convert",
                "isthmus job convert needs --to <FORMAT>",
                "isthmus job convert --help",
            ),
            (
                "isthmus top --interval x",
                "--interval cannot be 'x': ",
                "isthmus top --help",
            ),
        ] {
            let text = told(line);
            assert!(text.contains(problem) && text.contains(hint), "{line}: {text}");
        }
    }
}
