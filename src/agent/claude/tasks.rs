//! The client's running tasks: agents, and commands that run beside the turn.
//!
//! Pure: it takes the client's messages about tasks and returns the running ones. The client reports a task that it
//! waits for like one in the background; only the latter outlive a `result`.
//! Seen with 2.1.197 (`task_*`) and 2.1.330 (`background_tasks_changed` as well).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The running tasks.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// The tasks by the client's id.
    running: BTreeMap<String, Task>,
    /// Whether the client is being ended. It then stops its tasks, and reports that they have ended.
    closing: bool,
}

#[derive(Debug)]
struct Task {
    what: String,
    /// Whether the client has listed it as a background task.
    listed: bool,
}

/// A message about tasks.
#[derive(Debug)]
pub(super) enum TaskEvent {
    /// A task has begun.
    Started(ReportedTask),
    /// A task has ended, and the model is notified of it. `completed` says that it ended by itself.
    Ended { id: String, completed: bool },
    /// The list of all background tasks.
    Background(Vec<ReportedTask>),
}

/// The client's description of a task.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReportedTask {
    pub task_id: String,
    /// The task's name, given by the model.
    pub description: String,
}

/// Parses a `system` message; `None` if it does not concern the start or the end of a task.
pub(super) fn read(subtype: &str, message: &mut Value) -> Option<TaskEvent> {
    let mut take = |field: &str| message.get_mut(field).map(Value::take);
    match subtype {
        "task_started" => serde_json::from_value(message.take()).ok().map(TaskEvent::Started),
        "task_notification" => {
            let completed = take("status").is_none_or(|status| status == "completed");
            Some(TaskEvent::Ended { id: take("task_id")?.as_str()?.to_owned(), completed })
        }
        "background_tasks_changed" => serde_json::from_value(take("tasks")?).ok().map(TaskEvent::Background),
        _ => None,
    }
}

impl Tasks {
    /// Applies a message.
    pub(super) fn apply(&mut self, news: TaskEvent) {
        match news {
            TaskEvent::Started(task) => {
                self.running.entry(task.task_id).or_insert(Task { what: task.description, listed: false });
            }
            TaskEvent::Ended { id, completed } if completed || !self.closing => {
                self.running.remove(&id);
            }
            TaskEvent::Ended { .. } => {}
            TaskEvent::Background(all) => {
                let named = |id: &String| all.iter().any(|task| task.task_id == *id);
                self.running.retain(|id, task| self.closing || !task.listed || named(id));
                for task in all {
                    self.running.entry(task.task_id).or_insert(Task { what: task.description, listed: true }).listed =
                        true;
                }
            }
        }
    }

    /// Records that the client is being ended: from now on only a completed task has ended by itself.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// Returns whether any task is running.
    pub(super) fn any(&self) -> bool {
        !self.running.is_empty()
    }

    /// Returns the names of the running tasks: `` `look at the mail`, `build` ``.
    pub(super) fn names(&self) -> String {
        let names: Vec<String> = self.running.values().map(|task| format!("`{}`", task.what)).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_is_going_until_it_is_said_to_have_ended() {
        let mut tasks = Tasks::default();
        let mut after = |subtype: &str, mut message: Value| {
            read(subtype, &mut message).into_iter().for_each(|news| tasks.apply(news));
            tasks.names()
        };
        let started = |id: &str| json!({"task_id": id, "description": format!("the {id}")});
        let listed = |ids: &[&str]| json!({"tasks": ids.iter().map(|id| started(id)).collect::<Vec<_>>()});
        assert_eq!(after("task_started", started("a")), "`the a`");
        assert_eq!(after("task_updated", json!({"task_id": "a", "patch": {"status": "completed"}})), "`the a`");
        assert_eq!(after("task_notification", json!({"task_id": "a", "status": "completed"})), "");
        // The list comes before the message of a task's start, and after that of its end.
        assert_eq!(after("background_tasks_changed", listed(&["b"])), "`the b`");
        assert_eq!(after("task_started", started("b")), "`the b`");
        assert_eq!(after("task_started", started("waited-for")), "`the b`, `the waited-for`");
        assert_eq!(after("background_tasks_changed", listed(&["c"])), "`the c`, `the waited-for`");
        assert_eq!(after("background_tasks_changed", listed(&[])), "`the waited-for`");
        assert_eq!(after("task_notification", json!({"task_id": "waited-for"})), "");
        assert_eq!(after("task_notification", json!({"task_id": "unknown"})), "");
        assert_eq!(after("background_tasks_changed", json!({"tasks": "?"})), "");
    }

    #[test]
    fn what_a_client_stops_at_its_own_end_came_to_none() {
        let mut tasks = Tasks::default();
        tasks.apply(TaskEvent::Background(
            ["a", "b", "c"].map(|id| ReportedTask { task_id: id.into(), description: id.into() }).into(),
        ));
        tasks.close();
        for (id, status) in [("a", "completed"), ("b", "stopped")] {
            let mut message = json!({"task_id": id, "status": status});
            tasks.apply(read("task_notification", &mut message).unwrap());
        }
        tasks.apply(TaskEvent::Background(vec![]));
        assert_eq!(tasks.names(), "`b`, `c`");
    }
}
