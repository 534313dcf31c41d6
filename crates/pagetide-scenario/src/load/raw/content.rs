//! The contents of tasks' pages, as far as a compressor notices: the key `content`.
//!
//! Linux has the bytes. The core draws the content of each page ([`ContentMix`]).

use crate::load::decode::{table, Decode, Percent};
use crate::load::span::{ProblemSink, Spanned};
use crate::load::tree::{TomlNode, TomlValue};
use crate::load::units;
use pagetide_core::swap::content::ContentMix;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

/// Bytes that a compressed size is stated in.
const WHOLE: u32 = 4096;

table! {
    /// Contents of the pages of anonymous memory. Each page has its content for good, drawn with
    /// the run's seed. Pages that are none of these compress to various sizes.
    ContentTable as "Content" of "the content" {
        /// Pages of zeroes (default 14%).
        zero: Spanned<Percent>,
        /// Pages filled with another word (default 3%).
        same: Spanned<Percent>,
        /// Pages that no algorithm compresses (default 6%).
        incompressible: Spanned<Percent>,
        /// Mean ratio at which lzo-rle compresses the other pages (default 2.7).
        ratio: Spanned<CompressionRatio>,
    }
}

impl ContentTable {
    /// The mix; a key that is left out has its value of `others`.
    pub(crate) fn check(&self, others: ContentMix, sink: &mut ProblemSink) -> ContentMix {
        let per_mille = |share: &Option<Spanned<Percent>>, other: u16| {
            share.as_ref().map_or(other, |share| 10 * share.value.0 as u16)
        };
        let ratio = self.ratio.as_ref().map(|ratio| ratio.value);
        let mix = ContentMix {
            zero: per_mille(&self.zero, others.zero),
            same: per_mille(&self.same, others.same),
            incompressible: per_mille(&self.incompressible, others.incompressible),
            mean_size: ratio.map_or(others.mean_size, CompressionRatio::mean_size),
        };
        let sum = mix.zero + mix.same + mix.incompressible;
        if sum > 1000 {
            let hint = "a share that is left out has its default; write, for example, same = 0";
            let message = format!("the shares of the content are {}% together", sum / 10);
            sink.hinted(self.at, message, hint);
            return others;
        }
        mix
    }
}

/// Size of a page divided by its compressed size, in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompressionRatio(u32);

/// Largest ratio.
const RATIO_MAX: u32 = 50;

impl CompressionRatio {
    /// Bytes of a compressed page of 4096.
    fn mean_size(self) -> u16 {
        ContentMix::mean_before_limit((WHOLE * 100 / self.0) as u16)
    }
}

impl Decode for CompressionRatio {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let parsed = match &node.value {
            TomlValue::Float(text) => units::parse_hundredths(text),
            TomlValue::Integer(value) => units::parse_hundredths(&value.to_string()),
            _ => None,
        };
        match parsed {
            Some(value) if (100..=100 * RATIO_MAX).contains(&value) => {
                Some(CompressionRatio(value))
            }
            _ => {
                let hint = format!(
                    "write a number from 1 to {RATIO_MAX} with at most two decimals, for example 2.7"
                );
                sink.hinted(node.span, "not a valid ratio", hint);
                None
            }
        }
    }
}

impl JsonSchema for CompressionRatio {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "CompressionRatio".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 1, "maximum": RATIO_MAX })
    }
}
