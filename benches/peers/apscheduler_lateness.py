"""Prints by how many milliseconds APScheduler is late: WAITING SAMPLES MILLISECONDS_APART."""

import asyncio
import sys
from datetime import datetime, timedelta, timezone

from apscheduler.schedulers.asyncio import AsyncIOScheduler


def now():
    return datetime.now(timezone.utc)


async def main(waiting, samples, apart):
    late = []
    scheduler = AsyncIOScheduler(timezone=timezone.utc)
    far = now() + timedelta(days=2000)
    for n in range(waiting):
        scheduler.add_job(print, "date", run_date=far + timedelta(seconds=n))
    at = now() + timedelta(seconds=5)

    async def fire(due):
        late.append((now() - due) / timedelta(milliseconds=1))

    for _ in range(samples):
        scheduler.add_job(fire, "date", run_date=at, args=[at], misfire_grace_time=None)
        at += timedelta(milliseconds=apart)
    scheduler.start()
    await asyncio.sleep((at - now()).total_seconds() + 2)
    for value in late:
        print(int(value // 1))


asyncio.run(main(*map(int, sys.argv[1:])))
