// SPDX-License-Identifier: Apache-2.0
//! Links what is copied to sites so that it runs with an old C library, whatever the C library of the machine that
//! builds is.
//!
//! A linker takes the newest version of each symbol that the C library offers, and the program then wants a system that
//! has it. Here it is shown libraries with the same names that offer the newest version of each symbol that the systems
//! of [`OLDEST`] had, and no code: glibc keeps old versions for ever, so they are read from the C library of the
//! machine itself. What old systems did not have under its name of today (`stat`, the start of a program) comes from an
//! archive beside them, as it did there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::{c_compiler, execute};
use crate::tree::{self, Result};

/// The oldest glibc that sites may have, and the oldest runtime of GCC: those of RHEL 7.
const OLDEST: [Version; 2] = [Version(Family::C, [2, 17, 0]), Version(Family::Gcc, [4, 8, 0])];
/// The variable by which `crates/cli/build.rs` learns where the libraries to link are.
pub(crate) const VARIABLE: &str = "OLD_GLIBC_DIRECTORY";
/// Machines for which this is done. (`stat` has another number elsewhere, and so would `start.c`.)
const MACHINE: &str = "x86_64";
const C_LIBRARY: &str = "libc.so.6";
/// It and others that come with every system; before glibc 2.34 more of it was in them.
const LIBRARIES: [(&str, &str); 8] = [
    ("libc", C_LIBRARY),
    ("libm", "libm.so.6"),
    ("libpthread", "libpthread.so.0"),
    ("libdl", "libdl.so.2"),
    ("librt", "librt.so.1"),
    ("libutil", "libutil.so.1"),
    ("libld", "ld-linux-x86-64.so.2"),
    ("libgcc_s", "libgcc_s.so.1"),
];
/// How names begin that were in other libraries before 2.34: an old dynamic linker looks for a symbol where the file
/// says that it is.
const MOVED: [(&str, &str); 13] = [
    ("pthread_", "libpthread.so.0"),
    ("_pthread_", "libpthread.so.0"),
    ("__pthread_", "libpthread.so.0"),
    ("sem_", "libpthread.so.0"),
    ("dl", "libdl.so.2"),
    ("aio_", "librt.so.1"),
    ("lio_", "librt.so.1"),
    ("mq_", "librt.so.1"),
    ("shm_", "librt.so.1"),
    ("timer_", "librt.so.1"),
    ("openpty", "libutil.so.1"),
    ("forkpty", "libutil.so.1"),
    ("log", "libutil.so.1"),
];
/// Names like these that the C library itself had.
const STAYED: &str = "dl_iterate_phdr pthread_attr_destroy pthread_attr_getdetachstate pthread_attr_getinheritsched \
    pthread_attr_getschedparam pthread_attr_getschedpolicy pthread_attr_getscope pthread_attr_init pthread_attr_setdetachstate \
    pthread_attr_setinheritsched pthread_attr_setschedparam pthread_attr_setschedpolicy pthread_attr_setscope pthread_cond_broadcast \
    pthread_cond_destroy pthread_cond_init pthread_cond_signal pthread_cond_timedwait pthread_cond_wait pthread_condattr_destroy \
    pthread_condattr_init pthread_equal pthread_exit pthread_getschedparam pthread_mutex_destroy pthread_mutex_init \
    pthread_mutex_lock pthread_mutex_unlock pthread_self pthread_setcancelstate pthread_setcanceltype pthread_setschedparam";
/// Defined in the archive, with a call of the old version.
const START: &str = "__libc_start_main";
const ARCHIVE: [&str; 2] = ["start", "stat"];

/// Whose symbols they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    C,
    Gcc,
}

/// Of a symbol: `GLIBC_2.2.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(Family, [u32; 3]);

impl Version {
    /// `None` for names that are no versions, as `GLIBC_PRIVATE`.
    fn parse(text: &str) -> Option<Self> {
        let (family, text) = match (text.strip_prefix("GLIBC_"), text.strip_prefix("GCC_")) {
            (Some(text), _) => (Family::C, text),
            (None, text) => (Family::Gcc, text?),
        };
        let mut numbers = [0; 3];
        for (number, part) in text.split('.').enumerate() {
            *numbers.get_mut(number)? = part.parse().ok()?;
        }
        Some(Self(family, numbers))
    }

    fn is_old(self) -> bool {
        OLDEST.iter().any(|oldest| oldest.0 == self.0 && self <= *oldest)
    }
}

/// A symbol of a library.
#[derive(Clone, Debug)]
struct Symbol {
    version: Version,
    /// As it is written.
    label: String,
    /// Bytes, of data.
    data: Option<u64>,
    library: &'static str,
}

/// Makes the libraries to link against in `place`; `None` for a machine for which there is no need or no way yet.
pub(crate) fn libraries(place: &Path, target: Option<&str>) -> Result<Option<PathBuf>> {
    let here = target.is_none() && std::env::consts::ARCH == MACHINE && cfg!(target_env = "gnu");
    if !here && target != Some("x86_64-unknown-linux-gnu") {
        return Ok(None);
    }
    let place = place.join("glibc");
    fs::create_dir_all(&place).map_err(|e| format!("{}: cannot make it: {e}", place.display()))?;
    let symbols = symbols()?;
    for (name, soname) in LIBRARIES {
        let own: Vec<_> = symbols.iter().filter(|(_, s)| s.library == soname).collect();
        library(&place, name, soname, &own)?;
    }
    archive(&place)?;
    let script = place.join("libc.so");
    // In quotes, because the place may have spaces in its name.
    let at = |file: &str| format!("\"{}\"", place.join(file).display());
    let nonshared = format!("\"{}\"", file_of("libc_nonshared.a")?);
    let parts = ["libpthread.so", "libdl.so", "librt.so", "libutil.so", "libld.so"].map(at);
    let text = format!(
        "GROUP ( {} {nonshared} {} AS_NEEDED ( {} ) )\n",
        at("libisthmus_old.a"),
        at("libc-symbols.so"),
        parts.join(" ")
    );
    update(&script, &text)?;
    Ok(Some(place))
}

/// The newest version of each symbol that is old enough.
fn symbols() -> Result<BTreeMap<String, Symbol>> {
    let mut found: BTreeMap<String, Symbol> = BTreeMap::new();
    for (_, soname) in LIBRARIES {
        for line in readelf(&["--dyn-syms"], Path::new(&file_of(soname)?))?.lines() {
            let Some((name, symbol)) = symbol(line, soname) else {
                continue;
            };
            // The libraries stand in the order in which a name counts.
            match found.get(&name) {
                Some(other) if other.version >= symbol.version => {}
                _ => drop(found.insert(name, symbol)),
            }
        }
    }
    if found.contains_key(START) {
        Ok(found)
    } else {
        Err(format!("this machine's C library has no {START}: is it glibc?"))
    }
}

/// Where the C compiler has a library.
fn file_of(library: &str) -> Result<String> {
    let output = c_compiler().arg(format!("-print-file-name={library}")).output();
    let output = output.map_err(|e| format!("asking the C compiler for {library}: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A line of `readelf --dyn-syms`: `number: value size type bind visibility section name@version`.
fn symbol(line: &str, soname: &'static str) -> Option<(String, Symbol)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, _, size, kind, "GLOBAL" | "WEAK", _, section, name, ..] = words[..] else {
        return None;
    };
    let (name, label) = name.split_once('@')?;
    let label = label.trim_start_matches('@');
    let version = Version::parse(label).filter(|version| version.is_old())?;
    let data = match kind {
        "FUNC" | "IFUNC" => None,
        "OBJECT" => Some(size.parse().ok()?),
        _ => return None,
    };
    let begins = |(begin, _): &&(&str, &str)| soname == C_LIBRARY && name.starts_with(begin);
    let moved = MOVED
        .iter()
        .find(begins)
        .filter(|_| !STAYED.split(' ').any(|stayed| stayed == name));
    let symbol = Symbol {
        version,
        label: label.to_owned(),
        data,
        library: moved.map_or(soname, |(_, library)| library),
    };
    (section != "UND").then(|| (name.to_owned(), symbol))
}

/// One library without code.
fn library(place: &Path, name: &str, soname: &str, symbols: &[(&String, &Symbol)]) -> Result<()> {
    let (source, script) = (place.join(format!("{name}.s")), place.join(format!("{name}.map")));
    let mut text = String::from(".section .note.GNU-stack,\"\",%progbits\n");
    let mut versions: Vec<(Version, &str)> = Vec::new();
    for (number, (name, symbol)) in symbols.iter().enumerate() {
        let (section, kind, size) = match symbol.data {
            Some(size) => (".bss", "object", size.max(1)),
            None => (".text", "function", 1),
        };
        // A single @: nobody takes it who does not name the version.
        let at = if name.as_str() == START { "@" } else { "@@" };
        let label = &symbol.label;
        text += &format!(
            "{section}\n.globl isthmus_{number}\n.type isthmus_{number},%{kind}\n.size isthmus_{number},{size}\n\
             isthmus_{number}: .space {size}\n.symver isthmus_{number},{name}{at}{label}\n"
        );
        versions.push((symbol.version, label));
    }
    versions.sort_unstable();
    versions.dedup();
    let mut map: String = versions.iter().map(|(_, label)| format!("{label} {{ }};\n")).collect();
    map = map.replacen("{ }", "{ local: isthmus_*; }", 1);
    let file = if name == "libc" {
        "libc-symbols.so".to_owned()
    } else {
        format!("{name}.so")
    };
    let file = place.join(file);
    if !(update(&source, &text)? | update(&script, &map)?) && file.exists() {
        return Ok(());
    }
    let mut link = c_compiler();
    link.args(["-shared", "-nostdlib"]).arg(format!("-Wl,-soname,{soname}"));
    if !versions.is_empty() {
        link.arg(format!("-Wl,--version-script,{}", script.display()));
    }
    link.arg(&source).arg("-o").arg(file);
    execute(&mut link, "making a library of old symbols")
}

/// What has no symbol of its name in old systems.
fn archive(place: &Path) -> Result<()> {
    let archive = place.join("libisthmus_old.a");
    let mut changed = !archive.exists();
    for name in ARCHIVE {
        let source = tree::root().join(format!("xtask/src/glibc/{name}.c"));
        let text = fs::read_to_string(&source).map_err(|e| format!("{}: cannot read: {e}", source.display()))?;
        changed |= update(&place.join(format!("{name}.c")), &text)?;
    }
    if !changed {
        return Ok(());
    }
    let mut objects = Vec::new();
    for name in ARCHIVE {
        let source = place.join(format!("{name}.c"));
        let object = place.join(format!("{name}.o"));
        let mut compile = c_compiler();
        compile.args([
            "-std=gnu99",
            "-O2",
            "-fPIC",
            "-fvisibility=hidden",
            "-Wall",
            "-Wextra",
            "-c",
        ]);
        execute(compile.arg(source).arg("-o").arg(&object), "compiling for old systems")?;
        objects.push(object);
    }
    execute(
        Command::new("ar").arg("rcs").arg(archive).args(objects),
        "making an archive for old systems",
    )
}

/// Writes a file if it is to be another one: cargo links again what is newer. Says whether it did.
fn update(file: &Path, text: &str) -> Result<bool> {
    if fs::read_to_string(file).is_ok_and(|old| old == text) {
        return Ok(false);
    }
    fs::write(file, text).map_err(|e| format!("{}: cannot write: {e}", file.display()))?;
    Ok(true)
}

/// A file runs with the libraries of [`OLDEST`].
pub(crate) fn check(file: &Path) -> Result<()> {
    let text = readelf(&["--version-info"], file)?;
    let too_new = |word: &&str| Version::parse(word).is_some_and(|version| !version.is_old());
    match text.split_whitespace().find(too_new) {
        Some(word) => Err(format!(
            "{}: needs {word}, which sites with older systems do not have; see xtask/src/glibc.rs",
            file.display()
        )),
        None => Ok(()),
    }
}

fn readelf(options: &[&str], file: &Path) -> Result<String> {
    let output = Command::new("readelf").args(options).arg("--wide").arg(file).output();
    let output = output.map_err(|e| format!("readelf: cannot run (is binutils installed?): {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("readelf: {}: {}", file.display(), said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        let order = ["GLIBC_2.2.5", "GLIBC_2.3", "GLIBC_2.17", "GLIBC_2.34"].map(|v| Version::parse(v).unwrap());
        assert!(order.is_sorted());
        assert_eq!(Version::parse("GLIBC_PRIVATE"), None);
        assert_eq!(Version::parse("GLIBC_ABI_DT_RELR"), None);
        assert!(!Version::parse("GCC_12.0.0").unwrap().is_old());
    }

    #[test]
    fn what_is_too_new_is_not_offered() {
        let line = |version: &str| format!(" 12: 00000000000818b0 10 FUNC GLOBAL DEFAULT 15 pthread_create@{version}");
        assert!(symbol(&line("@GLIBC_2.34"), C_LIBRARY).is_none());
        let (name, old) = symbol(&line("GLIBC_2.2.5"), C_LIBRARY).unwrap();
        assert_eq!((name.as_str(), old.library), ("pthread_create", "libpthread.so.0"));
        let stayed = line("GLIBC_2.2.5").replace("create", "self");
        assert_eq!(symbol(&stayed, C_LIBRARY).unwrap().1.library, C_LIBRARY);
    }
}
