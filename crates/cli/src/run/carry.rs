// SPDX-License-Identifier: Apache-2.0
//! `isthmus run --detach --at SITE`: a job whose launcher lives at a site. Its files are brought to a directory there,
//! and the same command begins it in the background, without this machine.

use super::how::Launch;
use super::options::{INTERNAL, library};
use crate::diagnostic::{note, refuse};
use crate::elsewhere::Heard;
use crate::{elsewhere, reach};
use isthmus_job::catalogue::Entry;
use isthmus_job::forms::Form;
use isthmus_job::moved::{Carried, Kind, Moved, moved};
use isthmus_job::{Contact, Job, JobError, JobErrors};
use isthmus_reach::{Access, Remote, program_here};
use isthmus_stage::content::hex;
use isthmus_stage::guarded::{Guarded, random};
use isthmus_stage::words;
use isthmus_wire::relay::{Begin, Said};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where jobs that came from elsewhere have their directories, below the home directory of a site.
const JOBS: &str = "isthmus-jobs";
/// The file there with what was typed here.
const TYPED: &str = "command.json";
/// Most that a site says of whom it does not reach, or as the name of a job, bytes.
const MOST_SAID: usize = 1 << 16;

/// Begins the job at its site and prints its name, `SITE/JOB`.
pub(super) fn start(job: &Job, how: &Launch) -> ExitCode {
    let site = how.at.as_deref().unwrap_or_default();
    match begin(job, site, how) {
        Ok(status) => ExitCode::from(status),
        Err(errors) => refuse(&errors),
    }
}

fn begin(job: &Job, site: &str, how: &Launch) -> Result<u8, JobErrors> {
    let options = how.elsewhere(site)?;
    let catalogue = reach::catalogue()?;
    let entry = reach::site(&catalogue, site)?;
    if entry.contact == Contact::Home {
        let error = JobError::new(format!("--at {site}: that is this machine"));
        return Err(error.hint("--detach alone runs the job in the background here").into());
    }
    // What a file here says of links goes along in the description.
    let job = crate::links::pinned(job.clone(), how.links.as_deref())?;
    let Moved { job, carried } = moved(&job, site, &entry.contact)?;
    let access = reach::access(None)?;
    let there = There {
        site,
        entry: &entry,
        access: &access,
    };
    there.check_reach(&job)?;
    let identifier = hex(&random::<4>().map_err(cannot)?);
    let directory = format!("{JOBS}/{identifier}");
    there.bring(&job, &carried, &directory)?;
    there.begin(options, directory, &identifier)
}

fn cannot(error: io::Error) -> JobError {
    JobError::new(format!("cannot gather the files of the job: {error}")).accident()
}

/// The site where the launcher is to live.
struct There<'a> {
    site: &'a str,
    entry: &'a Entry,
    access: &'a Access,
}

impl There<'_> {
    fn remote(&self) -> Remote<'_> {
        Remote {
            access: self.access,
            contact: &self.entry.contact,
            setup: &self.entry.setup,
        }
    }

    fn blame(&self, error: JobError) -> JobError {
        let problem = format!("site '{}': {}", self.site, error.problem);
        JobError { problem, ..error }
    }

    /// Whether the launcher there will reach the other sites: before anything is begun that could not go on.
    fn check_reach(&self, job: &Job) -> Result<(), JobError> {
        let others = job.subjobs().iter().filter_map(|subjob| match &subjob.contact {
            Contact::Home | Contact::Part(_) => None,
            Contact::Ssh(destination) => Some(destination.clone()),
        });
        let mut words: Vec<String> = others.collect();
        if words.is_empty() {
            return Ok(());
        }
        words.insert(0, "reach".to_owned());
        let mut complaints = Vec::new();
        let asked = Begin {
            words,
            ..Begin::default()
        };
        let status = elsewhere::on(self.access, self.site, &asked, None, &mut |said| {
            if let Said::Errors(bytes) = said {
                return elsewhere::gather(&mut complaints, &bytes, MOST_SAID);
            }
            Ok(())
        });
        match status.map_err(|error| self.blame(error))? {
            0 => Ok(()),
            _ => {
                let words = isthmus_reach::plain(String::from_utf8_lossy(&complaints).trim());
                let problem = format!(
                    "a launcher at '{}' does not reach all sites of the job:\n{words}",
                    self.site
                );
                Err(JobError::new(problem).accident().hint(format!(
                    "it uses the keys and the ssh configuration of '{0}', without passphrases and without this machine's agent: \
                     make `ssh -o BatchMode=yes SITE true` work there, or put the launcher at another site",
                    self.site
                )))
            }
        }
    }

    /// Brings everything that the job needs to its directory there.
    fn bring(&self, job: &Job, carried: &[Carried], directory: &str) -> Result<(), JobError> {
        let base = std::env::temp_dir();
        let gathered = Guarded::create(&base, "isthmus-carry-").map_err(cannot)?;
        let top = gathered.path();
        let here = std::env::current_dir().map_err(cannot)?;
        for one in carried {
            let from = match one.kind {
                Kind::Program => self.program(&one.from, &here, top)?,
                Kind::File => file_here(&one.from, &here),
            };
            if let Err(error) = std::fs::metadata(&from) {
                return Err(JobError::new(format!("input '{}': {error}", one.from)));
            }
            link(&from, &top.join(&one.to))?;
        }
        let binary = std::env::current_exe().map_err(cannot)?;
        if let Some(library) = library(&binary) {
            link(&library, &top.join("lib").join(library.file_name().unwrap_or_default()))?;
        }
        let written = Form::Toml.write(job);
        for lost in written.lost {
            note(&JobError::new(format!(
                "the launcher at '{}' is not told: {lost}",
                self.site
            )));
        }
        std::fs::write(top.join("job.toml"), written.text).map_err(cannot)?;
        let typed = serde_json::json!(crate::words()).to_string();
        std::fs::write(top.join(TYPED), typed).map_err(cannot)?;
        let put = self.remote().put(top, directory, &|_, _, _| {});
        put.map(|_| ())
            .map_err(|failure| self.blame(elsewhere::failed(failure)))
    }

    /// A program with those of its shared libraries that the site lacks.
    fn program(&self, name: &str, here: &Path, top: &Path) -> Result<PathBuf, JobError> {
        let program = program_here(name, here).map_err(elsewhere::failed)?;
        let lacking = self.remote().lacks(&program);
        for library in lacking.map_err(|failure| self.blame(elsewhere::failed(failure)))? {
            let to = top.join("lib").join(library.file_name().unwrap_or_default());
            if !to.exists() {
                link(&library, &to)?;
            }
        }
        Ok(program)
    }

    fn begin(&self, options: Vec<String>, directory: String, identifier: &str) -> Result<u8, JobErrors> {
        let mut words = ["run", "--detach"].map(str::to_owned).to_vec();
        words.push(format!("--carried={identifier}"));
        words.extend(options);
        words.push("job.toml".to_owned());
        let mut environment = crate::variables::settings(false, &INTERNAL);
        let library = isthmus_settings::LIBRARY_DIRECTORY.name;
        let here = [library, isthmus_settings::LINKS_FILE.name, isthmus_settings::LOGIN.name];
        environment.retain(|(name, _)| !here.contains(&name.as_str()));
        environment.push((library.to_owned(), "lib".to_owned()));
        let begin = Begin {
            directory: directory.clone(),
            words,
            environment,
        };
        let (mut name, mut heard) = (Vec::new(), Heard::default());
        let status = elsewhere::on(self.access, self.site, &begin, None, &mut |said| match said {
            Said::Output(bytes) => elsewhere::gather(&mut name, &bytes, MOST_SAID),
            other => heard.say(other),
        });
        let status = status.map_err(|error| self.blame(error))?;
        let name = isthmus_reach::plain(String::from_utf8_lossy(&name).trim());
        if status == 0 {
            crate::print(&format!("{}/{name}", self.site));
            note(&JobError::new(format!(
                "its directory is ~/{directory} at '{}': outputs are there when it has ended",
                self.site
            )));
        }
        Ok(status)
    }
}

/// What was typed on the machine that a job came from, which is here with its other files.
pub(crate) fn typed() -> Vec<String> {
    let text = crate::given::read(Path::new(TYPED)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_else(|_| crate::words())
}

/// `~/` is the home directory here.
fn file_here(path: &str, here: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(below), Some(home)) => Path::new(&home).join(words::path(below)),
        _ => here.join(words::path(path)),
    }
}

fn link(from: &Path, to: &Path) -> Result<(), JobError> {
    let made = || -> io::Result<()> {
        if let Some(above) = to.parent() {
            std::fs::create_dir_all(above)?;
        }
        symlink(from, to)
    };
    made().map_err(cannot)
}

/// `isthmus reach`: whether these destinations are reached from here without a question. What is not is told of.
pub(crate) fn check(destinations: &[String]) -> ExitCode {
    let reached: Vec<bool> = std::thread::scope(|scope| {
        let asking = destinations.iter().map(|to| scope.spawn(move || is_reached(to)));
        let asking: Vec<_> = asking.collect();
        asking
            .into_iter()
            .map(|thread| thread.join().unwrap_or(false))
            .collect()
    });
    match reached.iter().all(|reached| *reached) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn is_reached(destination: &str) -> bool {
    let tried = || -> Result<(), JobError> {
        let binary = std::env::current_exe().map_err(cannot)?;
        let access = Access::new(&binary, &reach::ssh_command(None), false);
        let contact = Contact::parse(destination)?;
        let remote = Remote {
            access: &access,
            contact: &contact,
            setup: &[],
        };
        remote.reach(reach::PATIENCE).map_err(elsewhere::failed)
    };
    match tried() {
        Ok(()) => true,
        Err(error) => {
            crate::complain(&format!("'{destination}': {}", error.problem));
            false
        }
    }
}
