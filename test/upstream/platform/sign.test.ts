/** Signatures of AWS: the vectors of AWS' own test suite, and what a strict server makes of them. */

import { describe, expect, test } from 'bun:test';
import { FlatHeaders } from '../../../src/lib/http/headers.ts';
import { signed } from '../../../src/upstream/platform/bedrock/sign.ts';
import { awsRefusal } from '../../support/platforms/signature.ts';

// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-test-suite.html
const SUITE = {
  identity: {
    accessKeyId: 'AKIDEXAMPLE',
    secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  },
  region: 'us-east-1',
  service: 'service',
  date: new Date('2015-08-30T12:36:00Z'),
};
const HOST = 'https://example.amazonaws.com';
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

const VECTORS: readonly (readonly [
  name: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body: string,
  signature: string,
])[] = [
  [
    'get-vanilla',
    'GET',
    '/',
    {},
    '',
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  ],
  [
    'get-vanilla-query-order-key-case',
    'GET',
    '/?Param2=value2&Param1=value1',
    {},
    '',
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  ],
  [
    'get-vanilla-query-unreserved',
    'GET',
    '/?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
    {},
    '',
    '9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197',
  ],
  [
    'get-unreserved',
    'GET',
    '/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
    {},
    '',
    '07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f',
  ],
  [
    'post-vanilla',
    'POST',
    '/',
    {},
    '',
    '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  ],
  [
    'post-vanilla-query',
    'POST',
    '/?Param1=value1',
    {},
    '',
    '28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11',
  ],
  [
    'post-x-www-form-urlencoded',
    'POST',
    '/',
    FORM,
    'Param1=value1',
    'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  ],
];

describe('Signature Version 4', () => {
  for (const [name, method, path, headers, body, signature] of VECTORS) {
    test(`AWS' test suite: ${name}`, async () => {
      const bytes = body === '' ? undefined : Buffer.from(body);
      const out = await signed(method, HOST + path, FlatHeaders.of(headers), bytes, SUITE);
      const names = 'content-type' in headers ? 'content-type;host;x-amz-date' : 'host;x-amz-date';
      expect(out.get('authorization')).toBe(
        `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${names}, Signature=${signature}`,
      );
    });
  }

  test('a model with a colon or slashes, a session token and other headers are signed as a server counts them', async () => {
    const identity = { ...SUITE.identity, sessionToken: 'a-session-token' };
    const date = new Date();
    const signing = { identity, region: 'eu-west-1', service: 'bedrock', date };
    const body = Buffer.from('{"a":"ü"}');
    for (const id of [
      'anthropic.claude-sonnet-4-5-20250929-v1:0',
      'arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc',
    ]) {
      const url = `http://127.0.0.1:1/model/${encodeURIComponent(id)}/invoke`;
      const given = FlatHeaders.of({ 'content-type': 'application/json', 'user-agent': 'x' });
      const headers = (await signed('POST', url, given, body, signing)).record();
      const { accessKeyId, ...secret } = identity;
      headers.host = '127.0.0.1:1';
      const request = { method: 'POST', url, headers, body };
      const keys = { [accessKeyId]: secret };
      expect(awsRefusal(request, keys, 'eu-west-1', 'bedrock')).toBeUndefined();
      // What a proxy changes does no harm; what is sent does.
      request.headers['user-agent'] = 'y';
      expect(awsRefusal(request, keys, 'eu-west-1', 'bedrock')).toBeUndefined();
      const changed = { ...request, body: Buffer.from('{"a":"u"}') };
      expect(awsRefusal(changed, keys, 'eu-west-1', 'bedrock')?.type).toBe(
        'InvalidSignatureException',
      );
    }
  });
});
