// SPDX-License-Identifier: Apache-2.0
//! Bars beside each other, for things that have names: a table whose cells show how long they are.

use isthmus_page::escape;

use super::value::told;
use super::{Series, Unit};
use crate::samples::Spread;

/// A group of bars for each name, a bar of each series in every group.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    pub(crate) title: String,
    /// Names of the groups.
    pub(crate) groups: Vec<String>,
    /// What the values are.
    pub(crate) label: String,
    pub(crate) unit: Unit,
    /// One value per group; `None` where there is none.
    pub(crate) series: Vec<Series<Option<Spread>>>,
}

impl Bars {
    /// The chart as HTML.
    pub(crate) fn html(&self) -> String {
        let values = self.series.iter().flat_map(|s| s.values.iter().flatten());
        let longest = values
            .map(|v| v.median)
            .filter(|v| v.is_finite())
            .fold(f64::MIN_POSITIVE, f64::max);
        let mut rows = String::new();
        for (place, name) in self.groups.iter().enumerate() {
            let of_group = self.series.iter().enumerate();
            let shown: Vec<String> = of_group
                .filter_map(|(number, series)| {
                    let spread = (*series.values.get(place)?)?;
                    Some(self.row(number, spread, spread.median / longest))
                })
                .collect();
            if let Some((first, others)) = shown.split_first() {
                let name = format!(
                    "<th scope=\"rowgroup\" rowspan=\"{}\">{}</th>",
                    shown.len(),
                    escape(name)
                );
                rows.push_str(&format!("<tbody><tr>{name}{first}</tr>\n"));
                others
                    .iter()
                    .for_each(|row| rows.push_str(&format!("<tr>{row}</tr>\n")));
                rows.push_str("</tbody>\n");
            }
        }
        format!(
            "<div class=\"scroll\" tabindex=\"0\"><table class=\"bars\"><caption>{}: {}</caption>\n{rows}</table></div>\n",
            escape(&self.title),
            escape(&self.label)
        )
    }

    /// Name of the series, bar, value; a part of the longest bar.
    fn row(&self, number: usize, spread: Spread, part: f64) -> String {
        let series = &self.series[number];
        let mut value = told(spread.median, self.unit);
        if spread.min < spread.max {
            let (min, max) = (told(spread.min, self.unit), told(spread.max, self.unit));
            value.push_str(&format!(" <small>{min} to {max}</small>"));
        }
        format!(
            "<td>{}</td><td class=\"field\"><i class=\"{}\" style=\"width:{:.1}%;--own:var(--c{})\"></i></td><td class=\"n\">{value}</td>",
            escape(&series.name),
            if series.hollow { "hollow" } else { "full" },
            100.0 * part.clamp(0.0, 1.0),
            series.colour_of(number)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bar() {
        let value = |v| {
            Some(Spread {
                median: v,
                min: v,
                max: v,
            })
        };
        let chart = Bars {
            title: "t".to_owned(),
            groups: vec!["barrier".to_owned(), "b<t".to_owned()],
            label: "time".to_owned(),
            unit: Unit::Seconds,
            series: vec![
                Series::new("measured", vec![value(0.04), value(0.02)]),
                Series::new("computed", vec![value(0.08), None]).hollow(),
            ],
        };
        let html = chart.html();
        assert_eq!(html.matches("<i class").count(), 3);
        assert!(html.contains("b&lt;t</th><td>measured</td>"), "{html}");
        assert!(
            html.contains("<i class=\"hollow\" style=\"width:100.0%;--own:var(--c1)\"></i></td><td class=\"n\">80 ms")
        );
        assert!(html.contains("<i class=\"full\" style=\"width:25.0%;--own:var(--c0)\">"));
    }
}
