//! The only module that writes to the standard streams: data to stdout, messages to stderr, colour
//! only on terminals.

use crate::error::CliError;
use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use std::io::{Stderr, Stdout, Write};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// Charts wider than this are hard to read.
const MOST_COLUMNS: usize = 200;

/// Columns of charts on stdout: the width of the terminal, or a default.
pub fn width() -> usize {
    match terminal_size::terminal_size_of(std::io::stdout()) {
        Some((terminal_size::Width(columns), _)) => usize::from(columns).min(MOST_COLUMNS),
        None => pagetide_lab::timeline::WIDTH,
    }
}

/// Columns of a table: the width of the terminal, else COLUMNS, else the width of a mail.
pub fn table_width() -> usize {
    let of_terminal = terminal_size::terminal_size_of(std::io::stdout());
    let of_environment = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0);
    match of_terminal {
        Some((terminal_size::Width(columns), _)) => usize::from(columns),
        None => of_environment().unwrap_or(pagetide_lab::table::WIDTH),
    }
}

pub struct Printer {
    stdout: AutoStream<Stdout>,
    stderr: AutoStream<Stderr>,
}

impl Printer {
    pub fn new() -> Printer {
        Printer { stdout: anstream::stdout(), stderr: anstream::stderr() }
    }

    /// Writes data to stdout, unchanged.
    pub fn data(&mut self, text: impl AsRef<[u8]>) -> Result<(), CliError> {
        self.stdout
            .write_all(text.as_ref())
            .and_then(|()| self.stdout.flush())
            .map_err(|error| CliError::output(&error))
    }

    /// Prints why a command failed.
    pub fn error(&mut self, error: &CliError) {
        match error {
            CliError::Closed => {}
            CliError::Scenario(rendered) => {
                let _ = self.stderr.write_all(rendered.as_bytes());
            }
            _ => self.print_message("error", ERROR, &error.to_string()),
        }
    }

    /// Prints a warning: the input may not mean what the user intended.
    pub fn warning(&mut self, text: &str) {
        self.print_message("warning", WARNING, text);
    }

    /// Prints additional information.
    pub fn note(&mut self, text: &str) {
        self.print_message("note", Style::new(), text);
    }

    /// Prints `label: first line`, then the other lines. Lines that begin with `hint:` are
    /// highlighted.
    fn print_message(&mut self, label: &str, style: Style, text: &str) {
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
        // If stderr is closed, the message is lost.
        let _ = self.stderr.write_all(out.as_bytes());
    }
}
