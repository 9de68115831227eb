/** Wraps a vendor's seal in an envelope, so that a client of another protocol can store it and send it back. */

import { containsAny, needles } from '../lib/bytes/bytes.ts';
import type { ProtocolName, Sealed } from './types.ts';

/** The prefix of every envelope. Requests are scanned for it. */
export const SEAL_ENVELOPE_PREFIX = 'hopgate1.';

/** How an envelope begins where a client's protocol wants base64 (Gemini). */
export const SEAL_ENVELOPE_BASE64 = Buffer.from(SEAL_ENVELOPE_PREFIX).toString('base64');

const MARKS = needles(SEAL_ENVELOPE_PREFIX, SEAL_ENVELOPE_BASE64);

/** May a body hold an envelope? Only an encoder takes it out. */
export const mayHoldEnvelope = (body: Buffer): boolean => containsAny(body, MARKS);

const CODES: Readonly<Record<ProtocolName, string>> = {
  'anthropic-messages': 'm',
  'openai-chat': 'c',
  'openai-responses': 'r',
  'google-gemini': 'g',
};
const KINDS = { signature: 's', encrypted: 'e', redacted: 'r' } as const;

/** The part of a text that a seal was made for: offsets in UTF-16 units, as for `slice`. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface SealEnvelope {
  readonly sealed: Sealed;
  readonly span?: Span;
}

/**
 * A seal as text for a slot of another protocol (Messages `signature`, Responses
 * `encrypted_content`): `hopgate1.<protocol><kind>.<provider>.<payload, base64url>`, with `.<from>-<to>`
 * at the end where one text belongs to several seals (Chat). Clients send it back unchanged;
 * {@link openEnvelope} reads it.
 */
export function wrapSeal(sealed: Sealed, span?: Span): string {
  const provider = encodeURIComponent(sealed.provider ?? '').replaceAll('.', '%2E');
  const payload = Buffer.from(sealed.value).toString('base64url');
  const place = span === undefined ? '' : `.${span.from}-${span.to}`;
  return `${SEAL_ENVELOPE_PREFIX}${CODES[sealed.protocol]}${KINDS[sealed.kind]}.${provider}.${payload}${place}`;
}

/**
 * An envelope without payload, for reasoning without a seal (Chat `reasoning_content`) that goes to a client
 * whose protocol requires a signature. It only tells who made the text.
 */
export function wrapUnsealed(protocol: ProtocolName, provider?: string): string {
  return wrapSeal({ protocol, provider, kind: 'signature', value: '' });
}

/** The seal inside an envelope; undefined if the text is not an envelope or is damaged. */
export const openSeal = (text: string): Sealed | undefined => openEnvelope(text)?.sealed;

/** An envelope's seal and the span it was made for; undefined if the text is not an envelope or is damaged. */
export function openEnvelope(text: string): SealEnvelope | undefined {
  if (!text.startsWith(SEAL_ENVELOPE_PREFIX)) return undefined;
  const [code, provider, payload, place] = text.slice(SEAL_ENVELOPE_PREFIX.length).split('.');
  const protocol = (Object.keys(CODES) as ProtocolName[]).find((p) => CODES[p] === code?.[0]);
  const kind = (Object.keys(KINDS) as Sealed['kind'][]).find((k) => KINDS[k] === code?.[1]);
  if (protocol === undefined || kind === undefined || payload === undefined) return undefined;
  const sealed: Sealed = {
    protocol,
    kind,
    value: Buffer.from(payload, 'base64url').toString(),
    ...(provider ? { provider: decodeURIComponent(provider) } : {}),
  };
  const [, from, to] = /^(\d+)-(\d+)$/.exec(place ?? '') ?? [];
  return from === undefined ? { sealed } : { sealed, span: { from: Number(from), to: Number(to) } };
}

// No protocol's code begins with this letter, so {@link openEnvelope} takes it for none of its own.
const SUMMARY_PREFIX = `${SEAL_ENVELOPE_PREFIX}summary.`;

/** A summary of a compacted conversation as text for `encrypted_content`, which clients send back unchanged. */
export const wrapSummary = (summary: string): string =>
  SUMMARY_PREFIX + Buffer.from(summary).toString('base64url');

/** The summary inside such a text; undefined if it is another vendor's. */
export const openSummary = (text: string): string | undefined =>
  text.startsWith(SUMMARY_PREFIX)
    ? Buffer.from(text.slice(SUMMARY_PREFIX.length), 'base64url').toString()
    : undefined;
