/** The network path to upstreams, through the binary: TLS verification, proxies, and many concurrent streams. */

import { afterAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { SampleMeta, SampleStage } from '../../src/samples/sample.ts';
import { type Gateway, startGateway } from '../support/binary.ts';

const CERTIFICATES = join(import.meta.dir, '../support/certificates');
const pem = (name: string) => join(CERTIFICATES, `${name}.pem`);
const REPLY = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};
const delta = (content: string, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`;

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

async function gatewayTo(
  provider: object,
  env: Record<string, string> = {},
  more: object = {},
): Promise<Gateway> {
  const up = { protocol: 'openai-chat', keys: ['sk-upstream-0123456789'], models: ['m'] };
  const gateway = await startGateway(
    {
      providers: { up: { ...up, ...provider } },
      retry: { attempts: 1 },
      log: { format: 'json' },
      ...more,
    },
    { env },
  );
  stops.push(() => gateway.stop());
  return gateway;
}

const ask = (gateway: Gateway, stream = false) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'Hi' }] }),
  });

describe('an upstream behind TLS', () => {
  function vendor(certificate: string, clients = false) {
    let requestCount = 0;
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      tls: {
        cert: Bun.file(pem(certificate)),
        key: Bun.file(pem(`${certificate}.key`)),
        ...(clients
          ? { ca: Bun.file(pem('authority')), requestCert: true, rejectUnauthorized: true }
          : {}),
      },
      async fetch(request) {
        requestCount++;
        if (!((await request.json()) as { stream?: boolean }).stream) return Response.json(REPLY);
        return new Response(`${delta('Hel')}${delta('lo.', 'stop')}data: [DONE]\n\n`, {
          headers: { 'content-type': 'text/event-stream' },
        });
      },
    });
    stops.push(() => server.stop(true));
    return { url: `https://localhost:${server.port}/v1`, asked: () => requestCount };
  }

  test('a trusted upstream is used, with and without streaming', async () => {
    const { url } = vendor('localhost');
    const gateway = await gatewayTo({ base_url: url, tls: { ca_file: pem('authority') } });
    expect(await (await ask(gateway)).json()).toEqual(REPLY);
    expect(await (await ask(gateway, true)).text()).toContain('[DONE]');
  });

  test('a connection is reused: the first sample holds the connect time, the next one says that it was reused', async () => {
    const { url } = vendor('localhost');
    const tls = { ca_file: pem('authority') };
    const gateway = await gatewayTo({ base_url: url, tls }, {}, { samples: { mode: 'all' } });
    const times: (Partial<SampleStage> | undefined)[][] = [];
    for (let i = 0; i < 2; i++) {
      const response = await ask(gateway);
      await response.arrayBuffer();
      const id = response.headers.get('x-hopgate-request-id');
      const file = join(gateway.home, 'state/samples/openai-chat', `${id}_meta.json`);
      for (let wait = 0; ; wait++) {
        const text = await Bun.file(file)
          .text()
          .catch(() => '{}');
        const { state, edges } = JSON.parse(text) as Partial<SampleMeta>;
        if (state === 'done') {
          const edge = (name: string) => edges?.find(({ stage }) => stage === name);
          times.push([edge('provider-request'), edge('provider-response')]);
          break;
        }
        if (wait > 500) throw new Error(`no sample: ${text}`);
        await Bun.sleep(20);
      }
    }
    const [[sent, answered], [again]] = times as [SampleStage[], SampleStage[]];
    expect(sent!.connected).toBeGreaterThan(sent!.at!);
    expect(sent!.connected).toBeLessThanOrEqual(answered!.at!);
    expect(again).toMatchObject({ stage: 'provider-request' });
    expect(again).not.toHaveProperty('connected');
  });

  test('an upstream that asks for a client certificate gets the configured one', async () => {
    const { url } = vendor('localhost', true);
    const gateway = await gatewayTo({
      base_url: url,
      tls: {
        ca_file: pem('authority'),
        cert_file: pem('client'),
        key_file: pem('client.key'),
      },
    });
    expect((await ask(gateway)).status).toBe(200);
  });

  for (const [name, certificate, tls, code] of [
    [
      'whose name is another',
      'elsewhere',
      { ca_file: pem('authority') },
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    [
      'with a certificate of an unknown authority',
      'localhost',
      {},
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ],
  ] as const) {
    test(`${name} gets no request, and the client reads why`, async () => {
      const { url, asked: requestFor } = vendor(certificate);
      const gateway = await gatewayTo({ base_url: url, tls });
      const response = await ask(gateway);
      expect(response.status).toBe(502);
      expect(await response.text()).toContain(`could not be reached (${code})`);
      expect(requestFor()).toBe(0);
    });
  }
});

describe('a proxy', () => {
  /** Answers every request it proxies. */
  function proxy() {
    const received: string[] = [];
    const server = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket, bytes) {
          const line = bytes.toString().split('\r\n')[0]!;
          if (!/^[A-Z]+ /.test(line)) return;
          received.push(line);
          const body = JSON.stringify(REPLY);
          socket.write(
            `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
          );
        },
      },
    });
    stops.push(() => server.stop(true));
    return { url: `http://127.0.0.1:${server.port}`, seen: received };
  }

  test.each(['http_proxy', 'ALL_PROXY'])('the proxy that %s names is used', async (variable) => {
    const { url, seen: received } = proxy();
    const gateway = await gatewayTo({ base_url: 'http://vendor.test/v1' }, { [variable]: url });
    expect(await (await ask(gateway)).json()).toEqual(REPLY);
    expect(received).toEqual(['POST http://vendor.test/v1/chat/completions HTTP/1.1']);
  });

  test('the proxy named in the provider is used', async () => {
    const { url, seen: received } = proxy();
    const gateway = await gatewayTo({ base_url: 'http://vendor.test/v1', proxy: url });
    expect(await (await ask(gateway)).json()).toEqual(REPLY);
    expect(received).toEqual(['POST http://vendor.test/v1/chat/completions HTTP/1.1']);
  });

  test('a proxy for another scheme is ignored', async () => {
    const { url, seen: received } = proxy();
    const vendor = proxy();
    const gateway = await gatewayTo({ base_url: `${vendor.url}/v1` }, { https_proxy: url });
    expect((await ask(gateway)).status).toBe(200);
    expect(received).toEqual([]);
    expect(vendor.seen).toEqual(['POST /v1/chat/completions HTTP/1.1']);
  });
});

describe('more concurrent streams than fetch allows by default', () => {
  const STREAMS = 300;

  for (const [name, env] of [
    ['by the own client', {}],
    ['by fetch, behind a proxy', { http_proxy: 'set' }],
  ] as const) {
    test(`${name}: no stream waits for another to end`, async () => {
      let open = 0;
      let most = 0;
      const all = Promise.withResolvers<void>();
      const vendor = Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        idleTimeout: 0,
        fetch() {
          open++;
          most = Math.max(most, open);
          if (open === STREAMS) all.resolve();
          return new Response(
            new ReadableStream({
              async start(controller) {
                controller.enqueue(delta('Hel'));
                await all.promise;
                controller.enqueue(`${delta('lo.', 'stop')}data: [DONE]\n\n`);
                controller.close();
                open--;
              },
            }),
            { headers: { 'content-type': 'text/event-stream' } },
          );
        },
      });
      stops.push(() => vendor.stop(true));
      const address = `http://127.0.0.1:${vendor.port}`;
      const gateway = await gatewayTo(
        { base_url: `${'http_proxy' in env ? 'http://vendor.test' : address}/v1` },
        'http_proxy' in env ? { http_proxy: address } : {},
      );
      // This process, too, can fetch only 256 at a time, so the clients are separate processes.
      const client = `
        const ask = () => fetch('${gateway.url}/v1/chat/completions', { method: 'POST', body: '{"model":"m","stream":true,"messages":[{"role":"user","content":"Hi"}]}' }).then((r) => r.text());
        const texts = await Promise.all(Array.from({ length: ${STREAMS / 2} }, ask));
        console.log(texts.filter((text) => text.includes('[DONE]')).length);`;
      const counts = await Promise.all(
        [1, 2].map(async () => {
          const child = Bun.spawn([process.execPath, '-e', client], { stdout: 'pipe' });
          return Number(await new Response(child.stdout).text());
        }),
      );
      expect([counts, most]).toEqual([[STREAMS / 2, STREAMS / 2], STREAMS]);
    }, 60_000);
  }
});
