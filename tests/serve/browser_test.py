# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The pages in a real browser: they renew themselves and keep what one has opened, and axe finds nothing that shuts anybody out. npm brings
the browser's driver and axe; Debian brings the browser."""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest

from serve_test import ServeTest

BROWSER = "chromium-headless-shell"
PACKAGES = ("playwright-core@1", "axe-core@4")
SCRIPT = r"""
import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";
const [browserPath, address, job] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-background-networking"] });
const said = [];
const page = await browser.newPage();
page.on("console", (message) => said.push(message.text()));
page.on("pageerror", (error) => said.push(error.message));
await page.goto(`http://${address}/job/${job}`);
const asOf = await page.textContent("#as-of");
await page.click("#ruled-out summary");
await page.evaluate(() => window.scrollTo(0, 40));
const renewed = (before) => document.querySelector("#as-of").textContent !== before;
await page.waitForFunction(renewed, asOf, { timeout: 60000 });
const found = { said, open: await page.evaluate(() => document.querySelector("#ruled-out").open),
                scroll: await page.evaluate(() => window.scrollY), barriers: {} };
const axe = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
for (const path of ["/", `/job/${job}`, "/node"]) {
  const context = await browser.newContext({ bypassCSP: true });  // axe itself is a foreign script
  const checked = await context.newPage();
  await checked.goto(`http://${address}${path}`);
  await checked.evaluate(axe);
  found.barriers[path] = await checked.evaluate(async () => (await axe.run()).violations.map((one) => `${one.id}: ${one.help}`));
}
await browser.close();
console.log(JSON.stringify(found));
"""


class PagesInABrowser(ServeTest):
    def test_a_page_renews_itself_and_keeps_what_is_opened(self):
        for program in (BROWSER, "node", "npm"):
            if shutil.which(program) is None:
                self.skipTest(f"{program} is not installed")
        with tempfile.TemporaryDirectory() as folder:
            brought = subprocess.run(["npm", "install", "--no-audit", "--no-fund", *PACKAGES], cwd=folder, capture_output=True, text=True)
            if brought.returncode != 0:
                self.skipTest(f"npm cannot install {' '.join(PACKAGES)}: {brought.stderr[-300:]}")
            with open(f"{folder}/look.mjs", "w", encoding="utf-8") as script:
                script.write(SCRIPT)
            daemon = self.daemon()
            wrapper = self.train(daemon, "job-1")
            daemon.verdict("job-1", "live")
            looked = subprocess.run(["node", "look.mjs", shutil.which(BROWSER), daemon.address, "job-1"], cwd=folder, capture_output=True,
                                    text=True, timeout=180)
            self.assertEqual(looked.returncode, 0, looked.stderr)
            found = json.loads(looked.stdout)
            self.assertEqual(found["said"], [], "nothing is refused, nothing fails")
            self.assertTrue(found["open"])
            self.assertEqual(found["scroll"], 40)
            self.assertEqual(found["barriers"], {"/": [], "/job/job-1": [], "/node": []})
            self.let_go()
            wrapper.wait()


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)
