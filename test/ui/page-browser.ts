/** A real browser for tests of the page: one for a test file, a fresh profile for each visit, every complaint kept. */

import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const hasBrowser = existsSync(CHROMIUM);

/** What stands in the name of a suite that cannot run here. */
export const noBrowser = `SKIPPED, NO BROWSER at ${CHROMIUM} (set CHROMIUM)`;

export interface Visit {
  readonly page: Page;
  /** Dialogs, errors of scripts, violations of the policy, requests to elsewhere: none is expected, ever. */
  readonly complaints: readonly string[];
  /** Opens an address of the page: `#/x/req_1`. */
  open(hash: string): Promise<void>;
  close(): Promise<void>;
}

let browser: Promise<Browser> | undefined;

export function startBrowser(): Promise<Browser> {
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

export async function stopBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = undefined;
}

/** Opens the page of a gateway as somebody does for the first time. */
export async function visit(origin: string, options: BrowserContextOptions = {}): Promise<Visit> {
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

/** Waits for what the page comes to by itself. @throws Error when it does not within twenty seconds */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 400; i++) {
    if (await holds()) return;
    await Bun.sleep(50);
  }
  throw new Error(`it never came to ${holds}`);
}
