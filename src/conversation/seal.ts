/** Carries a vendor's seal through a client of another protocol, marked so that it finds its way home. */

import type { ProtocolName, Sealed } from './types.ts';

/** What a minted signature or encrypted payload begins with. Requests are scanned for it. */
export const SEAL_ENVELOPE_PREFIX = 'hopgate1.';

const CODES: Readonly<Record<ProtocolName, string>> = {
  'anthropic-messages': 'm',
  'openai-chat': 'c',
  'openai-responses': 'r',
};
const KINDS = { signature: 's', encrypted: 'e', redacted: 'r' } as const;

/** Which part of a text a seal was made for: places between UTF-16 units, as `slice` takes them. */
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
 * `encrypted_content`): `hopgate1.<protocol><kind>.<provider>.<payload, base64url>`, and
 * `.<from>-<to>` behind it where one text stands for several seals (Chat). Clients give it back
 * verbatim; {@link openEnvelope} reads it.
 */
export function wrapSeal(sealed: Sealed, span?: Span): string {
  const provider = encodeURIComponent(sealed.provider ?? '').replaceAll('.', '%2E');
  const payload = Buffer.from(sealed.value).toString('base64url');
  const place = span === undefined ? '' : `.${span.from}-${span.to}`;
  return `${SEAL_ENVELOPE_PREFIX}${CODES[sealed.protocol]}${KINDS[sealed.kind]}.${provider}.${payload}${place}`;
}

/**
 * For reasoning that came unsealed (Chat `reasoning_content`) but goes to a client whose protocol
 * wants a signature: a carrier without payload that only says where the text was made.
 */
export function wrapUnsealed(protocol: ProtocolName, provider?: string): string {
  return wrapSeal({ protocol, provider, kind: 'signature', value: '' });
}

/** The seal inside a carrier; undefined when the text is not one of ours (or is damaged). */
export const openSeal = (text: string): Sealed | undefined => openEnvelope(text)?.sealed;

/** A carrier's seal and what it was made for; undefined when the text is not one of ours (or is damaged). */
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
