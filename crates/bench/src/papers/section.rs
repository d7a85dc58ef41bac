// SPDX-License-Identifier: Apache-2.0
//! What an experiment gives: text, tables, charts, verdicts; as text, HTML and JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::plot::{Page, Promise};
use crate::samples::Spread;

/// A promise and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) promise: String,
    pub(super) measured: String,
    pub(super) met: bool,
}

/// Rows of text; a cell that begins with `!` misses something.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// The report of one experiment.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) texts: Vec<String>,
    pub(super) tables: Vec<Table>,
    /// HTML, for the page.
    pub(super) charts: Vec<String>,
    pub(super) verdicts: Vec<Verdict>,
    /// What went wrong, and why times are not to be trusted.
    pub(super) notes: Vec<String>,
    /// Everything measured.
    pub(super) data: Value,
}

impl Section {
    pub(super) fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn table(&mut self, caption: &str, head: &[&str], rows: Vec<Vec<String>>) {
        self.tables.push(Table {
            caption: caption.to_owned(),
            head: head.iter().map(|cell| (*cell).to_owned()).collect(),
            rows,
        });
    }

    pub(super) fn promise(&mut self, promise: impl Into<String>, measured: impl Into<String>, met: bool) {
        self.verdicts.push(Verdict {
            promise: promise.into(),
            measured: measured.into(),
            met,
        });
    }

    /// For a terminal.
    pub(super) fn text(&self) -> String {
        let mut text = format!("\n== {}\n", self.title);
        for paragraph in &self.texts {
            let _ = writeln!(text, "{paragraph}");
        }
        for table in &self.tables {
            let _ = write!(text, "\n{}\n{}", table.caption, table.columns());
        }
        for verdict in &self.verdicts {
            let word = if verdict.met { "met    " } else { "NOT MET" };
            let _ = writeln!(text, "{word} {}: {}", verdict.promise, verdict.measured);
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    /// Adds this to a page.
    pub(super) fn onto(&self, mut page: Page) -> Page {
        page = page.heading(&self.title);
        for paragraph in &self.texts {
            page = page.text(paragraph);
        }
        for note in &self.notes {
            page = page.note(note);
        }
        let kept = |v: &Verdict| Promise {
            promise: v.promise.clone(),
            measured: v.measured.clone(),
            met: v.met,
        };
        page = page.verdicts(&self.verdicts.iter().map(kept).collect::<Vec<_>>());
        for chart in &self.charts {
            page = page.chart(chart);
        }
        for table in &self.tables {
            let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
            page = page.table(&table.caption, &head, &table.rows);
        }
        page
    }

    pub(super) fn json(&self) -> Value {
        let verdict = |v: &Verdict| json!({ "promise": v.promise, "measured": v.measured, "met": v.met });
        let table = |t: &Table| json!({ "caption": t.caption, "head": t.head, "rows": t.rows });
        json!({
            "title": self.title,
            "texts": self.texts,
            "tables": self.tables.iter().map(table).collect::<Vec<_>>(),
            "verdicts": self.verdicts.iter().map(verdict).collect::<Vec<_>>(),
            "notes": self.notes,
            "charts": self.charts,
            "data": self.data,
        })
    }

    /// What [`Section::json`] has written; `None` if it is something else.
    pub(super) fn of_json(value: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let texts = |value: &Value| value.as_array()?.iter().map(text).collect::<Option<Vec<String>>>();
        let table = |value: &Value| {
            Some(Table {
                caption: text(&value["caption"])?,
                head: texts(&value["head"])?,
                rows: value["rows"].as_array()?.iter().map(texts).collect::<Option<_>>()?,
            })
        };
        let verdict = |value: &Value| {
            Some(Verdict {
                promise: text(&value["promise"])?,
                measured: text(&value["measured"])?,
                met: value["met"].as_bool()?,
            })
        };
        Some(Self {
            title: text(&value["title"])?,
            texts: texts(&value["texts"])?,
            tables: value["tables"].as_array()?.iter().map(table).collect::<Option<_>>()?,
            charts: texts(&value["charts"])?,
            verdicts: value["verdicts"]
                .as_array()?
                .iter()
                .map(verdict)
                .collect::<Option<_>>()?,
            notes: texts(&value["notes"])?,
            data: value["data"].clone(),
        })
    }
}

impl Table {
    /// Columns of text; a cell that misses something ends with `!`.
    fn columns(&self) -> String {
        let shown = |cell: &String| {
            cell.strip_prefix('!')
                .map_or_else(|| cell.clone(), |bad| format!("{bad} !"))
        };
        let lines: Vec<Vec<String>> = std::iter::once(self.head.clone())
            .chain(self.rows.iter().map(|row| row.iter().map(shown).collect()))
            .collect();
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut text = String::new();
        for line in &lines {
            let mut shown = String::new();
            for (number, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let _ = if number == 0 {
                    write!(shown, "{cell:<width$}")
                } else {
                    write!(shown, "  {cell:>width$}")
                };
            }
            let _ = writeln!(text, "{}", shown.trim_end());
        }
        text
    }
}

/// Milliseconds with the digits that count.
pub(super) fn ms(seconds: f64) -> String {
    let value = seconds * 1e3;
    match value.abs() {
        v if v >= 999.5 => format!("{value:.0}"),
        v if v >= 99.95 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The cell of a value that there is not.
pub(super) fn none() -> String {
    "-".to_owned()
}

/// Median [least-greatest] in milliseconds.
pub(super) fn spread_ms(spread: Option<Spread>) -> String {
    spread.map_or_else(none, |s| format!("{} [{}-{}]", ms(s.median), ms(s.min), ms(s.max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let mut section = Section::new("t");
        section.table(
            "c",
            &["what", "ms"],
            vec![vec!["barrier".into(), "!12.5".into()], vec!["x".into(), "1".into()]],
        );
        section.promise("p", "m", false);
        let text = section.text();
        assert!(
            text.contains("what         ms\nbarrier  12.5 !\nx             1\n"),
            "{text}"
        );
        assert!(text.contains("NOT MET p: m"));
        assert_eq!(section.json()["verdicts"][0]["met"], false);
        let again = Section::of_json(&section.json()).unwrap();
        assert_eq!((again.text(), again.json()), (text, section.json()));
        assert!(Section::of_json(&json!({ "title": 1 })).is_none());
        assert!(
            section
                .onto(Page::new("x"))
                .html()
                .contains("<td class=\"bad\">12.5</td>")
        );
    }
}
