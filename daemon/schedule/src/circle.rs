use std::collections::{HashMap, HashSet};

use ow_model::TaskName;

/// That `task` has an `after` trigger on `after`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AfterEdge {
    pub task: TaskName,
    pub after: TaskName,
}

/// Returns a circle of `after` triggers, if there is one: each task comes after the next, the last is the first again.
#[must_use]
pub fn circle(edges: &[AfterEdge]) -> Option<Vec<TaskName>> {
    let mut following: HashMap<&TaskName, Vec<&TaskName>> = HashMap::new();
    for edge in edges {
        following.entry(&edge.task).or_default().push(&edge.after);
    }
    let mut cleared: HashSet<&TaskName> = HashSet::new();
    for edge in edges {
        // The tasks from the start to here, each with how many of its edges have been followed. Kept by hand, since a
        // long chain of tasks must not overflow the stack.
        let mut path: Vec<(&TaskName, usize)> = vec![(&edge.task, 0)];
        while let Some((task, followed)) = path.last_mut() {
            let task = *task;
            let next = following.get(task).and_then(|next| next.get(*followed)).copied();
            *followed += 1;
            match next {
                None => {
                    cleared.insert(task);
                    path.pop();
                }
                Some(next) => {
                    if let Some(start) = path.iter().position(|(on_path, _)| *on_path == next) {
                        let round = path[start..].iter().map(|(task, _)| *task).chain([next]);
                        return Some(round.cloned().collect());
                    }
                    if !cleared.contains(next) {
                        path.push((next, 0));
                    }
                }
            }
        }
    }
    None
}
