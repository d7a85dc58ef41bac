// SPDX-License-Identifier: Apache-2.0
//! A job whose coordinator lives at one of its sites, or at another one: what it says there, and which files go along.
//!
//! That site becomes the home of the job: relative paths start at a directory that is made there, files that were at
//! home are brought to that directory, and the machine on which the job was described takes no part.

use crate::error::{JobError, JobErrors};
use crate::model::{Contact, Job, Subjob};
use crate::transfer::{Input, Location};
use std::collections::BTreeMap;

/// Directory for files that go along, below that of the job.
const BELOW: &str = "carried";
/// What else there is in it.
const OURS: [&str; 4] = [BELOW, "lib", "job.toml", "isthmus-results"];
/// Requests of RSL that bring files from and to where the job was described.
const STAGING: [&str; 3] = ["fileStageIn", "fileStageInShared", "fileStageOut"];
/// Requests that may name files there.
const STREAMS: [&str; 3] = ["stdin", "stdout", "stderr"];

/// A job for another home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// As it is read there.
    pub job: Job,
    /// What goes along.
    pub carried: Vec<Carried>,
}

/// A file or directory that goes along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// What it is.
    pub kind: Kind,
    /// Where it is, as the user wrote it.
    pub from: String,
    /// Its path below the directory of the job there.
    pub to: String,
}

/// What goes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A program, which may be found through PATH.
    Program,
    /// A file or directory.
    File,
}

/// The job as its coordinator at `site`, which is reached by `contact`, is to read it.
///
/// # Errors
/// All that keeps it from living there, with the names of the sites.
pub fn moved(job: &Job, site: &str, contact: &Contact) -> Result<Moved, JobErrors> {
    let mut errors = JobErrors::default();
    let mut luggage = Luggage::default();
    let mut subjobs = job.subjobs().to_vec();
    for subjob in &mut subjobs {
        if let Err(error) = check(subjob, site) {
            errors.push(error);
        }
        if subjob.contact == *contact {
            subjob.contact = Contact::Home;
        }
        luggage.pack(subjob, site);
    }
    let job = errors.take(job.with_subjobs(subjobs));
    let carried = luggage.carried;
    errors.or(job.map(|job| Moved { job, carried }))
}

/// What cannot be done from there.
fn check(subjob: &Subjob, site: &str) -> Result<(), JobError> {
    let name = &subjob.site;
    if subjob.contact == Contact::Home {
        let problem =
            format!("site '{name}' is this machine, which takes no part in a job whose launcher runs at '{site}'");
        return Err(JobError::new(problem).hint(format!(
            "leave it out; or name this machine as ssh at '{site}' reaches it: --site me@THIS-MACHINE:{}",
            subjob.count
        )));
    }
    let staging = |name: &str| subjob.requests.iter().any(|r| r.attribute.name == name);
    if let Some(request) = STAGING.into_iter().find(|name| staging(name)) {
        let problem =
            format!("site '{name}': {request} is about files on this machine, but the launcher runs at '{site}'");
        return Err(JobError::new(problem).hint("name them as inputs and outputs: --input, --output"));
    }
    let here = |request: &str| {
        subjob
            .request_texts(request)
            .iter()
            .any(|text| text.starts_with("file:"))
    };
    if let Some(request) = STREAMS.into_iter().find(|request| here(request)) {
        let problem = format!("site '{name}': {request} is a file on this machine, but the launcher runs at '{site}'");
        return Err(JobError::new(problem).hint("name a file of the site, without file://; or use --outfile-pattern"));
    }
    Ok(())
}

/// What goes along, each file once.
#[derive(Default)]
struct Luggage {
    carried: Vec<Carried>,
    known: BTreeMap<(Kind, String), String>,
}

impl Luggage {
    /// Lets a subjob name files as they are called there.
    fn pack(&mut self, subjob: &mut Subjob, site: &str) {
        if subjob.stage {
            for program in subjob.programs_mut() {
                if !program.contains("://") {
                    *program = format!("./{}", self.take(Kind::Program, program));
                }
            }
        }
        let at_home = subjob.contact == Contact::Home;
        for input in &mut subjob.files.inputs {
            self.pack_input(input, site, at_home);
        }
    }

    fn pack_input(&mut self, input: &mut Input, site: &str, at_home: bool) {
        input.source = match &input.source {
            // Processes at the home of a job work in its directory, where the user had this file by its name.
            Location::Home(path) if at_home && is_free(&input.name) => {
                Location::Home(self.place(path, input.name.clone()))
            }
            Location::Home(path) => Location::Home(self.take(Kind::File, path)),
            // A path of that site is now one at home.
            Location::Site(at, path) if at == site && path.starts_with('/') => Location::Home(path.clone()),
            Location::Site(at, path) if at == site => Location::Home(format!("~/{path}")),
            other => other.clone(),
        };
    }

    fn take(&mut self, kind: Kind, from: &str) -> String {
        if let Some(known) = self.known.get(&(kind, from.to_owned())) {
            return known.clone();
        }
        let name = from.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let name = match name {
            "" | "." | ".." | "~" => "directory",
            name => name,
        };
        // Files of one name may come from several directories.
        let to = format!("{BELOW}/{}/{name}", self.carried.len());
        self.known.insert((kind, from.to_owned()), to.clone());
        self.add(kind, from, to)
    }

    /// A file gets this name in the directory of the job.
    fn place(&mut self, from: &str, to: String) -> String {
        match self.carried.iter().any(|one| one.to == to) {
            true => to,
            false => self.add(Kind::File, from, to),
        }
    }

    fn add(&mut self, kind: Kind, from: &str, to: String) -> String {
        self.carried.push(Carried {
            kind,
            from: from.to_owned(),
            to: to.clone(),
        });
        to
    }
}

/// Whether nothing of ours has this name in the directory of a job.
fn is_free(name: &str) -> bool {
    let first = name.split('/').next().unwrap_or_default();
    !first.is_empty() && !OURS.contains(&first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;
    use crate::forms::document;

    fn lab() -> Contact {
        Contact::Ssh("me@lab.example.org".into())
    }

    fn of(text: &str) -> Result<Moved, JobErrors> {
        moved(&document::parse(text, "job.toml", None).unwrap(), "lab", &lab())
    }

    #[test]
    fn files_go_along_once_and_the_site_is_home() {
        let moved = of(r#"
            name = "tides"
            program = "build/app"
            inputs = ["../mesh.nc", "data/", ".", "isthmus://lab/~/old => start", "https://data.example.org/sst.nc"]
            [[subjob]]
            site = "lab"
            contact = "me@lab.example.org"
            [[subjob]]
            site = "far"
            program = "other/app"
            inputs = ["../mesh.nc => again"]
        "#)
        .unwrap();
        let carried: Vec<String> = moved
            .carried
            .iter()
            .map(|c| format!("{:?} {} {}", c.kind, c.from, c.to))
            .collect();
        assert_eq!(
            carried,
            [
                "Program build/app carried/0/app",
                "File ../mesh.nc mesh.nc",
                "File data/ data",
                "File . carried/3/directory",
                "Program other/app carried/4/app",
                "File ../mesh.nc carried/5/mesh.nc",
            ]
        );
        let [first, second] = moved.job.subjobs() else {
            panic!("two subjobs")
        };
        assert_eq!(
            (&first.contact, first.site.as_str(), first.lan.as_str()),
            (&Contact::Home, "lab", "lab")
        );
        assert_eq!(second.contact, Contact::Ssh("far".into()));
        assert_eq!(first.sections[0].program, Program::one("./carried/0/app"));
        let inputs = |subjob: &Subjob| subjob.files.inputs.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            inputs(first),
            [
                "mesh.nc",
                "data",
                // The content of a directory keeps its meaning.
                "carried/3/directory => ",
                "~/old => start",
                "https://data.example.org/sst.nc",
            ]
        );
        assert_eq!(inputs(second), ["carried/5/mesh.nc => again"]);
        assert_eq!(moved.job.name().map(|n| n.as_str()), Some("tides"));
    }

    #[test]
    fn what_the_site_has_stays_as_it_is() {
        let moved = of("program = \"/opt/app\"\nstage = false\n[[subjob]]\nsite = \"far\"\n").unwrap();
        assert!(moved.carried.is_empty());
        assert_eq!(moved.job.subjobs()[0].sections[0].program, Program::one("/opt/app"));
    }

    #[test]
    fn this_machine_and_its_files_cannot_take_part() {
        for (text, why) in [
            ("[[subjob]]\nsite = \"home\"\n", "takes no part"),
            (
                "[[subjob]]\nsite = \"far\"\nstdout = \"file:///tmp/out\"\n",
                "stdout is a file on this machine",
            ),
            (
                "[[subjob]]\nsite = \"far\"\nrequests = [\"fileStageIn=(file:///a b)\"]\n",
                "fileStageIn is about files on this machine",
            ),
        ] {
            let error = of(&format!("program = \"./a\"\n{text}")).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(of("program = \"./a\"\n[[subjob]]\nsite = \"far\"\nstdout = \"/far/out\"\n").is_ok());
    }
}
