/** Checks AWS Signature Version 4 as its documentation describes it, without the library that signs. */

import { createHash, createHmac } from 'node:crypto';

export interface AwsSecret {
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  /** Milliseconds since 1970. */
  readonly expires?: number;
}

/** AWS' own name of an error, and its message. */
export interface AwsRefusal {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

export interface SignedRequest {
  readonly method: string;
  /** As on the wire. */
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}

const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Uint8Array, data: string) =>
  createHmac('sha256', key).update(data).digest();

const escaped = (text: string) =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;

/** Undefined: the signature holds. */
export function awsRefusal(
  request: SignedRequest,
  keys: Readonly<Record<string, AwsSecret>>,
  region: string,
  service: string,
  now = Date.now(),
): AwsRefusal | undefined {
  const { method, url, headers, body } = request;
  const refused = (type: string, message: string, status = 403) => ({ status, type, message });
  const parts = AUTHORIZATION.exec(headers.authorization ?? '');
  if (parts === null) {
    return refused('MissingAuthenticationTokenException', 'Missing Authentication Token');
  }
  const [, id, day, signedRegion, signedService, names, signature] = parts as unknown as string[];
  const secret = keys[id!];
  if (secret === undefined || secret.sessionToken !== headers['x-amz-security-token']) {
    const message = 'The security token included in the request is invalid.';
    return refused('UnrecognizedClientException', message);
  }
  if (secret.expires !== undefined && secret.expires <= now) {
    const message = 'The security token included in the request is expired';
    return refused('ExpiredTokenException', message);
  }
  if (signedRegion !== region || signedService !== service) {
    const message = `Credential should be scoped to a valid region and service: '${region}', '${service}'. `;
    return refused('InvalidSignatureException', message);
  }
  const stamp = headers['x-amz-date'] ?? '';
  const time = Date.parse(
    stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
  );
  if (Number.isNaN(time) || Math.abs(now - time) > 5 * 60_000) {
    const message = `Signature expired: ${stamp} is now earlier than ${new Date(now - 300_000).toISOString()}`;
    return refused('InvalidSignatureException', message);
  }
  const signedNames = names!.split(';');
  for (const name of ['host', 'x-amz-date', 'x-amz-security-token', 'content-type']) {
    if (headers[name] !== undefined && !signedNames.includes(name)) {
      return refused('InvalidSignatureException', `'${name}' must be a 'SignedHeader'.`);
    }
  }
  const { pathname, searchParams } = new URL(url, 'http://any');
  const path = pathname.split('/').map(escaped).join('/');
  const query = [...searchParams]
    .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .sort()
    .join('&');
  const fields = signedNames.map(
    (name) => `${name}:${(headers[name] ?? '').trim().replace(/\s+/g, ' ')}\n`,
  );
  const canonical = [method, path, query, fields.join(''), names, sha256(body)].join('\n');
  const scope = `${day}/${signedRegion}/${signedService}/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', stamp, scope, sha256(canonical)].join('\n');
  const key = [day!, signedRegion, signedService, 'aws4_request'].reduce<string | Uint8Array>(
    (last, part) => hmac(last, part),
    `AWS4${secret.secretAccessKey}`,
  );
  if (hmac(key, toSign).toString('hex') === signature) return undefined;
  const message = `The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.\n\nThe Canonical String for this request should have been\n'${canonical}'\n\nThe String-to-Sign should have been\n'${toSign}'\n`;
  return refused('InvalidSignatureException', message);
}
