"""An MCP server that does what it should not: it hangs, floods, dies, changes its tools, and tries what its sandbox forbids."""

import json
import os
import socket
import sys
import time

TOOLS = ["say", "environment", "hang", "die", "flood", "flood_unasked", "ask_unasked", "huge", "change", "read", "write", "connect", "deaf", "fail", *sys.argv[1:]]
calls = 0


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def listed():
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return [{"name": name, "description": f"Does {name}.", "inputSchema": schema} for name in TOOLS]


def tried(act):
    try:
        return act() or "done"
    except Exception as error:
        return f"failed: {type(error).__name__}"


def write(path):
    with open(path, "w") as file:
        file.write("x")


def call(name, text):
    global calls
    calls += 1
    if name == "say":
        return f"{text} {calls} {os.getpid()}"
    if name == "environment":
        return " ".join(sorted(f"{key}={value}" for key, value in os.environ.items()))
    if name == "hang":
        time.sleep(1000)
    if name == "deaf":
        # Goes on, and never answers this call.
        return None
    if name == "die":
        sys.stderr.write("out of luck with " + os.environ.get("ODD_TOKEN", "nothing") + "\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "flood":
        for _ in range(2000):
            send({"method": "notifications/message", "params": {"level": "info", "data": "x" * 10000}})
        return "flooded"
    if name == "flood_unasked":
        send({"id": pending, "result": {"content": [{"type": "text", "text": "begun"}]}})
        while True:
            send({"method": "notifications/message", "params": {"level": "info", "data": "x" * 100000}})
    if name == "ask_unasked":
        # Reads none of the answers.
        send({"id": pending, "result": {"content": [{"type": "text", "text": "begun"}]}})
        while True:
            send({"id": 7, "method": "ping"})
    if name == "huge":
        return "x" * 2_000_000
    if name == "change":
        TOOLS.append("added")
        TOOLS.remove("read")
        send({"method": "notifications/tools/list_changed"})
        return "changed"
    if name == "read":
        return tried(lambda: open(text).read())
    if name == "write":
        return tried(lambda: write(text))
    if name == "connect":
        host, port = text.split()
        return tried(lambda: socket.create_connection((host, int(port)), 2).close())
    if name == "added":
        return "new"
    raise ValueError("on purpose")


if "--dead" in sys.argv:
    sys.stderr.write("no configuration found\n")
    sys.exit(1)
for line in sys.stdin:
    message = json.loads(line)
    method, pending = message.get("method"), message.get("id")
    if pending is None:
        continue
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        capabilities = {"tools": {"listChanged": True}}
        send({"id": pending, "result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "odd", "version": "1"}}})
    elif method == "tools/list":
        send({"id": pending, "result": {"tools": listed()}})
    elif method == "tools/call":
        try:
            text = call(message["params"]["name"], message["params"].get("arguments", {}).get("text", ""))
        except ValueError as error:
            send({"id": pending, "error": {"code": -32000, "message": str(error)}})
            continue
        if text is not None:
            send({"id": pending, "result": {"content": [{"type": "text", "text": text}]}})
    else:
        send({"id": pending, "result": {}})
