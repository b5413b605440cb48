//! `rackloom job`: jobs on a rack that is up.

use std::path::Path;

use rackloom_control::submitted::{JobState, JobStatus, Submission};
use rackloom_runtime::standing::StandingRack;
use serde::Serialize;

use crate::arguments::{
    AddNodeArguments, CancelArguments, JobArguments, JobCommand, ListArguments, Output, SubmitArguments,
};
use crate::exit::Exit;
use crate::failure::{Failure, cannot_print};
use crate::standing::{only, only_by_option};
use crate::{present, reporting};

pub(crate) fn run(arguments: &JobArguments) -> Result<Exit, Failure> {
    match &arguments.command {
        JobCommand::Submit(arguments) => submit(arguments),
        JobCommand::List(arguments) => list(arguments),
        JobCommand::Cancel(arguments) => cancel(arguments),
        JobCommand::AddNode(arguments) => add_node(arguments),
    }
}

fn submit(arguments: &SubmitArguments) -> Result<Exit, Failure> {
    let rack = only_by_option(arguments.rack.as_deref())?;
    let job = rack.submit(submission(arguments)?)?;
    let status = if arguments.wait { Some(rack.wait_for_job(job)?) } else { find(&rack, job)? };
    let Some(status) = status else {
        return Err(Failure::bad_input(format!("rack {} has forgotten job {job}", rack.name())));
    };
    if arguments.json {
        print_json(&status)?;
    } else {
        print(&format!("rack {}: {}", rack.name(), present::job_line(&status)))?;
    }
    let has_failed = status.state.has_ended() && status.state != JobState::Passed;
    Ok(if has_failed { Exit::Fail } else { Exit::Pass })
}

fn find(rack: &StandingRack, job: u64) -> Result<Option<JobStatus>, Failure> {
    Ok(rack.jobs()?.jobs.into_iter().find(|found| found.job == job))
}

fn submission(arguments: &SubmitArguments) -> Result<Submission, Failure> {
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|error| Failure::bad_input(error.to_string()).at_path(path))
    };
    let directory = std::env::current_dir()
        .map_err(|error| Failure::could_not_start("cannot find the working directory", error))?;
    let (program, rest) = arguments
        .program
        .split_first()
        .ok_or_else(|| Failure::bad_input("there is no program").hint("write it after `--`"))?;
    Ok(Submission {
        program: program.clone(),
        arguments: rest.to_vec(),
        directory,
        environment: arguments.env.iter().cloned().collect(),
        nodes: arguments.nodes.clone(),
        count: arguments.count,
        tenant: arguments.tenant,
        memory_bytes: arguments.memory,
        time_max_ns: arguments.time,
        output: arguments.output.as_deref().map(absolute).transpose()?,
    })
}

fn list(arguments: &ListArguments) -> Result<Exit, Failure> {
    let rack = only(arguments.name.as_deref())?;
    let list = rack.jobs()?;
    if arguments.json {
        print_json(&list)?;
    } else {
        print(&format!("rack {}\n\n{}", rack.name(), present::job_list(&list)))?;
    }
    Ok(Exit::Pass)
}

fn cancel(arguments: &CancelArguments) -> Result<Exit, Failure> {
    let rack = only_by_option(arguments.rack.as_deref())?;
    rack.cancel_job(arguments.job)?;
    let ended =
        if arguments.wait { Some(rack.wait_for_job(arguments.job)?) } else { find(&rack, arguments.job)? };
    let line =
        ended.map_or_else(|| format!("job {} is cancelled", arguments.job), |job| present::job_line(&job));
    print(&format!("rack {}: {line}", rack.name()))?;
    Ok(Exit::Pass)
}

fn add_node(arguments: &AddNodeArguments) -> Result<Exit, Failure> {
    let rack = only_by_option(arguments.rack.as_deref())?;
    rack.add_node(&arguments.node)?;
    print(&format!("rack {}: the next jobs can use node {}", rack.name(), arguments.node))?;
    Ok(Exit::Pass)
}

fn print(text: &str) -> Result<(), Failure> {
    reporting::print_text(&Output { json: None }, text)
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(cannot_print)?;
    reporting::print_data(&text)
}
