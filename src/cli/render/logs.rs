//! Renders lines of the service's log.

use std::fmt::Write as _;

use serde_json::json;

use super::View;
use crate::app::{LogLine, times};
use crate::channel::terminal::{plain, wrapped};
use crate::cli::output::{BAD, FAINT, GOOD, Output, WARN, paint};

/// Minimum width of the message, in characters, even on a narrow terminal.
const SHORTEST: usize = 20;

/// Renders one line: time, level, message and fields.
pub(in super::super) fn line(line: &LogLine, view: &View, output: &mut Output) {
    if view.json {
        let mut value = json!(line.fields);
        value["at"] = json!(times::rfc3339(line.at, view.zone));
        value["level"] = json!(line.level.to_lowercase());
        value["message"] = json!(line.message);
        output.line(value.to_string());
        return;
    }
    let style = match line.level.as_str() {
        "ERROR" => BAD,
        "WARN" => WARN,
        "INFO" => GOOD,
        _ => FAINT,
    };
    let mut fields = String::new();
    for (name, value) in &line.fields {
        let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        // Writing to a String cannot fail.
        let _ = write!(fields, " {name}={value}");
    }
    let time = times::local_to_the_second(line.at, view.now, view.zone);
    let (message, fields) = (plain(&line.message), plain(&fields));
    let before = time.chars().count() + 7;
    let width = output.width.map_or(usize::MAX, |width| width.saturating_sub(before).max(SHORTEST));
    let mut said = wrapped(&format!("{message}{fields}"), width).into_iter();
    // If all fits on one line, the fields are faint.
    let first = match said.next().unwrap_or_default() {
        whole if said.len() == 0 && whole.len() == message.len() + fields.len() => {
            format!("{message}{}", paint(FAINT, &fields))
        }
        first => first,
    };
    output.line(format!("{} {} {first}", paint(FAINT, &time), paint(style, &format!("{:>5}", line.level))));
    said.for_each(|rest| output.line(format!("{:before$}{rest}", "")));
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_line_has_its_values_behind_it() {
        let text =
            r#"{"timestamp":"2026-11-23T08:00:05Z","level":"WARN","message":"refu\u001b[2Jsed","run":"a1","count":3}"#;
        let view =
            View { json: false, now: "2026-11-23T09:00:00Z".parse().unwrap(), zone: chrono_tz::UTC, home: "/b".into() };
        let mut output = Output::default();
        line(&serde_json::from_str(text).unwrap(), &view, &mut output);
        let shown = anstream::adapter::strip_str(&output.stdout).to_string();
        assert_eq!(shown, "Mon 23 Nov 08:00:05 UTC  WARN refu [2Jsed count=3 run=a1\n");
        let (mut output, whole) = (Output::default(), text.replace("08:00:05", "08:00:00"));
        line(&serde_json::from_str(&whole).unwrap(), &view, &mut output);
        assert!(output.stdout.contains("08:00:00 UTC"), "a whole minute has its seconds, too: {}", output.stdout);
        let mut output = Output { width: Some(54), ..Output::default() };
        line(&serde_json::from_str(text).unwrap(), &view, &mut output);
        let shown = anstream::adapter::strip_str(&output.stdout).to_string();
        let behind = " ".repeat(30);
        assert_eq!(shown, format!("Mon 23 Nov 08:00:05 UTC  WARN refu [2Jsed count=3\n{behind}run=a1\n"));
        let mut output = Output::default();
        line(&serde_json::from_str(text).unwrap(), &View { json: true, ..view }, &mut output);
        let value: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((&value["level"], &value["count"]), (&json!("warn"), &json!(3)));
    }
}
