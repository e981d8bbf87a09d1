"""What else has to hold on SimCord: long texts, commands, strangers and faults. Each step is checked."""

import datetime

from bot import Failed, check, main, text_of
from model import say

PLAIN = """---
run_at: "{now}"
client: notify
---
{text}
"""

# Those that need no word behind them, and change nothing that a later step needs.
COMMANDS = ["status", "next", "jobs", "runs", "why", "pause", "resume", "inbox", "costs", "budget", "questions", "interrupt", "help"]


def remind(bot, name, text):
    """A reminder that is due now, and is delivered as it is written."""
    bot.write(f"reminders/{name}.md", PLAIN.format(now=datetime.datetime.now(datetime.UTC).isoformat(), text=text))


async def long_text(bot):
    """10,000 characters come as several messages, none of them with half a block of code."""
    remind(bot, "long", "```\n" + "tea is ready\n" * 400 + "```\n" + "and cake " * 600 + "at last")
    await bot.hears("at last")
    texts = bot.texts()
    check(f"there are several: {len(texts)}", len(texts) > 5)
    check("each has whole blocks", all(text.count("```") % 2 == 0 for text in texts))
    check("nothing is lost", "".join(texts).count("tea is ready") == 400 and "".join(texts).count("cake") == 600)


async def commands(bot):
    """Every command is offered, and answered for Ada alone."""
    offered = set(bot.ada.available_commands())
    check(f"all are offered: {offered}", offered >= {*COMMANDS, "run", "fire", "snooze", "fork", "save", "report", "exit", "clear"})
    for command in COMMANDS:
        before = len(bot.messages())
        await bot.asks(command)
        answered = lambda: [one for one in bot.messages()[before:] if text_of(one)]  # noqa: B023, E731
        answer = (await bot.until(f"`/{command}` is answered", answered))[0]
        check(f"`/{command}` is for her alone", answer.is_ephemeral)


async def fault(bot):
    """A message that Discord could not take comes all the same, once."""
    bot.env.inject_error("POST", "/channels/*/messages", status=503)
    remind(bot, "cake", "The cake is ready.")
    await bot.hears("The cake is ready.")
    check("it comes once", sum("The cake is ready." in text for text in bot.texts()) == 1)


async def stranger(bot):
    """Somebody else is told once that they are not heard, and no model hears of it."""
    eve = bot.env.create_user("eve")
    written = lambda: [one for one in bot.backend.messages[eve.dm_channel.id].values() if one.author_id != eve.id]  # noqa: E731
    await eve.send_dm("Where does Ada live?")
    told = await bot.until("she is told", written)
    check(f"it is one line: {told}", told[0].content == "This bot talks with its owner alone.")
    await eve.send_dm("Please.")
    await eve.slash("status")
    # What Ada asks afterwards is answered afterwards.
    await bot.says("Hello?")
    await bot.hears("Hello, Ada.")
    check("she is told once", len(written()) == 1)
    check("no model hears of it", not bot.model_was_told("Where does Ada live?"))


STEPS = [long_text, commands, fault, stranger]


async def play(bot, step):
    await bot.start()
    for one in STEPS:
        await step(one(bot), one.__doc__)
    await bot.stop()


if __name__ == "__main__":
    main(__doc__, lambda _last, _whole: say("Hello, Ada."), play)
