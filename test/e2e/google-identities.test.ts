/** Vertex AI without a key on disk: the metadata server of Google's machines, identities of other clouds, stand-ins. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { type FakeGoogle, STAND_IN, startFakeGoogle } from '../support/platforms/fake-google.ts';

let vendor: FakeUpstream;
let google: FakeGoogle;
let folder: string;
let gateway: InProcess | undefined;

/** The library reads the environment of the process. */
function setVariables(variables: Record<string, string>): void {
  for (const [name, value] of Object.entries(variables)) {
    earlier.set(name, process.env[name]);
    process.env[name] = value;
  }
}
const earlier = new Map<string, string | undefined>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hopgate-identities-'));
  vendor = await startFakeUpstream({ keys: ['sk-inside'] });
  google = startFakeGoogle(vendor);
  await writeFile(join(folder, 'subject'), google.subject);
});
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
  for (const [name, value] of earlier) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  earlier.clear();
  google.exchanges.length = 0;
  google.refusals.length = 0;
  google.tokenStatus = 200;
  vendor.clear();
});
afterAll(async () => {
  await google?.stop();
  await vendor?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** @param credentials of the file; undefined: there is none, as on a machine of Google's */
async function start(credentials: string | undefined, more: Record<string, unknown> = {}) {
  if (credentials !== undefined) await writeFile(join(folder, 'account.json'), credentials);
  gateway = await startInProcess({
    providers: {
      claude: {
        platform: 'vertex',
        protocol: 'anthropic-messages',
        project: 'demo-project',
        location: 'global',
        base_url: google.origin,
        models: ['claude-*'],
        ...(credentials !== undefined && { credentials_file: join(folder, 'account.json') }),
        ...more,
      },
    },
    retry: { attempts: 1 },
  });
  return gateway;
}

async function ask(): Promise<{ status: number; text: string }> {
  vendor.enqueue(say('From Google.'));
  const answer = await fetch(`${gateway!.url}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'claude-sonnet-4-5@20250929',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hello' }],
    }),
  });
  return { status: answer.status, text: await answer.text() };
}

const impersonation = () =>
  `${google.origin}/v1/projects/-/serviceAccounts/${STAND_IN}:generateAccessToken`;

const IDENTITIES: readonly (readonly [
  name: string,
  credentials: () => string | undefined,
  exchanges: readonly string[],
  variables?: () => Record<string, string>,
])[] = [
  [
    "the metadata server of Google's machines",
    () => undefined,
    ['metadata'],
    () => ({ GCE_METADATA_HOST: google.origin.replace('http://', '') }),
  ],
  [
    'a token in a file, as Kubernetes mounts it',
    () => google.federated({ file: join(folder, 'subject') }),
    ['sts'],
  ],
  [
    'a token from a URL, as Azure gives its machines',
    () =>
      google.federated({
        url: `${google.origin}/subject`,
        headers: { Metadata: 'True' },
        format: { type: 'json', subject_token_field_name: 'access_token' },
      }),
    ['sts'],
  ],
  [
    'a signed request of AWS',
    () =>
      google.federated(
        {
          environment_id: 'aws1',
          regional_cred_verification_url:
            'https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15',
        },
        { subject_token_type: 'urn:ietf:params:aws:token-type:aws4_request' },
      ),
    ['sts'],
    () => ({
      AWS_ACCESS_KEY_ID: 'AKIDMAIN',
      AWS_SECRET_ACCESS_KEY: 'aws-secret-aws-secret',
      AWS_REGION: 'eu-west-1',
    }),
  ],
  [
    'a federated identity with the rights of a service account',
    () =>
      google.federated(
        { file: join(folder, 'subject') },
        { service_account_impersonation_url: impersonation() },
      ),
    ['sts', 'iam'],
  ],
  [
    'an account that stands in for another',
    () =>
      JSON.stringify({
        type: 'impersonated_service_account',
        service_account_impersonation_url: impersonation(),
        source_credentials: JSON.parse(google.federated({ file: join(folder, 'subject') })),
        delegates: [],
      }),
    ['sts', 'iam'],
  ],
];

describe('a request goes out with a token of', () => {
  test.each(IDENTITIES)('%s', async (_name, credentials, exchanges, variables) => {
    setVariables(variables?.() ?? {});
    await start(credentials());
    const first = await ask();
    expect(google.refusals).toEqual([]);
    expect([first.status, google.exchanges.map(({ by }) => by!)]).toEqual([200, [...exchanges]]);
    expect(first.text).toContain('From Google.');
    // The next request has the token that is there.
    expect((await ask()).status).toBe(200);
    expect(google.exchanges).toHaveLength(exchanges.length);
    // One that was withdrawn is replaced at once.
    google.revoke();
    expect((await ask()).status).toBe(200);
    expect(google.exchanges).toHaveLength(2 * exchanges.length);
  });
});

describe('what the client is told', () => {
  test('a refused identity: that it was, in words, without the token', async () => {
    await writeFile(join(folder, 'stranger'), 'a token of somebody-else, in no known form');
    await start(google.federated({ file: join(folder, 'stranger') }));
    const { status, text } = await ask();
    expect(status).toBe(502);
    expect(text).toContain('has no credentials');
    expect(text).toContain('rejected by the attribute condition');
    expect(text).not.toContain('somebody-else');
  });

  test('a refusal that repeats the token of the identity: without the token', async () => {
    const subject = `${btoa('{"alg":"RS256"}')}.${btoa('{"sub":"somebody"}')}.${'c2ln'.repeat(12)}`;
    await writeFile(join(folder, 'stranger'), subject);
    await start(google.federated({ file: join(folder, 'stranger') }));
    google.repeats = 'token';
    const { status, text } = await ask();
    google.repeats = undefined;
    expect(status).toBe(502);
    expect(text).toContain('invalid_grant: Bad');
    expect(text).not.toContain(subject.slice(0, 30));
  });

  test('no file and no metadata server: both are named', async () => {
    setVariables({ GCE_METADATA_HOST: '127.0.0.1:9' });
    await start(undefined);
    const { status, text } = await ask();
    expect(status).toBe(502);
    expect(text).toContain('application_default_credentials.json does not exist');
    expect(text).toContain('metadata server');
  });

  test('a busy token service: that it may work later', async () => {
    await start(google.federated({ file: join(folder, 'subject') }));
    google.tokenStatus = 503;
    const { status, text } = await ask();
    expect(status).toBe(502);
    expect(text).toContain('got no access token');
    expect(text).not.toContain('has no credentials');
  });
});
