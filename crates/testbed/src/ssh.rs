// SPDX-License-Identifier: Apache-2.0
//! ssh between the hosts: throw-away keys, one private configuration, nothing of the user's.
//!
//! OpenSSH takes the home directory from the password file, not from HOME. So each host has a password
//! file of its own in which the user's home is the host's home, and `~/.ssh/config` there does the rest.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::topology::HostPlan;

/// Makes the key pair that opens every host, and the list of all hosts' keys.
pub(crate) fn make_keys(state: &Path, hosts: &[HostPlan]) -> Result<(), Error> {
    private_dir(&state.join("ssh"))?;
    keygen(&state.join("ssh/user_key"), "testbed user")?;
    let public = read(&state.join("ssh/user_key.pub"))?;
    write(&state.join("ssh/authorized_keys"), &public, 0o600)?;
    let mut known = String::new();
    for host in hosts {
        let key = state.join("hosts").join(&host.name).join("host_key");
        keygen(&key, &host.name)?;
        let public = read(&key.with_extension("pub"))?;
        let _ = writeln!(known, "{},{} {}", host.name, host.reached, public.trim_end());
    }
    write(&state.join("ssh/known_hosts"), &known, 0o644)
}

/// Writes the client's and the server's configuration of one host.
pub(crate) fn configure(state: &Path, host: &HostPlan, hosts: &[HostPlan], user: &str) -> Result<(), Error> {
    let here = state.join("hosts").join(&host.name);
    private_dir(&here.join("home/.ssh"))?;
    write(&here.join("home/.ssh/config"), &client(state, hosts, user), 0o600)?;
    write(&here.join("sshd_config"), &server(state, &here, user), 0o600)
}

/// The sshd of this machine, if it has one.
pub(crate) fn find_server() -> Option<PathBuf> {
    ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"]
        .map(PathBuf::from)
        .into_iter()
        .find(|p| p.exists())
}

fn client(state: &Path, hosts: &[HostPlan], user: &str) -> String {
    let state = state.display();
    let mut text = String::new();
    for host in hosts {
        let _ = writeln!(
            text,
            "Host {}\n    HostName {}\n    HostKeyAlias {}",
            host.name, host.reached, host.name
        );
        if let Some(jump) = &host.jump {
            let _ = writeln!(text, "    ProxyJump {jump}");
        }
    }
    let _ = write!(
        text,
        "Host *\n    User {user}\n    IdentityFile {state}/ssh/user_key\n    IdentitiesOnly yes\n    IdentityAgent none\n    \
         UserKnownHostsFile {state}/ssh/known_hosts\n    GlobalKnownHostsFile none\n    StrictHostKeyChecking yes\n    \
         PasswordAuthentication no\n    KbdInteractiveAuthentication no\n    GSSAPIAuthentication no\n    ConnectTimeout 10\n"
    );
    text
}

fn server(state: &Path, here: &Path, user: &str) -> String {
    let (state, here) = (state.display(), here.display());
    format!(
        "Port 22\nListenAddress 0.0.0.0\nListenAddress ::\nHostKey {here}/host_key\nAuthorizedKeysFile {state}/ssh/authorized_keys\n\
         AllowUsers {user}\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\nUseDNS no\nPidFile none\nPrintMotd no\n\
         PrintLastLog no\nX11Forwarding no\nAcceptEnv LANG LC_*\nMaxStartups 200\nMaxSessions 200\nLoginGraceTime 30\n\
         Subsystem sftp internal-sftp\n"
    )
}

fn keygen(path: &Path, comment: &str) -> Result<(), Error> {
    let failed = |said: String| Error::Tool {
        tool: "ssh-keygen".to_owned(),
        doing: format!("make the key {}", path.display()),
        said,
    };
    let output = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f"])
        .arg(path)
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

/// Makes a directory, with its parents, that only its owner may enter.
pub(crate) fn private_dir(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(Error::system(format!("make the directory {}", path.display())))
}

pub(crate) fn write(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(Error::system(format!("write {}", path.display())))
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::system(format!("read {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn every_host_is_reachable_by_name() {
        let hosts = Topology::grid("2x2").unwrap().hosts();
        let text = client(Path::new("/state"), &hosts, "root");
        for host in &hosts {
            assert!(text.contains(&format!("Host {}\n    HostName {}\n", host.name, host.reached)));
        }
        assert!(text.contains("StrictHostKeyChecking yes"));
    }
}
