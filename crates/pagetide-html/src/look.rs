//! Colours and dashes that distinguish lines and dots. Dashes are for colour-blind readers and grey
//! prints.
//!
//! The colours are those of Okabe and Ito, which differ for all kinds of colour vision.
//! `report.css` has them by number, for light and dark backgrounds.

use serde::Serialize;

pub const NR_COLOURS: usize = 7;

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineDash {
    /// ______
    Solid,
    /// __ __ __
    Long,
    /// . . . .
    Dots,
    /// __ . __ .
    LongDot,
}

impl LineDash {
    pub const ALL: [LineDash; 4] =
        [LineDash::Solid, LineDash::Long, LineDash::Dots, LineDash::LongDot];
}

/// Colour and dash of line `number`. The first 28 differ in at least one, neighbours in both,
/// because the numbers of colours and dashes are coprime.
pub fn of(number: usize) -> (usize, LineDash) {
    (number % NR_COLOURS, LineDash::ALL[number % LineDash::ALL.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_differ() {
        let looks: Vec<(usize, LineDash)> = (0..28).map(of).collect();
        for (at, look) in looks.iter().enumerate() {
            assert!(!looks[at + 1..].contains(look), "{at}");
        }
        assert!(looks.windows(2).all(|pair| pair[0].0 != pair[1].0 && pair[0].1 != pair[1].1));
    }
}
