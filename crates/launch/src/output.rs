// SPDX-License-Identifier: Apache-2.0
//! Files here that get the output of processes: one for each process, or those that a subjob names.

use isthmus_job::{JobError, Subjob};
use isthmus_stage::words;
use isthmus_wire::grid::Stream;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Most files that are open at once.
const MAX_OPEN: usize = 256;

/// What names the output file of a process: a path in which `%r` is its rank, `%s` its site, `%t` `out` or `err`, `%j`
/// the job and `%%` a `%`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPattern(String);

impl OutputPattern {
    /// From what the user wrote.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once('%') {
            match after.chars().next() {
                Some('r' | 's' | 't' | 'j' | '%') => rest = &after[1..],
                _ => {
                    return Err(JobError::new(format!("'{text}' contains a % that has no meaning"))
                        .hint("%r is the rank, %s the site, %t out or err, %j the job, %% a percent sign"));
                }
            }
        }
        if text.is_empty() {
            return Err(JobError::new("the pattern for output files is empty"));
        }
        Ok(Self(text.to_owned()))
    }

    /// `rank-3.out` and the like in a directory.
    pub fn in_directory(directory: &str) -> Self {
        Self(format!("{}/rank-%r.%t", directory.replace('%', "%%")))
    }

    fn path(&self, job: &str, rank: u32, site: &str, stream: Stream) -> PathBuf {
        let mut out = String::new();
        let mut signs = self.0.chars();
        while let Some(sign) = signs.next() {
            match (sign, if sign == '%' { signs.next() } else { None }) {
                ('%', Some('r')) => out.push_str(&rank.to_string()),
                // A site's name is no path.
                ('%', Some('s')) => out.push_str(&site.replace('/', "_")),
                ('%', Some('t')) => out.push_str(extension(stream)),
                ('%', Some('j')) => out.push_str(job),
                ('%', Some(other)) => out.push(other),
                (sign, _) => out.push(sign),
            }
        }
        words::path(&out)
    }
}

fn extension(stream: Stream) -> &'static str {
    match stream {
        Stream::Output => "out",
        Stream::Error => "err",
        Stream::Trace => "trace",
    }
}

/// What a subjob says about a standard stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirection {
    /// Nothing.
    Here,
    /// A file of the site.
    There(String),
    /// A file here.
    File(PathBuf),
}

impl Redirection {
    /// The place that an attribute of a subjob names.
    pub(crate) fn of(subjob: &Subjob, attribute: &str) -> Self {
        let text = subjob.request_texts(attribute).first().copied().unwrap_or_default();
        let local = text.strip_prefix("file://");
        match local.map(|path| {
            path.strip_prefix("localhost")
                .filter(|p| p.starts_with('/'))
                .unwrap_or(path)
        }) {
            Some("/dev/stdin" | "/dev/stdout" | "/dev/stderr") => Self::Here,
            Some(path) => Self::File(words::path(path)),
            None if text.is_empty() => Self::Here,
            None => Self::There(text.to_owned()),
        }
    }

    /// The path at the site, or nothing.
    pub(crate) fn there(self) -> String {
        match self {
            Self::There(path) => path,
            Self::Here | Self::File(_) => String::new(),
        }
    }
}

/// All files of a job.
#[derive(Debug)]
pub(crate) struct Files {
    job: String,
    directory: PathBuf,
    pattern: Option<OutputPattern>,
    /// Names and files of the subjobs, for output and errors.
    sites: Vec<(String, [Option<PathBuf>; 2])>,
    open: HashMap<PathBuf, File>,
    /// What has been begun; it is added to when it is opened again.
    begun: HashSet<PathBuf>,
    /// Another launcher has begun them.
    goes_on: bool,
}

impl Files {
    pub(crate) fn new(job: &str, directory: &Path, pattern: Option<OutputPattern>, subjobs: &[Subjob]) -> Self {
        let file = |subjob: &Subjob, attribute| match Redirection::of(subjob, attribute) {
            Redirection::File(path) => Some(path),
            Redirection::Here | Redirection::There(_) => None,
        };
        let sites = subjobs
            .iter()
            .map(|s| (s.site.clone(), [file(s, "stdout"), file(s, "stderr")]));
        Self {
            job: job.to_owned(),
            directory: directory.to_owned(),
            pattern,
            sites: sites.collect(),
            open: HashMap::new(),
            begun: HashSet::new(),
            goes_on: false,
        }
    }

    /// The same, where another launcher has begun the files.
    pub(crate) fn going_on(self) -> Self {
        Self { goes_on: true, ..self }
    }

    /// Writes output that belongs into a file; `None`: it belongs on the console.
    pub(crate) fn write(&mut self, site: usize, rank: u32, stream: Stream, bytes: &[u8]) -> Option<io::Result<()>> {
        let (name, own) = self.sites.get(site)?;
        let own = own[usize::from(stream == Stream::Error)].clone();
        let named = || Some(self.pattern.as_ref()?.path(&self.job, rank, name, stream));
        let path = self.directory.join(own.or_else(named)?);
        let written = self.file(&path).and_then(|file| file.write_all(bytes));
        Some(written.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))))
    }

    fn file(&mut self, path: &Path) -> io::Result<&mut File> {
        if !self.open.contains_key(path) {
            if self.open.len() >= MAX_OPEN {
                self.open.clear();
            }
            let first = !self.goes_on && !self.begun.contains(path);
            if let (true, Some(directory)) = (first, path.parent()) {
                std::fs::create_dir_all(directory)?;
            }
            let mut options = File::options();
            options.create(true).write(true).truncate(first).append(!first);
            self.open.insert(path.to_owned(), options.open(path)?);
            self.begun.insert(path.to_owned());
        }
        self.open
            .get_mut(path)
            .ok_or_else(|| io::Error::other("a file that was opened is not open"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let path = |text: &str| {
            let pattern = OutputPattern::parse(text).unwrap();
            pattern
                .path("j", 12, "a/b", Stream::Error)
                .to_string_lossy()
                .into_owned()
        };
        assert_eq!(path("o/%s-%r.%t"), "o/a_b-12.err");
        assert_eq!(path("%j%%"), "j%");
        assert_eq!(
            OutputPattern::in_directory("50%").path("", 1, "", Stream::Output),
            Path::new("50%/rank-1.out")
        );
        for wrong in ["", "%", "%x"] {
            assert!(OutputPattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
