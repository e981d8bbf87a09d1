"""SimCord, an in-memory Discord, behind real sockets: REST and the gateway on loopback, as a bot in any language uses them.

SimCord judges what the bot sends, and so does Discord's own OpenAPI document. What SimCord does not know, and what either
refuses, stands in `Facade.problems`.
"""

import asyncio
import copy
import datetime
import json
import pathlib
import re
import sys

import discord
from aiohttp import WSMsgType, web
from simcord import intents
from simcord.backend import errors, serializers
from simcord.backend.cdn import CDN_BASE
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
        # How often a connection was opened, how often one has begun, and what they are carried by.
        self.opened = 0
        self.identified = 0
        self.transports = set()
        # The code with which every connection is closed.
        self.refuses = None
        # The events that are held back, if they are.
        self.held = None
        # What goes wrong with requests to come: a pattern of the text, whether it is taken, the status (`None`: no answer).
        self.mishaps = []
        self.sequence = 0
        backend.clock = RealTime()
        backend.subscribers.append(self.dispatch)

    async def start(self):
        """Listens on a free port of loopback. Returns the address for `api` of the channel."""
        app = web.Application()
        app.router.add_get("/", self.gateway)
        app.router.add_route("*", PREFIX + "/{path:.*}", self.rest)
        app.router.add_get("/attachments/{path:.*}", self.attachment)
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
        self.opened += 1
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

    def refuse(self, code):
        """Closes the connection, and every later one, with this code. `None`: from now on they are accepted."""
        self.refuses = code
        if code is not None and self.connection is not None:
            self.connection.put_nowait(code)

    def hold(self):
        """Holds events back, as a slow network does, until `release`."""
        self.held = []

    def release(self):
        """Hands the bot what was held back, all at once."""
        held, self.held = self.held, None
        for event, payload in held:
            self.dispatch(event, payload)

    async def send(self, socket, frames):
        while True:
            frame = await frames.get()
            if isinstance(frame, int):
                await socket.close(code=frame)
                return
            await socket.send_str(self.encoded(frame))

    def encoded(self, value):
        """As JSON. SimCord's files are at an address that does not exist; here they are served."""
        return json.dumps(value, default=str).replace(CDN_BASE, "http://" + self.host)

    def take(self, frames, frame):
        match frame["op"]:
            case 1:
                frames.put_nowait({"op": 11})
            case 2 | 6 if self.refuses is not None:
                frames.put_nowait(self.refuses)
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
        if self.held is not None:
            self.held.append((event, payload))
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

    def mishap(self, text, taken=True, status=None):
        """Lets the next request that writes just this text (a pattern) go wrong. SimCord's own faults take nothing, and always answer."""
        self.mishaps.append((text, taken, status))

    async def attachment(self, request):
        data = self.backend.cdn.get(CDN_BASE + request.rel_url.raw_path)
        return web.Response(status=404) if data is None else web.Response(body=data)

    async def rest(self, request):
        body = await request.json() if request.can_read_body else None
        # As it was sent: SimCord decodes the emoji in an address itself.
        path = request.rel_url.raw_path.removeprefix(PREFIX)
        self.problems += check.wrong(request.method, path, body)
        content = body.get("content") or "" if isinstance(body, dict) else ""
        mishap = next((one for one in self.mishaps if re.fullmatch(one[0], content)), None)
        if mishap is not None:
            return await self.go_wrong(mishap, request, path, body)
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
        return web.json_response(answer, status=status, dumps=self.encoded)

    async def go_wrong(self, mishap, request, path, body):
        """Takes a request or not, and answers it with an error or never."""
        _text, taken, status = mishap
        if taken:
            self.answer(request, path, body)
        self.mishaps.remove(mishap)
        if status is None:
            await asyncio.Event().wait()
        return web.json_response({"code": 0, "message": "it went wrong"}, status=status)

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
