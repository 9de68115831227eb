/** A fake Google Cloud: tokens (by assertion, federation, the metadata server) and Vertex AI in front of the fake vendor; both refuse in Google's words. */

import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import type { FakeUpstream } from '../fake-upstream/index.ts';

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

/** The audience of a workload identity pool, and the account whose rights it gets. */
export const POOL =
  '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/own';
export const STAND_IN = 'stand-in@demo-project.iam.gserviceaccount.com';
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

export const EMAIL = 'gateway@demo-project.iam.gserviceaccount.com';
const PROJECT = 'demo-project';

export interface FakeGoogle {
  readonly origin: string;
  /** The text of a service account's key for this place. */
  readonly credentials: string;
  /** The configuration of a federated identity, its subject's token to be found at `source`. */
  federated(source: Record<string, unknown>, more?: Record<string, unknown>): string;
  /** What was exchanged, or asked of the metadata server, in order. */
  readonly exchanges: Record<string, string>[];
  /** The subject's token that the pool trusts. */
  readonly subject: string;
  /** The claims of every assertion that was taken. */
  readonly assertions: Record<string, unknown>[];
  readonly requests: {
    readonly path: string;
    readonly headers: Record<string, string>;
    readonly body: Record<string, unknown>;
  }[];
  readonly refusals: string[];
  /** Seconds that tokens hold from now on. */
  lifetime: number;
  /** The token endpoint answers with this status. */
  tokenStatus: number;
  /** What a caller sent is repeated: in a refusal, as an error in a stream, in a header of an answer, by the token endpoint. */
  repeats: 'refusal' | 'stream' | 'header' | 'token' | undefined;
  /** No token that was issued is taken any more. */
  revoke(): void;
  stop(): Promise<void>;
}

const CODES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
};

const CLAUDE =
  /^\/v1\/projects\/demo-project\/locations\/([a-z0-9-]+)\/publishers\/anthropic\/models\/([^/:]+):(rawPredict|streamRawPredict)$/;
const GEMINI =
  /^\/v1beta1\/projects\/demo-project\/locations\/([a-z0-9-]+)\/publishers\/google(\/models\/[^/:]+:[a-zA-Z]+)$/;

const decoded = (part: string) =>
  JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;

const SUBJECT = `eyJ.subject.${'s'.repeat(30)}`;

/** A signed request for AWS' GetCallerIdentity, made for this pool alone. */
function isSignedByAws(token: string): boolean {
  const { url, method, headers } = JSON.parse(decodeURIComponent(token)) as {
    url: string;
    method: string;
    headers: { key: string; value: string }[];
  };
  const named = new Map(headers.map(({ key, value }) => [key.toLowerCase(), value]));
  return (
    method === 'POST' &&
    /^https:\/\/sts\.eu-west-1\.amazonaws\.com\/?\?Action=GetCallerIdentity&Version=2011-06-15$/.test(
      url,
    ) &&
    named.get('x-goog-cloud-target-resource') === POOL &&
    /^AWS4-HMAC-SHA256 Credential=AKIDMAIN\/\d{8}\/eu-west-1\/sts\/aws4_request/.test(
      named.get('authorization') ?? '',
    )
  );
}

/** @param vendor speaks Messages and Gemini; sees the requests as the makers of the models would */
export function startFakeGoogle(vendor: FakeUpstream): FakeGoogle {
  const issued = new Map<string, number>();
  const refusals: string[] = [];
  const assertions: Record<string, unknown>[] = [];
  const requests: FakeGoogle['requests'] = [];
  const exchanges: Record<string, string>[] = [];
  let count = 0;
  const issue = (kind: string) => {
    const token = `ya29.${kind}-${++count}-${'x'.repeat(40)}`;
    issued.set(token, Date.now() + fake.lifetime * 1000);
    return token;
  };

  const refuse = (status: number, message: string) => {
    refusals.push(message);
    return Response.json({ error: { code: status, message, status: CODES[status] } }, { status });
  };

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const headers = Object.fromEntries(request.headers);
      if (fake.repeats === 'token' && pathname.endsWith('/token')) {
        const asked = new URLSearchParams(await request.text());
        const error_description = `Bad ${asked.get('assertion') ?? asked.get('subject_token')}`;
        return Response.json({ error: 'invalid_grant', error_description }, { status: 400 });
      }
      if (pathname === '/token') return token(await request.text(), headers);
      if (pathname === '/v1/token') return exchange(await request.text(), headers);
      if (pathname.startsWith('/computeMetadata/')) return metadata(pathname, search, headers);
      if (pathname.endsWith(':generateAccessToken')) {
        return standIn(pathname, headers, (await request.json()) as Record<string, unknown>);
      }
      // What another cloud gives its own machines.
      if (pathname === '/subject') {
        return headers.metadata === 'True'
          ? Response.json({ access_token: SUBJECT })
          : new Response('no header', { status: 400 });
      }
      const bearer = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
      if ((issued.get(bearer) ?? 0) <= Date.now()) {
        return refuse(
          401,
          'Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.',
        );
      }
      const sent = `We cannot take ${JSON.stringify(headers)}.`;
      if (fake.repeats === 'refusal') return refuse(400, sent);
      if (fake.repeats === 'stream') {
        const error = { error: { code: 503, message: sent, status: 'UNAVAILABLE' } };
        const said = { candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] } }] };
        const frames = [said, error].map((one) => `data: ${JSON.stringify(one)}\n\n`);
        return new Response(frames.join(''), { headers: { 'content-type': 'text/event-stream' } });
      }
      const body = (await request.json()) as Record<string, unknown>;
      requests.push({ path: pathname, headers, body });
      const claude = CLAUDE.exec(pathname);
      if (claude !== null) return messages(claude[2]!, claude[3]!, headers, body);
      const gemini = GEMINI.exec(pathname);
      if (gemini === null) return refuse(404, 'Requested entity was not found.');
      const answer = await fetch(`${vendor.baseUrl('google-gemini')}${gemini[2]}${search}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-goog-api-key': 'inside' },
        body: JSON.stringify(body),
      });
      const { status } = answer;
      const own = fake.repeats === 'header' ? { 'x-sent': headers.authorization! } : {};
      return new Response(answer.body, {
        status,
        headers: { ...Object.fromEntries(answer.headers), ...own },
      });
    },
  });
  const origin = `http://127.0.0.1:${server.port}`;

  const fake: FakeGoogle = {
    origin,
    credentials: JSON.stringify({
      type: 'service_account',
      project_id: PROJECT,
      private_key_id: 'k1',
      private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
      client_email: EMAIL,
      client_id: '1',
      token_uri: `${origin}/token`,
    }),
    federated: (source, more = {}) =>
      JSON.stringify({
        type: 'external_account',
        audience: POOL,
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        token_url: `${origin}/v1/token`,
        credential_source: source,
        ...more,
      }),
    exchanges,
    subject: SUBJECT,
    assertions,
    requests,
    refusals,
    lifetime: 3600,
    tokenStatus: 200,
    repeats: undefined,
    revoke: () => issued.clear(),
    stop: () => server.stop(true),
  };

  function token(text: string, headers: Record<string, string>): Response {
    if (fake.tokenStatus !== 200) return new Response('{}', { status: fake.tokenStatus });
    const invalid = (error: string, error_description: string, status = 400) => {
      refusals.push(error_description);
      return Response.json({ error, error_description }, { status });
    };
    if (!headers['content-type']?.startsWith('application/x-www-form-urlencoded')) {
      return invalid('invalid_request', 'Content-Type must be application/x-www-form-urlencoded.');
    }
    const asked = new URLSearchParams(text);
    if (asked.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') {
      return invalid('unsupported_grant_type', 'Invalid grant_type: ');
    }
    const [head = '', claims = '', signature = ''] = (asked.get('assertion') ?? '').split('.');
    const key = createPublicKey(publicKey.export({ type: 'spki', format: 'pem' }));
    const { alg, kid } = decoded(head);
    const valid = verify(
      'RSA-SHA256',
      Buffer.from(`${head}.${claims}`),
      key,
      Buffer.from(signature, 'base64url'),
    );
    if (alg !== 'RS256' || kid !== 'k1' || !valid) {
      return invalid('invalid_grant', 'Invalid JWT Signature.');
    }
    const said = decoded(claims);
    const seconds = Date.now() / 1000;
    const { iss, aud, iat, exp, scope } = said as Record<string, number | string>;
    if (iss !== EMAIL) return invalid('invalid_grant', 'Invalid grant: account not found');
    if (aud !== `${origin}/token`) return invalid('invalid_grant', 'Invalid JWT: aud');
    if (Number(exp) - Number(iat) > 3600 || Number(exp) < seconds || Number(iat) > seconds + 60) {
      return invalid(
        'invalid_grant',
        'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.',
      );
    }
    if (scope !== 'https://www.googleapis.com/auth/cloud-platform') {
      return invalid('invalid_scope', 'Invalid OAuth scope or ID token audience provided.');
    }
    assertions.push(said);
    const access_token = `ya29.fake-${assertions.length}-${'x'.repeat(40)}`;
    issued.set(access_token, Date.now() + fake.lifetime * 1000);
    return Response.json({ access_token, expires_in: fake.lifetime, token_type: 'Bearer' });
  }

  /** https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token */
  function exchange(text: string, headers: Record<string, string>): Response {
    const asked = Object.fromEntries(new URLSearchParams(text));
    const invalid = (error: string, error_description: string, status = 400) => {
      refusals.push(error_description);
      return Response.json({ error, error_description }, { status });
    };
    if (fake.tokenStatus !== 200) return new Response('{}', { status: fake.tokenStatus });
    if (!headers['content-type']?.startsWith('application/x-www-form-urlencoded')) {
      return invalid('invalid_request', 'Content-Type must be application/x-www-form-urlencoded.');
    }
    if (asked.grant_type !== EXCHANGE) return invalid('unsupported_grant_type', 'grant_type');
    if (asked.audience !== POOL)
      return invalid(
        'invalid_target',
        'The target service indicated by the "audience" parameters is invalid.',
      );
    if (asked.requested_token_type !== ACCESS_TOKEN) return invalid('invalid_request', 'type');
    if (asked.scope !== SCOPE) return invalid('invalid_scope', 'Invalid OAuth scope.');
    const { subject_token = '', subject_token_type: type } = asked;
    const isKnown =
      type === 'urn:ietf:params:aws:token-type:aws4_request'
        ? isSignedByAws(subject_token)
        : type === 'urn:ietf:params:oauth:token-type:jwt' && subject_token === SUBJECT;
    if (!isKnown)
      return invalid(
        'invalid_grant',
        `The given credential ${subject_token} is rejected by the attribute condition.`,
        400,
      );
    exchanges.push({ by: 'sts', type: type! });
    const access_token = issue('sts');
    return Response.json({
      access_token,
      issued_token_type: ACCESS_TOKEN,
      token_type: 'Bearer',
      expires_in: fake.lifetime,
    });
  }

  /** https://cloud.google.com/compute/docs/metadata/querying-metadata */
  function metadata(path: string, search: string, headers: Record<string, string>): Response {
    const flavor = { 'metadata-flavor': 'Google' };
    const refused = headers['metadata-flavor'] !== 'Google' || 'x-forwarded-for' in headers;
    if (refused) {
      refusals.push('Metadata-Flavor');
      return new Response('Missing required header "Metadata-Flavor": "Google"', { status: 403 });
    }
    if (fake.tokenStatus !== 200) return new Response('', { status: fake.tokenStatus });
    if (path !== '/computeMetadata/v1/instance/service-accounts/default/token') {
      return new Response('', { status: 404, headers: flavor });
    }
    const scopes = new URLSearchParams(search).get('scopes');
    if (scopes !== null && scopes !== SCOPE) {
      return new Response('', { status: 404, headers: flavor });
    }
    exchanges.push({ by: 'metadata' });
    const access_token = issue('metadata');
    return Response.json(
      { access_token, expires_in: fake.lifetime, token_type: 'Bearer' },
      { headers: flavor },
    );
  }

  /** https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateAccessToken */
  function standIn(
    path: string,
    headers: Record<string, string>,
    { scope, lifetime }: Record<string, unknown>,
  ): Response {
    const bearer = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
    if (!issued.has(bearer)) return refuse(401, 'Request had invalid authentication credentials.');
    if (path !== `/v1/projects/-/serviceAccounts/${STAND_IN}:generateAccessToken`) {
      return refuse(403, "Permission 'iam.serviceAccounts.getAccessToken' denied on resource");
    }
    if (
      !Array.isArray(scope) ||
      scope[0] !== SCOPE ||
      !/^\d+s$/.test(String(lifetime ?? '3600s'))
    ) {
      return refuse(400, 'Scope required.');
    }
    issued.delete(bearer);
    exchanges.push({ by: 'iam' });
    const expireTime = new Date(Date.now() + fake.lifetime * 1000).toISOString();
    return Response.json({ accessToken: issue('iam'), expireTime });
  }

  async function messages(
    model: string,
    method: string,
    headers: Record<string, string>,
    body: Record<string, unknown>,
  ): Promise<Response> {
    const { anthropic_version: version, ...rest } = body;
    if (headers['anthropic-version'] !== undefined || version !== 'vertex-2023-10-16') {
      return refuse(400, 'anthropic_version: Field required');
    }
    const counting = model === 'count-tokens';
    if (!counting && 'model' in body) {
      return refuse(400, 'model: Extra inputs are not permitted');
    }
    if (!counting && (method === 'streamRawPredict') !== (body.stream === true)) {
      return refuse(400, 'stream must match the method');
    }
    const beta = headers['anthropic-beta'];
    if (/advanced-tool-use|fast-mode|prompt-caching-scope/.test(beta ?? '')) {
      return refuse(400, `Unexpected value(s) \`${beta}\` for the \`anthropic-beta\` header.`);
    }
    const path = counting ? '/v1/messages/count_tokens' : '/v1/messages';
    const answer = await fetch(vendor.origin + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': 'sk-inside',
        'anthropic-version': '2023-06-01',
        ...(beta === undefined ? {} : { 'anthropic-beta': beta }),
      },
      body: JSON.stringify(counting ? rest : { model: decodeURIComponent(model), ...rest }),
    });
    if (answer.ok) {
      return new Response(answer.body, { status: answer.status, headers: answer.headers });
    }
    const failed = (await answer.json()) as { error: { message: string } };
    // A busy platform answers itself, and a model's own error comes as the model's server wrote it.
    return answer.status === 429
      ? refuse(429, 'Resource exhausted. Please try again later.')
      : Response.json(failed, { status: answer.status });
  }

  return fake;
}
