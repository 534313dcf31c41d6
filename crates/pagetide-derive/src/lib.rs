//! `#[derive(State)]`: a type of the core declares in one place which of its fields are state.
//!
//! Linux has no such thing. The derive implements `digest::State` of `pagetide-core`: every field
//! goes into the digest in the order of the declaration; for an enum, the number of the variant
//! comes first. A field that is not hashed as a whole has an attribute, with the reason next to it:
//!
//! * `#[state(skip)]`: not hashed;
//! * `#[state(sparse)]`: a long table; only entries other than the default, with their positions.
//!
//! Invariant: a field without an attribute is hashed, so a new field cannot be forgotten. The
//! derive refuses types with generic parameters, which implement `State` by hand.

#![warn(missing_docs)]

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};
use std::fmt::Write;
use std::iter::Peekable;

type Tokens = Peekable<proc_macro::token_stream::IntoIter>;

/// How a field is hashed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldHash {
    Hashed,
    Skipped,
    Sparse,
}

/// A field: its name in a pattern, and how it is hashed.
struct StateField {
    name: String,
    kind: FieldHash,
}

/// The fields of a struct or a variant; fields of a tuple are called `f0`, `f1`, ...
struct StateFields {
    is_tuple: bool,
    fields: Vec<StateField>,
}

/// Implements `crate::units::digest::State` (see the crate's documentation).
#[proc_macro_derive(State, attributes(state))]
pub fn derive_state(input: TokenStream) -> TokenStream {
    let text =
        implementation(input).unwrap_or_else(|problem| format!("compile_error!({problem:?});"));
    text.parse().expect("the generated code is valid Rust")
}

fn implementation(input: TokenStream) -> Result<String, String> {
    let mut tokens = input.into_iter().peekable();
    attributes(&mut tokens)?;
    visibility(&mut tokens);
    let kind = tokens.next().map(|token| token.to_string()).unwrap_or_default();
    let name = tokens.next().map(|token| token.to_string()).unwrap_or_default();
    let body = match tokens.next() {
        Some(TokenTree::Group(body)) => body,
        Some(TokenTree::Punct(mark)) if mark.as_char() == ';' => {
            Group::new(Delimiter::Parenthesis, TokenStream::new())
        }
        _ => return Err(format!("State cannot be derived for `{name}`: write it by hand")),
    };
    let mut arms = String::new();
    match kind.as_str() {
        "struct" => arm(&mut arms, &name, None, &fields(&body)?),
        "enum" => variants(&mut arms, &name, body.stream())?,
        _ => return Err("State can be derived for structs and enums only".into()),
    }
    Ok(format!(
        "impl crate::units::digest::State for {name} {{
            fn digest(&self, digest: &mut crate::units::digest::Digest) {{ match self {{ {arms} }} }}
        }}"
    ))
}

fn variants(arms: &mut String, name: &str, body: TokenStream) -> Result<(), String> {
    let mut tokens = body.into_iter().peekable();
    let mut number = 0;
    loop {
        attributes(&mut tokens)?;
        let Some(variant) = tokens.next() else { return Ok(()) };
        let fields = match tokens.peek() {
            Some(TokenTree::Group(body)) => fields(&body.clone())?,
            _ => StateFields { is_tuple: true, fields: Vec::new() },
        };
        arm(arms, &format!("{name}::{variant}"), Some(number), &fields);
        number += 1;
        skip_to_comma(&mut tokens);
    }
}

/// An arm of the match: the pattern names every field.
fn arm(arms: &mut String, path: &str, number: Option<u64>, fields: &StateFields) {
    let (open, close) = if fields.is_tuple { ('(', ')') } else { ('{', '}') };
    let is_unit = fields.is_tuple && fields.fields.is_empty();
    let mut pattern = String::new();
    let mut body = String::new();
    if let Some(number) = number {
        let _ = write!(body, "digest.write_u64({number});");
    }
    for StateField { name, kind } in &fields.fields {
        let _ = match (kind, fields.is_tuple) {
            (FieldHash::Skipped, true) => write!(pattern, "_,"),
            (FieldHash::Skipped, false) => write!(pattern, "{name}: _,"),
            _ => write!(pattern, "{name},"),
        };
        let _ = match kind {
            FieldHash::Hashed => {
                write!(body, "crate::units::digest::State::digest({name}, digest);")
            }
            FieldHash::Sparse => write!(body, "crate::units::digest::sparse({name}, digest);"),
            FieldHash::Skipped => Ok(()),
        };
    }
    let _ = if is_unit {
        write!(arms, "{path} => {{ {body} }}")
    } else {
        write!(arms, "{path} {open} {pattern} {close} => {{ {body} }}")
    };
}

fn fields(body: &Group) -> Result<StateFields, String> {
    let is_tuple = body.delimiter() == Delimiter::Parenthesis;
    let mut tokens = body.stream().into_iter().peekable();
    let mut fields = Vec::new();
    loop {
        let kind = attributes(&mut tokens)?;
        visibility(&mut tokens);
        if tokens.peek().is_none() {
            return Ok(StateFields { is_tuple, fields });
        }
        let name = match is_tuple {
            true => format!("f{}", fields.len()),
            false => tokens.next().map(|name| name.to_string()).unwrap_or_default(),
        };
        fields.push(StateField { name, kind });
        skip_to_comma(&mut tokens);
    }
}

/// Skips attributes; returns the meaning of `#[state(...)]` if it is among them.
fn attributes(tokens: &mut Tokens) -> Result<FieldHash, String> {
    let mut kind = FieldHash::Hashed;
    while tokens
        .next_if(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == '#'))
        .is_some()
    {
        let text: String = tokens.next().map(|token| token.to_string()).unwrap_or_default();
        let text: String = text.split_whitespace().collect();
        kind = match text.as_str() {
            "[state(skip)]" => FieldHash::Skipped,
            "[state(sparse)]" => FieldHash::Sparse,
            other if other.starts_with("[state") => {
                return Err(format!("{other}: write #[state(skip)] or #[state(sparse)]"));
            }
            _ => kind,
        };
    }
    Ok(kind)
}

/// Skips `pub` and `pub(...)`.
fn visibility(tokens: &mut Tokens) {
    if tokens.next_if(|token| token.to_string() == "pub").is_some() {
        let is_scope = |token: &TokenTree| {
            matches!(token, TokenTree::Group(scope) if scope.delimiter() == Delimiter::Parenthesis
                && matches!(scope.stream().to_string().split(' ').next(), Some("crate" | "super" | "self" | "in")))
        };
        tokens.next_if(is_scope);
    }
}

/// Skips everything up to and including the next comma outside of angle brackets.
fn skip_to_comma(tokens: &mut Tokens) {
    let (mut depth, mut last) = (0, ' ');
    for token in tokens.by_ref() {
        let mark = match token {
            TokenTree::Punct(mark) => mark.as_char(),
            _ => ' ',
        };
        match mark {
            ',' if depth == 0 => return,
            '<' => depth += 1,
            '>' if last != '-' => depth -= 1,
            _ => {}
        }
        last = mark;
    }
}
