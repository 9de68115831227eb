/** The signature of a file of models: Ed25519 over all lines but the last one, which holds it. */

import { createPublicKey, type KeyObject, verify } from 'node:crypto';

/** The public key of the releases, raw, in base64. Its private key is kept where releases are made (CONTRIBUTING.md). */
const MODELS_KEY = 'ofPMV4rCeazYLdxKXpMT2GrE6Hthi/VhbdOVJRmMHJI=';

/** The DER prefix of a 32-byte Ed25519 public key (RFC 8410). */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

export const rawPublicKey = (key: KeyObject): string =>
  key.export({ type: 'spki', format: 'der' }).subarray(SPKI.length).toString('base64');

const LAST_LINE = /\n\{"signature":"([A-Za-z0-9+/]{86}==)"\}\n?$/;

let trusted = MODELS_KEY;

/** For tests, which sign with a key of their own. */
export function trustModelsKey(key = MODELS_KEY): void {
  trusted = key;
}

/** The text without its signature; undefined: it has none, or another key's. */
export function verifiedText(signed: string): string | undefined {
  // The signature is within the last 200 characters, so only they are searched.
  const from = Math.max(0, signed.length - 200);
  const found = LAST_LINE.exec(signed.slice(from));
  if (found === null) return undefined;
  const text = signed.slice(0, from + found.index + 1);
  const publicKey = createPublicKey({
    key: Buffer.concat([SPKI, Buffer.from(trusted, 'base64')]),
    format: 'der',
    type: 'spki',
  });
  return verify(null, Buffer.from(text), publicKey, Buffer.from(found[1]!, 'base64'))
    ? text
    : undefined;
}
