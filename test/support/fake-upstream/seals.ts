/** Signatures and sealed reasoning that the fake vendor can verify, as the real ones do. */

import { createHmac } from 'node:crypto';

const mac = (text: string) => createHmac('sha256', 'fake-vendor').update(text).digest();

/** A thinking block's signature: a protobuf-like base64 text bound to the thinking it seals. */
export function signatureFor(thinking: string): string {
  // 0x12 = field 2, length-delimited: the vendor's own signatures begin with it ("E…" in base64).
  return Buffer.concat([Buffer.from([0x12, 0x2c, 0x0a, 0x20]), mac(thinking)]).toString('base64');
}

/** Whether the fake vendor signed this text. With display omitted the text comes back empty. */
export function signatureHolds(thinking: string, signature: string): boolean {
  if (signature === signatureFor(thinking)) return true;
  return thinking === '' && /^EiwKI[A-Za-z0-9+/]+=*$/.test(signature);
}

/** Responses `encrypted_content` (or a redacted block's data): opaque, checkable, text inside. */
export function encryptedFor(text: string): string {
  const body = Buffer.from(text);
  return `gAAAAA${Buffer.concat([mac(text).subarray(0, 16), body]).toString('base64url')}`;
}

/** Whether the fake vendor made an encrypted payload. */
export function encryptedHolds(payload: string): boolean {
  if (!payload.startsWith('gAAAAA')) return false;
  const bytes = Buffer.from(payload.slice(6), 'base64url');
  return mac(bytes.subarray(16).toString()).subarray(0, 16).equals(bytes.subarray(0, 16));
}
