/** Reasoning as vendors write it on Chat messages and deltas, with the seals inside `reasoning_details`. */

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

/** Message keys that a reasoning block stands for. */
export const REASONING_KEYS = ['reasoning_content', 'reasoning', 'reasoning_details'] as const;

/** What `reasoning_details` say in words: OpenRouter's `text` and `summary`, joined as they come. */
export function detailsText(details: readonly Json[]): string {
  let out = '';
  for (const detail of details) {
    if (isObject(detail)) out += text(detail.text) ?? text(detail.summary) ?? '';
  }
  return out;
}

/** Only summaries: the text is not the reasoning itself. */
export function onlySummaries(details: readonly Json[]): boolean {
  return details.length > 0 && details.every((d) => object(d)?.type !== 'reasoning.text');
}

/**
 * The seal that details carry: the whole list as JSON text, since a vendor wants it back unmodified
 * and in order (OpenRouter, MiniMax, Vercel's gateway); or, where a client gives back a carrier of
 * this gateway, the seal inside it. Undefined when nothing is signed or encrypted.
 */
export function detailsSeal(details: readonly Json[], provider?: string): Sealed | undefined {
  let kind: Sealed['kind'] | undefined;
  for (const detail of details) {
    if (!isObject(detail)) continue;
    const data = text(detail.data);
    if (data) {
      // Carriers that an upstream gives out are its own: it is the one that opens them.
      const carried = provider === undefined ? openSeal(data) : undefined;
      if (carried !== undefined) return carried;
      kind = 'encrypted';
    } else if (text(detail.signature)) kind ??= 'signature';
  }
  if (kind === undefined) return undefined;
  return {
    protocol: PROTOCOL,
    ...(provider ? { provider } : {}),
    kind,
    value: JSON.stringify(details),
  };
}

/** The vendor's own list of details, where the seal is of this protocol. */
export const ownDetails = (sealed: Sealed): readonly Json[] =>
  sealed.protocol === PROTOCOL ? (list(tryParse(sealed.value)) ?? []) : [];

/**
 * A seal as one detail without words, whoever made it. `span`: its part of the message's reasoning,
 * which is one string here. `index` counts a message's details: clients join what has the same.
 */
export function sealDetail(sealed: Sealed, span: Span, index: number): JsonObject {
  return { type: 'reasoning.encrypted', data: wrapSeal(sealed, span), format: 'hopgate', index };
}

/**
 * An answer's reasoning for a client: the words joined as a stream joins them, and the seals as
 * details. These are the vendor's own list where all are of this protocol, else a carrier for each.
 */
export function encodeReasoningBlocks(blocks: readonly ReasoningBlock[]): {
  readonly said: string;
  readonly details: readonly Json[];
} {
  const own = blocks.every(({ sealed }) => sealed === undefined || sealed.protocol === PROTOCOL);
  const details: Json[] = [];
  let said = '';
  for (const { text, sealed } of blocks) {
    const from = said.length;
    said += text;
    if (sealed === undefined) continue;
    if (own) details.push(...ownDetails(sealed));
    else details.push(sealDetail(sealed, { from, to: said.length }, details.length));
  }
  return { said, details };
}

/** Does a message hold a carrier of this gateway, which no vendor can read? */
export function hasEnvelope(message: JsonObject): boolean {
  return (list(message.reasoning_details) ?? []).some(
    (detail) => text(object(detail)?.data)?.startsWith(SEAL_ENVELOPE_PREFIX) ?? false,
  );
}

/** The reasoning of a message: one block, or none where nothing was said or sealed. */
export function decodeReasoning(
  message: JsonObject,
  provider?: string,
): ReasoningBlock | undefined {
  const details = list(message.reasoning_details) ?? [];
  const said = reasoningText(message, details);
  const sealed = detailsSeal(details, provider);
  if (said === '' && sealed === undefined) return undefined;
  return {
    type: 'reasoning',
    text: said,
    ...(onlySummaries(details) && detailsText(details) !== '' ? { summary: true } : {}),
    ...(sealed === undefined ? {} : { sealed }),
  };
}

const reasoningText = (message: JsonObject, details: readonly Json[]): string =>
  text(message.reasoning_content) || text(message.reasoning) || detailsText(details);

/**
 * The reasoning of a message that a client gives back: a block for each carrier of this gateway, with
 * the words that it was made for. Where several do not tell their words, or the client changed them,
 * no signature would fit: then the words stand alone, and what remembers the answer puts it back whole.
 */
export function decodeReturnedReasoning(message: JsonObject): readonly ReasoningBlock[] {
  const details = list(message.reasoning_details) ?? [];
  const carriers = details.flatMap(
    (detail) => openEnvelope(text(object(detail)?.data) ?? '') ?? [],
  );
  if (carriers.length > 0) {
    const said = reasoningText(message, details);
    const blocks = blocksBySpan(said, carriers);
    if (blocks !== undefined) return blocks;
    if (carriers.length > 1) {
      return carriers.every(({ sealed }) => isWhole(sealed))
        ? carriers.map(({ sealed }, i) => ({
            type: 'reasoning',
            text: i === 0 ? said : '',
            sealed,
          }))
        : [{ type: 'reasoning', text: said }];
    }
  }
  const block = decodeReasoning(message);
  return block === undefined ? [] : [block];
}

/** Encrypted and redacted thoughts hold all that they stand for; a signature is one of the words beside it. */
const isWhole = ({ protocol, kind }: Sealed) => protocol !== PROTOCOL && kind !== 'signature';

/** A block for each carrier and for words between them; undefined where places are missing or do not fit. */
function blocksBySpan(
  said: string,
  carriers: readonly SealEnvelope[],
): ReasoningBlock[] | undefined {
  const blocks: ReasoningBlock[] = [];
  let at = 0;
  const unsealed = (to: number) => {
    const words = said.slice(at, to);
    if (words.trim() !== '') blocks.push({ type: 'reasoning', text: words });
  };
  for (const { sealed, span } of carriers) {
    if (span === undefined || span.from < at || span.to < span.from) return undefined;
    if (span.to > said.length) return undefined;
    unsealed(span.from);
    blocks.push({ type: 'reasoning', text: said.slice(span.from, span.to), sealed });
    at = span.to;
  }
  unsealed(said.length);
  return blocks;
}

/** Details of a stream, with the fragments of one detail put together again. */
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

  /** The collected list's seal, if anything in it is signed or encrypted. */
  seal(provider: string): Sealed | undefined {
    return this.#details.length === 0 ? undefined : detailsSeal(this.#details, provider);
  }
}

/** Does a list hold anything signed or encrypted? */
export function hasSeal(details: readonly Json[]): boolean {
  return details.some((detail) => {
    const d = object(detail);
    return d !== undefined && Boolean(text(d.data) || text(d.signature));
  });
}
