// SPDX-License-Identifier: Apache-2.0
//! Completions for shells, manual pages and pages of the book's reference, from the same tables as the command line and
//! the settings.

mod book;
mod complete;
mod tables;

pub(crate) use self::complete::{Complete, complete};
use crate::diagnostic::refuse;
use clap::{Args, Command};
use clap_complete::Shell;
use isthmus_job::{JobError, catalogue, document, mpiexec};
use isthmus_settings::SETTINGS;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print the completion script for a shell
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Write the manual pages into a directory
#[derive(Args, Debug)]
pub(crate) struct Manual {
    /// Write the book's pages about commands and files instead, as Markdown
    #[arg(long)]
    book: bool,
    /// The directory
    directory: PathBuf,
}

/// `isthmus completions`.
pub(crate) fn completions(arguments: &Completions, mut command: Command) -> ExitCode {
    if let Some(script) = complete::script(arguments.shell) {
        crate::print(script.trim_end());
        return ExitCode::SUCCESS;
    }
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "isthmus", &mut text);
    crate::print(String::from_utf8_lossy(&text).trim_end());
    ExitCode::SUCCESS
}

/// `isthmus manual`.
pub(crate) fn manual(arguments: &Manual, command: Command) -> ExitCode {
    let written = if arguments.book {
        book::write(&arguments.directory, command)
    } else {
        write(&arguments.directory, command)
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&JobError::new(format!("cannot write manual pages: {error}"))),
    }
}

fn write(directory: &Path, mut command: Command) -> io::Result<()> {
    let [first, fifth, seventh] = ["man1", "man5", "man7"].map(|section| directory.join(section));
    for section in [&first, &fifth, &seventh] {
        std::fs::create_dir_all(section)?;
    }
    command.build();
    pages(&first, &command, "isthmus")?;
    for name in ["mpiexec", "mpirun"] {
        std::fs::write(first.join(format!("{name}.1")), launcher(name))?;
    }
    for (name, others) in tables::WRAPPERS {
        std::fs::write(first.join(format!("{name}.1")), wrapper(name))?;
        for other in others {
            std::fs::write(first.join(format!("{other}.1")), format!(".so man1/{name}.1\n"))?;
        }
    }
    for (name, what, example) in [
        ("isthmus-job", "job files of Isthmus", document::EXAMPLE),
        ("isthmus-sites", "the sites file of Isthmus", catalogue::EXAMPLE),
    ] {
        std::fs::write(fifth.join(format!("{name}.5")), format_of_file(name, what, example))?;
    }
    std::fs::write(seventh.join("isthmus-settings.7"), settings())
}

/// A page for a command, and one for each of its verbs.
fn pages(directory: &Path, command: &Command, name: &str) -> io::Result<()> {
    let mut page = Vec::new();
    let named = command.clone().display_name(name.to_owned());
    clap_mangen::Man::new(named)
        .title(name.to_uppercase())
        .render(&mut page)?;
    page.extend_from_slice(closing(name).as_bytes());
    std::fs::write(directory.join(format!("{name}.1")), page)?;
    for verb in tables::visible(command) {
        pages(directory, verb, &format!("{name}-{}", verb.get_name()))?;
    }
    Ok(())
}

/// What every page of a command ends with: EXAMPLES, EXIT STATUS, FILES, SEE ALSO.
fn closing(name: &str) -> String {
    let mut page = String::new();
    let mut examples = tables::examples(name).peekable();
    if examples.peek().is_some() {
        page.push_str(".SH EXAMPLES\n");
    }
    for (example, what) in examples {
        page.push_str(&format!(".TP\n.B {}\n{}\n", plain(example), plain(what)));
    }
    page.push_str(".SH \"EXIT STATUS\"\n");
    if tables::ends_as_its_job(name) {
        for [status, meaning] in tables::exit_statuses() {
            page.push_str(&format!(".TP\n.B {}\n{}\n", plain(status), plain(meaning)));
        }
    } else {
        page.push_str("0 when all went well, 1 when not, 2 for a mistake in the command line or in a file.\n");
    }
    page.push_str(".SH FILES\n");
    for [place, what] in tables::places() {
        page.push_str(&format!(".TP\n.I {}\n{}\n", plain(place), plain(what)));
    }
    let also: Vec<String> = tables::see_also(name)
        .map(|(page, section)| format!("{}({section})", plain(page)))
        .collect();
    page.push_str(&format!(".SH \"SEE ALSO\"\n{}\n", also.join(", ")));
    page
}

/// `mpiexec` and `mpirun`, from their help.
fn launcher(name: &str) -> String {
    by_hand(name, "run programs as one MPI job", mpiexec::HELP)
}

/// `mpicc`, `mpicxx` and `mpifort`.
fn wrapper(name: &str) -> String {
    by_hand(name, tables::WRAPPER_WHAT, crate::compiler::HELP)
}

fn by_hand(name: &str, what: &str, help: &str) -> String {
    let help: Vec<String> = help.lines().map(plain).collect();
    format!(
        ".TH {} 1\n.SH NAME\n{} \\- {what}\n.SH DESCRIPTION\n.nf\n{}\n.fi\n{}",
        name.to_uppercase(),
        plain(name),
        help.join("\n"),
        closing(name)
    )
}

/// The page of a kind of files, which their example explains.
fn format_of_file(name: &str, what: &str, example: &str) -> String {
    let lines: Vec<String> = example.lines().map(plain).collect();
    format!(
        ".TH {} 5\n.SH NAME\n{} \\- {what}\n.SH DESCRIPTION\nTOML. This example has all fields.\n.PP\n.nf\n{}\n.fi\n",
        name.to_uppercase(),
        plain(name),
        lines.join("\n")
    )
}

/// All environment variables.
fn settings() -> String {
    let mut page = String::from(
        ".TH ISTHMUS-SETTINGS 7\n.SH NAME\nisthmus-settings \\- environment variables of Isthmus\n.SH VARIABLES\n",
    );
    for setting in SETTINGS.iter().filter(|s| s.scope != "internal") {
        page.push_str(&format!(
            ".TP\n.B {} \\fR({}; {}) [default: {}]\n{}; {}\n",
            plain(setting.name),
            plain(setting.unit),
            plain(setting.scope),
            plain(setting.default),
            plain(setting.help),
            plain(setting.reason)
        ));
    }
    page
}

/// Text without what troff would obey.
fn plain(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) {
        format!("\\&{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_verb_has_a_page_and_settings_have_one() {
        let top = tempfile::tempdir().unwrap();
        write(top.path(), crate::Command::command()).unwrap();
        let read = |name: &str| std::fs::read_to_string(top.path().join(name)).unwrap();
        assert!(read("man1/isthmus.1").contains("isthmus"));
        assert!(read("man1/isthmus-run.1").contains("select"));
        assert!(read("man1/isthmus-sites-add.1").contains("How to get there"));
        assert!(read("man7/isthmus-settings.7").contains("ISTHMUS_SSH"));
        assert!(read("man5/isthmus-job.5").contains("start_timeout"));
        assert!(read("man5/isthmus-sites.5").contains("directives"));
        assert!(
            !top.path().join("man1/isthmus-agent.1").exists(),
            "hidden verbs have no page"
        );
        assert_eq!(read("man1/mpif90.1"), ".so man1/mpifort.1\n");
        for page in ["isthmus-run", "mpiexec", "mpicc", "mpifort", "isthmus-top"] {
            let text = read(&format!("man1/{page}.1"));
            for section in ["EXAMPLES", "EXIT STATUS", "FILES", "SEE ALSO"] {
                assert!(text.contains(section), "{page} lacks {section}");
            }
        }
    }

    #[test]
    fn every_example_is_of_a_command_that_there_is() {
        let mut command = crate::Command::command();
        command.build();
        for (name, example) in tables::all_examples() {
            let mut words = example.split_whitespace().skip(1);
            assert!(
                example.starts_with(name.split('-').next().unwrap_or_default()),
                "{example}"
            );
            if let Some(rest) = name.strip_prefix("isthmus-") {
                let mut at = &command;
                for verb in rest.split('-') {
                    at = at.find_subcommand(verb).unwrap_or_else(|| panic!("no command {name}"));
                    assert_eq!(words.next(), Some(verb), "{example}");
                }
            }
        }
    }
}
