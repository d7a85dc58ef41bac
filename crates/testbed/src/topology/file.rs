// SPDX-License-Identifier: Apache-2.0
//! The TOML form of a topology; the README of this room shows one.

use serde::Deserialize;

use super::{Pair, Site, Topology};
use crate::access::Access;
use crate::error::{Error, wrong};
use crate::link::LinkSpec;
use crate::units;

impl Topology {
    /// Reads a TOML description; the README shows one.
    ///
    /// # Errors
    /// [`Error::Topology`] with line and column when it is malformed or inconsistent.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        read(text)?.checked()
    }
}

/// What the text says; not checked yet.
fn read(text: &str) -> Result<Topology, Error> {
    let file: File =
        toml::from_str(text).map_err(|e| wrong(e.to_string().trim_end().to_owned(), "see crates/testbed/README.md"))?;
    file.topology()
}

/// The TOML file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    link: LinkText,
    /// Between the machines of each site.
    local: Option<LinkText>,
    #[serde(default)]
    links: Vec<LinksText>,
    sites: Vec<SiteText>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    congestion: Option<String>,
    #[serde(default)]
    private_tmp: bool,
    #[serde(default)]
    hide: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SiteText {
    name: String,
    #[serde(default = "one")]
    machines: usize,
    #[serde(default = "one")]
    hosts: usize,
    local: Option<LinkText>,
    access: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkText {
    round_trip: Option<String>,
    rate: Option<String>,
    queue: Option<String>,
    loss: Option<String>,
    jitter: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinksText {
    between: [String; 2],
    round_trip: Option<String>,
    rate: Option<String>,
    queue: Option<String>,
    loss: Option<String>,
    jitter: Option<String>,
}

impl File {
    fn topology(self) -> Result<Topology, Error> {
        let link = self.link.over(&LinkSpec::default())?;
        let mut links = Vec::new();
        for one in self.links {
            let [a, b] = one.between;
            let text = LinkText {
                round_trip: one.round_trip,
                rate: one.rate,
                queue: one.queue,
                loss: one.loss,
                jitter: one.jitter,
            };
            links.push((Pair(a, b), text.over(&link)?));
        }
        let common = self.local.map(|text| text.over(&LinkSpec::local())).transpose()?;
        let sites = self.sites.into_iter().map(|site| site.site(common.as_ref()));
        let sites = sites.collect::<Result<_, _>>()?;
        let default = Topology::default();
        Ok(Topology {
            sites,
            link,
            links,
            seed: self.seed.unwrap_or(default.seed),
            congestion: self.congestion.unwrap_or(default.congestion),
            private_tmp: self.private_tmp,
            hide: self.hide,
        })
    }
}

impl SiteText {
    fn site(self, common: Option<&LinkSpec>) -> Result<Site, Error> {
        let local = LinkSpec::local();
        let local = match self.local {
            Some(text) => Some(text.over(common.unwrap_or(&local))?),
            None => common.cloned(),
        };
        Ok(Site {
            name: self.name,
            machines: self.machines,
            hosts: self.hosts,
            local,
            access: self
                .access
                .as_deref()
                .map_or_else(|| Ok(Access::default()), str::parse)?,
        })
    }
}

impl LinkText {
    fn over(&self, base: &LinkSpec) -> Result<LinkSpec, Error> {
        let mut link = base.clone();
        if let Some(text) = &self.round_trip {
            link.round_trip = units::duration(text)?;
        }
        if let Some(text) = &self.rate {
            link.rate = units::rate(text)?;
        }
        if let Some(text) = &self.queue {
            link.queue = units::queue(text)?;
        }
        if let Some(text) = &self.loss {
            link.loss = units::probability(text)?;
        }
        if let Some(text) = &self.jitter {
            link.jitter = units::duration(text)?;
        }
        Ok(link)
    }
}

fn one() -> usize {
    1
}
