"""A day with the bot, by messages alone: the real service, the real agent client, and SimCord as Discord.

Every step is checked; the walk ends with an error where one fails. With `--pictures FOLDER` each step is shown as Ada sees
it. See docs/a-day.md.
"""

import datetime

from bot import Failed, check, labels, main, text_of
from model import call, say
from ntfy import Ntfy

MORNING = """---
description: What today brings
cron: "{minute} {hour} * * *"
timezone: UTC
background: true
isolated: true
allowed_tools: [Read, mcp__discord__ping_user]
---
Read today.md, and tell me what today brings.
"""
TODAY = "09:30 dentist, Hill Street 4\n18:00 dinner with Ben, nothing booked yet\n"
GOOD_MORNING = "**Good morning, Ada.** Two things today:\n- 09:30 the dentist, Hill Street 4\n- 18:00 dinner with Ben. Nothing is booked yet."

NEWSLETTER = """---
description: Sends the newsletter
run_at: "{now}"
background: true
isolated: true
allowed_tools: [Read]
ask_tools: ["Bash(ollim-bot newsletter *)"]
---
Send the newsletter of November.
"""

TABLE = """---
description: Books a table
run_at: "{now}"
background: true
isolated: true
allowed_tools: [Read]
ask_tools: ["Bash(ollim-bot table *)"]
ask: {{ channel: phone }}
---
Book the table.
"""

# Commands of Ada's own. One works, and one hangs.
SEND = "#!/bin/sh\necho '412 people have it'\n"
BOOK = "#!/bin/sh\necho 'a table for two at seven'\n"
HANG = "#!/bin/sh\nsleep 600\n"

TEA = """---
run_at: "{now}"
client: notify
---
The tea is ready.
"""

BACKUP = """---
description: Backs up the photos
run_at: "{now}"
background: true
isolated: true
timeout: 10s
retry: 0
allowed_tools: ["Bash(ollim-bot photos *)"]
---
Back up the photos.
"""


def script(last, whole):
    """What the model answers to what it was told last."""
    rules = [
        ("Read today.md", call("Read", file_path="today.md")),
        ("09:30 dentist, Hill", call("mcp__discord__ping_user", message=GOOD_MORNING)),
        ("Send the newsletter", call("Bash", command="ollim-bot newsletter send november", description="send it")),
        ("412 people have it", say("The newsletter of November is sent.")),
        ("Book the table", call("Bash", command="ollim-bot table book ben", description="book it")),
        ("a table for two at seven", say("The table is booked.")),
        ("Back up the photos", call("Bash", command="ollim-bot photos copy", description="copy the photos")),
        ("How do I get to the dentist", say("Hill Street 4 is twelve minutes on foot. Leave at 09:15.")),
        ("where to eat with Ben", say("Ben liked the noodle place in Mill Lane. Shall I keep that in mind?")),
        ("Yes, and at seven", say("Noted: the noodle place in Mill Lane, at seven.")),
        ("Where do I meet Ben", say("At the noodle place in Mill Lane, at seven." if "at seven" in whole else "I do not know.")),
        ("Did I miss anything", say("No. The rest of the day is free.")),
    ]
    return next((answer for words, answer in rules if words in last), say("Done."))


def now():
    return datetime.datetime.now(datetime.UTC)


async def morning(bot):
    """The morning job fires by its cron expression, and its message comes."""
    # The next minute that can still be met.
    due = now() + datetime.timedelta(seconds=10)
    due = due.replace(second=0, microsecond=0) + datetime.timedelta(minutes=1)
    bot.write("work/today.md", TODAY)
    bot.write("routines/morning.md", MORNING.format(minute=due.minute, hour=due.hour))
    message = await bot.hears("Good morning, Ada", "Hill Street 4")
    check("it comes at its minute, not before", bot.written_at(message) >= due)
    await bot.until("the morning's run is completed", lambda: ended(bot, "morning", "completed"))
    await bot.pictures.take("morning")


async def question(bot):
    """A job asks before it sends something. Ada allows it by a button, and only then it happens."""
    bot.write("reminders/newsletter.md", NEWSLETTER.format(now=now().isoformat()))
    asked = await bot.hears("newsletter asks", "ollim-bot newsletter send november")
    check("nothing is sent yet", not bot.model_was_told("412 people have it"))
    await bot.pictures.take("question")
    await bot.presses(asked, "Allow once")
    await bot.until("the newsletter's run is completed", lambda: ended(bot, "newsletter", "completed"))
    check("it is sent", bot.model_was_told("412 people have it"))
    await bot.until("the buttons are gone", lambda: labels(asked) == [])
    await bot.pictures.take("answered")


async def lock_screen(bot):
    """A job asks by a notification. Ada answers on the lock screen of her phone."""
    bot.write("reminders/table.md", TABLE.format(now=now().isoformat()))
    def asked():
        return next((one for one in bot.phone.notifications("to-ada") if "asks for permission" in one["message"]), None)
    notification = await bot.until("the phone asks", asked)
    # Whoever holds the phone reads neither the job's name nor the call.
    check(f"the lock screen gives nothing away: {notification}", "table" not in str(notification))
    check("nothing is booked yet", not bot.model_was_told("a table for two at seven"))
    await bot.phone.press(notification, "Allow once")
    await bot.until("the table's run is completed", lambda: ended(bot, "table", "completed"))
    check("it is booked", bot.model_was_told("a table for two at seven"))


async def snooze(bot):
    """A reminder comes, and is put off by its button."""
    bot.write("reminders/tea.md", TEA.format(now=now().isoformat()))
    message = await bot.hears("The tea is ready.")
    await bot.presses(message, "10 min")
    await bot.until("the buttons are gone", lambda: labels(message) == [])
    coming = await bot.json("next")
    check(f"it comes again: {coming}", "tea" in str(coming))
    await bot.pictures.take("snoozed")


async def failure(bot):
    """A job fails, and says so by itself. The button `Why?` shows what happened."""
    bot.write("reminders/backup.md", BACKUP.format(now=now().isoformat()))
    message = await bot.hears("backup", "10s")
    await bot.pictures.take("failed")
    await bot.presses(message, "Why?")
    await bot.hears("timed out")
    await bot.pictures.take("why")


async def reply(bot):
    """Ada answers the morning's message, and that job goes on."""
    await bot.says("How do I get to the dentist?", reply_to=await bot.hears("Good morning, Ada"))
    await bot.hears("twelve minutes on foot")
    await bot.rests()
    check("the job's conversation went on", bot.model_was_told("Read today.md", "How do I get to the dentist?"))
    card = await bot.hears("Fork: your answer to morning")
    check(f"what a job has read is not saved: {labels(card)}", "Save" not in labels(card))
    await bot.pictures.take("reply")
    await bot.presses(card, "Exit")
    await bot.until("the fork is over", lambda: labels(card) == [])


async def fork(bot):
    """Ada opens a fork, says a word in it, and saves it. The main session knows it from then on."""
    await bot.asks("fork", topic="where to eat with Ben")
    await bot.hears("noodle place")
    await bot.rests()
    card = await bot.hears("Fork: where to eat with Ben")
    await bot.says("Yes, and at seven.")
    await bot.hears("Noted: the noodle place")
    await bot.rests()
    await bot.presses(card, "Save")
    await bot.until("the fork is over", lambda: labels(card) == [])
    await bot.pictures.take("fork")
    await bot.says("Where do I meet Ben?")
    await bot.hears("At the noodle place in Mill Lane, at seven.")
    await bot.rests()


async def why(bot):
    """Ada asks why, by a command."""
    before = len(bot.messages())
    await bot.asks("why")
    await bot.until("it is answered", lambda: any("timed out" in text_of(one) for one in bot.messages()[before:]))
    await bot.pictures.take("command")


async def away(bot):
    """What Ada writes while the machine is off is answered when it is on again."""
    await bot.stop()
    await bot.says("Did I miss anything?")
    await bot.start()
    await bot.hears("The rest of the day is free.")
    await bot.rests()
    await bot.pictures.take("away")


async def ended(bot, job, outcome):
    got = await bot.outcome(job)
    if got not in (None, outcome):
        raise Failed(f"{job} ended as {got}, not as {outcome}")
    return got


STEPS = [morning, question, lock_screen, snooze, failure, reply, fork, why, away]


async def play(bot, step):
    bot.write("bin/ollim-bot-newsletter", SEND, mode=0o755)
    bot.write("bin/ollim-bot-table", BOOK, mode=0o755)
    bot.write("bin/ollim-bot-photos", HANG, mode=0o755)
    async with Ntfy() as bot.phone:
        bot.write(
            "config.yaml",
            f"channels:\n  discord: {{ kind: discord, api: '{bot.api}' }}\n"
            f"  phone: {{ kind: ntfy, url: '{bot.phone.url}/to-ada', answers: from-ada }}\ndefault_channel: discord\n",
        )
        await bot.start()
        for one in STEPS:
            await step(one(bot), one.__doc__)
        await bot.stop()


if __name__ == "__main__":
    main(__doc__, script, play)
