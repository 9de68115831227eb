/** A real browser for tests of the page: one per test file, a fresh profile per visit, every complaint recorded. */

import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout } from 'bun:test';
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const hasBrowser = existsSync(CHROMIUM);

/** The suffix for a suite that cannot run here. */
const noBrowser = `SKIPPED, NO BROWSER at ${CHROMIUM} (set CHROMIUM)`;

export interface Visit {
  readonly page: Page;
  /** Dialogs, script errors, policy violations, requests to other hosts: every one fails the test. */
  readonly complaints: readonly string[];
  /** Opens an address of the page, such as `#/x/req_1`. */
  open(hash: string): Promise<void>;
  close(): Promise<void>;
}

let browser: Promise<Browser> | undefined;

function startBrowser(): Promise<Browser> {
  browser ??= chromium.launch({
    executablePath: CHROMIUM,
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  return browser;
}

async function stopBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = undefined;
}

/** Opens the page of a gateway with a fresh profile. */
async function visit(origin: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await (await startBrowser()).newContext({
    viewport: { width: 1300, height: 850 },
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const complaints: string[] = [];
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('pageerror', (error) => complaints.push(`script: ${error.stack ?? error.message}`));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()))
      complaints.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const { protocol, origin: to } = new URL(request.url());
    if (/^https?:$/.test(protocol) && to !== origin) complaints.push(`request: ${request.url()}`);
  });
  return {
    page,
    complaints,
    async open(hash) {
      await page.goto(`${origin}/ui${hash}`);
    },
    close: () => context.close(),
  };
}

/** The browser of one suite. */
export interface Visits {
  /** Opens a page for the current test, which closes with it. Every complaint fails the test. */
  visit(origin: string, options?: BrowserContextOptions): Promise<Visit>;
  /** The page that the current test opened first. */
  readonly seen: Visit;
  /** Ignores this kind of browser remark in the current test. */
  tolerate(remark: RegExp): void;
}

/** A suite that drives a real browser; without one it is skipped, and its name says so. */
export function browserSuite(name: string, body: (visits: Visits) => void): void {
  setDefaultTimeout(300_000);
  const suite = hasBrowser ? describe : describe.skip;
  suite(hasBrowser ? name : `${name}: ${noBrowser}`, () => {
    let open: Visit[] = [];
    let tolerated: RegExp[] = [];
    beforeAll(async () => {
      await startBrowser();
    }, 180_000);
    afterEach(async () => {
      const visits = open;
      const fine = tolerated;
      open = [];
      tolerated = [];
      for (const one of visits) await one.close();
      const complaints = visits.flatMap((one) => one.complaints);
      expect(complaints.filter((one) => !fine.some((remark) => remark.test(one)))).toEqual([]);
    });
    afterAll(stopBrowser);
    body({
      async visit(origin, options) {
        const page = await visit(origin, options);
        open.push(page);
        return page;
      },
      get seen() {
        return open[0]!;
      },
      tolerate: (remark) => void tolerated.push(remark),
    });
  });
}
