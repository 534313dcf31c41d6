//! Loads scenario files: TOML text becomes a checked [`Scenario`], or a list of all mistakes.
//!
//! Steps: `tree` (TOML with source positions) -> `base` (merged into the scenario that it extends)
//! -> changes of variants and of the command line, applied to the tree -> `raw` (typed tables, one
//! declaration each) -> `check` (the model). Every variant goes through all steps, so a change is
//! checked as if it were in the file. Every step reports its mistakes to a `span::ProblemSink` and
//! goes on. A mistake of all variants is reported once.

mod added;
mod base;
pub(crate) mod check;
pub(crate) mod decode;
mod loader;
mod named_files;
mod plugins;
pub(crate) mod raw;
mod removed;
mod resolve;
pub(crate) mod span;
pub(crate) mod table;
mod trace_file;
pub(crate) mod tree;
pub(crate) mod units;
mod variants;
pub(crate) mod watcher_values;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Scenario, Variant};
pub use added::AddedVariant;
pub(crate) use base::BASE_KEYS;
pub use check::{criterion, may_have_metric, metric_key, object_mix};
use loader::Loader;
pub use loader::SCENARIO_BYTES_MAX;
pub use named_files::NamedFiles;
use pagetide_core::units::page_size::PageSize;
pub use plugins::PluginNames;
pub(crate) use plugins::BUILT_IN;
pub use resolve::resolve;
use span::{ProblemSink, SourceSpan, SpannedProblem};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use variants::{VariantColumn, VariantPlan};

const SETS_MAX: usize = 1000;
const DEFAULT_REPEATS: u32 = 5;
const DEFAULT_SEED: u64 = 1;

/// Changes made on the command line, and the environment of the loader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--set KEY=VALUE`: paths as in a variant's `set`. They override the variants.
    pub sets: Vec<(String, String)>,
    /// `--variant NAME`: only these variants, in this order; all if empty.
    pub variants: Vec<String>,
    /// `--repeats N`.
    pub repeats: Option<u32>,
    /// `--seed N`.
    pub seed: Option<u64>,
    /// `--add-variant NAME:KEY=VALUE,...`: added after the variants of the file.
    pub added: Vec<AddedVariant>,
    /// Not from the command line: policies that the program registers.
    pub plugins: PluginNames,
    /// Not from the command line: files that are not where the scenario says.
    pub files: NamedFiles,
}

/// The parts of a path as in `--set`, split at dots; a part may be quoted.
pub fn path_parts(path: &str) -> Vec<String> {
    tree::TreePath { text: path, span: SourceSpan::default() }.parts()
}

/// Loads a scenario file. Relative paths in it start at its directory.
///
/// # Errors
/// All mistakes in the file and in `overrides`.
pub fn load(path: &Path, overrides: &Overrides) -> Result<Scenario, Diagnostics> {
    let shown = path.display().to_string();
    let text = read(path).map_err(|(message, hint)| {
        Diagnostics::new(vec![Diagnostic::of_file(shown.clone(), message, hint)], 0)
    })?;
    let base_dir = path.parent().unwrap_or(Path::new(""));
    load_str(&shown, &text, base_dir, overrides)
}

fn read(path: &Path) -> Result<String, (String, Option<String>)> {
    let cannot = |error: std::io::Error| (format!("cannot read the scenario: {error}"), None);
    let file = std::fs::File::open(path).map_err(cannot)?;
    let mut bytes = Vec::new();
    file.take(SCENARIO_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(cannot)?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        let message =
            format!("not UTF-8 text: invalid byte at offset {} (line {line})", valid.len());
        (message, Some("is this a scenario file?".into()))
    })
}

/// Parses a size as written in scenario files, such as `64MiB`; returns bytes.
///
/// # Errors
/// The message and the hint, if the text is not a size.
pub fn size(text: &str) -> Result<u64, (String, String)> {
    units::parse_size(text, PageSize::default()).map_err(|error| (error.message, error.hint))
}

/// Loads a scenario from `text`. Messages call it `name`; its stem is the default name of the
/// scenario. Relative paths in it, also that of a base, start at `base_dir`.
///
/// # Errors
/// All mistakes in the text and in `overrides`.
pub fn load_str(
    name: &str,
    text: &str,
    base_dir: &Path,
    overrides: &Overrides,
) -> Result<Scenario, Diagnostics> {
    let mut loader = Loader::new(name, text, base_dir);
    match loader.load(text, overrides) {
        Some(scenario) if loader.problems.is_empty() => Ok(scenario),
        _ => Err(loader.diagnostics()),
    }
}

impl Loader {
    fn load(&mut self, text: &str, overrides: &Overrides) -> Option<Scenario> {
        let mut sink = ProblemSink::default();
        sink.files = overrides.files.clone();
        if text.len() as u64 > SCENARIO_BYTES_MAX {
            let message =
                format!("the text is larger than {SCENARIO_BYTES_MAX} bytes: not a scenario");
            sink.error(SourceSpan::default(), message);
            self.absorb(sink);
            return None;
        }
        let root = tree::parse(text, 0, &mut sink);
        let Some(mut root) = root.and_then(|root| self.extend(root, &mut sink)) else {
            self.absorb(sink);
            return None;
        };
        self.add_variants(&mut root, &overrides.added, &mut sink);
        let sets = self.read_sets(&overrides.sets, &mut sink);
        let plan = variants::plan(root, &sets, &mut sink);
        let chosen = self.choose(&plan, &overrides.variants, &mut sink);
        if overrides.repeats == Some(0) {
            let span = self.option("--repeats", "0");
            sink.hinted(span, "0 repeats: there would be no runs", "give 1 or more");
        }
        let mut columns = self.check_columns(&plan, overrides, &mut sink);
        let scenario = columns.first().map(|first| {
            let raw = &first.raw;
            let names: Vec<&str> = plan.columns.iter().map(|c| c.name.as_str()).collect();
            let setups: Vec<_> = columns.iter().map(|of| (names[of.index], &of.setup)).collect();
            let (rows, reference, expectations) =
                check::check_report(raw, &setups, &names, &mut sink);
            let name = self.scenario_name(raw, &mut sink);
            let text =
                |text: &Option<span::Spanned<String>>| text.as_ref().map(|at| at.value.clone());
            let repeats = raw.repeats.as_ref().map_or(DEFAULT_REPEATS, |at| at.value.0 as u32);
            let seed = raw.seed.as_ref().map_or(DEFAULT_SEED, |at| at.value.0 as u64);
            Scenario {
                title: text(&raw.title).unwrap_or_else(|| name.clone()),
                description: text(&raw.description).unwrap_or_default(),
                name,
                bases: self.bases.clone(),
                repeats: overrides.repeats.unwrap_or(repeats),
                seed: overrides.seed.unwrap_or(seed),
                variants: Vec::new(),
                rows,
                reference,
                expectations,
                fuzz_knobs: check::fuzz_knobs(raw, &mut sink),
            }
        });
        self.absorb(sink);
        let mut scenario = scenario?;
        if columns.len() == plan.columns.len() {
            let mut setups: Vec<Option<crate::model::Setup>> =
                columns.drain(..).map(|column| Some(column.setup)).collect();
            scenario.variants = chosen
                .into_iter()
                .filter_map(|index| {
                    let column = &plan.columns[index];
                    let (name, sets) = (column.name.clone(), column.sets(&self.sources));
                    setups[index].take().map(|setup| Variant { name, sets, setup })
                })
                .collect();
        }
        Some(scenario)
    }

    /// Reads the arguments of `--set`; each becomes a source.
    fn read_sets(
        &mut self,
        sets: &[(String, String)],
        sink: &mut ProblemSink,
    ) -> Vec<variants::Set> {
        if sets.len() > SETS_MAX {
            let span = self.option("--set", "");
            sink.error(span, format!("more than {SETS_MAX} `--set` options"));
            return Vec::new();
        }
        let mut read = Vec::with_capacity(sets.len());
        for (key, value) in sets {
            let whole = self.option("--set", &format!("{key}={value}"));
            let key_end = u32::try_from(key.len()).unwrap_or(u32::MAX);
            let key_span = SourceSpan { end: key_end, ..whole };
            let value_span = SourceSpan { start: key_end.saturating_add(1), ..whole };
            if BASE_KEYS.contains(&path_parts(key)[0].as_str()) {
                let message = format!("`{}` cannot be set here", span::clip(key));
                sink.hinted(key_span, message, "write it in a scenario file");
                continue;
            }
            let node = tree::parse_value(value, value_span);
            read.push(variants::Set { path: key.clone(), span: key_span, node });
        }
        read
    }

    /// Indices of the selected variants, in the order of the command line.
    fn choose(
        &mut self,
        plan: &VariantPlan,
        wanted: &[String],
        sink: &mut ProblemSink,
    ) -> Vec<usize> {
        if wanted.is_empty() {
            return (0..plan.columns.len()).collect();
        }
        let names = || plan.columns.iter().map(|column| column.name.as_str());
        let mut chosen: Vec<usize> = Vec::new();
        for name in wanted {
            match names().position(|known| known == name) {
                Some(index) if chosen.contains(&index) => {}
                Some(index) => chosen.push(index),
                None => {
                    let hint = match sink.suggest(name, names()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("known: {}", span::list_names(names())),
                    };
                    let span = self.option("--variant", name);
                    let message = format!("there is no variant `{}`", span::clip(name));
                    sink.hinted(span, message, hint);
                }
            }
        }
        chosen
    }

    /// Reads and checks every variant. A mistake that all variants share is reported once.
    fn check_columns(
        &mut self,
        plan: &VariantPlan,
        overrides: &Overrides,
        sink: &mut ProblemSink,
    ) -> Vec<CheckedVariant> {
        let mut found: BTreeMap<SpannedProblem, Vec<usize>> = BTreeMap::new();
        let mut columns = Vec::new();
        for (index, column) in plan.columns.iter().enumerate() {
            let mut own = ProblemSink::default();
            let root = column.tree(plan, &mut own);
            own.page_size = raw::page_size(&root);
            own.plugins = overrides.plugins.clone();
            own.files = overrides.files.clone();
            own.directories = self.directories.clone();
            if let Some(raw) = raw::decode(&root, &mut own) {
                let setup = check::setup(&raw, root.span, &mut own);
                columns.push(CheckedVariant { index, raw, setup });
            }
            let (problems, omitted) = own.into_parts();
            self.omitted = self.omitted.max(omitted);
            for problem in problems {
                let of = found.entry(problem).or_default();
                if of.last() != Some(&index) {
                    of.push(index);
                }
            }
        }
        for (mut problem, of) in found {
            let is_own = |column: &VariantColumn| column.contains(problem.span);
            if of.len() < plan.columns.len() && !of.iter().all(|i| is_own(&plan.columns[*i])) {
                let names = of.iter().map(|index| plan.columns[*index].name.as_str());
                let message = format!("{} (variant {})", problem.message, span::list_names(names));
                problem.message = message;
            }
            sink.push(problem);
        }
        columns
    }

    /// The scenario's name: the key `name`, or the stem of the file name.
    fn scenario_name(&self, raw: &raw::ScenarioTable, sink: &mut ProblemSink) -> String {
        if let Some(name) = &raw.name {
            return name.value.0.clone();
        }
        let stem = Path::new(&self.sources[0].path).file_stem().and_then(|stem| stem.to_str());
        match stem {
            Some(stem) if decode::is_label(stem) => stem.to_owned(),
            _ if raw.bad.contains(&"name") => String::new(),
            _ => {
                let hint = "add name = \"my-scenario\": the file's name is not a valid name";
                sink.hinted(SourceSpan::default(), "the scenario has no name", hint);
                String::new()
            }
        }
    }
}

/// A decoded and checked variant.
struct CheckedVariant {
    /// Index of its column in the plan.
    index: usize,
    raw: raw::ScenarioTable,
    setup: crate::model::Setup,
}

#[cfg(test)]
mod tests;
