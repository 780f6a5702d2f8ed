// What the page's tests share: a run's folder made of records, its report made by fusebench itself, and the browser
// that opens it. FUSEBENCH_BINARY is the program; FUSEBENCH_BROWSER names a browser, by default Debian's chromium.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const binary = process.env.FUSEBENCH_BINARY ?? join(root, "build/release/fusebench");

function findBrowser() {
  const named = process.env.FUSEBENCH_BROWSER;
  if (named) return named;
  return ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path))
    ?? null;
}

function playwright() {
  try {
    return createRequire(join(root, "reports/web/package.json"))("playwright-core");
  } catch {
    return null;
  }
}

// Why these tests cannot run here; empty where they can.
export const whyNot = !playwright() ? "playwright-core is not there: `npm ci` in reports/web gets it"
  : !findBrowser() ? "no browser: install chromium, or name one in FUSEBENCH_BROWSER" : "";

let browser = null;
const folders = [];
after(async () => {
  await browser?.close();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), "fusebench-web-"));
  folders.push(folder);
  return folder;
}

// Writes a run's records (a header, then rows; strings stand as they are) and has fusebench make its reports, in the
// folder that it gives.
export function makeRun(lines) {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "results.jsonl"),
    lines.map((line) => (typeof line === "string" ? line : `${JSON.stringify(line)}\n`)).join(""));
  execFileSync(binary, ["report", folder], { stdio: ["ignore", "ignore", "inherit"] });
  return folder;
}

// A page in the browser, which fails its test where it complains or asks for anything.
export async function open(file, { hash = "", viewport = { width: 1400, height: 1000 }, colorScheme = "light",
  javaScriptEnabled = true } = {}) {
  browser ??= await playwright().chromium.launch({ executablePath: findBrowser(), args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport, colorScheme, javaScriptEnabled, acceptDownloads: true });
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) page.complaints.push(message.text());
  });
  page.on("pageerror", (error) => page.complaints.push(error.message));
  const address = pathToFileURL(file).href;
  page.on("request", (request) => {
    const isOwn = request.url().startsWith(address) || /^(data|blob):/.test(request.url());
    if (!isOwn) page.complaints.push(`request: ${request.url()}`);
  });
  await page.goto(address + hash);
  if (javaScriptEnabled) await page.waitForSelector("#counts");
  return page;
}

export const openRun = (lines, options) => open(join(makeRun(lines), "report.html"), options);

// Cells of a table in the page, as text, a list a line.
export const cellsOf = (page, selector) => page.$$eval(`${selector} tbody tr`,
  (lines) => lines.map((line) => [...line.children].map((cell) => cell.textContent.trim())));

// What ECharts was told to draw in the n-th chart under a selector, as plain data. Series have the names people see.
export const chartOf = (page, selector, n = 0) => page.evaluate(([where, at]) => {
  const element = document.querySelectorAll(`${where} .chart`)[at];
  const option = JSON.parse(JSON.stringify(echarts.getInstanceByDom(element).getOption()));
  return { ...option, series: option.series.map((one) => ({ ...one, name: one.name.replace(/^:/, "") })) };
}, [selector, n]);

// Screenshots are for people: written where FUSEBENCH_SCREENSHOTS says.
export async function screenshot(page, name, selector = null) {
  const folder = process.env.FUSEBENCH_SCREENSHOTS;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  const target = selector ? page.locator(selector) : page;
  await target.screenshot({ path: join(folder, `${name}.png`), ...(selector ? {} : { fullPage: true }) });
}

// A test of the page; skipped, and counted so, where there is no browser.
export function pageTest(name, body) {
  test(name, { skip: whyNot || false }, body);
}
