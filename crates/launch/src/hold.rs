// SPDX-License-Identifier: Apache-2.0
//! Agents that outlive a connection, and the coordinator that follows one that has died.

use isthmus_job::Job;
use isthmus_job::forms::{Form, Input};
use isthmus_stage::content::hex;
use isthmus_wire::grid::{FromAgent, Resume};
use serde_json::{Value, json};
use std::time::Duration;

/// Version of what is kept for a successor.
const VERSION: u64 = 1;

/// What has been received from the agent of a subjob, over all connections to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    standings: u64,
    outputs: u64,
}

impl Received {
    pub(crate) fn note(&mut self, message: &FromAgent) {
        self.standings += u64::from(message.is_standing());
        self.outputs += u64::from(matches!(message, FromAgent::Output { .. }));
    }
}

/// How an agent is reached that is there already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Again {
    pub(crate) secret: [u8; 32],
    pub(crate) received: Received,
    /// How long it may be out of reach.
    pub(crate) patience: Duration,
}

impl Again {
    /// The first message on the connection to it.
    pub(crate) fn resume(&self) -> Resume {
        Resume {
            secret: self.secret,
            launcher: std::process::id(),
            standings: self.received.standings,
            outputs: self.received.outputs,
        }
    }
}

/// What a launcher leaves for one that follows it: `held` in the place of its job, for its owner alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// What agents want to see.
    pub(crate) secret: Secret,
    /// How many launchers the job has had.
    pub(crate) launchers: u32,
    /// When its processes began, seconds since 1970.
    pub began: u64,
    /// For how long agents do without a launcher, seconds.
    pub away: u64,
    /// Where the user stood.
    pub directory: String,
    /// Options of the launcher.
    pub words: Vec<String>,
    /// Settings of its user.
    pub environment: Vec<(String, String)>,
    /// The job, as a job file.
    pub(crate) job: String,
    /// Subjobs with files, and where these are.
    pub(crate) files: Vec<(usize, String)>,
}

/// 32 bytes that are not printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) [u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Held {
    /// The job, if what is kept says all of it.
    pub fn describe(job: &Job) -> Option<String> {
        let text = Form::Toml.write(job).text;
        (read(&text)?.subjobs() == job.subjobs()).then_some(text)
    }

    /// What runs.
    pub fn job(&self) -> Option<Job> {
        read(&self.job)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "version": VERSION, "secret": hex(&self.secret.0), "launchers": self.launchers, "began": self.began, "away": self.away,
            "directory": self.directory, "words": self.words, "environment": self.environment, "job": self.job, "files": self.files,
        })
    }

    /// Nothing: somebody else has written it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        if value["version"].as_u64() != Some(VERSION) {
            return None;
        }
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        Some(Self {
            secret: Secret(unhex(value["secret"].as_str()?)?),
            launchers: u32::try_from(value["launchers"].as_u64()?).ok()?,
            began: value["began"].as_u64()?,
            away: value["away"].as_u64()?,
            directory: text("directory")?,
            job: text("job")?,
            words: serde_json::from_value(value["words"].clone()).ok()?,
            environment: serde_json::from_value(value["environment"].clone()).ok()?,
            files: serde_json::from_value(value["files"].clone()).ok()?,
        })
    }
}

/// A job from the text of a job file that this program has written.
pub(crate) fn read(text: &str) -> Option<Job> {
    let read = Form::Toml.read(&Input::of(text, "held"));
    read.ok().map(|described| described.job)
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    (hex(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_job::{Program, sites};

    #[test]
    fn what_is_kept_comes_back_and_nonsense_does_not() {
        let specs = ["home:2", "lab:3"].map(|s| sites::SiteSpec::parse(s).unwrap());
        let template = sites::template(Program::one("./x"), vec!["a b".to_owned()]);
        let job = sites::job_of_sites(&specs, None, &template).unwrap();
        let held = Held {
            secret: Secret([9; 32]),
            launchers: 2,
            began: 5,
            away: 300,
            directory: "/d".into(),
            words: vec!["--label".into()],
            environment: vec![("ISTHMUS_X".into(), "1".into())],
            job: Held::describe(&job).unwrap(),
            files: vec![(1, "/cache/jobs/job-1/files".into())],
        };
        let text = held.json().to_string();
        assert_eq!(Held::parse(&text).unwrap(), held);
        assert_eq!(held.job().unwrap().subjobs(), job.subjobs());
        for wrong in [
            "",
            "{}",
            "[1]",
            &text.replace(&"09".repeat(32), "09"),
            &text[..text.len() / 2],
        ] {
            assert_eq!(Held::parse(wrong), None);
        }
        assert!(!format!("{held:?}").contains("0909"));
    }
}
