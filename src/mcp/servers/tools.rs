//! The tools that a server offers, as runs see them.

use std::collections::BTreeSet;

use rmcp::model::Tool;

use crate::agent::ExternalTool;

/// Maximum number of tools of one server.
pub(super) const MOST: usize = 128;

/// Maximum number of characters of a tool's description.
const LONGEST: usize = 8 * 1024;

/// Maximum size of the schema of a tool's arguments, in bytes of JSON.
const LARGEST_SCHEMA: usize = 64 * 1024;

/// A tool under the name that runs use.
#[derive(Clone, Debug)]
pub(super) struct ListedTool {
    /// The server's name of the tool.
    pub real_name: String,
    pub tool: ExternalTool,
}

/// Selects the tools of a server's list to offer. Skips, and logs, those that no client can show: a second tool with
/// the same name, arguments that are too large, and all beyond [`MOST`].
pub(super) fn listed(server: &str, tools: Vec<Tool>) -> Vec<ListedTool> {
    let mut names = BTreeSet::new();
    let mut listed = Vec::new();
    let left_out = |tool: &str, why: &str| tracing::warn!(server, tool, why, "a tool of an MCP server is left out");
    for tool in tools {
        let name = shown_name(&tool.name);
        let size = serde_json::to_string(&tool.input_schema).map_or(usize::MAX, |text| text.len());
        if listed.len() == MOST {
            left_out(&name, "there are more than can be offered");
            break;
        } else if name.is_empty() || name.len() > 64 {
            left_out(&name, "its name has more than 64 letters, or none");
        } else if size > LARGEST_SCHEMA {
            left_out(&name, "the description of its arguments is too large");
        } else if !names.insert(name.clone()) {
            left_out(&name, "another one has its name");
        } else {
            let description = tool.description.unwrap_or_default().chars().take(LONGEST).collect();
            listed.push(ListedTool {
                real_name: tool.name.into_owned(),
                tool: ExternalTool { name, description, schema: tool.input_schema },
            });
        }
    }
    listed
}

/// Returns the client's form of a name: characters other than ASCII letters, digits, `_` and `-` become `_`.
fn shown_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn what_cannot_be_shown_is_left_out() {
        let schema = |size: usize| Arc::new(Map::from_iter([("x".to_owned(), json!("y".repeat(size)))]));
        let tool = |name: &str, size: usize| Tool::new(name.to_owned(), "z".repeat(9000), schema(size));
        let mut tools = vec![
            tool("list.events", 1),
            tool("list events", 1),
            tool("", 1),
            tool("large", 70_000),
            tool(&"n".repeat(65), 1),
        ];
        tools.extend((0..200).map(|n| tool(&format!("t{n}"), 1)));
        let listed = listed("calendar", tools);
        assert_eq!(listed.len(), MOST);
        assert_eq!((&*listed[0].tool.name, &*listed[0].real_name), ("list_events", "list.events"));
        assert_eq!(listed[1].tool.name, "t0");
        assert_eq!(listed[0].tool.description.len(), LONGEST);
    }
}
