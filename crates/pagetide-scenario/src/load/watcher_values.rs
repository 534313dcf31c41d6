//! Values of watchers as the watched programs write them: quantities of Kubernetes, percentages of
//! systemd, and levels of earlyoom.

use super::decode::{expected, Decode};
use super::span::{clip, ProblemSink};
use super::tree::{TomlNode, TomlValue};
use super::units;
use pagetide_watcher::earlyoom::EarlyoomLevels;
use pagetide_watcher::kubelet::MemoryThreshold;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

/// Hundredths of a percent in a whole.
const WHOLE: u64 = 10_000;

/// A quantity of Kubernetes (`100Mi`, `1.5Gi`, `500M`), or a percentage (`10%`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KubeQuantity(pub(crate) MemoryThreshold);

const QUANTITY_FORMS: &str =
    "kubelet writes quantities like \"100Mi\", \"1.5Gi\" or \"500M\", and percentages like \"10%\"";

impl KubeQuantity {
    pub(crate) const fn bytes(bytes: u64) -> KubeQuantity {
        KubeQuantity(MemoryThreshold::Bytes(bytes))
    }

    fn parse(text: &str) -> Option<MemoryThreshold> {
        if let Some(percent) = text.strip_suffix('%') {
            let share = units::parse_parts(percent, 100).filter(|share| *share <= WHOLE)?;
            return Some(MemoryThreshold::Share(share));
        }
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let factor = match unit {
            "" => 1,
            "Ki" => 1 << 10,
            "Mi" => 1 << 20,
            "Gi" => 1 << 30,
            "Ti" => 1 << 40,
            "k" => 1_000,
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            "T" => 1_000_000_000_000,
            _ => return None,
        };
        units::parse_parts(number, factor).map(MemoryThreshold::Bytes)
    }
}

impl Decode for KubeQuantity {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        match &node.value {
            TomlValue::Text(text) => {
                let found = Self::parse(text);
                if found.is_none() {
                    let message = format!("`{}` is no quantity of Kubernetes", clip(text));
                    let binary = units::parse_size(text, sink.page_size).ok();
                    let hint = match binary.filter(|_| text.trim().ends_with("iB")) {
                        Some(_) => {
                            format!("leave out the B: \"{}\"", text.trim().trim_end_matches('B'))
                        }
                        None => QUANTITY_FORMS.to_owned(),
                    };
                    sink.hinted(node.span, message, hint);
                }
                found.map(KubeQuantity)
            }
            TomlValue::Integer(value) if *value >= 0 => {
                u64::try_from(*value).ok().map(KubeQuantity::bytes)
            }
            _ => {
                expected(node, "a quantity", QUANTITY_FORMS, sink);
                None
            }
        }
    }
}

impl JsonSchema for KubeQuantity {
    fn schema_name() -> Cow<'static, str> {
        "KubeQuantity".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = json_schema!({
            "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T|%)?$"
        });
        let integer = json_schema!({ "type": "integer", "minimum": 0 });
        json_schema!({ "description": QUANTITY_FORMS, "anyOf": [text, integer] })
    }
}

/// A percentage of systemd, in hundredths of a percent: `60%`, `12.5%`, `600‰`, `6000‱`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SystemdPercent(pub(crate) u64);

const PERMYRIAD_FORMS: &str =
    "systemd writes percentages like \"60%\" or \"12.5%\", from \"0%\" to \"100%\"";

impl SystemdPercent {
    fn parse(text: &str) -> Option<u64> {
        let parts =
            |suffix, factor| text.strip_suffix(suffix).map(|it| units::parse_parts(it, factor));
        let found = parts('%', 100).or_else(|| parts('‰', 10)).or_else(|| parts('‱', 1))?;
        found.filter(|value| *value <= WHOLE)
    }
}

impl Decode for SystemdPercent {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        if let TomlValue::Integer(value) = &node.value {
            let message = "a percentage of systemd needs its sign";
            sink.hinted(node.span, message, format!("write \"{value}%\""));
            return None;
        }
        let text = String::decode(node, sink)?;
        let found = Self::parse(&text);
        if found.is_none() {
            let message = format!("`{}` is no percentage of systemd", clip(&text));
            sink.hinted(node.span, message, PERMYRIAD_FORMS);
        }
        found.map(SystemdPercent)
    }
}

impl JsonSchema for SystemdPercent {
    fn schema_name() -> Cow<'static, str> {
        "SystemdPercent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": PERMYRIAD_FORMS,
            "type": "string",
            "pattern": "^[0-9]+(\\.[0-9]+)?[%‰‱]$"
        })
    }
}

/// The argument of earlyoom's `-m` and `-s`: percent for SIGTERM and for SIGKILL, in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EarlyoomPercents {
    pub(crate) term: u64,
    pub(crate) kill: u64,
}

const EARLYOOM_FORMS: &str =
    "earlyoom takes percent without a sign: 10, or \"10,5\" for SIGTERM and SIGKILL";

impl EarlyoomPercents {
    /// The default of earlyoom: 10 % and half of it.
    pub(crate) const DEFAULT: EarlyoomPercents = EarlyoomPercents { term: 1000, kill: 500 };

    /// `parse_term_kill_tuple`: without the second number, it is half of the first.
    fn parse(text: &str) -> Option<EarlyoomPercents> {
        let (term, kill) = match text.split_once(',') {
            Some((term, kill)) => (term, Some(kill)),
            None => (text, None),
        };
        let number = |text: &str| units::parse_parts(text.trim(), 100);
        let term = number(term)?;
        let kill = kill.map_or(Some(term / 2), number)?;
        // A limit for SIGTERM below that for SIGKILL is raised to it, with a warning.
        Some(EarlyoomPercents { term: term.max(kill), kill })
    }
}

impl Decode for EarlyoomPercents {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let text = match &node.value {
            TomlValue::Text(text) | TomlValue::Float(text) => text.clone(),
            TomlValue::Integer(value) => value.to_string(),
            _ => {
                expected(node, "a percentage", EARLYOOM_FORMS, sink);
                return None;
            }
        };
        let Some(found) = Self::parse(&text) else {
            let message = format!("`{}` is no percentage of earlyoom", clip(&text));
            sink.hinted(node.span, message, EARLYOOM_FORMS);
            return None;
        };
        let refused = match found.term {
            0 => Some((
                "both limits are 0",
                "write 10, for example; enabled = false switches it off",
            )),
            1..=WHOLE => None,
            _ => Some(("more than 100 percent", "write at most 100")),
        };
        if let Some((why, hint)) = refused {
            let message = format!("earlyoom refuses `{}`: {why}", clip(&text));
            sink.hinted(node.span, message, hint);
            return None;
        }
        Some(found)
    }
}

impl JsonSchema for EarlyoomPercents {
    fn schema_name() -> Cow<'static, str> {
        "EarlyoomPercents".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = json_schema!({ "type": "string", "pattern": "^[0-9.]+(,[0-9.]+)?$" });
        let number = json_schema!({ "type": "number", "minimum": 0, "maximum": 100 });
        json_schema!({ "description": EARLYOOM_FORMS, "anyOf": [text, number] })
    }
}

/// The levels for SIGTERM and for SIGKILL.
pub(crate) fn earlyoom_levels(
    mem: EarlyoomPercents,
    swap: EarlyoomPercents,
) -> [EarlyoomLevels; 2] {
    [
        EarlyoomLevels { mem: mem.term, swap: swap.term },
        EarlyoomLevels { mem: mem.kill, swap: swap.kill },
    ]
}

/// A part of a whole in millionths: a number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fraction(pub(crate) u64);

impl Decode for Fraction {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let parsed = match &node.value {
            TomlValue::Float(text) => units::parse_parts(text, 1_000_000),
            TomlValue::Integer(value) => units::parse_parts(&value.to_string(), 1_000_000),
            _ => None,
        };
        let found = parsed.filter(|part| *part <= 1_000_000);
        if found.is_none() {
            let hint = "write a number from 0 to 1 with at most six decimals, for example 0.01";
            sink.hinted(node.span, "not a valid part of a whole", hint);
        }
        found.map(Fraction)
    }
}

impl JsonSchema for Fraction {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Fraction".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_its_own_percentages() {
        let quantity = KubeQuantity::parse;
        assert_eq!(quantity("100Mi"), Some(MemoryThreshold::Bytes(100 << 20)));
        assert_eq!(quantity("1.5Gi"), Some(MemoryThreshold::Bytes(3 << 29)));
        assert_eq!(quantity("500M"), Some(MemoryThreshold::Bytes(500_000_000)));
        assert_eq!(quantity("12.5%"), Some(MemoryThreshold::Share(1250)));
        for wrong in ["", "100MB", "100MiB", "-1", "101%", "x", "10 %", "%", "1.2.3Mi"] {
            assert_eq!(quantity(wrong), None, "{wrong}");
        }
        assert_eq!(SystemdPercent::parse("60%"), Some(6000));
        assert_eq!(SystemdPercent::parse("12.25%"), Some(1225));
        assert_eq!(SystemdPercent::parse("5‱"), Some(5));
        for wrong in ["60", "101%", "-1%", "60 %", "0.001%"] {
            assert_eq!(SystemdPercent::parse(wrong), None, "{wrong}");
        }
        assert_eq!(EarlyoomPercents::parse("10"), Some(EarlyoomPercents::DEFAULT));
        assert_eq!(
            EarlyoomPercents::parse("4,2.5"),
            Some(EarlyoomPercents { term: 400, kill: 250 })
        );
        let raised = EarlyoomPercents { term: 1000, kill: 1000 };
        assert_eq!(EarlyoomPercents::parse("5,10"), Some(raised));
        assert_eq!(EarlyoomPercents::parse("10%"), None);
    }
}
