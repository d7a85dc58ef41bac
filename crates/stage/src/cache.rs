// SPDX-License-Identifier: Apache-2.0
//! Where the cache of this user is on this machine.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// Why there is no cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCache {
    /// Neither XDG_CACHE_HOME nor HOME is set.
    NoHome,
    /// HOME is not there. It is not made: whoever has set it means something else, and nobody would look for it.
    NotThere(PathBuf),
}

impl fmt::Display for NoCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHome => write!(f, "HOME is not set"),
            Self::NotThere(home) => write!(f, "HOME is '{}', which is not a directory", home.display()),
        }
    }
}

impl std::error::Error for NoCache {}

/// `$XDG_CACHE_HOME/isthmus`, or `$HOME/.cache/isthmus` where the home is there. Whoever writes to it makes it.
///
/// # Errors
/// There is no place for one.
pub fn directory() -> Result<PathBuf, NoCache> {
    among(&|name| std::env::var_os(name))
}

fn among(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, NoCache> {
    let named = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = match (named("XDG_CACHE_HOME"), named("HOME")) {
        (Some(cache), _) => cache,
        (None, Some(home)) if home.is_dir() => home.join(".cache"),
        (None, Some(home)) => return Err(NoCache::NotThere(home)),
        (None, None) => return Err(NoCache::NoHome),
    };
    Ok(base.join("isthmus"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_that_is_not_there_is_no_place() {
        let with = |cache: Option<&str>, home: Option<&str>| {
            among(&|name| {
                let value = if name == "HOME" { home } else { cache };
                value.map(OsString::from)
            })
        };
        let missing = "/proc/self/no-such-home";
        assert_eq!(with(None, Some("/")), Ok("/.cache/isthmus".into()));
        assert_eq!(with(Some("relative"), Some("/")), Ok("/.cache/isthmus".into()));
        assert_eq!(with(Some("/c"), Some(missing)), Ok("/c/isthmus".into()));
        assert_eq!(with(None, None), Err(NoCache::NoHome));
        assert_eq!(with(None, Some("")), Err(NoCache::NoHome));
        let error = with(None, Some(missing)).expect_err("it is not there");
        assert_eq!(
            error.to_string(),
            "HOME is '/proc/self/no-such-home', which is not a directory"
        );
    }
}
