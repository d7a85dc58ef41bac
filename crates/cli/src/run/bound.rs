// SPDX-License-Identifier: Apache-2.0
//! What `isthmus run` says of processors.

use super::arguments::Run;
use isthmus_job::JobError;
use isthmus_job::placement::{Placement, Said};

/// What is said of processors and hosts. Variables travel in descriptions of jobs and through schedulers.
pub(super) fn placement(arguments: &Run) -> Result<Placement, JobError> {
    let said = Said {
        bind_to: arguments.bind_to.clone(),
        map_by: arguments.map_by.clone(),
        rank_by: arguments.rank_by.clone(),
        bind_each: arguments.bind_each.clone(),
        map_each: arguments.map_each.clone(),
        report: arguments.report_bindings,
    };
    said.placement()
}

/// Whether anything is said.
pub(super) fn is_given(arguments: &Run) -> bool {
    let words = [
        &arguments.bind_to,
        &arguments.map_by,
        &arguments.rank_by,
        &arguments.bind_each,
        &arguments.map_each,
    ];
    arguments.report_bindings || words.iter().any(|word| word.is_some())
}

/// How many processes there are. `ppr:N:PART` says so too, where the parts are those of this machine (`here`).
pub(super) fn total(placement: &Placement, total: Option<u32>, here: bool) -> Result<Option<u32>, JobError> {
    let Some((each, part)) = placement.per_part.filter(|_| total.is_none()) else {
        return Ok(total);
    };
    if !here {
        return Err(isthmus_job::placement::unknown_parts(each, part));
    }
    let parts = u32::try_from(isthmus_agent::count_parts(part)).unwrap_or(u32::MAX);
    Ok(Some(each.saturating_mul(parts.max(1))))
}

#[cfg(test)]
mod tests {
    use clap::Args;
    use std::collections::BTreeSet;

    #[test]
    fn options_and_keys_say_the_same() {
        let options = super::Run::augment_args(clap::Command::new("run"));
        let about = |name: &str| ["bind", "map"].iter().any(|word| name.contains(word));
        let spelled = options.get_arguments().filter(|option| !option.is_hide_set());
        let options: BTreeSet<String> = spelled
            .filter_map(|option| Some(option.get_long()?.replace('-', "_")))
            .filter(|name| about(name))
            .collect();
        let keys = isthmus_job::network::KEYS.iter().map(|(key, _)| (*key).to_owned());
        let keys: BTreeSet<String> = keys.filter(|key| about(key)).collect();
        assert_eq!(options, keys);
        // And mpiexec takes them all.
        let words: BTreeSet<String> = isthmus_job::mpiexec::option_names()
            .map(|name| name.replace('-', "_"))
            .collect();
        assert!(keys.is_subset(&words), "{keys:?}");
    }
}
