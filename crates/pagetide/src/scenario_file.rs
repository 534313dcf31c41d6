//! Finds and loads the scenario that an argument names: a file, or a shipped experiment.

use crate::error::CliError;
use crate::printer::Printer;
use crate::shipped::{self, ShippedFiles};
use pagetide_lab::plan::RunPlan;
use pagetide_scenario::diagnostic::{Diagnostics, Style};
use pagetide_scenario::load::{self, Overrides};
use pagetide_scenario::model::Scenario;
use pagetide_scenario::names::near::nearest_few;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A checked scenario, with the files that it needs during its use.
#[derive(Debug)]
pub struct LoadedScenario {
    pub scenario: Scenario,
    /// The scenario's file. Another process can load it during the lifetime of this value.
    pub file: PathBuf,
    /// The text, if it came from standard input; then there is no file.
    text: Option<String>,
    /// The files of a shipped experiment; `None` for the user's own file.
    _shipped: Option<ShippedFiles>,
}

impl LoadedScenario {
    /// Loads the same scenario with other changes, in this process.
    pub fn reload(&self, overrides: &Overrides) -> Result<Scenario, Diagnostics> {
        match &self.text {
            Some(text) => load::load_str(STDIN, text, Path::new("."), overrides),
            None => load::load(&self.file, overrides),
        }
    }

    /// The text of the scenario and of its bases, for display; empty if the file is not readable
    /// now.
    pub fn text(&self) -> String {
        let text = match &self.text {
            Some(text) => text.clone(),
            None => std::fs::read_to_string(&self.file).unwrap_or_default(),
        };
        with_bases(text, &self.scenario)
    }

    /// The directory where paths in the scenario start.
    pub fn directory(&self) -> &Path {
        match self.text {
            Some(_) => Path::new("."),
            None => self.file.parent().unwrap_or(Path::new("")),
        }
    }

    /// The scenario of the first chosen variant as one text, without bases and variants.
    pub fn resolve(&self, overrides: &Overrides) -> Result<String, CliError> {
        let text = match &self.text {
            Some(text) => text.clone(),
            None => std::fs::read_to_string(&self.file).map_err(|error| {
                let shown = self.file.display();
                CliError::Failure(format!("cannot read {shown} again: {error}"))
            })?,
        };
        let name = self.file.display().to_string();
        let resolved = load::resolve(&name, &text, self.directory(), overrides, &[]);
        resolved.map(|table| table.to_string()).map_err(refused)
    }

    /// The files that no output may overwrite; the scenario was loaded from `argument`.
    pub fn inputs<'a>(&'a self, argument: &'a Path) -> Vec<&'a Path> {
        let bases = self.scenario.bases.iter().map(PathBuf::as_path);
        [argument, &self.file].into_iter().chain(bases).collect()
    }

    /// The runs of the scenario; `sets` are the changes of the command line.
    pub fn plan(&self, sets: Vec<(String, String)>) -> Result<RunPlan, CliError> {
        let mut plan = RunPlan::new(self.scenario.clone())
            .map_err(|error| CliError::bad_input(error.to_string(), error.hint()))?;
        plan.overrides = sets;
        Ok(plan)
    }
}

/// A scenario's text, followed by the texts of its bases.
pub fn with_bases(mut text: String, scenario: &Scenario) -> String {
    for base in &scenario.bases {
        let name = base.file_name().unwrap_or_default().to_string_lossy();
        text += &format!("\n# The base {name}:\n\n");
        text += &std::fs::read_to_string(base).unwrap_or_default();
    }
    text
}

/// Name of standard input in messages.
const STDIN: &str = "<stdin>";

/// Loads the scenario on standard input. Paths in it are relative to the current directory.
fn load_stdin(overrides: &Overrides) -> Result<LoadedScenario, CliError> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|error| {
        CliError::bad_input(
            format!("cannot read the scenario from standard input: {error}"),
            "`pagetide run -` expects a scenario file in UTF-8",
        )
    })?;
    let scenario = load::load_str(STDIN, &text, Path::new("."), overrides).map_err(refused)?;
    Ok(LoadedScenario { scenario, file: PathBuf::from("-"), text: Some(text), _shipped: None })
}

/// Loads the scenario that `argument` names: a file, a shipped experiment, or standard input for
/// `-`. A file has precedence over a shipped experiment of the same name.
pub fn load(argument: &Path, overrides: &Overrides) -> Result<LoadedScenario, CliError> {
    warn_of_repeats(&overrides.sets);
    if argument == Path::new("-") {
        return load_stdin(overrides);
    }
    if !argument.exists() {
        if let Some(name) = argument.to_str().and_then(shipped::find) {
            return load_shipped(name, overrides);
        }
        let shown = argument.display().to_string();
        let mut known = scenarios_beside(argument);
        known.extend(shipped::names().map(str::to_owned));
        let near = nearest_few(&shown, known.iter().map(String::as_str), 1);
        let hint = match near.first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`pagetide list` names the shipped experiments".to_owned(),
        };
        let message = format!("there is no file and no shipped experiment `{shown}`");
        return Err(CliError::bad_input(message, hint));
    }
    let scenario = load::load(argument, overrides).map_err(refused)?;
    Ok(LoadedScenario { scenario, file: argument.to_owned(), text: None, _shipped: None })
}

/// Warns of two values for one key, of which the last counts.
fn warn_of_repeats(sets: &[(String, String)]) {
    let name = |key: &str| key.strip_prefix("sysctl.").unwrap_or(key).to_owned();
    for (at, (key, value)) in sets.iter().enumerate() {
        let before = sets[..at].iter().rev().find(|(other, _)| name(other) == name(key));
        if let Some((_, before)) = before {
            let key = name(key);
            Printer::new().warning(&format!("{key} is set twice: {value} counts, not {before}"));
        }
    }
}

/// The scenario files in the directory of a path, as a user would name them.
fn scenarios_beside(path: &Path) -> Vec<String> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let directory = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let named =
        |entry: std::fs::DirEntry| parent.join(entry.file_name()).to_str().map(str::to_owned);
    names.filter_map(named).filter(|name| name.ends_with(".toml")).collect()
}

/// The shipped files on disk.
pub fn unpacked() -> Result<ShippedFiles, CliError> {
    ShippedFiles::unpack().map_err(|error| {
        CliError::Failure(format!("cannot write the shipped experiments to disk: {error}"))
    })
}

/// Loads the experiment `name` from `files`.
pub fn load_unpacked(
    files: &ShippedFiles,
    name: &str,
    overrides: &Overrides,
) -> Result<Scenario, CliError> {
    let path = format!("experiments/{name}.toml");
    load::load_str(&path, shipped::text(name), &files.directory_of(name), overrides)
        .map_err(refused)
}

fn load_shipped(name: &str, overrides: &Overrides) -> Result<LoadedScenario, CliError> {
    let files = unpacked()?;
    let scenario = load_unpacked(&files, name, overrides)?;
    Ok(LoadedScenario { scenario, file: files.path_of(name), text: None, _shipped: Some(files) })
}

/// Mistakes in a scenario, or in the changes of one.
pub fn refused(diagnostics: Diagnostics) -> CliError {
    CliError::Scenario(diagnostics.render(Style::Coloured))
}
