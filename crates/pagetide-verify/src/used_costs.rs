//! The cost model of the simulator, for the heading of a comparison: measured costs, costs that the
//! scenario states, and the number of CPUs that they are for.

use crate::costs::FittedCosts;
use pagetide_scenario::model::costs::{MachineCosts, Price};

/// Source of the simulator's costs on a machine with `cpus` CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedCosts {
    cpus: u16,
    /// `None`: the sourced table.
    text: Option<String>,
}

impl UsedCosts {
    pub fn new(cpus: u16, fitted: Option<&FittedCosts>, stated: &MachineCosts) -> UsedCosts {
        let nr = stated
            .iter()
            .filter(|(price, _)| fitted.is_none_or(|it| it.costs.get(*price).is_none()));
        let stated = match nr.count() {
            0 => None,
            nr => Some(format!("{nr} of {} costs stated", Price::COUNT)),
        };
        let texts: Vec<String> =
            fitted.map(FittedCosts::describe).into_iter().chain(stated).collect();
        UsedCosts { cpus, text: Some(texts.join("; ")).filter(|text| !text.is_empty()) }
    }
}

/// Sources of the costs as text; per number of CPUs if they differ.
pub fn describe_costs(used: &[UsedCosts]) -> String {
    let say = |it: &UsedCosts| it.text.clone().unwrap_or_else(|| "the sourced table".to_owned());
    if let [first, rest @ ..] = used {
        if rest.iter().all(|it| it.text == first.text) {
            return say(first);
        }
    }
    let of_cpus = |it: &UsedCosts| {
        let cpus = if it.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", it.cpus) };
        format!("{cpus}: {}", say(it))
    };
    used.iter().map(of_cpus).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(prices: &[(Price, u64)]) -> MachineCosts {
        let mut costs = MachineCosts::default();
        prices.iter().for_each(|&(price, ns)| costs.set(price, ns));
        costs
    }

    #[test]
    fn the_heading_names_the_source_of_costs() {
        let (none, stated) =
            (MachineCosts::default(), costs(&[(Price::Fault, 7), (Price::Pte, 1)]));
        let fitted = FittedCosts { costs: costs(&[(Price::Fault, 300)]), rows: Vec::new() };
        let said = |all: &[(u16, Option<&FittedCosts>, &MachineCosts)]| {
            let used =
                all.iter().map(|(cpus, fitted, stated)| UsedCosts::new(*cpus, *fitted, stated));
            describe_costs(&used.collect::<Vec<_>>())
        };
        assert_eq!(said(&[]), "", "nothing ran");
        assert_eq!(said(&[(1, None, &none), (2, None, &none)]), "the sourced table");
        assert_eq!(said(&[(1, None, &stated)]), format!("2 of {} costs stated", Price::COUNT));
        let measured = fitted.describe();
        assert_eq!(said(&[(2, Some(&fitted), &none)]), measured);
        let rest = format!("{measured}; 1 of {} costs stated", Price::COUNT);
        assert_eq!(said(&[(2, Some(&fitted), &stated)]), rest, "one of them was measured");
        assert_eq!(
            said(&[(1, None, &none), (2, Some(&fitted), &none)]),
            format!("1 CPU: the sourced table; 2 CPUs: {measured}")
        );
    }
}
