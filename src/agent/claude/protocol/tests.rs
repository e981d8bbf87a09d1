//! Tests of the parser, line by line.

use super::*;

/// Returns a description of one parsed message.
fn understood(line: &[u8]) -> String {
    match read(line) {
        Ok(Incoming::Request { request: Request::BeforeTool(call), .. }) => {
            format!("may {} run in {}: {}", call.tool_name, call.cwd.display(), call.tool_input)
        }
        Ok(Incoming::Request { request: Request::Permission(call), .. }) => {
            format!("permit {}: {}", call.tool_name, call.tool_input)
        }
        Ok(Incoming::Request { request: Request::BeforeStop { is_repeated }, .. }) => {
            format!("may it stop, again: {is_repeated}")
        }
        Ok(Incoming::Request { request: Request::Mcp { server, message }, .. }) => {
            format!("to {server}: {}", message["method"])
        }
        Ok(Incoming::User(blocks)) => blocks
            .iter()
            .map(|block| match block {
                Block::ToolResult { content, is_error, .. } => format!("result {is_error:?} {}", text_of(content)),
                Block::Text { text } => format!("said {text}"),
                other => format!("{other:?}"),
            })
            .collect(),
        other => format!("{other:?}"),
    }
}

#[test]
fn the_client_is_given_no_server_and_no_question_that_it_does_not_need() {
    let shown = [(&[][..], false), (&["discord"][..], false), (&[][..], true), (&["discord", "calendar"][..], true)]
        .map(|(server, stop)| {
            let message = initialize("1", 30, server, stop, &ClientOptions::default());
            let hooks: Vec<&String> = message["request"]["hooks"].as_object().unwrap().keys().collect();
            format!("{hooks:?} {}", message["request"]["sdkMcpServers"])
        });
    insta::assert_snapshot!(shown.join("\n"), @r#"
    ["PreToolUse"] null
    ["PreToolUse"] ["discord"]
    ["PreToolUse", "Stop"] null
    ["PreToolUse", "Stop"] ["discord","calendar"]
    "#);
}

#[test]
fn a_denial_is_known_by_its_text() {
    for text in [
        "Permission to use Write has been denied.",
        "Claude requested permissions to write to /x, but you haven't granted it yet.",
        "Write tool was denied.",
        "<tool_use_error>Error: No such tool available: Write</tool_use_error>",
        "The user doesn't want to proceed with this tool use.",
    ] {
        assert!(reads_as_denial(text), "{text}");
    }
    for text in ["", "Todos have been modified", "3 files", &format!("{} was denied", "x".repeat(400))] {
        assert!(!reads_as_denial(text), "{text}");
    }
}

#[test]
fn system_prompts_are_told_at_the_start() {
    let told = |system: Option<&str>, append: Option<&str>| {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let options = ClientOptions {
            system_prompt: text(system),
            append_system_prompt: text(append),
            ..ClientOptions::default()
        };
        let request = initialize("1", 30, &[], false, &options)["request"].take();
        (request.get("systemPrompt").cloned(), request.get("appendSystemPrompt").cloned())
    };
    assert_eq!(told(None, None), (None, None));
    assert_eq!(told(Some("be"), None), (Some("be".into()), None));
    assert_eq!(told(None, Some("and")), (None, Some("and".into())));
}

/// The lines come from a real session.
#[test]
fn a_real_session_is_understood() {
    let lines = include_bytes!("../../../../tests/fixtures/wire.jsonl").split(|&byte| byte == b'\n');
    let shown: Vec<String> = lines.filter(|line| !line.is_empty()).map(understood).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    to discord: "initialize"
    to discord: "notifications/initialized"
    to discord: "tools/list"
    may Bash run in /home/user/.ollim-bot/work: {"command":"cat /etc/hostname","description":"x"}
    result Some(true) Bash "cat": denied by allowed_tools of routine x
    may Bash run in /home/user/.ollim-bot/work: {"command":"ollim-bot help","description":"x"}
    result Some(false) RAN help
    may Bash run in /home/user/.ollim-bot/work: {"command":"touch /home/user/.ollim-bot/work/viahook","description":"x"}
    result Some(false) (Bash completed with no output)
    may mcp__discord__ping_user run in /home/user/.ollim-bot/work: {"message":"hey"}
    to discord: "tools/call"
    result None pinged
    result Some(true) Error: No such tool available: mcp__discord__secret
    may it stop, again: false
    said Stop hook feedback:
    You have not called report_updates. Call it now.
    may it stop, again: true
    said [Request interrupted by user]
    permit Bash: {"command":"touch /home/user/.ollim-bot/work/cut1","description":"x"}
    result Some(false) (Bash completed with no output)
    permit Bash: {"command":"touch /home/user/.ollim-bot/work/cut-no","description":"x"}
    result Some(true) user said no
    Ok(Cancel { id: "c6d1a6c6-8750-4952-8192-cd2da036781b" })
    "#);
}

#[test]
fn odd_lines_are_passed_over_and_odd_questions_are_not() {
    let shown: Vec<String> = [
        r#"{"type":"brand_new","x":[1,2]}"#,
        r#"{"type":"system","subtype":"brand_new"}"#,
        r#"{"type":"system","subtype":"init","tools":"none"}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"hologram"},{"type":"text"},{"type":7},3]}}"#,
        r#"{"type":"assistant"}"#,
        r#"{"type":"result","num_turns":-1}"#,
        r#"{"type":"system","subtype":"api_retry","error_status":401}"#,
        r#"{"type":"system","subtype":"api_retry","error_status":99999999}"#,
        r#"{"type":"control_request"}"#,
        r#"{"type":"control_response","response":{"subtype":"error","request_id":"r","error":"no"}}"#,
        r#"{"type":7}"#,
        "[]",
        "{",
    ]
    .map(|line| understood(line.as_bytes()))
    .into();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    Ok(Other("brand_new/"))
    Ok(Other("system/brand_new"))
    Ok(Other("system/init"))
    Ok(Assistant([Other, Text { text: "" }]))
    Ok(Assistant([]))
    Ok(Result(TurnResult { subtype: "", is_error: true, api_error_status: None, result: None, errors: [String("its result cannot be read")], session_id: "", num_turns: None, total_cost_usd: None, permission_denials: [], model_usage: {} }))
    Ok(ApiRetry { status: Some(401) })
    Ok(ApiRetry { status: None })
    Ok(Request { id: "", request: Unknown("") })
    Ok(Response { id: "r", error: Some("no") })
    Err(NoType)
    Err(NoType)
    Err(Json(Error("EOF while parsing an object", line: 1, column: 1)))
    "#);
}

proptest::proptest! {
    #[test]
    fn no_line_makes_the_reader_panic(line in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let _ = read(&line);
    }

    #[test]
    fn nor_does_a_message_with_odd_fields(kind in "(system|assistant|user|result|control_request|control_response)", json in "[\\[\\]{}:,\"a-z0-9 ]{0,60}") {
        let _ = read(format!(r#"{{"type":"{kind}","subtype":"init","request":{json},"message":{json}}}"#).as_bytes());
    }
}
