"""What else has to hold on SimCord: long texts, commands, strangers and faults. Each step is checked."""

import datetime
import sqlite3

from bot import Failed, check, labels, main, text_of
from model import call, say

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


async def cut(bot):
    """The connection is cut while an answer goes. That comes, and so does what was said meanwhile."""
    await bot.says("Wait for the first file.")
    await bot.hears("Bash until")
    before = bot.facade.identified
    bot.facade.cut()
    await bot.until("it is connected anew", lambda: bot.facade.identified > before)
    await bot.says("Are you there?")
    bot.write("work/first", "")
    await bot.hears("The file is there.")
    # It was said before or after the last step of the first one's turn.
    answers = lambda: [text for text in bot.texts() if text == "I am here." or "covers it" in text]  # noqa: E731
    await bot.until("what was said meanwhile is answered", answers)
    await bot.rests()
    check("each is answered once", (bot.texts().count("The file is there."), len(answers())) == (1, 1))


async def killed(bot):
    """A service that is killed while an answer goes says after its start what became of it, and leaves no button that ends it."""
    await bot.says("Wait for the second file.")
    status = await bot.hears("Bash until", "second")
    check(f"it can be interrupted: {labels(status)}", labels(status) == ["Interrupt"])
    # SimCord knows no nonces. What shows the turn is known by its record, which is made before the next edit.
    first = text_of(status)
    await bot.until("it is edited", lambda: text_of(status) != first)
    await bot.kill()
    before = len(bot.texts())
    await bot.start()
    await bot.until("it says what became of it", lambda: "Interrupt" not in labels(status))
    await bot.rests()
    check(f"it says so in its place: {text_of(status)}", "the service ended while it was going" in text_of(status))
    check("that is all", len(bot.texts()) == before)


async def gone(bot):
    """A button of a message that nobody knows any more does nothing, and says so."""
    remind(bot, "old", "The old tea is ready.")
    message = await bot.hears("The old tea is ready.")
    await bot.rests()
    await bot.stop()
    with sqlite3.connect(bot.home / "state/journal.db") as journal:
        journal.execute("DELETE FROM message WHERE text LIKE 'The old tea%'")
    journal.close()
    await bot.start()
    await bot.presses(message, "10 min")
    await bot.hears("this button is of no use any more")
    check("it is not put off", "old" not in str(await bot.json("next")))


STEPS = [long_text, commands, fault, stranger, cut, killed, gone]


def script(last, _whole):
    """What the model answers to what it was told last."""
    rules = [
        ("Wait for the first file", call("Bash", command="until [ -e first ]; do sleep 0.1; done")),
        ("Wait for the second file", call("Bash", command="until [ -e second ]; do sleep 0.1; done")),
        ("Are you there?", say("I am here.")),
        ("Hello?", say("Hello, Ada.")),
    ]
    return next((answer for words, answer in rules if words in last), say("The file is there."))


async def play(bot, step):
    await bot.start()
    for one in STEPS:
        await step(one(bot), one.__doc__)
    await bot.stop()


if __name__ == "__main__":
    main(__doc__, script, play)
