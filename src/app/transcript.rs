//! Reads the client's own transcript of a run for the results of calls, which the journal does not store.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use crate::agent::claude::without_error_tags;
use crate::agent::open_transcript;

/// Returns the results of calls by the client's call id. Unreadable lines are skipped, because the format is the client's.
pub(super) fn results(transcript: &Path) -> HashMap<String, String> {
    let mut text = String::new();
    // A part of a file that cannot be read has no results.
    let _read = open_transcript(transcript).and_then(|mut file| file.read_to_string(&mut text));
    let mut results = HashMap::new();
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let blocks = line.pointer("/message/content").and_then(Value::as_array);
        for block in blocks.into_iter().flatten().filter(|block| block["type"] == "tool_result") {
            if let Some(id) = block["tool_use_id"].as_str() {
                results.insert(id.to_owned(), without_error_tags(&text_of(&block["content"])));
            }
        }
    }
    results
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}
