//! A grid of values as a table: the larger a value, the stronger the background of its cell. Each
//! cell also prints its value, and a key shows the backgrounds of the least and the most.

use maud::{html, Markup};

/// Steps of the background (`report.css`).
const STEPS: usize = 8;

/// A grid.
#[derive(Clone, Debug)]
pub struct HeatMap {
    pub caption: String,
    /// Names of the column axis and of the row axis.
    pub axes: [String; 2],
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Name and cells of each row.
    pub rows: Vec<(String, Vec<HeatCell>)>,
}

#[derive(Clone, Debug)]
pub struct HeatCell {
    /// Selects the background.
    pub value: Option<f64>,
    /// The printed value.
    pub text: String,
}

impl HeatMap {
    pub fn markup(&self) -> Markup {
        let values = || {
            let cells = self.rows.iter().flat_map(|(_, cells)| cells);
            cells.filter_map(|cell| cell.value).filter(|value| value.is_finite())
        };
        let least = values().fold(f64::INFINITY, f64::min);
        let most = values().fold(f64::NEG_INFINITY, f64::max);
        html! {
            div.scroll tabindex="0" role="region" aria-label=(self.caption) {
                table.heat {
                    caption {
                        span.hold {
                            (self.caption)
                            @if most > least { (key()) }
                        }
                    }
                    thead {
                        tr {
                            th.axis { (self.axes[1]) " \u{2193} " (self.axes[0]) " \u{2192}" }
                            @for column in &self.columns { th scope="col" { (column) } }
                        }
                    }
                    tbody {
                        @for (name, cells) in &self.rows {
                            tr {
                                th scope="row" { (name) }
                                @for cell in cells {
                                    td.{ "h" (step(cell.value, least, most)) } { (cell.text) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The key: backgrounds in ascending order.
fn key() -> Markup {
    html! {
        span.steps aria-hidden="true" {
            "least "
            @for step in 0..STEPS { i.{ "h" (step) } {} }
            " most"
        }
    }
}

/// Background step of a value; `x` without one.
fn step(value: Option<f64>, least: f64, most: f64) -> String {
    match value.filter(|value| value.is_finite()) {
        None => "x".to_owned(),
        Some(value) if most > least => {
            let share = (value - least) / (most - least);
            ((share * (STEPS - 1) as f64).round() as usize).to_string()
        }
        Some(_) => "0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_shaded_between_least_and_most() {
        assert_eq!(step(Some(1.0), 1.0, 8.0), "0");
        assert_eq!(step(Some(8.0), 1.0, 8.0), "7");
        assert_eq!(step(Some(3.0), 3.0, 3.0), "0");
        assert_eq!(step(Some(f64::NAN), 1.0, 8.0), "x");
        assert_eq!(step(None, f64::INFINITY, f64::NEG_INFINITY), "x");
        let cell = |text: &str, value| HeatCell { value, text: text.to_owned() };
        let grid = HeatMap {
            caption: "p99".to_owned(),
            axes: ["swap".to_owned(), "memory".to_owned()],
            columns: vec!["<1>".to_owned()],
            rows: vec![("2".to_owned(), vec![cell("9 ms", Some(9.0)), cell("-", None)])],
        };
        let text = grid.markup().into_string();
        assert!(!text.contains("least"), "one value is neither: {text}");
        for wanted in ["&lt;1&gt;", "9 ms", "class=\"h0\"", "class=\"hx\""] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        let row = ("3".to_owned(), vec![cell("1 ms", Some(1.0)), cell("-", None)]);
        let two = HeatMap { rows: [grid.rows, vec![row]].concat(), ..grid }.markup().into_string();
        let [least, most] = ["least <i class=\"h0\">", "<i class=\"h7\"></i> most"];
        assert!(two.contains(least) && two.contains(most), "{two}");
    }
}
