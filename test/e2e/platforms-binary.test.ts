/** The program itself on Bedrock, Vertex AI and Azure: the libraries that it loads on demand work inside of it. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Gateway, runBinary, startGateway } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type FakeAws, startFakeAws } from '../support/platforms/fake-aws.ts';
import {
  CLIENT,
  CLIENT_SECRET,
  type FakeAzure,
  startFakeAzure,
  TENANT,
} from '../support/platforms/fake-azure.ts';
import { type FakeGoogle, startFakeGoogle } from '../support/platforms/fake-google.ts';

const REGION = 'eu-central-1';
const MODEL = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0';
const CLAUDE = 'claude-sonnet-4-5@20250929';
const ROLE = 'arn:aws:iam::1:role/caller';

let vendor: FakeUpstream;
let aws: FakeAws;
let google: FakeGoogle;
let azure: FakeAzure;
let gateway: Gateway;
let folder: string;
let env: Record<string, string>;

const vertex = () => ({
  platform: 'vertex',
  protocol: 'anthropic-messages',
  project: 'demo-project',
  location: 'global',
  base_url: google.origin,
});

const onAzure = () => ({
  platform: 'azure',
  base_url: azure.origin,
  tls: { ca_file: azure.caFile },
});

const configuration = () => ({
  providers: {
    bedrock: {
      platform: 'bedrock',
      region: REGION,
      base_url: aws.origin,
      aws_profile: 'caller',
      models: [MODEL],
    },
    claude: { ...vertex(), credentials_file: join(folder, 'account.json'), models: [CLAUDE] },
    // Google's own library: a federated identity, and the metadata server, which stands in where no file is named.
    federated: { ...vertex(), credentials_file: join(folder, 'federated.json') },
    machine: vertex(),
    // Microsoft's library: an application of Entra ID, and the machine's identity.
    entra: { ...onAzure(), tenant_id: TENANT, client_id: CLIENT },
    'azure-machine': onAzure(),
  },
});

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hopgate-platforms-'));
  vendor = await startFakeUpstream({ keys: ['sk-inside'] });
  aws = startFakeAws({
    vendor,
    region: REGION,
    keys: { AKIDBASE: { secretAccessKey: 'base-secret' } },
    roles: { [ROLE]: { id: 'ASIAROLE', secretAccessKey: 'role-secret', sessionToken: 'session' } },
  });
  google = startFakeGoogle(vendor);
  azure = startFakeAzure(vendor);
  await writeFile(join(folder, 'account.json'), google.credentials);
  await writeFile(join(folder, 'subject'), google.subject);
  await writeFile(
    join(folder, 'federated.json'),
    google.federated({ file: join(folder, 'subject') }),
  );
  await writeFile(
    join(folder, 'config'),
    `[profile caller]\nrole_arn = ${ROLE}\nsource_profile = base\nregion = ${REGION}\n`,
  );
  await writeFile(
    join(folder, 'credentials'),
    '[base]\naws_access_key_id = AKIDBASE\naws_secret_access_key = base-secret\n',
  );
  env = {
    AWS_CONFIG_FILE: join(folder, 'config'),
    AWS_SHARED_CREDENTIALS_FILE: join(folder, 'credentials'),
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_ENDPOINT_URL_STS: aws.origin,
    AZURE_CLIENT_SECRET: CLIENT_SECRET,
    AZURE_AUTHORITY_HOST: azure.authority,
    AZURE_POD_IDENTITY_AUTHORITY_HOST: azure.origin,
    GCE_METADATA_HOST: google.origin.replace('http://', ''),
  };
  gateway = await startGateway(configuration(), { env });
});
afterAll(async () => {
  await gateway?.stop();
  await aws?.stop();
  await google?.stop();
  await azure?.stop();
  await vendor?.stop();
  await rm(folder, { recursive: true, force: true });
});

for (const model of [
  `bedrock/${MODEL}`,
  `claude/${CLAUDE}`,
  `federated/${CLAUDE}`,
  `machine/${CLAUDE}`,
  'entra/gpt-5.4',
  'azure-machine/gpt-5.4',
]) {
  test(`a stream of ${model}`, async () => {
    vendor.enqueue(say('Hello from afar.', { delivery: { piece: 4 } }));
    const answer = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model,
        max_tokens: 10,
        stream: true,
        messages: [{ role: 'user', content: 'Hi' }],
      }),
    });
    const text = await answer.text();
    expect([answer.status, text.includes('event: message_stop')]).toEqual([200, true]);
    expect([...text.matchAll(/"text":"([^"]*)"/g)].map(([, piece]) => piece).join('')).toBe(
      'Hello from afar.',
    );
  });
}

test('doctor gets the credentials and an answer, and says what is wrong with them', async () => {
  const file = join(folder, 'hopgate.yaml');
  await writeFile(file, JSON.stringify(configuration()));
  const good = await runBinary(['doctor', '--config', file], { env });
  expect(good.stdout).toContain('credentials of the access key ASIAROLE');
  expect(good.stdout).toContain('token of gateway@demo-project.iam.gserviceaccount.com');
  expect(good.stdout).toContain(`token of the application ${CLIENT}`);
  expect(good.stdout).toContain(`${MODEL} answered`);
  const bad = await runBinary(['doctor', '--config', file], {
    env: { ...env, AWS_CONFIG_FILE: '/none', AWS_SHARED_CREDENTIALS_FILE: '/none' },
  });
  expect(bad.stdout).toContain('Provider bedrock has no AWS credentials');
});
