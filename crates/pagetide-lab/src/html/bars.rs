//! Amounts as bars in a table, readable without colour, without a script, and aloud.

use maud::{html, Markup};

#[derive(Clone, Debug)]
pub struct BarTable {
    pub caption: String,
    /// Headings of names and values.
    pub head: [String; 2],
    pub bars: Vec<Bar>,
}

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Bar {
    pub name: String,
    /// The printed value.
    pub text: String,
    /// Parts of the bar: share of the whole width (0 to 1), and tooltip.
    pub parts: Vec<(f64, String)>,
}

impl BarTable {
    pub fn markup(&self) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label=(self.caption) {
                table.bars {
                    caption { span.hold { (self.caption) } }
                    thead {
                        tr {
                            th scope="col" { (self.head[0]) }
                            th scope="col" { (self.head[1]) }
                            th aria-hidden="true" {}
                        }
                    }
                    tbody {
                        @for bar in &self.bars {
                            tr {
                                th scope="row" { (bar.name) }
                                td.number { (bar.text) }
                                td aria-hidden="true" {
                                    div.bar {
                                        @for (number, (share, what)) in bar.parts.iter().enumerate() {
                                            span.{ "c" (number % super::look::NR_COLOURS) }
                                                style={ "width:" (percent(*share)) "%" } title=(what) {}
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A share in per cent, from 0 to 100, with one decimal.
fn percent(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    format!("{:.1}", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_their_values_in_words() {
        let bar = Bar {
            name: "DMA <32>".to_owned(),
            text: "12 MiB".to_owned(),
            parts: vec![
                (0.25, "free".to_owned()),
                (f64::NAN, "odd".to_owned()),
                (7.0, "x".to_owned()),
            ],
        };
        let head = ["zone".to_owned(), "free".to_owned()];
        let text =
            BarTable { caption: "zones".to_owned(), head, bars: vec![bar] }.markup().into_string();
        for wanted in ["DMA &lt;32&gt;", "12 MiB", "width:25.0%", "width:0.0%", "width:100.0%"] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }
}
