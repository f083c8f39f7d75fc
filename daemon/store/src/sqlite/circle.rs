use std::collections::HashSet;

use ow_model::{TaskName, TaskSpec, Trigger};
use ow_schedule::{AfterEdge, circle};

use super::view::View;
use crate::StoreError;

/// The circle of `after` that saving this definition would close, as `a after b after a`.
///
/// Only what the definition comes after, directly or not, is read: the rest is known to have no circle.
pub(crate) fn closed_by(view: &View<'_>, spec: &TaskSpec) -> Result<Option<String>, StoreError> {
    let mut edges: Vec<AfterEdge> =
        sources(spec).map(|after| AfterEdge { task: spec.name.clone(), after: after.clone() }).collect();
    let mut seen: HashSet<TaskName> = HashSet::from([spec.name.clone()]);
    let mut next = 0;
    while next < edges.len() {
        let task = edges[next].after.clone();
        next += 1;
        if !seen.insert(task.clone()) {
            continue;
        }
        let sources: Vec<String> = view.column(
            "SELECT DISTINCT e.source FROM tasks t JOIN after_edges e ON e.task = t.id
             WHERE t.name = ?1 AND t.state <> 'deleted'",
            [task.as_str()],
        )?;
        let sources = sources.iter().filter_map(|name| name.parse().ok());
        edges.extend(sources.map(|after| AfterEdge { task: task.clone(), after }));
    }
    let names = circle(&edges);
    Ok(names.map(|names| names.iter().map(TaskName::as_str).collect::<Vec<_>>().join(" after ")))
}

fn sources(spec: &TaskSpec) -> impl Iterator<Item = &TaskName> {
    spec.triggers.iter().filter_map(|trigger| match trigger {
        Trigger::After { task, .. } => Some(task),
        _ => None,
    })
}
