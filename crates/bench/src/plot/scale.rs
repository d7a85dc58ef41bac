// SPDX-License-Identifier: Apache-2.0
//! From values to places on an axis, and the marks of the axis.

use super::{Axis, Unit};

/// Most decades with marks at 2 and 5.
const FEW_DECADES: i32 = 2;

/// Where values of an axis are, as a part of its length.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    /// Logarithms: base of the marks.
    base: f64,
}

impl Scale {
    /// Holds all values, with round ends.
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let base = if axis.unit == Unit::Bytes { 2.0 } else { 10.0 };
        let usable = values.filter(|v| v.is_finite() && (!axis.log || *v > 0.0));
        let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        let scale = |low, high| Self {
            low,
            high,
            log: axis.log,
            base,
        };
        if !axis.log {
            let low = low.min(0.0);
            let step = step(high - low);
            return scale(
                (low / step).floor() * step,
                ((high / step).ceil() * step).max(low + step),
            );
        }
        // Ends at 1, 2 or 5 of a decade, or at powers of two.
        let down = round_below(low * 1.000_001, base);
        let up = 1.0 / round_below(1.0 / (high * 1.000_001), base);
        scale(down, if up > down { up } else { down * base })
    }

    /// 0 at the low end, 1 at the high one.
    pub(super) fn part(&self, value: f64) -> f64 {
        let part = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        part.clamp(0.0, 1.0)
    }

    /// Whether a value has a place.
    pub(super) fn has(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }

    /// Values at which the axis has marks, at most about twelve.
    pub(super) fn marks(&self) -> Vec<f64> {
        if !self.log {
            let step = step(self.high - self.low);
            let count = ((self.high - self.low) / step).round() as i32;
            return (0..=count).map(|i| self.low + step * f64::from(i)).collect();
        }
        let exponent = |v: f64| (v.ln() / self.base.ln() + 1e-9).floor() as i32;
        let (first, last) = (exponent(self.low), exponent(self.high));
        let stride = (last - first) / 10 + 1;
        let within: &[f64] = match last - first <= FEW_DECADES && self.base > 2.0 {
            true => &[1.0, 2.0, 5.0],
            false => &[1.0],
        };
        let powers = (first..=last).step_by(stride as usize).map(|e| self.base.powi(e));
        let all = powers.flat_map(|p| within.iter().map(move |w| w * p));
        all.filter(|v| *v >= self.low * 0.999 && *v <= self.high * 1.001)
            .collect()
    }
}

/// 1, 2 or 5 times a power of ten (or a power of two) that is not above the value.
fn round_below(value: f64, base: f64) -> f64 {
    let power = base.powi((value.ln() / base.ln()).floor() as i32);
    let factors = if base > 2.0 { &[5.0, 2.0][..] } else { &[] };
    let factor = factors.iter().copied().find(|f| power * f <= value);
    power * factor.unwrap_or(1.0)
}

/// A round distance of about six marks in a range.
fn step(range: f64) -> f64 {
    let rough = (range / 6.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powi(rough.log10().floor() as i32);
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough);
    factor.unwrap_or(10.0) * power
}

/// A value with its unit.
pub(super) fn told(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds => scaled(value, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]),
        Unit::Bytes => {
            let units = [
                (1024.0 * 1024.0 * 1024.0, "GiB"),
                (1024.0 * 1024.0, "MiB"),
                (1024.0, "KiB"),
                (1.0, "B"),
            ];
            scaled(value, &units)
        }
        Unit::BytesPerSecond => scaled(value, &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")]),
        Unit::Count => digits(value),
        Unit::Ratio => format!("{} ×", digits(value)),
    }
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let fits = units.iter().find(|(size, _)| value.abs() >= size * 0.9995);
    let Some((size, name)) = fits.or_else(|| units.last()) else {
        return digits(value);
    };
    format!("{} {name}", digits(value / size))
}

/// Three significant digits, without zeros at the end.
fn digits(value: f64) -> String {
    let places = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 || v == 0.0 => 2,
        v => (2 - v.log10().floor() as i32).clamp(2, 9) as usize,
    };
    let text = format!("{value:.places$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_begin_at_0_and_end_at_a_round_value() {
        let scale = Scale::of(&Axis::linear("", Unit::Seconds), [0.013, 0.071].into_iter());
        assert_eq!((scale.part(0.0), scale.part(0.08)), (0.0, 1.0));
        let marks: Vec<String> = scale.marks().iter().map(|m| told(*m, Unit::Seconds)).collect();
        assert_eq!(marks, ["0", "20 ms", "40 ms", "60 ms", "80 ms"]);
    }

    #[test]
    fn logarithmic_axes_have_round_ends() {
        let bytes = Scale::of(&Axis::log("", Unit::Bytes), [8.0, 0.0, 100_000.0].into_iter());
        assert_eq!(bytes.part(8.0), 0.0);
        assert_eq!(told(bytes.high, Unit::Bytes), "128 KiB");
        let time = Scale::of(&Axis::log("", Unit::Seconds), [0.0013, 0.071].into_iter());
        let marks: Vec<String> = time.marks().iter().map(|m| told(*m, Unit::Seconds)).collect();
        assert_eq!(marks, ["1 ms", "2 ms", "5 ms", "10 ms", "20 ms", "50 ms", "100 ms"]);
        assert!(!time.has(0.0) && time.has(1.0));
    }

    #[test]
    fn an_axis_without_values_is_an_axis() {
        for axis in [Axis::log("", Unit::Count), Axis::linear("", Unit::Ratio)] {
            let scale = Scale::of(&axis, std::iter::empty());
            assert!(scale.marks().len() >= 2 && scale.part(1.0).is_finite());
        }
        let one = Scale::of(&Axis::log("", Unit::Seconds), std::iter::once(1.0));
        assert!(one.part(1.0).is_finite());
    }

    #[test]
    fn values_are_told_in_three_digits() {
        assert_eq!(told(0.037_51, Unit::Seconds), "37.5 ms");
        assert_eq!(told(16_777_216.0, Unit::Bytes), "16 MiB");
        assert_eq!(told(11_768_750.0, Unit::BytesPerSecond), "11.8 MB/s");
        assert_eq!(
            [1234.0, 100.0, 1.5, 0.0213].map(|v| told(v, Unit::Count)),
            ["1234", "100", "1.5", "0.0213"]
        );
        assert_eq!(told(1.5, Unit::Ratio), "1.5 ×");
    }
}
