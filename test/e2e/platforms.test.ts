/** Claude and Gemini on Vertex AI, Claude on Bedrock: signed, in the platforms' form, and refused in their words. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  call,
  type FakeUpstream,
  refuse,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { type FakeAws, startFakeAws } from '../support/platforms/fake-aws.ts';
import { EMAIL, type FakeGoogle, startFakeGoogle } from '../support/platforms/fake-google.ts';
import { CLIENT_CHATS } from './clients.ts';

const REGION = 'eu-central-1';
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const MODEL = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0';
const ROLE = 'arn:aws:iam::1:role/caller';
const WEB_ROLE = 'arn:aws:iam::1:role/web';
const NO_RETRY = { attempts: 1 };

let vendor: FakeUpstream;
let aws: FakeAws;
let google: FakeGoogle;
let gateway: InProcess;
let folder: string;
const before = { ...process.env };

/** The AWS libraries read the environment of the process. */
function awsEnvironment(variables: Record<string, string>): void {
  for (const name of Object.keys(process.env))
    if (name.startsWith('AWS_')) delete process.env[name];
  Object.assign(process.env, {
    AWS_CONFIG_FILE: join(folder, 'config'),
    AWS_SHARED_CREDENTIALS_FILE: join(folder, 'credentials'),
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_ENDPOINT_URL_STS: aws.origin,
    ...variables,
  });
}

function configuration(more: Record<string, unknown> = {}) {
  const claude = { platform: 'vertex', protocol: 'anthropic-messages', project: 'demo-project' };
  const vertex = { credentials_file: join(folder, 'account.json'), base_url: google.origin };
  return {
    providers: {
      bedrock: { platform: 'bedrock', region: REGION, base_url: aws.origin, models: [MODEL] },
      keyed: { platform: 'bedrock', region: REGION, base_url: aws.origin, keys: ['bedrock-key-1'] },
      assumed: {
        platform: 'bedrock',
        region: REGION,
        base_url: aws.origin,
        aws_profile: 'caller',
      },
      claude: { ...claude, ...vertex, location: 'global', models: ['claude-*'] },
      gemini: { ...claude, ...vertex, protocol: 'google-gemini', location: 'europe-west1' },
    },
    aliases: {
      'on-bedrock': `bedrock/${MODEL}`,
      'on-vertex': 'claude/claude-sonnet-4-5@20250929',
      'on-gemini': 'gemini/gemini-3-pro-preview',
    },
    retry: NO_RETRY,
    samples: { mode: 'all' },
    ...more,
  };
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hopgate-platforms-'));
  vendor = await startFakeUpstream({ keys: ['sk-inside', 'inside'] });
  aws = startFakeAws({
    vendor,
    region: REGION,
    keys: { AKIDMAIN: { secretAccessKey: SECRET }, AKIDBASE: { secretAccessKey: `${SECRET}2` } },
    bearer: ['bedrock-key-1'],
    roles: {
      [ROLE]: {
        id: 'ASIAROLE',
        secretAccessKey: 'role-secret',
        sessionToken: 'role-session-token',
      },
      [WEB_ROLE]: { id: 'ASIAWEB', secretAccessKey: 'web-secret', sessionToken: 'web-session' },
    },
    identities: ['web-token'],
  });
  google = startFakeGoogle(vendor);
  await writeFile(join(folder, 'account.json'), google.credentials);
  await writeFile(
    join(folder, 'config'),
    `[profile caller]\nrole_arn = ${ROLE}\nsource_profile = base\nregion = ${REGION}\n`,
  );
  await writeFile(
    join(folder, 'credentials'),
    `[base]\naws_access_key_id = AKIDBASE\naws_secret_access_key = ${SECRET}2\n`,
  );
  await writeFile(join(folder, 'web-token'), 'web-token');
  awsEnvironment({ AWS_ACCESS_KEY_ID: 'AKIDMAIN', AWS_SECRET_ACCESS_KEY: SECRET });
  gateway = await startInProcess(configuration());
});
afterEach(() => {
  vendor.clear();
  aws.requests.length = 0;
  google.requests.length = 0;
});
afterAll(async () => {
  await gateway?.stop();
  await aws?.stop();
  await google?.stop();
  await vendor?.stop();
  await rm(folder, { recursive: true, force: true });
  process.env = before;
});

const message = (model: string, more: Record<string, unknown> = {}) => ({
  model,
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hi ü' }],
  ...more,
});
const post = (
  body: unknown,
  headers: Record<string, string> = {},
  path = '/v1/messages',
  to = gateway,
) =>
  fetch(to.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

describe('every client, onto each platform', () => {
  for (const model of ['on-bedrock', 'on-vertex', 'on-gemini']) {
    for (const [protocol, chat] of Object.entries(CLIENT_CHATS)) {
      for (const stream of [true, false]) {
        test(`${protocol} onto ${model}, ${stream ? 'streamed' : 'whole'}: a tool loop`, async () => {
          vendor.enqueue(
            call({ name: 'get_weather', arguments: { city: 'Bonn' } }),
            say('Sunny 👋'),
          );
          const client = chat(gateway.url, { model, stream, tools: true });
          const first = await client.say('Weather?');
          expect(first.calls.map((one) => [one.name, one.arguments])).toEqual([
            ['get_weather', { city: 'Bonn' }],
          ]);
          const last = await client.answer(() => 'sunny');
          expect([last.text, last.finish]).toEqual(['Sunny 👋', 'stop']);
          expect([vendor.refusals, aws.refusals, google.refusals]).toEqual([[], [], []]);
        });
      }
    }
  }
});

describe('Bedrock', () => {
  test('a body goes out as it came, without model and stream, with the version, signed', async () => {
    const answer = await post(message('on-bedrock', { stream: true }), {
      'anthropic-version': '2023-06-01',
      'x-api-key': 'sk-client',
    });
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    expect(await answer.text()).toEndWith('event: message_stop\ndata: {"type":"message_stop"}\n\n');
    const [{ path, headers, body }] = aws.requests as [(typeof aws.requests)[0]];
    expect(path).toBe(`/model/${encodeURIComponent(MODEL)}/invoke-with-response-stream`);
    expect(body).toEqual({
      anthropic_version: 'bedrock-2023-05-31',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hi ü' }],
    });
    expect(headers.authorization).toStartWith('AWS4-HMAC-SHA256 Credential=AKIDMAIN/');
    expect(headers.accept).toBe('application/vnd.amazon.eventstream');
    expect(Object.keys(headers).filter((name) => /anthropic|api-key/.test(name))).toEqual([]);
  });

  test("a key of Bedrock's own needs no signature", async () => {
    const answer = await post(message(`keyed/${MODEL}`));
    expect(answer.status).toBe(200);
    expect(aws.requests[0]!.headers.authorization).toBe('Bearer bedrock-key-1');
  });

  test('a role of a profile is assumed, with its source profile, once', async () => {
    for (let i = 0; i < 2; i++) expect((await post(message(`assumed/${MODEL}`))).status).toBe(200);
    const roles = aws.sts.filter((asked) => asked.get('RoleArn') === ROLE);
    expect(roles.map((asked) => asked.get('Action'))).toEqual(['AssumeRole']);
    const sent = aws.requests.map(({ headers }) => headers['x-amz-security-token']);
    expect(sent).toEqual(['role-session-token', 'role-session-token']);
  });

  test('a web identity gets a role', async () => {
    awsEnvironment({
      AWS_WEB_IDENTITY_TOKEN_FILE: join(folder, 'web-token'),
      AWS_ROLE_ARN: WEB_ROLE,
      AWS_REGION: REGION,
    });
    const own = await startInProcess(configuration());
    try {
      const answer = await post(message('on-bedrock'), {}, '/v1/messages', own);
      expect([answer.status, aws.requests[0]?.headers['x-amz-security-token']]).toEqual([
        200,
        'web-session',
      ]);
    } finally {
      await own.stop();
      awsEnvironment({ AWS_ACCESS_KEY_ID: 'AKIDMAIN', AWS_SECRET_ACCESS_KEY: SECRET });
    }
  });

  test('expired credentials are fetched anew, and the request is sent again', async () => {
    await post(message(`assumed/${MODEL}`));
    const { length } = aws.sts;
    // AWS counts them out before their time; the next assumption gives others.
    aws.keys.ASIAROLE = { ...aws.keys.ASIAROLE!, expires: 1 };
    const answer = await post(message(`assumed/${MODEL}`));
    expect([answer.status, aws.sts.length]).toEqual([200, length + 1]);
    aws.refusals.splice(0);
  });

  test('a wrong clock is set right by the answer', async () => {
    const late = startFakeAws({
      vendor,
      region: REGION,
      keys: { AKIDMAIN: { secretAccessKey: SECRET } },
      clockMs: 3_600_000,
    });
    const bedrock = { platform: 'bedrock', region: REGION, base_url: late.origin };
    const own = await startInProcess({ ...configuration(), providers: { bedrock } });
    try {
      for (let i = 0; i < 2; i++) {
        expect((await post(message('on-bedrock'), {}, '/v1/messages', own)).status).toBe(200);
      }
      expect(late.refusals).toHaveLength(1);
    } finally {
      await own.stop();
      await late.stop();
    }
  });

  test('a wrong secret is a fault of the gateway, and no credential of it shows anywhere', async () => {
    awsEnvironment({
      AWS_ACCESS_KEY_ID: 'ASIAROLE',
      AWS_SECRET_ACCESS_KEY: 'a-wrong-secret-key',
      AWS_SESSION_TOKEN: 'role-session-token',
    });
    aws.keys.ASIAROLE = { secretAccessKey: 'the-right-one', sessionToken: 'role-session-token' };
    const own = await startInProcess(configuration());
    try {
      const answer = await post(message('on-bedrock'), {}, '/v1/messages', own);
      const text = await answer.text();
      expect(answer.status).toBe(502);
      expect(text).toContain('The request signature we calculated does not match');
      expect(text).toContain("gateway's own key");
      // AWS quotes the request with its token.
      expect(aws.refusals.at(-1)).toContain('role-session-token');
      const shown = [text, ...own.lines, await allFiles(own.home)].join('\n');
      expect(shown).not.toContain('role-session-token');
      expect(shown).not.toContain('a-wrong-secret-key');
    } finally {
      await own.stop();
      aws.refusals.splice(0);
      awsEnvironment({ AWS_ACCESS_KEY_ID: 'AKIDMAIN', AWS_SECRET_ACCESS_KEY: SECRET });
    }
  });

  test('no credentials at all are an error that says so', async () => {
    awsEnvironment({});
    const own = await startInProcess(configuration());
    try {
      const answer = await post(message('on-bedrock'), {}, '/v1/messages', own);
      expect(answer.status).toBe(502);
      expect(await answer.text()).toContain('Provider bedrock has no AWS credentials: ');
    } finally {
      await own.stop();
      awsEnvironment({ AWS_ACCESS_KEY_ID: 'AKIDMAIN', AWS_SECRET_ACCESS_KEY: SECRET });
    }
  });

  const ERRORS = [
    [400, 'invalid_request_error', 'messages: at least one message is required'],
    [403, 'permission_error', "does not allow this to the gateway's own key"],
    [404, 'not_found_error', 'not found'],
    [429, 'rate_limit_error', 'Too many tokens, please wait before trying again.'],
    [503, 'overloaded_error', 'Bedrock is unable to process your request.'],
  ] as const;
  for (const [status, type, words] of ERRORS) {
    test(`its error ${status} is ${type}`, async () => {
      const error = { type: 'error', error: { type: 'x', message: words } };
      vendor.enqueue(refuse(status, {}, error));
      const answer = await post(message('on-bedrock'));
      const { error: got } = (await answer.json()) as { error: { type: string; message: string } };
      expect([got.type, got.message.includes(words)]).toEqual([type, true]);
      aws.refusals.splice(0);
    });
  }

  test('a prompt that is too long is told in the words by which agents compact', async () => {
    const message1 = 'Input is too long for requested model.';
    vendor.enqueue(refuse(400, {}, { type: 'error', error: { type: 'x', message: message1 } }));
    const answer = await post(message('on-bedrock'));
    expect(await answer.text()).toContain('prompt is too long');
    aws.refusals.splice(0);
  });

  test('an exception in a stream is an error, before its content and behind it', async () => {
    aws.fail('throttlingException', 'Too many requests.', 0);
    const early = await post(message('on-bedrock', { stream: true }));
    expect([early.status, await early.text()]).toEqual([
      429,
      expect.stringContaining('Too many requests.'),
    ]);
    aws.fail('modelStreamErrorException', 'The model broke off.', 4);
    const late = await post(message('on-bedrock', { stream: true }));
    const text = await late.text().catch((thrown: Error) => thrown.message);
    expect(text).not.toContain('message_stop');
    expect(text).toMatch(/The model broke off|closed|reset/i);
  });

  test('a silent stream is kept alive by pings of the gateway', async () => {
    const own = await startInProcess(configuration({ keep_alive: 0.05 }));
    try {
      vendor.enqueue(say('one two three four', { delivery: { paceMs: 150 } }));
      const answer = await post(message('on-bedrock', { stream: true }), {}, '/v1/messages', own);
      expect(await answer.text()).toContain('event: ping');
    } finally {
      await own.stop();
    }
  });

  test('tokens are counted by the model itself', async () => {
    const { stream: _, max_tokens: __, ...body } = message('on-bedrock') as Record<string, unknown>;
    const answer = await post(body, {}, '/v1/messages/count_tokens');
    const { input_tokens } = (await answer.json()) as { input_tokens: number };
    expect(input_tokens).toBeGreaterThan(0);
    expect(answer.headers.get('x-hopgate-notes') ?? '').not.toContain('tokens_estimated');
    expect(aws.requests[0]!.path).toBe(
      `/model/${encodeURIComponent(MODEL.replace('eu.', ''))}/count-tokens`,
    );
  });

  test('betas that it refuses go with their fields, the others with theirs', async () => {
    const answer = await post(
      message('on-bedrock', {
        speed: 'fast',
        context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
        system: [
          { type: 'text', text: 's', cache_control: { type: 'ephemeral', scope: 'global' } },
        ],
      }),
      {
        'anthropic-beta':
          'fast-mode-2026-02-01,context-management-2025-06-27,prompt-caching-scope-2026-01-05,advanced-tool-use-2025-11-20,unheard-of-2027-01-01',
      },
    );
    expect([answer.status, await answer.clone().text()]).toEqual([200, expect.anything()]);
    const { body } = aws.requests[0]!;
    expect(body.anthropic_beta).toEqual([
      'context-management-2025-06-27',
      'tool-search-tool-2025-10-19',
    ]);
    expect(body.context_management).toBeDefined();
    expect(body.speed).toBeUndefined();
    expect(body.system).toEqual([
      { type: 'text', text: 's', cache_control: { type: 'ephemeral' } },
    ]);
    const notes = answer.headers.get('x-hopgate-notes') ?? '';
    expect(notes).toContain('parameter_dropped');
    expect(notes).toContain('parameter_mapped');
  });

  test('a client that leaves stops the vendor', async () => {
    vendor.enqueue(say('one two three four five six', { delivery: { paceMs: 200 } }));
    const abort = new AbortController();
    const answer = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      signal: abort.signal,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(message('on-bedrock', { stream: true })),
    });
    await answer.body!.getReader().read();
    abort.abort();
    await vendor.modelRequests[0]!.over;
    expect(vendor.modelRequests[0]!.abortedAfterMs).toBeDefined();
  });
});

describe('Vertex AI', () => {
  test('Claude: the version in the body, the model in the path, the betas in the header', async () => {
    const answer = await post(
      message('on-vertex', { stream: true }),
      {
        'anthropic-version': '2023-06-01',
        'anthropic-beta': 'context-1m-2025-08-07,fast-mode-2026-02-01',
      },
      '/v1/messages?beta=true',
    );
    expect(await answer.text()).toContain('message_stop');
    const [{ path, headers, body }] = google.requests as [(typeof google.requests)[0]];
    expect(path).toBe(
      '/v1/projects/demo-project/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict',
    );
    expect(body).toEqual({
      anthropic_version: 'vertex-2023-10-16',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hi ü' }],
      stream: true,
    });
    expect([headers['anthropic-beta'], headers['anthropic-version']]).toEqual([
      'context-1m-2025-08-07',
      undefined,
    ]);
  });

  test('tokens are counted, for Claude and for Gemini', async () => {
    const { max_tokens: _, ...body } = message('on-vertex') as Record<string, unknown>;
    const answer = await post(body, {}, '/v1/messages/count_tokens');
    expect(((await answer.json()) as { input_tokens: number }).input_tokens).toBeGreaterThan(0);
    expect(google.requests[0]!.path).toEndWith('/models/count-tokens:rawPredict');
    const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
    const path = '/v1beta/models/on-gemini:countTokens';
    const counted = await post({ contents }, {}, path);
    expect(((await counted.json()) as { totalTokens: number }).totalTokens).toBeGreaterThan(0);
  });

  // https://github.com/googleapis/python-genai/issues/2847
  test.each([
    ['Gemini', { serviceTier: 'flex' }, 'flex'],
    ['Gemini', { serviceTier: 'SERVICE_TIER_PRIORITY' }, 'priority'],
    ['Gemini', { service_tier: 'standard' }, 'standard'],
    ['Gemini', { serviceTier: 'SERVICE_TIER_UNSPECIFIED' }, undefined],
    ['Gemini', { labels: { a: 'serviceTier' } }, undefined],
    ['Chat', { service_tier: 'flex' }, 'flex'],
    ['Chat', { service_tier: 'default' }, 'standard'],
    ['Chat', { service_tier: 'auto' }, undefined],
  ])('the tier of a request of %s, %p, is a header at Vertex', async (client, asked, tier) => {
    const [body, path] =
      client === 'Chat'
        ? [message('on-gemini', asked), '/v1/chat/completions']
        : [
            { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], ...asked },
            '/v1beta/models/on-gemini:generateContent',
          ];
    expect((await post(body, {}, path)).status).toBe(200);
    const [sent] = google.requests;
    expect(sent!.headers['x-vertex-ai-llm-shared-request-type']).toBe(tier as string);
    expect(JSON.stringify(sent!.body)).not.toMatch(/"service_?tier":/i);
  });

  test('one token serves many requests, and a withdrawn one is replaced at once', async () => {
    const { length } = google.assertions;
    await Promise.all([1, 2, 3].map(() => post(message('on-vertex'))));
    expect(google.assertions.length - length).toBeLessThanOrEqual(1);
    expect(google.assertions.at(-1)).toMatchObject({ iss: EMAIL });
    google.revoke();
    const answer = await post(message('on-vertex'));
    expect(answer.status).toBe(200);
    google.refusals.splice(0);
  });

  test('a token endpoint that fails does no harm while a token holds', async () => {
    await post(message('on-vertex'));
    google.tokenStatus = 503;
    try {
      expect((await post(message('on-vertex'))).status).toBe(200);
      google.revoke();
      const failed = await post(message('on-vertex'));
      expect([failed.status, await failed.text()]).toEqual([
        502,
        expect.stringContaining('got no access token: Google answered 503'),
      ]);
    } finally {
      google.tokenStatus = 200;
      google.refusals.splice(0);
    }
    expect((await post(message('on-vertex'))).status).toBe(200);
  });

  test('credentials that Google refuses are named by their file, without the key', async () => {
    const file = join(folder, 'other.json');
    const other = startFakeGoogle(vendor);
    await writeFile(
      file,
      google.credentials.replaceAll(google.origin, other.origin).replace('gateway@', 'nobody@'),
    );
    const config = configuration();
    const own = await startInProcess({
      ...config,
      providers: { claude: { ...config.providers.claude, credentials_file: file } },
    });
    try {
      const answer = await post(message('on-vertex'), {}, '/v1/messages', own);
      const text = await answer.text();
      expect(answer.status).toBe(502);
      expect(text).toContain(`Google refused those in ${file} (400, invalid_grant`);
      expect(text).not.toContain('PRIVATE KEY');
    } finally {
      await own.stop();
      await other.stop();
    }
  });

  const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
  const gemini = (method: string) => `/v1beta/models/on-gemini:${method}`;
  test.each([
    ['refusal', '/v1/messages', message('on-vertex')],
    ['refusal', '/v1/messages', message('on-vertex', { stream: true })],
    ['refusal', '/v1/messages', message('on-gemini')],
    ['refusal', gemini('generateContent'), { contents }],
    ['refusal', gemini('countTokens'), { contents }],
    ['refusal', gemini('streamGenerateContent?alt=sse'), { contents }],
    ['stream', gemini('streamGenerateContent?alt=sse'), { contents }],
    ['stream', '/v1/messages', message('on-gemini', { stream: true })],
    ['header', gemini('generateContent'), { contents }],
    ['token', '/v1/messages', message('on-vertex')],
  ] as const)('a token that Google repeats shows nowhere: %s, %s', async (repeats, path, body) => {
    const own = await startInProcess(configuration());
    google.repeats = repeats;
    try {
      const answer = await post(body, {}, path, own);
      const { headers } = answer;
      const shown = [await textUntilReset(answer), JSON.stringify([...headers])];
      const all = [...shown, ...own.lines, await allFiles(own.home)].join('\n');
      expect(all).not.toContain('ya29.fake');
      // The assertion, which begins as every JWT does.
      expect(all).not.toContain('eyJhbGciOi');
      expect(shown[0]).toMatch(repeats === 'header' ? /candidates/ : /\*{40}/);
    } finally {
      google.repeats = undefined;
      google.refusals.splice(0);
      await own.stop();
    }
  });

  test("Google's errors reach a Messages client in Anthropic's form", async () => {
    vendor.enqueue(refuse(429));
    const answer = await post(message('on-vertex'));
    expect([answer.status, await answer.json()]).toMatchObject([
      429,
      {
        type: 'error',
        error: { type: 'rate_limit_error', message: 'Resource exhausted. Please try again later.' },
      },
    ]);
    google.refusals.splice(0);
  });
});

/** A stream that fails ends with a reset of its connection. */
async function textUntilReset(answer: Response): Promise<string> {
  let text = '';
  try {
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) text += chunk;
  } catch {}
  return text;
}

/** The text of all files below a folder, once none of them is being written. */
async function allFiles(path: string): Promise<string> {
  for (;;) {
    const names = await readdir(path, { recursive: true, withFileTypes: true });
    const files = names.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
    const texts = await Promise.all(files.map((file) => Bun.file(file).text())).catch(() => {});
    if (texts !== undefined) return texts.join('\n');
  }
}
