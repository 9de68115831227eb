/** Gets access tokens from Google for the credentials in a file, without a metadata server. */

import {
  type GoogleCredentials,
  googleCredentials,
} from '../../../config/vendors/google-credentials.ts';
import { FlatHeaders } from '../../../lib/http/headers.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';
import { Abort } from '../../../lib/loop/abort.ts';
import { TargetError } from '../../target-error.ts';
import type { Transport } from '../../transport.ts';
import type { Lease } from '../renewed.ts';

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
/** An assertion holds for an hour at most, and so does the token that it is exchanged for. */
const ASSERTION_S = 3600;
const DEADLINE_MS = 10_000;
const MOST_BYTES = 64 * 1024;

export interface GoogleToken {
  readonly token: string;
  /** Whose it is, for `doctor`. */
  readonly account: string;
}

export interface TokenOptions {
  readonly provider: string;
  readonly file: string;
  readonly transport: Transport;
  /** Milliseconds since 1970. */
  readonly now?: (() => number) | undefined;
}

/** A token. The file is read each time, so that a new key needs no restart. @throws TargetError */
export async function fetchGoogleToken(options: TokenOptions): Promise<Lease<GoogleToken>> {
  const { provider, file, transport, now = Date.now } = options;
  const failed = (what: string) =>
    new TargetError(
      'next-target',
      'upstream',
      `Provider ${provider} has no credentials: ${what}.`,
      {
        code: 'provider_key_refused',
        retryable: false,
      },
    );
  const credentials = await readCredentials(file, failed);
  const started = now();
  const body = await tokenRequest(credentials, started, failed);
  const abort = new Abort();
  const timer = setTimeout(() => abort.abort(new Error('no answer in time')), DEADLINE_MS);
  let status: number;
  let text: string;
  try {
    const answer = await transport({
      url: credentials.tokenUrl,
      method: 'POST',
      headers: FlatHeaders.of({
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        'accept-encoding': 'identity',
        'user-agent': 'hopgate',
      }),
      body: Buffer.from(body.toString()),
      abort,
    });
    status = answer.status;
    text = new TextDecoder().decode(await answer.body.readAll(MOST_BYTES));
  } catch {
    // A passing fault, unlike a refusal.
    const { host } = new URL(credentials.tokenUrl);
    const words = `Provider ${provider} got no access token: ${host} could not be reached in time.`;
    throw new TargetError('elsewhere', 'upstream', words);
  } finally {
    clearTimeout(timer);
  }
  const value = tryParse(text);
  const {
    access_token: token,
    expires_in: seconds,
    error,
    error_description: why,
  } = isObject(value) ? value : {};
  if (status === 200 && typeof token === 'string' && token !== '') {
    const lifetime = typeof seconds === 'number' && seconds > 0 ? seconds : ASSERTION_S;
    const account = credentials.type === 'service_account' ? credentials.email : 'a user';
    return { value: { token, account }, until: started + lifetime * 1000 };
  }
  if (status >= 500 || status === 429) {
    const words = `Provider ${provider} got no access token: Google answered ${status}.`;
    throw new TargetError('elsewhere', 'upstream', words);
  }
  const words = [error, why]
    .filter((one) => typeof one === 'string')
    .join(': ')
    .slice(0, 300);
  throw failed(`Google refused those in ${file} (${status}${words === '' ? '' : `, ${words}`})`);
}

async function readCredentials(
  file: string,
  failed: (what: string) => Error,
): Promise<GoogleCredentials> {
  let text: string;
  try {
    text = await Bun.file(file).text();
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    throw failed(`the file ${file} ${code === 'ENOENT' ? 'does not exist' : 'cannot be read'}`);
  }
  const credentials = googleCredentials(text);
  if ('problem' in credentials) throw failed(`the file ${file} ${credentials.problem}`);
  return credentials;
}

async function tokenRequest(
  credentials: GoogleCredentials,
  now: number,
  failed: (what: string) => Error,
): Promise<URLSearchParams> {
  if (credentials.type === 'authorized_user') {
    return new URLSearchParams({
      grant_type: 'refresh_token',
      client_id: credentials.clientId,
      client_secret: credentials.clientSecret,
      refresh_token: credentials.refreshToken,
    });
  }
  const { email, privateKey, keyId, tokenUrl } = credentials;
  // Loaded with the first token.
  const { importPKCS8, SignJWT } = await import('jose');
  let key: Awaited<ReturnType<typeof importPKCS8>>;
  try {
    key = await importPKCS8(privateKey, 'RS256');
  } catch {
    throw failed('the "private_key" in the credentials file is no RSA key in PEM (PKCS #8)');
  }
  const seconds = Math.floor(now / 1000);
  const assertion = await new SignJWT({ scope: SCOPE })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(keyId !== undefined && { kid: keyId }) })
    .setIssuer(email)
    .setAudience(tokenUrl)
    .setIssuedAt(seconds)
    .setExpirationTime(seconds + ASSERTION_S)
    .sign(key);
  return new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    assertion,
  });
}
