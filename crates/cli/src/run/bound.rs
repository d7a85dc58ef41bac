// SPDX-License-Identifier: Apache-2.0
//! What `isthmus run` says of processors.

use super::Run;
use isthmus_job::{JobError, network};

/// What processes are bound to, as variables: so it travels in descriptions of jobs and through schedulers.
pub(super) fn binding(arguments: &Run) -> Result<Vec<(String, String)>, JobError> {
    let (to, by) = (arguments.bind_to.as_deref(), arguments.map_by.as_deref());
    let mapping = by.filter(|by| by.contains(':')).map(network::mapping).transpose()?;
    // Of hosts the sites say more.
    let mapping = mapping.filter(|mapping| !mapping.evenly && mapping.per_host.is_none());
    let by = mapping.as_ref().map_or(by, |mapping| mapping.part.as_deref());
    network::check_binding(to, by)?;
    let each = mapping.as_ref().and_then(|mapping| mapping.threads);
    let each = each.filter(|_| to != Some("none")).map(network::bind_each);
    let given = [
        (isthmus_settings::BIND_TO.name, to),
        (isthmus_settings::MAP_BY.name, by),
        (
            isthmus_settings::REPORT_BINDINGS.name,
            arguments.report_bindings.then_some("1"),
        ),
    ];
    let given = given
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    Ok(given.chain(each).collect())
}
