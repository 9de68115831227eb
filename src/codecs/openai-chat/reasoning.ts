/** Reads and writes reasoning on Chat messages and deltas, with the seals in `reasoning_details`. */

import {
  openEnvelope,
  openSeal,
  SEAL_ENVELOPE_PREFIX,
  type SealEnvelope,
  type Span,
  wrapSeal,
} from '../../conversation/seal.ts';
import type { ReasoningBlock, Sealed } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { put } from '../../lib/json/json-members.ts';
import { list, object, PROTOCOL, text } from './wire.ts';

export const REASONING_KEYS = ['reasoning_content', 'reasoning', 'reasoning_details'] as const;

/** The text of `reasoning_details`: OpenRouter's `text` and `summary`, joined in order. */
export function detailsText(details: readonly Json[]): string {
  let out = '';
  for (const detail of details) {
    if (isObject(detail)) out += text(detail.text) ?? text(detail.summary) ?? '';
  }
  return out;
}

/** Do the details hold only summaries, and not the reasoning itself? */
export function onlySummaries(details: readonly Json[]): boolean {
  return details.length > 0 && details.every((d) => object(d)?.type !== 'reasoning.text');
}

/**
 * The seal of a list of details. For a vendor it is the whole list as JSON text, because the vendor wants the
 * list back unchanged and in order (OpenRouter, MiniMax, Vercel's gateway). In an envelope that a client sends
 * back it is the seal inside. Undefined if nothing is signed or encrypted.
 */
export function detailsSeal(details: readonly Json[], provider?: string): Sealed | undefined {
  let kind: Sealed['kind'] | undefined;
  for (const detail of details) {
    if (!isObject(detail)) continue;
    const data = text(detail.data);
    if (data) {
      // An envelope from an upstream belongs to that upstream and stays closed.
      const carried = provider === undefined ? openSeal(data) : undefined;
      if (carried !== undefined) return carried;
      kind = 'encrypted';
    } else if (text(detail.signature)) kind ??= 'signature';
  }
  if (kind === undefined) return undefined;
  return {
    protocol: PROTOCOL,
    provider,
    kind,
    value: JSON.stringify(details),
  };
}

/** The vendor's own list of details in a seal of this protocol; else []. */
export const ownDetails = (sealed: Sealed): readonly Json[] =>
  sealed.protocol === PROTOCOL ? (list(tryParse(sealed.value)) ?? []) : [];

/**
 * A seal in an envelope, as one detail without text.
 * @param span the sealed part of the message's reasoning, which is one string in Chat
 * @param index counts the details of a message; clients join details with the same index
 */
export function sealDetail(sealed: Sealed, span: Span, index: number): JsonObject {
  return { type: 'reasoning.encrypted', data: wrapSeal(sealed, span), format: 'hopgate', index };
}

/**
 * An answer's reasoning for a client: the joined text, as in a stream, and the seals as details. The details
 * are the vendor's own list if all seals are of this protocol, else one envelope for each seal.
 */
export function encodeReasoningBlocks(blocks: readonly ReasoningBlock[]): {
  readonly visible: string;
  readonly details: readonly Json[];
} {
  const own = blocks.every(({ sealed }) => sealed === undefined || sealed.protocol === PROTOCOL);
  const details: Json[] = [];
  let visible = '';
  for (const { text, sealed } of blocks) {
    const from = visible.length;
    visible += text;
    if (sealed === undefined) continue;
    if (own) details.push(...ownDetails(sealed));
    else details.push(sealDetail(sealed, { from, to: visible.length }, details.length));
  }
  return { visible, details };
}

/** Does the message hold an envelope, which no vendor can read? */
export function hasEnvelope(message: JsonObject): boolean {
  return (list(message.reasoning_details) ?? []).some(
    (detail) => text(object(detail)?.data)?.startsWith(SEAL_ENVELOPE_PREFIX) ?? false,
  );
}

/** The reasoning of a message as one block; undefined without text and seal. */
export function decodeReasoning(
  message: JsonObject,
  provider?: string,
): ReasoningBlock | undefined {
  const details = list(message.reasoning_details) ?? [];
  const visible = reasoningText(message, details);
  const sealed = detailsSeal(details, provider);
  if (visible === '' && sealed === undefined) return undefined;
  return {
    type: 'reasoning',
    text: visible,
    summary: (onlySummaries(details) && detailsText(details) !== '') || undefined,
    sealed,
  };
}

const reasoningText = (message: JsonObject, details: readonly Json[]): string =>
  text(message.reasoning_content) ||
  text(message.reasoning) ||
  // Copilot
  text(message.reasoning_text) ||
  detailsText(details);

/**
 * The reasoning of a message that a client sends back: one block for each envelope, with the text that it was
 * made for. If envelopes have no spans, or the client changed the text, no signature would match. Then the
 * text stands alone, and the reasoning memory restores the original.
 */
export function decodeReturnedReasoning(message: JsonObject): readonly ReasoningBlock[] {
  const details = list(message.reasoning_details) ?? [];
  const envelopes = details.flatMap(
    (detail) => openEnvelope(text(object(detail)?.data) ?? '') ?? [],
  );
  if (envelopes.length > 0) {
    const visible = reasoningText(message, details);
    const blocks = blocksBySpan(visible, envelopes);
    if (blocks !== undefined) return blocks;
    if (envelopes.length > 1) {
      return envelopes.every(({ sealed }) => isWhole(sealed))
        ? envelopes.map(({ sealed }, i) => ({
            type: 'reasoning',
            text: i === 0 ? visible : '',
            sealed,
          }))
        : [{ type: 'reasoning', text: visible }];
    }
  }
  const block = decodeReasoning(message);
  return block === undefined ? [] : [block];
}

/** Does the seal hold the whole thought? Encrypted and redacted ones do; a signature needs its text. */
const isWhole = ({ protocol, kind }: Sealed) => protocol !== PROTOCOL && kind !== 'signature';

/** A block for each envelope and for the text between them; undefined if a span is missing or does not fit. */
function blocksBySpan(
  visible: string,
  envelopes: readonly SealEnvelope[],
): ReasoningBlock[] | undefined {
  const blocks: ReasoningBlock[] = [];
  let at = 0;
  const unsealed = (to: number) => {
    const between = visible.slice(at, to);
    if (between.trim() !== '') blocks.push({ type: 'reasoning', text: between });
  };
  for (const { sealed, span } of envelopes) {
    if (span === undefined || span.from < at || span.to < span.from) return undefined;
    if (span.to > visible.length) return undefined;
    unsealed(span.from);
    blocks.push({ type: 'reasoning', text: visible.slice(span.from, span.to), sealed });
    at = span.to;
  }
  unsealed(visible.length);
  return blocks;
}

/** Collects the details of a stream and joins the fragments of each detail. */
export class DetailsCollector {
  readonly #details: Record<string, Json | undefined>[] = [];

  push(fragments: readonly Json[]): void {
    for (const fragment of fragments) {
      if (!isObject(fragment)) continue;
      const last = this.#details.at(-1);
      if (last !== undefined && last.type === fragment.type && last.index === fragment.index) {
        for (const [key, value] of Object.entries(fragment)) {
          const joins = key === 'text' || key === 'summary' || key === 'data';
          if (joins && typeof value === 'string') last[key] = (text(last[key]) ?? '') + value;
          else if (value !== null) put(last, key, value);
        }
      } else this.#details.push({ ...fragment });
    }
  }

  /** The seal of the collected list; undefined if nothing in it is signed or encrypted. */
  seal(provider: string): Sealed | undefined {
    return this.#details.length === 0 ? undefined : detailsSeal(this.#details, provider);
  }
}

/** Does the list hold anything signed or encrypted? */
export function hasSeal(details: readonly Json[]): boolean {
  return details.some((detail) => {
    const d = object(detail);
    return d !== undefined && Boolean(text(d.data) || text(d.signature));
  });
}

/** Who signs at Gemini's endpoints in OpenAI's form; the second is Vertex AI (https://github.com/earendil-works/pi/issues/6733). */
const SIGNERS = ['google', 'vertex'] as const;

/**
 * The seal that Gemini's thought signature of a call, of a message or of a delta makes. Behind another signer than the first,
 * the signature, which is base64, follows its name.
 */
export function signatureSeal({ extra_content: extra }: JsonObject, provider?: string) {
  const signed = object(extra);
  for (const signer of SIGNERS) {
    const signature = text(object(signed?.[signer])?.thought_signature);
    if (!signature) continue;
    const value = signer === 'google' ? signature : `${signer}:${signature}`;
    return { sealed: { protocol: PROTOCOL, provider, kind: 'signature', value } } as const;
  }
  return {};
}

/** The same, as `extra_content` has it. */
export function signatureExtra({ value }: Sealed): JsonObject {
  const at = value.indexOf(':');
  return {
    [at < 0 ? 'google' : value.slice(0, at)]: { thought_signature: value.slice(at + 1) },
  };
}
