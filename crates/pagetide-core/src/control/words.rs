//! Control files that take one of several words.
//!
//! Linux: `sysfs_streq` (lib/string.c), and the files of sysfs that print all words they take with
//! the one in force in brackets, as `always [madvise] never`.

use alloc::string::String;

/// The words of a table.
pub(super) const fn of<P: Copy, const N: usize>(
    table: &[(&'static str, P); N],
) -> [&'static str; N] {
    let mut words = [""; N];
    let mut at = 0;
    while at < N {
        words[at] = table[at].0;
        at += 1;
    }
    words
}

/// The place of the word that `text` is, which may end in one newline.
pub(super) fn find(words: &[&str], text: &str) -> Option<usize> {
    let word = text.strip_suffix('\n').unwrap_or(text);
    words.iter().position(|known| *known == word)
}

/// What the word at `place` stands for, a place that [`find`] gave.
pub(super) fn chosen<P: Copy>(table: &[(&str, P)], place: i128) -> P {
    table[usize::try_from(place).unwrap_or(usize::MAX)].1
}

/// `always, madvise or never`.
pub(super) fn listed(words: &[&str]) -> String {
    let mut list = String::new();
    for (at, word) in words.iter().enumerate() {
        list += match at {
            0 => "",
            _ if at + 1 == words.len() => " or ",
            _ => ", ",
        };
        list += word;
    }
    list
}

/// The text of a file of which `value` is in force, with the newline.
pub(super) fn bracketed<P: Copy + PartialEq>(table: &[(&str, P)], value: P) -> String {
    let mut text = String::new();
    for (at, (word, known)) in table.iter().enumerate() {
        let (open, close) = if *known == value { ("[", "]") } else { ("", "") };
        for part in [if at == 0 { "" } else { " " }, open, word, close] {
            text += part;
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ThpDefrag;
    use crate::control::policy::{THP, THP_DEFRAG};

    #[test]
    fn words_are_compared_as_sysfs_does() {
        let words = of(&THP);
        assert_eq!(words, ["always", "madvise", "never"]);
        for (text, place) in [
            ("always", Some(0)),
            ("never\n", Some(2)),
            ("never\n\n", None),
            (" never", None),
            ("Never", None),
            ("", None),
            ("[never]", None),
        ] {
            assert_eq!(find(&words, text), place, "{text:?}");
        }
        assert_eq!(listed(&words), "always, madvise or never");
        assert_eq!(chosen(&THP_DEFRAG, 2), ThpDefrag::DeferMadvise);
    }

    #[test]
    fn the_one_in_force_is_in_brackets() {
        let text = bracketed(&THP_DEFRAG, ThpDefrag::DeferMadvise);
        assert_eq!(text, "always defer [defer+madvise] madvise never\n");
    }
}
