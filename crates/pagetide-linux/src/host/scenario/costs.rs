//! Writes `[machine.costs]`: the measured operation costs, if available.

use super::page::ScenarioText;
use pagetide_scenario::model::costs::Price;

/// Costs with comments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredCosts {
    /// Paragraphs above the table.
    pub comments: Vec<String>,
    /// Nanoseconds, with a comment.
    pub prices: Vec<(Price, u64, String)>,
}

/// Writes the table.
pub(super) fn write(page: &mut ScenarioText, costs: &MeasuredCosts) {
    page.line("");
    costs.comments.iter().for_each(|comment| page.comment(comment));
    page.line("[machine.costs]");
    for (price, ns, remark) in &costs.prices {
        page.line(&format!("{} = \"{ns}ns\" # {remark}", price.name()));
    }
}
