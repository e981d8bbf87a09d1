"""Prints how many seconds one turn takes by the Python Agent SDK: CLIENT. The interpreter is up by then, its imports are made."""

import asyncio
import sys
import time

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


async def main(client):
    options = ClaudeAgentOptions(cli_path=client, tools=["Read"], setting_sources=[])
    done = False
    async for message in query(prompt="Say that you are done.", options=options):
        done = done or isinstance(message, ResultMessage)
    assert done


began = time.monotonic()
asyncio.run(main(sys.argv[1]))
print(time.monotonic() - began)
