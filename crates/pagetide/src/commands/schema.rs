//! `pagetide schema`: the JSON Schema of scenario files (for editors) and of outputs (for
//! programs).

use crate::cli::{SchemaArgs, SchemaOf};
use crate::error::{CliError, ExitStatus};
use crate::names_of;
use crate::policy::Plugins;
use crate::printer::Printer;
use pagetide_lab::explain::Topic;
use pagetide_lab::find::json::FindOutput;
use pagetide_lab::json::{self, InspectOutput, RunOutput};
use pagetide_lab::mrc::CurveOutput;
use pagetide_lab::pathology::output::FuzzOutput;
use pagetide_scenario::metric::catalogue::MetricEntry;
use pagetide_scenario::schema;
use pagetide_verify::json::VerifyOutput;

pub fn schema(
    args: &SchemaArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let schema = match args.of {
        None => schema::schema(&names_of(plugins)),
        Some(SchemaOf::Run) => json::schema::<RunOutput<'_>>("pagetide run --format json"),
        Some(SchemaOf::Find) => json::schema::<FindOutput<'_>>("pagetide find --emit json"),
        Some(SchemaOf::Fuzz) => json::schema::<FuzzOutput<'_>>("pagetide fuzz --format json"),
        Some(SchemaOf::Verify) => json::schema::<VerifyOutput<'_>>("pagetide verify --format json"),
        Some(SchemaOf::Mrc) => json::schema::<CurveOutput<'_>>("pagetide mrc --format json"),
        Some(SchemaOf::Inspect) => {
            json::schema::<InspectOutput<'_>>("pagetide inspect --format json")
        }
        Some(SchemaOf::Metrics) => {
            json::schema::<Vec<MetricEntry>>("pagetide metrics --format json")
        }
        Some(SchemaOf::Explain) => json::schema::<Vec<Topic>>("pagetide explain --format json"),
    };
    printer.data(format!("{schema:#}\n"))?;
    Ok(ExitStatus::Success)
}
