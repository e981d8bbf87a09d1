"""SimCord, an in-memory Discord, behind real sockets: REST and the gateway on loopback, as a bot in any language uses them.

SimCord judges what the bot sends, and so does Discord's own OpenAPI document. What SimCord does not know, and what either
refuses, stands in `Facade.problems`.
"""

import asyncio
import copy
import datetime
import json
import pathlib
import sys

import discord
from aiohttp import WSMsgType, web
from simcord import intents
from simcord.backend import errors, serializers
from simcord.http import client as _registers_the_routes  # noqa: F401
from simcord.http import router

sys.path.append(str(pathlib.Path(__file__).parents[1] / "discord-api"))
import check  # noqa: E402

# REST's version, as it stands in each address.
PREFIX = "/api/v10"


class RealTime:
    """The machine's clock, in the place of SimCord's, which stands still."""

    EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

    def now(self):
        return datetime.datetime.now(datetime.UTC)

    @property
    def elapsed(self):
        return (self.now() - self.EPOCH).total_seconds()


class Facade:
    """Serves one backend of SimCord's to one bot, whose application `owner` owns."""

    def __init__(self, backend, owner, token):
        self.backend, self.owner, self.token = backend, owner, token
        self.problems = []
        # The connection that hears events, once it has identified itself: a queue of frames.
        self.connection = None
        # How often a connection has begun, and what they are carried by.
        self.identified = 0
        self.transports = set()
        self.sequence = 0
        backend.clock = RealTime()
        backend.subscribers.append(self.dispatch)

    async def start(self):
        """Listens on a free port of loopback. Returns the address for `api` of the channel."""
        app = web.Application()
        app.router.add_get("/", self.gateway)
        app.router.add_route("*", PREFIX + "/{path:.*}", self.rest)
        self.runner = web.AppRunner(app, shutdown_timeout=1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.host = "127.0.0.1:%d" % self.runner.addresses[0][1]
        return "http://" + self.host

    async def stop(self):
        await self.runner.cleanup()

    # ---- The gateway.

    async def gateway(self, request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.transports.add(request.transport)
        frames = asyncio.Queue()
        frames.put_nowait({"op": 10, "d": {"heartbeat_interval": 41250}})
        sender = asyncio.create_task(self.send(socket, frames))
        try:
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    self.take(frames, json.loads(message.data))
        finally:
            sender.cancel()
            self.transports.discard(request.transport)
            if self.connection is frames:
                self.connection = None
        return socket

    def cut(self):
        """Cuts the connection without a word."""
        for transport in list(self.transports):
            transport.abort()

    @staticmethod
    async def send(socket, frames):
        while True:
            await socket.send_str(json.dumps(await frames.get(), default=str))

    def take(self, frames, frame):
        match frame["op"]:
            case 1:
                frames.put_nowait({"op": 11})
            case 2 if frame["d"]["token"].removeprefix("Bot ") == self.token:
                self.intents = discord.Intents.none()
                self.intents.value = frame["d"]["intents"]
                self.connection = frames
                self.identified += 1
                self.dispatch("READY", self.ready())
            case 6:
                # No session is kept: the bot identifies itself anew, and fetches what it has missed.
                frames.put_nowait({"op": 9, "d": False})
            case other:
                self.problems.append(f"the gateway was sent the opcode {other}, or another token")

    def ready(self):
        return {
            "v": 10,
            "user": dict(serializers.user_payload(self.backend.bot_user)),
            "guilds": [],
            "session_id": "simcord",
            "resume_gateway_url": "ws://" + self.host,
            "application": {"id": str(self.backend.application_id), "flags": 0},
        }

    def dispatch(self, event, payload):
        """Hands an event to the bot, if it has asked for its kind and may read it."""
        if self.connection is None:
            return
        kind = intents.required_intent(event, payload)
        if kind is not None and not getattr(self.intents, kind):
            return
        payload = copy.deepcopy(dict(payload))
        if event in ("MESSAGE_CREATE", "MESSAGE_UPDATE") and not self.intents.message_content:
            intents.censor_message(payload, self.backend.bot_user.id, backend=self.backend)
        self.sequence += 1
        self.connection.put_nowait({"op": 0, "t": event, "s": self.sequence, "d": payload})

    # ---- REST.

    async def rest(self, request):
        body = await request.json() if request.can_read_body else None
        # As it was sent: SimCord decodes the emoji in an address itself.
        path = request.rel_url.raw_path.removeprefix(PREFIX)
        self.problems += check.wrong(request.method, path, body)
        try:
            status, answer = 200, self.answer(request, path, body)
        except errors.BackendError as error:
            status, answer = error.status, error.to_json()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a problem of the request
            status, answer = 500, {"code": 0, "message": repr(error)}
        if status in (400, 500, 501):
            self.problems.append(f"{request.method} {path} {json.dumps(body)}: {status} {answer}")
        if answer is None:
            return web.Response(status=204)
        return web.json_response(answer, status=status, dumps=lambda value: json.dumps(value, default=str))

    def answer(self, request, path, body):
        if not path.startswith(("/interactions/", "/webhooks/")):
            if request.headers.get("Authorization") != "Bot " + self.token:
                raise errors.BackendError(401, 0, "401: Unauthorized")
        # The two that SimCord has no route for.
        if path == "/gateway/bot":
            limit = {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}
            return {"url": "ws://" + self.host, "shards": 1, "session_start_limit": limit}
        if path == "/applications/@me":
            owner = dict(serializers.user_payload(self.owner))
            return {"id": str(self.backend.application_id), "name": "bot", "owner": owner, "team": None}
        return router.dispatch(self.backend, request.method, path, json=body, params=dict(request.query))
