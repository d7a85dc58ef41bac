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

use crate::document::{Document, Spanned};
use crate::error::JobError;
use crate::quantity;
use crate::quoted::text;
use isthmus_topology::{Curve, CurveError, Known, Level, Link, Links, Origin, Origins};
use std::ops::Range;
use toml_edit::{Item, TableLike, Value};

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
    pub fn pinned(&self, mut known: Known, number: impl Fn(&str) -> Option<u32>) -> Known {
        for ([a, b], pin) in &self.pairs {
            if let (Some(a), Some(b)) = (number(a), number(b)) {
                if a != b {
                    let mut link = known.links().pair(a, b).clone();
                    pin.apply(&mut link);
                    known = known.with_link((a, b), link, pin.origins(known.origins(a, b)));
                }
            }
        }
        known
    }
}

/// Reads a file of pins; `file` is its name for messages. Names of sites that take no part in a job are ignored then.
pub fn parse(text: &str, file: &str) -> Result<Pins, JobError> {
    let source = Document::new(text, file);
    let document = source.read("file of links")?;
    let top: &dyn TableLike = document.as_table();
    source.check_keys(top, &TOP_KEYS, "a file of links")?;
    source.pins(top, |name| Some(name.to_owned()))
}

impl Document<'_> {
    /// The tables of this module at the top of a file. `canonical`: what a site that may be named is called.
    pub(crate) fn pins(
        &self,
        top: &dyn TableLike,
        canonical: impl Fn(&str) -> Option<String>,
    ) -> Result<Pins, JobError> {
        let mut pins = Pins::default();
        self.levels(top, &mut pins)?;
        self.process(top, &mut pins)?;
        for link in self.tables(top, "link")? {
            pins.pairs.push(self.pair(&link, &canonical)?);
        }
        Ok(pins)
    }

    fn levels(&self, top: &dyn TableLike, pins: &mut Pins) -> Result<(), JobError> {
        let Some(item) = top.get("level") else { return Ok(()) };
        let all = item
            .as_table_like()
            .ok_or_else(|| self.wrong_type(item, "level", "a table"))?;
        self.check_keys(all, &Level::ALL.map(Level::key), "'level'")?;
        for level in Level::ALL {
            let Some(item) = all.get(level.key()) else { continue };
            let table = item
                .as_table_like()
                .ok_or_else(|| self.wrong_type(item, level.key(), "a table"))?;
            self.check_keys(table, &LINK_KEYS[1..], "a level")?;
            pins.levels.push((level, self.link(table)?));
        }
        Ok(())
    }

    fn process(&self, top: &dyn TableLike, pins: &mut Pins) -> Result<(), JobError> {
        let Some(item) = top.get("process") else { return Ok(()) };
        let table = item
            .as_table_like()
            .ok_or_else(|| self.wrong_type(item, "process", "a table"))?;
        self.check_keys(table, &["copy", "reduce"], "'process'")?;
        for (key, curve) in [("copy", &mut pins.copy), ("reduce", &mut pins.reduce)] {
            if let Some(text) = self.text(table, key)? {
                *curve = Some(Curve::rate(self.point(quantity::rate(&text), table, key)?));
            }
        }
        Ok(())
    }

    fn pair(
        &self,
        (table, span): &Spanned<'_>,
        canonical: impl Fn(&str) -> Option<String>,
    ) -> Result<([String; 2], Pin), JobError> {
        self.check_keys(*table, &LINK_KEYS, "a link")?;
        let names = self.between(*table, span)?;
        let wrong = || {
            let error = JobError::new("'between' must name two different sites of this file");
            let error = error.hint("write between = [\"paris\", \"lab\"]; of a site with a count, \"city-1\"");
            self.at(error, place(*table, "between", span))
        };
        let [a, b] = names.map(|name| canonical(&name));
        match (a, b) {
            (Some(a), Some(b)) if a != b => Ok(([a, b], self.link(*table)?)),
            _ => Err(wrong()),
        }
    }

    /// The two names of a link.
    pub(crate) fn between(&self, table: &dyn TableLike, span: &Range<usize>) -> Result<[String; 2], JobError> {
        let names = table.get("between").and_then(Item::as_array);
        let texts = names.and_then(|n| {
            n.iter()
                .map(|v| v.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
        });
        texts.and_then(|texts| texts.try_into().ok()).ok_or_else(|| {
            let error = JobError::new("'between' must name two different sites");
            let error = error.hint("write between = [\"paris\", \"lab\"]");
            self.at(error, place(table, "between", span))
        })
    }

    /// The parameters of a link.
    fn link(&self, table: &dyn TableLike) -> Result<Pin, JobError> {
        let mut pin = Pin::default();
        if let Some(text) = self.text(table, "latency")? {
            pin.latency = Some(self.point(quantity::time(&text), table, "latency")?);
        }
        if let Some(text) = self.text(table, "rate")? {
            if let Some(item) = table.get("gap") {
                let error = JobError::new("'rate' and 'gap' say the same thing").hint("leave out one of them");
                return Err(self.at(error, item.span().unwrap_or(0..0)));
            }
            pin.gap = Some(Curve::rate(self.point(quantity::rate(&text), table, "rate")?));
        }
        for (key, curve) in [
            ("gap", &mut pin.gap),
            ("send", &mut pin.send),
            ("receive", &mut pin.receive),
        ] {
            if let Some(item) = table.get(key) {
                *curve = Some(self.curve(item, table, key)?);
            }
        }
        Ok(pin)
    }

    /// One time, or pairs of size and time.
    fn curve(&self, item: &Item, table: &dyn TableLike, key: &str) -> Result<Curve, JobError> {
        if let Some(text) = item.as_str() {
            return Ok(Curve::constant(self.point(quantity::time(text), table, key)?));
        }
        let wanted = "a time or a list of pairs such as [\"64 KiB\", \"5 ms\"]";
        let array = item.as_array().ok_or_else(|| self.wrong_type(item, key, wanted))?;
        let text = |value: &Value, read: fn(&str) -> Result<u64, JobError>| {
            let read = value
                .as_str()
                .map_or_else(|| Err(JobError::new("this must be a text with a unit")), read);
            read.map_err(|error| self.at(error, value.span().unwrap_or(0..0)))
        };
        let mut points = Vec::new();
        for pair in array {
            let two = pair.as_array().filter(|p| p.len() == 2);
            let (Some(size), Some(time)) = (two.and_then(|p| p.get(0)), two.and_then(|p| p.get(1))) else {
                return Err(self.wrong_type(item, key, wanted));
            };
            points.push((text(size, quantity::size)?, text(time, quantity::time)?));
        }
        self.point(Curve::new(points).map_err(|e| wrong_points(key, e)), table, key)
    }
}

fn wrong_points(key: &str, error: CurveError) -> JobError {
    JobError::new(match error {
        CurveError::TooMany => format!("'{key}' has more than {} points", Curve::MAX_POINTS),
        CurveError::SizesNotAscending => format!("the sizes of '{key}' must ascend"),
        CurveError::TimesDescending => format!("the times of '{key}' must not descend"),
    })
}

/// Where a key's value stands, or where its table does.
pub(crate) fn place(table: &dyn TableLike, key: &str, otherwise: &Range<usize>) -> Range<usize> {
    table.get(key).and_then(Item::span).unwrap_or_else(|| otherwise.clone())
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
        let known = Known::new(pins.levels(), []).learn(&[measured((0, 1)), measured((1, 2))], Origin::Cached);
        let known = pins.pinned(known, number);
        let all: Vec<_> = known
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
        assert_eq!(known.links().pair(0, 2).latency, 9_000_000);
        assert_eq!(known.links().copy.at(1000), 1000);
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
        let known = job.over(file).pinned(Known::default(), number);
        let link = known.links().pair(0, 1);
        assert_eq!((link.latency, link.gap.as_rate()), (5_000_000, 8_000));
    }
}
