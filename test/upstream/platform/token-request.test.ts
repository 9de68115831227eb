/** Requests for tokens that libraries make: they go the way of the provider's own, and what is said of them holds no proof. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FlatHeaders } from '../../../src/lib/http/headers.ts';
import { proofsIn, saidWithout } from '../../../src/upstream/platform/token-request.ts';
import { fetchGoogleToken } from '../../../src/upstream/platform/vertex/token.ts';
import type { Transport, UpstreamRequest } from '../../../src/upstream/transport.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hopgate-token-request-'));
  await Bun.write(join(folder, 'subject'), 'a-token-of-another-cloud');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const EXCHANGE = 'https://sts.googleapis.com/v1/token';
const IMPERSONATION =
  'https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@b.iam.gserviceaccount.com:generateAccessToken';

test('an exchange and an impersonation use the transport of the provider', async () => {
  const file = join(folder, 'federated.json');
  await Bun.write(
    file,
    JSON.stringify({
      type: 'external_account',
      audience:
        '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/o',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: EXCHANGE,
      service_account_impersonation_url: IMPERSONATION,
      credential_source: { file: join(folder, 'subject') },
    }),
  );
  const requests: UpstreamRequest[] = [];
  const answers: Record<string, unknown> = {
    [EXCHANGE]: { access_token: 'ya29.federated', expires_in: 3599, token_type: 'Bearer' },
    [IMPERSONATION]: { accessToken: 'ya29.stand-in', expireTime: '2126-01-01T00:00:00Z' },
  };
  const transport = (async (request: UpstreamRequest) => {
    requests.push(request);
    const bytes = Buffer.from(JSON.stringify(answers[request.url] ?? {}));
    const headers = FlatHeaders.of({ 'content-type': 'application/json' });
    return { status: 200, headers, body: { readAll: async () => bytes } };
  }) as unknown as Transport;
  const { value } = await fetchGoogleToken({ provider: 'v', file, transport });
  expect(value).toEqual({ token: 'ya29.stand-in', account: 'a@b.iam.gserviceaccount.com' });
  expect(requests.map(({ url }) => url)).toEqual([EXCHANGE, IMPERSONATION]);
  const [exchange, impersonation] = requests;
  expect(exchange!.headers.get('content-type')).toStartWith('application/x-www-form-urlencoded');
  expect(`${exchange!.body}`).toContain('subject_token=a-token-of-another-cloud');
  expect(impersonation!.headers.get('authorization')).toBe('Bearer ya29.federated');
});

test.each([
  ['client_secret', 'entra~secret/with+signs=='],
  ['client_assertion', 'an assertion in no known form'],
  ['assertion', 'an assertion in no known form'],
  ['subject_token', '{"url":"https://sts","headers":[{"key":"a","value":"b"}]}'],
  ['refresh_token', '1//refresh-token-of-somebody'],
])('%s is in nothing that is told', (name, proof) => {
  const form = new URLSearchParams({ grant_type: 'x', [name]: proof }).toString();
  const said = `invalid: ${proof}, as JSON ${JSON.stringify(proof)}, in a URL ${encodeURIComponent(proof)}`;
  const told = saidWithout(said, proofsIn(form));
  expect(told).toStartWith('invalid: ');
  for (const spelling of [proof, JSON.stringify(proof).slice(1, -1), encodeURIComponent(proof)]) {
    expect(told).not.toContain(spelling);
  }
});
