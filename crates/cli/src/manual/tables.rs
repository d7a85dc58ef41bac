// SPDX-License-Identifier: Apache-2.0
//! The tables of `spec/` that pages about commands are made from.

const EXAMPLES: &str = include_str!("../../../../spec/examples.tsv");
const EXIT: &str = include_str!("../../../../spec/exit.tsv");
const PLACES: &str = include_str!("../../../../spec/places.tsv");
const JSON: &str = include_str!("../../../../spec/json.tsv");

/// The compiler wrappers, each with its other names.
pub(super) const WRAPPERS: [(&str, &[&str]); 3] = [
    ("mpicc", &[]),
    ("mpicxx", &["mpic++", "mpiCC"]),
    ("mpifort", &["mpif90", "mpif77"]),
];
/// What they are.
pub(super) const WRAPPER_WHAT: &str = "compile and link MPI programs";

fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let lines = table.lines().skip(1);
    lines.filter_map(|line| <[&str; N]>::try_from(line.split('\t').collect::<Vec<_>>()).ok())
}

/// Examples of a command, each with what it does.
pub(super) fn examples(name: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let name = match name {
        "mpirun" => "mpiexec",
        "mpicxx" => "mpicc",
        name => name,
    };
    rows::<3>(EXAMPLES).filter_map(move |[of, example, what]| (of == name).then_some((example, what)))
}

/// All examples, each with the command that it is of.
/// The verbs that people use.
pub(super) fn visible(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command
        .get_subcommands()
        .filter(|c| !c.is_hide_set() && c.get_name() != "help")
}

#[cfg(test)]
pub(super) fn all_examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    rows::<3>(EXAMPLES).map(|[of, example, _]| (of, example))
}

/// Exit statuses of the commands that run a job.
pub(super) fn exit_statuses() -> impl Iterator<Item = [&'static str; 2]> {
    rows(EXIT)
}

/// Files that are read and written.
pub(super) fn places() -> impl Iterator<Item = [&'static str; 2]> {
    rows(PLACES)
}

/// Fields of what `--json` prints: command, field, type, meaning.
pub(super) fn json() -> impl Iterator<Item = [&'static str; 4]> {
    rows(JSON)
}

/// Whether a command ends with the status of its job.
pub(super) fn ends_as_its_job(name: &str) -> bool {
    matches!(name, "isthmus-run" | "isthmus-attach" | "mpiexec" | "mpirun")
}

/// Other pages, with their sections.
pub(super) fn see_also(name: &str) -> impl Iterator<Item = (&'static str, u8)> {
    const PAGES: [(&str, u8); 9] = [
        ("isthmus", 1),
        ("isthmus-run", 1),
        ("isthmus-doctor", 1),
        ("mpiexec", 1),
        ("mpicc", 1),
        ("mpifort", 1),
        ("isthmus-job", 5),
        ("isthmus-sites", 5),
        ("isthmus-settings", 7),
    ];
    PAGES.into_iter().filter(move |(page, _)| *page != name)
}
