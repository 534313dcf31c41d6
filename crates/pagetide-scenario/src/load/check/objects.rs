//! The object mixes that a scenario names, and the caches of all of them.

use super::object_mix::parse;
use crate::diagnostic::Diagnostic;
use crate::load::loader::SCENARIO_BYTES_MAX;
use crate::load::named_files::read_text;
use crate::load::span::{clip, ProblemSink, Spanned, SpannedProblem};
use crate::model::object_mix::{KernelCache, ObjectMix};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The mistakes in a mix, each with a hint if there is one.
type Complaints = Vec<(String, Option<String>)>;

/// The mixes read so far. A mix is read once; its mistakes are reported wherever it is named.
#[derive(Debug, Default)]
pub(crate) struct Mixes {
    read: Vec<(PathBuf, Result<Arc<ObjectMix>, Complaints>)>,
    /// Each cache once, with the first mix that names it.
    caches: Vec<(KernelCache, String)>,
}

impl Mixes {
    /// The caches of all mixes, in the order in which they were read.
    pub(super) fn into_caches(self) -> Vec<KernelCache> {
        self.caches.into_iter().map(|(cache, _)| cache).collect()
    }

    /// Names of the caches of all mixes.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.caches.iter().map(|(cache, _)| cache.name.as_str())
    }

    /// Some mix could not be read, so an unknown cache is not reported.
    pub(super) fn is_incomplete(&self) -> bool {
        self.read.iter().any(|(_, mix)| mix.is_err())
    }

    pub(super) fn load(
        &mut self,
        path: &Spanned<String>,
        sink: &mut ProblemSink,
    ) -> Option<Arc<ObjectMix>> {
        let full = sink.path(path);
        let index = self.read.iter().position(|(known, _)| *known == full);
        let index = index.unwrap_or_else(|| {
            let mix = read(&full).and_then(|mix| self.join(mix, &path.value));
            self.read.push((full, mix));
            self.read.len() - 1
        });
        match &self.read[index].1 {
            Ok(mix) => Some(Arc::clone(mix)),
            Err(complaints) => {
                for (message, hint) in complaints {
                    let message = format!("object mix `{}`: {message}", clip(&path.value));
                    let (span, hint) = (path.span, hint.clone());
                    sink.push(SpannedProblem { span, message, hint, also: None });
                }
                None
            }
        }
    }

    /// Adds the caches of a mix to those of the other mixes.
    fn join(&mut self, mix: ObjectMix, path: &str) -> Result<Arc<ObjectMix>, Complaints> {
        let mut complaints = Complaints::new();
        for cache in mix.caches() {
            let known = self.caches.iter().find(|(known, _)| known.name == cache.name);
            let Some((known, first)) = known else {
                self.caches.push((cache, path.to_owned()));
                continue;
            };
            if *known != cache {
                let show = |cache: &KernelCache| {
                    let not = if cache.reclaimable { "" } else { "not " };
                    format!("{} bytes, {not}reclaimable", cache.object_size)
                };
                let message = format!(
                    "objects of `{}` have {}; in `{}`, {}",
                    clip(&cache.name),
                    show(&cache),
                    clip(first),
                    show(known)
                );
                complaints.push((message, Some("use mixes recorded on the same kernel".into())));
            }
        }
        if complaints.is_empty() {
            Ok(Arc::new(mix))
        } else {
            Err(complaints)
        }
    }
}

fn read(path: &Path) -> Result<ObjectMix, Complaints> {
    let doubt = "is this an object mix?";
    let text = read_text(path, SCENARIO_BYTES_MAX, doubt).map_err(|problem| vec![problem])?;
    parse(&path.display().to_string(), &text)
        .map_err(|mistakes| mistakes.iter().map(complaint).collect())
}

/// A mistake in a mix, reworded for a message at a position of the scenario.
fn complaint(mistake: &Diagnostic) -> (String, Option<String>) {
    let Diagnostic { line, column, text, message, hint, .. } = mistake;
    let message = match (line, text.as_str()) {
        (0, _) => message.clone(),
        (_, "") => format!("line {line}, column {column}: {message}"),
        _ => format!("line {line}, column {column}, `{}`: {message}", clip(text)),
    };
    (message, hint.clone())
}
