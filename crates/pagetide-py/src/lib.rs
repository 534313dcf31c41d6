//! `pagetide._pagetide`: what `import pagetide` is made of, thin over the lab.
//!
//! A file each: [`scenario`] (a value that says what to run), [`run`] (runs without the interpreter's lock, which ^C
//! ends), [`result`] (what came out), [`table`] (columns that other libraries take without a copy), [`rows`] (runs as
//! bytes, for executors), [`errors`], [`values`] (Python's values as a scenario has them), [`command`];
//! [`machine`] (the memory manager alone), [`simulation`] (a run that is stepped), [`buffer`] (arrays without a copy).
//!
//! Invariant: no input ends in a panic; whoever waits for runs lets other threads of the program go on.

mod buffer;
mod catalogue;
mod command;
mod errors;
mod events;
mod find;
mod knobs;
mod machine;
mod mrc;
mod result;
mod rows;
mod run;
mod scenario;
mod simulation;
mod source;
mod table;
mod timeline;
mod values;

use pyo3::prelude::*;

/// The extension of the package `pagetide`.
#[pymodule(gil_used = false)]
fn _pagetide(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", pagetide_lab::VERSION)?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<result::Result>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<find::Answer>()?;
    module.add_class::<find::Search>()?;
    module.add_class::<run::Cancel>()?;
    module.add_class::<machine::Machine>()?;
    module.add_class::<machine::Mapping>()?;
    module.add_class::<machine::Task>()?;
    module.add_class::<simulation::Simulation>()?;
    module.add_function(wrap_pyfunction!(scenario::load, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::restore_scenario, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::experiments, module)?)?;
    module.add_function(wrap_pyfunction!(rows::perform, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::metrics, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::explain, module)?)?;
    module.add_function(wrap_pyfunction!(knobs::knob_values, module)?)?;
    module.add_function(wrap_pyfunction!(mrc::mrc, module)?)?;
    module.add_function(wrap_pyfunction!(command::main, module)?)?;
    Ok(())
}
