// SPDX-License-Identifier: Apache-2.0
//! Where the places of a job come from: who started this process, as its environment tells.
//!
//! Today that is our agent, or nobody. Launchers of other MPIs (PMI, PMIx) would be further cases of [`Origin`]; until
//! then a process that one of them started among others ([`Others`]) must not believe itself alone.

use crate::BootError;
use crate::rendezvous::Invitation;
use isthmus_settings::Others;

/// Who started this process.
pub(crate) enum Origin {
    /// Our agent, as part of a job.
    Agent(Invitation),
    /// Nobody who started others beside it: a world of one.
    Nobody,
}

impl Origin {
    /// Reads the environment. Processes that another launcher started together are a mistake, unless `ISTHMUS_ALONE`
    /// says that they are meant.
    pub(crate) fn from_environment() -> Result<Self, BootError> {
        if let Some(invitation) = Invitation::from_environment()? {
            return Ok(Self::Agent(invitation));
        }
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        match Others::of(&variable) {
            None => Ok(Self::Nobody),
            Some(others) => Err(BootError::Environment(sentence(&others, &command(), &variable))),
        }
    }
}

/// What is wrong and what to type.
fn sentence(others: &Others, command: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let Others { launcher, count } = others;
    let (many, number) = match count {
        Some(count) => (format!("{count} processes"), count.to_string()),
        None => ("this process and perhaps others".to_owned(), "N".to_owned()),
    };
    let run = match variable("SLURM_JOB_ID") {
        Some(_) => format!("isthmus run --from slurm -n {number} {command}"),
        None => format!("isthmus run -n {number} {command}"),
    };
    format!(
        "{launcher} started {many}, which Isthmus does not understand yet: each would be rank 0 of 1; \
         start the program with: {run} (ISTHMUS_ALONE=1 lets each run alone)"
    )
}

/// The command line of this process, shortened, for a shell.
fn command() -> String {
    let mut words = std::env::args_os().map(|word| {
        let word = word.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
        match !word.is_empty() && word.chars().all(plain) {
            true => word.into_owned(),
            false => format!("'{}'", word.escape_debug().to_string().replace('\'', "'\\''")),
        }
    });
    let line = words.by_ref().take(8).collect::<Vec<_>>().join(" ");
    let more = if words.next().is_some() { " …" } else { "" };
    match line.is_empty() {
        true => "PROGRAM".to_owned(),
        false => format!("{line}{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_has_the_command_to_type() {
        let others = Others {
            launcher: "srun",
            count: Some(4),
        };
        let slurm = |name: &str| (name == "SLURM_JOB_ID").then(|| "7".to_owned());
        assert!(sentence(&others, "./a", &slurm).contains("isthmus run --from slurm -n 4 ./a"));
        assert!(sentence(&others, "./a", &|_| None).contains("isthmus run -n 4 ./a"));
    }
}
