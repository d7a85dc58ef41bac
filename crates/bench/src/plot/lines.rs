// SPDX-License-Identifier: Apache-2.0
//! Lines over numbers: data for the script of the page, which draws them with uPlot.

use isthmus_page::{escape, inside_script};
use serde_json::{Value, json};

use super::{Axis, Series};
use crate::samples::Spread;

/// Values over numbers, a line for each series.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series<(f64, Spread)>>,
}

impl Lines {
    /// The chart as HTML.
    pub(crate) fn html(&self) -> String {
        format!(
            "<figure><figcaption>{}</figcaption><div class=\"chart\"></div>\
             <script type=\"application/json\">{}</script></figure>\n",
            escape(&self.title),
            inside_script(&self.data().to_string())
        )
    }

    /// What the script draws: axes, all places in rising order, and for each series its median, least and greatest
    /// value at each of these places, or null.
    fn data(&self) -> Value {
        let axis = |axis: &Axis| json!({"label": axis.label, "unit": axis.unit.name(), "log": axis.log});
        let usable = |(x, spread): &&(f64, Spread)| self.x.has(*x) && self.y.has(spread.median);
        let mut places: Vec<f64> = self
            .series
            .iter()
            .flat_map(|s| &s.values)
            .filter(usable)
            .map(|p| p.0)
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let of_series = |(number, series): (usize, &Series<(f64, Spread)>)| {
            let points: Vec<&(f64, Spread)> = series.values.iter().filter(usable).collect();
            let at = |x: &f64| points.iter().find(|p| p.0.total_cmp(x).is_eq()).map(|p| p.1);
            let all: Vec<Option<Spread>> = places.iter().map(at).collect();
            let row = |of: fn(Spread) -> f64| all.iter().map(|s| s.map(of)).collect::<Vec<Option<f64>>>();
            json!({
                "name": series.name,
                "colour": series.colour_of(number),
                "dashed": series.hollow,
                "median": row(|s| s.median),
                "least": row(|s| s.min),
                "greatest": row(|s| s.max),
            })
        };
        let series: Vec<Value> = self.series.iter().enumerate().map(of_series).collect();
        json!({"x": axis(&self.x), "y": axis(&self.y), "places": places, "series": series})
    }
}

#[cfg(test)]
mod tests {
    use super::super::Unit;
    use super::*;

    #[test]
    fn series_share_their_places() {
        let at = |x, v| {
            let spread = Spread {
                median: v,
                min: v / 2.0,
                max: v,
            };
            (x, spread)
        };
        let chart = Lines {
            title: "a < b".to_owned(),
            x: Axis::log("size", Unit::Bytes),
            y: Axis::linear("time", Unit::Seconds),
            series: vec![
                Series::new("measured", vec![at(8.0, 0.5), at(0.0, 1.0), at(2.0, 0.25)]),
                Series::new("</script>", vec![at(4.0, 2.0)]).colour(0).hollow(),
            ],
        };
        let data = chart.data();
        assert_eq!(data["places"], json!([2.0, 4.0, 8.0]));
        assert_eq!(data["series"][0]["median"], json!([0.25, null, 0.5]));
        assert_eq!(data["series"][1]["least"], json!([null, 1.0, null]));
        assert_eq!(data["series"][1]["colour"], 0);
        assert_eq!(data["x"], json!({"label": "size", "unit": "bytes", "log": true}));
        let html = chart.html();
        assert!(
            html.contains("a &lt; b") && html.matches("</script>").count() == 1,
            "{html}"
        );
    }
}
