"""A stub of the Messages API on loopback: a model that follows a script. The real agent client runs against it.

Shapes: <https://docs.anthropic.com/en/api/messages-streaming>.
"""

import itertools
import json

from aiohttp import web


def say(text):
    """A text; the turn ends."""
    return {"type": "text", "text": ""}, {"type": "text_delta", "text": text}


def call(tool, **given):
    """One call of a tool."""
    start = {"type": "tool_use", "name": tool, "input": {}}
    return start, {"type": "input_json_delta", "partial_json": json.dumps(given)}


class Model:
    """Asks `script` what to answer: it gets what the model was told last, and the whole conversation as text."""

    def __init__(self, script):
        self.script = script
        self.numbers = itertools.count(1)
        # The bodies of the requests so far.
        self.requests = []

    async def start(self):
        """Listens on a free port of loopback. Returns the address for `ANTHROPIC_BASE_URL`."""
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/messages", self.messages)
        app.router.add_route("*", "/{path:.*}", lambda _request: self.nothing())
        self.runner = web.AppRunner(app, shutdown_timeout=1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        return "http://127.0.0.1:%d" % self.runner.addresses[0][1]

    async def stop(self):
        await self.runner.cleanup()

    @staticmethod
    async def nothing():
        return web.json_response({})

    async def messages(self, request):
        body = await request.json()
        self.requests.append(body)
        start, delta = self.script(last_text(body), json.dumps(body["messages"], ensure_ascii=False))
        number = next(self.numbers)
        if start["type"] == "tool_use":
            start = {**start, "id": f"toolu_{number:012}"}
        reason = "tool_use" if start["type"] == "tool_use" else "end_turn"
        usage = {"input_tokens": 100, "output_tokens": 20}
        message = {
            "id": f"msg_{number:012}", "type": "message", "role": "assistant", "model": body["model"],
            "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage,
        }
        if not body.get("stream"):
            return web.json_response({**message, "content": [whole(start, delta)], "stop_reason": reason})
        ended = {"stop_reason": reason, "stop_sequence": None}
        events = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ended, "usage": usage},
            {"type": "message_stop"},
        ]
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return web.Response(text=text, content_type="text/event-stream")


def whole(start, delta):
    """A block as it is after its one delta."""
    if start["type"] == "text":
        return {**start, "text": delta["text"]}
    return {**start, "input": json.loads(delta["partial_json"])}


def last_text(body):
    """The text of the last message of the user, results of tools included."""
    # The newest client has messages of the system among them.
    last = [message for message in body["messages"] if message["role"] == "user"][-1]["content"]
    return text_of(last)


def text_of(content):
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text") or text_of(block.get("content", "")) for block in content)
