//! `rackloom check`: prints the resolved plan, or every mistake of the file.

use rackloom_control::source::Overrides;
use rackloom_runtime::machine::capacity;
use rackloom_runtime::request::work::RackRequest;

use crate::arguments::{CheckArguments, Output, SchemaOf};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{present, reporting};

/// Returns the schema of a type that is written as JSON, derived from the type.
fn written_schema<T: schemars::JsonSchema>(title: &str) -> serde_json::Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema.to_value()
}

/// Prints a JSON schema for editors and for programs that read reports.
pub(crate) fn schema(of: SchemaOf) -> Result<Exit, Failure> {
    let schema = match of {
        SchemaOf::Racks => rackloom_plan::schema(),
        SchemaOf::Faults => rackloom_plan::fault_schema(),
        SchemaOf::Report => written_schema::<rackloom_jobs::report::Report>("rackloom report"),
        SchemaOf::Campaign => written_schema::<crate::campaign::Summary>("rackloom campaign"),
        SchemaOf::Exhaustive => {
            written_schema::<crate::campaign::ExhaustiveResult>("rackloom campaign --exhaustive")
        }
        SchemaOf::Diff => written_schema::<rackloom_compare::Comparison>("rackloom diff"),
        SchemaOf::Recommend => written_schema::<crate::recommend::Recommendation>("rackloom recommend"),
    };
    reporting::print_data(&format!("{schema:#}"))?;
    Ok(Exit::Pass)
}

/// Prints the plan.
pub(crate) fn run(arguments: &CheckArguments) -> Result<Exit, Failure> {
    let overrides = Overrides { set: arguments.set.clone(), ..Overrides::default() };
    let plan = RackRequest::read(&arguments.file, &overrides)?.possible_work()?.plan;
    if let Some(warning) = capacity::warning(&plan) {
        reporting::print_to_stderr(&warning);
    }
    reporting::print_text(&Output { json: None }, &present::plan(&plan))?;
    Ok(Exit::Pass)
}
