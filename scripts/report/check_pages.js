// node check_pages.js FILE.html ...: opens each page in a real browser, with the network off, at three sizes and in
// both themes, runs axe-core, and prints its findings as JSON, one line per page and profile.
// --shots DIR writes a screenshot of each.
"use strict";
const fs = require("fs");
const path = require("path");
const puppeteer = require("puppeteer-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const PROFILES = {
  desktop: { width: 1366, height: 900, scheme: "light" },
  dark: { width: 1366, height: 900, scheme: "dark" },
  phone: { width: 390, height: 844, scheme: "light", isMobile: true },
  narrow: { width: 320, height: 640, scheme: "dark", isMobile: true },
};

async function check(browser, file, name, shots) {
  const { width, height, scheme, isMobile = false } = PROFILES[name];
  const page = await browser.newPage();
  const requests = [], errors = [];
  page.on("request", (one) => { if (!one.url().startsWith("file:")) requests.push(one.url()); });
  page.on("console", (one) => { if (["error", "warn"].includes(one.type())) errors.push(one.text()); });
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.setOfflineMode(true);
  await page.setViewport({ width, height, isMobile });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto("file://" + path.resolve(file), { timeout: 120000 });
  const scrollWidth = await page.evaluate(() => document.documentElement.scrollWidth);
  if (shots) {
    const target = path.join(shots, path.basename(file, ".html") + "-" + name + ".png");
    await page.screenshot({ path: target, fullPage: true });
  }
  await page.keyboard.press("Tab");
  const firstFocus = await page.evaluate(() => document.activeElement.className);
  await page.evaluate(() => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
  await page.setBypassCSP(true); // the page's policy forbids axe-core
  const found = await page.evaluate(async (source) => {
    (0, eval)(source);
    return window.axe.run(document, { resultTypes: ["violations"] });
  }, axe);
  const violations = found.violations.map((one) => one.id + ": " + one.nodes[0].target.join(" "));
  await page.close();
  return { file: path.basename(file), profile: name, width, scrollWidth, firstFocus, requests, errors,
    violations, passes: found.passes.length };
}

async function main(args) {
  const at = args.indexOf("--shots");
  const shots = at < 0 ? null : args.splice(at, 2)[1];
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
    protocolTimeout: 300000,
  });
  try {
    for (const file of args) {
      for (const name of Object.keys(PROFILES)) {
        console.log(JSON.stringify(await check(browser, file, name, shots)));
      }
    }
  } finally {
    await browser.close();
  }
}

main(process.argv.slice(2)).catch((error) => { console.error(error); process.exit(1); });
