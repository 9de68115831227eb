/** A fake Azure: tokens of Entra ID, the identity of a machine, and OpenAI's API in front of the fake vendor; strict in Azure's words. */

import { createHash, createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FakeUpstream } from '../fake-upstream/index.ts';

const CERTIFICATES = join(import.meta.dir, '../certificates');

export const TENANT = '7b1e2d3c-0000-4000-8000-00000000aaaa';
export const CLIENT = '11111111-2222-4333-8444-555555555555';
export const CLIENT_SECRET = 'entra~Secret-of-the-application';
export const API_KEY = 'azure-key-0123456789abcdef';
const SCOPE = 'https://cognitiveservices.azure.com';
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

export interface FakeAzure {
  /** Of the API: `http://127.0.0.1:PORT`. */
  readonly origin: string;
  /** Of Entra ID: `https://localhost:PORT`, with the certificate of `authority.pem`. */
  readonly authority: string;
  readonly caFile: string;
  /** A certificate with its key, whose application is {@link CLIENT}. */
  readonly certificateFile: string;
  /** A workload's token that Entra ID trusts. */
  readonly workloadToken: string;
  /** What was shown to get a token, in order. */
  readonly proofs: string[];
  readonly requests: { readonly path: string; readonly headers: Record<string, string> }[];
  readonly refusals: string[];
  /** The token services answer with this status. */
  tokenStatus: number;
  revoke(): void;
  stop(): Promise<void>;
}

const decoded = (part: string) =>
  JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;

/** @param vendor speaks Responses and Chat */
export function startFakeAzure(vendor: FakeUpstream): FakeAzure {
  const certificateFile = join(CERTIFICATES, 'application.pem');
  const workloadToken = `eyJ.workload.${'w'.repeat(30)}`;
  const issued = new Set<string>();
  const proofs: string[] = [];
  const requests: FakeAzure['requests'] = [];
  const refusals: string[] = [];
  let count = 0;

  const issue = (proof: string) => {
    proofs.push(proof);
    const token = `eyJ0.${proof}-${++count}.${'t'.repeat(40)}`;
    issued.add(token);
    return token;
  };

  /** https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow */
  const entra = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    tls: {
      cert: readFileSync(join(CERTIFICATES, 'localhost.pem')),
      key: readFileSync(join(CERTIFICATES, 'localhost.key.pem')),
    },
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const invalid = (error: string, description: string, status = 401) => {
        refusals.push(description);
        return Response.json({ error, error_description: description }, { status });
      };
      if (request.method !== 'POST' || pathname !== `/${TENANT}/oauth2/v2.0/token`) {
        return invalid('invalid_request', `AADSTS90002: Tenant '${pathname}' not found.`, 400);
      }
      if (fake.tokenStatus !== 200) return new Response('{}', { status: fake.tokenStatus });
      if (!/^application\/x-www-form-urlencoded/.test(request.headers.get('content-type') ?? '')) {
        return invalid('invalid_request', 'AADSTS900144: The request body must be a form.', 400);
      }
      const asked = new URLSearchParams(await request.text());
      if (asked.get('grant_type') !== 'client_credentials') {
        return invalid(
          'unsupported_grant_type',
          'AADSTS70003: The app requested an unsupported grant type.',
          400,
        );
      }
      if (asked.get('client_id') !== CLIENT) {
        return invalid(
          'unauthorized_client',
          'AADSTS700016: Application was not found in the directory.',
          400,
        );
      }
      if (asked.get('scope')?.split(' ').includes(`${SCOPE}/.default`) !== true) {
        return invalid(
          'invalid_scope',
          'AADSTS70011: The provided value for the input parameter scope is not valid.',
          400,
        );
      }
      const proof = proofIn(asked);
      if (proof === undefined) {
        return invalid(
          'invalid_client',
          `AADSTS7000215: Invalid client secret provided: ${asked.get('client_secret') ?? asked.get('client_assertion')}.`,
        );
      }
      return Response.json({
        token_type: 'Bearer',
        expires_in: 3599,
        ext_expires_in: 3599,
        access_token: issue(proof),
      });
    },
  });
  const authority = `https://localhost:${entra.port}`;

  function proofIn(asked: URLSearchParams): string | undefined {
    const secret = asked.get('client_secret');
    if (secret !== null) return secret === CLIENT_SECRET ? 'secret' : undefined;
    const assertion = asked.get('client_assertion') ?? '';
    if (asked.get('client_assertion_type') !== ASSERTION) return undefined;
    if (assertion === workloadToken) return 'workload';
    const [head = '', claims = '', signature = ''] = assertion.split('.');
    if (signature === '') return undefined;
    const certificate = readFileSync(certificateFile);
    const { alg, 'x5t#S256': thumbprint } = decoded(head);
    const { aud, iss, sub, exp } = decoded(claims);
    const raw = Buffer.from(
      /-----BEGIN CERTIFICATE-----([^-]+)/.exec(certificate.toString())![1]!,
      'base64',
    );
    const padded = alg === 'PS256';
    const key = createPublicKey(certificate);
    const isSigned = verify(
      'sha256',
      Buffer.from(`${head}.${claims}`),
      padded ? { key, padding: 6, saltLength: 32 } : key,
      Buffer.from(signature, 'base64url'),
    );
    return isSigned &&
      thumbprint === createHash('sha256').update(raw).digest('base64url') &&
      String(aud).startsWith(`${authority}/${TENANT}`) &&
      iss === CLIENT &&
      sub === CLIENT &&
      Number(exp) > Date.now() / 1000
      ? 'certificate'
      : undefined;
  }

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      const headers = Object.fromEntries(request.headers);
      // The library puts a slash behind an address from the environment.
      if (/^\/metadata\/identity\/oauth2\/token\/?$/.test(pathname))
        return machine(searchParams, headers);
      const refuse = (status: number, code: string, message: string) => {
        refusals.push(message);
        return Response.json({ error: { code, message } }, { status });
      };
      const bearer = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
      const known = headers['api-key'] === API_KEY || issued.has(bearer);
      if (!known || (headers['api-key'] !== undefined && bearer !== '')) {
        return refuse(
          401,
          '401',
          'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.',
        );
      }
      const version = searchParams.get('api-version');
      const deployment = /^\/openai\/deployments\/([^/]+)\/chat\/completions$/.exec(pathname)?.[1];
      const current = /^\/openai\/v1\/(responses|chat\/completions)$/.exec(pathname)?.[1];
      requests.push({ path: pathname, headers });
      if (deployment !== undefined && version === null)
        return refuse(404, '404', 'Resource not found');
      if (current !== undefined && version !== null && version !== 'preview') {
        return refuse(400, 'BadRequest', 'API version not supported');
      }
      if (deployment === undefined && current === undefined)
        return refuse(404, '404', 'Resource not found');
      const body = (await request.json()) as Record<string, unknown>;
      if (current !== undefined && typeof body.model !== 'string') {
        return refuse(400, 'BadRequest', 'model is required');
      }
      const protocol = current === 'responses' ? 'openai-responses' : 'openai-chat';
      const answer = await fetch(`${vendor.baseUrl(protocol)}/${current ?? 'chat/completions'}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer sk-inside' },
        body: JSON.stringify({ model: deployment, ...body }),
      });
      return new Response(answer.body, { status: answer.status, headers: answer.headers });
    },
  });

  /** https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token */
  function machine(asked: URLSearchParams, headers: Record<string, string>): Response {
    const invalid = (error_description: string) => {
      refusals.push(error_description);
      return Response.json({ error: 'invalid_request', error_description }, { status: 400 });
    };
    if (headers.metadata?.toLowerCase() !== 'true' || 'x-forwarded-for' in headers) {
      return invalid('Required metadata header not specified');
    }
    if (fake.tokenStatus !== 200) return new Response('{}', { status: fake.tokenStatus });
    if (!/^20\d\d-\d\d-\d\d$/.test(asked.get('api-version') ?? '')) return invalid('api-version');
    if (asked.get('resource') !== SCOPE)
      return invalid('AADSTS500011: The resource was not found.');
    const client = asked.get('client_id');
    if (client !== null && client !== CLIENT) return invalid('Identity not found');
    return Response.json({
      access_token: issue(client === null ? 'machine' : 'chosen-machine'),
      client_id: CLIENT,
      expires_in: '86399',
      expires_on: String(Math.floor(Date.now() / 1000) + 86_399),
      not_before: String(Math.floor(Date.now() / 1000)),
      resource: SCOPE,
      token_type: 'Bearer',
    });
  }

  const fake: FakeAzure = {
    origin: `http://127.0.0.1:${server.port}`,
    authority,
    caFile: join(CERTIFICATES, 'authority.pem'),
    certificateFile,
    workloadToken,
    proofs,
    requests,
    refusals,
    tokenStatus: 200,
    revoke: () => issued.clear(),
    stop: async () => {
      await server.stop(true);
      await entra.stop(true);
    },
  };
  return fake;
}
