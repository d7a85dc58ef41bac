// SPDX-License-Identifier: Apache-2.0
//! What somebody meant who has misspelt a word.

/// Characters of a word that count: more is no misspelling.
const LONGEST: usize = 40;

/// The known word that is nearest to an unknown one, if one is near enough to be what was meant.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word: String = word.chars().take(LONGEST).collect();
    let length = word.chars().count();
    let limit = if length < 4 { 1 } else { (length / 3).max(2) };
    known
        .iter()
        .map(|k| (distance(&word, k), *k))
        // A word of which nothing is left, as one letter for another, was not misspelt.
        .filter(|(d, k)| *d <= limit && *d < length.max(k.chars().count()))
        .min()
        .map(|(_, k)| k)
}

/// Edits (insert, delete, replace) between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_if_it_is_near() {
        assert_eq!(nearest("cuont", &["count", "site"]), Some("count"));
        assert_eq!(nearest("zebra", &["count", "site"]), None);
        assert_eq!(nearest("D", &["H", "n"]), None);
        assert_eq!(nearest("np", &["n"]), Some("n"));
        assert_eq!(nearest(&"x".repeat(1 << 20), &["count"]), None);
    }
}
