// SPDX-License-Identifier: Apache-2.0
//! Names of files as programs give them, and the sites in them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use isthmus_abi::constants as abi;
use isthmus_core::comm::Whereabouts;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::info::Info;
use isthmus_engine::Peer;
use isthmus_wire::file::Path;

/// Prefixes by which other libraries are told what file system it is. Here every one is a directory of the system.
const PREFIXES: [&str; 8] = [
    "ufs:", "nfs:", "xfs:", "lustre:", "gpfs:", "panfs:", "pvfs2:", "testfs:",
];
const SCHEME: &str = "isthmus://";

/// What a name without a site means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// One file for all processes.
    #[default]
    Job,
    /// The processes of each site have one for themselves.
    Site,
}

/// A name as the program gives it.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    /// `None`: it says nothing of a site.
    pub(crate) site: Option<String>,
    /// In the file system there.
    pub(crate) path: Path,
}

/// Whether a name as the program gives it says itself at which site the file is.
pub(crate) fn is_plain(given: &[u8]) -> bool {
    !given.starts_with(SCHEME.as_bytes())
}

impl Name {
    pub(crate) fn new(given: &[u8], info: &Info) -> Result<Self> {
        if given.is_empty() {
            fail!(abi::MPI_ERR_BAD_FILE, argument("filename"), "is empty");
        }
        let Some(rest) = given.strip_prefix(SCHEME.as_bytes()) else {
            let prefix = PREFIXES.iter().find(|prefix| given.starts_with(prefix.as_bytes()));
            return Ok(Self {
                site: info.get("isthmus_site")?.map(str::to_owned),
                path: Path {
                    below_home: false,
                    bytes: given[prefix.map_or(0, |prefix| prefix.len())..].to_vec(),
                },
            });
        };
        let Some(end) = rest.iter().position(|byte| *byte == b'/') else {
            fail!(
                abi::MPI_ERR_BAD_FILE,
                argument("filename"),
                "begins with {SCHEME} and has no path after the site: {SCHEME}SITE/PATH"
            );
        };
        if end == 0 {
            fail!(
                abi::MPI_ERR_BAD_FILE,
                argument("filename"),
                "begins with {SCHEME} and names no site: {SCHEME}SITE/PATH"
            );
        }
        let (site, path) = rest.split_at(end);
        let below = path.strip_prefix(b"/~/");
        Ok(Self {
            site: Some(String::from_utf8_lossy(site).into_owned()),
            path: Path {
                below_home: below.is_some(),
                bytes: below.unwrap_or(path).to_vec(),
            },
        })
    }
}

/// The name here. What `~` means is each process's own, as for `isthmus cp`; that at the file's site counts.
pub(crate) fn local(path: &Path) -> Result<Shown> {
    let bytes = PathBuf::from(OsStr::from_bytes(&path.bytes));
    if !path.below_home {
        return Ok(Shown(bytes));
    }
    match std::env::var_os("HOME").filter(|home| !home.is_empty()) {
        Some(home) => Ok(Shown(PathBuf::from(home).join(bytes))),
        None => fail!(
            abi::MPI_ERR_BAD_FILE,
            argument("filename"),
            "is below ~, and the environment variable HOME is not set; write the full path"
        ),
    }
}

/// A path, which errors show quoted and with escapes, because it may hold anything. What is long has its middle left
/// out: the text of an error has 511 bytes, and its end is the reason.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Shown(pub(crate) PathBuf);

impl Shown {
    /// A name as the program gives it.
    pub(crate) fn given(name: &[u8]) -> Self {
        Self(OsStr::from_bytes(name).into())
    }
}

impl std::ops::Deref for Shown {
    type Target = std::path::Path;

    fn deref(&self) -> &std::path::Path {
        &self.0
    }
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_shown(f, &format!("{:?}", self.0))
    }
}

/// Longest name that is shown as it is, characters.
const SHOWN: usize = 160;

fn write_shown(f: &mut std::fmt::Formatter<'_>, quoted: &str) -> std::fmt::Result {
    let count = quoted.chars().count();
    if count <= SHOWN {
        return f.write_str(quoted);
    }
    let part = |from, take| quoted.chars().skip(from).take(take).collect::<String>();
    let half = SHOWN / 2;
    write!(f, "{}…{}", part(0, half), part(count - half, half))
}

/// Where a process is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    /// Its world: what is at a site of one job is there for this job. Others see it by themselves, or go through it.
    world: [u8; 16],
    /// The machine's own name.
    pub(crate) name: &'a str,
    /// Its local area, as its job calls it.
    area: &'a str,
    /// The same as all call it who know each other: equal where areas of two jobs are one.
    pub(crate) lan: &'a str,
}

impl PartialEq for Site<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.world, self.name, self.area) == (other.world, other.name, other.area)
    }
}

impl<'a> Site<'a> {
    /// Of one of these processes.
    pub(crate) fn of(all: &'a Whereabouts<'_>, peer: Peer) -> Option<Self> {
        let number = all.place(peer)?.subjob;
        let subjob = all.table().subjobs.get(number as usize)?;
        Some(Self {
            world: all.world_of(peer)?,
            name: &subjob.name,
            area: all.area(number)?,
            lan: &subjob.lan,
        })
    }

    /// Of this process.
    pub(crate) fn own(all: &'a Whereabouts<'_>) -> Option<Self> {
        Self::of(all, all.world().me())
    }

    /// Whether these processes have more than one.
    pub(crate) fn are_several(all: &Whereabouts<'_>) -> bool {
        all.table().subjobs.len() > 1
    }

    /// Whether a user who writes that means it.
    pub(crate) fn is_called(self, site: &str) -> bool {
        self.name == site || self.area == site
    }
}

/// The first process at a site, by its rank among these, of those that may be it.
pub(crate) fn first_at(all: &Whereabouts<'_>, site: &str, may: impl Fn(u32) -> bool) -> Result<u32> {
    let mut names: Vec<&str> = Vec::new();
    for rank in (0..all.count()).filter(|&rank| may(rank)) {
        let Some(known) = all.peer(rank).and_then(|peer| Site::of(all, peer)) else {
            continue;
        };
        if known.is_called(site) {
            return Ok(rank);
        }
        if names.last() != Some(&known.name) {
            names.push(known.name);
        }
    }
    let whose = if all.have_met() { "connected jobs" } else { "job" };
    fail!(
        abi::MPI_ERR_BAD_FILE,
        "no process of the {whose} is at a site named {site:?}; its sites are {names:?}; a file elsewhere has to be copied: isthmus cp, or an \
         input of the job"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_site_or_none() {
        let name = |text: &str| Name::new(text.as_bytes(), &Info::default());
        let given = |text| name(text).map(|name| (name.site, name.path.below_home, name.path.bytes));
        let known =
            |site: Option<&str>, below, path: &str| Ok((site.map(str::to_owned), below, path.as_bytes().to_vec()));
        assert_eq!(given("a b"), known(None, false, "a b"));
        assert_eq!(given("ufs:/x"), known(None, false, "/x"));
        assert_eq!(given("isthmus://lab/x/~/y"), known(Some("lab"), false, "/x/~/y"));
        assert_eq!(given("isthmus://lab/~/y"), known(Some("lab"), true, "y"));
        for wrong in ["", "isthmus://", "isthmus://lab", "isthmus:///x"] {
            assert_eq!(
                given(wrong).map_err(|error| error.class),
                Err(abi::MPI_ERR_BAD_FILE),
                "{wrong}"
            );
        }
    }

    #[test]
    fn long_names_are_shown_by_their_ends() {
        let shown = |name: String| format!("{:?}", Shown(name.into()));
        assert_eq!(shown("a\n".to_owned()), "\"a\\n\"");
        let long = shown(format!("/begins{}\u{e9}nd", "\u{e9}".repeat(4000)));
        assert_eq!(long.chars().count(), SHOWN + 1);
        assert!(long.starts_with("\"/begins") && long.ends_with("nd\""), "{long}");
    }
}
