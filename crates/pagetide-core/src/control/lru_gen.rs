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
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
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
                read_command(command).map_err(|why| {
                    let message = format!(
                        "{} is not a command: {why}; write `+ MEMCG NODE GENERATION [CAN_SWAP \
                         [FORCE]]` or `- MEMCG NODE GENERATION [SWAPPINESS [PAGES]]`",
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

/// Fails with the field that is wrong.
fn read_command(command: &str) -> Result<LruGenCommand, String> {
    let (sign, numbers) = command.split_at_checked(1).unwrap_or((command, ""));
    let fields = match sign {
        "+" => ["MEMCG", "NODE", "GENERATION", "CAN_SWAP", "FORCE"],
        "-" => ["MEMCG", "NODE", "GENERATION", "SWAPPINESS", "PAGES"],
        _ => return Err("it begins with neither + nor -".to_owned()),
    };
    let mut words = numbers.split_ascii_whitespace();
    let mut numbers = [None; 5];
    // Swappiness and can_swap share a place, and a limit.
    let limits = [u32::MAX.into(), u32::MAX.into(), u64::MAX, 200, u64::MAX];
    for (number, (field, limit)) in numbers.iter_mut().zip(fields.into_iter().zip(limits)) {
        let Some(word) = words.next() else { break };
        let read = word.parse().ok().filter(|read| *read <= limit && !word.starts_with('+'));
        let wrong = || format!("{field} is {}, not a number up to {limit}", quoted(word));
        *number = Some(read.ok_or_else(wrong)?);
    }
    if let Some(word) = words.next() {
        return Err(format!("{} comes after the last number", quoted(word)));
    }
    let [Some(memcg), Some(node), Some(seq), choice, last] = numbers else {
        let missing = fields.into_iter().zip(numbers).find(|(_, number)| number.is_none());
        return Err(format!("{} is missing", missing.map_or("", |(field, _)| field)));
    };
    let choice = choice.map(|choice| choice as u32);
    let action = match sign {
        "+" => LruGenAction::Age { can_swap: choice, force: last != Some(0) },
        _ => LruGenAction::Evict { swappiness: choice, pages: last.unwrap_or(u64::MAX) },
    };
    Ok(LruGenCommand { memcg: memcg as u32, node: node as u32, seq, action })
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
        for (text, why) in [
            ("1 0 3", "begins with neither"),
            ("*1 0 3", "begins with neither"),
            ("+1 0", "GENERATION is missing"),
            ("+1 0 x", "GENERATION is `x`"),
            ("-2 0 1 999", "SWAPPINESS is `999`, not a number up to 200"),
            ("+1 0 3 201", "CAN_SWAP is `201`"),
            ("-1 0 3 1 2 3", "`3` comes after"),
            ("+1 0 3 1 -1", "FORCE is `-1`"),
            ("+-1 0 3", "MEMCG is `-1`"),
            ("++1 0 3", "MEMCG is `+1`"),
            ("+1 4294967296 3", "NODE is `4294967296`"),
            ("+1 0 +3", "GENERATION is `+3`"),
            ("é", "begins with neither"),
            ("", "has no command"),
            ("\n", "has no command"),
        ] {
            let error = LruGenWrite::read(text).unwrap_err();
            assert_eq!(error.errno, Errno::Einval, "{text}");
            assert!(error.message.contains(why), "{text}: {}", error.message);
        }
    }
}
