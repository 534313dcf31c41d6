//! `pagetide._pagetide`: the extension behind `import pagetide`, a thin layer over the lab.
//!
//! One file each: [`scenario`] (what to run), [`run`] (runs without the interpreter's lock, which
//! ^C can end), [`result`] (their results), [`table`] (columns that other libraries read without a
//! copy), [`rows`] (runs as bytes, for executors), [`sweep`] (grids and their stores), [`errors`],
//! [`values`] (conversion of Python values), [`command`]; [`machine`] (the memory manager alone),
//! [`simulation`] (a stepped run), [`buffer`] (arrays without a copy).
//!
//! Invariants: no input causes a panic. A thread that waits for runs does not block other Python
//! threads.

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
mod sweep;
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
    module.add_class::<sweep::SweepRuns>()?;
    module.add_class::<machine::Machine>()?;
    module.add_class::<machine::Mapping>()?;
    module.add_class::<machine::Task>()?;
    module.add_class::<simulation::Simulation>()?;
    module.add_function(wrap_pyfunction!(scenario::load, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::restore_scenario, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::experiments, module)?)?;
    module.add_function(wrap_pyfunction!(rows::perform, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::read_rows, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::metrics, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::explain, module)?)?;
    module.add_function(wrap_pyfunction!(run::seeds, module)?)?;
    module.add_function(wrap_pyfunction!(mrc::mrc, module)?)?;
    module.add_function(wrap_pyfunction!(command::main, module)?)?;
    Ok(())
}
