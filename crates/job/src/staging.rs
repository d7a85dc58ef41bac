// SPDX-License-Identifier: Apache-2.0
//! What `fileStageIn`, `fileStageInShared`, `fileStageOut`, `fileCleanUp` and `scratchDir` of RSL ask for, as files
//! that come and go.
//!
//! A relative path is one below the working directory. Without `directory` that is the directory of the subjob, which
//! is removed after the job; with it, the files get and have their places there.

use crate::attributes::{Request, Setting};
use crate::error::{JobError, JobErrors};
use crate::model::{Job, Subjob};
use crate::quoted::shown;
use crate::scratch::MARK;
use crate::transfer::{Given, Input, Location, Taken, check_relative};

impl Job {
    /// The same with what its requests say of files among the files of its subjobs.
    ///
    /// # Errors
    /// All that cannot be done, with the name of the site.
    pub fn with_staging(self) -> Result<Self, JobErrors> {
        let mut subjobs = self.subjobs().to_vec();
        let mut errors = JobErrors::default();
        for subjob in &mut subjobs {
            for request in std::mem::take(&mut subjob.requests) {
                match adopt(subjob, &request) {
                    Ok(true) => {}
                    Ok(false) => subjob.requests.push(request),
                    Err(error) => errors.push(JobError {
                        problem: format!("site '{}': {}: {}", subjob.site, request.attribute.name, error.problem),
                        ..error
                    }),
                }
            }
            if subjob.files.scratch.is_none() && subjob.names_scratch() {
                let problem = format!(
                    "site '{}': {MARK} is used, but there is no scratch directory",
                    subjob.site
                );
                let hint = "name a place for one: (scratchDir = /PATH) in RSL, requests = [\"scratchDir=/PATH\"] in a job file";
                errors.push(JobError::new(problem).hint(hint));
            }
        }
        errors.or(Some(self.with_subjobs(subjobs)?))
    }
}

/// Whether a request is about files, which the subjob then has.
fn adopt(subjob: &mut Subjob, request: &Request) -> Result<bool, JobError> {
    let above = subjob.directory.clone();
    match request.attribute.name {
        "fileStageIn" | "fileStageInShared" => {
            for (source, path) in request.values.iter().filter_map(pair) {
                let source = Location::parse(source)?;
                match at_site(above.as_deref(), path) {
                    Some(path) => subjob.files.given.push(Given { source, path }),
                    None => {
                        relative(path)?;
                        let name = path.to_owned();
                        subjob.files.inputs.push(Input { source, name });
                    }
                }
            }
        }
        "fileStageOut" => {
            for (path, target) in request.values.iter().filter_map(pair) {
                let Location::Home(target) = Location::parse(target)? else {
                    return Err(JobError::new(format!("'{target}' is not a file here"))
                        .hint("write file:///PATH; isthmus cp takes a file on to a site"));
                };
                let there = at_site(above.as_deref(), path);
                if there.is_none() {
                    relative(path)?;
                }
                subjob.files.taken.push(Taken {
                    at_site: there.is_some(),
                    path: there.unwrap_or_else(|| path.to_owned()),
                    target,
                });
            }
        }
        "fileCleanUp" => {
            let paths = request.values.iter().filter_map(Setting::text);
            // What is below the directory of the subjob goes with it.
            subjob
                .files
                .removed
                .extend(paths.filter_map(|path| at_site(above.as_deref(), path)));
        }
        "scratchDir" => subjob.files.scratch = request.values.first().and_then(Setting::text).map(str::to_owned),
        _ => return Ok(false),
    }
    Ok(true)
}

fn pair(setting: &Setting) -> Option<(&str, &str)> {
    match setting {
        Setting::List(list) => match list.as_slice() {
            [first, second] => Some((first.text()?, second.text()?)),
            _ => None,
        },
        Setting::Text(_) => None,
    }
}

/// A path in the file system of the site, if it is not one in the directory of the subjob.
fn at_site(directory: Option<&str>, path: &str) -> Option<String> {
    match directory {
        _ if path.starts_with('/') || path.starts_with(MARK) => Some(path.to_owned()),
        Some("~") => Some(path.to_owned()),
        Some(directory) => {
            // Relative paths of a site begin at the home directory there.
            let below = directory.strip_prefix("~/").unwrap_or(directory);
            Some(format!("{}/{path}", below.trim_end_matches('/')))
        }
        None => None,
    }
}

fn relative(path: &str) -> Result<(), JobError> {
    check_relative(path).map_err(|why| JobError::new(format!("the path '{}': {why}", shown(path))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::{Form, Input as Text};

    fn staged(rsl: &str) -> Result<Subjob, JobErrors> {
        let described = Form::Rsl.read(&Text::of(rsl, "job.rsl")).unwrap();
        described.job.with_staging().map(|job| job.subjobs()[0].clone())
    }

    #[test]
    fn a_relative_directory_is_below_the_home_directory_of_the_site() {
        let files = "(executable=a)(fileStageOut=(out out))";
        for (directory, path) in [
            ("run7", "run7/out"),
            ("~/run7", "run7/out"),
            ("~", "out"),
            ("/run7", "/run7/out"),
        ] {
            let there = staged(&format!(
                "&(resourceManagerContact=lab)(directory=\"{directory}\"){files}"
            ))
            .unwrap();
            assert_eq!(there.files.taken[0].path, path, "{directory}");
            let home = there.directory.is_some_and(|named| named.starts_with(['~', '/']));
            assert!(home, "{directory}");
        }
        let here = staged(&format!("&(resourceManagerContact=home)(directory=run7){files}")).unwrap();
        assert_eq!(here.directory.as_deref(), Some("run7"));
    }

    #[test]
    fn files_of_rsl_come_and_go() {
        let files = "(fileStageIn=(file:///data/mesh in/mesh)(https://host/sst /scratch/sst))(fileStageInShared=(isthmus://lab/x x))
            (fileStageOut=(out.dat file:///home/me/out.dat)(/scratch/log log))(fileCleanUp=junk /scratch/sst)";
        let own = staged(&format!("&(executable=a){files}")).unwrap();
        assert!(own.requests.is_empty());
        let inputs: Vec<String> = own.files.inputs.iter().map(ToString::to_string).collect();
        assert_eq!(inputs, ["/data/mesh => in/mesh", "isthmus://lab/x"]);
        assert_eq!(own.files.given[0].path, "/scratch/sst");
        let taken = |s: &Subjob| {
            s.files
                .taken
                .iter()
                .map(|t| (t.path.clone(), t.at_site, t.target.clone()))
                .collect::<Vec<_>>()
        };
        let out = |path: &str, at_site| (path.to_owned(), at_site, "/home/me/out.dat".to_owned());
        assert_eq!(taken(&own)[0], out("out.dat", false));
        assert_eq!(own.files.removed, ["/scratch/sst"]);

        let elsewhere = staged(&format!("&(executable=a)(directory=run7){files}")).unwrap();
        let given: Vec<&str> = elsewhere.files.given.iter().map(|g| g.path.as_str()).collect();
        assert_eq!(given, ["run7/in/mesh", "/scratch/sst", "run7/x"]);
        assert_eq!(taken(&elsewhere)[0], out("run7/out.dat", true));
        assert_eq!(elsewhere.files.removed, ["run7/junk", "/scratch/sst"]);
    }

    #[test]
    fn a_scratch_directory_is_named_before_it_is_there() {
        let read = |rsl: &str| {
            let bindings = crate::forms::rsl::bindings(|_| None);
            let text = Text {
                bindings: &bindings,
                ..Text::of(rsl, "job.rsl")
            };
            Form::Rsl.read(&text).unwrap().job
        };
        let text = "&(executable=a)(directory=$(SCRATCH_DIRECTORY))(arguments=$(SCRATCH_DIRECTORY)/x)(stdout=$(SCRATCH_DIRECTORY)#/out)
            (fileStageIn=(file:///m m))(fileStageOut=($(SCRATCH_DIRECTORY)/out file:///back))";
        let job = read(&format!("{text}(scratchDir=/tmp)")).with_staging().unwrap();
        let subjob = job.subjobs()[0].with_scratch("/tmp/s");
        assert_eq!(subjob.files.scratch.as_deref(), Some("/tmp"));
        assert_eq!(
            (subjob.directory.as_deref(), subjob.sections[0].arguments[0].as_str()),
            (Some("/tmp/s"), "/tmp/s/x")
        );
        assert_eq!(
            (subjob.files.given[0].path.as_str(), subjob.files.taken[0].path.as_str()),
            ("/tmp/s/m", "/tmp/s/out")
        );
        assert_eq!(subjob.request("stdout"), Some("/tmp/s/out"));
        let error = read(text).with_staging().unwrap_err().to_string();
        assert!(error.contains("there is no scratch directory"), "{error}");
    }

    #[test]
    fn all_that_cannot_be_done_is_told() {
        let text = "+(&(resourceManagerContact=a)(count=1)(executable=a)(fileStageIn=(gsiftp://x/y y)))
            (&(resourceManagerContact=b)(count=1)(executable=a)(fileStageIn=(file:///y ../y)))
            (&(resourceManagerContact=c)(count=1)(executable=a)(fileStageOut=(y https://x/y)))";
        let errors = staged(text).unwrap_err().to_string();
        for part in [
            "'gsiftp' is not a known kind of URL",
            "site 'b': fileStageIn: the path '../y'",
            "is not a file here",
        ] {
            assert!(errors.contains(part), "{errors}");
        }
    }
}
