//! Indexed Job of Kubernetes: each index runs its share of the points. The directory of the sweep is a volume.

use super::order::Order;
use crate::arguments::{IMAGE, VOLUME_CLAIM};

/// Path of the directory in a container.
const DIRECTORY: &str = "/sweep";

/// Returns the job as YAML.
pub(super) fn job(order: &Order<'_>) -> String {
    let elements = order.elements();
    let at_once = order.options.jobs.map_or(elements, u64::from);
    let image = text(order.options.image.as_deref().unwrap_or(IMAGE));
    let claim = text(order.options.volume_claim.as_deref().unwrap_or(VOLUME_CLAIM));
    let command =
        text(&format!("exec rackloom sweep --share \"$JOB_COMPLETION_INDEX/{elements}\" --out {DIRECTORY}"));
    format!(
        "# Points of a sweep of rackloom, as an Indexed Job. Points with a result are not run again.\n\
         apiVersion: batch/v1\n\
         kind: Job\n\
         metadata:\n\
         \x20 generateName: rackloom-sweep-\n\
         spec:\n\
         \x20 completionMode: Indexed\n\
         \x20 completions: {elements}\n\
         \x20 parallelism: {at_once}\n\
         \x20 backoffLimitPerIndex: 1\n\
         \x20 template:\n\
         \x20   spec:\n\
         \x20     restartPolicy: Never\n\
         \x20     containers:\n\
         \x20       - name: sweep\n\
         \x20         image: {image}\n\
         \x20         command: [sh, -c, {command}]\n\
         \x20         volumeMounts:\n\
         \x20           - {{name: sweep, mountPath: {DIRECTORY}}}\n\
         \x20     volumes:\n\
         \x20       - name: sweep\n\
         \x20         persistentVolumeClaim: {{claimName: {claim}}}\n"
    )
}

/// Quotes a text for YAML, whose double-quoted form contains that of JSON.
fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
