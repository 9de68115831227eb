/** Gets access tokens from Google for the credentials in a file, without a metadata server. */

import {
  type GoogleCredentials,
  googleCredentials,
} from '../../../config/vendors/google-credentials.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';
import { TargetError } from '../../target-error.ts';
import type { Transport } from '../../transport.ts';
import type { Lease } from '../renewed.ts';
import { proofsIn, saidWithout, tokenRequest } from '../token-request.ts';

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
/** An assertion holds for an hour at most, and so does the token that it is exchanged for. */
const ASSERTION_S = 3600;

export interface GoogleToken {
  readonly token: string;
  /** Whose it is, for `doctor`. */
  readonly account: string;
}

export interface TokenOptions {
  readonly provider: string;
  readonly file: string;
  /** Where the file is not there, the machine's own account is asked for. */
  readonly metadata?: boolean | undefined;
  readonly transport: Transport;
  /** Milliseconds since 1970. */
  readonly now?: (() => number) | undefined;
}

/** A token. The file is read each time, so that a new key needs no restart. @throws TargetError */
export async function fetchGoogleToken(options: TokenOptions): Promise<Lease<GoogleToken>> {
  const { provider, file, metadata = false, transport, now = Date.now } = options;
  const failed = (what: string) =>
    new TargetError(
      'next-target',
      'upstream',
      `Provider ${provider} has no credentials: ${what}.`,
      { code: 'provider_key_refused', retryable: false },
    );
  const passing = (what: string) =>
    new TargetError('elsewhere', 'upstream', `Provider ${provider} got no access token: ${what}.`);
  const credentials = await readCredentials(file, metadata, failed);
  if (credentials === undefined || 'json' in credentials) {
    // Loaded with the first token.
    const { libraryToken } = await import('./library-token.ts');
    return libraryToken(credentials, { file, transport, scope: SCOPE, failed, passing });
  }
  const started = now();
  const body = await tokenBody(credentials, started, failed);
  let status: number;
  let text: string;
  try {
    const answer = await tokenRequest(transport, {
      url: credentials.tokenUrl,
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        'user-agent': 'hopgate',
      },
      body: body.toString(),
    });
    status = answer.status;
    text = new TextDecoder().decode(answer.bytes);
  } catch {
    // A passing fault, unlike a refusal.
    throw passing(`${new URL(credentials.tokenUrl).host} could not be reached in time`);
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
    throw passing(`Google answered ${status}`);
  }
  const said = [error, why].filter((one) => typeof one === 'string').join(': ');
  const words = saidWithout(said, proofsIn(body.toString()));
  throw failed(`Google refused those in ${file} (${status}${words === '' ? '' : `, ${words}`})`);
}

/** Undefined: there is no file, and the machine's own account may stand in. */
async function readCredentials(
  file: string,
  metadata: boolean,
  failed: (what: string) => Error,
): Promise<GoogleCredentials | undefined> {
  let text: string;
  try {
    text = await Bun.file(file).text();
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === 'ENOENT' && metadata) return undefined;
    throw failed(`the file ${file} ${code === 'ENOENT' ? 'does not exist' : 'cannot be read'}`);
  }
  const credentials = googleCredentials(text);
  if ('problem' in credentials) throw failed(`the file ${file} ${credentials.problem}`);
  return credentials;
}

async function tokenBody(
  credentials: Exclude<GoogleCredentials, { readonly json: unknown }>,
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
