// SPDX-License-Identifier: Apache-2.0
//! What somebody meant who has misspelt a word.

/// Characters of a word that count: more is no misspelling.
const LONGEST: usize = 40;

/// The known word that is nearest to an unknown one, if one is near enough to be what was meant.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word: String = word.chars().take(LONGEST).collect();
    let length = word.chars().count();
    let limit = (length / 3).max(1);
    known
        .iter()
        .map(|k| (distance(&word, k), *k))
        // A word of which nothing is left, as one letter for another, was not misspelt.
        .filter(|(d, k)| *d <= limit && *d < length.max(k.chars().count()))
        .min()
        .map(|(_, k)| k)
}

/// Edits (insert, delete, replace, exchange of two neighbours) between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(x != y);
            let mut least = replaced.min(row[j] + 1).min(rows[i][j + 1] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_if_it_is_near() {
        assert_eq!(nearest("cuont", &["count", "site"]), Some("count"));
        assert_eq!(nearest("rnu", &["run", "ps"]), Some("run"));
        assert_eq!(nearest("zebra", &["count", "site"]), None);
        // Words that have half of their letters in common are others.
        assert_eq!(nearest("trace", &["iface"]), None);
        assert_eq!(nearest("debug", &["demux"]), None);
        assert_eq!(nearest("D", &["H", "n"]), None);
        assert_eq!(nearest("np", &["n"]), Some("n"));
        assert_eq!(nearest(&"x".repeat(1 << 20), &["count"]), None);
    }
}
