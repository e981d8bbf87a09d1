"""A remote MCP server that does what it should not. It prints its port when it listens."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

gets = []


def listed():
    return [{"name": name, "inputSchema": {"type": "object"}} for name in ["gets", "resume", "ask", "comment"]]


class Odd(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def head(self, kind, more=()):
        self.send_response(200)
        for name, value in [("Content-Type", kind), ("Mcp-Session-Id", "one"), *more]:
            self.send_header(name, value)
        self.end_headers()

    def answer(self, message, result):
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self.head("application/json", [("Content-Length", str(len(body)))])
        self.wfile.write(body)

    def stream(self, chunk, times):
        self.head("text/event-stream", [("Connection", "close")])
        self.close_connection = True
        try:
            for _ in range(times):
                self.wfile.write(chunk)
        except OSError:
            pass

    def do_GET(self):
        gets.append(self.headers.get("Last-Event-ID"))
        self.stream(b"id: 2\nretry: 0\ndata: \n\n", 1)

    def do_DELETE(self):
        self.send_response(204)
        self.end_headers()

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message.get("method")
        if "id" not in message or method is None:
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif method == "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "odd", "version": "1"}
            self.answer(message, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "tools/list":
            self.answer(message, {"tools": listed()})
        elif method == "tools/call" and message["params"]["name"] == "resume":
            self.stream(b"id: 1\nretry: 0\ndata: \n\n", 1)
        elif method == "tools/call" and message["params"]["name"] == "ask":
            ping = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping"}).encode()
            self.stream(b"data: " + ping + b"\n\n", 10**9)
        elif method == "tools/call" and message["params"]["name"] == "comment":
            self.stream(b": nothing\n" * 1000, 10**9)
        elif method == "tools/call":
            self.answer(message, {"content": [{"type": "text", "text": json.dumps(gets)}]})
        else:
            self.answer(message, {})


server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
print(server.server_port, flush=True)
server.serve_forever()
