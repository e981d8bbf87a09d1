"""The real program on a data folder of its own, with a person on SimCord and a model that follows a script."""

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import signal
import sys
import tempfile
import time

import discord
from facade import Facade
from model import Model
from pictures import Pictures
from simcord.env import Env
from simcord.results import to_discord_message

TOKEN = "token-of-the-bot"

# How long something may take before it is in vain. Nothing waits that long where all is well.
PATIENCE = 120


class Failed(Exception):
    """A step of the walk did not end as it has to."""


class Bot:
    """One person, Ada, her Discord, and her bot. Use it as `async with Bot(…) as bot`."""

    def __init__(self, program, client, script, pictures=None):
        self.program, self.client = program, client
        self.pictures = Pictures(self, pictures)
        self.model = Model(script)
        self.service = None

    async def __aenter__(self):
        async with contextlib.AsyncExitStack() as stack:
            self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ollim-walk-")))
            self.home = self.folder / "bot"
            # SimCord's own client library has to be there for its actors and its renderer; as a bot it does nothing.
            self.env = Env(discord.Client(intents=discord.Intents.none()))
            await self.env.start()
            stack.push_async_callback(self.env.shutdown)
            self.backend = self.env.backend
            self.backend.edit_bot_profile("ollim-bot")
            self.ada = self.env.create_user("ada", global_name="Ada")
            self.facade = Facade(self.backend, self.backend.get_user(self.ada.id), TOKEN)
            self.api = await self.facade.start()
            stack.push_async_callback(self.facade.stop)
            self.model_url = await self.model.start()
            stack.push_async_callback(self.model.stop)
            stack.push_async_callback(self.kill)
            for folder in ("routines", "reminders", "work", "bin"):
                (self.home / folder).mkdir(parents=True)
            self.write("config.yaml", f"channels: {{ discord: {{ kind: discord, api: '{self.api}' }} }}\ndefault_channel: discord\n")
            self.write(".env", f"DISCORD_TOKEN={TOKEN}\n", mode=0o600)
            await stack.enter_async_context(self.pictures)
            self.stack = stack.pop_all()
        return self

    async def __aexit__(self, kind, error, _trace):
        if error is not None and not isinstance(error, asyncio.CancelledError):
            self.show_what_there_is()
        await self.stack.aclose()

    def show_what_there_is(self):
        print("-- the conversation:", *(text[:1000] for text in self.texts()), sep="\n  ")
        print("-- the service said:", self.said(), sep="\n")
        print("-- problems:", *self.facade.problems, sep="\n  ")

    # ---- The data folder and the program.

    def write(self, name, text, mode=0o644):
        """Writes a file as editors do: whole, by a rename."""
        path = self.home / name
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(text)
        fresh.chmod(mode)
        fresh.rename(path)

    def environment(self):
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "OLLIM_HOME": str(self.home),
            "OLLIM_AGENT_CLIENT": "claude",
            "OLLIM_CLAUDE": self.client,
            "ANTHROPIC_BASE_URL": self.model_url,
            "ANTHROPIC_API_KEY": "sk-test-not-a-key",
            # The client refuses some of its modes to root unless it is told that it is in a container.
            "IS_SANDBOX": "1",
        }

    async def start(self):
        """Starts the service, and waits until Discord hears it."""
        await self.launch()
        await self.until("the bot is connected", lambda: self.facade.connection)
        await self.until("the commands are known", lambda: self.ada.available_commands())

    async def launch(self):
        """Starts the service."""
        with open(self.folder / "service.log", "a") as log:
            self.service = await asyncio.create_subprocess_exec(
                self.program, "run", env=self.environment(), cwd=self.folder,
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
            )

    async def stop(self):
        """Stops the service as the machine's own does."""
        self.service.send_signal(signal.SIGTERM)
        status = await asyncio.wait_for(self.service.wait(), PATIENCE)
        self.service = None
        if status != 0:
            raise Failed(f"the service ended with {status}")

    async def kill(self):
        if self.service is not None and self.service.returncode is None:
            self.service.kill()
            await self.service.wait()

    def said(self):
        log = self.folder / "service.log"
        return log.read_text() if log.exists() else ""

    async def json(self, *words):
        """What a reading command of `ollim-bot` shows."""
        ran = await asyncio.create_subprocess_exec(
            self.program, "--json", *words, env=self.environment(), cwd=self.folder,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )
        out, error = await ran.communicate()
        if ran.returncode != 0:
            raise Failed(f"ollim-bot {' '.join(words)} failed: {error.decode()}")
        return json.loads(out)

    async def outcome(self, job):
        """How the newest run of a job has ended; `None`: it has not."""
        runs = await self.json("runs", job)
        return runs[0]["outcome"] if runs and runs[0]["ended"] else None

    def model_was_told(self, *texts):
        """Whether one request to the model held all these texts."""
        told = (json.dumps(body["messages"], ensure_ascii=False) for body in self.model.requests)
        return any(all(text in one for text in texts) for one in told)

    async def rests(self):
        """Waits until no run and no answer is going: the last words of an answer are read before it has ended."""
        async def resting():
            return all(run["ended"] for run in await self.json("runs"))
        await self.until("nothing is going any more", resting)

    # ---- The conversation.

    def messages(self):
        """What Ada sees, the oldest first, answers for her alone included."""
        return sorted(self.backend.messages[self.ada.dm_channel.id].values(), key=lambda message: message.id)

    def texts(self):
        """What the bot has written, as one text for each message."""
        return [text_of(message) for message in self.messages() if message.author_id != self.ada.id]

    @staticmethod
    def written_at(message):
        """When a message was written: its id says so."""
        return discord.utils.snowflake_time(message.id)

    async def hears(self, *parts):
        """Waits for a message of the bot's that holds all these texts."""
        def found():
            for message in reversed(self.messages()):
                if message.author_id != self.ada.id and all(part in text_of(message) for part in parts):
                    return message
        return await self.until(f"Ada reads {parts}", found)

    async def says(self, text, reply_to=None, files=()):
        """Ada writes a message. `files` are pairs of a name and what is in it."""
        channel = self.ada.dm_channel.id
        reference = None
        if reply_to is not None:
            reference = {"channel_id": str(channel), "message_id": str(reply_to.id)}
            reference = self.backend.normalize_message_reference(channel, reference)
        store = self.backend.cdn.store_attachment
        attachments = [store(self.backend.snowflake(), channel, name, data, None) for name, data in files]
        return await self.ada.send_dm(text, reference=reference, attachments=attachments)

    async def presses(self, message, label):
        """Ada presses a button. SimCord fails where she does not see it."""
        if label not in labels(message):
            raise Failed(f"there is no button {label!r}, but {labels(message)}")
        await self.ada.click(to_discord_message(self.env, message), label=label)

    async def asks(self, command, **options):
        """Ada gives a command. SimCord fails where it is not offered."""
        await self.ada.slash(command, **options)

    async def until(self, what, ask):
        """Waits until `ask`, which may be a coroutine, gives something."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = ask()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            if time.monotonic() > deadline:
                raise Failed(f"in vain: {what}")
            if self.service is not None and self.service.returncode is not None:
                raise Failed(f"the service ended with {self.service.returncode} before: {what}")
            await asyncio.sleep(0.05)


def text_of(message):
    """A message's text, with that of its embeds."""
    parts = [message.content]
    for embed in message.embeds:
        parts += [embed.get("title"), embed.get("description")]
        parts += [f"{field['name']}: {field['value']}" for field in embed.get("fields", [])]
        parts.append((embed.get("footer") or {}).get("text"))
    return "\n".join(part for part in parts if part)


def labels(message, pressable=True):
    """The labels of a message's buttons: of those that can be pressed, or of the others."""
    buttons = [button for row in message.components for button in row["components"]]
    return [button["label"] for button in buttons if button.get("disabled", False) != pressable]


def check(what, holds):
    """A step fails where something does not hold."""
    if not holds:
        raise Failed(f"not so: {what}")


def absolute(path):
    """The service is started in a folder of its own."""
    return str(pathlib.Path(path).absolute())


def main(about, script, play):
    """A program that plays something: `play(bot, step)`, where `await step(…, about)` says that a step is done."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--program", required=True, type=absolute, help="the binary `ollim-bot`")
    parser.add_argument("--client", required=True, type=absolute, help="the real agent client")
    parser.add_argument("--pictures", type=pathlib.Path, help="the folder for pictures; without it there are none")
    given = parser.parse_args()

    async def step(doing, done):
        await doing
        print("ok:", done, flush=True)

    async def playing():
        async with Bot(given.program, given.client, script, given.pictures) as bot:
            await play(bot, step)
            check(f"all that was sent is as Discord wants it: {bot.facade.problems}", not bot.facade.problems)

    try:
        asyncio.run(playing())
    except Failed as failed:
        sys.exit(f"error: {failed}")
