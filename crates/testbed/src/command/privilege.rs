// SPDX-License-Identifier: Apache-2.0
//! Without root: the same command again inside a user namespace.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use isthmus_testbed::Error;

/// Set for the second run: whose testbeds these are.
const USER: &str = isthmus_settings::TESTBED_USER.name;

/// Returns when this process may build a testbed; otherwise replaces it by one that may.
pub(crate) fn ensure() -> Result<(), Error> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user"]);
    if Path::new("/usr/bin/newuidmap").exists() && has_range() {
        command.arg("--map-auto");
    }
    again(command, "make a user namespace")
}

/// Returns when this process may enter the hosts of the testbed that `server` holds.
pub(crate) fn join(server: u32) -> Result<(), Error> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mut command = Command::new("nsenter");
    command.args(["--user", "--preserve-credentials", "--target", &server.to_string()]);
    again(command, "enter the user namespace of the testbed")
}

fn again(mut command: Command, doing: &str) -> Result<(), Error> {
    let myself = std::env::current_exe().map_err(|source| Error::System {
        doing: "find this program".to_owned(),
        source,
    })?;
    command.env(USER, rustix::process::getuid().as_raw().to_string());
    command.arg("--").arg(myself).args(std::env::args_os().skip(1));
    let source = command.exec();
    Err(Error::NotPermitted {
        doing: format!("{doing}: {source}"),
        hint: "run as root, or install util-linux".to_owned(),
    })
}

/// Whether this user has subordinate user ids, which `--map-auto` needs.
fn has_range() -> bool {
    let id = rustix::process::getuid().as_raw().to_string();
    let name = std::env::var("USER").unwrap_or_default();
    let owns = |line: &str| line.split(':').next().is_some_and(|owner| owner == id || owner == name);
    std::fs::read_to_string("/etc/subuid").is_ok_and(|text| text.lines().any(owns))
}
