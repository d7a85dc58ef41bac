// SPDX-License-Identifier: Apache-2.0
//! Which files a subjob needs beside its program, and which it gives back.
//!
//! ```toml
//! inputs = ["mesh.nc", "tables/", "https://data.example.org/sst.nc", "isthmus://lab/scratch/run7/restart => restart"]
//! outputs = ["*.out", "frames/**"]
//! results = "results"   # where outputs go, each site's into a directory of its name; default: isthmus-results/JOB
//! share = ["/scratch/run7"] # what processes of other sites may open there beside all that
//! ```

use crate::error::JobError;
use crate::quoted::shown;

/// Most inputs and most patterns of a subjob.
pub const MAX_TRANSFERS: usize = 4096;
/// Most directories of a subjob that others may open files in.
pub const MAX_SHARED: usize = 64;
/// Longest path, pattern and name, bytes.
const MAX_TEXT: usize = 4096;
/// What is between an input and the name that it gets.
const ARROW: &str = "=>";

/// Files of a subjob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// What is in its directory when it begins.
    pub inputs: Vec<Input>,
    /// What is fetched from there when it has ended.
    pub outputs: Vec<Pattern>,
    /// Where that goes at home.
    pub results: Option<String>,
    /// What gets a place of its own at the site before it begins.
    pub given: Vec<Given>,
    /// What is fetched from there to a place of its own here.
    pub taken: Vec<Taken>,
    /// Files of the site that are removed after that: paths, relative ones below the home directory.
    pub removed: Vec<String>,
    /// Below which directory of the site it gets one of its own, which is removed after that: see [`crate::scratch`].
    pub scratch: Option<String>,
    /// Directories and files of the site that processes of other sites may open: absolute paths, those that begin with
    /// `~/`, and relative ones, below the working directory.
    pub shared: Vec<String>,
}

/// A file that gets a place at the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Where it is.
    pub source: Location,
    /// Its path there; a relative one is below the home directory.
    pub path: String,
}

/// A file that comes back to a place here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its path: in the directory of the subjob, or at the site.
    pub path: String,
    /// Which of them.
    pub at_site: bool,
    /// Where it goes.
    pub target: String,
}

/// A file or directory that a subjob needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Where it is.
    pub source: Location,
    /// Its name in the directory of the subjob: a relative path below it; empty for the content of a directory.
    pub name: String,
}

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// At home; `~/` at the beginning stands for the home directory.
    Home(String),
    /// At a site: name, path there.
    Site(String, String),
    /// Whatever the system's curl fetches.
    Web(String),
    /// `sftp://[USER@]HOST[:PORT]/PATH`: ssh destination, path there.
    Sftp(String, String),
}

/// Names of files: `*` and `?` within a name, `**` for any directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Transfers {
    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        let own = self.inputs.is_empty() && self.outputs.is_empty();
        own && self.scratch.is_none() && self.given.is_empty() && self.taken.is_empty() && self.removed.is_empty()
    }

    /// Whether something is fetched after the end.
    pub fn gives_back(&self) -> bool {
        !self.outputs.is_empty() || !self.taken.is_empty()
    }
}

impl Location {
    /// Reads a path or URL.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        if text.is_empty() || text.len() > MAX_TEXT || text.chars().any(char::is_control) {
            return Err(JobError::new(format!("'{}' is not a file", shown(text))).hint(FORMS));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Self::Home(text.to_owned()));
        };
        let split = || {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if host.is_empty() || host.starts_with('-') || path.len() < 2 {
                return Err(JobError::new(format!("'{text}' names no host, or no path on it")).hint(FORMS));
            }
            Ok((host.to_owned(), path.to_owned()))
        };
        match scheme {
            "file" => match rest.strip_prefix("localhost").unwrap_or(rest) {
                path if path.starts_with('/') => Ok(Self::Home(path.to_owned())),
                _ => Err(JobError::new(format!("'{text}' names a host"))
                    .hint("write file:///PATH for a file here, sftp:// or isthmus:// for others")),
            },
            "isthmus" => {
                let (site, path) = split()?;
                // `/~/x` is below the home directory there, where a site's relative paths begin; those at home do not.
                let below = path.strip_prefix("/~/");
                Ok(match (site.as_str(), below) {
                    ("home", Some(below)) => Self::Home(format!("~/{below}")),
                    ("home", None) => Self::Home(path),
                    (_, below) => Self::Site(site, below.unwrap_or(&path).to_owned()),
                })
            }
            "sftp" | "ssh" => {
                let (host, path) = split()?;
                let path = path.strip_prefix("/~/").map_or_else(|| path.clone(), str::to_owned);
                let destination = if host.contains(':') {
                    format!("ssh://{host}")
                } else {
                    host
                };
                Ok(Self::Sftp(destination, path))
            }
            "http" | "https" | "ftp" | "ftps" => split().map(|_| Self::Web(text.to_owned())),
            _ => Err(JobError::new(format!("'{scheme}' is not a known kind of URL")).hint(FORMS)),
        }
    }

    /// The last part of its path.
    pub fn name(&self) -> &str {
        let path = match self {
            Self::Home(path) | Self::Site(_, path) | Self::Sftp(_, path) => path.as_str(),
            Self::Web(url) => url.split(['?', '#']).next().unwrap_or_default(),
        };
        path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rooted = |path: &str| {
            if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("/~/{path}")
            }
        };
        match self {
            Self::Home(path) => f.write_str(path),
            Self::Site(site, path) => write!(f, "isthmus://{site}{}", rooted(path)),
            Self::Web(url) => f.write_str(url),
            Self::Sftp(host, path) => {
                write!(f, "sftp://{}{}", host.trim_start_matches("ssh://"), rooted(path))
            }
        }
    }
}

const FORMS: &str = "write a path, file:///PATH, https://HOST/PATH, sftp://HOST/PATH or isthmus://SITE/PATH";

/// Reads what `--share` names.
pub fn parse_shared(text: &str) -> Result<String, JobError> {
    let hint = "write a path there: /DIR, ~/DIR, or one below the working directory";
    if text.is_empty() || text.len() > MAX_TEXT || text.chars().any(char::is_control) {
        return Err(JobError::new(format!("'{}' is not a directory to share", shown(text))).hint(hint));
    }
    if text.contains("://") {
        let site = "for one site alone write --site NAME:N,share=DIR, or share = [\"DIR\"] in its [[subjob]]";
        return Err(JobError::new(format!("'{text}' is not the path of a directory to share")).hint(site));
    }
    Ok(text.to_owned())
}

impl Input {
    /// Reads `SOURCE` or `SOURCE => NAME`.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        let (source, name) = match text.split_once(ARROW) {
            Some((source, name)) => (source.trim(), Some(name.trim())),
            None => (text, None),
        };
        let source = Location::parse(source)?;
        let name = match name {
            Some(name) => name.trim_end_matches('/').to_owned(),
            None => match source.name() {
                "" | "." | ".." if matches!(source, Location::Home(_)) => String::new(),
                name => name.to_owned(),
            },
        };
        if !name.is_empty() {
            check_relative(&name).map_err(|why| {
                JobError::new(format!("input '{text}' would get the name '{name}': {why}"))
                    .hint("write SOURCE => NAME, where NAME is a path below the directory of the subjob")
            })?;
        }
        Ok(Self { source, name })
    }
}

impl std::fmt::Display for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let usual =
            self.source.name() == self.name || (self.name.is_empty() && matches!(self.source.name(), "" | "." | ".."));
        match usual {
            true => write!(f, "{}", self.source),
            false => write!(f, "{} {ARROW} {}", self.source, self.name),
        }
    }
}

/// Why a path would leave the directory that it is relative to, or cannot be a path.
pub fn check_relative(path: &str) -> Result<(), &'static str> {
    if path.is_empty() || path.len() > MAX_TEXT {
        return Err("it is empty or too long");
    }
    if path.contains('\0') {
        return Err("it contains a zero byte");
    }
    if path.starts_with('/') {
        return Err("it is not relative");
    }
    if path
        .split('/')
        .any(|part| matches!(part, "" | "." | "..") || part.len() > 255)
    {
        return Err("a part of it is empty, '.', '..' or longer than 255 bytes");
    }
    Ok(())
}

impl Pattern {
    /// Reads a pattern of relative paths.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        check_relative(text).map_err(|why| {
            JobError::new(format!("'{}' is not a file pattern: {why}", shown(text)))
                .hint("write for example *.out or frames/**")
        })?;
        Ok(Self(text.to_owned()))
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether it means this relative path.
    pub fn matches(&self, path: &str) -> bool {
        let pattern: Vec<&str> = self.0.split('/').collect();
        let path: Vec<&str> = path.split('/').collect();
        // As for the letters of a name: `**` is a star over whole parts.
        star(
            &pattern,
            &path,
            |p| *p == "**",
            |p, part| {
                let (p, part): (Vec<char>, Vec<char>) = (p.chars().collect(), part.chars().collect());
                star(&p, &part, |c| *c == '*', |c, x| *c == '?' || c == x)
            },
        )
    }
}

/// Matching with stars in time pattern × text: after a mismatch the last star takes one more.
fn star<P, T>(pattern: &[P], text: &[T], is_star: impl Fn(&P) -> bool, same: impl Fn(&P, &T) -> bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut last: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && is_star(&pattern[p]) {
            last = Some((p, t));
            p += 1;
        } else if p < pattern.len() && same(&pattern[p], &text[t]) {
            p += 1;
            t += 1;
        } else if let Some((star, taken)) = last {
            last = Some((star, taken + 1));
            p = star + 1;
            t = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(is_star)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        for (text, want) in [
            ("a/b", Location::Home("a/b".into())),
            ("file:///a/b", Location::Home("/a/b".into())),
            ("file://localhost/a", Location::Home("/a".into())),
            ("isthmus://home/x", Location::Home("/x".into())),
            ("isthmus://home/~/x", Location::Home("~/x".into())),
            ("isthmus://lab/x", Location::Site("lab".into(), "/x".into())),
            ("isthmus://lab/~/x", Location::Site("lab".into(), "x".into())),
            ("sftp://me@h/x", Location::Sftp("me@h".into(), "/x".into())),
            ("sftp://h:2222/~/x", Location::Sftp("ssh://h:2222".into(), "x".into())),
            ("https://h/x?y=1", Location::Web("https://h/x?y=1".into())),
        ] {
            let place = Location::parse(text).unwrap();
            assert_eq!(place, want, "{text}");
            assert_eq!(Location::parse(&place.to_string()).unwrap(), want, "{text}");
        }
        for text in [
            "",
            "gopher://x/y",
            "isthmus://lab",
            "https:///x",
            "file://other/x",
            "sftp://-oX/y",
            "a\nb",
        ] {
            assert!(Location::parse(text).is_err(), "'{text}' was accepted");
        }
    }

    #[test]
    fn inputs_cannot_leave_their_directory() {
        assert_eq!(Input::parse("../data/mesh.nc").unwrap().name, "mesh.nc");
        assert_eq!(Input::parse("a => b/c").unwrap().name, "b/c");
        assert_eq!(Input::parse(".").unwrap().name, "");
        for text in [
            "a => ../b",
            "a => /etc/passwd",
            "a => b/../../c",
            "https://h/..",
            "isthmus://lab/..",
        ] {
            assert!(Input::parse(text).is_err(), "'{text}' was accepted");
        }
        for text in ["mesh.nc", "a => b/c", "isthmus://lab/~/x => y", "."] {
            assert_eq!(Input::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn patterns() {
        let matches = |pattern: &str, path: &str| Pattern::parse(pattern).unwrap().matches(path);
        for (pattern, path, want) in [
            ("*.out", "a.out", true),
            ("*.out", "d/a.out", false),
            ("**/*.out", "a.out", true),
            ("**/*.out", "d/e/a.out", true),
            ("d/**", "d/e/f", true),
            ("d/**", "e/f", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("**", "x/y", true),
            ("a*b*c", "aXbYbZc", true),
        ] {
            assert_eq!(matches(pattern, path), want, "{pattern} {path}");
        }
        let long = "a".repeat(200);
        assert!(!matches(&"a*".repeat(100), &format!("{long}b/")), "ends in time");
        assert!(Pattern::parse("../*").is_err());
    }
}
