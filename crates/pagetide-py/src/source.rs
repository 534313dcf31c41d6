//! The origin of a scenario's text, and the directory of its relative paths.

use pagetide::shipped::{self, ShippedFiles};
use pagetide_scenario::diagnostic::Diagnostics;
use pagetide_scenario::load::{self, Overrides};
use pagetide_scenario::model::Scenario;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The text of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioSource {
    /// Name in messages; its stem is the default name of the scenario.
    pub name: String,
    pub text: String,
    /// Directory of relative paths.
    pub place: ScenarioBase,
}

/// The directory of a scenario's relative paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioBase {
    Directory(PathBuf),
    /// The directory of the shipped experiment of this name. The extension contains its files.
    Shipped(String),
}

impl ScenarioBase {
    /// A directory. Its name must be UTF-8, because other processes receive scenarios as text.
    pub fn of(directory: PathBuf) -> Result<ScenarioBase, SourceError> {
        if directory.to_str().is_some() {
            return Ok(ScenarioBase::Directory(directory));
        }
        let message = format!("the name of {} is not UTF-8", directory.display());
        Err(SourceError::Outside(io::Error::new(io::ErrorKind::InvalidInput, message)))
    }
}

/// A scenario, with the shipped files that it needs.
#[derive(Debug)]
pub struct SourceScenario {
    pub scenario: Scenario,
    _shipped: Option<Arc<ShippedFiles>>,
}

impl SourceScenario {
    /// The scenario. The files stay on disk while another scenario uses them.
    pub fn into_scenario(self) -> Scenario {
        self.scenario
    }
}

/// Why a scenario cannot be loaded.
#[derive(Debug)]
pub enum SourceError {
    Mistakes(Diagnostics),
    /// The shipped files cannot be written to disk.
    Outside(io::Error),
}

impl ScenarioSource {
    /// The source in a file.
    pub fn of_file(path: &Path) -> Result<ScenarioSource, SourceError> {
        let name = path.display().to_string();
        let text = std::fs::metadata(path)
            .ok()
            .filter(|it| it.is_file() && it.len() <= load::SCENARIO_BYTES_MAX)
            .and_then(|_| std::fs::read_to_string(path).ok());
        let text = match text {
            Some(text) => text,
            // Let the loader report the problem.
            None => match load::load(path, &Overrides::default()) {
                Err(mistakes) => return Err(SourceError::Mistakes(mistakes)),
                Ok(_) => std::fs::read_to_string(path).map_err(SourceError::Outside)?,
            },
        };
        let directory = path.parent().unwrap_or(Path::new(""));
        let directory = std::path::absolute(if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            directory
        });
        let place = ScenarioBase::of(directory.map_err(SourceError::Outside)?)?;
        Ok(ScenarioSource { name, text, place })
    }

    /// The source of the shipped experiment `name`.
    pub fn of_shipped(name: &'static str) -> ScenarioSource {
        ScenarioSource {
            name: format!("experiments/{name}.toml"),
            text: shipped::text(name).to_owned(),
            place: ScenarioBase::Shipped(name.to_owned()),
        }
    }

    /// Loads the scenario with these changes.
    pub fn load(&self, overrides: &Overrides) -> Result<SourceScenario, SourceError> {
        let (directory, shipped) = match &self.place {
            ScenarioBase::Directory(directory) => (directory.clone(), None),
            ScenarioBase::Shipped(name) => {
                let files = shipped_files().map_err(SourceError::Outside)?;
                (files.directory_of(name), Some(files))
            }
        };
        let scenario = load::load_str(&self.name, &self.text, &directory, overrides);
        let scenario = scenario.map_err(SourceError::Mistakes)?;
        Ok(SourceScenario { scenario, _shipped: shipped })
    }
}

/// The shipped files on disk, shared by all scenarios of this process that use them at the same
/// time.
fn shipped_files() -> io::Result<Arc<ShippedFiles>> {
    static THERE: Mutex<(u32, Weak<ShippedFiles>)> = Mutex::new((0, Weak::new()));
    let mut there = THERE.lock().unwrap_or_else(PoisonError::into_inner);
    // A forked process must not rely on its parent's files: the parent removes them.
    let this = std::process::id();
    if let Some(files) = there.1.upgrade().filter(|_| there.0 == this) {
        return Ok(files);
    }
    let files = Arc::new(ShippedFiles::unpack()?);
    *there = (this, Arc::downgrade(&files));
    Ok(files)
}
