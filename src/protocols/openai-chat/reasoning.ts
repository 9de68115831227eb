/** Reasoning as vendors write it on Chat messages and deltas, with the seals inside `reasoning_details`. */

import { CARRIER_PREFIX, carrySeal, openSeal } from '../../conversation/seal.ts';
import type { ReasoningBlock, Sealed } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json.ts';
import { put } from '../../lib/json-members.ts';
import { CHAT, list, object, text } from './wire.ts';

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
 * and in order (OpenRouter, MiniMax, Vercel's gateway); or, where the data is a carrier of this
 * gateway, the seal inside it. Undefined when nothing is signed or encrypted.
 */
export function detailsSeal(details: readonly Json[], provider?: string): Sealed | undefined {
  let kind: Sealed['kind'] | undefined;
  for (const detail of details) {
    if (!isObject(detail)) continue;
    const data = text(detail.data);
    if (data) {
      const carried = openSeal(data);
      if (carried !== undefined) return carried;
      kind = 'encrypted';
    } else if (text(detail.signature)) kind ??= 'signature';
  }
  if (kind === undefined) return undefined;
  return {
    protocol: CHAT,
    ...(provider ? { provider } : {}),
    kind,
    value: JSON.stringify(details),
  };
}

/**
 * A seal as `reasoning_details`: the vendor's own list where it is of this protocol, else one
 * encrypted detail that holds a carrier, for clients that give details back.
 */
export function sealDetails(sealed: Sealed): readonly Json[] {
  if (sealed.protocol === CHAT) return list(tryParse(sealed.value)) ?? [];
  return carriedDetails(sealed);
}

/**
 * A seal as one detail without words, whoever made it: for streams, where the words went out before
 * the seal came and would be read twice.
 */
export function carriedDetails(sealed: Sealed): readonly Json[] {
  return [{ type: 'reasoning.encrypted', data: carrySeal(sealed), format: 'hopgate', index: 0 }];
}

/** Does a message hold a carrier of this gateway, which no vendor can read? */
export function hasCarrier(message: JsonObject): boolean {
  return (list(message.reasoning_details) ?? []).some(
    (detail) => text(object(detail)?.data)?.startsWith(CARRIER_PREFIX) ?? false,
  );
}

/** The reasoning of a message: one block, or none where nothing was said or sealed. */
export function decodeReasoning(
  message: JsonObject,
  provider?: string,
): ReasoningBlock | undefined {
  const details = list(message.reasoning_details) ?? [];
  const said = text(message.reasoning_content) || text(message.reasoning) || detailsText(details);
  const sealed = detailsSeal(details, provider);
  if (said === '' && sealed === undefined) return undefined;
  return {
    type: 'reasoning',
    text: said,
    ...(onlySummaries(details) && detailsText(details) !== '' ? { summary: true } : {}),
    ...(sealed === undefined ? {} : { sealed }),
  };
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
