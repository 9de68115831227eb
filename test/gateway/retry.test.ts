/** Where a request goes after a failure, and what the client hears of it, with two targets and the real network. */

import { afterEach, describe, expect, test } from 'bun:test';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';
import {
  head,
  type RawUpstream,
  rawUpstream,
  rawWorld,
  saying,
  type Wire,
  whole,
} from './raw-upstream.ts';
import { PROTOCOLS } from './scripted.ts';

const NAMES = Object.keys(PROTOCOLS) as ProtocolName[];

const open: RawUpstream[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});

function upstreamWith(answer: (wire: Wire, number: number) => unknown): RawUpstream {
  const upstream = rawUpstream(answer);
  open.push(upstream);
  return upstream;
}

/** Answers every request with these bytes and closes. */
const always = (bytes: string) =>
  upstreamWith(async (wire) => {
    await wire.write(bytes);
    wire.end();
  });

/** Targets a, b, … in this order. */
function route(
  urls: readonly string[],
  more = '',
  vendor: ProtocolName = 'openai-chat',
  keys = 'key-of-the-provider',
  profile = 'none',
) {
  const names = urls.map((_, i) => String.fromCharCode(97 + i));
  const providers = urls.map(
    (url, i) =>
      `  ${names[i]}: { protocol: ${vendor}, base_url: "${url}", profile: ${profile}, keys: ["${keys}"] ${i === 0 ? more : ''} }`,
  );
  return rawWorld(
    `providers:\n${providers.join('\n')}\nroutes: [{ to: [${names.map((name) => `${name}/m`).join(', ')}] }]\nretry: { attempts: 2, base_delay: 0 }`,
  );
}

const overflow = (words: string, more: object = {}) =>
  whole(400, JSON.stringify({ error: { message: words, type: 'invalid_request_error', ...more } }));

describe('a prompt that is too long', () => {
  const WORDS: readonly (readonly [string, string])[] = [
    [
      'OpenAI',
      overflow("This model's maximum context length is 10 tokens.", {
        code: 'context_length_exceeded',
      }),
    ],
    [
      'vLLM',
      whole(
        400,
        JSON.stringify({
          object: 'error',
          message: "This model's maximum context length is 10 tokens. However, you requested 20.",
          type: 'BadRequestError',
          code: 400,
        }),
      ),
    ],
    ['GLM', overflow('Prompt exceeds max length', { code: '1261' })],
    [
      'llama.cpp',
      overflow('the request exceeds the available context size', {
        code: 400,
        type: 'exceed_context_size_error',
      }),
    ],
    ['a proxy', whole(413, '{"error":{"message":"Payload Too Large"}}')],
  ];
  for (const [who, bytes] of WORDS) {
    test(`${who}: goes to the next target, once`, async () => {
      const a = always(bytes);
      const b = always(saying('openai-chat', false, 'Fits.'));
      const seen = await route([a.url, b.url]).ask('openai-chat', false);
      expect([seen.status, a.asked, b.asked]).toEqual([200, 1, 1]);
      expect(seen.text).toContain('Fits.');
    });
  }

  for (const client of NAMES) {
    test(`${client}: the first error is returned where no target takes it, in words that agents compact on`, async () => {
      for (const [who, bytes] of WORDS.slice(0, 4)) {
        for (const stream of [true, false]) {
          const a = always(bytes);
          const b = always(
            overflow('maximum context length of the second', { code: 'context_length_exceeded' }),
          );
          const seen = await route([a.url, b.url]).ask(client, stream);
          expect([who, seen.status, a.asked, b.asked]).toEqual([who, 400, 1, 1]);
          const { error } = JSON.parse(seen.text);
          expect(error.message).not.toContain('the second');
          if (client === 'anthropic-messages')
            expect(error.message).toContain('prompt is too long');
          else expect(error.code).toBe('context_length_exceeded');
        }
      }
    });
  }

  test('trouble of the next target does not hide what the client can act on', async () => {
    const a = always(overflow('maximum context length is 10', { code: 'context_length_exceeded' }));
    const b = always(whole(500, '{"error":{"message":"down"}}'));
    const seen = await route([a.url, b.url]).ask('openai-chat', false);
    expect([seen.status, JSON.parse(seen.text).error.code]).toEqual([
      400,
      'context_length_exceeded',
    ]);
  });
});

describe('a target that cannot be reached', () => {
  test('is passed over at once where there is another one', async () => {
    const dead = rawUpstream(() => {});
    dead.stop();
    const b = always(saying('openai-chat', false, 'From b.'));
    const world = route([dead.url, b.url]);
    const seen = await world.ask('openai-chat', false);
    expect(seen.text).toContain('From b.');
    expect(world.summaries[0]?.tries).toBe(2);
  });

  test('is tried again where there is none', async () => {
    const dead = rawUpstream(() => {});
    dead.stop();
    const world = route([dead.url]);
    const seen = await world.ask('openai-chat', false);
    expect([seen.status, world.summaries[0]?.tries]).toEqual([502, 2]);
    expect(seen.text).toContain('ECONNREFUSED');
  });

  test('a TLS handshake that hangs ends after timeouts.connect', async () => {
    // It takes bytes and says nothing.
    const mute = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
    const b = always(saying('openai-chat', false, 'From b.'));
    const url = `https://127.0.0.1:${mute.port}`;
    const more = ', timeouts: { connect: 0.3 }';
    const both = route([url, b.url], more);
    const seen = await both.ask('openai-chat', false);
    expect([seen.text.includes('From b.'), both.summaries[0]?.tries]).toEqual([true, 2]);
    const alone = await route([url], more).ask('openai-chat', false);
    expect(alone.status).toBe(504);
    expect(alone.text).toContain('timeouts.connect');
    mute.stop(true);
  });
});

describe('a target without room', () => {
  const slow = (words: string) =>
    upstreamWith(async (wire) => {
      await Bun.sleep(300);
      await wire.write(saying('openai-chat', false, words));
    });

  test('is passed over while another one has some', async () => {
    const [a, b] = [slow('From a.'), slow('From b.')];
    const world = route([a.url, b.url], ', concurrency: 1');
    const [first, second] = await Promise.all([
      world.ask('openai-chat', false),
      world.ask('openai-chat', false),
    ]);
    expect([first!.text.includes('From a.'), second!.text.includes('From b.')]).toEqual([
      true,
      true,
    ]);
  });

  test('is waited for where there is no other, and the wait is logged', async () => {
    const a = slow('From a.');
    const world = route([a.url], ', concurrency: 1');
    await Promise.all([1, 2, 3].map(() => world.ask('openai-chat', false)));
    const waits = world.summaries.map(({ queue }) => queue ?? 0).sort((x, y) => x - y);
    expect(waits[1]! - waits[0]!).toBeGreaterThan(100);
    expect(waits[2]! - waits[1]!).toBeGreaterThan(100);
  });
});

describe('an answer of nothing', () => {
  for (const client of NAMES) {
    test(`${client}: is asked for once more, and the client gets x-should-retry: false`, async () => {
      for (const stream of [true, false]) {
        const a = always(saying('openai-chat', stream, ''));
        const world = rawWorld(
          `providers: { a: { protocol: openai-chat, base_url: "${a.url}", models: ["*"] } }\nretry: { attempts: 5, base_delay: 0 }`,
        );
        const seen = await world.ask(client, stream);
        expect([seen.status, a.asked]).toEqual([502, 2]);
        expect(seen.headers.get('x-should-retry')).toBe('false');
        expect(seen.text).toContain('nothing at all');
      }
    });
  }

  test('goes to the next target where there is one', async () => {
    const a = always(saying('openai-chat', true, ''));
    const b = always(saying('openai-chat', true, 'Words.'));
    const seen = await route([a.url, b.url]).ask('openai-chat', true);
    expect([seen.text.includes('Words.'), a.asked, b.asked]).toEqual([true, 1, 1]);
  });
});

describe('a request that a template refuses', () => {
  test.each([
    'Jinja Exception: System message must be at the beginning',
    'Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error',
  ])('%s: is the request at fault, whatever the status', async (message) => {
    for (const client of NAMES) {
      const a = always(
        whole(500, JSON.stringify({ error: { code: 500, message, type: 'server_error' } })),
      );
      const b = always(saying('openai-chat', false, 'Never.'));
      const seen = await route([a.url, b.url], '', 'openai-chat', 'k', 'llamacpp').ask(
        client,
        false,
      );
      expect([client, seen.status, a.asked, b.asked]).toEqual([client, 400, 1, 0]);
      expect(JSON.parse(seen.text).error.type).toBe('invalid_request_error');
      expect(seen.text).toContain(message.slice(0, 20));
      expect(seen.text).not.toContain('"code":"500"');
    }
  });
});

describe('a job', () => {
  for (const status of ['queued', 'in_progress']) {
    test(`${status}: is the answer, and is asked for once`, async () => {
      const body = JSON.stringify({
        id: 'resp_1',
        object: 'response',
        status,
        background: true,
        output: [],
      });
      const [a, b] = [always(whole(200, body)), always(whole(200, body))];
      const seen = await route([a.url, b.url], '', 'openai-responses').ask(
        'openai-responses',
        false,
        { background: true, store: true },
      );
      expect([seen.status, seen.text, a.asked, b.asked]).toEqual([200, body, 1, 0]);
    });
  }

  test('an answer that was not asked for is an error, and is not tried again', async () => {
    const a = always(
      whole(
        200,
        JSON.stringify({ id: 'resp_1', object: 'response', status: 'queued', output: [] }),
      ),
    );
    for (const client of NAMES) {
      const world = route([a.url, a.url], '', 'openai-responses');
      const before = a.asked;
      const seen = await world.ask(client, false);
      expect([client, seen.status, a.asked - before]).toEqual([client, 502, 1]);
      expect(seen.headers.get('x-should-retry')).toBe('false');
    }
  });
});

describe('what a client is told of a vendor', () => {
  for (const client of NAMES) {
    test(`${client}: a refused key is the gateway's, and the log has its name`, async () => {
      for (const status of [401, 403]) {
        const a = always(whole(status, '{"error":{"message":"Incorrect API key provided"}}'));
        const world = route([a.url], '', client);
        const seen = await world.ask(client, false);
        expect(seen.status).toBe(502);
        expect(seen.text).toContain("the gateway's own key");
        expect(seen.headers.get('x-should-retry')).toBe('false');
        expect(world.refusedKeys[0]).toMatch(new RegExp(`^a key-[0-9a-f]{6} ${status}$`));
        // The words say what is wrong, whatever the status.
        expect(world.summaries[0]?.error?.kind).toBe('authentication');
      }
    });

    test(`${client}: a page of HTML is no error answer`, async () => {
      const page = '<html><body><h1>502 Bad Gateway</h1></body></html>';
      const a = always(
        `HTTP/1.1 418 No\r\ncontent-type: text/html\r\ncontent-length: ${page.length}\r\n\r\n${page}`,
      );
      const seen = await route([a.url], '', client).ask(client, false);
      expect(seen.headers.get('content-type')).toContain('application/json');
      expect(JSON.parse(seen.text).error.message).not.toContain('<');
    });
  }

  test.each(['plain-key-of-vendor', 'with"quote\\and/slash'])(
    'the key %s is nowhere, in whichever spelling',
    async (key) => {
      const json = JSON.stringify(key).slice(1, -1);
      const echoes = [key, json, json.replaceAll('/', '\\/'), encodeURIComponent(key)];
      const yaml = JSON.stringify(key).slice(1, -1);
      for (const client of NAMES) {
        for (const echo of echoes) {
          const error = `{"error":{"message":"Bad request with key ${JSON.stringify(echo).slice(1, -1)}","type":"invalid_request_error","code":${JSON.stringify(echo)}},"raw":"${json}"}`;
          const a = always(whole(400, error, `x-echo: Bearer ${echo}\r\n`));
          const seen = await route([a.url], '', 'openai-chat', yaml).ask(client, false);
          const all = seen.text + JSON.stringify([...seen.headers]);
          expect(seen.status).toBe(400);
          for (const one of [...echoes, ...echoes.map((text) => JSON.stringify(text).slice(1, -1))])
            expect(all).not.toContain(one);
        }
        const fine = always(
          saying('openai-chat', false, 'Fine.').replace('\r\n', `\r\nx-echo: ${key}\r\n`),
        );
        const seen = await route([fine.url], '', 'openai-chat', yaml).ask(client, false);
        expect(JSON.stringify([...seen.headers])).not.toContain(json);
      }
    },
  );

  test('no header that a browser would obey, and no control characters', async () => {
    const held = [
      'Access-Control-Allow-Origin: *',
      'access-control-allow-credentials: true',
      'Clear-Site-Data: "*"',
      'Set-Cookie: a=b',
      'set-cookie2: a',
      'Content-Security-Policy: x',
      'refresh: 0',
      'link: </x>; rel=preload',
      'report-to: x',
      'NEL: x',
      'service-worker-allowed: /',
      'cross-origin-opener-policy: x',
      'www-authenticate: Basic',
      'access-control-expose-headers:',
      // No field of an API.
      'x-vendor: a',
    ];
    for (const stream of [true, false]) {
      for (const [status, text] of [
        ['200 OK', 'fine'],
        ['400 No', ''],
      ] as const) {
        const answer =
          text === ''
            ? whole(400, '{"error":{"message":"no"}}')
            : saying('openai-chat', stream, text);
        const at = answer.indexOf('\r\n') + 2;
        const a = always(
          `HTTP/1.1 ${status}\r\n${held.join('\r\n')}\r\nx-trace-id: a\x01b\x1b[31m\x7fc\r\n${answer.slice(at)}`,
        );
        const seen = await route([a.url]).ask('openai-chat', stream);
        for (const line of held) {
          const name = line.slice(0, line.indexOf(':')).toLowerCase();
          expect([name, seen.headers.get(name)]).toEqual([name, null]);
        }
        expect(seen.headers.get('x-trace-id')).toBe('a b [31m c');
      }
    }
  });

  test('counts of tokens are counts', async () => {
    const usage =
      '"usage":{"prompt_tokens":1e999,"completion_tokens":-5,"total_tokens":1,"prompt_tokens_details":{"cached_tokens":-1}}';
    const body = saying('openai-chat', false, 'x');
    const text = body.slice(body.indexOf('\r\n\r\n') + 4).replace(/"usage":\{[^}]*\}/, usage);
    const a = always(whole(200, text));
    const world = route([a.url]);
    await world.ask('anthropic-messages', false);
    for (const count of Object.values(world.summaries[0]?.usage ?? {})) {
      expect(Number.isFinite(count) && Number(count) >= 0).toBe(true);
    }
  });
});

test('an upstream that says nothing of an error for long is still that error', async () => {
  const a = upstreamWith((wire) =>
    wire.write('HTTP/1.1 400 No\r\ncontent-type: application/json\r\n\r\n{"error":'),
  );
  const seen = await route([a.url], ', timeouts: { idle: 0.2 }').ask('openai-chat', false);
  expect(seen.status).toBe(400);
  expect(head('x')).toContain('200');
});
