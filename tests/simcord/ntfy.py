"""A stub of an ntfy server on loopback, and the notifications of Ada's phone.

Shapes: <https://docs.ntfy.sh/publish/>, <https://docs.ntfy.sh/subscribe/api/>.
"""

import asyncio
import itertools
import json

import aiohttp
from aiohttp import web


class Ntfy:
    """Keeps what is published, and streams it to those who follow a topic."""

    def __init__(self):
        self.published, self.numbers = [], itertools.count(1)
        self.changed = asyncio.Condition()

    async def __aenter__(self):
        app = web.Application()
        app.router.add_post("/", self.publish_json)
        app.router.add_post("/{topic}", self.publish_plain)
        app.router.add_get("/{topic}/json", self.follow)
        app.router.add_delete("/{topic}/{message}", self.take_back)
        # A stream that is followed ends only when the server does.
        self.runner = web.AppRunner(app, shutdown_timeout=1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.url = "http://127.0.0.1:%d" % self.runner.addresses[0][1]
        return self

    async def __aexit__(self, *error):
        await self.runner.cleanup()

    async def publish(self, message):
        message = {**message, "id": f"m{next(self.numbers):011}", "event": "message", "time": 1_790_000_000}
        async with self.changed:
            self.published.append(message)
            self.changed.notify_all()
        return web.json_response(message)

    async def publish_json(self, request):
        return await self.publish(await request.json())

    async def publish_plain(self, request):
        return await self.publish({"topic": request.match_info["topic"], "message": await request.text()})

    async def take_back(self, _request):
        return web.json_response({"event": "message_delete"})

    async def follow(self, request):
        topic, passed = request.match_info["topic"], len(self.published)
        stream = web.StreamResponse()
        await stream.prepare(request)
        line = {"id": "o", "time": 1_790_000_000, "event": "open", "topic": topic}
        while True:
            await stream.write(json.dumps(line).encode() + b"\n")
            line = None
            while line is None:
                async with self.changed:
                    await self.changed.wait_for(lambda: len(self.published) > passed)
                if self.published[passed]["topic"] == topic:
                    line = self.published[passed]
                passed += 1

    # ---- The phone.

    def notifications(self, topic):
        """What the phone shows on its lock screen."""
        return [message for message in self.published if message["topic"] == topic]

    @staticmethod
    async def press(notification, label):
        """Sends the request of a notification's button, as ntfy's app does."""
        action = next(action for action in notification["actions"] if action["label"] == label)
        async with aiohttp.ClientSession() as phone:
            sent = phone.request(action["method"], action["url"], headers=action["headers"], data=action["body"])
            async with sent as answer:
                answer.raise_for_status()
