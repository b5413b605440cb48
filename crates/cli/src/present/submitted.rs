//! Submitted jobs, accounts of tenants and use of nodes, as tables.

use rackloom_control::submitted::{JobList, JobStatus, RankStatus};

use super::table::{Column, Table};
use super::units;

/// Formats a job as one line, and its failure and the logs of its processes in further lines.
pub(crate) fn job_line(job: &JobStatus) -> String {
    let mut text = format!("job {} of tenant {}: {}", job.job, job.tenant, job.state.name());
    if !job.ranks.is_empty() {
        text += &format!(" on {}", nodes(job));
    }
    if let Some(reason) = &job.reason {
        text += &format!("; {reason}");
    }
    if job.state.has_ended() {
        let logs = job.ranks.iter().filter_map(|rank| Some((rank, rank.log.as_ref()?)));
        for (rank, log) in logs {
            let end = rank.end.as_deref().unwrap_or("has not ended");
            text += &format!("\n  {}: {end}; output in {}", rank.node, log.display());
        }
    }
    text
}

/// Formats all tables.
pub(crate) fn job_list(list: &JobList) -> String {
    let tables = [jobs(list), tenants(list), Some(nodes_in_use(list))];
    tables.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// Formats the jobs and the accounts, if there are jobs.
pub(crate) fn jobs_and_tenants(list: &JobList) -> Option<String> {
    let tables: Vec<_> = [jobs(list), tenants(list)].into_iter().flatten().collect();
    (!tables.is_empty()).then(|| tables.join("\n\n"))
}

fn nodes(job: &JobStatus) -> String {
    job.ranks.iter().map(|rank| rank.node.as_str()).collect::<Vec<_>>().join(" ")
}

fn jobs(list: &JobList) -> Option<String> {
    let mut table = Table::new(&[
        Column::Right("job"),
        Column::Right("tenant"),
        Column::Left("state"),
        Column::Left("nodes"),
        Column::Right("time"),
        Column::Right("bytes"),
        Column::Right("memory at most"),
        Column::Right("of"),
        Column::Left("program"),
        Column::Left("reason"),
    ]);
    for job in &list.jobs {
        let sum = |value: fn(&RankStatus) -> u64| job.ranks.iter().map(value).fold(0, u64::saturating_add);
        let time =
            job.started_ns.zip(job.ended_ns).map(|(start, end)| units::time(end.saturating_sub(start)));
        let nodes = if job.ranks.is_empty() { format!("{} nodes", job.count) } else { nodes(job) };
        let high = job.ranks.iter().map(|rank| rank.memory_high_bytes).max().unwrap_or(0);
        table.row([
            job.job.to_string(),
            job.tenant.to_string(),
            job.state.name().to_owned(),
            nodes,
            time.unwrap_or_else(|| "-".to_owned()),
            units::bytes(sum(|rank| rank.bytes)),
            units::bytes(high),
            job.memory_bytes.map_or_else(|| "-".to_owned(), units::bytes),
            job.command.first().cloned().unwrap_or_default(),
            job.reason.clone().unwrap_or_default(),
        ]);
    }
    (!list.jobs.is_empty()).then(|| table.render())
}

fn tenants(list: &JobList) -> Option<String> {
    let mut table = Table::new(&[
        Column::Left("account of tenant"),
        Column::Right("jobs"),
        Column::Right("node time"),
        Column::Right("bytes"),
        Column::Right("memory at most"),
    ]);
    for account in &list.tenants {
        table.row([
            account.tenant.to_string(),
            account.jobs.to_string(),
            units::time(account.node_time_ns),
            units::bytes(account.bytes),
            units::bytes(account.memory_high_bytes),
        ]);
    }
    (!list.tenants.is_empty()).then(|| table.render())
}

fn nodes_in_use(list: &JobList) -> String {
    let mut table = Table::new(&[Column::Left("node"), Column::Right("tenant"), Column::Left("use")]);
    for node in &list.nodes {
        let state = node.job.map_or_else(|| node.state.clone(), |job| format!("job {job}"));
        table.row([node.name.clone(), node.tenant.to_string(), state]);
    }
    table.render()
}
