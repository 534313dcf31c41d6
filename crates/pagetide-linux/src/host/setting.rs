//! Settings of daemons, as their files write them: kubelet (YAML), systemd (sections with `KEY=VALUE`)
//! and earlyoom (options in a variable of the shell).
//!
//! Invariant: a setting has the text of its file, unchanged; the loader of scenarios judges it. Depth
//! and aliases of YAML cost nothing, because the parser gives one event after the other.

use super::note::{shown, ImportNote};
use std::collections::VecDeque;
use yaml_rust2::parser::{Event, Parser};

/// Largest depth of a YAML key that is read.
const DEPTH_MAX: usize = 8;
/// Maximum number of settings of one file.
const SETTINGS_MAX: usize = 4096;

/// One setting of a daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigSetting {
    /// The file, by its path on the system.
    pub place: String,
    /// Line number, from 1.
    pub line: Option<usize>,
    /// Keys above it, separated by dots: `evictionHard/memory.available`, `OOM/SwapUsedLimit`.
    pub key: String,
    pub text: String,
}

impl ConfigSetting {
    /// A note about this setting.
    pub(super) fn note(&self, message: impl Into<String>) -> ImportNote {
        let key = self.key.rsplit('/').next().unwrap_or_default();
        let text = shown(&format!("{key} = {}", self.text));
        ImportNote { line: self.line, text, ..ImportNote::new(&self.place, message) }
    }
}

/// The last setting of `key`.
pub(super) fn find<'s>(settings: &'s [ConfigSetting], key: &str) -> Option<&'s ConfigSetting> {
    settings.iter().rev().find(|setting| setting.key == key)
}

/// A mapping or a sequence that is not complete yet.
struct OpenNode {
    /// The key whose value comes next, in a mapping.
    key: Option<String>,
    is_mapping: bool,
    /// It is itself a key, which JSON does not know.
    is_key: bool,
}

/// The values of all mappings in the first document of YAML or JSON; lists are left out.
pub(super) fn parse_yaml(
    place: &str,
    text: &str,
    notes: &mut Vec<ImportNote>,
) -> Vec<ConfigSetting> {
    let mut parser = Parser::new_from_str(text);
    let mut settings = Vec::new();
    let mut open: Vec<OpenNode> = Vec::new();
    loop {
        let (event, mark) = match parser.next_token() {
            Ok(next) => next,
            Err(error) => {
                let line = Some(error.marker().line());
                let message = format!("not YAML: {}", error.info());
                notes.push(ImportNote { line, ..ImportNote::new(place, message) });
                return settings;
            }
        };
        let awaits_key = open.last().is_some_and(|node| node.is_mapping && node.key.is_none());
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                let is_mapping = matches!(event, Event::MappingStart(..));
                open.push(OpenNode { key: None, is_mapping, is_key: awaits_key });
                continue;
            }
            Event::Scalar(key, ..) if awaits_key => {
                open.last_mut().into_iter().for_each(|node| node.key = Some(key.clone()));
                continue;
            }
            Event::Scalar(text, ..) => {
                let is_read = open.len() <= DEPTH_MAX && open.iter().all(|node| node.is_mapping);
                let keys = open.iter().map(|node| node.key.as_deref());
                let keys: Option<Vec<&str>> = keys.take(DEPTH_MAX).collect();
                if let Some(keys) = keys.filter(|keys| is_read && !keys.is_empty()) {
                    if settings.len() == SETTINGS_MAX {
                        let message = format!("more than {SETTINGS_MAX} settings");
                        notes.push(ImportNote::new(place, message));
                        return settings;
                    }
                    let line = Some(mark.line());
                    settings.push(ConfigSetting {
                        place: place.into(),
                        line,
                        key: keys.join("/"),
                        text,
                    });
                }
            }
            Event::MappingEnd | Event::SequenceEnd => {
                if open.pop().is_some_and(|node| node.is_key) {
                    open.last_mut().into_iter().for_each(|node| node.key = Some(String::new()));
                    continue;
                }
            }
            Event::Alias(_) if awaits_key => {
                open.last_mut().into_iter().for_each(|node| node.key = Some(String::new()));
                continue;
            }
            Event::Alias(_) => {
                let line = Some(mark.line());
                notes.push(ImportNote {
                    line,
                    ..ImportNote::new(place, "an alias is not followed")
                });
            }
            Event::DocumentEnd | Event::StreamEnd => return settings,
            Event::Nothing | Event::StreamStart | Event::DocumentStart => continue,
        }
        open.last_mut().into_iter().for_each(|node| node.key = None);
    }
}

/// The settings of a file of systemd: `SECTION/KEY`. An empty value resets what stands before.
pub(super) fn parse_systemd(place: &str, text: &str) -> Vec<ConfigSetting> {
    let mut section = "";
    let mut settings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
        } else if let Some((key, value)) =
            line.split_once('=').filter(|_| !line.starts_with(['#', ';']))
        {
            settings.push(ConfigSetting {
                place: place.to_owned(),
                line: Some(index + 1),
                key: format!("{section}/{}", key.trim_end()),
                text: value.trim_start().to_owned(),
            });
        }
        if settings.len() == SETTINGS_MAX {
            break;
        }
    }
    settings
}

/// The value of variable `name` in a file of assignments, as /etc/default has them, split into words
/// like the shell and systemd do. The last assignment counts.
pub(super) fn parse_words(name: &str, text: &str) -> Option<(usize, VecDeque<String>)> {
    let assigned =
        |line: &'_ str| line.trim_start().strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
    let lines = text.lines().enumerate();
    let (index, value) = lines.filter_map(|(index, line)| Some((index, assigned(line)?))).last()?;
    // The file's own quotes first, then those within the value.
    let value = words(&value).into_iter().next().unwrap_or_default();
    Some((index + 1, words(&value)))
}

/// Splits at blanks outside quotes; a backslash keeps the next character, outside single quotes.
fn words(text: &str) -> VecDeque<String> {
    let mut words = VecDeque::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if open == c => quote = None,
            (None | Some('"'), '\\') => {
                // Within double quotes only some characters are escaped.
                let next = chars.next();
                let word = word.get_or_insert_default();
                if quote.is_some() && !matches!(next, Some('"' | '\\' | '$' | '`')) {
                    word.push('\\');
                }
                word.extend(next);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(text: &str) -> (Vec<(String, String)>, Vec<ImportNote>) {
        let mut notes = Vec::new();
        let settings = parse_yaml("/k", text, &mut notes);
        (settings.into_iter().map(|it| (it.key, it.text)).collect(), notes)
    }

    #[test]
    fn values_of_yaml_and_json_have_their_keys() {
        let text = "kind: KubeletConfiguration\nclusterDNS:\n- 10.96.0.10\n- a: b\nevictionHard:\n  \
            memory.available: 200Mi # as always\n  'nodefs.available': \"10%\"\nmemorySwap: {swapBehavior: \
            LimitedSwap}\nempty:\nlast: 0s\n---\nkind: Other\n";
        let (settings, notes) = yaml(text);
        let pair = |key: &str, text: &str| (key.to_owned(), text.to_owned());
        let wanted = [
            pair("kind", "KubeletConfiguration"),
            pair("evictionHard/memory.available", "200Mi"),
            pair("evictionHard/nodefs.available", "10%"),
            pair("memorySwap/swapBehavior", "LimitedSwap"),
            pair("empty", ""),
            pair("last", "0s"),
        ];
        assert_eq!((settings, notes.len()), (wanted.to_vec(), 0));
        let json = "{\"evictionHard\": {\"memory.available\": \"5%\"}, \"list\": [{\"a\": 1}]}";
        assert_eq!(yaml(json).0, [pair("evictionHard/memory.available", "5%")]);
    }

    #[test]
    fn strange_yaml_is_noted_and_ends() {
        for text in ["a: [", "a: {b", "\t- x: y\n a", "{{{{", "%YAML 9", "a: *b", "? {a: b}\n: c"] {
            let (settings, _) = yaml(text);
            assert!(settings.len() <= 1, "{text}");
        }
        assert_eq!(yaml("a: 'x").1[0].line, Some(1));
        assert!(yaml("b: &x {c: d}\na: *x\ne: f\n").1[0].to_string().contains("alias"));
        let bomb = format!("{}x", "- ".repeat(100_000));
        assert_eq!(yaml(&bomb).0, []);
        assert_eq!(yaml(&"[".repeat(100_000)).1.len(), 1);
        assert_eq!(yaml(&"a: {".repeat(100_000)).1.len(), 1);
    }

    #[test]
    fn settings_of_systemd_have_their_sections() {
        let text = "# x=y\n[OOM]\nSwapUsedLimit=90%\n;a=b\n[Slice]\nManagedOOMSwap = kill\n";
        let settings = parse_systemd("/o", text);
        assert_eq!(settings.len(), 2);
        assert_eq!(
            (settings[1].key.as_str(), settings[1].text.as_str()),
            ("Slice/ManagedOOMSwap", "kill")
        );
        assert_eq!(settings[0].note("no").to_string(), "/o:3: no: `SwapUsedLimit = 90%`");
    }

    #[test]
    fn words_are_split_like_those_of_a_shell() {
        let text =
            "# EARLYOOM_ARGS=\"-x\"\nEARLYOOM_ARGS=\"-r 3600 -m 4 --avoid '^(a b|c\\d)$' -n\"\n";
        let (line, words) = parse_words("EARLYOOM_ARGS", text).unwrap();
        assert_eq!(line, 2);
        assert_eq!(words, ["-r", "3600", "-m", "4", "--avoid", "^(a b|c\\d)$", "-n"]);
        assert_eq!(parse_words("X", "X=").unwrap().1.len(), 0);
        assert_eq!(parse_words("X", "X='a\\\"").unwrap().1, ["a\""]);
        assert_eq!(parse_words("Y", text), None);
    }
}
