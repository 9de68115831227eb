/** Signs a request with AWS Signature Version 4. */

import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import { FlatHeaders, type ReadonlyHeaders } from '../../../lib/http/headers.ts';
import type { AwsIdentity } from './credentials.ts';

export interface Signing {
  readonly identity: AwsIdentity;
  readonly region: string;
  readonly service: string;
  readonly date: Date;
}

/** The digest that the library asks for, by the runtime's own. */
class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash =
      secret === undefined
        ? createHash('sha256')
        : createHmac('sha256', typeof secret === 'string' ? secret : bytesOf(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(typeof data === 'string' ? data : bytesOf(data));
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }

  reset(): void {
    throw new Error('a digest is used once');
  }
}

const bytesOf = (data: ArrayBuffer | ArrayBufferView): Uint8Array =>
  ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);

/** Fields that a proxy on the way may change are not part of the signature. */
const SIGNED: ReadonlySet<string> = new Set(['content-type']);
const isSigned = (name: string) => SIGNED.has(name) || name.startsWith('x-amz');

/**
 * The headers with those of the signature.
 * @param url whose path is escaped as it goes out
 */
export async function signed(
  method: string,
  url: string,
  headers: ReadonlyHeaders,
  body: Uint8Array | undefined,
  { identity, region, service, date }: Signing,
): Promise<FlatHeaders> {
  const { protocol, hostname, host, port, pathname, searchParams } = new URL(url);
  const query: Record<string, string | string[]> = {};
  for (const name of searchParams.keys()) {
    const values = searchParams.getAll(name);
    query[name] = values.length === 1 ? values[0]! : values;
  }
  const all = FlatHeaders.from(headers).where(() => true);
  const signer = new SignatureV4({
    credentials: identity,
    region,
    service,
    sha256: Sha256,
    // Of the body; its digest is signed in any case.
    applyChecksum: false,
  });
  const request = await signer.sign(
    {
      method,
      protocol,
      hostname,
      ...(port !== '' && { port: Number(port) }),
      path: pathname,
      query,
      headers: { ...all.where(isSigned).record(), host },
      body,
    },
    { signingDate: date },
  );
  for (const [name, value] of Object.entries(request.headers)) {
    if (name !== 'host') all.set(name, value);
  }
  return all;
}
