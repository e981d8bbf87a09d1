"""Bad luck on SimCord: answers that are lost or late, refused connections, double clicks, strangers, kills. Each step is checked."""

import json

from bot import check, labels, main, text_of
from model import call, say
from scenarios import remind
from simcord import interactions
from simcord.backend import serializers
from simcord.enums import ComponentType, InteractionType

# SimCord ignores `nonce`, by which Discord recognizes a message that is sent again: here that message comes twice. So the steps
# show only that nothing is lost. That nothing comes twice is shown on our own stub, which knows nonces (tests/it/discord.rs).


async def delivered(bot, text):
    """Waits until a message is recorded as delivered. Ada has to see it where the record says. Returns how often she sees it."""
    async def recorded():
        one = next((one for one in await bot.json("inbox", "-n", "50") if one["text"].strip() == text), None)
        return one if one and one["delivered"] else None
    sent = (await bot.until(f"{text!r} is delivered", recorded))["deliveries"][0]
    seen = {str(one.id): text_of(one) for one in bot.messages()}
    check(f"Ada has it: {sent}", sent["channel"] == "discord" and seen.get(sent["message"]) == text)
    return list(seen.values()).count(text)


async def came_wrong(bot):
    """Waits until the request that has to go wrong was made."""
    await bot.until("the request is made", lambda: not bot.facade.mishaps)


async def taken(bot):
    """A message that Discord takes and answers with an error is not lost, and neither is the next one."""
    bot.facade.mishap("The kettle boils.", status=502)
    remind(bot, "kettle", "The kettle boils.")
    await came_wrong(bot)
    await delivered(bot, "The kettle boils.")
    remind(bot, "oven", "The oven is hot.")
    check("what went well comes once", await delivered(bot, "The oven is hot.") == 1)


async def answers(bot):
    """Two answers to what Ada says are both there at the end, though what shows them is taken and answered with an error."""
    bot.facade.mishap("-# .*", status=503)
    await bot.says("How long does green tea take?")
    await came_wrong(bot)
    status = await bot.hears("Bash until")
    bot.facade.mishap("The green one takes 2 minutes.", status=502)
    bot.write("work/green", "")
    await came_wrong(bot)
    await bot.rests()
    # A change that is made twice shows nothing twice, so here it is known without nonces.
    check("it comes once", await delivered(bot, "The green one takes 2 minutes.") == 1)
    check("it stands where the progress was", text_of(status) == "The green one takes 2 minutes.")
    bot.facade.mishap("The black one takes 4 minutes.", status=502)
    await bot.says("How long does black tea take?")
    await came_wrong(bot)
    await bot.rests()
    await delivered(bot, "The black one takes 4 minutes.")
    check("the first one is still there", "The green one takes 2 minutes." in bot.texts())


async def late(bot):
    """A button and a command that the bot hears too late for Discord act all the same. The command's answer comes as a message."""
    remind(bot, "bread", "The bread is done.")
    message = await bot.hears("The bread is done.")
    bot.facade.hold()
    await bot.presses(message, "10 min")
    await bot.asks("status")
    pressed, asked = list(bot.backend.interactions.values())[-2:]
    await bot.until("Discord waits no longer", lambda: bot.backend.now_iso() >= asked.initial_response_deadline)
    before = len(bot.messages())
    bot.facade.release()
    await bot.until("the buttons are gone", lambda: labels(message) == [])
    check("it comes again", "bread" in json.dumps(await bot.json("next")))
    answer = (await bot.until("the command is answered", lambda: bot.messages()[before:]))[0]
    check(f"it is a message: {text_of(answer)}", "discord" in text_of(answer) and not answer.is_ephemeral)
    check("Discord took no answer to either", not pressed.responded and not asked.responded)


async def twice(bot):
    """Two clicks on one button, heard at once, act once."""
    await bot.says("Which tea shall it be?")
    message = await bot.hears("Green or black")
    await bot.rests()
    bot.facade.hold()
    await bot.presses(message, "Green")
    await bot.presses(message, "Green")
    first, second = list(bot.backend.interactions.values())[-2:]
    bot.facade.release()
    await bot.until("both are answered", lambda: first.responded and second.responded)
    await bot.hears("Green it is.")
    await bot.hears("this was pressed already")
    await bot.rests()
    check("it is said once", bot.texts().count("Green it is.") == 1)


async def stranger(bot):
    """A stranger's click on Ada's button changes nothing, and is counted."""
    async def strangers():
        return (await bot.json("channels"))[0]["strangers"]
    remind(bot, "soup", "The soup is hot.")
    message = await bot.hears("The soup is hot.")
    check("there was none before", await strangers() == 0)
    shown, eve = labels(message), bot.env.create_user("eve")
    # SimCord lets nobody press what they do not see. So this is the event that it makes of a click, with Eve's name.
    buttons = [button for row in message.components for button in row["components"]]
    data = {"custom_id": buttons[0]["custom_id"], "component_type": ComponentType.BUTTON}
    click, event = interactions.base_payload(
        bot.backend, type=InteractionType.MESSAGE_COMPONENT, channel_id=eve.dm_channel.id, guild_id=None, user_id=eve.id, data=data
    )
    event["message"] = dict(serializers.message_payload(bot.backend, message))
    bot.backend.emit("INTERACTION_CREATE", event)
    await bot.until("she is told", lambda: click.responded)
    told = [text_of(one) for one in bot.backend.messages[eve.dm_channel.id].values()]
    check(f"it is one line: {told}", told == ["This bot talks with its owner alone."])
    check("she is counted", await strangers() == 1)
    check(f"the buttons stay: {labels(message)}", labels(message) == shown)
    check("nothing is put off", "soup" not in json.dumps(await bot.json("next")))
    await bot.presses(message, "10 min")
    await bot.until("Ada's click counts", lambda: labels(message) == [])


async def files(bot):
    """A file of 25 MiB becomes a file of the bot's, and the model is told its name. A larger one is not kept, and the model is told why."""
    content = bytes(range(256)) * (25 * 1024 * 1024 // 256)
    await bot.says("Keep this list.", files=[("tea.bin", content)])
    await bot.hears("It is kept.")
    kept = list(bot.home.glob("work/received/*/tea.bin"))
    check(f"it is there: {kept}", [path.read_bytes() for path in kept] == [content])
    name = kept[0].relative_to(bot.home / "work")
    check("the model is told", bot.model_was_told("Keep this list.", f"{name} ({len(content)} bytes)"))
    await bot.says("Keep this book.", files=[("book.bin", content + b"x")])
    await bot.hears("It is too large.")
    check("it is not there", list(bot.home.glob("work/received/*/book.bin")) == [])
    check("the model is told why", bot.model_was_told("Keep this book.", "it is larger than 25 MB"))


async def killed(bot):
    """A service that is killed between sending and recording loses neither what Discord had taken, nor what it had not, nor what waited."""
    await killed_sending(bot, "rice", is_taken=True)
    check("what was not taken comes once", await killed_sending(bot, "corn", is_taken=False) == 1)


async def killed_sending(bot, what, is_taken):
    """Kills the service while Discord owes it the answer to a message. Returns how often Ada sees that message after all."""
    sent, behind = f"The {what} is ready.", f"This waits for the {what}."
    bot.facade.mishap(sent, taken=is_taken)
    remind(bot, what, sent)
    await came_wrong(bot)
    remind(bot, f"after-{what}", behind)
    async def waits():
        return any(one["text"].strip() == behind and not one["delivered"] for one in await bot.json("inbox", "-n", "50"))
    await bot.until("the next one waits", waits)
    check(f"Discord has it, or not: {bot.texts()}", (sent in bot.texts()) == is_taken)
    await bot.kill()
    await bot.start()
    check("what waited comes once", await delivered(bot, behind) == 1)
    return await delivered(bot, sent)


async def gives_up(bot, code, why):
    """Waits until `channels` says why the bot has given Discord up. What is sent then is at the console, and Discord is not tried."""
    opened = bot.facade.opened
    async def failing():
        failed = (await bot.json("channels"))[0]["failing"]
        return failed and f"({code})" in failed["error"] and failed["error"]
    failed = await bot.until(f"`channels` says why ({code})", failing)
    check(f"it is the reason: {failed}", why in failed)
    requests = len(bot.backend.http_requests)
    remind(bot, f"lost-{code}", f"This is for the console, after {code}.")
    await bot.until("the console has it", lambda: f"This is for the console, after {code}." in bot.said())
    check("the console says why", f"({code})" in bot.said())
    await bot.stop()
    check("Discord is asked nothing more", (bot.facade.opened, len(bot.backend.http_requests)) == (opened, requests))


async def revoked(bot):
    """After the close code 4004 (the token counts no more) the bot tries no more, and says why. The next channel has the messages."""
    bot.facade.refuse(4004)
    await gives_up(bot, 4004, "does not accept `DISCORD_TOKEN` any more")


async def refused(bot):
    """After 4014 at a start (intents are refused) the same. A later start, when Discord lets the bot in, is all that it takes."""
    bot.facade.refuse(4014)
    opened = bot.facade.opened
    await bot.launch()
    await bot.until("it tries once", lambda: bot.facade.opened > opened)
    await gives_up(bot, 4014, "does not let the bot hear direct messages")
    check("it has tried once", bot.facade.opened == opened + 1)
    bot.facade.refuse(None)
    await bot.start()
    remind(bot, "jam", "The jam is set.")
    check("it comes once", await delivered(bot, "The jam is set.") == 1)


STEPS = [taken, answers, late, twice, stranger, files, killed, revoked, refused]

CHOICES = [{"label": "Green", "action": "agent:Make green tea."}, {"label": "Black", "action": "agent:Make black tea."}]


def script(last, _whole):
    """What the model answers to what it was told last."""
    rules = [
        ("How long does green tea take?", call("Bash", command="until [ -e green ]; do sleep 0.1; done")),
        ("How long does black tea take?", say("The black one takes 4 minutes.")),
        ("Which tea shall it be?", call("mcp__discord__discord_embed", title="Green or black?", buttons=CHOICES)),
        ("Make green tea.", say("Green it is.")),
        ("Keep this list.", say("It is kept.")),
        ("Keep this book.", say("It is too large.")),
        ("message", say("Choose.")),
    ]
    return next((answer for words, answer in rules if words in last), say("The green one takes 2 minutes."))


async def play(bot, step):
    await bot.start()
    for one in STEPS:
        await step(one(bot), one.__doc__)
    await bot.stop()


if __name__ == "__main__":
    main(__doc__, script, play)
