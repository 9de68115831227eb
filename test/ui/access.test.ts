/** Access to the page's API: keys and the exchanges they see, DNS rebinding, other sites, hostile content, leaked credentials. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import type {
  First,
  Info,
  LiveEvent,
  SampleDetail,
  SamplesPage,
  Stats,
} from '../../src/ui/api/api.ts';
import { refuse, say } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';
import { type ApiSetup, eventsIn, eventsOfJob, eventsUntil, startApiSetup } from './api-setup.ts';

setDefaultTimeout(60_000);

const CHAT = '/v1/chat/completions';
const ask = (content: string) => ({ model: 'via-chat', messages: [{ role: 'user', content }] });

/** Sends a request with headers that `fetch` forbids; returns status and body. */
function raw(url: string, lines: readonly string[]): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('end', () => resolve({ status: Number(text.split(' ')[1]), text }));
    socket.on('error', reject);
    socket.write(`${[...lines, 'connection: close'].join('\r\n')}\r\n\r\n`);
  });
}

describe('without keys', () => {
  let setup: ApiSetup;
  let id: string;
  beforeAll(async () => {
    setup = await startApiSetup();
    id = await setup.post(CHAT, ask('Hello.'));
    await setup.rows(1);
  });
  afterAll(() => setup.stop());

  const paths = () => [
    'info',
    'samples',
    'live',
    'stats',
    'stories?ids=a',
    `samples/${id}`,
    `samples/${id}/edges/client-request`,
    `samples/${id}/edges/client-request/conversation`,
    `samples/${id}/edges/client-request/events`,
    `samples/${id}/diff`,
    `samples/${id}/export`,
    `samples/${id}/curl`,
  ];

  test('DNS rebinding: a foreign host name is refused on every path', async () => {
    for (const path of paths()) {
      const got = await raw(setup.gateway.url, [
        `GET /ui/api/${path} HTTP/1.1`,
        'host: rebound.example:5520',
      ]);
      expect([path, got.status]).toEqual([path, 403]);
      expect(got.text).toContain('host_not_allowed');
      expect(got.text).not.toContain('Hello.');
    }
  });

  test('pages of other sites are refused, also those on other ports of this machine', async () => {
    const own = new URL(setup.gateway.url);
    for (const path of paths()) {
      for (const origin of ['https://evil.example', `http://${own.hostname}:1`, 'null']) {
        const response = await setup.api(path, { headers: { origin } });
        expect([path, origin, response.status]).toEqual([path, origin, 403]);
      }
      for (const site of ['cross-site', 'same-site']) {
        const response = await setup.api(path, { headers: { 'sec-fetch-site': site } });
        expect([path, site, response.status]).toEqual([path, site, 403]);
      }
    }
    const fine = await setup.api('info', {
      headers: { origin: own.origin, 'sec-fetch-site': 'same-origin' },
    });
    expect(fine.status).toBe(200);
    expect(fine.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('requests that a foreign page can send start nothing: a form, a text, no header', async () => {
    const requestCount = setup.upstream.modelRequests.length;
    const body = JSON.stringify({ id });
    const tries: [string, RequestInit][] = [
      ['text', { headers: { 'content-type': 'text/plain', 'x-hopgate-ui': '1' } }],
      [
        'form',
        { headers: { 'content-type': 'application/x-www-form-urlencoded', 'x-hopgate-ui': '1' } },
      ],
      ['none', { headers: { 'x-hopgate-ui': '1' } }],
      ['no header', { headers: { 'content-type': 'application/json' } }],
      [
        'other origin',
        {
          headers: {
            'content-type': 'application/json',
            'x-hopgate-ui': '1',
            origin: 'http://127.0.0.1:9',
          },
        },
      ],
    ];
    for (const [name, init] of tries) {
      for (const path of ['replay', 'bisect']) {
        const response = await setup.api(path, { method: 'POST', body, ...init });
        expect([name, path, response.status >= 400]).toEqual([name, path, true]);
      }
    }
    const removal = await setup.api('jobs/job_1_a', { method: 'DELETE' });
    expect(removal.status).toBe(403);
    expect(setup.upstream.modelRequests.length).toBe(requestCount);
  });

  test('invalid requests are refused with a message', async () => {
    const calls: [unknown, number][] = [
      [{}, 404],
      [{ id: 7 }, 400],
      [{ id: 'req_1_a' }, 404],
      [{ id, stage: 'client-response' }, 404],
      [{ id, to: 'nowhere/m' }, 400],
      [{ id, to: 'chat' }, 400],
      [{ id, repeat: 0 }, 400],
      [{ id, repeat: 1.5 }, 400],
      [{ id, repeat: '5' }, 400],
      [{ id, repeat: 100_000 }, 400],
      [{ id, repeat: 150, targets: ['chat/m1', 'messages/m1'] }, 400],
      [{ id, repair: 'yes' }, 400],
      [{ id, targets: 'chat/m1' }, 400],
      [{ id, targets: ['nowhere/m'] }, 400],
      [{ id, edits: ['no change'] }, 400],
      [{ id, edits: [{ at: '/model', value: 'm' }] }, 400],
      [[], 400],
      ['x', 400],
    ];
    for (const [body, status] of calls) {
      const response = await setup.send('POST', 'replay', body);
      expect([body, response.status]).toEqual([body, status]);
      expect(await response.json()).toMatchObject({ error: { message: expect.any(String) } });
    }
    // An edited request may be long.
    const large = await setup.send('POST', 'replay', { id, to: 'x'.repeat(8 * 2 ** 20) });
    expect(large.status).toBe(413);
    const bisected = await setup.send('POST', 'bisect', { id, to: 'x'.repeat(100_000) });
    expect(bisected.status).toBe(413);
    expect((await setup.send('PUT', 'replay', {})).status).toBe(404);
    expect((await setup.api('nothing')).status).toBe(404);
    expect((await setup.api('samples/a/b/c/d/e/f')).status).toBe(404);
  });

  test('the page may load and run nothing but what it brings', async () => {
    const page = await fetch(`${setup.gateway.url}/ui`);
    const html = await page.text();
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const policy = page.headers.get('content-security-policy')!;
    const hash = (text: string) => createHash('sha256').update(text).digest('base64');
    const only = (name: string) => {
      const [text, ...more] = [...html.matchAll(new RegExp(`<${name}[^>]*>(.*?)</${name}>`, 'gs'))];
      expect([name, more]).toEqual([name, []]);
      return `${name}-src 'sha256-${hash(text![1]!)}'`;
    };
    expect(policy.split('; ').toSorted()).toEqual(
      [
        "default-src 'none'",
        only('script'),
        only('style'),
        "connect-src 'self'",
        "img-src 'self' data: blob:",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ].toSorted(),
    );
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    const markup = html.replace(/(<(?:script|style)[^>]*>).*?(?=<\/(?:script|style)>)/gs, '$1');
    expect(markup).not.toMatch(/\s(src|on\w+|style)=|href="(?!data:,")/);
    for (const path of ['/ui/index.html', '/ui/../etc/passwd', '/ui/main.ts', '/ui/__proto__']) {
      expect((await fetch(setup.gateway.url + path)).status).toBe(404);
    }
  });

  test('the page brings its first rows along, as text, and to no other site', async () => {
    const model = '</template><img src=x onerror=alert(1)>&lt;';
    await setup.post(CHAT, { ...ask('Hello.'), model });
    const page = async (headers: Record<string, string>) => {
      const response = await fetch(`${setup.gateway.url}/ui`, { headers });
      return [response.headers.get('cache-control'), await response.text()] as const;
    };
    await until(async () => {
      const [cached, html] = await page({ 'sec-fetch-site': 'none' });
      expect(cached).toBe('no-store');
      const [, text] = /<template id="first">([^<>&=]*)<\/template><\/body>/.exec(html)!;
      const first = JSON.parse(text!) as First;
      expect(first.info.auth).toBe(false);
      return first.page.rows.some((row) => row.model === model);
    });
    for (const [name, value] of [
      ['sec-fetch-site', 'cross-site'],
      ['sec-fetch-site', 'same-site'],
      ['origin', 'http://evil.example'],
      ['host', 'evil.example'],
    ] as const) {
      const [, other] = await page({ [name]: value });
      expect([name, value, other.includes('<template')]).toEqual([name, value, false]);
    }
  });
});

describe('with keys', () => {
  const ANN = { authorization: 'Bearer ann-secret-key' };
  const BOB = { 'x-api-key': 'bob-secret-key' };
  const ROOT = { authorization: 'Bearer root-secret-key' };
  let setup: ApiSetup;
  let anns: string;
  let bobs: string;
  beforeAll(async () => {
    setup = await startApiSetup({
      auth: {
        admin_keys: ['admin-secret-key'],
        keys: [
          { name: 'ann', key: 'ann-secret-key' },
          { name: 'bob', key: 'bob-secret-key' },
          { name: 'root', key: 'root-secret-key', sees: 'all' },
        ],
      },
    });
    anns = await setup.post(CHAT, ask("Ann's words."), ANN);
    bobs = await setup.post(CHAT, ask("Bob's words."), BOB);
    await until(async () => {
      const { rows } = await setup.json<SamplesPage>('samples', ROOT);
      return rows.filter(({ state }) => state === 'done').length === 2;
    });
  });
  afterAll(() => setup.stop());

  test('without a key the page is served, but no data', async () => {
    const page = await fetch(`${setup.gateway.url}/ui`, { headers: ROOT });
    expect([page.status, (await page.text()).includes('<template')]).toEqual([200, false]);
    for (const path of ['info', 'samples', 'live', 'stats', 'jobs/job_1_a', `samples/${anns}`]) {
      expect((await setup.api(path)).status).toBe(401);
      const wrong = await setup.api(path, { headers: { authorization: 'Bearer wrong' } });
      expect(wrong.status).toBe(401);
      expect(await wrong.text()).not.toContain('Ann');
    }
    expect((await setup.send('POST', 'replay', { id: anns })).status).toBe(401);
  });

  test('a key sees its own exchanges, in every form, and no others', async () => {
    expect(await setup.json<Info>('info', ANN)).toMatchObject({
      key: 'ann',
      sees: 'own',
      auth: true,
    });
    const { rows } = await setup.json<SamplesPage>('samples', ANN);
    expect(rows.map(({ id }) => id)).toEqual([anns]);
    expect((await setup.json<Stats>('stats', ANN)).all.requests).toBe(1);
    for (const rest of [
      '',
      '/edges/client-request',
      '/diff',
      '/export',
      '/curl',
      '/edges/client-request/conversation',
    ]) {
      const [own, other] = await Promise.all([
        setup.api(`samples/${anns}${rest}`, { headers: ANN }),
        setup.api(`samples/${bobs}${rest}`, { headers: ANN }),
      ]);
      expect([rest, own.status, other.status]).toEqual([rest, 200, 404]);
      expect(await other.text()).not.toContain('Bob');
    }
    for (const path of ['replay', 'bisect']) {
      expect((await setup.send('POST', path, { id: bobs }, ANN)).status).toBe(404);
    }
    // Neither q nor owner gives access.
    const found = await setup.json<SamplesPage>(`samples?q=${bobs}&owner=bob`, ANN);
    expect(found.rows).toEqual([]);
  });

  test('a key with `sees: all` sees all exchanges', async () => {
    expect(await setup.json<Info>('info', ROOT)).toMatchObject({ key: 'root', sees: 'all' });
    const { rows } = await setup.json<SamplesPage>('samples', ROOT);
    expect(rows.map(({ id }) => id).sort()).toEqual([anns, bobs].sort());
    expect((await setup.json<SampleDetail>(`samples/${bobs}`, ROOT)).meta.owner).toBe('bob');
  });

  test('the live feed shows a key only its own exchanges', async () => {
    const listen = async (headers: Record<string, string>) =>
      eventsIn<LiveEvent>(await setup.api('live', { headers }));
    const [own, all] = [await listen(ANN), await listen(ROOT)];
    const isOver = (id: string) => (event: LiveEvent) =>
      event.type === 'row' && event.row.id === id && event.row.state === 'done';
    const third = await setup.post(CHAT, ask("Bob's again."), BOB);
    // The feed has sent Bob's exchange before Ann's next one begins.
    await eventsUntil(all, isOver(third));
    const fourth = await setup.post(CHAT, ask("Ann's again."), ANN);
    const received = JSON.stringify(await eventsUntil(own, isOver(fourth)));
    expect(received).not.toContain(third);
  });

  test('jobs belong to the key that started them', async () => {
    const { job } = (await (await setup.send('POST', 'replay', { id: anns }, ANN)).json()) as {
      job: string;
    };
    expect((await setup.api(`jobs/${job}`, { headers: BOB })).status).toBe(404);
    expect((await setup.send('DELETE', `jobs/${job}`, undefined, BOB)).status).toBe(404);
    const received = await Array.fromAsync(eventsOfJob(setup, job, ANN));
    expect(received.at(-1)).toMatchObject({ state: 'done', result: { runs: [{}] } });
  });

  test('an exchange names the key that an administrator made, and is found by that name', async () => {
    const made = await fetch(`${setup.gateway.url}/admin/v1/keys`, {
      method: 'POST',
      headers: { authorization: 'Bearer admin-secret-key', 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'night build' }),
    });
    const { key, id: owner } = (await made.json()) as { key: string; id: string };
    const id = await setup.post(CHAT, ask('The build.'), {
      authorization: `Bearer ${key}`,
      'x-claude-code-session-id': 'of-the-build',
    });
    const ofKey = async () => {
      const { rows } = await setup.json<SamplesPage>('samples?key=night%20build', ROOT);
      return rows.filter(({ state }) => state === 'done');
    };
    await until(async () => (await ofKey()).length === 1);
    const named = { id, owner, key_name: 'night build' };
    expect(await ofKey()).toMatchObject([named]);
    expect((await setup.json<SampleDetail>(`samples/${id}`, ROOT)).row).toMatchObject(named);
    const { sessions } = await setup.json<{ sessions: object[] }>('sessions', ROOT);
    expect(sessions).toMatchObject([{ id: 'of-the-build', key: 'night build' }]);
  });
});

describe('content of clients and models', () => {
  const HOSTILE =
    '"><script>alert(1)</script><img src=x onerror=alert(1)>\u2028#{7*7}{{7*7}}javascript:alert(1)';

  test('content is data in every answer: JSON or plain text, never a page', async () => {
    const setup = await startApiSetup();
    try {
      setup.upstream.enqueue(
        refuse(500, {}, { error: { message: HOSTILE, type: '<b>' } }),
        refuse(500, {}, { error: { message: HOSTILE, type: '<b>' } }),
      );
      const id = await setup.post(
        CHAT,
        {
          model: 'via-chat',
          messages: [{ role: 'user', content: HOSTILE, name: '<u>' }],
          tools: [{ type: 'function', function: { name: 'a', description: HOSTILE } }],
        },
        { 'x-session-id': '<i>session</i>', 'user-agent': '<script>ua</script>' },
      );
      await setup.rows(1);
      for (const path of [
        'samples',
        `samples/${id}`,
        `samples/${id}/diff`,
        `samples/${id}/export`,
        `samples/${id}/curl`,
        `samples/${id}/edges/client-request`,
        `samples/${id}/edges/client-request/conversation`,
        `samples/${id}/edges/provider-error/conversation`,
        `samples/%3Cscript%3E`,
        `samples?status=%3Cscript%3E`,
      ]) {
        const response = await setup.api(path);
        expect(response.headers.get('content-type')).toMatch(
          /^(application\/json|text\/plain; charset=utf-8)$/,
        );
        expect(response.headers.get('x-content-type-options')).toBe('nosniff');
        expect(response.headers.get('content-security-policy')).toBe(
          "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        );
        await response.text();
      }
    } finally {
      await setup.stop();
    }
  });

  test('content may be huge, deeply nested, or not text at all', async () => {
    const setup = await startApiSetup({ limits: { body_bytes: 200_000_000 } });
    try {
      const deep = `${'['.repeat(5000)}${']'.repeat(5000)}`;
      const bodies: [string, string | Uint8Array][] = [
        [
          'deep',
          `{"model":"via-chat","messages":[{"role":"user","content":"x"}],"metadata":${deep}}`,
        ],
        ['binary', new Uint8Array([0xff, 0xfe, 0, 1, 2, 0x80, 0xc3, 0x28])],
        ['empty', ''],
        ['huge', JSON.stringify(ask('z'.repeat(30_000_000)))],
      ];
      for (const [name, body] of bodies) {
        const id = await setup.post(CHAT, body as string);
        for (let i = 0; (await setup.api(`samples/${id}`)).status !== 200; i++) {
          // A body that was refused before it became an exchange is not recorded.
          if (i > 60) break;
          await Bun.sleep(30);
        }
        if ((await setup.api(`samples/${id}`)).status !== 200) continue;
        for (const rest of [
          '',
          '/edges/client-request',
          '/edges/client-request/conversation',
          '/diff',
          '/curl',
          '/edges/client-request/events',
        ]) {
          const response = await setup.api(`samples/${id}${rest}`);
          expect([name, rest, [200, 400, 404, 413].includes(response.status)]).toEqual([
            name,
            rest,
            true,
          ]);
          const { length } = await response.bytes();
          expect([name, rest, length < 6_000_000]).toEqual([name, rest, true]);
        }
      }
      // Other requests are served meanwhile.
      expect((await fetch(`${setup.gateway.url}/healthz`)).status).toBe(200);
    } finally {
      await setup.stop();
    }
  });

  test('no answer contains a credential, wherever it came from', async () => {
    const canary = (name: string) => `sk-canary-${name}-A1b2C3d4E5f6G7h8`;
    const setup = await startApiSetup(
      {},
      {
        headers: { 'x-team': canary('config') },
        keys: [canary('provider')],
        query: { token: canary('query') },
      },
    );
    try {
      setup.upstream.enqueue(
        refuse(
          401,
          { 'x-echo': canary('vendorheader') },
          { error: { message: `Bad key ${canary('provider')}.` } },
        ),
        refuse(401, {}, { error: { message: `Bad key ${canary('provider')}.` } }),
        say(`Your key is ${canary('answer')}.`, { delivery: { piece: 10_000 } }),
      );
      const headers = {
        authorization: `Bearer ${canary('bearer')}`,
        cookie: `s=${canary('cookie')}`,
      };
      const ids: string[] = [];
      for (const stream of [false, true]) {
        const body = { ...ask(`My key: ${canary('body')}`), stream };
        ids.push(await setup.post(`${CHAT}?key=${canary('search')}`, body, headers));
      }
      await setup.rows(2);
      const texts: string[] = [];
      for (const path of ['info', 'samples', 'stats']) {
        texts.push(await (await setup.api(path)).text());
      }
      for (const id of ids) {
        const { meta } = await setup.json<SampleDetail>(`samples/${id}`);
        texts.push(JSON.stringify(meta));
        for (const rest of ['diff', 'export', 'curl']) {
          texts.push(await (await setup.api(`samples/${id}/${rest}`)).text());
        }
        for (const { stage } of meta.edges) {
          for (const view of ['', '/conversation', '/events']) {
            texts.push(await (await setup.api(`samples/${id}/edges/${stage}${view}`)).text());
          }
        }
      }
      // The vendor answers a replay anew, and that answer passes no recorder.
      const all = texts.join('\n');
      expect(all.length).toBeGreaterThan(5000);
      expect(all).not.toContain('canary');
      expect(setup.gateway.stderr()).not.toContain('canary');
    } finally {
      await setup.stop();
    }
  });
});
