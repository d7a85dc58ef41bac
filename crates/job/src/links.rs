// SPDX-License-Identifier: Apache-2.0
//! What users say about links: the tables `[level.*]`, `[process]` and `[[link]]` of topology files, job files and
//! files of pins.
//!
//! ```toml
//! [level.wide]                      # wide, local, machine, vendor, node; whatever is left out has a usual value
//! latency = "20 ms"                 # one way
//! rate = "100 Mbit/s"               # or gap = [["1 B", "5 us"], ["64 KiB", "5.3 ms"]]: time on the link by size
//! send = "10 us"                    # time that sending keeps a process busy: one, or a list by size as above
//! receive = "10 us"
//!
//! [process]
//! reduce = "5 GB/s"                 # combining
//! copy = "10 GB/s"
//!
//! [[link]]                          # replaces what [level.wide] says
//! between = ["paris", "lab"]
//! latency = "37.5 ms"
//! ```
//! What a job file or a file of pins says is not measured.

use crate::error::JobError;
use crate::quantity;
use crate::quoted::text;
use crate::source::{Source, Table};
use isthmus_topology::{Curve, CurveError, Level, Link, LinkEstimates, Links, Origin, Origins};
use toml_edit::{Item, Value};

/// Keys of these tables at the top of a file.
pub(crate) const TOP_KEYS: [&str; 3] = ["level", "link", "process"];
const LINK_KEYS: [&str; 6] = ["between", "gap", "latency", "rate", "receive", "send"];

/// What is said of one link or one kind of links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pin {
    latency: Option<u64>,
    gap: Option<Curve>,
    send: Option<Curve>,
    receive: Option<Curve>,
}

/// What is said of links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    levels: Vec<(Level, Pin)>,
    reduce: Option<Curve>,
    copy: Option<Curve>,
    pairs: Vec<([String; 2], Pin)>,
}

impl Pin {
    /// The parameters of a link.
    fn read(table: &Table<'_>) -> Result<Self, JobError> {
        let latency = table.meaning("latency", quantity::time)?;
        let rate = table.meaning("rate", quantity::rate)?;
        if rate.is_some() && table.has("gap") {
            let error = JobError::new("'rate' and 'gap' say the same thing").hint("leave out one of them");
            return Err(table.at_key("gap", error));
        }
        Ok(Self {
            latency,
            gap: curve(table, "gap")?.or_else(|| rate.map(Curve::rate)),
            send: curve(table, "send")?,
            receive: curve(table, "receive")?,
        })
    }

    fn apply(&self, link: &mut Link) {
        let set = |curve: &mut Curve, pin: &Option<Curve>| {
            if let Some(pin) = pin {
                curve.clone_from(pin);
            }
        };
        link.latency = self.latency.unwrap_or(link.latency);
        set(&mut link.gap, &self.gap);
        set(&mut link.send, &self.send);
        set(&mut link.receive, &self.receive);
    }

    fn origins(&self, before: Origins) -> Origins {
        let origin = |said: bool, before| if said { Origin::Pinned } else { before };
        Origins {
            latency: origin(self.latency.is_some(), before.latency),
            rate: origin(self.gap.is_some(), before.rate),
        }
    }

    fn write(&self) -> String {
        let latency = self
            .latency
            .map(|time| format!("latency = \"{}\"\n", quantity::show_time(time)));
        let curves = [("gap", &self.gap), ("send", &self.send), ("receive", &self.receive)];
        let curves = curves
            .into_iter()
            .filter_map(|(key, curve)| Some(curve_line(key, curve.as_ref()?)));
        latency.into_iter().chain(curves).collect()
    }
}

fn curve_line(key: &str, curve: &Curve) -> String {
    let rate = curve.as_rate();
    if key == "gap" && *curve == Curve::rate(rate) {
        return format!("rate = \"{}\"\n", quantity::show_rate(rate));
    }
    let points = curve.points().iter();
    let points: Vec<String> = points
        .map(|(bytes, time)| format!("[\"{bytes} B\", \"{}\"]", quantity::show_time(*time)))
        .collect();
    format!("{key} = [{}]\n", points.join(", "))
}

impl Pins {
    /// These, and where they say nothing, those.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        // The last word on a thing counts.
        Self {
            levels: below.levels.into_iter().chain(self.levels).collect(),
            reduce: self.reduce.or(below.reduce),
            copy: self.copy.or(below.copy),
            pairs: below.pairs.into_iter().chain(self.pairs).collect(),
        }
    }

    /// As tables of a file. Links to sites that `takes_part` does not know are left out.
    pub(crate) fn write(&self, takes_part: impl Fn(&str) -> bool) -> String {
        let mut out = String::new();
        for (level, pin) in Level::ALL.map(|level| (level, self.of_level(level))) {
            if pin != Pin::default() {
                out.push_str(&format!("\n[level.{}]\n{}", level.key(), pin.write()));
            }
        }
        let process: Vec<String> = [("copy", &self.copy), ("reduce", &self.reduce)]
            .into_iter()
            .filter_map(|(key, curve)| {
                Some(format!(
                    "{key} = \"{}\"\n",
                    quantity::show_rate(curve.as_ref()?.as_rate())
                ))
            })
            .collect();
        if !process.is_empty() {
            out.push_str(&format!("\n[process]\n{}", process.concat()));
        }
        // Of several words on one link the last counts, as when they are read.
        for ([a, b], pin) in self
            .pairs
            .iter()
            .filter(|(ends, _)| ends.iter().all(|end| takes_part(end)))
        {
            let between = format!("between = [{}, {}]\n", text(a), text(b));
            out.push_str(&format!("\n[[link]]\n{between}{}", pin.write()));
        }
        out
    }

    /// Everything that is said of a level: a file says it in one table.
    fn of_level(&self, level: Level) -> Pin {
        let of = self.levels.iter().filter(|(of, _)| *of == level);
        of.fold(Pin::default(), |all, (_, pin)| Pin {
            latency: pin.latency.or(all.latency),
            gap: pin.gap.clone().or(all.gap),
            send: pin.send.clone().or(all.send),
            receive: pin.receive.clone().or(all.receive),
        })
    }

    /// Usual values with what is said of levels.
    pub fn levels(&self) -> Links {
        let mut links = Links::default();
        for (level, pin) in &self.levels {
            let mut link = links.level(*level).clone();
            pin.apply(&mut link);
            links.set_level(*level, link);
        }
        for (curve, pin) in [(&mut links.reduce, &self.reduce), (&mut links.copy, &self.copy)] {
            if let Some(pin) = pin {
                curve.clone_from(pin);
            }
        }
        links
    }

    /// What is known, with what is said of pairs. `number`: the local area of this name, if it takes part.
    #[must_use]
    pub fn pinned(&self, mut estimates: LinkEstimates, number: impl Fn(&str) -> Option<u32>) -> LinkEstimates {
        for ([a, b], pin) in &self.pairs {
            if let (Some(a), Some(b)) = (number(a), number(b)) {
                if a != b {
                    let mut link = estimates.links().pair(a, b).clone();
                    pin.apply(&mut link);
                    estimates = estimates.with_link((a, b), link, pin.origins(estimates.origins(a, b)));
                }
            }
        }
        estimates
    }
}

/// Reads a file of pins; `file` is its name for messages. Names of sites that take no part in a job are ignored then.
pub fn parse(text: &str, file: &str) -> Result<Pins, JobError> {
    let source = Source::new(text, file);
    let document = source.read("file of links")?;
    let top = Table::top(source, &document);
    top.check_keys(&TOP_KEYS, "a file of links")?;
    pins(&top, |name| Some(name.to_owned()))
}

/// The tables of this module at the top of a file. `canonical`: what a site that may be named is called.
pub(crate) fn pins(top: &Table<'_>, canonical: impl Fn(&str) -> Option<String>) -> Result<Pins, JobError> {
    let mut pins = Pins {
        levels: levels(top)?,
        ..Pins::default()
    };
    if let Some(process) = top.table("process", "a table")? {
        process.check_keys(&["copy", "reduce"], "'process'")?;
        let curve = |key| Ok(process.meaning(key, quantity::rate)?.map(Curve::rate));
        (pins.copy, pins.reduce) = (curve("copy")?, curve("reduce")?);
    }
    for link in top.tables("link")? {
        pins.pairs.push(pair(&link, &canonical)?);
    }
    Ok(pins)
}

fn levels(top: &Table<'_>) -> Result<Vec<(Level, Pin)>, JobError> {
    let Some(all) = top.table("level", "a table")? else {
        return Ok(Vec::new());
    };
    all.check_keys(&Level::ALL.map(Level::key), "'level'")?;
    let mut levels = Vec::new();
    for level in Level::ALL {
        if let Some(table) = all.table(level.key(), "a table")? {
            table.check_keys(&LINK_KEYS[1..], "a level")?;
            levels.push((level, Pin::read(&table)?));
        }
    }
    Ok(levels)
}

fn pair(table: &Table<'_>, canonical: impl Fn(&str) -> Option<String>) -> Result<([String; 2], Pin), JobError> {
    table.check_keys(&LINK_KEYS, "a link")?;
    let [a, b] = between(table)?.map(|name| canonical(&name));
    match (a, b) {
        (Some(a), Some(b)) if a != b => Ok(([a, b], Pin::read(table)?)),
        _ => {
            let error = JobError::new("'between' must name two different sites of this file");
            let error = error.hint("write between = [\"paris\", \"lab\"]; of a site with a count, \"city-1\"");
            Err(table.at_key("between", error))
        }
    }
}

/// The two names of a link.
pub(crate) fn between(table: &Table<'_>) -> Result<[String; 2], JobError> {
    let names = table.get("between").and_then(Item::as_array);
    let texts = names.and_then(|n| {
        n.iter()
            .map(|v| v.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
    });
    texts.and_then(|texts| texts.try_into().ok()).ok_or_else(|| {
        let error = JobError::new("'between' must name two different sites");
        table.at_key("between", error.hint("write between = [\"paris\", \"lab\"]"))
    })
}

/// One time, or pairs of size and time.
fn curve(table: &Table<'_>, key: &str) -> Result<Option<Curve>, JobError> {
    let Some(item) = table.get(key) else { return Ok(None) };
    if let Some(text) = item.as_str() {
        return table
            .point(key, quantity::time(text))
            .map(|time| Some(Curve::constant(time)));
    }
    let wrong = || table.wrong_type(item, key, "a time or a list of pairs such as [\"64 KiB\", \"5 ms\"]");
    let text = |value: &Value, read: fn(&str) -> Result<u64, JobError>| {
        let read = value
            .as_str()
            .map_or_else(|| Err(JobError::new("this must be a text with a unit")), read);
        read.map_err(|error| table.at_value(value, error))
    };
    let mut points = Vec::new();
    for pair in item.as_array().ok_or_else(wrong)? {
        let two = pair.as_array().filter(|p| p.len() == 2);
        let (Some(size), Some(time)) = (two.and_then(|p| p.get(0)), two.and_then(|p| p.get(1))) else {
            return Err(wrong());
        };
        points.push((text(size, quantity::size)?, text(time, quantity::time)?));
    }
    table
        .point(key, Curve::new(points).map_err(|e| wrong_points(key, e)))
        .map(Some)
}

fn wrong_points(key: &str, error: CurveError) -> JobError {
    JobError::new(match error {
        CurveError::TooMany => format!("'{key}' has more than {} points", Curve::MAX_POINTS),
        CurveError::SizesNotAscending => format!("the sizes of '{key}' must ascend"),
        CurveError::TimesDescending => format!("the times of '{key}' must not descend"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_topology::{Measured, Rate};

    fn number(name: &str) -> Option<u32> {
        ["home", "far", "lab"].iter().position(|n| *n == name).map(|n| n as u32)
    }

    #[test]
    fn what_is_pinned_is_above_what_was_measured() {
        let text = "[level.wide]\nlatency = \"9 ms\"\n[process]\ncopy = \"1 GB/s\"\n\
                    [[link]]\nbetween = [\"far\", \"home\"]\nlatency = \"7 ms\"\n\
                    [[link]]\nbetween = [\"lab\", \"nowhere\"]\nrate = \"1 B/s\"\n";
        let pins = parse(text, "links.toml").unwrap();
        let measured = |between| Measured {
            between,
            latency: Some(1_000_000),
            rate: Some(Rate::bare(2_000_000)),
        };
        let estimates =
            LinkEstimates::new(pins.levels(), []).learn(&[measured((0, 1)), measured((1, 2))], Origin::Cached);
        let estimates = pins.pinned(estimates, number);
        let all: Vec<_> = estimates
            .pairs()
            .map(|(p, o, l)| (p, o.latency, l.latency, o.rate, l.gap.as_rate()))
            .collect();
        assert_eq!(
            all,
            [
                ((0, 1), Origin::Pinned, 7_000_000, Origin::Cached, 2_000_000),
                ((1, 2), Origin::Cached, 1_000_000, Origin::Cached, 2_000_000)
            ]
        );
        assert_eq!(estimates.links().pair(0, 2).latency, 9_000_000);
        assert_eq!(estimates.links().copy.at(1000), 1000);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = "[level.wide]\nlatency = \"9.5 ms\"\nsend = \"10 us\"\n[process]\ncopy = \"1 GB/s\"\n\
                    [[link]]\nbetween = [\"far\", \"home\"]\nrate = \"900 B/s\"\n\
                    [[link]]\nbetween = [\"lab\", \"home\"]\ngap = [[\"1 B\", \"5 us\"], [\"64 KiB\", \"5.3 ms\"]]\n\
                    [[link]]\nbetween = [\"lab\", \"nowhere\"]\nlatency = \"1 ms\"\n";
        let pins = parse(text, "links.toml").unwrap();
        assert_eq!(parse(&pins.write(|_| true), "written").unwrap(), pins);
        let of_three = pins.write(|name| number(name).is_some());
        assert!(
            !of_three.contains("nowhere") && of_three.contains("\"7.2 kbit/s\""),
            "{of_three}"
        );
        // Two words on a level become one table.
        let above = parse("[level.wide]\nlatency = \"8 ms\"\n", "above").unwrap();
        let both = above.over(pins);
        let again = parse(&both.write(|_| true), "written").unwrap();
        assert_eq!(again.levels(), both.levels());
    }

    #[test]
    fn pins_of_a_job_are_above_those_of_a_file() {
        let file = parse(
            "[[link]]\nbetween = [\"far\", \"home\"]\nlatency = \"7 ms\"\nrate = \"8 kB/s\"\n",
            "f",
        )
        .unwrap();
        let job = parse("[[link]]\nbetween = [\"home\", \"far\"]\nlatency = \"5 ms\"\n", "j").unwrap();
        let estimates = job.over(file).pinned(LinkEstimates::default(), number);
        let link = estimates.links().pair(0, 1);
        assert_eq!((link.latency, link.gap.as_rate()), (5_000_000, 8_000));
    }
}
