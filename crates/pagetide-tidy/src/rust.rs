//! The prose and the type names of a Rust file, by a scan of its tokens.

use crate::Passage;

/// Where the scan is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Code,
    Comment,
    Literal,
}

/// The comments and string literals of a Rust file.
pub fn rust_passages(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut comment: Option<(usize, String, usize)> = None;
    let mut is_example = false;
    for (line, token, words) in tokens(text) {
        match token {
            Token::Comment => {
                let words = words.trim_start_matches(['/', '!']).trim();
                let is_fence = words.starts_with("```");
                if is_fence || is_example {
                    is_example ^= is_fence;
                    continue;
                }
                comment = match comment.take() {
                    Some((first, mut said, last)) if line == last + 1 && !words.is_empty() => {
                        said.push(' ');
                        said.push_str(words);
                        Some((first, said, line))
                    }
                    before => {
                        passages.extend(before.map(|(first, said, _)| Passage::new(first, &said)));
                        Some((line, words.to_owned(), line))
                    }
                };
            }
            Token::Literal => passages.push(Passage::new(line, &words.replace("\\n", " "))),
            Token::Code => {}
        }
    }
    passages.extend(comment.map(|(first, said, _)| Passage::new(first, &said)));
    passages.retain(|passage| !passage.text.is_empty());
    passages
}

/// Splits a file into comments, string literals and the code between them, each with its first line.
fn tokens(text: &str) -> Vec<(usize, Token, String)> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = text;
    let mut code = String::new();
    while let Some(first) = rest.chars().next() {
        let (token, length, shown) = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            (Token::Comment, end, rest[..end].to_owned())
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").map_or(rest.len(), |at| at + 2);
            (Token::Comment, end, rest[2..end].to_owned())
        } else if let Some(hashes) = raw_string(rest).filter(|_| !ends_in_word(&code)) {
            let close = format!("\"{}", "#".repeat(hashes));
            let open = hashes + 2;
            let end = rest[open..].find(&close).map_or(rest.len(), |at| open + at + close.len());
            (Token::Literal, end, rest[open..end - close.len().min(end - open)].to_owned())
        } else if first == '"' {
            let end = string_end(rest);
            (Token::Literal, end, rest[1..end.saturating_sub(1).max(1)].to_owned())
        } else {
            (Token::Code, char_end(rest), String::new())
        };
        if token == Token::Code {
            code.push_str(&rest[..length]);
        } else {
            if !code.is_empty() {
                let lines = code.matches('\n').count();
                found.push((line - lines, Token::Code, std::mem::take(&mut code)));
            }
            found.push((line, token, shown));
        }
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found.push((line - code.matches('\n').count(), Token::Code, code));
    found
}

fn ends_in_word(code: &str) -> bool {
    code.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// The number of `#` of a raw string that begins here.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// The length of the string literal that begins here, its quotes included.
fn string_end(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of the character or character literal that begins here. A lifetime is code like any other.
fn char_end(rest: &str) -> usize {
    let first = rest.chars().next().map_or(1, char::len_utf8);
    if !rest.starts_with('\'') {
        return first;
    }
    let mut after = rest[1..].char_indices();
    match (after.next(), after.next()) {
        (Some((_, '\\')), _) => {
            let end = rest.get(3..).and_then(|tail| tail.find('\''));
            end.map_or(first, |at| 3 + at + 1)
        }
        (Some(_), Some((at, '\''))) => 1 + at + 1,
        _ => first,
    }
}

/// The types of a Rust file that another file can name: line and name of each `pub` struct, enum, union, trait and
/// alias, whatever the visibility is restricted to. Classes of the Python package have the names that Python shows.
pub fn public_types(text: &str) -> Vec<(usize, String)> {
    let code: String = tokens(text)
        .into_iter()
        .map(|(_, token, shown)| match token {
            Token::Code => shown,
            // The line breaks of a comment or literal are kept, so that lines keep their numbers.
            Token::Comment | Token::Literal => "\n".repeat(shown.matches('\n').count()),
        })
        .collect();
    let lines: Vec<&str> = code.split('\n').collect();
    let mut types = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let above = lines[..index].iter().rev();
        let mut attributes = above.take_while(|line| line.trim_start().starts_with("#["));
        if attributes.any(|line| line.contains("pyclass")) {
            continue;
        }
        let Some(rest) = line.trim_start().strip_prefix("pub") else { continue };
        let rest = match rest.strip_prefix('(') {
            Some(restricted) => restricted.split_once(')').map_or("", |(_, rest)| rest),
            None => rest,
        };
        let mut words = rest.split_whitespace();
        let kind = words.next().unwrap_or_default();
        if !["struct", "enum", "union", "trait", "type"].contains(&kind) {
            continue;
        }
        let name = words.next().unwrap_or_default().chars();
        let name: String = name.take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !name.is_empty() {
            types.push((index + 1, name));
        }
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_found() {
        let text = "//! One\n//! two.\n\n/// Three.\nfn f<'a>(c: char) {\n    let s = \"four \\\" // no\"; // five\n    let c = '\"';\n    let r = r#\"six \"x\" \"#;\n}\n";
        let found: Vec<(usize, String)> =
            rust_passages(text).into_iter().map(|it| (it.line, it.text)).collect();
        let wanted =
            [(1, "One two."), (6, "four \\\" // no"), (4, "Three."), (8, "six \"x\""), (6, "five")];
        let mut wanted = wanted.map(|(line, text)| (line, text.to_owned())).to_vec();
        let mut found = found;
        wanted.sort();
        found.sort();
        assert_eq!(found, wanted);
    }

    #[test]
    fn types_have_a_name_and_a_line() {
        let text = "pub struct A;\nstruct B;\n/// pub struct C;\npub(crate) enum D<T> {\n}\n    pub(in a::b) type E = u8;\npub fn f() {}\n";
        let wanted = [(1, "A"), (4, "D"), (6, "E")].map(|(line, name)| (line, name.to_owned()));
        assert_eq!(public_types(text), wanted);
    }
}
