// SPDX-License-Identifier: Apache-2.0
//! Options of other launchers as those of `isthmus run`: what users type by habit is taken, or the error names what to
//! write here.

use super::options::{
    OTHERS, assignment, attached, before, hint, initial_errhandler, instead, no_rankfile, old_word, option,
    takes_value, unknown,
};
use crate::error::JobError;

/// Whether an option is one of `isthmus run` itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// It is not.
    No,
    /// It is, and the next word is its value.
    TakesNext,
    /// It is, with its value or without one.
    Complete,
}

/// The words of `isthmus run` in its own spelling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spelled {
    /// The words.
    pub words: Vec<String>,
    /// What was said that has no effect here.
    pub notes: Vec<JobError>,
}

/// Spells the words behind `isthmus run` as that command takes them; `own` knows its options. The program and what
/// follows it is left alone.
pub fn translate(words: &[String], own: &dyn Fn(&str) -> Own) -> Result<Spelled, JobError> {
    let mut spelled = Spelled::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" || word == "-" || !word.starts_with('-') {
            spelled.words.push(word.clone());
            if rest
                .as_slice()
                .windows(2)
                .any(|pair| pair[0] == ":" && pair[1].starts_with("-n"))
            {
                let note = JobError::new("':' and what follows it are arguments of the program");
                spelled
                    .notes
                    .push(note.hint("several programs are for mpiexec, or for a job file"));
            }
            break;
        }
        // A long option with one hyphen is another launcher's, whatever its letters would be here.
        let single = word.len() > 2 && !word.starts_with("--");
        let (name, joined) = match (word.split_once('='), attached(word)) {
            (Some((name, value)), _) => (name, Some(value)),
            (None, Some((name, number))) => (name, Some(number)),
            (None, None) => (word.as_str(), None),
        };
        let theirs = option(name);
        let mine = own(word);
        match (theirs, mine) {
            (Some("version" | "help"), _) => spelled.words.push(word.clone()),
            (Some(theirs), mine) if single || mine == Own::No => {
                let theirs = before(theirs, joined.or_else(|| rest.as_slice().first().map(String::as_str)));
                let mut values = joined.into_iter().chain(rest.by_ref().map(String::as_str));
                spelled.take(theirs, name, &mut values)?;
            }
            (None, Own::No) if single || hint(name).is_some() => return Err(unknown(name, "isthmus run --help")),
            (_, mine) => {
                spelled.words.push(word.clone());
                if mine == Own::TakesNext {
                    spelled.words.extend(rest.next().cloned());
                }
            }
        }
    }
    spelled.words.extend(rest.cloned());
    Ok(spelled)
}

impl Spelled {
    fn take<'a>(
        &mut self,
        theirs: &str,
        word: &str,
        values: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), JobError> {
        let mut value = |what: &str| {
            let lacks = || JobError::new(format!("{word} needs a {what}")).hint("see isthmus run --help");
            values.next().ok_or_else(lacks)
        };
        let own = match theirs {
            "n" => "processes",
            "host" => "host",
            "hostfile" | "globusrsl" => "job",
            "wdir" => "directory",
            "x" => "env",
            "pernode" => return self.option("ppn", "1"),
            "rankfile" => return Err(no_rankfile(word)),
            "npersocket" => {
                let each = value("number")?;
                return self.option("map-by", &format!("ppr:{each}:socket"));
            }
            "old-bind-to" | "old-map-by" => return self.option(theirs.trim_start_matches("old-"), old_word(word)),
            "ppn" | "share" | "bind-to" | "map-by" | "rank-by" | "bind-each" | "map-each" | "stdin"
            | "outfile-pattern" | "output-dir" => theirs,
            "label" | "report-bindings" => return self.flag(theirs),
            "dumprsl" => return self.flag("dump-rsl"),
            "nostage" => return self.flag("no-stage"),
            "ignored" => return Ok(()),
            "env" | "genv" => {
                let (name, text) = assignment(&mut value)?;
                return self.option("env", &format!("{name}={text}"));
            }
            "envlist" | "genvlist" => {
                let names = value("variables")?;
                return names.split(',').try_for_each(|name| self.option("env", name));
            }
            "timeout" => {
                let time = value("time")?;
                let seconds = time.bytes().all(|b| b.is_ascii_digit());
                return self.option("time", &format!("{time}{}", if seconds { "s" } else { "" }));
            }
            "configfile" => {
                let file = value("file")?;
                let error = JobError::new(format!("{word} is an option of mpiexec"));
                return Err(error.hint(format!(
                    "mpiexec -configfile {file}, or a job file: isthmus run JOB.toml"
                )));
            }
            "lan" => {
                let name = value("name")?;
                let error = JobError::new(format!("{word} is an option of mpiexec"));
                return Err(error.hint(format!("say it with the site, in a job file: lan = \"{name}\"")));
            }
            "environment" => {
                let note = JobError::new(format!("{word} has no effect"));
                self.notes.push(note.hint(instead(theirs)));
                return Ok(());
            }
            "initial-errhandler" => {
                let (name, value) = initial_errhandler(value("name")?)?;
                return self.option("env", &format!("{name}={value}"));
            }
            other => return self.without_effect(other, word, &mut value),
        };
        let text = value("value")?;
        self.option(own, text)
    }

    fn without_effect<'a>(
        &mut self,
        theirs: &str,
        word: &str,
        value: &mut impl FnMut(&str) -> Result<&'a str, JobError>,
    ) -> Result<(), JobError> {
        let why = match theirs {
            "mca" | "ignored-value" | "noted" => OTHERS,
            other => instead(other),
        };
        let mut said = word.to_owned();
        let values = match theirs {
            "mca" => 2,
            other => usize::from(takes_value(other)),
        };
        for _ in 0..values {
            said.push_str(&format!(" {}", value("value")?));
        }
        self.notes
            .push(JobError::new(format!("{said} has no effect")).hint(why));
        Ok(())
    }

    fn flag(&mut self, name: &str) -> Result<(), JobError> {
        self.words.push(format!("--{name}"));
        Ok(())
    }

    fn option(&mut self, name: &str, value: &str) -> Result<(), JobError> {
        self.words.push(format!("--{name}={value}"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(word: &str) -> Own {
        match word {
            "-n" | "--site" | "-s" | "--host" | "--env" => Own::TakesNext,
            "-l" | "-n4" | "--label" => Own::Complete,
            long if long.starts_with("--env=") => Own::Complete,
            // Letters in one word, as the command itself would take them apart.
            short if short.starts_with("-n") || short.starts_with("-l") => Own::Complete,
            _ => Own::No,
        }
    }

    fn spelled(line: &str) -> Result<Spelled, JobError> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        translate(&words, &own)
    }

    #[test]
    fn habits_are_taken() {
        for (theirs, ours) in [
            ("-np 4 ./p -np 2", "--processes=4 ./p -np 2"),
            ("--np=4 ./p", "--processes=4 ./p"),
            ("-n 4 -l ./p", "-n 4 -l ./p"),
            ("-n4 ./p", "--processes=4 ./p"),
            ("-np4 ./p", "--processes=4 ./p"),
            ("-genv A=B --env C=D ./p", "--env=A=B --env C=D ./p"),
            ("-pernode -quiet ./p", "--ppn=1 ./p"),
            ("-N 2 ./p", "--ppn=2 ./p"),
            ("-npernode 2 ./p", "--ppn=2 ./p"),
            ("-H a:2,b ./p", "--host=a:2,b ./p"),
            ("--host a ./p", "--host a ./p"),
            ("-hostfile h ./p", "--job=h ./p"),
            (
                "-x A -x B=1 -genv C 2 --env D=3 ./p",
                "--env=A --env=B=1 --env=C=2 --env D=3 ./p",
            ),
            ("-wdir /d --timeout 90 ./p", "--directory=/d --time=90s ./p"),
            ("-label -genvall ./p : -n 2", "--label ./p : -n 2"),
            ("-tune -np 2 ./p", "--processes=2 ./p"),
            ("-tune file -np 2 ./p", "--processes=2 ./p"),
            ("-- -np 4", "-- -np 4"),
        ] {
            let words = spelled(theirs).unwrap().words.join(" ");
            assert_eq!(words, ours, "{theirs}");
        }
    }

    #[test]
    fn what_has_no_effect_is_named() {
        let notes = spelled("--mca btl tcp -v -soft 1:4 ./p").unwrap();
        let notes: Vec<String> = notes.notes.into_iter().map(|n| n.problem).collect();
        assert_eq!(spelled("-envnone ./p").unwrap().notes.len(), 1);
        let expected = [
            "--mca btl tcp has no effect",
            "-v has no effect",
            "-soft 1:4 has no effect",
        ];
        assert_eq!(notes, expected);
        assert_eq!(spelled("-n 1 ./a : -n 1 ./b").unwrap().notes.len(), 1);
    }

    #[test]
    fn what_is_not_taken_has_a_hint() {
        for (line, word) in [
            ("-configfile f", "mpiexec -configfile f"),
            ("-np", "--help"),
            ("--partition=debug ./p", "queue=Q"),
            ("-p debug ./p", "queue=Q"),
            ("-hots a ./p", "-host"),
            ("-gdb ./p", "xterm -e gdb"),
            ("-trace ./p", "--trace FILE"),
            ("-xyzzy a ./p", "isthmus run --help"),
            ("-rankfile f ./p", "order of the hosts"),
            ("--mpi=pmix ./p", "without a plugin"),
            ("--with-ft ulfm ./p", "--on-loss go-on"),
        ] {
            let error = spelled(line).unwrap_err();
            assert!(error.hint.unwrap().contains(word), "{line}");
        }
    }
}
