"""Answers when cron expressions come round, for tests/it/cron_reference.rs. Shares no code with what it checks.

Each line of stdin is one JSON object, each line of stdout its answer, in order. Times are seconds since 1970.

{"ask": "versions"} -> {"cronsim": "2.8", "tzdata": "2025b"}
{"ask": "times", "expression": E, "zone": Z, "from": T, "count": N}
    -> {"times": [T, ...], "end": W}: cronsim's next N times. W is "enough", or "none" when it finds no more within
       50 years, or "stuck" when it never would answer. null when it refuses E.
{"ask": "book", "expression": E, "zone": Z, "from": T, "until": T}
    -> [T, ...]: the times after `from`, up to `until`, by a second way: every minute is looked at, as a cron
       daemon does. Slow, and as plain as crontab(5); cronsim only parses the fields and matches the dates.
"""

import importlib.metadata
import itertools
import json
import sys
import zoneinfo
from datetime import datetime, timedelta, timezone

import tzdata
from cronsim import CronSim, CronSimError

# Never the machine's own zones: they may be of any release.
zoneinfo.reset_tzpath(to=())

UTC = timezone.utc
MINUTE = timedelta(minutes=1)

# The table of crontab(5), which cronsim leaves out.
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def five_fields(expression):
    expression = expression.strip()
    expression = NICKNAMES.get(expression.lower(), expression)
    if len(expression.split()) != 5:
        # cronsim takes a sixth field for seconds.
        raise CronSimError("not five fields")
    return expression


class Stuck(Exception):
    pass


class Counted(CronSim):
    """A CronSim that says so when it walks in a circle."""

    ticks = 0

    def tick(self, seconds=1):
        # A day has at most 24 of hours and 60 of minutes for each of them.
        self.ticks += 1
        if self.ticks > 10_000:
            raise Stuck
        super().tick(seconds)

    def __next__(self):
        self.ticks = 0
        return super().__next__()


def times(expression, zone, start, count):
    try:
        simulator = Counted(five_fields(expression), datetime.fromtimestamp(start, zoneinfo.ZoneInfo(zone)))
    except CronSimError:
        return None
    found = []
    try:
        for time in itertools.islice(simulator, count):
            found.append(int(time.timestamp()))
    except Stuck:
        return {"times": found, "end": "stuck"}
    return {"times": found, "end": "enough" if len(found) == count else "none"}


def book(expression, zone, start, until):
    expression = five_fields(expression)
    zone = zoneinfo.ZoneInfo(zone)
    cron = CronSim(expression, datetime(2000, 1, 1))
    minute_field, hour_field = expression.split()[:2]
    fixed = not minute_field.startswith("*") and not hour_field.startswith("*")

    def shown(instant):
        """What clocks show, to the minute."""
        return instant.astimezone(zone).replace(tzinfo=None, fold=0, second=0)

    def matches(wall):
        return (
            wall.minute in cron.minutes
            and wall.hour in cron.hours
            and wall.month in cron.months
            and cron.match_day(wall.date())
        )

    found = []
    # A day and a bit earlier: what a repeated hour showed the first time, and the far side of a gap, count too.
    instant = datetime.fromtimestamp(start - start % 60, UTC) - timedelta(hours=50)
    latest = shown(instant)
    while (instant := instant + MINUTE).timestamp() <= until:
        wall = shown(instant)
        if fixed:
            # Each minute of the wall clock counts once: a repeated one not again, a skipped one when it is over.
            due = False
            while latest < wall:
                latest += MINUTE
                due = due or matches(latest)
        else:
            due = matches(wall)
        if due and instant.timestamp() > start:
            found.append(int(instant.timestamp()))
    return found


def versions():
    return {"cronsim": importlib.metadata.version("cronsim"), "tzdata": tzdata.IANA_VERSION}


def answer(ask):
    match ask.pop("ask"):
        case "versions":
            return versions()
        case "times":
            return times(ask["expression"], ask["zone"], ask["from"], ask["count"])
        case "book":
            return book(ask["expression"], ask["zone"], ask["from"], ask["until"])


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line)), separators=(",", ":")))
