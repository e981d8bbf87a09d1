"""Pictures of the conversation as Ada sees it, by SimCord's renderer and Chromium."""

import os
import shutil


class Pictures:
    """Takes them into a folder. Without a folder it takes none."""

    SIZE = (440, 760)

    def __init__(self, bot, folder):
        self.bot, self.folder = bot, folder
        self.number = 0

    async def __aenter__(self):
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.preview = await self.bot.env.preview(
                self.bot.ada.dm_channel, viewers=[self.bot.ada], layout="channel", display="fixed",
                width=self.SIZE[0], height=self.SIZE[1],
            ).__aenter__()
            await self.use_installed_chromium()
        return self

    async def __aexit__(self, *error):
        if self.folder is not None:
            await self.preview.__aexit__(*error)

    async def use_installed_chromium(self):
        """SimCord would start the Chromium that Playwright downloads; the system's does as well."""
        from playwright.async_api import async_playwright

        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if chromium is None:
            raise SystemExit("error: Chromium is needed for the pictures\nhint: `apt install chromium fonts-noto-color-emoji`")
        manager = self.preview._capture_manager
        manager._playwright = await async_playwright().start()
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        manager._browser = await manager._playwright.chromium.launch(executable_path=chromium, args=sandbox)

    async def take(self, name):
        """Takes one of the conversation as it is now."""
        self.number += 1
        if self.folder is not None:
            newest = self.bot.messages()[-1].id
            path = self.folder / f"{self.number}-{name}.png"
            await self.preview.screenshot(path, target=newest, mode="viewport", allow_incomplete=True)
