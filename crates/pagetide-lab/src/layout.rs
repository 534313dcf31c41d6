//! Tables in plain text: numbers right-aligned, no boxes, no trailing blanks, so that a table can
//! be pasted into a mail.
//!
//! A cell has three separately aligned parts: value, spread, change. A table that is too wide
//! continues below with the labels repeated; below [`NARROW`] characters, long column names are
//! then folded.

/// One line of the table.
#[derive(Clone, Debug, Default)]
pub struct TextLine {
    pub label: String,
    pub unit: String,
    /// One per column.
    pub cells: Vec<TextCell>,
}

/// One value of a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextCell {
    /// `-` if missing.
    pub value: String,
    /// Its spread, or empty.
    pub spread: String,
    /// Change against the first column, or empty.
    pub change: String,
}

const GAP: &str = "   ";
/// Narrower pages are narrow, such as terminals of 80 characters.
pub const NARROW: usize = 100;
/// Characters of a line of a folded name, if its column is not wider.
const FOLDED: usize = 14;

/// Lays out `lines` under the column `names`, on a page of `width` characters.
pub fn render(names: &[&str], lines: &[TextLine], width: usize) -> String {
    blocks(names, lines, width).join("\n")
}

/// The blocks of the table, one below the other.
pub fn blocks(names: &[&str], lines: &[TextLine], width: usize) -> Vec<String> {
    let label = widest(lines.iter().map(|line| line.label.as_str()));
    let unit = widest(lines.iter().map(|line| line.unit.as_str()));
    let mut columns: Vec<Column> = names
        .iter()
        .enumerate()
        .map(|(i, name)| Column::new(name, lines.iter().filter_map(|line| line.cells.get(i))))
        .collect();

    let front = label + if unit > 0 { unit + 1 } else { 0 };
    let all: usize = columns.iter().map(|column| GAP.len() + column.width).sum();
    if width < NARROW && front + all > width {
        columns.iter_mut().for_each(Column::fold);
    }
    let mut blocks = Vec::new();
    let mut from = 0;
    while from < columns.len() {
        let mut to = from + 1;
        let mut used = front + GAP.len() + columns[from].width;
        while to < columns.len() && used + GAP.len() + columns[to].width <= width {
            used += GAP.len() + columns[to].width;
            to += 1;
        }
        blocks.push(block(&columns, from..to, lines, (label, unit), used));
        from = to;
    }
    blocks
}

fn block(
    columns: &[Column],
    range: std::ops::Range<usize>,
    lines: &[TextLine],
    (label, unit): (usize, usize),
    width: usize,
) -> String {
    let mut out = String::new();
    let mut push = |line: String| {
        out.push_str(line.trim_end());
        out.push('\n');
    };
    let front = |name: &str, symbol: &str| {
        if unit > 0 {
            format!("{name:<label$} {symbol:<unit$}")
        } else {
            format!("{name:<label$}")
        }
    };
    let height = columns[range.clone()].iter().map(|column| column.names.len()).max().unwrap_or(0);
    for at in 0..height {
        let mut head = front("", "");
        for column in &columns[range.clone()] {
            // Names are aligned to the bottom.
            let name = (at + column.names.len()).checked_sub(height);
            let name = name.map_or("", |at| column.names[at].as_str());
            head += &format!("{GAP}{name:>width$}", width = column.width);
        }
        push(head);
    }
    push("-".repeat(width));
    for line in lines {
        let mut text = front(&line.label, &line.unit);
        for (column, cell) in columns[range.clone()].iter().zip(&line.cells[range.clone()]) {
            text += GAP;
            text += &column.cell(cell);
        }
        push(text);
    }
    out
}

struct Column {
    /// Lines of the name.
    names: Vec<String>,
    /// Width of its cells.
    parts: usize,
    value: usize,
    spread: usize,
    change: usize,
    width: usize,
}

impl Column {
    fn new<'a>(name: &str, cells: impl Iterator<Item = &'a TextCell> + Clone) -> Column {
        let value = widest(cells.clone().map(|cell| cell.value.as_str()));
        let spread = widest(cells.clone().map(|cell| cell.spread.as_str()));
        let change = widest(cells.map(|cell| cell.change.as_str()));
        let parts = value
            + if spread > 0 { spread + PLUS_MINUS } else { 0 }
            + if change > 0 { change + 2 } else { 0 };
        let width = parts.max(name.chars().count());
        Column { names: vec![name.to_owned()], parts, value, spread, change, width }
    }

    /// Folds a long name, preferably after a punctuation character.
    fn fold(&mut self) {
        let most = self.parts.max(FOLDED);
        let mut names = Vec::new();
        let mut rest: Vec<char> = self.names.concat().chars().collect();
        while rest.len() > most {
            let sign = rest[..most].iter().rposition(|c| !c.is_alphanumeric());
            let at = sign.filter(|at| *at >= most / 2).map_or(most, |at| at + 1);
            names.push(rest.drain(..at).collect::<String>().trim().to_owned());
        }
        names.push(rest.into_iter().collect());
        self.width = widest(names.iter().map(String::as_str)).max(self.parts);
        self.names = names;
    }

    fn cell(&self, cell: &TextCell) -> String {
        let mut text = format!("{:>width$}", cell.value, width = self.value);
        if self.spread > 0 {
            let spread = self.spread;
            text += &match cell.spread.as_str() {
                "" => " ".repeat(spread + PLUS_MINUS),
                number => format!(" \u{b1} {number:>spread$}"),
            };
        }
        if self.change > 0 {
            text += &format!("  {:>width$}", cell.change, width = self.change);
        }
        format!("{text:>width$}", width = self.width)
    }
}

/// Characters of " ± ".
const PLUS_MINUS: usize = 3;

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(value: &str, spread: &str, change: &str) -> TextCell {
        TextCell { value: value.to_owned(), spread: spread.to_owned(), change: change.to_owned() }
    }

    fn line(label: &str, unit: &str, cells: Vec<TextCell>) -> TextLine {
        TextLine { label: label.to_owned(), unit: unit.to_owned(), cells }
    }

    #[test]
    fn parts_align_and_nothing_trails() {
        let lines = [
            line(
                "walltime",
                "ms",
                vec![cell("503.0", "12.1", ""), cell("364.0", "3.0", "-27.6%*")],
            ),
            line("allocstall", "", vec![cell("5", "1", ""), cell("-", "", "")]),
        ];
        let text = render(&["default", "case1"], &lines, 100);
        assert_eq!(
            text,
            "                     default                  case1\n\
             ---------------------------------------------------\n\
             walltime   ms   503.0 \u{b1} 12.1   364.0 \u{b1} 3.0  -27.6%*\n\
             allocstall          5 \u{b1}    1       -\n"
        );
    }

    #[test]
    fn long_names_are_folded_where_room_is_short() {
        let cells = vec![cell("1", "", ""), cell("2", "", "+100.0%"), cell("3", "", "+200.0%")];
        let names = ["a", "memory.low=620M+swap", "averyverylongnamewithoutsigns"];
        let lines = [line("row", "", cells)];
        let text = render(&names, &lines, 48);
        assert_eq!(
            text,
            "                        averyverylongn\n          \
             memory.low=   amewithoutsign\n      \
             a     620M+swap                s\n\
             --------------------------------------\n\
             row   1    2  +100.0%       3  +200.0%\n"
        );
        assert!(render(&names, &lines, 120).starts_with("      a   memory.low=620M+swap   avery"));
    }

    #[test]
    fn a_wide_table_continues_below() {
        let cells = vec![cell("1", "", ""), cell("2", "", "+100.0%"), cell("3", "", "+200.0%")];
        let text = render(&["a", "b", "c"], &[line("row", "", cells)], 24);
        let heads: Vec<&str> = text.lines().collect();
        assert_eq!(heads.len(), 7);
        assert!(heads[0].ends_with('b') && heads[4].ends_with('c') && heads[3].is_empty());
        assert!(text.lines().all(|line| line.chars().count() <= 24));
        assert_eq!(text.lines().filter(|line| line.starts_with("row")).count(), 2);
    }
}
