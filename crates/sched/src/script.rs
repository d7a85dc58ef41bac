// SPDX-License-Identifier: Apache-2.0
//! The script that a scheduler runs: it gets the `isthmus` binary to every allocated node and starts an agent there.
//!
//! Nothing in it is secret: scripts can be read by others at some sites. The binary is the one that submitted, when the
//! nodes see it; else the one in the user's cache there; else it is fetched from the submitting agent and compared with
//! its hash.

use crate::command::quote;

/// How agents on nodes are started and where they find the agent that submitted them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAgent {
    /// Path of the `isthmus` binary where it was submitted.
    pub binary: String,
    /// Its SHA-256, in hexadecimal digits.
    pub hash: String,
    /// Its size, bytes.
    pub size: u64,
    /// Private directory of the submission, when the nodes see it: `secret`, `node` (a copy of [`Self::node_script`]),
    /// `output`.
    pub spool: String,
    /// Addresses of the submitting agent, most promising first.
    pub addresses: Vec<String>,
    /// Port there.
    pub port: u16,
    /// SHA-256 of its certificate, in hexadecimal digits.
    pub fingerprint: String,
}

/// What a node sends, before a newline, to get the binary; the answer is the file and nothing else.
pub const FETCH: &str = "ISTHMUS binary";

impl NodeAgent {
    /// The script to submit, with a scheduler's lines that reach all nodes.
    pub(crate) fn script(&self, nodes: &str) -> String {
        format!(
            "#!/bin/sh\nISTHMUS_SPOOL={spool}\nif test -d \"$ISTHMUS_SPOOL\"; then exec >>\"$ISTHMUS_SPOOL/output\" 2>&1; fi\n\
             ISTHMUS_NODE={node}\nexport ISTHMUS_SPOOL ISTHMUS_NODE\n{nodes}",
            spool = quote(&self.spool),
            node = quote(&self.node_script()),
        )
    }

    /// What runs on a node, with the arguments NODE, NODES, SLOTS.
    pub fn node_script(&self) -> String {
        NODE.replace("BINARY", &quote(&self.binary))
            .replace("HASH", &self.hash)
            .replace("SIZE", &self.size.to_string())
            .replace(
                "ADDRESSES",
                &self.addresses.iter().map(|a| quote(a)).collect::<Vec<_>>().join(" "),
            )
            .replace("PORT", &self.port.to_string())
            .replace("FETCH", FETCH)
            .replace(
                "AGENT",
                &self.arguments().iter().map(|a| quote(a)).collect::<Vec<_>>().join(" "),
            )
    }

    fn arguments(&self) -> [String; 5] {
        [
            "node".to_owned(),
            self.spool.clone(),
            self.addresses.join(","),
            self.port.to_string(),
            self.fingerprint.clone(),
        ]
    }
}

const NODE: &str = r#"b=BINARY
if test -x "$b"; then :; else
    u=$(umask)
    umask 077
    c=${XDG_CACHE_HOME:-${HOME:-}/.cache}/isthmus
    if test -z "${XDG_CACHE_HOME:-}" && ! test -d "${HOME:-}"; then
        c=/tmp/isthmus-$(id -u)
        mkdir -p "$c"
        test -O "$c" || { echo "isthmus: $(hostname) has no home directory, and $c belongs to somebody else"; exit 1; }
    fi
    b=$c/isthmus-HASH
    if test -x "$b"; then :; else
        mkdir -p "$c"
        t=$b.$(hostname).$$
        for a in ADDRESSES; do
            timeout 120 bash -c 'exec 3<>"/dev/tcp/$1/$2" && echo "FETCH" >&3 && head -c "$3" <&3' isthmus "$a" PORT SIZE >"$t"
            s=$(sha256sum <"$t")
            if test "${s%% *}" = HASH; then chmod 700 "$t" && mv -f "$t" "$b"; break; fi
        done
        rm -f "$t"
        test -x "$b" || { echo "isthmus: $(hostname) could not fetch the isthmus binary from ADDRESSES port PORT"; exit 1; }
    fi
    umask "$u"
fi
exec "$b" AGENT "$1" "$2" "$3"
"#;

/// Processes that node `node` has room for: a number, or Slurm's list for all nodes, `2(x3),1`. 0: not known.
pub fn slots(text: &str, node: u32) -> u32 {
    let mut before = 0_u64;
    for item in text.trim().split(',') {
        let (slots, times) = match item.split_once("(x") {
            Some((slots, times)) => (slots, times.trim_end_matches(')').parse().unwrap_or(1)),
            None => (item, 1_u32),
        };
        before += u64::from(times);
        if u64::from(node) < before || !text.contains([',', '(']) {
            return slots.parse().unwrap_or(0);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_a_node() {
        let all = |text: &str| (0..5).map(|node| slots(text, node)).collect::<Vec<_>>();
        assert_eq!(all("2(x3),1"), [2, 2, 2, 1, 0]);
        assert_eq!(all("4,2"), [4, 2, 0, 0, 0]);
        assert_eq!(all("4"), [4, 4, 4, 4, 4]);
        for text in [
            "",
            "x",
            "(x",
            "2(x",
            ",",
            "99999999999",
            "1(x4294967295),1(x4294967295)",
        ] {
            let _ = all(text);
        }
    }

    #[test]
    fn hostile_names_stay_words() {
        let hostile = "/home/it's $(touch hacked)/`x`\"";
        let agent = NodeAgent {
            binary: hostile.into(),
            hash: "ab".repeat(32),
            size: 10,
            spool: hostile.into(),
            addresses: vec!["127.0.0.1".into(), "::1".into()],
            port: 9,
            fingerprint: "cd".repeat(32),
        };
        let directory = std::env::temp_dir().join(format!("isthmus-script-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        // The scheduler's part prints what the node part would be told; the node part itself is only parsed.
        let script = agent.script("printf '%s' \"$ISTHMUS_SPOOL\"; sh -n -c \"$ISTHMUS_NODE\"\n");
        let said = std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(&directory)
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&said.stdout),
            hostile,
            "{}",
            String::from_utf8_lossy(&said.stderr)
        );
        assert!(said.status.success() && said.stderr.is_empty());
        assert!(!directory.join("hacked").exists());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn the_umask_of_a_node_that_keeps_the_binary_is_that_of_the_scheduler() {
        use std::os::unix::fs::PermissionsExt;
        let cache = std::env::temp_dir().join(format!("isthmus-node-{}", std::process::id()));
        std::fs::create_dir_all(cache.join("isthmus")).unwrap();
        let agent = NodeAgent {
            binary: "/nowhere/isthmus".into(),
            hash: "ab".repeat(32),
            size: 10,
            spool: "/nowhere".into(),
            addresses: Vec::new(),
            port: 9,
            fingerprint: "cd".into(),
        };
        let kept = cache.join("isthmus").join(format!("isthmus-{}", agent.hash));
        std::fs::write(&kept, "#!/bin/sh\numask\n").unwrap();
        std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o700)).unwrap();
        let script = format!("umask 027\n{}", agent.node_script());
        let said = std::process::Command::new("sh")
            .args(["-c", &script, "isthmus", "0", "1", "4"])
            .env("XDG_CACHE_HOME", &cache)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "0027\n");
        std::fs::remove_dir_all(&cache).unwrap();
    }

    #[test]
    fn a_node_runs_the_binary_that_it_sees() {
        let agent = NodeAgent {
            binary: "/bin/echo".into(),
            hash: "ab".repeat(32),
            size: 10,
            spool: "/nowhere/with space".into(),
            addresses: vec!["10.0.0.1".into(), "fe80::1".into()],
            port: 9,
            fingerprint: "cd".into(),
        };
        let said = std::process::Command::new("sh")
            .args(["-c", &agent.node_script(), "isthmus", "1", "2", "4(x2)"])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&said.stdout),
            "node /nowhere/with space 10.0.0.1,fe80::1 9 cd 1 2 4(x2)\n"
        );
    }
}
