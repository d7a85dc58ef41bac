// SPDX-License-Identifier: Apache-2.0
//! A host: namespaces kept by a holder process, and running things inside.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};

use crate::error::Error;
use crate::ssh;
use crate::state::HostDescription;
use crate::sys::Namespaces;
use crate::topology::{HostPlan, Topology};

/// What process 1 of a host does.
const INIT: &str = include_str!("host.sh");
/// What the holder of a site's gateway does.
const GATEWAY_INIT: &str = "echo ready; exec cat >/dev/null";

/// Variables of the user's session that would lead out of a host.
const FOREIGN: [&str; 8] = [
    "SSH_AUTH_SOCK",
    "SSH_CONNECTION",
    "SSH_CLIENT",
    "XDG_RUNTIME_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// A computer of the testbed.
#[derive(Debug)]
pub struct Host {
    description: HostDescription,
    state: PathBuf,
    namespaces: Namespaces,
}

impl Host {
    /// Reaches a host of a running testbed through its holder process.
    pub(crate) fn attach(description: HostDescription, state: &Path) -> Result<Self, Error> {
        let namespaces = Namespaces::of(description.holder, true)?;
        Ok(Self {
            description,
            state: state.to_owned(),
            namespaces,
        })
    }

    /// Its name, which is also its host name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// Its IPv4 address on the LAN.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.description.address
    }

    /// The address at which other hosts reach it: of IPv6 where its site has nothing else.
    #[must_use]
    pub fn reached(&self) -> IpAddr {
        self.description.reached
    }

    /// Its home directory, as seen from outside too.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.state.join("hosts").join(self.name()).join("home")
    }

    /// Starts `command` on this host with the host's HOME. Standard streams and other settings are the command's own;
    /// the working directory stays the caller's, or is the host's home where the host does not have that.
    ///
    /// # Errors
    /// [`Error::System`] when the program cannot be started.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, Error> {
        let what = command.get_program().to_string_lossy().into_owned();
        self.prepare(command);
        let here = std::env::current_dir()
            .ok()
            .filter(|_| command.get_current_dir().is_none());
        let home = self.home();
        let spawned = self.namespaces.inside(|| {
            if let Some(here) = here {
                // A private /tmp or a hidden directory may not have it.
                command.current_dir(if here.is_dir() { here } else { home });
            }
            command.spawn()
        })?;
        spawned.map_err(Error::system(format!("start {what} on {}", self.name())))
    }

    /// Runs a program on this host to its end, with no input, and collects what it says.
    ///
    /// # Errors
    /// [`Error::System`] when the program cannot be started.
    pub fn output<S: AsRef<OsStr>>(&self, program: &str, arguments: &[S]) -> Result<Output, Error> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = self.spawn(&mut command)?;
        child
            .wait_with_output()
            .map_err(Error::system(format!("wait for {program} on {}", self.name())))
    }

    /// Runs `work` on a thread of this process that is inside the host's network: sockets made there
    /// belong to the host, wherever they are used later.
    ///
    /// # Errors
    /// [`Error::System`] when the network cannot be entered.
    pub fn in_network<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        self.namespaces.in_network(work)
    }

    fn prepare(&self, command: &mut Command) {
        for name in FOREIGN {
            command.env_remove(name);
        }
        command.env("HOME", self.home());
        command.env(isthmus_settings::TESTBED.name, &self.state);
    }
}

/// A process that keeps namespaces alive until its standard input closes.
#[derive(Debug)]
pub(crate) struct Holder {
    child: Child,
    input: Option<ChildStdin>,
}

impl Holder {
    /// A network namespace for a site's bridge and gateway.
    pub(crate) fn gateway() -> Result<Self, Error> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--", "/bin/sh", "-c", GATEWAY_INIT]);
        Self::start(command, "make a gateway")
    }

    /// All namespaces of a host, prepared by `host.sh`.
    pub(crate) fn host(
        plan: &HostPlan,
        state: &Path,
        topology: &Topology,
        first: bool,
        sshd: Option<&Path>,
    ) -> Result<Self, Error> {
        let mut command = Command::new("unshare");
        command.args([
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount",
            "--uts",
            "--ipc",
            "--mount-proc",
            "--",
        ]);
        command.arg("/bin/sh").arg(state.join("host.sh"));
        command.env("STATE", state).env("HOST", &plan.name);
        command.env("SSHD", sshd.unwrap_or_else(|| Path::new("")));
        command.env("PRIVATE_TMP", if topology.private_tmp { "1" } else { "" });
        command.env("HIDE", if first { String::new() } else { topology.hide.join("\n") });
        command.current_dir("/");
        Self::start(command, &format!("make the host {}", plan.name))
    }

    fn start(mut command: Command, doing: &str) -> Result<Self, Error> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command
            .spawn()
            .map_err(Error::system(format!("{doing}: run unshare (package util-linux)")))?;
        let input = child.stdin.take();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut holder = Self { child, input };
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(Error::system(doing))?;
        }
        if line == "ready\n" {
            return Ok(holder);
        }
        holder.input = None;
        let mut said = String::new();
        if let Some(mut stderr) = stderr {
            // What was said is a help only; the failure is known already.
            let _ = stderr.read_to_string(&mut said);
        }
        Err(refused(doing, said))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // Closing the pipe would do; killing unshare (which takes its child along) does not depend on the shell.
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn refused(doing: &str, said: String) -> Error {
    if said.contains("not permitted") || said.contains("ermission denied") {
        return Error::NotPermitted {
            doing: format!("{doing}: {}", said.trim_end()),
            hint: "run as root, or where unprivileged user namespaces are allowed (sysctl kernel.unprivileged_userns_clone=1)".to_owned(),
        };
    }
    Error::Tool {
        tool: "unshare".to_owned(),
        doing: doing.to_owned(),
        said,
    }
}

/// Writes the files that make a host look like a machine of its own.
pub(crate) fn furnish(state: &Path, plan: &HostPlan, hosts: &[HostPlan], user: &User) -> Result<(), Error> {
    let here = state.join("hosts").join(&plan.name);
    ssh::write(&state.join("host.sh"), INIT, 0o600)?;
    ssh::private_dir(&here.join("home"))?;
    ssh::private_dir(&here.join("etc"))?;
    let etc = |name: &str, text: &str, mode| ssh::write(&here.join("etc").join(name), text, mode);
    etc("hosts", &hosts_file(hosts), 0o644)?;
    etc("passwd", &user.passwd(&here.join("home")), 0o644)?;
    etc(
        "shadow",
        &format!("{}:*:19000:0:99999:7:::\nsshd:!:19000::::::\n", user.name),
        0o600,
    )?;
    let id = identifier()?;
    etc("machine-id", &format!("{}\n", id.replace('-', "")), 0o444)?;
    ssh::write(&here.join("boot_id"), &format!("{id}\n"), 0o444)
}

fn hosts_file(hosts: &[HostPlan]) -> String {
    let mut text = String::from("127.0.0.1 localhost\n");
    for host in hosts {
        text.push_str(&format!("{} {}\n", host.reached, host.name));
    }
    text
}

/// A random identifier of the form of a boot id.
fn identifier() -> Result<String, Error> {
    let text = fs::read_to_string("/proc/sys/kernel/random/uuid")
        .map_err(Error::system("read /proc/sys/kernel/random/uuid"))?;
    Ok(text.trim().to_owned())
}

/// Who runs things on the hosts.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) name: String,
    id: u32,
    passwd: String,
}

impl User {
    /// The effective user of this process, as the password file knows it.
    pub(crate) fn current() -> Result<Self, Error> {
        let id = rustix::process::geteuid().as_raw();
        let passwd = fs::read_to_string("/etc/passwd").map_err(Error::system("read /etc/passwd"))?;
        let name = passwd
            .lines()
            .find(|line| line.split(':').nth(2) == Some(id.to_string().as_str()));
        let name = name
            .and_then(|line| line.split(':').next())
            .unwrap_or("root")
            .to_owned();
        Ok(Self { name, id, passwd })
    }

    /// The password file with this user's home moved to `home`.
    fn passwd(&self, home: &Path) -> String {
        let mut text = String::new();
        for line in self.passwd.lines() {
            let mut fields: Vec<&str> = line.split(':').collect();
            let home = home.to_string_lossy();
            if fields.len() == 7 && fields[2] == self.id.to_string() {
                fields[5] = &home;
            }
            text.push_str(&fields.join(":"));
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_users_home_moves() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n".to_owned();
        let user = User {
            name: "root".to_owned(),
            id: 0,
            passwd,
        };
        assert_eq!(
            user.passwd(Path::new("/state/home")),
            "root:x:0:0:root:/state/home:/bin/bash\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
        );
    }
}
