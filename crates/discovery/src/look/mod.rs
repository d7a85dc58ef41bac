// SPDX-License-Identifier: Apache-2.0
//! A machine looks at itself. Parsers are pure; [`run`](command::run) runs commands, for a bounded time.

mod command;
pub(crate) mod schedulers;

use command::run;
use isthmus_wire::service::{Facts, Named};
use std::path::Path;
use std::time::Duration;

/// How long a command that tells a version may take.
const VERSION: Duration = Duration::from_secs(4);
/// Most lines of a list of modules.
const MAX_MODULES: usize = 100;

/// What there is.
pub fn look() -> Facts {
    let name = rustix::system::uname();
    let mut facts = Facts {
        host: name.nodename().to_string_lossy().into_owned(),
        architecture: name.machine().to_string_lossy().into_owned(),
        system: system(),
        processors: std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        memory: memory(&read("/proc/meminfo")),
        load: load(&read("/proc/loadavg")),
        addresses: isthmus_net::local_addresses(),
        interfaces: interfaces(),
        home: std::env::var("HOME").unwrap_or_default(),
        ..Facts::default()
    };
    facts.shared_home = is_shared(&facts.home, &read("/proc/self/mounts"));
    // What takes longest goes on at the same time.
    std::thread::scope(|scope| {
        let queues = scope.spawn(schedulers::look);
        let compilers = scope.spawn(|| versions(&["cc", "gcc", "clang", "icx", "nvc", "g++", "gfortran"]));
        let mpis = scope.spawn(mpis);
        let modules = scope.spawn(modules);
        let found = queues.join().unwrap_or_default();
        (facts.schedulers, facts.queues, facts.accounts) = (found.schedulers, found.queues, found.accounts);
        facts.compilers = compilers.join().unwrap_or_default();
        facts.mpis = mpis.join().unwrap_or_default();
        (facts.modules, facts.module_names) = modules.join().unwrap_or_default();
    });
    facts
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn system() -> String {
    let release = read("/etc/os-release");
    let name = release.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| "Linux".to_owned(), |n| n.trim_matches('"').to_owned())
}

fn memory(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let kib = line
        .and_then(|l| l.split_whitespace().next())
        .and_then(|n| n.parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

fn load(loadavg: &str) -> u32 {
    let first = loadavg.split_whitespace().next().and_then(|n| n.parse::<f64>().ok());
    first
        .filter(|l| (0.0..1e6).contains(l))
        .map_or(0, |l| (l * 100.0) as u32)
}

/// Interfaces that are up, with their rate where they tell it.
fn interfaces() -> Vec<Named> {
    let Ok(entries) = std::fs::read_dir("/sys/class/net") else {
        return Vec::new();
    };
    let mut all: Vec<Named> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|n| n != "lo")?;
            let said = |what: &str| {
                std::fs::read_to_string(entry.path().join(what))
                    .ok()
                    .map(|t| t.trim().to_owned())
            };
            let state = said("operstate").unwrap_or_default();
            let rate = said("speed").and_then(|s| s.parse::<i64>().ok()).filter(|s| *s > 0);
            (state != "down").then(|| Named {
                name,
                text: rate.map_or(state, |rate| format!("{rate} Mbit/s")),
            })
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Whether a directory is on a file system of the network.
fn is_shared(home: &str, mounts: &str) -> bool {
    const SHARED: [&str; 13] = [
        "nfs",
        "nfs4",
        "lustre",
        "gpfs",
        "beegfs",
        "panfs",
        "ceph",
        "cifs",
        "afs",
        "glusterfs",
        "pvfs2",
        "orangefs",
        "fuse.sshfs",
    ];
    let on = mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (at, kind) = (words.next()?, words.next()?);
        Path::new(home).starts_with(at).then_some((at.len(), kind))
    });
    // Later mounts hide earlier ones.
    let found = on.max_by_key(|(length, _)| *length);
    found.is_some_and(|(_, kind)| SHARED.contains(&kind))
}

fn versions(commands: &[&'static str]) -> Vec<Named> {
    let found = |name: &&str| {
        let text = run(name, &["--version"], VERSION)?;
        Some(Named {
            name: (*name).to_owned(),
            text: text
                .lines()
                .find(|l| !l.trim().is_empty())?
                .trim()
                .chars()
                .take(120)
                .collect(),
        })
    };
    commands.iter().filter_map(found).collect()
}

/// The MPI that `mpicc` and `mpiexec` are of.
fn mpis() -> Vec<Named> {
    let found = |name: &str| {
        let path = command::find(name)?;
        // What a wrapper answers to --version is the compiler's.
        let (version, more) = if name == "mpiexec" {
            (run(name, &["--version"], VERSION).unwrap_or_default(), String::new())
        } else {
            let said = run(name, &["-showme:version"], VERSION).or_else(|| run(name, &["-v"], VERSION));
            let about = said
                .unwrap_or_default()
                .lines()
                .find(|l| is_about_mpi(l))
                .unwrap_or_default()
                .to_owned();
            (about, run(name, &["-show"], VERSION).unwrap_or_default())
        };
        Some(Named {
            name: path.to_string_lossy().into_owned(),
            text: kind_of_mpi(&version, &more),
        })
    };
    ["mpicc", "mpiexec", "mpicc.mpich", "mpicc.openmpi"]
        .into_iter()
        .filter_map(found)
        .collect()
}

/// `mpicc: Open MPI 4.1.4 (Language: C)`, `mpicc for MPICH version 4.0.2`: not what the compiler says of itself.
fn is_about_mpi(line: &str) -> bool {
    let first = line.split([' ', ':']).next().unwrap_or_default();
    first.starts_with("mpi") && (line.contains(" for ") || line.contains(": "))
}

fn kind_of_mpi(version: &str, more: &str) -> String {
    let both = format!("{version}\n{more}");
    let known = [
        ("isthmus", "Isthmus"),
        ("Isthmus", "Isthmus"),
        ("Open MPI", "Open MPI"),
        ("OpenRTE", "Open MPI"),
        ("openmpi", "Open MPI"),
        ("Intel(R) MPI", "Intel MPI"),
        ("HYDRA", "MPICH"),
        ("mvapich", "MVAPICH"),
        ("mpich", "MPICH"),
    ];
    let kind = known
        .iter()
        .find(|(mark, _)| both.contains(mark))
        .map_or("MPI", |(_, kind)| kind);
    let is_number = |w: &&str| w.starts_with(|c: char| c.is_ascii_digit()) && w.contains('.') && w.len() < 16;
    let number = version
        .split_whitespace()
        .map(|w| w.trim_matches(['(', ')', ',']))
        .find(is_number);
    number.map_or_else(|| kind.to_owned(), |number| format!("{kind} {number}"))
}

/// The module system, and its modules that matter here.
fn modules() -> (String, Vec<String>) {
    const SCRIPT: &str = "for f in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh /usr/share/modules/init/sh /usr/share/lmod/lmod/init/sh; \
        do command -v module >/dev/null 2>&1 && break; test -r $f && . $f; done; \
        command -v module >/dev/null 2>&1 || exit 1; echo ${LMOD_VERSION:+lmod}; module -t avail 2>&1";
    let Some(text) = run("sh", &["-c", SCRIPT], Duration::from_secs(8)) else {
        return (String::new(), Vec::new());
    };
    let mut lines = text.lines();
    let kind = lines
        .next()
        .filter(|l| !l.trim().is_empty())
        .unwrap_or("environment modules");
    let matters = |l: &&str| {
        let low = l.to_ascii_lowercase();
        ["mpi", "gcc", "intel", "llvm", "cuda", "aocc", "nvhpc"]
            .iter()
            .any(|m| low.contains(m))
            && !low.ends_with(':')
    };
    let names = lines
        .map(str::trim)
        .filter(matters)
        .take(MAX_MODULES)
        .map(str::to_owned);
    (kind.to_owned(), names.collect())
}

/// Fuzz entry of the parsers.
pub(crate) fn fuzz(text: &str) {
    let _ = (
        memory(text),
        load(text),
        is_shared("/home/me", text),
        kind_of_mpi(text, text),
    );
    schedulers::fuzz(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine() {
        let facts = look();
        assert!(
            !facts.host.is_empty() && facts.processors > 0 && facts.memory > 1 << 20,
            "{facts:?}"
        );
    }

    #[test]
    fn files_of_the_system() {
        assert_eq!(memory("MemTotal:       16 kB\n"), 16384);
        assert_eq!((load("1.25 0 0 1/2 3"), load("nonsense")), (125, 0));
        let mounts = "/dev/sda / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0\n";
        assert!(is_shared("/home/me", mounts) && !is_shared("/root", mounts));
    }

    #[test]
    fn kinds_of_mpi() {
        assert_eq!(kind_of_mpi("mpiexec (OpenRTE) 4.1.4\n", ""), "Open MPI 4.1.4");
        assert_eq!(
            kind_of_mpi("HYDRA build details:\n    Version:   4.0.2\n", ""),
            "MPICH 4.0.2"
        );
        assert!(!is_about_mpi("cc (Debian 12.2.0-14) 12.2.0") && is_about_mpi("mpicc: Isthmus 0.1.0 (Language: C)"));
        assert_eq!(kind_of_mpi("", "gcc -lmpich"), "MPICH");
        assert_eq!(
            kind_of_mpi("mpicc for MPICH version 4.0.2", "gcc -lmpich"),
            "MPICH 4.0.2"
        );
    }
}
