/** Azure: Responses at its API without versions, Chat at its older addresses, by API key and by tokens of Entra ID. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { call, type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import {
  API_KEY,
  CLIENT,
  CLIENT_SECRET,
  type FakeAzure,
  startFakeAzure,
  TENANT,
} from '../support/platforms/fake-azure.ts';

let vendor: FakeUpstream;
let azure: FakeAzure;
let folder: string;
let gateway: InProcess | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hopgate-azure-'));
  vendor = await startFakeUpstream({ keys: ['sk-inside'] });
  azure = startFakeAzure(vendor);
  await writeFile(join(folder, 'workload'), `${azure.workloadToken}\n`);
  process.env.AZURE_POD_IDENTITY_AUTHORITY_HOST = azure.origin;
});
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
  for (const list of [azure.proofs, azure.refusals, azure.requests]) list.length = 0;
  azure.tokenStatus = 200;
  vendor.clear();
});
afterAll(async () => {
  delete process.env.AZURE_POD_IDENTITY_AUTHORITY_HOST;
  await azure?.stop();
  await vendor?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function start(provider: Record<string, unknown>, variables: Record<string, string> = {}) {
  gateway = await startInProcess(
    {
      providers: {
        azure: {
          preset: 'azure',
          base_url: azure.origin,
          tls: { ca_file: azure.caFile },
          models: ['*'],
          ...provider,
        },
      },
      retry: { attempts: 1 },
    },
    undefined,
    variables,
  );
  return gateway;
}

const TOOL = { type: 'object', properties: { city: { type: 'string' } } };

async function ask(path = '/v1/messages', body?: unknown) {
  const answer = await fetch(`${gateway!.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(
      body ?? {
        model: 'gpt-5.4',
        max_tokens: 100,
        messages: [{ role: 'user', content: 'Hello' }],
        tools: [{ name: 'weather', input_schema: TOOL }],
      },
    ),
  });
  return { status: answer.status, text: await answer.text() };
}

describe('the address says what is spoken', () => {
  test.each([
    ['the resource alone', '', {}, '/openai/v1/responses'],
    ['its API without versions', '/openai/v1', {}, '/openai/v1/responses'],
    [
      'the same as a preview',
      '/openai/v1',
      { query: { 'api-version': 'preview' } },
      '/openai/v1/responses',
    ],
    [
      'Chat, where the file says so',
      '/openai/v1',
      { protocol: 'openai-chat' },
      '/openai/v1/chat/completions',
    ],
    [
      'a deployment, which has Chat alone',
      '/openai/deployments/gpt-4o',
      { query: { 'api-version': '2024-10-21' } },
      '/openai/deployments/gpt-4o/chat/completions',
    ],
  ])('%s', async (_name, path, more, expected) => {
    await start({ keys: [API_KEY], base_url: azure.origin + path, ...more });
    vendor.enqueue(call({ name: 'weather', arguments: { city: 'Bonn' } }));
    const { status, text } = await ask();
    expect(azure.refusals).toEqual([]);
    expect([status, azure.requests.map((one) => one.path)]).toEqual([200, [expected]]);
    expect(text).toContain('Bonn');
    expect(azure.requests[0]!.headers['api-key']).toBe(API_KEY);
  });

  test.each([
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }],
    ['/v1/responses', { input: 'Hi' }],
    ['/v1/messages', { max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] }],
    [
      '/v1beta/models/gpt-5.4:generateContent',
      { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    ],
  ])('a client at %s is answered', async (path, body) => {
    await start({ keys: [API_KEY] });
    vendor.enqueue(say('From Azure.'));
    const { status, text } = await ask(path, {
      ...(path.includes('beta') ? {} : { model: 'gpt-5.4' }),
      ...body,
    });
    expect([status, azure.requests[0]!.path]).toEqual([200, '/openai/v1/responses']);
    expect(text).toContain('From Azure.');
  });
});

const application = () => ({
  AZURE_TENANT_ID: TENANT,
  AZURE_CLIENT_ID: CLIENT,
  AZURE_AUTHORITY_HOST: azure.authority,
});

describe('without a key, a request goes out with a token of', () => {
  test.each<[string, () => Record<string, string>, string, Record<string, unknown>?]>([
    [
      'an application with a secret',
      () => ({ ...application(), AZURE_CLIENT_SECRET: CLIENT_SECRET }),
      'secret',
    ],
    [
      'an application with a certificate',
      () => ({ ...application(), AZURE_CLIENT_CERTIFICATE_PATH: azure.certificateFile }),
      'certificate',
    ],
    [
      'a workload with a token in a file, as Kubernetes mounts it',
      () => ({ ...application(), AZURE_FEDERATED_TOKEN_FILE: join(folder, 'workload') }),
      'workload',
    ],
    [
      'an application that the file names',
      () => ({ AZURE_CLIENT_SECRET: CLIENT_SECRET, AZURE_AUTHORITY_HOST: azure.authority }),
      'secret',
      { tenant_id: TENANT, client_id: CLIENT },
    ],
    ["the machine's only identity", () => ({}), 'machine'],
    ["one of the machine's identities", () => ({}), 'chosen-machine', { client_id: CLIENT }],
  ])('%s', async (_name, variables, proof, more = {}) => {
    const { home } = await start(more, variables());
    vendor.enqueue(say('From Azure.'), say('Again.'), say('Once more.'));
    const first = await ask();
    expect([azure.refusals, first.text]).toEqual([[], expect.stringContaining('From Azure.')]);
    expect([first.status, azure.proofs]).toEqual([200, [proof]]);
    expect(azure.requests[0]!.headers['api-key']).toBeUndefined();
    // The token that is there serves the next one; one that was withdrawn is replaced at once.
    expect((await ask()).status).toBe(200);
    expect(azure.proofs).toEqual([proof]);
    azure.revoke();
    expect((await ask()).status).toBe(200);
    expect(azure.proofs).toEqual([proof, proof]);
    // Nothing of it is kept.
    for (const name of await readdir(home, { recursive: true })) {
      const file = Bun.file(join(home, name));
      if (await file.exists()) expect(await file.text()).not.toContain('eyJ0.');
    }
  });
});

describe('what the client is told', () => {
  test('a wrong secret: in the words of Entra ID, without it', async () => {
    const secret = 'not~the-right-secret-at-all';
    await start({}, { ...application(), AZURE_CLIENT_SECRET: secret });
    const { status, text } = await ask();
    expect(status).toBe(502);
    expect(text).toContain('AADSTS7000215');
    expect(text).toContain('has no credentials');
    expect([text, ...gateway!.lines].join('\n')).not.toContain(secret);
  });

  test('a refused workload: that it was, without its token, though Entra ID quotes it', async () => {
    await writeFile(join(folder, 'stranger'), 'a token of somebody-else, in no known form');
    const proof = { AZURE_FEDERATED_TOKEN_FILE: join(folder, 'stranger') };
    await start({}, { ...application(), ...proof });
    const { status, text } = await ask();
    expect(status).toBe(502);
    expect(text).toContain('AADSTS7000215');
    expect([text, ...gateway!.lines].join('\n')).not.toContain('somebody-else');
  });

  test('a busy token service: that it may work later', async () => {
    await start({}, { ...application(), AZURE_CLIENT_SECRET: CLIENT_SECRET });
    azure.tokenStatus = 503;
    const { status, text } = await ask();
    expect(status).toBe(502);
    expect(text).toContain('got no access token');
  });

  test('a machine without an identity: that it has none', async () => {
    await start({ client_id: '99999999-0000-4000-8000-000000000000' });
    const { status, text } = await ask();
    expect(status).toBe(502);
    expect(text).toContain('has no credentials');
    expect(text).toContain('Identity not found');
  });
});
