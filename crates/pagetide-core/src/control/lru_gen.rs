//! The commands of the file `lru_gen`: age a group on a node, or evict from it.
//!
//! Linux: `lru_gen_seq_write`, `run_cmd` (mm/vmscan.c, 6.1), as /sys/kernel/debug/lru_gen. A text has
//! one command or several, separated by commas, semicolons or new lines:
//!
//! * `+ MEMCG NODE GENERATION [CAN_SWAP [FORCE]]` begins a generation after that one;
//! * `- MEMCG NODE GENERATION [SWAPPINESS [PAGES]]` evicts it and all older ones.
//!
//! Difference from Linux: a text with a command of another form is refused as a whole.
//!
//! Invariant: a command has the form that the kernel reads. Whether its group, node and generation
//! exist shows when it runs.

use super::error::{quoted, ControlError};
use crate::ageing::generations::command::{LruGenAction, LruGenCommand, LruGenWrite};
use crate::units::errno::Errno;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

impl LruGenWrite {
    /// The name of the file.
    pub const NAME: &'static str = "lru_gen";

    /// Reads a text.
    ///
    /// # Errors
    /// EINVAL: a command has not the form that the kernel reads.
    pub fn read(text: &str) -> Result<LruGenWrite, ControlError> {
        let commands = text.split([',', ';', '\n']).map(str::trim).filter(|one| !one.is_empty());
        let all: Result<Vec<LruGenCommand>, ControlError> = commands
            .map(|command| {
                read_command(command).ok_or_else(|| {
                    let message = format!(
                        "{} is not a command: write `+ MEMCG NODE GENERATION [CAN_SWAP [FORCE]]` \
                         or `- MEMCG NODE GENERATION [SWAPPINESS [PAGES]]`",
                        quoted(command)
                    );
                    ControlError::new(Errno::Einval, Self::NAME, message)
                })
            })
            .collect();
        let none = || {
            let message = format!("{} has no command", quoted(text));
            ControlError::new(Errno::Einval, Self::NAME, message)
        };
        Some(all?).filter(|all| !all.is_empty()).map(LruGenWrite).ok_or_else(none)
    }
}

fn read_command(command: &str) -> Option<LruGenCommand> {
    let (sign, numbers) = command.split_at_checked(1)?;
    if numbers.contains(['+', '-']) {
        return None;
    }
    let mut numbers = numbers.split_ascii_whitespace();
    let mut small = || numbers.next().map(|word| word.parse::<u32>().ok());
    let (memcg, node) = (small()??, small()??);
    let seq = numbers.next()?.parse().ok()?;
    let choice = numbers.next().map(|word| word.parse::<u32>().ok());
    let last = numbers.next().map(|word| word.parse::<u64>().ok());
    if choice == Some(None) || last == Some(None) || numbers.next().is_some() {
        return None;
    }
    let (choice, last) = (choice.flatten(), last.flatten());
    let action = match sign {
        "+" => LruGenAction::Age { can_swap: choice, force: last != Some(0) },
        "-" => LruGenAction::Evict { swappiness: choice, pages: last.unwrap_or(u64::MAX) },
        _ => return None,
    };
    // Swappiness and can_swap share a place, and a limit.
    (choice <= Some(200)).then_some(LruGenCommand { memcg, node, seq, action })
}

/// Prints the text to write, as the kernel accepts it.
impl fmt::Display for LruGenWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, LruGenCommand { memcg, node, seq, action }) in self.0.iter().enumerate() {
            let (sign, choice, last) = match *action {
                LruGenAction::Age { can_swap, force } => ('+', can_swap, u64::from(force)),
                LruGenAction::Evict { swappiness, pages } => ('-', swappiness, pages),
            };
            let separator = if at > 0 { "," } else { "" };
            write!(f, "{separator}{sign}{memcg} {node} {seq}")?;
            // The kernel reads the last number only after the one before.
            if let Some(choice) = choice {
                write!(f, " {choice} {last}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_kernel() {
        let age = |can_swap, force| LruGenAction::Age { can_swap, force };
        let evict = |swappiness, pages| LruGenAction::Evict { swappiness, pages };
        for (text, action) in [
            ("+1 0 3", age(None, true)),
            ("+ 1 0 3 1\n", age(Some(1), true)),
            ("+1 0 3 0 0", age(Some(0), false)),
            ("-1 0 3", evict(None, u64::MAX)),
            ("-1 0 3 200 64;", evict(Some(200), 64)),
        ] {
            let command = LruGenCommand { memcg: 1, node: 0, seq: 3, action };
            let write = LruGenWrite::read(text).unwrap();
            assert_eq!(write.0, [command], "{text}");
            assert_eq!(LruGenWrite::read(&format!("{write}")), Ok(write));
        }
        assert_eq!(LruGenWrite::read("+1 0 3,-2 1 4\n-3 0 0").unwrap().0.len(), 3);
        for text in [
            "1 0 3",
            "*1 0 3",
            "+1 0",
            "+1 0 x",
            "-1 0 3 201",
            "-1 0 3 1 2 3",
            "+-1 0 3",
            "++1 0 3",
            "+1 0 +3",
            "é",
            "",
            "\n",
        ] {
            assert_eq!(LruGenWrite::read(text).unwrap_err().errno, Errno::Einval, "{text}");
        }
    }
}
