// SPDX-License-Identifier: Apache-2.0
//! The scratch directory of a subjob (`scratchDir` of RSL): one that is made at the site before the subjob begins, and
//! removed after it.
//!
//! Its path is known only then. Until then [`MARK`] stands for it: that is what `$(SCRATCH_DIRECTORY)` of RSL becomes,
//! and what is written in a job file.

use crate::attributes::Setting;
use crate::model::Subjob;

/// What stands for the path of the scratch directory.
pub const MARK: &str = "${SCRATCH_DIRECTORY}";
/// The variable of RSL, and of the processes.
pub const VARIABLE: &str = "SCRATCH_DIRECTORY";
/// Places for the processes' standard streams.
const STREAMS: [&str; 3] = ["stdin", "stdout", "stderr"];

impl Subjob {
    /// The same with the path of its scratch directory wherever that is meant.
    #[must_use]
    pub fn with_scratch(&self, path: &str) -> Self {
        let mut subjob = self.clone();
        for text in subjob.texts() {
            if text.contains(MARK) {
                *text = text.replace(MARK, path);
            }
        }
        subjob
    }

    /// Whether its scratch directory is named anywhere.
    pub fn names_scratch(&self) -> bool {
        self.clone().texts().iter().any(|text| text.contains(MARK))
    }

    /// Every text that may name it.
    fn texts(&mut self) -> Vec<&mut String> {
        let mut texts: Vec<&mut String> = Vec::new();
        for section in &mut self.sections {
            texts.extend(section.program.paths_mut());
            texts.extend(&mut section.arguments);
            texts.extend(section.environment.iter_mut().map(|(_, value)| value));
            texts.extend(&mut section.directory);
        }
        texts.extend(self.environment.iter_mut().map(|(_, value)| value));
        texts.extend(&mut self.directory);
        texts.extend(self.files.given.iter_mut().map(|g| &mut g.path));
        texts.extend(self.files.taken.iter_mut().map(|t| &mut t.path));
        texts.extend(&mut self.files.removed);
        texts.extend(&mut self.files.shared);
        let streams = self.requests.iter_mut().filter(|r| STREAMS.contains(&r.attribute.name));
        for value in streams.flat_map(|r| &mut r.values) {
            collect(value, &mut texts);
        }
        texts
    }
}

fn collect<'s>(setting: &'s mut Setting, texts: &mut Vec<&'s mut String>) {
    match setting {
        Setting::Text(text) => texts.push(text),
        Setting::List(list) => list.iter_mut().for_each(|s| collect(s, texts)),
    }
}
