/** Recorded exchanges through the compiled binary: a command finds the cause of a 500; kill -9; canary credentials. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isObject, type Json, type JsonObject } from '../../src/lib/json/json.ts';
import { readJson } from '../../src/samples/store/read-meta.ts';
import { namesOf, parseName } from '../../src/samples/store/sample-files.ts';
import { chatHistory, messagesHistory } from '../samples/record/histories.ts';
import {
  binary,
  cleanEnv,
  type Gateway,
  runBinary,
  startGateway,
  threeProviders,
} from '../support/binary.ts';
import {
  type FakeUpstream,
  refuse,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';

setDefaultTimeout(60_000);

let upstream: FakeUpstream;
let folder: string;
beforeAll(async () => {
  upstream = await startFakeUpstream();
  folder = mkdtempSync(join(tmpdir(), 'hopgate-e2e-samples-'));
});
afterAll(async () => {
  await upstream.stop();
  rmSync(folder, { recursive: true, force: true });
});

const list = (value: Json | undefined) => (Array.isArray(value) ? (value as readonly Json[]) : []);

/** Whether GLM fails on the body: its last tool result is a large record of an executed tool. */
function glmFails(body: JsonObject): boolean {
  const last = list(body.messages).findLast((one) => isObject(one) && one.role === 'tool');
  const content = isObject(last) ? last.content : undefined;
  return typeof content === 'string' && content.length > 8192 && content.includes('rcc.tool.v1');
}

const OPERATION_FAILED = { error: { code: '500', message: 'Operation failed' } };

/** Answers as GLM does; `rate` is the share of failing requests among those that can fail. */
function asGlm(rate = 1): void {
  let state = 4711;
  upstream.answerWith(({ body }) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    const unlucky = state / 0x7fffffff < rate;
    return glmFails(body) && unlucky ? refuse(500, {}, OPERATION_FAILED) : say('Fine.');
  });
}

const config = (more: Record<string, unknown> = {}) =>
  threeProviders(upstream, {
    samples: { mode: 'all', dir: join(folder, `samples-${Math.random().toString(36).slice(2)}`) },
    ...more,
  }) as { samples: { dir: string } };

const post = (
  gateway: Gateway,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
) =>
  fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

const command = (gateway: Gateway, ...args: string[]) =>
  runBinary([...args, '--config', gateway.configPath], {
    env: { HOPGATE_HOME: join(gateway.home, 'state') },
  });

/** Waits until that many samples are complete. */
async function recorded(
  gateway: Gateway,
  count: number,
): Promise<{ id: string; status: number; state: string }[]> {
  let stdout = '';
  return until(
    async () => {
      ({ stdout } = await command(gateway, 'samples', '--json', '--limit', '1000'));
      const { samples } = JSON.parse(stdout) as {
        samples: { id: string; status: number; state: string }[];
      };
      return samples.filter(({ state }) => state === 'done').length >= count && samples;
    },
    () => stdout,
  );
}

describe('a vendor’s 500 caused by one tool result', () => {
  test('the 500 is recorded, replayed and bisected to the tool result, and the file is a body that curl can post', async () => {
    asGlm();
    const setup = config();
    const gateway = await startGateway(setup);
    try {
      const body = { ...chatHistory(60), model: 'via-chat' };
      const response = await post(gateway, '/v1/chat/completions', body);
      expect(response.status).toBe(500);
      await response.text();
      const [sample] = await recorded(gateway, 1);
      const id = sample!.id;
      expect(id).toBe(response.headers.get('x-hopgate-request-id')!);

      // Shell one-liners with jq work on the file.
      const file = join(setup.samples.dir, 'openai-chat', `${id}_provider-request.json`);
      expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(upstream.modelRequests.at(-1)!.body);

      const replayed = await command(
        gateway,
        'replay',
        '--last',
        '1',
        '--where',
        'status=5xx',
        '--json',
      );
      expect(JSON.parse(replayed.stdout)).toMatchObject({
        runs: [
          {
            sample: id,
            status: 500,
            error: { message: 'Operation failed' },
            recorded: { status: 500 },
          },
        ],
        settings: [{ runs: 1, failed: 1 }],
      });

      const before = upstream.modelRequests.length;
      const found = await command(gateway, 'bisect', id, '--budget', '40', '--json');
      expect(found.stderr).not.toContain('internal error');
      expect(found.code).toBe(0);
      const report = JSON.parse(found.stdout) as JsonObject & {
        cause: { at: string; bytes: number };
        samples: { minimal: string; passing: string };
      };
      expect(upstream.modelRequests.length - before).toBe(report.probes as number);
      expect(report.probes).toBeLessThanOrEqual(40);
      expect(report.cause.at).toBe('/messages/59/content');
      expect(report.words).toMatch(/^the last tool result: 4\d KB JSON at messages\[59\]\.content/);
      expect(upstream.refusals).toEqual([]);

      // Both are samples now: one fails, the other passes.
      const { minimal, passing } = report.samples;
      const shown = await command(gateway, 'samples', 'show', minimal, '--json');
      expect(JSON.parse(shown.stdout)).toMatchObject({
        status: 500,
        about: expect.stringContaining(id),
      });
      const both = await command(gateway, 'replay', minimal, passing, '--json');
      const runs = (JSON.parse(both.stdout) as { runs: { status: number }[] }).runs;
      expect(runs.map(({ status }) => status)).toEqual([500, 200]);
    } finally {
      await gateway.stop();
    }
  });

  test('bisect finds the cause of a 500 that happens 6 times in 10', async () => {
    asGlm();
    const gateway = await startGateway(config());
    try {
      const response = await post(gateway, '/v1/chat/completions', {
        ...chatHistory(60),
        model: 'via-chat',
      });
      expect(response.status).toBe(500);
      const [sample] = await recorded(gateway, 1);
      asGlm(0.6);
      const found = await command(gateway, 'bisect', sample!.id, '--budget', '150', '--json');
      const report = JSON.parse(found.stdout) as { cause: { at: string }; failure_rate: number };
      expect(report.cause.at).toBe('/messages/59/content');
    } finally {
      await gateway.stop();
    }
  });

  test('bisect tells a profile that shortens results from chance', async () => {
    asGlm(0.9);
    const gateway = await startGateway(config());
    try {
      await post(gateway, '/v1/chat/completions', { ...chatHistory(60), model: 'via-chat' });
      const [sample] = await recorded(gateway, 1);
      const { stdout } = await command(
        gateway,
        'replay',
        sample!.id,
        '--repeat',
        '12',
        '--json',
        '--compare',
        'profile.shortToolResults=false',
        'profile.shortToolResults=true',
      );
      const { settings, p, more_than_chance } = JSON.parse(stdout) as {
        settings: { failed: number }[];
        p: number;
        more_than_chance: boolean;
      };
      expect(settings[0]!.failed).toBeGreaterThan(7);
      expect(settings[1]!.failed).toBe(0);
      expect(p).toBeLessThan(0.01);
      expect(more_than_chance).toBe(true);
    } finally {
      await gateway.stop();
    }
  });
});

describe('failures without an error status', () => {
  test('a stream that breaks off is bisected', async () => {
    upstream.answerWith(({ body }) =>
      JSON.stringify(body.messages).includes('rcc.tool.v1')
        ? say('This is cut off in the middle of it all.', {
            delivery: { cut: { at: 0.6, by: 'reset' } },
          })
        : say('Fine.'),
    );
    const gateway = await startGateway(config());
    try {
      const body = {
        ...messagesHistory(12, `{"version":"rcc.tool.v1","x":"${'y'.repeat(2000)}"}`),
        model: 'via-messages',
      };
      const response = await post(gateway, '/v1/messages', body, {
        'anthropic-version': '2023-06-01',
      });
      await response.text().catch(() => '');
      const [sample] = await recorded(gateway, 1);
      const found = await command(gateway, 'bisect', sample!.id, '--json');
      expect(JSON.parse(found.stdout)).toMatchObject({
        cause: { at: '/messages/24/content/1/content' },
      });
    } finally {
      await gateway.stop();
    }
  });

  test('an empty answer with a normal finish is bisected', async () => {
    upstream.answerWith(({ body }) => (glmFails(body) ? { parts: [] } : say('Fine.')));
    const gateway = await startGateway(config());
    try {
      const body = { ...chatHistory(30), model: 'via-chat', stream: true };
      await (await post(gateway, '/v1/chat/completions', body)).text();
      const [sample] = await recorded(gateway, 1);
      const found = await command(gateway, 'bisect', sample!.id, '--json');
      expect(JSON.parse(found.stdout)).toMatchObject({ cause: { at: '/messages/29/content' } });
    } finally {
      await gateway.stop();
    }
  });
});

describe('commands while the gateway runs', () => {
  test('list, show, diff, export and import report the exchange', async () => {
    upstream.answerWith(() => say('Hello there.'));
    const setup = config();
    const gateway = await startGateway(setup);
    try {
      const body = {
        model: 'via-messages',
        max_tokens: 50,
        messages: [{ role: 'user', content: 'A secret story about Ada.' }],
      };
      const stream = await post(
        gateway,
        '/v1/messages',
        { ...body, stream: true },
        { 'anthropic-version': '2023-06-01' },
      );
      const text = await stream.text();
      const bridged = await post(gateway, '/v1/chat/completions', {
        model: 'via-messages',
        messages: body.messages,
        seed: 7,
      });
      await bridged.text();
      const samples = await recorded(gateway, 2);
      expect(samples.map(({ status }) => status)).toEqual([200, 200]);
      const [chat, messages] = samples;

      // The passthrough, proved from the sample: sent and received bytes are equal.
      const stored = (id: string, entry: string, stage: string) =>
        readFileSync(join(setup.samples.dir, entry, `${id}_${stage}`));
      expect(stored(messages!.id, 'anthropic-messages', 'client-response.sse').toString()).toBe(
        text,
      );
      expect(stored(messages!.id, 'anthropic-messages', 'provider-response.sse').toString()).toBe(
        text,
      );
      expect(
        stored(messages!.id, 'anthropic-messages', 'provider-request.json').equals(
          upstream.modelRequests.at(-2)!.bytes,
        ),
      ).toBe(true);

      const table = await command(gateway, 'samples', '--model', 'via-*');
      expect(table.stdout).toContain(chat!.id);
      expect(table.stdout).toContain('messages/m1');
      const show = await command(gateway, 'samples', 'show', chat!.id);
      expect(show.stdout).toContain('provider-request');
      const diff = await command(gateway, 'samples', 'diff', chat!.id, '--json');
      const { changes } = JSON.parse(diff.stdout) as { changes: { at: string; rules: string[] }[] };
      expect(changes.find(({ at }) => at === '/seed')?.rules).toEqual(['parameter_dropped']);

      const out = join(folder, 'one.json');
      await command(gateway, 'samples', 'export', chat!.id, '--redact', '--output', out);
      expect(readFileSync(out, 'utf8')).not.toContain('Ada');
      expect((statSync(out).mode & 0o777).toString(8)).toBe('600');
      const elsewhere = join(folder, 'elsewhere');
      const imported = await runBinary(['samples', 'import', out, '--dir', elsewhere]);
      expect(imported.stdout.trim()).toBe(chat!.id);
      const again = await command(gateway, 'replay', out, '--json');
      expect(JSON.parse(again.stdout)).toMatchObject({ runs: [{ status: 200 }] });
      // The message names the missing stage.
      const wrong = await command(
        gateway,
        'samples',
        'diff',
        chat!.id,
        'client-request',
        'hop7-provider-request',
      );
      expect(wrong.code).toBe(2);
      expect(wrong.stderr).toContain('has no stage');
    } finally {
      await gateway.stop();
    }
  });
});

describe('an interrupted bisection', () => {
  test('an interrupted bisection reports its progress, and the same command resumes it', async () => {
    asGlm();
    const gateway = await startGateway(config());
    try {
      await post(gateway, '/v1/chat/completions', { ...chatHistory(60), model: 'via-chat' });
      const [sample] = await recorded(gateway, 1);
      let requestCount = 0;
      upstream.answerWith(async ({ body }) => {
        if (++requestCount > 4) await Bun.sleep(200);
        return glmFails(body) ? refuse(500, {}, OPERATION_FAILED) : say('Fine.');
      });
      const argv = [await binary(), 'bisect', sample!.id, '--json', '--config', gateway.configPath];
      const env = cleanEnv(gateway.home);
      const child = Bun.spawn(argv, { env, stdout: 'pipe', stderr: 'ignore' });
      while (requestCount < 6) await Bun.sleep(10);
      child.kill('SIGINT');
      const first = JSON.parse(await new Response(child.stdout).text()) as {
        probes: number;
        result: string;
      };
      expect(first.result).toBe('partial');
      expect(first.probes).toBeLessThanOrEqual(6);
      asGlm();
      const before = upstream.modelRequests.length;
      const second = await command(gateway, 'bisect', sample!.id, '--json');
      expect(second.stderr).toContain('Going on with an earlier run');
      const report = JSON.parse(second.stdout) as { probes: number; cause: { at: string } };
      expect(report.cause.at).toBe('/messages/59/content');
      expect(upstream.modelRequests.length - before).toBe(report.probes);
    } finally {
      await gateway.stop();
    }
  });
});

describe('sample modes by route', () => {
  test('one route keeps nothing, another keeps everything, the others keep only errors', async () => {
    upstream.answerWith(({ body }) =>
      body.model === 'bad' ? refuse(400, {}, { error: { message: 'no' } }) : say('Fine.'),
    );
    const setup = config({
      providers: {
        chat: {
          protocol: 'openai-chat',
          base_url: upstream.baseUrl('openai-chat'),
          keys: ['sk-up'],
          models: ['*'],
        },
      },
      routes: [
        { name: 'private', when: { model: 'private*' }, to: ['chat/bad'], samples: 'off' },
        { name: 'loud', when: { model: 'loud*' }, to: ['chat/*'], samples: 'all' },
        { to: ['chat/*'] },
      ],
    });
    const quiet = { ...setup, samples: { ...setup.samples, mode: 'errors' } };
    const gateway = await startGateway(quiet);
    try {
      for (const model of ['private-1', 'plain', 'bad', 'loud-1']) {
        const body = { model, messages: [{ role: 'user', content: `Words for ${model}.` }] };
        await (await post(gateway, '/v1/chat/completions', body)).text();
      }
      await recorded(gateway, 2);
      await gateway.stop();
      const files = readdirSync(join(setup.samples.dir, 'openai-chat'));
      const content = files
        .map((name) => readFileSync(join(setup.samples.dir, 'openai-chat', name), 'utf8'))
        .join('\n');
      expect(content).toContain('Words for bad.');
      expect(content).toContain('Words for loud-1.');
      expect(content).not.toContain('private-1');
      expect(content).not.toContain('Words for plain');
      expect(content).toContain('"route": "loud"');
    } finally {
      await gateway.stop();
    }
  });
});

describe('kill -9', () => {
  test('under 50 streams, every finished exchange is complete and listed, and the others are marked as cut', async () => {
    const fast = 6;
    upstream.answerWith((_request, n) =>
      say('word '.repeat(200), { delivery: { paceMs: n < fast ? 2 : 150 } }),
    );
    const setup = config();
    const gateway = await startGateway(setup);
    const finished: { id: string; text: string }[] = [];
    const streams = Array.from({ length: 50 }, async (_, i) => {
      const body = {
        model: 'via-chat',
        stream: true,
        messages: [{ role: 'user', content: `Stream ${i}, please.` }],
      };
      try {
        const response = await post(gateway, '/v1/chat/completions', body);
        const text = await response.text();
        finished.push({ id: response.headers.get('x-hopgate-request-id')!, text });
      } catch {
        // The process is killed in the middle.
      }
    });
    await until(() => finished.length >= fast);
    const sure = [...finished];
    const fileOf = (id: string, stage: string) =>
      join(setup.samples.dir, 'openai-chat', `${id}_${stage}`);
    // Samples are written in the background: soon, but not before the client has its end.
    const stateOf = (id: string) => {
      const meta = readJson(fileOf(id, 'meta.json'));
      return isObject(meta) ? meta.state : undefined;
    };
    const isWritten = ({ id }: { id: string }) => stateOf(id) === 'done';
    // Open exchanges are written one after another, in no fixed order, so the test looks up which have their request.
    const underWay = () =>
      [...new Set(namesOf(setup.samples.dir, 'openai-chat').map((name) => parseName(name)?.id))]
        .filter((id) => id !== undefined)
        .filter((id) => stateOf(id) === 'open')
        .filter((id) => readJson(fileOf(id, 'client-request.json')) !== undefined);
    await until(() => sure.every(isWritten));
    await until(() => underWay().length > 20);
    const begun = underWay();
    gateway.signal('SIGKILL');
    await gateway.exited;
    await Promise.all(streams);

    const next = await startGateway(setup);
    try {
      const { stdout } = await command(next, 'samples', '--json', '--limit', '1000');
      const { samples } = JSON.parse(stdout) as {
        samples: { id: string; state: string; status: number }[];
      };
      for (const { id, text } of sure) {
        expect([id, samples.find((row) => row.id === id)]).toMatchObject([
          id,
          { state: 'done', status: 200 },
        ]);
        const stored = readFileSync(
          join(setup.samples.dir, 'openai-chat', `${id}_client-response.sse`),
          'utf8',
        );
        expect(stored).toBe(text);
      }
      const cut = samples.filter(({ state }) => state === 'cut').map(({ id }) => id);
      expect(begun.filter((id) => !cut.includes(id))).toEqual([]);
      expect(samples.filter(({ state }) => state !== 'done' && state !== 'cut')).toEqual([]);
      // The written part of a cut exchange can be read and sent again.
      expect(readJson(fileOf(begun[0]!, 'client-request.json'))).toMatchObject({
        model: 'via-chat',
      });
      const show = await command(next, 'samples', 'show', begun[0]!);
      expect(show.stdout).toContain('unfinished: it is incomplete');
    } finally {
      await next.stop();
      await gateway.stop();
    }
  });
});

describe('kill -9 in the middle of a secret', () => {
  const known = 'plain-words-that-open-the-vault';
  const key = 'sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2';
  const ends = 'The last words before it.';
  test.each([
    ['chat', '/v1/chat/completions', 'openai-chat'],
    ['responses', '/v1/responses', 'openai-responses'],
    ['messages', '/v1/messages', 'anthropic-messages'],
  ])(
    '%s: the page follows the stream, and neither it nor the files show the secret',
    async (name, path, entry) => {
      const before = `${'word '.repeat(400)}The key: ${key}. It opens with: ${known}. ${'word '.repeat(400)}${ends} `;
      const text = `${before}Again: ${key.slice(0, -4)}`;
      upstream.answerWith(() =>
        say(`${text}${'x'.repeat(400)}`, {
          // Some events come before the text, none between its pieces.
          delivery: { piece: 4, cut: { at: Math.ceil(text.length / 4), by: 'hang' } },
        }),
      );
      const setup = config() as {
        samples: { dir: string };
        providers: Record<string, { keys: string[] }>;
      };
      for (const provider of Object.values(setup.providers)) provider.keys = [known];
      const gateway = await startGateway(setup);
      const input = [{ role: 'user', content: 'Hi.' }];
      const given = name === 'responses' ? { input } : { messages: input, max_tokens: 100 };
      const response = await post(gateway, path, { model: `via-${name}`, stream: true, ...given });
      const id = response.headers.get('x-hopgate-request-id')!;
      expect(response.status).toBe(200);
      const heard = response.text().catch(() => 'cut');
      const said = (bytes: string) =>
        [...bytes.matchAll(/"(?:delta|text|content)":"([^"]*)"/g)].map(([, part]) => part).join('');
      const atPage = async () => {
        const url = `${gateway.url}/ui/api/samples/${id}/edges/client-response`;
        return said(await (await fetch(url)).text());
      };
      let shown = '';
      const expectHidden = (part: string) => {
        for (const secret of [known, key]) expect(part).not.toContain(secret.slice(0, 12));
      };
      try {
        await until(
          async () => {
            shown = await atPage();
            expectHidden(shown);
            return shown.includes(ends);
          },
          () => shown,
        );
        expect(shown).toContain('The key: ****');
      } finally {
        gateway.signal('SIGKILL');
        await gateway.exited;
        expect(await heard).toBe('cut');
      }
      const expectFilesHide = () => {
        for (const stage of ['provider-response', 'client-response']) {
          const stored = said(
            readFileSync(join(setup.samples.dir, entry, `${id}_${stage}.sse`), 'utf8'),
          );
          expect(stored.length).toBeGreaterThan(2000);
          expectHidden(stored);
        }
      };
      expectFilesHide();
      const next = await startGateway(setup);
      try {
        await until(async () =>
          (await command(next, 'samples', '--json')).stdout.includes('"cut"'),
        );
        expectFilesHide();
      } finally {
        await next.stop();
        await gateway.stop();
      }
    },
  );
});

describe('canary credentials', () => {
  test('no credential reaches a file or the log, at any stage', async () => {
    const canary = (name: string) => `sk-canary-${name}-A1b2C3d4E5f6G7h8`;
    const plain = 'plainest-secret-of-mine';
    const inQuery = 'query-secret-0815';
    const message = `Incorrect API key provided: ${plain}, see also ${canary('errortext')}`;
    upstream.answerWith((_request, n) =>
      n === 0
        ? refuse(
            401,
            { 'x-echo': canary('vendorheader') },
            { error: { message: message, type: 'invalid_request_error', code: 'invalid_api_key' } },
          )
        : say(`Your key is ${canary('answer')}, and ${plain}.`, { delivery: { piece: 10_000 } }),
    );
    const setup = config({
      providers: {
        chat: {
          protocol: 'openai-chat',
          base_url: upstream.baseUrl('openai-chat'),
          keys: [plain],
          query: { code: inQuery },
          models: ['m1'],
        },
      },
      routes: [{ to: ['chat/m1'] }],
      log: { level: 'trace', format: 'json' },
    });
    const gateway = await startGateway(setup);
    try {
      const body = {
        model: 'm1',
        stream: true,
        messages: [
          {
            role: 'user',
            content: `My key: ${canary('body')} and export OPENAI_API_KEY=${canary('env')}`,
          },
        ],
      };
      const ask = () =>
        post(gateway, `/v1/chat/completions?key=${canary('search')}`, body, {
          authorization: `Bearer ${canary('bearer')}`,
          cookie: `session=${canary('cookie')}`,
          'x-custom': canary('custom'),
        });
      await (await ask()).text();
      await (await ask()).text();
      await recorded(gateway, 2);
      await gateway.stop();
      const files = readdirSync(setup.samples.dir, { recursive: true, encoding: 'utf8' })
        .map((name) => join(setup.samples.dir, name))
        .filter((path) => statSync(path).isFile());
      expect(files.length).toBeGreaterThanOrEqual(9);
      const secrets = [plain, inQuery, 'canary'];
      for (const path of files) {
        const content = readFileSync(path, 'latin1');
        for (const secret of secrets)
          expect([path, content.includes(secret)]).toEqual([path, false]);
      }
      for (const secret of secrets) expect(gateway.stderr()).not.toContain(secret);
      const metas = files.filter((path) => path.endsWith('_meta.json'));
      for (const path of metas) {
        expect(
          (JSON.parse(readFileSync(path, 'utf8')) as { masked: number }).masked,
        ).toBeGreaterThan(5);
      }
    } finally {
      await gateway.stop();
    }
  });
});
