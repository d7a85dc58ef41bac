// SPDX-License-Identifier: Apache-2.0
//! What passes between the sites of a job, in the text format of Prometheus.

use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::control::{Passed, Trunk};
use isthmus_wire::time::Time;
use std::fmt::Write as _;

/// Name, kind and help of a number.
type Metric<T> = (&'static str, &'static str, &'static str, fn(&T) -> u64);

/// What came to the first end of a link came from the second.
const COMING: &str = "received_bytes_total";

const LINK: [Metric<LinkTraffic>; 13] = [
    (
        "sent_bytes_total",
        "counter",
        "bytes given to the network, after compression",
        |l| l.sent,
    ),
    (
        COMING,
        "counter",
        "bytes that came over the network, before they are expanded",
        |l| l.received,
    ),
    ("compressed_bytes_total", "counter", "compressed bytes sent", |l| {
        l.compressed
    }),
    ("uncompressed_bytes_total", "counter", "the same, before", |l| l.plain),
    ("tcp_retransmitted_bytes_total", "counter", "sent again by TCP", |l| {
        l.retransmitted
    }),
    ("resent_segments_total", "counter", "sent again after a cut", |l| {
        l.resent
    }),
    ("duplicate_segments_total", "counter", "came more than once", |l| {
        l.duplicates
    }),
    ("cuts_total", "counter", "channels that were cut and went on", |l| {
        l.cuts
    }),
    (
        "moved_total",
        "counter",
        "channels that moved from gateways to connections of their own",
        |l| l.moved,
    ),
    (
        "renewed_total",
        "counter",
        "channels that went on over other connections of gateways",
        |l| l.renewed,
    ),
    ("channels_away", "gauge", "channels without a connection now", |l| {
        l.away
    }),
    ("connections", "gauge", "connections now", |l| l.connections),
    ("round_trip_microseconds", "gauge", "between processes", |l| {
        l.round_trip_us
    }),
];

const TRUNK: [Metric<Trunk>; 5] = [
    ("sent_bytes_total", "counter", "bytes to the other gateway", |t| t.sent),
    (COMING, "counter", "bytes that came from the other gateway", |t| {
        t.received
    }),
    ("streams", "gauge", "streams of processes now", |t| t.streams.into()),
    ("connections", "gauge", "of the gateways now", |t| t.connections.into()),
    ("round_trip_nanoseconds", "gauge", "between gateways", |t| t.round_trip),
];

/// Names of the classes, as info `isthmus_class` has them; the middle one is that of communicators without.
pub(super) const CLASSES: [&str; 3] = ["latency", "normal", "bulk"];

/// A name and what it is the time of.
type Spent = (&'static str, fn(&Time) -> u64);

/// What processes do with their time.
const SPENT: [Spent; 4] = [
    ("computing", Time::computed),
    ("waiting_for_messages", |time| time.waited(false)),
    ("waiting_in_collectives", |time| time.waited(true)),
    ("waiting_now", |time| time.going_on),
];

/// Everything in the text format of Prometheus.
pub(super) fn prometheus(job: &str, passed: &Passed) -> String {
    let mut text = String::new();
    let ends = |l: &LinkTraffic| (l.from.clone(), l.to.clone());
    family(&mut text, job, "link", &LINK, &passed.links, ends);
    let help = "bytes of messages before compression, by class";
    head(&mut text, "link", "class_bytes_total", "counter", help);
    for link in &passed.links {
        for (class, bytes) in CLASSES.iter().zip(link.classes) {
            let labels = [("job", job), ("from", &link.from), ("to", &link.to), ("class", class)];
            line(&mut text, "isthmus_link_class_bytes_total", &labels, bytes);
        }
    }
    family(&mut text, job, "trunk", &TRUNK, &passed.trunks, |t| {
        (t.from.clone(), t.to.clone())
    });
    head(
        &mut text,
        "job",
        "lost_processes",
        "gauge",
        "processes that the job goes on without",
    );
    line(
        &mut text,
        "isthmus_job_lost_processes",
        &[("job", job)],
        passed.lost.len() as u64,
    );
    let help = "time of the processes of a site, by what they did with it";
    head(&mut text, "site", "time_nanoseconds_total", "counter", help);
    for one in &passed.times {
        for (what, time) in SPENT {
            let labels = [("job", job), ("site", &one.site), ("spent", what)];
            line(
                &mut text,
                "isthmus_site_time_nanoseconds_total",
                &labels,
                time(&one.time),
            );
        }
    }
    text
}

/// All numbers of links, or of trunks.
fn family<T>(
    text: &mut String,
    job: &str,
    of: &str,
    metrics: &[Metric<T>],
    all: &[T],
    ends: impl Fn(&T) -> (String, String),
) {
    for (name, kind, help, number) in metrics {
        head(text, of, name, kind, help);
        for one in all {
            let (from, to) = match ends(one) {
                (to, from) if *name == COMING => (from, to),
                ends => ends,
            };
            let labels = [("job", job), ("from", &from), ("to", &to)];
            line(text, &format!("isthmus_{of}_{name}"), &labels, number(one));
        }
    }
}

fn head(text: &mut String, of: &str, name: &str, kind: &str, help: &str) {
    let _ = writeln!(
        text,
        "# HELP isthmus_{of}_{name} {help}\n# TYPE isthmus_{of}_{name} {kind}"
    );
}

fn line(text: &mut String, name: &str, labels: &[(&str, &str)], value: u64) {
    let escape = |v: &str| v.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels: Vec<String> = labels.iter().map(|(n, v)| format!("{n}=\"{}\"", escape(v))).collect();
    let _ = writeln!(text, "{name}{{{}}} {value}", labels.join(","));
}
