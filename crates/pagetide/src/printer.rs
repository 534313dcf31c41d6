//! The only place that writes: data to stdout, messages to stderr, colour only on terminals.

use crate::error::CliError;
use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use std::io::{Stderr, Stdout, Write};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// Wider charts are hard to follow.
const MOST_COLUMNS: usize = 200;

/// Characters in a line of stdout: those of the terminal, or of an ordinary page.
pub fn width() -> usize {
    match terminal_size::terminal_size_of(std::io::stdout()) {
        Some((terminal_size::Width(columns), _)) => usize::from(columns).min(MOST_COLUMNS),
        None => pagetide_lab::timeline::WIDTH,
    }
}

/// Characters in a line of a table: those of the terminal, what COLUMNS says where there is none, or those of
/// a mail.
pub fn table_width() -> usize {
    let of_terminal = terminal_size::terminal_size_of(std::io::stdout());
    let of_environment = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0);
    match of_terminal {
        Some((terminal_size::Width(columns), _)) => usize::from(columns),
        None => of_environment().unwrap_or(pagetide_lab::table::WIDTH),
    }
}

/// Writes for the commands.
pub struct Printer {
    stdout: AutoStream<Stdout>,
    stderr: AutoStream<Stderr>,
}

impl Printer {
    /// A printer to the process's streams.
    pub fn new() -> Printer {
        Printer { stdout: anstream::stdout(), stderr: anstream::stderr() }
    }

    /// Writes data to stdout, as it is.
    pub fn data(&mut self, text: impl AsRef<[u8]>) -> Result<(), CliError> {
        self.stdout
            .write_all(text.as_ref())
            .and_then(|()| self.stdout.flush())
            .map_err(|error| CliError::output(&error))
    }

    /// Says why a command failed.
    pub fn error(&mut self, error: &CliError) {
        match error {
            CliError::Closed => {}
            CliError::Scenario(rendered) => {
                let _ = self.stderr.write_all(rendered.as_bytes());
            }
            _ => self.talk("error", ERROR, &error.to_string()),
        }
    }

    /// Prints a warning: the input may not mean what the user intended.
    pub fn warning(&mut self, text: &str) {
        self.talk("warning", WARNING, text);
    }

    /// Says something that the user may want to know.
    pub fn note(&mut self, text: &str) {
        self.talk("note", Style::new(), text);
    }

    /// `label: first line`, then the other lines; lines that begin with `hint:` stand out.
    fn talk(&mut self, label: &str, style: Style, text: &str) {
        let mut out = format!("{style}{label}{style:#}: ");
        for line in text.lines() {
            let body = line.trim_start();
            match body.strip_prefix("hint:") {
                Some(advice) => {
                    let indent = &line[..line.len() - body.len()];
                    out += &format!("{indent}{HINT}hint{HINT:#}:{advice}\n");
                }
                None => out += &format!("{line}\n"),
            }
        }
        // With stderr gone there is nobody left to tell.
        let _ = self.stderr.write_all(out.as_bytes());
    }
}
