/** Access tokens by Google's own library: identities of other clouds, accounts that stand in for others, Google's machines. */

import {
  type AuthClient,
  AwsClient,
  Compute,
  ExternalAccountAuthorizedUserClient,
  IdentityPoolClient,
  JWT,
  PluggableAuthClient,
  UserRefreshClient,
} from 'google-auth-library';
import type { GoogleCredentials } from '../../../config/vendors/google-credentials.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { within } from '../../../lib/loop/abort.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import type { Transport } from '../../transport.ts';
import type { Lease } from '../renewed.ts';
import { saidWithout, tokenFetch } from '../token-request.ts';

/** Of a token whose end the library does not tell: as long as Google's shortest ones hold. */
const UNKNOWN_MS = 5 * 60_000;
/** For all requests of one token: some identities take three. */
const DEADLINE_MS = 20_000;

interface Context {
  /** Path of the credentials, for messages. */
  readonly file: string;
  readonly transport: Transport;
  readonly scope: string;
  /** Errors: the credentials do not work; they may work in a moment. */
  readonly failed: (what: string) => Error;
  readonly passing: (what: string) => Error;
}

/** @param credentials undefined: those of the machine itself, from Google's metadata server */
export async function libraryToken(
  credentials: Extract<GoogleCredentials, { readonly json: unknown }> | undefined,
  { file, transport, scope, failed, passing }: Context,
): Promise<Lease<{ readonly token: string; readonly account: string }>> {
  const source = credentials === undefined ? "Google's metadata server" : `those in ${file}`;
  const proofs: string[] = [];
  try {
    // A client for each token: it would hold its own for longer than this gateway wants it.
    const { token, until } = await inTime(
      credentials === undefined
        ? tokenOf(new Compute({ scopes: [scope] }))
        : tokenFor(credentials.json, scope, tokenFetch(transport, proofs)),
    );
    if (typeof token !== 'string' || token === '')
      throw new Error('there is no token in the answer');
    return { value: { token, account: accountOf(credentials) }, until };
  } catch (thrown) {
    const status = statusOf(thrown);
    if (status !== undefined && (status >= 500 || status === 429)) {
      throw passing(`${source} answered ${status}`);
    }
    const where = credentials === undefined ? `the file ${file} does not exist, and ` : '';
    const why = saidWithout(reasonOf(thrown), proofs);
    if (status === undefined) throw failed(`${where}${source} gave no token (${why})`);
    throw failed(`${where}${source} were refused (${status}, ${why})`);
  }
}

interface Fetched {
  readonly token: unknown;
  readonly until: number;
}

async function tokenOf(client: AuthClient): Promise<Fetched> {
  const { token } = await client.getAccessToken();
  return { token, until: client.credentials.expiry_date ?? Date.now() + UNKNOWN_MS };
}

async function tokenFor(json: JsonObject, scope: string, send: typeof fetch): Promise<Fetched> {
  const source = json.type === STAND_IN ? json.source_credentials : json;
  const client = clientOf(isObject(source) ? source : {}, scope);
  // What exchanges tokens for a client has a sender of its own.
  for (const one of [client, ...Object.values(client)]) {
    const { defaults } = (one as Partial<AuthClient> | undefined)?.transporter ?? {};
    if (defaults !== undefined) defaults.fetchImplementation = send;
  }
  if (json.type !== STAND_IN) return tokenOf(client);
  // The library's class for it writes a warning to the console.
  const { data } = await client.request<{ accessToken?: unknown; expireTime?: string }>({
    url: String(json.service_account_impersonation_url),
    method: 'POST',
    data: { delegates: json.delegates ?? [], scope: [scope], lifetime: '3600s' },
  });
  const until = Date.parse(data.expireTime ?? '');
  return { token: data.accessToken, until: until > 0 ? until : Date.now() + UNKNOWN_MS };
}

const STAND_IN = 'impersonated_service_account';

/** The library's own choice of a client writes warnings to the console. */
function clientOf(json: JsonObject, scope: string): AuthClient {
  const options = json as never;
  switch (json.type) {
    case 'service_account':
      return new JWT({
        email: String(json.client_email),
        key: String(json.private_key),
        scopes: [scope],
      });
    case 'authorized_user':
      return new UserRefreshClient({
        clientId: String(json.client_id),
        clientSecret: String(json.client_secret),
        refreshToken: String(json.refresh_token),
      });
    case 'external_account_authorized_user':
      return new ExternalAccountAuthorizedUserClient(options);
    default: {
      const source = isObject(json.credential_source) ? json.credential_source : {};
      const Client =
        source.environment_id !== undefined
          ? AwsClient
          : source.executable !== undefined
            ? PluggableAuthClient
            : IdentityPoolClient;
      const client = new Client(options);
      client.scopes = [scope];
      return client;
    }
  }
}

function accountOf(credentials: Parameters<typeof libraryToken>[0]): string {
  if (credentials === undefined) return "this machine's service account";
  return credentials.account ?? 'a federated identity';
}

const inTime = <T>(work: Promise<T>): Promise<T> =>
  within(DEADLINE_MS, work, () => {
    throw new Error('no answer in time');
  });

/** The library's errors hold the answer. */
const answerOf = (thrown: unknown): { readonly status?: unknown; readonly data?: Json } =>
  (thrown as { response?: { status?: unknown; data?: Json } } | undefined)?.response ?? {};

function statusOf(thrown: unknown): number | undefined {
  const { status } = answerOf(thrown);
  return typeof status === 'number' ? status : undefined;
}

/** What Google or the identity's provider says; never what was sent. */
function reasonOf(thrown: unknown): string {
  const { data } = answerOf(thrown);
  const { error, error_description: why } = isObject(data) ? data : {};
  const inner = isObject(error) ? error.message : error;
  const said = [inner, why].filter((one) => typeof one === 'string').join(': ');
  const own = messageOf(thrown);
  return said === '' ? own : said;
}
