//! A command for several jobs. Each is executed or refused separately, and the exit code shows whether any was refused.

use super::output::Output;
use crate::refusal::Refusal;

/// Executes the command for each item. With `--json`, combines the results into one list.
pub(super) fn execute_each<T>(
    items: Vec<T>,
    json: bool,
    output: &mut Output,
    mut act: impl FnMut(T, &mut Output) -> Result<(), Refusal>,
) {
    let mut documents = Vec::new();
    for item in items {
        let mut one = Output { stdout: String::new(), stderr: String::new(), exit: 0, ..output.clone() };
        if let Err(refusal) = act(item, &mut one) {
            one.fail(&refusal);
        }
        output.stderr.push_str(&one.stderr);
        output.exit = output.exit.max(one.exit);
        output.names_commands |= one.names_commands;
        match serde_json::from_str::<serde_json::Value>(&one.stdout) {
            Ok(document) if json => documents.push(document),
            _ => output.stdout.push_str(&one.stdout),
        }
    }
    if json {
        output.json(&documents);
    }
}
