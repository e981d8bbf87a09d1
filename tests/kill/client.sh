#!/bin/bash
# An agent client that speaks just as much of the protocol as the kill test needs. What it does is said in its prompt
# (`kind=… token=…`). It records its start, and each effect that it was allowed, in its run's folder: one line each,
# written at once, so that a kill of this process or of the service loses none.
if [ "$1" = --version ]; then
  echo '2.1.197 (Claude Code)'
  exit 0
fi
# Among the transcripts, which stay when the rest of the folder goes with the run.
run=${TMPDIR%/client}
kept=$run/claude/projects
is_main=
[[ ${run##*/} == main ]] && is_main=1
if [ -z "$is_main" ]; then
  mkdir -p "$kept"
  echo started >>"$kept/starts"
fi

# Between nothing and so many hundredths of a second, without starting a process.
nap() {
  local hundredths
  printf -v hundredths '%03d' $((RANDOM % ($1 + 1)))
  read -r -t "${hundredths:0:1}.${hundredths:1}" _
}

# Sends a question and waits for its answer.
asked=0
ask() {
  asked=$((asked + 1))
  printf '{"type":"control_request","request_id":"q%s","request":%s}\n' "$asked" "$1"
  while IFS= read -r answer; do
    [[ $answer == *"\"request_id\":\"q$asked\""* ]] && return
  done
  exit 1
}

# Asks the hook whether a tool may be called.
may() {
  ask '{"subtype":"hook_callback","callback_id":"hook_0","input":{"hook_event_name":"PreToolUse","session_id":"s-1","cwd":"'"$PWD"'","tool_name":"'"$1"'","tool_input":'"$2"',"tool_use_id":"toolu_'"$asked"'"}}'
  [[ $answer == *'"permissionDecision":"allow"'* ]] && return
  printf '%s\n' "$answer" >>"$kept/refused"
  return 1
}

# Calls one of our own tools, as the hook has allowed.
call() {
  may "mcp__discord__$1" "$2" || return
  served '{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"kill-test","version":"1"}},"jsonrpc":"2.0","id":0}'
  served '{"method":"notifications/initialized","jsonrpc":"2.0"}'
  served '{"method":"tools/call","params":{"name":"'"$1"'","arguments":'"$2"'},"jsonrpc":"2.0","id":1}'
  printf '%s\n' "$answer" >>"$kept/answers"
  [[ $answer != *'"isError":true'* ]]
}

served() {
  ask '{"subtype":"mcp_message","server_name":"discord","message":'"$1"'}'
}

effect() {
  may Bash '{"command":"logger done"}' && echo effect >>"$kept/effects"
}

ends() {
  printf '{"type":"result","subtype":"success","is_error":%s,"num_turns":1,"result":"%s","total_cost_usd":%s,"session_id":"s-1"}\n' "$1" "$2" "${cost-0}"
  exit 0
}

IFS= read -r hello || exit 1
echo '{"type":"control_response","response":{"subtype":"success","request_id":"ollim-initialize","response":{}}}'
IFS= read -r prompt || exit 1
[[ $prompt =~ kind=([a-z]+)\ token=([a-z0-9-]+) ]] || exit 9
kind=${BASH_REMATCH[1]} token=${BASH_REMATCH[2]}
# All turns of the main session have one folder: there the job's word keeps them apart.
if [ -n "$is_main" ]; then
  kept=$kept/$token
  mkdir -p "$kept"
  echo started >>"$kept/starts"
fi
ours=
if [[ $hello == *sdkMcpServers* ]]; then
  case $kind in
    ping) ours='"mcp__discord__ping_user"' ;;
    chain) ours='"mcp__discord__follow_up_chain"' ;;
    # In the foreground.
    *) ours='"mcp__discord__discord_embed"' ;;
  esac
fi
echo '{"type":"system","subtype":"init","session_id":"s-1","tools":['"$ours"']}'

nap 6
case $kind in
  # Long enough that a channel shows how it goes.
  think) nap 90; nap 90 ;;
  quiet | gated) ;;
  paid) nap 20; cost=0.02 ;;
  effect) effect || ends true 'refused' ;;
  slow)
    # It goes on for ever, unless somebody ends it.
    ( exec 9<> <(:); while :; do read -r -t 5 -u 9 _; done ) </dev/null >/dev/null 2>&1 &
    nap 90; effect || ends true 'refused'; nap 60 ;;
  ping) call ping_user '{"message":"ping '"$token"'","critical":true}' || ends true 'refused' ;;
  chain) [[ $prompt == *'call `follow_up_chain`'* ]] && { call follow_up_chain '{"minutes_from_now":1}' || ends true 'refused'; } ;;
  fail) ends true 'on purpose' ;;
  flaky) exit 3 ;;
  *) exit 9 ;;
esac
nap 3
ends false "answer $token"
