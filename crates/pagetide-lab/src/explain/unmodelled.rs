//! Topics of what Pagetide does not model.

use super::{Topic, TopicKind};
use pagetide_scenario::names::unmodelled::{UnmodelledFeature, ALL};

pub(super) fn all() -> impl Iterator<Item = Topic> {
    ALL.iter().map(|feature| Topic {
        instead: feature.instead.to_owned(),
        document: "docs/fidelity.md#what-it-does-not-model".to_owned(),
        ..Topic::new(TopicKind::NotModelled, feature.names[0], feature.about)
    })
}

/// The topic of a name of a feature.
pub(super) fn find<'a>(all: &'a [Topic], name: &str) -> Option<&'a Topic> {
    let feature = UnmodelledFeature::named(name)?;
    all.iter().find(|it| it.kind == TopicKind::NotModelled && it.name == feature.names[0])
}
