/** Providers on Vertex AI and Bedrock: addresses, what the environment fills in, and what is refused. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environmentFrom } from '../../../src/config/environment.ts';
import { parseConfig } from '../../../src/config/load.ts';

let home: string;
let account: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'hopgate-platform-'));
  account = join(home, 'account.json');
  const key = { type: 'service_account', client_email: 'a@b', private_key: 'k', project_id: 'own' };
  await writeFile(account, JSON.stringify(key));
  const federated = { type: 'external_account', audience: 'a', token_url: 'https://t.test' };
  await writeFile(
    join(home, 'federated.json'),
    JSON.stringify({ ...federated, subject_token_type: 't' }),
  );
  await writeFile(join(home, 'foreign.json'), '{"type":"gdch_service_account"}');
});
afterAll(() => rm(home, { recursive: true, force: true }));

function load(provider: string, variables: Record<string, string> = {}) {
  const environment = environmentFrom({ HOPGATE_HOME: home, ...variables }, home);
  return parseConfig(`providers:\n  p: { ${provider} }\n`, join(home, 'h.yaml'), environment);
}
const provider = (text: string, variables?: Record<string, string>) => {
  const loaded = load(text, variables);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.config.providers.p!;
};
const problems = (text: string, variables?: Record<string, string>) => {
  const loaded = load(text, variables);
  return loaded.ok ? [] : loaded.problems.map(({ path, message }) => `${path}: ${message}`);
};
const VERTEX = () => `platform: vertex, credentials_file: ${account}, project: my-project`;

describe('Vertex AI', () => {
  test('has an address of its own for each location and maker', () => {
    const of = (protocol: string, location: string) =>
      provider(`${VERTEX()}, protocol: ${protocol}, location: ${location}`).baseUrl;
    const path = (location: string, maker: string) =>
      `/projects/my-project/locations/${location}/publishers/${maker}`;
    expect(of('anthropic-messages', 'global')).toBe(
      `https://aiplatform.googleapis.com/v1${path('global', 'anthropic')}`,
    );
    expect(of('anthropic-messages', 'eu')).toBe(
      `https://aiplatform.eu.rep.googleapis.com/v1${path('eu', 'anthropic')}`,
    );
    expect(of('google-gemini', 'europe-west1')).toBe(
      `https://europe-west1-aiplatform.googleapis.com/v1beta1${path('europe-west1', 'google')}`,
    );
  });

  test('is filled in from the environment and from the credentials file', () => {
    const { platform } = provider('platform: vertex, protocol: anthropic-messages', {
      GOOGLE_APPLICATION_CREDENTIALS: account,
      CLOUD_ML_REGION: 'us-east5',
    });
    expect(platform).toEqual({
      name: 'vertex',
      project: 'own',
      location: 'us-east5',
      credentialsFile: account,
    });
    const preset = provider(`preset: vertex-claude, location: global`, {
      GOOGLE_APPLICATION_CREDENTIALS: account,
    });
    expect([preset.protocol, preset.profile.name, preset.vendor, preset.models]).toEqual([
      'anthropic-messages',
      'vertex-claude',
      'google-vertex',
      ['claude-*'],
    ]);
  });

  test('says what is missing, by its key', () => {
    expect(problems('platform: vertex, protocol: google-gemini')).toEqual([
      'providers.p: needs the key "location" (or GOOGLE_CLOUD_LOCATION or CLOUD_ML_REGION in the environment)',
      'providers.p: needs the key "project" (or GOOGLE_CLOUD_PROJECT or ANTHROPIC_VERTEX_PROJECT_ID in the environment)',
    ]);
    const file = join(home, 'federated.json');
    const base = 'platform: vertex, protocol: google-gemini, project: p, location: global';
    expect(problems(`${base}, credentials_file: ${file}`)).toEqual([
      `providers.p.credentials_file: the file ${file} has no "credential_source"`,
    ]);
    const foreign = join(home, 'foreign.json');
    expect(problems(`${base}, credentials_file: ${foreign}`)).toEqual([
      `providers.p.credentials_file: the file ${foreign} is of type "gdch_service_account": only service_account, authorized_user, external_account, external_account_authorized_user, impersonated_service_account are supported`,
    ]);
    // Without a file, Google's own machines have their metadata server.
    const machine = load(base, { K_SERVICE: 'hopgate' });
    expect(machine.ok && machine.warnings).toEqual([]);
    expect(machine.ok && machine.config.providers.p!.platform).toMatchObject({ metadata: true });
    const absent = load(`${base}, credentials_file: /no/such`);
    expect(absent.ok && absent.warnings.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'providers.p.credentials_file: has no credentials: the file /no/such does not exist',
    ]);
  });
});

describe('Bedrock', () => {
  test('speaks Messages; its region comes from the file or the environment', () => {
    const own = provider('platform: bedrock, region: eu-central-1, models: [m]');
    expect([own.protocol, own.baseUrl, own.auth, own.profile.name]).toEqual([
      'anthropic-messages',
      'https://bedrock-runtime.eu-central-1.amazonaws.com',
      'bearer',
      'bedrock-claude',
    ]);
    expect(provider('platform: bedrock', { AWS_REGION: 'cn-north-1' }).baseUrl).toBe(
      'https://bedrock-runtime.cn-north-1.amazonaws.com.cn',
    );
    const keyed = provider('platform: bedrock, region: us-east-1', {
      AWS_BEARER_TOKEN_BEDROCK: 'bedrock-api-key-1',
    });
    expect(keyed.keys.map((key) => key.origin)).toEqual(['$AWS_BEARER_TOKEN_BEDROCK']);
  });

  test('says what is missing, or stands at the wrong place, by its key', () => {
    expect(problems('platform: bedrock')).toEqual([
      'providers.p: needs the key "region" (or AWS_REGION or AWS_DEFAULT_REGION in the environment)',
    ]);
    expect(problems('platform: bedrock', { AWS_REGION: 'evil.example/' })).toEqual([
      'providers.p: its region must hold only a–z, 0–9 and -',
    ]);
    expect(problems('platform: bedrock, region: us-east-1, project: p')).toEqual([
      'providers.p.project: is only for providers with platform: vertex',
    ]);
    expect(problems('platform: bedrock, region: us-east-1, protocol: google-gemini')).toEqual([
      'providers.p.platform: bedrock is only for providers that speak anthropic-messages',
    ]);
    expect(
      problems('platform: vertex, protocol: openai-chat, project: p, location: global'),
    ).toEqual([
      'providers.p.platform: vertex is only for providers that speak anthropic-messages or google-gemini',
    ]);
    expect(problems('preset: openai, region: us-east-1')).toEqual([
      'providers.p.region: is only for providers with platform: bedrock',
    ]);
  });
});
