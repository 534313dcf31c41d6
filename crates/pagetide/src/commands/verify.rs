//! `pagetide verify`: runs a scenario on a real kernel and in the simulator and compares the
//! counters.

use crate::cli::{AccelChoice, CostChoice, KernelArgs, OutputFormat, VerifyArgs};
use crate::error::{CliError, ExitStatus};
use crate::output_file::OutputFile;
use crate::policy::Plugins;
use crate::printer::Printer;
use crate::progress::{lasting, Spinner};
use crate::{command_line, interrupt, names_of, scenario_file};
use pagetide_html::run::PageSource;
use pagetide_lab::world::Simulator;
use pagetide_linux::qemu::Accelerator;
use pagetide_linux::session::SessionOptions;
use pagetide_scenario::load::Overrides;
use pagetide_verify::ask::{
    compare_with_kernel as ask, CostSource, KernelSide, VerifyError, VerifyProgress, ANOTHER_TEXT,
};
use pagetide_verify::{csv, json, table};
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Default number of runs on each side: one boot and three short runs take a few minutes.
const REPEATS: u32 = 3;

/// Runs both sides and prints a comparison of the finished runs.
pub fn verify(
    args: VerifyArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let overrides = Overrides {
        sets: args.scenario.set,
        variants: args.variant,
        repeats: Some(args.repeats.unwrap_or(REPEATS)),
        seed: args.seed,
        added: args.scenario.add_variant,
        plugins: names_of(plugins),
        ..Overrides::default()
    };
    if args.scenario.file.as_os_str() == "-" {
        return Err(CliError::bad_input(
            "verify cannot read its scenario from standard input",
            "give the name of a file, because the kernel's side reads it again",
        ));
    }
    let loaded = scenario_file::load(&args.scenario.file, &overrides)?;
    let inputs = loaded.inputs(&args.scenario.file);
    let page = args.html.as_deref().map(|file| OutputFile::page(file, &inputs)).transpose()?;
    let mut plan = loaded.plan(overrides.sets)?;
    plan.added = overrides.added;
    let cancel = interrupt::flag();
    let options = options(&args.kernel, &cancel);
    let side = match &args.reference {
        Some(dir) => KernelSide::Recorded { dir, file: &loaded.file },
        None => KernelSide::Boot {
            file: &loaded.file,
            options: &options,
            record: args.kernel.record.as_deref(),
            boots: args.kernel.boots,
        },
    };
    let line = Spinner::new();
    let simulator = Simulator { plugins: plugins.clone(), ..Simulator::default() };
    let boots = args.kernel.boots.get().min(plan.scenario.repeats) as usize;
    let kernels = plan.scenario.variants.len() * boots;
    let clock = Mutex::new(VerifyClock::new(kernels, args.jobs));
    let tell = |asking: VerifyProgress<'_>| {
        let left = clock.lock().unwrap_or_else(PoisonError::into_inner).expected(&asking);
        if let Some(left) = left {
            line.print(&format!("the verification takes about {} more", lasting(left)));
        }
        line.say(words(&asking));
    };
    let costs = match args.costs {
        CostChoice::Measured => CostSource::Measured,
        CostChoice::Sourced => CostSource::Sourced,
    };
    let verified = ask(&plan, &side, &simulator, costs, args.jobs, &cancel, &tell);
    drop(line);

    if let Some(comparison) = &verified.comparison {
        let sides = &verified.sides;
        printer.data(match args.format {
            OutputFormat::Table => table::render(comparison, sides, args.all),
            OutputFormat::Json => json::render(comparison, sides),
            OutputFormat::Csv => csv::render(comparison),
        })?;
        if let Some(file) = &page {
            let source = PageSource { scenario: loaded.text(), command: command_line() };
            let page = pagetide_html::verify::page(comparison, sides, args.all, &source);
            file.write_page(&page, printer)?;
        }
    }
    // Print notes about a stale reference here: CSV output cannot contain them.
    for note in &verified.sides.notes {
        if note.contains(ANOTHER_TEXT) {
            printer.warning(note);
        } else if args.format == OutputFormat::Csv {
            printer.note(note);
        }
    }
    let mut status = ExitStatus::Success;
    for error in &verified.errors {
        let error = of_verify(error);
        status = status.max(error.status());
        printer.error(&error);
    }
    if verified.cancelled {
        printer.warning(match verified.comparison {
            Some(_) => "interrupted: the result above has the finished runs only",
            None => "interrupted before any run finished",
        });
        return Ok(ExitStatus::Interrupted);
    }
    Ok(status)
}

fn options(args: &KernelArgs, cancel: &Arc<AtomicBool>) -> SessionOptions {
    SessionOptions {
        kernel: args.kernel.clone().into(),
        guest: args.guest.clone(),
        accelerator: match args.accel {
            AccelChoice::Emulation => Accelerator::Emulation,
            AccelChoice::Kvm => Accelerator::Kvm,
        },
        time_limit: Duration::from_secs(args.timeout),
        keep: args.keep.clone(),
        cancel: Some(Arc::clone(cancel)),
    }
}

/// A verification that takes at least so many seconds gets an estimate.
const LONG: f64 = 60.0;

/// Estimates the time of a verification by its first boot and its first run.
struct VerifyClock {
    kernels: usize,
    jobs: usize,
    booting: Option<Instant>,
    /// The time of a boot, and the start of the first run.
    running: Option<(Duration, Instant)>,
    is_told: bool,
}

impl VerifyClock {
    fn new(kernels: usize, jobs: NonZeroUsize) -> VerifyClock {
        VerifyClock { kernels, jobs: jobs.get(), booting: None, running: None, is_told: false }
    }

    /// The seconds left, once, after the first run. The simulator's runs are short.
    fn expected(&mut self, asking: &VerifyProgress<'_>) -> Option<f64> {
        match asking {
            VerifyProgress::Booting(_) => drop(self.booting.get_or_insert_with(Instant::now)),
            VerifyProgress::Running(_, 0, _) => {
                let boot = self.booting.map(|began| began.elapsed())?;
                self.running.get_or_insert((boot, Instant::now()));
            }
            VerifyProgress::Running(_, _, all) if !self.is_told => {
                self.is_told = true;
                let (boot, began) = self.running?;
                let turns = all.div_ceil(self.jobs.min(*all).max(1)) as f64;
                let runs = began.elapsed().as_secs_f64() * turns;
                let each = boot.as_secs_f64() + runs;
                let left = each * self.kernels as f64 - boot.as_secs_f64() - runs / turns;
                return Some(left).filter(|left| *left >= LONG);
            }
            _ => {}
        }
        None
    }
}

fn words(asking: &VerifyProgress<'_>) -> String {
    match asking {
        VerifyProgress::Measuring(cpus) => {
            format!("measuring operation costs on Linux with {cpus} CPUs")
        }
        VerifyProgress::Booting(variant) => format!("{variant}: booting the kernel"),
        VerifyProgress::Running(variant, done, all) => {
            format!("{variant}: {done} of {all} runs on Linux")
        }
        VerifyProgress::Simulating(variant) => format!("{variant}: simulating"),
    }
}

fn of_verify(error: &VerifyError) -> CliError {
    match error {
        VerifyError::Pagetide { place, failure } => CliError::of_run(place, failure),
        VerifyError::Linux { error: linux, .. } => CliError::of_linux(error.to_string(), linux),
    }
}
