/** Signs a request with AWS Signature Version 4. */

import { AwsV4Signer } from 'aws4fetch';
import { FlatHeaders, type ReadonlyHeaders } from '../../../lib/http/headers.ts';
import type { AwsIdentity } from './credentials.ts';

export interface Signing {
  readonly identity: AwsIdentity;
  readonly region: string;
  readonly service: string;
  readonly date: Date;
}

/** Other fields are not part of the signature: a proxy on the way may change them. */
const isSigned = (name: string) => name === 'content-type' || name.startsWith('x-amz');

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
  const all = FlatHeaders.from(headers).where(() => true);
  const { accessKeyId, secretAccessKey, sessionToken } = identity;
  const signer = new AwsV4Signer({
    method,
    url,
    headers: all.where(isSigned).record(),
    body: body as Uint8Array<ArrayBuffer> | undefined,
    accessKeyId,
    secretAccessKey,
    ...(sessionToken !== undefined && { sessionToken }),
    region,
    service,
    datetime: date.toISOString().replace(/[:-]|\.\d{3}/g, ''),
    allHeaders: true,
  });
  const { headers: own } = await signer.sign();
  for (const [name, value] of own) all.set(name, value);
  return all;
}
