// SPDX-License-Identifier: Apache-2.0
//! A place for one test: directories of its own, a fake ssh client, and proof that nothing was left.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The longest any command of these tests may take before the test fails.
const LIMIT: Duration = Duration::from_secs(60);
/// The longest anything may outlive its coordinator. The promise is 5 s; a loaded machine gets twice that.
const LEFTOVER_LIMIT: Duration = Duration::from_secs(10);

/// One test's surroundings.
pub(crate) struct Bench {
    pub(crate) root: PathBuf,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    pub(crate) output: Vec<u8>,
    pub(crate) errors: String,
}

impl Done {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = String::from_utf8_lossy(&self.output)
            .lines()
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    }
}

impl Bench {
    pub(crate) fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("isthmus-bench-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        for directory in ["runtime", "shm", "work", "sites"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        let bench = Self { root };
        bench.write("ssh", FAKE_SSH, 0o755);
        bench
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.root.join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// `isthmus` with these words (the words of a line, split at spaces).
    pub(crate) fn command(&self, line: &str) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_isthmus")), line)
    }

    /// The same under another name.
    pub(crate) fn command_of(&self, program: &Path, line: &str) -> Command {
        let mut command = Command::new(program);
        command.args(line.split_whitespace());
        command
            .current_dir(self.root.join("work"))
            .env("XDG_RUNTIME_DIR", self.root.join("runtime"))
            .env("XDG_CACHE_HOME", self.root.join("cache"))
            .env("XDG_CONFIG_HOME", self.root.join("config"))
            .env("ISTHMUS_SHM_DIRECTORY", self.root.join("shm"))
            .env("ISTHMUS_SSH", self.root.join("ssh"))
            .env("BENCH_ROOT", &self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a line to its end and checks that nothing is left.
    pub(crate) fn run(&self, line: &str) -> Done {
        let done = finish(self.command(line).spawn().unwrap());
        self.assert_clean();
        done
    }

    /// How many ssh clients have been started for a site since this was last asked.
    pub(crate) fn clients(&self, site: &str) -> usize {
        let path = self.root.join("clients");
        let clients = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(&path);
        clients.lines().filter(|line| *line == site).count()
    }

    /// What a command prints while another one runs.
    pub(crate) fn run_beside(&self, line: &str) -> String {
        let done = finish(self.command(line).spawn().unwrap());
        String::from_utf8_lossy(&done.output).into_owned()
    }

    /// The process that speaks the start-up protocol.
    pub(crate) fn fake() -> String {
        let path = Path::new(env!("CARGO_BIN_EXE_isthmus"))
            .with_file_name("examples")
            .join("fake_process");
        assert!(
            path.exists(),
            "{} is missing: cargo build -p isthmus-cli --examples",
            path.display()
        );
        path.to_str().unwrap().to_owned()
    }

    /// Waits until so many processes with `needle` in their command line belong to this test.
    pub(crate) fn await_processes(&self, needle: &str, count: usize) -> Vec<i32> {
        let began = Instant::now();
        loop {
            let found: Vec<i32> = self
                .processes()
                .into_iter()
                .filter(|(_, c)| c.contains(needle))
                .map(|(p, _)| p)
                .collect();
            if found.len() >= count {
                return found;
            }
            assert!(
                began.elapsed() < LIMIT,
                "only {} of {count} '{needle}' appeared",
                found.len()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// No process of this test runs and no directory of a job is left, or will be within the promised time.
    pub(crate) fn assert_clean(&self) {
        let began = Instant::now();
        loop {
            let processes = self.processes();
            let files = self.leftovers();
            if processes.is_empty() && files.is_empty() {
                return;
            }
            assert!(began.elapsed() < LEFTOVER_LIMIT, "left: {processes:?} {files:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Process ids and command lines of what carries the mark of this test or lives in one of its sites.
    fn processes(&self) -> Vec<(i32, String)> {
        let mark = format!("ISTHMUS_SHM_DIRECTORY={}", self.root.join("shm").display());
        let home = format!("HOME={}", self.root.display());
        let own = std::process::id().to_string();
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let found = entries.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            if entry.file_name().to_str() == Some(&own) {
                return None;
            }
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let environment = String::from_utf8_lossy(&environment).into_owned();
            let ours = environment.split('\0').any(|v| v == mark || v.starts_with(&home));
            let command = std::fs::read(entry.path().join("cmdline")).ok()?;
            ours.then(|| (pid, String::from_utf8_lossy(&command).replace('\0', " ")))
        });
        found.collect()
    }

    fn leftovers(&self) -> Vec<PathBuf> {
        let mut places = vec![self.root.join("runtime"), self.root.join("shm")];
        for site in std::fs::read_dir(self.root.join("sites")).unwrap().flatten() {
            places.push(site.path().join("runtime"));
        }
        let mut left: Vec<PathBuf> = Vec::new();
        for place in places {
            left.extend(
                std::fs::read_dir(place)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|e| e.path()),
            );
        }
        left
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// Collects what a command says until it ends; fails the test when that takes too long.
pub(crate) fn finish(mut child: Child) -> Done {
    let output = child.stdout.take();
    let mut errors = child.stderr.take().unwrap();
    let read = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut output) = output {
            output.read_to_end(&mut bytes).unwrap();
        }
        bytes
    });
    let read_errors = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        errors.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let began = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if began.elapsed() > LIMIT => {
                let _ = child.kill();
                panic!("the command did not end");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    Done {
        status,
        output: read.join().unwrap(),
        errors: read_errors.join().unwrap(),
    }
}

/// Sends a signal by name.
pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Feeds all bytes to the standard input of a command.
pub(crate) fn feed(child: &mut Child, bytes: Vec<u8>) -> std::thread::JoinHandle<()> {
    let mut input = child.stdin.take().unwrap();
    std::thread::spawn(move || {
        let _ = input.write_all(&bytes);
    })
}

const FAKE_SSH: &str = r#"#!/bin/sh
# Everything but the destination and the command is ignored; each destination is a home directory.
while [ "$1" != "--" ]; do shift; done
destination=$2; shift 2
case "$destination" in
  refused) echo "ssh: connect to host refused port 22: Connection refused" >&2; exit 255;;
  unknown) echo "ssh: Could not resolve hostname unknown: Name or service not known" >&2; exit 255;;
  denied) echo "me@denied: Permission denied (publickey)." >&2; exit 255;;
  stranger) echo "Host key verification failed." >&2; exit 255;;
  silent) exec sleep 1000;;
  crowded*)
    # A server that turns everybody away, or the first two who come.
    echo "came" >> "$BENCH_ROOT/$destination"
    if [ "$destination" = crowded ] || [ "$(wc -l < "$BENCH_ROOT/$destination")" -le 2 ]; then
      echo "Connection closed by 10.1.2.3 port 22" >&2; exit 255
    fi;;
esac
echo "$destination" >> "$BENCH_ROOT/clients"
home=$BENCH_ROOT/sites/$destination
mkdir -p "$home/runtime" && chmod 700 "$home/runtime" && cd "$home" || exit 1
[ "$destination" = full ] && { mkdir -p .cache; : > .cache/isthmus; }
echo "Welcome to $destination!"
PATH=/usr/bin:/bin
umask 022
[ "$destination" = group ] && umask 002
[ "$destination" = foreign ] && PATH=$BENCH_ROOT/foreign:$PATH
# As behind a server: what the client ignores is not ignored there.
set -- env -i --default-signal HOME="$home" PATH="$PATH" XDG_RUNTIME_DIR="$home/runtime" sh -c "$*"
# A machine without the directory of the launcher.
[ "$destination" = apart ] && exec unshare -rm sh -c 'mount -t tmpfs none "$BENCH_ROOT/work" && exec "$@"' sh "$@"
exec "$@"
"#;
