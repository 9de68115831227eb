/** Checks and starts every folder under `examples/` and sends the requests of its README, with stand-ins for the vendors. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type Gateway, runBinary, startGateway } from '../support/binary.ts';
import {
  type FakeUpstream,
  refuse,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';

const FOLDER = join(import.meta.dir, '../../examples');
const NAMES = readdirSync(FOLDER, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

interface Example {
  readonly path: string;
  readonly body: { readonly model?: string };
  readonly headers?: Record<string, string>;
  /** The status of the answer; 200 by default. */
  readonly status?: number;
  /** The provider that answers. */
  readonly target?: string;
  /** Providers that refuse this request. */
  readonly fails?: readonly string[];
  /** A text that the vendor's request must hold. */
  readonly sent?: string;
}

interface Written {
  readonly listen?: string;
  readonly providers: Record<string, Record<string, unknown>>;
}

const text = (name: string) => readFileSync(join(FOLDER, name, 'hopgate.yaml'), 'utf8');

/** A made-up value for every variable that an example names. */
const variables = (yaml: string): Record<string, string> =>
  Object.fromEntries(
    [...yaml.matchAll(/\$\{([A-Z0-9_]+)/g)].map(([, name]) => [
      name!,
      `example-${name}-0123456789`,
    ]),
  );

describe('examples', () => {
  let vendors: Record<string, FakeUpstream> = {};
  let gateway: Gateway | undefined;

  beforeAll(() => {
    expect(NAMES.length).toBeGreaterThanOrEqual(5);
  });
  afterAll(async () => {
    await gateway?.stop();
    for (const vendor of Object.values(vendors)) await vendor.stop();
  });

  test('every example has a README that says how to start it, and is listed', () => {
    const list = readFileSync(join(FOLDER, 'README.md'), 'utf8');
    for (const name of NAMES) {
      expect(list).toContain(`](${name})`);
      const readme = readFileSync(join(FOLDER, name, 'README.md'), 'utf8');
      expect(readme).toContain('hopgate serve --config hopgate.yaml');
      expect(existsSync(join(FOLDER, name, 'requests.json'))).toBe(true);
    }
  });

  test.each(NAMES)('%s passes "hopgate check" without a warning', async (name) => {
    const path = join(FOLDER, name, 'hopgate.yaml');
    const { code, stdout, stderr } = await runBinary(['check', '--config', path], {
      env: variables(text(name)),
    });
    expect([code, `${stdout}${stderr}`]).toEqual([0, expect.stringMatching(/^ok/)]);
    expect(`${stdout}${stderr}`).not.toContain('warning');
  });

  test.each(NAMES)('the right provider answers the requests of %s', async (name) => {
    // The engines of an example are not there; without them all state is in this process.
    const { engines: _, ...config } = parse(text(name)) as Written & { readonly engines?: unknown };
    vendors = {};
    for (const [provider, settings] of Object.entries(config.providers)) {
      const vendor = await startFakeUpstream();
      vendors[provider] = vendor;
      settings.preset ??= provider;
      // A local server needs no key, but its stand-in does.
      settings.keys ??= ['sk-stand-in'];
      // This test is not about the pauses between tries.
      settings.retry = { attempts: 1 };
      const messages = settings.protocol === 'anthropic-messages' || provider === 'anthropic';
      settings.base_url = vendor.baseUrl(messages ? 'anthropic-messages' : 'openai-chat');
    }
    gateway = await startGateway(
      { ...config, listen: '127.0.0.1:0' },
      { env: variables(text(name)) },
    );
    const requests = JSON.parse(
      readFileSync(join(FOLDER, name, 'requests.json'), 'utf8'),
    ) as readonly Example[];
    for (const one of requests) {
      for (const [provider, vendor] of Object.entries(vendors)) {
        vendor.clear();
        const fails = one.fails?.includes(provider) === true;
        vendor.answerWith(() => (fails ? refuse(503) : say('Fine.')));
      }
      const response = await fetch(gateway.url + one.path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...one.headers },
        body: JSON.stringify(one.body),
      });
      const answer = await response.text();
      expect([one.path, response.status, answer]).toEqual([
        one.path,
        one.status ?? 200,
        expect.any(String),
      ]);
      if (one.target !== undefined) {
        expect(response.headers.get('x-hopgate-target')).toBe(one.target);
      }
      if (one.sent !== undefined) {
        const sent = Object.values(vendors).flatMap((vendor) => vendor.modelRequests);
        expect(JSON.stringify(sent.map(({ body }) => body))).toContain(one.sent);
      }
    }
    await gateway.stop();
    gateway = undefined;
    for (const vendor of Object.values(vendors)) await vendor.stop();
    vendors = {};
  });
});
