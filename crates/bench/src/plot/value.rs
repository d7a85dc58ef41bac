// SPDX-License-Identifier: Apache-2.0
//! Values with their units, for people.

use super::Unit;

/// A value with its unit, in three digits.
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
        Unit::Count => digits(value),
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
    fn values_are_told_in_three_digits() {
        assert_eq!(told(0.037_51, Unit::Seconds), "37.5 ms");
        assert_eq!(told(16_777_216.0, Unit::Bytes), "16 MiB");
        assert_eq!(
            [1234.0, 100.0, 1.5, 0.0213].map(|v| told(v, Unit::Count)),
            ["1234", "100", "1.5", "0.0213"]
        );
    }
}
