/** Redaction: every vendor's key is masked wherever it stands, and ordinary text is left alone. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { isSecretHeader, redactHeaders, redactText } from '../../../src/lib/text/redact.ts';
import { expectCpuBelow } from '../../support/cpu-time.ts';
import { expectLinear } from '../../support/growth.ts';

const hex = (n: number) => '0123456789abcdef'.repeat(8).slice(0, n);
const mixed = (n: number) => 'aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0z'.repeat(5).slice(0, n);

const KEYS: Readonly<Record<string, string>> = {
  openai: `sk-proj-${mixed(48)}`,
  anthropic: `sk-ant-api03-${mixed(60)}-AA`,
  openrouter: `sk-or-v1-${hex(64)}`,
  deepseek: `sk-${hex(32)}`,
  letters: 'sk-abcdefghijklmnopqrstuvwx',
  google: `AIza${mixed(35)}`,
  groq: `gsk_${mixed(52)}`,
  xai: `xai-${mixed(80)}`,
  huggingFace: `hf_${mixed(34)}`,
  perplexity: `pplx-${mixed(48)}`,
  nvidia: `nvapi-${mixed(64)}`,
  cerebras: `csk-${mixed(48)}`,
  tavily: `tvly-dev-${mixed(32)}`,
  github: `ghp_${mixed(36)}`,
  aws: 'AKIAIOSFODNN7EXAMPLE',
  zhipu: `${hex(32)}.${mixed(16)}`,
  gateway: `hk_${hex(22)}_${mixed(44)}`,
  jwt: `eyJ${mixed(20)}.eyJ${mixed(60)}.${mixed(43)}`,
  awsSession: 'ASIAIOSFODNN7EXAMPLE',
  bedrock: `ABSK${mixed(80)}`,
  bedrockShort: `bedrock-api-key-${mixed(80)}`,
  googleClient: `GOCSPX-${mixed(28)}`,
  googleRefresh: `1//0g${mixed(60)}`,
  gemini: `AQ.Ab8${mixed(48)}`,
  fireworks: `fw_${mixed(24)}`,
  databricks: `dapi${hex(32)}`,
  githubUser: `ghu_${mixed(36)}`,
  githubRefresh: `ghr_${mixed(76)}`,
  gitlabRunner: `glrt-${mixed(20)}`,
  gitlabDeploy: `gldt-${mixed(20)}`,
  slackApp: `xapp-1-A0B1C2-${mixed(40)}`,
  stripe: `rk_live_${mixed(24)}`,
  webhook: `whsec_${mixed(32)}`,
  sendGrid: `SG.${mixed(22)}.${mixed(43)}`,
  pypi: `pypi-AgEIcHlwaS5vcmc${mixed(80)}`,
  docker: `dckr_pat_${mixed(27)}`,
  shopify: `shpat_${hex(32)}`,
  digitalOcean: `dop_v1_${hex(64)}`,
  supabase: `sbp_${hex(40)}`,
  vault: `hvs.${mixed(90)}`,
  linear: `lin_api_${mixed(40)}`,
  notion: `ntn_${mixed(46)}`,
  mailgun: `key-${hex(32)}`,
  baidu: `bce-v3/ALTAK-${mixed(21)}/${hex(40)}`,
  slackBrowser: `xoxc-${mixed(40)}`,
  slackCookie: `xoxd-${mixed(60)}`,
  stripeTest: `rk_test_${mixed(24)}`,
  shopifyShared: `shpss_${hex(32)}`,
  vaultBatch: `hvb.${mixed(90)}`,
  gitlabTrigger: `glptt-${hex(40)}`,
  githubFine: `github_pat_${mixed(22)}_${mixed(59)}`,
  npm: `npm_${mixed(36)}`,
  pinecone: `pcsk_${mixed(60)}`,
  langSmith: `lsv2_pt_${hex(32)}_${hex(10)}`,
  vercelGateway: `vck_${mixed(56)}`,
  grafana: `glsa_${mixed(32)}_${hex(8)}`,
  atlassian: `ATATT3xFfGF0${mixed(150)}=A1B2C3D4`,
  newRelic: `NRAK-${'ABCDEFGHIJKLMNOPQRSTUVWXYZ0'}`,
  sentry: `sntrys_eyJ${mixed(60)}_${mixed(43)}`,
  planetScale: `pscale_pw_${mixed(43)}`,
  postman: `PMAK-${hex(24)}-${hex(34)}`,
  rubyGems: `rubygems_${hex(48)}`,
  doppler: `dp.pt.${mixed(43)}`,
  figma: `figd_${mixed(40)}`,
  heroku: `HRKU-AA${mixed(58)}`,
  square: `sq0atp-${mixed(22)}`,
  twilio: `SK${hex(32)}`,
  age: `AGE-SECRET-KEY-1${'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L'.repeat(2).slice(0, 58)}`,
};

describe('credentials are masked at equal length', () => {
  for (const [vendor, key] of Object.entries(KEYS)) {
    for (const [place, text] of Object.entries({
      alone: key,
      'in JSON': JSON.stringify({ a: { b: [`my key is ${key}, keep it`] } }),
      'behind an escaped line break': JSON.stringify(`first\n${key}\nlast`),
      'in JSON in JSON': JSON.stringify(JSON.stringify({ note: `x\n${key}` })),
      'behind an escaped ampersand': `"a\\u0026${key}"`,
      'in a shell line': `export TOKEN="${key}"`,
      'in an error': `Incorrect API key provided: ${key}.`,
    })) {
      test(`${vendor} ${place}`, () => {
        const { text: masked, count } = redactText(text);
        expect(masked).not.toContain(key);
        expect(masked).not.toContain(key.slice(-12));
        expect(masked.length).toBe(text.length);
        expect(count).toBe(1);
        expect(redactText(masked)).toEqual({ text: masked, count: 0 });
        if (place.startsWith('in JSON')) expect(() => JSON.parse(masked)).not.toThrow();
      });
    }
  }

  test('bearer tokens of no known vendor, in any case', () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      expect(redactText(`${scheme} my-own-token/1=`).text).toBe(`${scheme} ***************`);
    }
  });

  test('query parameters and passwords in URLs', () => {
    expect(redactText('GET /v1/models?key=abcdefgh1234&alt=sse').text).toBe(
      'GET /v1/models?key=************&alt=sse',
    );
    expect(redactText('https://x/?a=1&access_token=abcdefgh12345678').count).toBe(1);
    expect(redactText('http://me:hunter22@proxy:8080/').text).toBe(
      'http://me:********@proxy:8080/',
    );
  });

  test('assignments whose name says that the value is a key', () => {
    const text = 'MINIMAX_API_KEY=a1b2c3d4e5f6a7b8c9\nx';
    expect(redactText(text).text).toBe('MINIMAX_API_KEY=******************\nx');
    expect(redactText('{"api_key":"a1b2c3d4e5f6a7b8c9"}').text).toBe(
      '{"api_key":"******************"}',
    );
    expect(redactText('{\\"apiKey\\": \\"a1b2c3d4e5f6a7b8c9\\"}').count).toBe(1);
  });

  test.each([
    'AWS_SECRET_ACCESS_KEY=%',
    'aws_secret_access_key = %',
    '"SecretAccessKey": "%"',
    '"sessionToken":"%"',
    'AWS_SESSION_TOKEN="%"',
    'DefaultEndpointsProtocol=https;AccountKey=%;',
    'AZURE_CLIENT_SECRET=%',
    'Endpoint=sb://x.net/;SharedAccessKeyName=n;SharedAccessKey=%',
    '"webhookSecret": "%"',
    'jwt_secret: %',
    'PGPASSWORD=%',
    'X-Auth-Token: %',
    'GITHUB_TOKEN=%',
    'DB_PASSWORD=%',
    '"password": "%"',
    'SECRET_KEY: %',
    '"accessToken":"%"',
    '"id_token":"%"',
    'X-API-KEY: %',
    'Authorization: Basic %',
    'https://x.blob.core.windows.net/a?sv=2022-11-02&sig=%&se=2026',
    'https://b.s3.amazonaws.com/o?X-Amz-Signature=%',
  ])('by its name: %s', (place) => {
    const secret = 'abc8Q~nBP3hvJXbpDR5jxLZd';
    const text = place.replace('%', secret);
    expect(redactText(text)).toEqual({
      text: place.replace('%', '*'.repeat(secret.length)),
      count: 1,
    });
  });

  test.each([
    ['a webhook of Slack', 'https://hooks.slack.com/', `services/T0A1B2C3D/B0A1B2C3D/${mixed(24)}`],
    [
      'a workflow of Slack',
      'https://hooks.slack.com/',
      `triggers/T0A1B2C3D/1234567890123/${hex(32)}`,
    ],
    [
      'a webhook of Discord',
      'https://discord.com/api/webhooks/',
      `1234567890123456789/${mixed(68)}`,
    ],
    [
      'a webhook of Teams',
      'https://x.webhook.office.com/webhookb2/a@b/IncomingWebhook/',
      `${hex(32)}/${hex(36)}`,
    ],
    ["a bot's address at Telegram", 'https://api.telegram.org/bot1234567890:', `AA${mixed(33)}`],
    ['a token of Terraform', 'a1b2c3d4e5f6g7.atlasv1.', mixed(67)],
    ['a secret of Entra ID', 'secret a1B8', `Q~${mixed(34)}`],
    ['an S3 session', 'https://b.s3.amazonaws.com/o?X-Amz-Security-Token=', `${mixed(200)}%2F`],
    ['an S3 session as a header', 'x-amz-security-token: ', mixed(200)],
    ['Basic in JSON', '{"authorization":"Basic ', Buffer.from('me:hunter2!').toString('base64')],
    ['a connection string', 'postgres://app:', 's3cr3t!pass'],
  ])('%s', (_, before, secret) => {
    const after = before.startsWith('postgres') ? '@db:5432/app' : '" rest';
    const { text, count } = redactText(`${before}${secret}${after}`);
    expect([text, count]).toEqual([`${before}${'*'.repeat(secret.length)}${after}`, 1]);
  });

  test('a private key block of PGP', () => {
    const text = `-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF${mixed(60)}\n=A1b2\n-----END PGP PRIVATE KEY BLOCK-----`;
    expect(redactText(text).text).not.toContain('lQOYBF');
  });

  test('a private key block', () => {
    const text = '"-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADAN\\n-----END PRIVATE KEY-----\\n"';
    const { text: masked } = redactText(text);
    expect(masked).not.toContain('MIIEvQ');
    expect(masked.length).toBe(text.length);
  });

  test('several in one text are counted one by one', () => {
    const text = `${KEYS.openai} and ${KEYS.google} and ${KEYS.openai}`;
    expect(redactText(text).count).toBe(3);
  });

  test('"Authorization: Bearer <vendor key>" counts once', () => {
    expect(redactText(`Authorization: Bearer ${KEYS.openai}`).count).toBe(1);
  });
});

describe('ordinary text is left alone', () => {
  for (const text of [
    'task-management-system-with-many-words-2024',
    'class="sk-fading-circle"',
    'risk-assessment-2024-report-final-v2',
    'process.env.OPENAI_API_KEY',
    'const apiKey = process.env.OPENAI_API_KEY',
    '"api_key": {"type": "string", "description": "The API key"}',
    'export KEY=$OPENAI_API_KEY',
    'the bearer of this letter',
    'Basic authentication123 is weak',
    'Basic JavaScript2024examples',
    'https://hooks.slack.com/services/YOUR/WEBHOOK/URL',
    'https://discord.com/api/webhooks/ID/TOKEN',
    '"integrity":"sha512:AAbbccddeeffgghhiijjkkllmmnnooppqqrrsstt"',
    'kind: Secret\nmetadata:\n  name: a1234567890123456',
    'SKU-0123456789abcdef0123456789abcdef',
    'pull-0123456789abcdef0123456789abcdef01234567',
    '-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkq\n-----END PUBLIC KEY-----',
    '"page_token": "abc1234567890123456"',
    'monkey=banana',
    '"nextPageToken": "CAUQAA1234567890abcd"',
    '"max_completion_tokens": 4000',
    '{"token":" hello","logprob":-0.1234567890123456}',
    'the password is in DB_PASSWORD or in .env',
    'const total = MAX_TOKENS_PER_REQUEST_1234567890',
    'https://example.com/a:b@c',
    'call_0123456789abcdef0123456789abcdef',
    'toolu_01A09q90qw90lq917835lq9',
    '3.14159 and 1.0.0-beta.2',
    `data:image/png;base64,${Buffer.from(mixed(150)).toString('base64')}`,
  ]) {
    test(text.slice(0, 50), () => {
      const redacted = redactText(text);
      expect(redacted).toEqual({ text, count: 0 });
      expect(redacted.text).toBe(text);
    });
  }
});

test('any text: length is kept, a second pass finds nothing', () => {
  const piece = fc.oneof(
    fc.string(),
    fc.constantFrom(...Object.values(KEYS), 'Bearer ', '?key=', '"', '\\n', '://a:b@', 'sk-'),
  );
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const text = pieces.join('');
      const once = redactText(text);
      expect(once.text.length).toBe(text.length);
      expect(redactText(once.text).text).toBe(once.text);
    }),
  );
});

test('a megabyte without credentials takes milliseconds', async () => {
  const text = JSON.stringify({
    text: 'The quick brown fox. It jumps over api docs.\n'.repeat(25_000),
  });
  redactText(text);
  await expectCpuBelow(100, () => redactText(text));
});

test.each([
  'sk-',
  'eyJ',
  'eyJa.',
  '://',
  '://a:',
  'earer ',
  'api_key=',
  'key=a',
  '-----BEGIN ',
  'f.',
])('a text of %j takes time that grows with its length only', async (piece) => {
  await expectLinear({
    name: piece,
    input: (size) => piece.repeat(size / piece.length),
    run: redactText,
    most: 1024 * 1024,
  });
});

test('secret headers in any case; their scheme stays readable', () => {
  expect(isSecretHeader('Authorization')).toBe(true);
  expect(isSecretHeader('X-API-Key')).toBe(true);
  expect(isSecretHeader('x-goog-api-key')).toBe(true);
  expect(isSecretHeader('content-type')).toBe(false);
  expect(
    redactHeaders([
      ['Authorization', 'Bearer abc'],
      ['x-api-key', 'k1'],
      ['accept', 'text/event-stream'],
    ]),
  ).toEqual({
    headers: [
      ['Authorization', 'Bearer ***'],
      ['x-api-key', '**'],
      ['accept', 'text/event-stream'],
    ],
    count: 2,
  });
});
