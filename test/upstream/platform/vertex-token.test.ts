/** The assertion of a service account: a fixed key and moment give the signature that OpenSSL makes of them. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchGoogleToken } from '../../../src/upstream/platform/vertex/token.ts';
import type { Transport, UpstreamRequest } from '../../../src/upstream/transport.ts';

// The published key of RFC 7515, appendix A.2, as PKCS #8.
const KEY = [
  'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCh+BYK4uPJtGXOjS1lYmM2K5J9vinh8CR3/BYlzJChNuOL',
  '2TSXxbbqY913EeZ8dCn5VrD7io8ImtxLaYk8wTM/U+3QGbh3hCUv7JFP5IV3aVlL6kKA0ywPVb9ilE8TA5a8bpvfbr3SvaNn',
  'juygxmj3AbONv/s4yDQs4v5tJ/reSlpIdJed1LnPmt7Ex1sFhSwsD174pcF1A5L5ROjtZMEQxrZHYJqkeDrrnGya11UxMFBj',
  'i4NmXG9veoKjlnAqH2QbgtPr8jkiGUkftoaHLFcW9Qr4NY2ai50Xw0Byj3+H2JoY2PyrZ62EWQwuz3WTOTY8BwNNb2BvniHg',
  'VFbK5emhAgMBAAECggEAEq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7/GQ5sLKMgvfTeX',
  'Zx9SE+7YwVol2NXOoAJe46sui395IW/GO+pWJ1O0BkTGoVEn2bKVRUCgu+GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzj',
  'kn439X0M/V51gfpRLI9JYanrC4D4qAdGcopV/0ZHHzQlBjudU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl',
  '/x/jTj3ccPDVZFD9pIuhLhBOneufuBiB4cS98l2SR/RQyGWSeWjnczT0QU91p1DhOVRuOopznQKBgQDgHMQQ60imZV1URk0K',
  'pLttoLhyt3SmqdEf/kgHePDdtzEafpAu+cS191R2JiuoF2yzWXnwFDcqGigp5BNr0AHQfD8/Lk8l1Mk09jxxCfui5nYooNya',
  'c8YFjm3vItzVCVDnEd3BbVWG8qf6deqElMGAg+C2V0L4oNXnP7LZcPAZRwKBgQC5A8R+CZW2MvRTLLHzwZkUXV866cff7tx6',
  'kqa0finGG0KgeqlaZPxgCZnFp7AeAcCMtiynVlJ7vMVgePsLq6XtON4tB5kP9jAPrq3rbAOal78eUH5OcED6eNuCV8ixEu1e',
  'WcPNCS/l1OW1EnXUEoEHKl54Xrrz2uNwkgMTP1FZ1wKBgAcCn1dwJKufzBWQxWQp1vsM5fggqPN1qGb5y0MAk3g7/Ls5bkUp',
  '5u9SN0Ai3Ya6hNnvWJMb7sXQX6U/zyO2M/hTip7tUeh7CXgwo59dkpN75gJLVds29+DAncu3KXU4f2Fa+7bLNrur53k8KwPO',
  'q2bbuTG69QtV7Jr5MR0AHWKNAoGBAIf/evpitUf+4JYbLpvNXWcY052Mpz22aR84mY3nh3F2LF2mjMJDpTg7FmuyPcVw6EcG',
  'yoAe9fa65iNqCq+jdw6PVNGo2hxfjSiZ8IIzHdsPXI89//pMjZcQK9r+CCoRjaZjOYiIDktVWZzmevJuv6WywUqd57LE3Zar',
  '3dLSIkx1AoGAIYd7DHOhrWvxkwPQsRM2tOgrjbcrfvtQJipd+DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd/QJQ3',
  'ydy5cY7YIBi87w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp/gh6A5603k2+ZQwVK0JKSHuLFkuQ3U=',
];
// The account and the times of https://developers.google.com/identity/protocols/oauth2/service-account.
const EMAIL = '761326798069-r5mljlln1rd4lrbhg75efgigp36m78j5@developer.gserviceaccount.com';
const NOW = 1_328_550_785_000;
/** `openssl dgst -sha256 -sign` of header and claims below. */
const SIGNATURE = [
  'iJ0qEREwH6yFKsXQV9ppnQbQb0LE9Kt-xVQbAthTocXK6p6uULJs0LOme_P4M1cicy0lQiFY4zlQAbl4tbm6JV_Ij5xs',
  '4HU8LY7dfa6ZiF5XWm9VgO9ARVwy2-lCaJtVHDOawLKX2RQ-bpgCPnoO7OEuq3MD26RndA1dgwaypXs1FHHboe_mKlCY',
  'bswRjdIiVfssyZWAKNxayO7YUG4qUCsJasB492JAUVPOIyw45CqDqFwIx60IUBm2r5jds0RpQP10J3jKElG0RG7TtWC-',
  'NxH403y_qCOnTAY94YYKy-qihmwkDldL3uoQw87gIXsvGuXGP3DG5gYjKUkju27U7g',
].join('');

let dir: string;
let file: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'hopgate-vertex-token-'));
  file = join(dir, 'key.json');
  await Bun.write(
    file,
    JSON.stringify({
      type: 'service_account',
      project_id: 'p',
      private_key_id: 'bilbo-1',
      private_key: `-----BEGIN PRIVATE KEY-----\n${KEY.join('\n')}\n-----END PRIVATE KEY-----\n`,
      client_email: EMAIL,
      token_uri: 'https://oauth2.googleapis.com/token',
    }),
  );
});
afterAll(() => rm(dir, { recursive: true, force: true }));

describe('the assertion of a service account', () => {
  test('has the header, the claims and the signature that Google wants', async () => {
    const requests: UpstreamRequest[] = [];
    const transport = (async (request: UpstreamRequest) => {
      requests.push(request);
      const answer = JSON.stringify({ access_token: 'ya29.x', expires_in: 3599 });
      return { status: 200, body: { readAll: async () => Buffer.from(answer) } };
    }) as unknown as Transport;
    const lease = await fetchGoogleToken({ provider: 'v', file, transport, now: () => NOW });
    expect(lease).toEqual({
      value: { token: 'ya29.x', account: EMAIL },
      until: NOW + 3_599_000,
    });
    const [{ url, method, body }] = requests as [UpstreamRequest];
    expect([url, method]).toEqual(['https://oauth2.googleapis.com/token', 'POST']);
    const form = new URLSearchParams(String(body));
    expect(form.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer');
    const [header, claims, signature] = form.get('assertion')!.split('.');
    const read = (part: string) => Buffer.from(part, 'base64url').toString();
    expect(read(header!)).toBe('{"alg":"RS256","typ":"JWT","kid":"bilbo-1"}');
    expect(read(claims!)).toBe(
      `{"scope":"https://www.googleapis.com/auth/cloud-platform","iss":"${EMAIL}","aud":"https://oauth2.googleapis.com/token","iat":1328550785,"exp":1328554385}`,
    );
    expect(signature).toBe(SIGNATURE);
  });
});
