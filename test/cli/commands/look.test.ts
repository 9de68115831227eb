/** `hopgate status`, `logs` and `ui`, against a scripted gateway, log files and a fake journal. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../support/until.ts';
import { createWorld, GLM_CONFIG, type World } from '../world.ts';

let world: World;
beforeEach(() => {
  world = createWorld();
  world.write('.config/hopgate/hopgate.yaml', GLM_CONFIG);
});
afterEach(() => world.remove());

/** A gateway that answers these paths, and 404 to all others. */
function answers(paths: Readonly<Record<string, readonly [status: number, body: unknown]>>): void {
  world.fetch = (async (url: string) => {
    const [status, body] = paths[new URL(url).pathname] ?? [404, {}];
    return Response.json(body, { status });
  }) as unknown as typeof fetch;
}

const ABOUT = [200, { name: 'hopgate', version: '9.8.7', endpoints: [] }] as const;

describe('status', () => {
  test('no gateway: exit 3, and how to start one', async () => {
    const { code, out } = await world.run(['status']);
    expect(code).toBe(3);
    expect(out).toContain('No gateway answers at http://127.0.0.1:5520.');
    expect(out).toContain('hopgate serve');
  });

  test('a running one: version, state, and why a target rests', async () => {
    answers({
      '/': ABOUT,
      '/readyz': [200, { status: 'ready' }],
      '/health/targets': [
        200,
        {
          targets: [
            { target: 'glm/glm-4.7', state: 'resting' },
            { target: 'glm/glm-4.6', state: 'serving' },
            { target: 'glm/nope', state: 'no_model' },
            { target: 'glm/glm-4.5', state: 'half_open' },
          ],
          rests: [
            {
              provider: 'glm',
              model: 'glm-4.7',
              key: 'key-1',
              reason: 'rate_limit',
              status: 429,
              until: '2026-11-23T22:00:00.000Z',
            },
          ],
        },
      ],
    });
    const { code, out } = await world.run(['status']);
    expect(code).toBe(0);
    expect(out).toContain('hopgate 9.8.7 at http://127.0.0.1:5520: ready');
    expect(out).toMatch(/glm\/glm-4\.7 +cooling down +key-1 \(rate_limit, status 429\)/);
    expect(out).toMatch(/glm\/glm-4\.6 +serving/);
    expect(out).toMatch(/glm\/nope +no such model at its vendor/);
    expect(out).toMatch(/glm\/glm-4\.5 +being tried again/);
    const json = JSON.parse((await world.run(['status', '--json'])).out);
    expect(json).toMatchObject({ running: true, ready: true, version: '9.8.7' });
  });

  test('a rest whose time is over does not show a time that has passed', async () => {
    const rest = { provider: 'glm', model: 'm', key: 'key-1', reason: 'rate_limit', status: 429 };
    const status = async (until: number) => {
      answers({
        '/': ABOUT,
        '/readyz': [200, { status: 'ready' }],
        '/health/targets': [
          200,
          {
            targets: [{ target: 'glm/m', state: 'serving' }],
            rests: [{ ...rest, until: new Date(until).toISOString() }],
          },
        ],
      });
      return (await world.run(['status'])).out;
    };
    expect(await status(Date.now() - 1000)).toContain('until the next request has tried it');
    expect(await status(Date.now() + 60_000)).toContain('until 20');
  });

  test('one that drains is not ready: exit 3 and the reason', async () => {
    answers({ '/': ABOUT, '/readyz': [503, { status: 'not ready', reason: 'draining' }] });
    const { code, out } = await world.run(['status']);
    expect([code, out.split('\n')[0]]).toEqual([
      3,
      'hopgate 9.8.7 at http://127.0.0.1:5520: draining',
    ]);
  });

  test.each([401, 403])(
    'keys of the file that may not see targets (%d): it says which may, and does not look like a gateway without targets',
    async (status) => {
      answers({
        '/': ABOUT,
        '/readyz': [200, { status: 'ready' }],
        '/health/targets': [status, { error: { code: 'not_an_operator' } }],
      });
      const { code, out } = await world.run(['status']);
      expect(code).toBe(0);
      expect(out.replace(/\s+/g, ' ')).toContain('set auth.admin_keys, "sees: all" for a key');
      const json = JSON.parse((await world.run(['status', '--json'])).out);
      expect(json).toMatchObject({ running: true, targets: [], hidden: expect.any(String) });
    },
  );

  test('a gateway that has asked no target yet does not look like one without targets', async () => {
    answers({
      '/': ABOUT,
      '/readyz': [200, { status: 'ready' }],
      '/health/targets': [200, { targets: [], rests: [] }],
    });
    const { code, out } = await world.run(['status']);
    expect([code, out.trim().split('\n').at(-1)]).toEqual([
      0,
      'No target was asked yet; "hopgate doctor" tests them.',
    ]);
  });

  test('another program on the port is not taken for a gateway', async () => {
    answers({ '/': [200, { name: 'nginx' }], '/readyz': [200, {}] });
    const { code, err } = await world.run(['status']);
    expect(code).toBe(1);
    expect(err).toContain('another program answers');
  });
});

const LINE = JSON.stringify({
  level: 'info',
  time: '2026-11-23T22:00:00.000Z',
  event: 'exchange',
  id: 'req_1_abc',
  client: 'openai-chat curl/8',
  target: 'glm/glm-4.7',
  status: 200,
  stream: false,
  timings: { total: 1234 },
  usage: { input: 3, output: 4 },
});

describe('logs', () => {
  test('a file, and lines that are not JSON stay as they are', async () => {
    world.write('gateway.log', `starting\n${LINE}\n${LINE}`);
    const { code, out } = await world.run(['logs', 'gateway.log']);
    const lines = out.split('\n');
    expect([code, lines[0], lines.length]).toEqual([0, 'starting', 4]);
    expect(lines[1]).toMatch(/INFO {2}200 curl → glm\/glm-4\.7 {2}1\.2 s {2}3 in, 4 out/);
    expect(lines[2]).toBe(lines[1]!);
  });

  test('the standard input', async () => {
    const { out } = await world.run(['logs', '-'], `${LINE}\n`);
    expect(out).toContain('glm/glm-4.7');
    expect((await world.run(['logs', '-', '--json'], `${LINE}\n`)).out).toBe(`${LINE}\n`);
  });

  test('no file, no service: exit 1 and where to look', async () => {
    world.platform = 'linux';
    const { code, err } = await world.run(['logs', '--user']);
    expect(code).toBe(1);
    expect(err).toContain('no service');
    const missing = await world.run(['logs', 'missing.log']);
    expect([missing.code, missing.err]).toEqual([1, 'hopgate: missing.log does not exist\n']);
  });

  test("the service's journal, through the options of journalctl", async () => {
    world.platform = 'linux';
    world.write('.config/systemd/user/hopgate.service', '[Service]\n');
    const bin = world.write('bin/journalctl', `#!/bin/sh\necho "$*"\necho '${LINE}'\n`);
    chmodSync(bin, 0o755);
    world.variables.PATH = join(world.home, 'bin');
    const { code, out } = await world.run(['logs', '--user', '-n', '7']);
    expect(code).toBe(0);
    expect(out.split('\n')[0]).toBe(
      '--user --unit hopgate.service --lines 7 --no-pager --output cat',
    );
    expect(out).toContain('→ glm/glm-4.7');
  });
});

describe('ui', () => {
  test('prints the address of a running gateway', async () => {
    answers({ '/': ABOUT });
    const { code, out } = await world.run(['ui', '--print']);
    expect([code, out]).toEqual([0, 'http://127.0.0.1:5520/ui\n']);
  });

  test('docs prints the address of the manual, which needs no key', async () => {
    answers({ '/': ABOUT });
    world.write('.config/hopgate/hopgate.yaml', 'auth: { keys: [key-of-a-client] }\n');
    const { code, out, err } = await world.run(['docs', '--print']);
    expect([code, out, err]).toEqual([0, 'http://127.0.0.1:5520/docs\n', '']);
    expect((await world.run(['ui', '--print'])).err).toContain('asks for a key');
  });

  test('opens it in the browser of a desktop', async () => {
    answers({ '/': ABOUT });
    const seen = join(world.home, 'opened');
    const bin = world.write('bin/xdg-open', `#!/bin/sh\necho "$1" > '${seen}'\n`);
    chmodSync(bin, 0o755);
    Object.assign(world.variables, { PATH: join(world.home, 'bin'), DISPLAY: ':0' });
    world.platform = 'linux';
    expect((await world.run(['ui'])).code).toBe(0);
    // The shell makes the file before it writes.
    const text = async () => ((await Bun.file(seen).exists()) ? Bun.file(seen).text() : '');
    await until(async () => (await text()) !== '');
    expect(await text()).toBe('http://127.0.0.1:5520/ui\n');
  });

  test('no gateway: exit 1', async () => {
    const { code, err } = await world.run(['ui']);
    expect(code).toBe(1);
    expect(err).toContain('no gateway answers');
  });
});
