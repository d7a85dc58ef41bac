// SPDX-License-Identifier: Apache-2.0
//! How the user has configured the ssh client, and what of it is not meant for our commands.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// How long the ssh client may take to print its configuration.
const CONFIGURATION: Duration = Duration::from_secs(5);
/// What is configured for a shell of the user's, and keeps our command from being run or heard: the key, and the values
/// that do not, of which the first one is set instead of another one. Older clients do not know all keys, and refuse
/// those: only what the client itself names is set.
const OBSTACLES: [(&str, &[&str]); 4] = [
    ("RemoteCommand", &["none"]),
    ("SessionType", &["default"]),
    ("StdinNull", &["no", "false"]),
    ("ForkAfterAuthentication", &["no", "false"]),
];

/// What this client would do for a destination: its own configuration and the user's, as `-G` prints it. Empty for a
/// client that is not OpenSSH.
pub(crate) async fn configuration(ssh: &str, destination: &str) -> BTreeMap<String, String> {
    let printing = Command::new("/bin/sh")
        .args(["-c", r#"set -f; exec $0 "$@""#, ssh, "-G", "--", destination])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let Ok(Ok(printed)) = tokio::time::timeout(CONFIGURATION, printing).await else {
        return BTreeMap::new();
    };
    let text = String::from_utf8_lossy(&printed.stdout);
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let all: BTreeMap<String, String> = lines.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    // What another client prints is no configuration.
    if all.contains_key("hostname") && all.contains_key("port") {
        all
    } else {
        BTreeMap::new()
    }
}

/// Words for the ssh client with which it runs our command at a destination, and nothing else.
pub async fn for_our_command(ssh: &str, destination: &str) -> Vec<String> {
    let options = unobstructed(&configuration(ssh, destination).await);
    options
        .into_iter()
        .flat_map(|option| ["-o".to_owned(), option])
        .collect()
}

/// Options in place of what is configured and is not meant for our command.
pub(crate) fn unobstructed(known: &BTreeMap<String, String>) -> Vec<String> {
    let obstacles = OBSTACLES.iter().filter(|(key, harmless)| {
        let value = known.get(&key.to_ascii_lowercase());
        value.is_some_and(|value| !harmless.contains(&value.as_str()))
    });
    obstacles
        .map(|(key, harmless)| format!("{key}={}", harmless[0]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_for_a_shell_is_not_for_our_command() {
        let known = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(
            unobstructed(&known(&[
                ("remotecommand", "tmux attach || tmux"),
                ("sessiontype", "none"),
                ("stdinnull", "yes"),
                ("forkafterauthentication", "yes"),
            ])),
            [
                "RemoteCommand=none",
                "SessionType=default",
                "StdinNull=no",
                "ForkAfterAuthentication=no"
            ]
        );
        assert!(unobstructed(&known(&[("stdinnull", "no"), ("sessiontype", "default")])).is_empty());
        assert!(
            unobstructed(&known(&[])).is_empty(),
            "an older client knows none of them"
        );
    }
}
