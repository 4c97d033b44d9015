// node figures.js FILE.html WIDTH SELECTOR HEIGHT OUT.webp ...: photographs parts of pages, five words for each picture:
// the page, the width of the window in px, a CSS selector of where it begins, its height in px, and the file to write.
"use strict";
const path = require("path");
const puppeteer = require("puppeteer-core");

async function photograph(browser, [file, width, selector, height, target]) {
  const page = await browser.newPage();
  const isMobile = Number(width) < 500;
  await page.setViewport({ width: Number(width), height: 900, isMobile, deviceScaleFactor: 1 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  await page.goto("file://" + path.resolve(file));
  const element = await page.$(selector);
  if (!element) throw new Error(file + " has no " + selector);
  const box = await element.evaluate((one) => {
    const { x, y, width } = one.getBoundingClientRect();
    return { x: x + window.scrollX, y: y + window.scrollY, width };
  });
  const edge = 12;
  await page.screenshot({
    path: target, type: "webp", quality: 70, captureBeyondViewport: true,
    clip: {
      x: Math.max(0, box.x - edge), y: Math.max(0, box.y - edge),
      width: Math.min(Number(width), box.width + 2 * edge), height: Number(height),
    },
  });
  await page.close();
}

async function main(words) {
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
  try {
    for (let at = 0; at < words.length; at += 5) await photograph(browser, words.slice(at, at + 5));
  } finally {
    await browser.close();
  }
}

main(process.argv.slice(2)).catch((error) => { console.error(error); process.exit(1); });
