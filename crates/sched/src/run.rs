// SPDX-License-Identifier: Apache-2.0
//! Running a scheduler's commands: the one place that does.

use crate::adaptor::Refusal;
use crate::command::{Command, Output};
use isthmus_wire::grid::Scheduler;
use isthmus_wire::word;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// Most bytes of each output that are kept; a command that prints more is read on but not believed further.
const MAX_OUTPUT: u64 = 1 << 20;

/// Runs a command of a scheduler with these variables besides our own, for at most `limit`.
pub async fn run(
    scheduler: Scheduler,
    command: &Command,
    environment: &[(&str, String)],
    limit: Duration,
) -> Result<Output, Refusal> {
    let program = command.program;
    let mut child = tokio::process::Command::new(program)
        .args(command.arguments.iter().map(|argument| os(argument)))
        .envs(environment.iter().map(|(n, v)| (n, v)))
        // What it prints is read by a program.
        .env("LC_ALL", "C")
        .envs(command.form.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| cannot_run(scheduler, program, &error))?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let talk = async {
        let feed = async {
            if let Some(mut pipe) = input {
                // A command that does not read its input says why in its own words.
                let _ = pipe.write_all(&word::to_bytes(&command.input)).await;
            }
        };
        let ((), output, errors) = tokio::join!(feed, keep(output), keep(errors));
        let status = child.wait().await;
        (status, output, errors)
    };
    let Ok((status, output, errors)) = tokio::time::timeout(limit, talk).await else {
        let reason = format!(
            "{scheduler} does not answer: '{program}' took longer than {} s",
            limit.as_secs()
        );
        return Err(Refusal::new(reason, "try that command at the site by hand"));
    };
    let status = status.map_err(|error| cannot_run(scheduler, program, &error))?;
    Ok(Output {
        status: status.code(),
        output,
        errors,
    })
}

/// The word that a text stands for.
fn os(text: &str) -> OsString {
    OsString::from_vec(word::to_bytes(text))
}

fn cannot_run(scheduler: Scheduler, program: &str, error: &std::io::Error) -> Refusal {
    if error.kind() == std::io::ErrorKind::NotFound {
        let reason = format!("{scheduler} cannot be used: there is no command '{program}' in PATH");
        return Refusal::new(
            reason,
            "name the scheduler that the site has; PATH is that of a shell that is not interactive",
        );
    }
    Refusal::new(format!("{scheduler} cannot be used: '{program}': {error}"), "")
}

async fn keep(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let Some(pipe) = pipe else { return String::new() };
    let mut kept = Vec::new();
    let mut limited = pipe.take(MAX_OUTPUT);
    let _ = limited.read_to_end(&mut kept).await;
    // The rest is read so that the command can end.
    let _ = tokio::io::copy(&mut limited.into_inner(), &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shell(script: &str, input: &str, limit: Duration) -> Result<Output, Refusal> {
        let command = Command::new("sh").args(["-c", script]).input(input.to_owned());
        run(Scheduler::Slurm, &command, &[("A", "b".to_owned())], limit).await
    }

    #[tokio::test]
    async fn what_a_command_says_is_kept() {
        let minute = Duration::from_secs(60);
        let said = shell("cat; echo $A >&2; exit 3", "in\n", minute).await.unwrap();
        assert_eq!(
            (said.status, said.output.as_str(), said.errors.as_str()),
            (Some(3), "in\n", "b\n")
        );
        let much = shell("head -c 3000000 /dev/zero", "", minute).await.unwrap();
        assert_eq!((much.status, much.output.len()), (Some(0), 1 << 20));
        // Bytes of the user's that are no text arrive as they are, in words and in the script.
        let odd = word::from_bytes(b"d\xe9p\xf4t");
        let same = shell(&format!("test \"$(cat)\" = {odd}"), &odd, minute).await.unwrap();
        assert_eq!(same.status, Some(0));
        let bytes = shell("test $(wc -c) = 5", &odd, minute).await.unwrap();
        assert_eq!(bytes.status, Some(0));
        let deaf = shell("exec <&-; true", &"x".repeat(1 << 20), minute).await.unwrap();
        assert_eq!(deaf.status, Some(0));
    }

    #[tokio::test]
    async fn a_command_that_hangs_or_lacks_is_named() {
        let slow = shell("sleep 60", "", Duration::from_millis(50)).await.unwrap_err();
        assert!(
            slow.reason.contains("Slurm does not answer: 'sh' took longer"),
            "{slow:?}"
        );
        let lacking = run(
            Scheduler::Lsf,
            &Command::new("isthmus-no-such-bsub"),
            &[],
            Duration::from_secs(9),
        )
        .await;
        assert!(
            lacking
                .unwrap_err()
                .reason
                .contains("LSF cannot be used: there is no command 'isthmus-no-such-bsub'")
        );
    }
}
