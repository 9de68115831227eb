/** Keys through the binary: made by the API and by the command, used by the official clients, rotated, blocked, with two processes. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic, { AuthenticationError as AnthropicAuthenticationError } from '@anthropic-ai/sdk';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import OpenAI, { AuthenticationError as OpenAiAuthenticationError } from 'openai';
import { binary, cleanEnv, type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';

setDefaultTimeout(120_000);

const ADMIN = 'an-admin-key-of-tests-0123';
let upstream: FakeUpstream;
let gateway: Gateway;
let signingKey: CryptoKey;
let folder: string | undefined;

beforeAll(async () => {
  upstream = await startFakeUpstream({ script: () => say('Hi.') });
  const pair = await generateKeyPair('ES256', { extractable: true });
  signingKey = pair.privateKey;
  const keys = [{ ...(await exportJWK(pair.publicKey)), kid: 'k', alg: 'ES256' }];
  folder = await mkdtemp(join(tmpdir(), 'hopgate-keys-e2e-'));
  const jwks = join(folder, 'jwks.json');
  await Bun.write(jwks, JSON.stringify({ keys }));
  gateway = await startGateway(
    threeProviders(upstream, {
      workers: 2,
      samples: { mode: 'all' },
      auth: {
        admin_keys: [ADMIN],
        jwt: { issuer: 'https://id.example', audience: 'hopgate', jwks },
      },
    }),
  );
});
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

// biome-ignore lint/suspicious/noExplicitAny: the tests look at JSON of many shapes
async function admin(method: string, path: string, body?: unknown): Promise<any> {
  const response = await fetch(`${gateway.url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN}`, connection: 'close' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return response.json();
}

/** One request by each official client; what each throws, undefined where it got its answer. */
async function asked(key: string): Promise<unknown[]> {
  const options = { apiKey: key, maxRetries: 0, defaultHeaders: { connection: 'close' } };
  const openai = new OpenAI({ ...options, baseURL: `${gateway.url}/v1` });
  const anthropic = new Anthropic({ ...options, baseURL: gateway.url });
  const messages = [{ role: 'user' as const, content: 'Hello.' }];
  const work = [
    () => openai.chat.completions.create({ model: 'via-chat', messages }),
    () => openai.responses.create({ model: 'via-responses', input: 'Hello.' }),
    () => anthropic.messages.create({ model: 'via-messages', max_tokens: 50, messages }),
  ];
  const thrown: unknown[] = [];
  for (const one of work) {
    thrown.push(
      await one().then(
        () => undefined,
        (error: unknown) => error,
      ),
    );
  }
  return thrown;
}

const served = async (key: string) => (await asked(key)).every((error) => error === undefined);

/** Each client raises its own error of authentication. */
async function refusedEverywhere(key: string): Promise<boolean> {
  const errors = await asked(key);
  return (
    errors[0] instanceof OpenAiAuthenticationError &&
    errors[1] instanceof OpenAiAuthenticationError &&
    errors[2] instanceof AnthropicAuthenticationError
  );
}

/** Runs a command in the home of the gateway. */
async function command(args: readonly string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([await binary(), ...args, '--config', gateway.configPath], {
    env: cleanEnv(gateway.home, env),
    cwd: gateway.home,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { stdout, stderr, code };
}

/** Everything that the gateway wrote: its logs, and each file of its state. */
function written(): string {
  const files = readdirSync(gateway.home, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
  return [gateway.stdout(), gateway.stderr(), ...files].join('\n');
}

describe('with two processes', () => {
  test('a key is made, used, rotated with a grace, blocked and revoked, in each protocol', async () => {
    const { id, key } = await admin('POST', '/keys', { name: 'ci', labels: { team: 'web' } });
    expect(await served(key)).toBe(true);
    const { key: next } = await admin('POST', `/keys/${id}/rotate`);
    expect([await served(key), await served(next)]).toEqual([true, true]);
    await admin('PATCH', `/keys/${id}`, { blocked: true });
    await until(async () => (await refusedEverywhere(next)) && (await refusedEverywhere(key)));
    await admin('PATCH', `/keys/${id}`, { blocked: false });
    await until(() => served(next));
    await admin('DELETE', `/keys/${id}`);
    await until(() => refusedEverywhere(next));
    await Bun.sleep(5000);
    for (let n = 0; n < 10; n++) expect(await refusedEverywhere(next)).toBe(true);
    const everything = written();
    expect(everything).toContain(id);
    for (const secret of [key, next]) expect(everything).not.toContain(secret.slice(-44));
  });

  test('a person is served by a token', async () => {
    const token = await new SignJWT({ sub: 'ann' })
      .setProtectedHeader({ alg: 'ES256', kid: 'k' })
      .setIssuer('https://id.example')
      .setAudience('hopgate')
      .setExpirationTime('1h')
      .sign(signingKey);
    expect(await served(token)).toBe(true);
    expect(await refusedEverywhere(`${token.slice(0, -6)}AAAAAA`)).toBe(true);
    await until(() => gateway.logs().some(({ key }) => key === 'jwt:ann'));
  });
});

describe('the commands', () => {
  test('work on the file, and a running gateway sees it', async () => {
    const made = await command([
      'keys',
      'create',
      'cli',
      '--models',
      'via-*',
      '--budgets',
      '5/day',
    ]);
    expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/^hk_\w{22}_\w{44}\n$/)]);
    const key = made.stdout.trim();
    expect(await served(key)).toBe(true);
    const id = key.slice(0, 25);
    const listed = await command(['keys', 'list']);
    expect(listed.stdout).toContain(id);
    const rotated = await command(['keys', 'rotate', id, '--grace', '0', '--json']);
    await until(() => refusedEverywhere(key));
    expect(await served(JSON.parse(rotated.stdout).key)).toBe(true);
    const shown = await command(['keys', 'show', id]);
    expect(JSON.parse(shown.stdout)).toMatchObject({ id, version: 2, budgets: [{ usd: 5 }] });
    expect((await command(['keys', 'revoke', id])).code).toBe(0);
    const again = await command(['keys', 'revoke', id]);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('revoked')]);
    expect((await command(['audit', 'verify'])).stdout).toMatch(/^\d+ entries, intact\./);
  });

  test('ask the gateway where an admin key is set', async () => {
    const env = { HOPGATE_ADMIN_KEY: ADMIN };
    const url = ['--url', gateway.url];
    const made = await command(['keys', 'create', 'api', ...url], env);
    expect(made.code).toBe(0);
    expect(await served(made.stdout.trim())).toBe(true);
    const { data } = await admin('GET', '/audit?limit=1');
    expect(data[0]).toMatchObject({ action: 'key.create', after: { name: 'api' } });
    expect(data[0].actor).toStartWith('admin:key-');
    const listed = await command(['keys', 'list', '--json', ...url], env);
    expect(
      JSON.parse(listed.stdout).keys.some(({ name }: { name: string }) => name === 'api'),
    ).toBe(true);
    expect((await command(['audit', 'verify', ...url], env)).code).toBe(0);
    const wrong = await command(['keys', 'list', ...url], { HOPGATE_ADMIN_KEY: 'not-the-key' });
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('Incorrect API key')]);
  });
});
