//! `[machine.costs]`: what was measured of the machine, if somebody has asked for that.

use super::page::Page;
use pagetide_scenario::costs::Price;

/// Prices with what there is to say about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredCosts {
    /// Paragraphs above them.
    pub comments: Vec<String>,
    /// Nanoseconds, with a remark.
    pub prices: Vec<(Price, u64, String)>,
}

/// Writes the table.
pub(super) fn write(page: &mut Page, costs: &MeasuredCosts) {
    page.line("");
    costs.comments.iter().for_each(|comment| page.comment(comment));
    page.line("[machine.costs]");
    for (price, ns, remark) in &costs.prices {
        page.line(&format!("{} = \"{ns}ns\" # {remark}", price.name()));
    }
}
