// SPDX-License-Identifier: Apache-2.0
//! Which shared libraries an ELF file needs, read from its dynamic section, and where a machine has them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Most program headers, bytes of dynamic entries and of names that are looked at.
const MAX_HEADERS: u64 = 512;
const MAX_DYNAMIC: u64 = 1 << 16;
const MAX_NAMES: u64 = 4 << 20;
/// Most bytes of a table of versions.
const MAX_VERSIONS: u64 = 1 << 16;
/// Most bytes of one name, or list of directories.
const MAX_NAME: usize = 1 << 16;
/// Most libraries of a program.
const MAX_LIBRARIES: usize = 512;

mod versions;

pub use versions::{Newer, newer, oldest_glibc};

/// What an ELF file says of its libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Names of the libraries.
    pub needed: Vec<String>,
    /// Directories where they are looked for first; `$ORIGIN` is that of the file.
    pub search: Vec<String>,
    /// Versions of symbols that a library must have: its name, the version.
    pub versions: Vec<(String, String)>,
    /// Versions of symbols that it has itself, as a library.
    pub offers: Vec<String>,
    /// Machine and class, which its libraries share.
    pub kind: (u16, u8),
}

/// Libraries that every site has, or must not get from elsewhere: those of the C library and the compiler, and our own.
const COMMON: [&str; 14] = [
    "ld-linux",
    "ld64.so",
    "libBrokenLocale.so",
    "libanl.so",
    "libc.so",
    "libdl.so",
    "libgcc_s.so",
    "libm.so",
    "libmpi_abi.so",
    "libpthread.so",
    "libresolv.so",
    "librt.so",
    "libutil.so",
    "linux-vdso",
];

/// Whether a library comes with every system.
pub fn is_common(name: &str) -> bool {
    COMMON.iter().any(|common| name.starts_with(common))
}

/// Reads a file. `None`: it is no ELF file, or not linked dynamically.
pub fn needs(path: &Path) -> io::Result<Option<Needs>> {
    read(&mut File::open(path)?)
}

/// An ELF file with its byte order and word size.
struct Elf<'a, F> {
    file: &'a mut F,
    little: bool,
    wide: bool,
}

/// Reads the dynamic section.
pub fn read<F: Read + Seek>(file: &mut F) -> io::Result<Option<Needs>> {
    let mut head = [0; 64];
    file.seek(SeekFrom::Start(0))?;
    match file.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    if head[..4] != *b"\x7fELF" {
        return Ok(None);
    }
    let mut elf = Elf {
        file,
        little: head[5] == 1,
        wide: head[4] == 2,
    };
    let machine = elf.number(&head[18..20]) as u16;
    let mut needs = elf.needs(&head)?;
    if let Some(needs) = &mut needs {
        needs.kind = (machine, head[4]);
    }
    Ok(needs)
}

impl<F: Read + Seek> Elf<'_, F> {
    fn number(&self, bytes: &[u8]) -> u64 {
        let fold = |sum, byte: &u8| (sum << 8) | u64::from(*byte);
        if self.little {
            bytes.iter().rev().fold(0, fold)
        } else {
            bytes.iter().fold(0, fold)
        }
    }

    fn bytes(&mut self, at: u64, length: u64) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::new();
        // A length that the file does not have costs nothing.
        (&mut *self.file).take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn needs(&mut self, head: &[u8; 64]) -> io::Result<Option<Needs>> {
        let (at, size, count) = match self.wide {
            true => (&head[32..40], &head[54..56], &head[56..58]),
            false => (&head[28..32], &head[42..44], &head[44..46]),
        };
        let (at, size, count) = (self.number(at), self.number(size), self.number(count).min(MAX_HEADERS));
        let least = if self.wide { 56 } else { 32 };
        if size < least {
            return Ok(None);
        }
        let table = self.bytes(at, size * count)?;
        let headers: Vec<[u64; 4]> = table.chunks_exact(size as usize).map(|h| self.header(h)).collect();
        let Some(dynamic) = headers.iter().find(|h| h[0] == 2) else {
            return Ok(None);
        };
        let entries = self.dynamic(dynamic[1], dynamic[3].min(MAX_DYNAMIC))?;
        self.names(&headers, &entries).map(Some)
    }

    /// Type, offset, address, size.
    fn header(&self, header: &[u8]) -> [u64; 4] {
        let n = |from: usize, to: usize| self.number(&header[from..to]);
        match self.wide {
            true => [n(0, 4), n(8, 16), n(16, 24), n(32, 40)],
            false => [n(0, 4), n(4, 8), n(8, 12), n(16, 20)],
        }
    }

    fn dynamic(&mut self, at: u64, length: u64) -> io::Result<Vec<(u64, u64)>> {
        let word = if self.wide { 8 } else { 4 };
        let bytes = self.bytes(at, length)?;
        let entries = bytes
            .chunks_exact(2 * word)
            .map(|e| (self.number(&e[..word]), self.number(&e[word..])));
        Ok(entries.take_while(|(tag, _)| *tag != 0).collect())
    }

    fn names(&mut self, headers: &[[u64; 4]], entries: &[(u64, u64)]) -> io::Result<Needs> {
        let value = |wanted: u64| entries.iter().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value);
        let place = |address: u64| {
            let inside = |h: &&[u64; 4]| h[0] == 1 && address >= h[2] && address - h[2] < h[3];
            let header = headers.iter().find(inside)?;
            header[1].checked_add(address - header[2])
        };
        let (Some(offset), Some(length)) = (value(5).and_then(place), value(10)) else {
            return Ok(Needs::default());
        };
        let strings = self.bytes(offset, length.min(MAX_NAMES))?;
        let text = |at: u64| {
            let tail = strings.get(usize::try_from(at).ok()?..)?;
            let end = tail.iter().take(MAX_NAME).position(|b| *b == 0)?;
            std::str::from_utf8(&tail[..end]).ok().map(str::to_owned)
        };
        let mut table = |tag: u64| match value(tag).and_then(place) {
            Some(at) => self.bytes(at, MAX_VERSIONS),
            None => Ok(Vec::new()),
        };
        let (wanted, offered) = (table(0x6fff_fffe)?, table(0x6fff_fffc)?);
        let versions = self.wanted(&wanted, &text);
        let offers = self.offered(&offered, &text);
        let all = |wanted: u64| {
            entries
                .iter()
                .filter(move |(tag, _)| *tag == wanted)
                .filter_map(|(_, at)| text(*at))
        };
        let odd = |name: &String| name.is_empty() || name.len() > 255 || name.contains('/');
        let paths: Vec<String> = all(29).chain(all(15)).collect();
        Ok(Needs {
            needed: all(1).filter(|name| !odd(name)).take(MAX_LIBRARIES).collect(),
            search: paths.iter().flat_map(|p| p.split(':')).map(str::to_owned).collect(),
            versions,
            offers,
            kind: (0, 0),
        })
    }
}

/// Directories where the dynamic linker of this machine looks for libraries that no one says more about.
pub fn usual_directories() -> Vec<PathBuf> {
    let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    // Relative ones begin where we are, as for a program that is started here.
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let mut all = library_path(&given, &here);
    configured(Path::new("/etc/ld.so.conf"), 0, &mut all);
    all.extend(["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from));
    for base in ["/lib", "/usr/lib"] {
        all.push(Path::new(base).join(format!("{}-linux-gnu", std::env::consts::ARCH)));
    }
    all
}

/// The directories of a list like LD_LIBRARY_PATH, for a program that is started `here`. An empty part is that
/// directory.
pub fn library_path(list: &OsStr, here: &Path) -> Vec<PathBuf> {
    if list.is_empty() {
        return Vec::new();
    }
    std::env::split_paths(list).map(|part| here.join(part)).collect()
}

/// `/etc/ld.so.conf` and what it includes.
fn configured(file: &Path, depth: usize, all: &mut Vec<PathBuf>) {
    let Ok(text) = std::fs::read_to_string(file) else {
        return;
    };
    for line in text.lines().map(|l| l.split('#').next().unwrap_or_default().trim()) {
        match line.strip_prefix("include") {
            Some(pattern) if depth < 4 => {
                let pattern = Path::new(pattern.trim());
                let entries = pattern.parent().and_then(|d| std::fs::read_dir(d).ok());
                for entry in entries.into_iter().flatten().flatten() {
                    if entry.path().extension() == pattern.extension() {
                        configured(&entry.path(), depth + 1, all);
                    }
                }
            }
            Some(_) => {}
            None if line.starts_with('/') => all.push(PathBuf::from(line)),
            None => {}
        }
    }
}

/// Which of these libraries this machine lacks.
pub fn lacking(names: &[String]) -> Vec<String> {
    let directories = usual_directories();
    let here = |name: &&String| !name.contains('/') && directories.iter().any(|d| d.join(name.as_str()).is_file());
    names.iter().filter(|name| !here(name)).cloned().collect()
}

/// The libraries that a program needs beside those that every system has, and those that they need: names, and where
/// this machine has them (`None`: nowhere). `first`: directories that come before those where everybody looks.
pub fn closure(program: &Path, first: &[PathBuf]) -> io::Result<Vec<(String, Option<PathBuf>)>> {
    let mut found: Vec<(String, Option<PathBuf>)> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![program.to_owned()];
    let usual = usual_directories();
    // The search path of the program counts for its libraries too.
    let mut inherited: Vec<PathBuf> = Vec::new();
    while let Some(file) = open.pop() {
        let Some(needs) = needs(&file)? else { continue };
        let origin = file.parent().unwrap_or_else(|| Path::new("/")).to_owned();
        let own = needs.search.iter().map(|p| resolve(p, &origin)).collect::<Vec<_>>();
        if inherited.is_empty() {
            inherited.clone_from(&own);
        }
        for name in needs.needed.iter().filter(|name| !is_common(name)) {
            if found.len() >= MAX_LIBRARIES || !seen.insert(name.clone()) {
                continue;
            }
            let places = own
                .iter()
                .chain(&inherited)
                .chain(first)
                .chain(&usual)
                .map(|d| d.join(name));
            let fits = |path: &PathBuf| self::needs(path).is_ok_and(|n| n.is_some_and(|n| n.kind == needs.kind));
            let path = places.into_iter().find(fits);
            open.extend(path.clone());
            found.push((name.clone(), path));
        }
    }
    Ok(found)
}

fn resolve(path: &str, origin: &Path) -> PathBuf {
    let origin = origin.to_string_lossy();
    PathBuf::from(path.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_relative_library_path_begins_where_the_program_does() {
        let paths = |list: &str| library_path(OsStr::new(list), Path::new("/here"));
        assert_eq!(paths("lib:/abs:"), ["/here/lib", "/abs", "/here/"].map(PathBuf::from));
        assert_eq!(paths(""), Vec::<PathBuf>::new());
    }

    #[test]
    fn our_own_needs() {
        let own = std::env::current_exe().unwrap();
        let needs = needs(&own).unwrap().expect("tests are linked dynamically");
        assert!(needs.needed.iter().any(|n| n.starts_with("libc.so")), "{needs:?}");
        assert_eq!(closure(&own, &[]).unwrap(), [], "nothing but what every system has");
        assert_eq!(super::needs(Path::new("/etc/passwd")).unwrap(), None);
    }

    #[test]
    fn a_machine_lacks_what_it_has_not() {
        let names = [
            "libc.so.6".to_owned(),
            "libnowhere.so.3".to_owned(),
            "../../etc/passwd".to_owned(),
        ];
        assert_eq!(lacking(&names), names[1..]);
    }

    #[test]
    fn lies_cost_nothing() {
        let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        bytes.truncate(1 << 16);
        for at in 0..600 {
            let mut lie = bytes.clone();
            lie[at] = 0xff;
            let _ = read(&mut Cursor::new(&lie));
        }
        assert_eq!(read(&mut Cursor::new(b"\x7fELF")).unwrap(), None);
    }
}
