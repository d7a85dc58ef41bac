// SPDX-License-Identifier: Apache-2.0
//! What all who start the system's ssh client have in common.

/// Script of a shell that becomes the client: the client ignores what a terminal, a shell or a time limit sends to the
/// whole process group. The command of the client is the shell's `$0`, and is split into words.
pub const SHIELDED: &str = r#"trap "" HUP INT QUIT TERM TSTP USR1 USR2; set -f; exec $0 "$@""#;

/// How the client says which port the server has chosen.
const ALLOCATED: &str = "Allocated port ";

/// The port that the server has chosen, if a line of the client says that.
pub fn allocated(line: &str) -> Option<u16> {
    line.strip_prefix(ALLOCATED)?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_of_the_client_says_which_port_was_chosen() {
        assert_eq!(
            allocated("Allocated port 40001 for remote forward to 127.0.0.1:7"),
            Some(40001)
        );
        for other in [
            "Allocated port",
            "Allocated port 70000 for",
            "x Allocated port 1 for",
            "",
        ] {
            assert_eq!(allocated(other), None, "{other}");
        }
    }
}
