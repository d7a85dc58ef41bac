// SPDX-License-Identifier: Apache-2.0
//! `isthmus top`: what passes between the sites of a running job.

mod prometheus;
mod serve;

use self::prometheus::{CLASSES, prometheus};
use crate::sessions::with;
use clap::Args;
use isthmus_job::quantity::{show_amount, show_rounded};
use isthmus_launch::session::Entry;
use isthmus_launch::{record, times};
use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::control::{Lost, Passed, Reply, Request, Trunk};
use isthmus_wire::word::counted;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// Columns from which the classes are shown, from which what processes do with their time is, and from which round
/// trips, connections and notes are.
const CLASSES_FROM: usize = 110;
const TIMES_FROM: usize = 90;
const ALL_FROM: usize = 66;
/// Most lost processes that are named.
const LOSSES: usize = 8;
/// Time that says something of a rate, seconds.
const SHORTEST: f64 = 0.2;

/// Show the traffic between the sites of a running job
///
/// For each link: throughput by direction and class, compression, retransmissions and round trips.
#[derive(Args, Debug)]
pub(crate) struct Top {
    /// The job: its name, its identifier or the beginning of one, or SITE/JOB; not needed where only one runs
    job: Option<String>,
    /// Print the rates of one interval and exit
    #[arg(long)]
    once: bool,
    /// As JSON, one object per interval, in one line
    #[arg(long)]
    json: bool,
    /// Print the totals so far as Prometheus text and exit
    #[arg(long, conflicts_with_all = ["once", "json"])]
    prometheus: bool,
    /// Serve a live page about the job to browsers on this machine [default port: any free one]
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0", value_parser = port, conflicts_with_all = ["once", "json", "prometheus"])]
    serve: Option<u16>,
    /// Seconds between updates
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS", value_parser = seconds)]
    interval: f64,
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|s| (0.5..=3600.0).contains(s));
    seconds.ok_or_else(|| "give seconds from 0.5 to 3600".to_owned())
}

/// A word behind `--serve` is taken for its port, also where it was meant for the job.
fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| {
        "this is not a port (0 to 65535); a job comes before the option: isthmus top JOB --serve".to_owned()
    })
}

impl Top {
    /// The job that is meant.
    pub(crate) fn job(&self) -> Option<&str> {
        self.job.as_deref()
    }

    /// Whether a page is served.
    pub(crate) fn serves(&self) -> bool {
        self.serve.is_some()
    }
}

/// `isthmus top`.
pub(crate) fn top(arguments: &Top) -> ExitCode {
    let Some(port) = arguments.serve else {
        return with(arguments.job.as_deref(), |entry| watch(entry, arguments));
    };
    let name = match record::read(arguments.job.as_deref()) {
        Ok(found) => found.name,
        Err(why) => return crate::report::unread(&why),
    };
    match serve::serve(name, port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            crate::complain(&format!("isthmus: error: {why}"));
            ExitCode::FAILURE
        }
    }
}

fn watch(entry: Entry, arguments: &Top) -> Result<ExitCode, String> {
    let mut last = ask(&entry)?;
    if arguments.prometheus {
        crate::print(prometheus(&entry.name, &last).trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let interval = Duration::from_secs_f64(arguments.interval);
    if crate::screen::there_is_one() && !arguments.once && !arguments.json {
        return on_screen(entry, last, interval);
    }
    loop {
        if !crate::reader::waits(interval) {
            return Ok(ExitCode::SUCCESS);
        }
        let now = match ask(&entry) {
            Ok(now) => now,
            // The job has ended meanwhile.
            Err(_) if !arguments.once && !entry.still_lives() => return Ok(ExitCode::SUCCESS),
            Err(why) => return Err(why),
        };
        let view = View {
            job: &entry.name,
            last: &last,
            now: &now,
        };
        let text = if arguments.json {
            view.json().to_string()
        } else {
            view.text(usize::MAX)
        };
        if !crate::put(format!("{text}\n").as_bytes()) || arguments.once {
            return Ok(ExitCode::SUCCESS);
        }
        last = now;
    }
}

/// Rates are those since the last look; the first ones come after half a second.
fn on_screen(entry: Entry, first: Passed, interval: Duration) -> Result<ExitCode, String> {
    let mut last = first;
    let mut looked = false;
    crate::screen::show(interval, move || {
        if !std::mem::replace(&mut looked, true) {
            std::thread::sleep(Duration::from_millis(500));
        }
        let now = match ask(&entry) {
            Ok(now) => now,
            Err(_) if !entry.still_lives() => return Ok(None),
            Err(why) => return Err(why),
        };
        let (job, before, seen) = (entry.name.clone(), std::mem::replace(&mut last, now.clone()), now);
        let picture = move |columns: usize| {
            let view = View {
                job: &job,
                last: &before,
                now: &seen,
            };
            view.text(columns)
        };
        Ok(Some(Box::new(picture) as crate::screen::Picture))
    })
}

fn ask(entry: &Entry) -> Result<Passed, String> {
    match isthmus_launch::request(entry, &Request::Traffic)? {
        Reply::Traffic(passed) => Ok(passed),
        Reply::Refused(why) => Err(why),
        _ => Err(format!("the launcher of job {} is of another version", entry.name)),
    }
}

/// Two looks, one after the other.
struct View<'a> {
    job: &'a str,
    last: &'a Passed,
    now: &'a Passed,
}

impl View<'_> {
    fn seconds(&self) -> f64 {
        self.now.age.saturating_sub(self.last.age) as f64 / 1000.0
    }

    /// Per second, of numbers that grow, as gateways have counted them.
    fn rate(&self, now: u64, last: u64) -> f64 {
        now.saturating_sub(last) as f64 / self.seconds().max(1e-3)
    }

    /// Bytes per second of a link, by the clocks of the processes that have counted: what they tell arrives sooner or
    /// later. `None`: they have told nothing new.
    fn rate_of(now: &LinkTraffic, last: &LinkTraffic, number: impl Fn(&LinkTraffic) -> u64) -> Option<f64> {
        let seconds = now.counted_at()? - last.counted_at().unwrap_or(0.0);
        (seconds >= SHORTEST).then(|| number(now).saturating_sub(number(last)) as f64 / seconds)
    }

    fn links(&self) -> impl Iterator<Item = (&LinkTraffic, LinkTraffic)> {
        self.now.links.iter().map(|link| {
            let same = |l: &&LinkTraffic| (&l.from, &l.to) == (&link.from, &link.to);
            (link, self.last.links.iter().find(same).cloned().unwrap_or_default())
        })
    }

    fn trunks(&self) -> impl Iterator<Item = (&Trunk, Trunk)> {
        self.now.trunks.iter().map(|trunk| {
            let same = |t: &&Trunk| (&t.from, &t.to) == (&trunk.from, &trunk.to);
            (trunk, self.last.trunks.iter().find(same).cloned().unwrap_or_default())
        })
    }

    /// For a screen so many columns wide; where there are few, what is least needed is left out.
    fn text(&self, columns: usize) -> String {
        let (classes, all) = (columns >= CLASSES_FROM, columns >= ALL_FROM);
        let mut text = match self.now.age {
            0 => format!("job {}, whose processes have not begun yet", self.job),
            age => format!(
                "job {}, {:.0} s after its processes began",
                self.job,
                age as f64 / 1000.0
            ),
        };
        text.push_str(match classes {
            true => "\nNOW and IN ALL: on the wire; latency, normal, bulk: messages of each class, before compression",
            false => "\nNOW and IN ALL: on the wire",
        });
        let row = |cells: [&str; 9]| {
            let [link, now, first, second, third, in_all, trip, connections, notes] = cells;
            let mut row = format!("\n{link:<26}{now:>12}");
            if classes {
                let _ = write!(row, "{first:>12}{second:>12}{third:>12}");
            }
            let _ = write!(row, "{in_all:>10}");
            if all {
                let _ = write!(row, "{trip:>9}{connections:>6}  {notes}");
            }
            row.trim_end().to_owned()
        };
        let [first, second, third] = CLASSES;
        text.push_str(&row([
            "LINK", "NOW", first, second, third, "IN ALL", "TRIP", "CONN", "NOTES",
        ]));
        for (now, last) in self.links() {
            let [first, second, third] = [0, 1, 2].map(|i| known(Self::rate_of(now, &last, |l| l.classes[i])));
            text.push_str(&row([
                &format!("{} > {}", now.from, now.to),
                &known(Self::rate_of(now, &last, |l| l.sent)),
                &first,
                &second,
                &third,
                &show_amount(now.sent),
                &trip(now.round_trip_us * 1000),
                &now.connections.to_string(),
                &self.notes(now, &last),
            ]));
        }
        if self.now.links.is_empty() {
            text.push_str("\nnothing has passed between sites");
        }
        for (now, last) in self.trunks() {
            let _ = write!(
                text,
                "\ngateways {} > {}: {}, {} in all, {} on {} ({}), round trip {}",
                now.from,
                now.to,
                bits(self.rate(now.sent, last.sent)),
                show_amount(now.sent),
                counted(now.streams, "stream"),
                counted(now.connections, "connection"),
                if now.path.is_empty() { "no path" } else { &now.path },
                trip(now.round_trip)
            );
        }
        for line in crate::joined::lines(&self.now.joined) {
            let _ = write!(text, "\n{line}");
        }
        text.push_str(&losses(&self.now.lost));
        if !self.now.times.is_empty() && columns >= TIMES_FROM {
            let _ = write!(text, "\n\n{}", times::by_site(&self.now.times, true));
        }
        text
    }

    fn notes(&self, now: &LinkTraffic, last: &LinkTraffic) -> String {
        let mut notes = Vec::new();
        if now.away > 0 {
            notes.push(format!("{} channels are cut off", now.away));
        }
        if now.plain > 0 {
            notes.push(format!(
                "compressed {:.1}:1",
                now.plain as f64 / now.compressed.max(1) as f64
            ));
        }
        let again = now.retransmitted.saturating_sub(last.retransmitted);
        if again > 0 {
            let share = again as f64 / now.sent.saturating_sub(last.sent).max(1) as f64 * 100.0;
            notes.push(format!("{share:.2} % again (TCP)"));
        }
        if now.resent > 0 {
            notes.push(format!("{} segments again after {} cuts", now.resent, now.cuts));
        }
        notes.join(", ")
    }

    fn json(&self) -> Value {
        let links = self.links().map(|(now, last)| {
            let bits = |number: &dyn Fn(&LinkTraffic) -> u64| Self::rate_of(now, &last, number).map(|rate| rate * 8.0);
            let class = |(i, name): (usize, &&str)| {
                json!({"class": name, "plain_bytes": now.classes[i], "plain_bits_per_second": bits(&|l| l.classes[i])})
            };
            let classes: Vec<Value> = CLASSES.iter().enumerate().map(class).collect();
            json!({
                "from": now.from, "to": now.to,
                "bits_per_second": bits(&|l| l.sent),
                "sent_bytes": now.sent, "received_bytes": now.received,
                "classes": classes,
                "plain_bytes": now.plain, "compressed_bytes": now.compressed,
                "tcp_retransmitted_bytes": now.retransmitted,
                "resent_segments": now.resent, "duplicate_segments": now.duplicates,
                "cuts": now.cuts, "moved": now.moved, "renewed": now.renewed, "longest_cut_seconds": now.away_ms as f64 / 1e3, "channels_away": now.away,
                "connections": now.connections,
                "round_trip_seconds": (now.round_trip_us > 0).then_some(now.round_trip_us as f64 / 1e6),
            })
        });
        let trunks = self.trunks().map(|(now, last)| {
            json!({
                "from": now.from, "to": now.to, "path": now.path,
                "bits_per_second": self.rate(now.sent, last.sent) * 8.0,
                "sent_bytes": now.sent, "received_bytes": now.received,
                "streams": now.streams, "connections": now.connections,
                "round_trip_seconds": (now.round_trip > 0).then_some(now.round_trip as f64 / 1e9),
            })
        });
        let fields = json!({
            "job": self.job, "age_seconds": self.now.age as f64 / 1000.0, "interval_seconds": self.seconds(),
            "links": links.collect::<Vec<_>>(), "trunks": trunks.collect::<Vec<_>>(),
            "times": self.now.times.iter().map(times::json).collect::<Vec<_>>(),
            "joined": crate::joined::json(&self.now.joined),
            "lost": self.now.lost.iter().map(|l| json!({"rank": l.rank, "site": l.site, "reason": l.why})).collect::<Vec<_>>(),
        });
        crate::json::document("top", fields)
    }
}

/// Processes that the job goes on without: how many, and the first ones.
fn losses(lost: &[Lost]) -> String {
    let mut text = match lost.len() {
        0 => return String::new(),
        count => format!("\nlost: {}", counted(count, "process")),
    };
    for one in lost.iter().take(LOSSES) {
        let (site, why) = (isthmus_reach::plain(&one.site), isthmus_reach::plain(&one.why));
        let _ = write!(text, "\n  rank {} ({site}): {why}", one.rank);
    }
    text
}

/// The same where it is known.
fn known(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), bits)
}

/// Bytes per second as bits per second.
fn bits(rate: f64) -> String {
    const UNITS: [&str; 4] = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
    show_rounded(rate * 8.0, &UNITS)
}

fn trip(nanoseconds: u64) -> String {
    match nanoseconds {
        0 => "-".to_owned(),
        short if short < 1_000_000 => format!("{} us", short / 1000),
        long => format!("{:.1} ms", long as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_wire::time::{SiteTime, Time};

    fn passed(age: u64, sent: u64) -> Passed {
        Passed {
            age,
            links: vec![LinkTraffic {
                from: "home".into(),
                to: "l\"ab".into(),
                sent,
                received: 3,
                classes: [0, sent, 0],
                plain: 3 * sent,
                compressed: sent,
                connections: 2,
                round_trip_us: 40_100,
                observed_us: 2000 * age,
                observers: 2,
                ..LinkTraffic::default()
            }],
            trunks: vec![],
            times: vec![SiteTime {
                site: "home".into(),
                time: Time {
                    processes: 2,
                    elapsed: 4_000_000_000,
                    going_on: 1_000_000_000,
                    waits: vec![],
                },
            }],
            joined: vec![],
            lost: vec![],
        }
    }

    #[test]
    fn losses_are_counted_and_the_first_ones_named() {
        let lost = |rank| Lost {
            rank,
            site: "lab".into(),
            why: "it was killed".into(),
        };
        assert_eq!(losses(&[]), "");
        assert_eq!(losses(&[lost(3)]), "\nlost: 1 process\n  rank 3 (lab): it was killed");
        let many: Vec<Lost> = (0..20).map(lost).collect();
        assert_eq!(losses(&many).lines().count(), 2 + LOSSES);
        let (last, mut now) = (passed(1000, 0), passed(2000, 9));
        now.lost = vec![lost(3)];
        let (last, now) = (&last, &now);
        let view = View { job: "x", last, now };
        assert!(view.text(100).contains("lost: 1 process"));
        assert_eq!(view.json()["lost"][0]["rank"], 3);
        assert!(prometheus("x", now).contains("isthmus_job_lost_processes{job=\"x\"} 1\n"));
    }

    #[test]
    fn rates_are_those_of_the_interval() {
        let (last, now) = (passed(1000, 1_000_000), passed(3000, 26_000_000));
        let view = View {
            job: "j",
            last: &last,
            now: &now,
        };
        let json = view.json();
        assert_eq!(json["links"][0]["bits_per_second"], 100_000_000.0);
        assert_eq!(json["links"][0]["classes"][1]["plain_bytes"], 26_000_000);
        let text = view.text(usize::MAX);
        assert!(
            text.contains("100 Mbit/s")
                && text.contains("before compression")
                && text.contains("40.1 ms")
                && text.contains("compressed 3.0:1"),
            "{text}"
        );
    }

    #[test]
    fn rates_are_those_of_the_clocks_of_who_has_counted() {
        // What was counted in two seconds has come half a second late.
        let (last, mut now) = (passed(1000, 1_000_000), passed(3500, 26_000_000));
        now.links[0].observed_us = 2 * 3_000_000;
        let rate =
            |last: &Passed, now: &Passed| View { job: "j", last, now }.json()["links"][0]["bits_per_second"].clone();
        assert_eq!(rate(&last, &now), 100_000_000.0);
        // Nothing new; nonsense.
        assert_eq!(rate(&now, &now), Value::Null);
        for (observed_us, observers) in [(0, 0), (1, u32::MAX), (u64::MAX, 1)] {
            (now.links[0].observed_us, now.links[0].observers) = (observed_us, observers);
            let told = rate(&last, &now);
            assert!(told.is_null() || told.as_f64().is_some_and(f64::is_finite), "{told}");
        }
        assert!(
            View {
                job: "j",
                last: &now,
                now: &now
            }
            .text(120)
            .contains("       -")
        );
    }

    #[test]
    fn narrow_screens_have_the_rates() {
        let (last, now) = (passed(1000, 1_000_000), passed(3000, 26_000_000));
        let (job, last, now) = ("j", &last, &now);
        for columns in [40, 66, 80, 90, 109, 110] {
            let text = View { job, last, now }.text(columns);
            assert!(text.contains("100 Mbit/s"), "{text}");
            assert_eq!(text.contains("40.1 ms"), columns >= ALL_FROM, "{text}");
            // Notes may be cut, numbers may not.
            let mut numbers = text
                .lines()
                .filter_map(|l| l.split("  compressed").next()?.split("  NOTES").next());
            assert!(columns < 66 || numbers.all(|l| l.chars().count() <= columns), "{text}");
        }
    }

    #[test]
    fn a_job_is_not_a_port() {
        assert_eq!((port("8080"), port("0")), (Ok(8080), Ok(0)));
        for word in ["07998b27", "65536", "-1", ""] {
            assert!(port(word).unwrap_err().contains("top JOB --serve"), "{word}");
        }
    }

    #[test]
    fn prometheus_text_has_labels_that_can_be_read() {
        let text = prometheus("j", &passed(0, 7));
        assert!(
            text.contains("isthmus_link_sent_bytes_total{job=\"j\",from=\"home\",to=\"l\\\"ab\"} 7\n"),
            "{text}"
        );
        let came = "isthmus_link_received_bytes_total{job=\"j\",from=\"l\\\"ab\",to=\"home\"} 3\n";
        assert!(text.contains(came), "{text}");
        let spent = "isthmus_site_time_nanoseconds_total{job=\"j\",site=\"home\",spent=\"computing\"} 3000000000\n";
        assert!(text.contains(spent), "{text}");
        assert!(
            text.lines()
                .all(|l| l.starts_with('#') || l.rsplit_once(' ').is_some_and(|(_, v)| v.parse::<f64>().is_ok()))
        );
    }
}
