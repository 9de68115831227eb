/** Prompt caches of vendors by their documented rules: what a request reads from, and leaves in, the cache. */

import type { JsonObject } from '../../../src/lib/json/json.ts';

/** Tokens of one prompt, each counted once. */
export interface Counted {
  readonly read: number;
  readonly written: number;
  readonly writtenForAnHour: number;
  readonly fresh: number;
}

/** A piece of a prompt: a tool, a block of the instructions or of a message. */
export interface Piece {
  readonly text: string;
  readonly tokens: number;
  readonly mark?: JsonObject | undefined;
  /** A message of the user or of a tool ends here. */
  readonly turn?: boolean;
}

export interface Prompt {
  readonly pieces: readonly Piece[];
  readonly key?: string | undefined;
}

export interface Prices {
  readonly read: number;
  readonly write: number;
  readonly writeForAnHour: number;
}

/** Multiples of the price of input. */
export const CLAUDE_PRICES: Prices = { read: 0.1, write: 1.25, writeForAnHour: 2 };
/** From GPT-5.6 on. */
export const KEYED_PRICES: Prices = { read: 0.1, write: 1.25, writeForAnHour: 1.25 };
export const IMPLICIT_PRICES: Prices = { read: 0.1, write: 1, writeForAnHour: 1 };

export const costOf = (counted: Counted, prices: Prices): number =>
  counted.read * prices.read +
  counted.written * prices.write +
  counted.writtenForAnHour * prices.writeForAnHour +
  counted.fresh;

export interface VendorCache {
  readonly prices: Prices;
  /** @param at seconds @throws Error in the vendor's words for what it refuses */
  ask(prompt: Prompt, at: number): Counted;
}

const tokensOf = (text: string) => Math.ceil(Buffer.byteLength(text) / 4);

export function pieceOf(value: unknown, more: Omit<Piece, 'text' | 'tokens'> = {}): Piece {
  const text = JSON.stringify(value);
  return { text, tokens: tokensOf(text), ...more };
}

/** For each place behind a piece: the sign of all up to there, and its tokens. */
function prefixes(pieces: readonly Piece[]) {
  let sign = '';
  let tokens = 0;
  return pieces.map((piece) => {
    sign = Bun.hash.wyhash(`${sign}\n${piece.text}`).toString(36);
    tokens += piece.tokens;
    return { sign, tokens };
  });
}

interface Entry {
  until: number;
  readonly seconds: number;
}

const MINUTES = 60;
const LOOKBACK = 20;

/**
 * Claude (https://platform.claude.com/docs/en/build-with-claude/prompt-caching): at most four marks; at each the prefix is
 * written; from each, at most 20 blocks back are looked at; a prefix shorter than the model's least length is not kept.
 */
export function claudeCache(least: number): VendorCache {
  const entries = new Map<string, Entry>();
  return {
    prices: CLAUDE_PRICES,
    ask({ pieces }, at) {
      const places = prefixes(pieces);
      const marks = pieces.flatMap(({ mark }, i) => (mark === undefined ? [] : [i]));
      if (marks.length > 4) {
        throw new Error(
          `A maximum of 4 blocks with cache_control may be provided. Found ${marks.length}.`,
        );
      }
      let hit = -1;
      for (const mark of marks) {
        for (let place = mark; place >= 0 && place > mark - LOOKBACK; place--) {
          const entry = entries.get(places[place]!.sign);
          if (entry === undefined || entry.until < at) continue;
          entry.until = at + entry.seconds;
          hit = Math.max(hit, place);
          break;
        }
      }
      const kept = marks.filter((mark) => places[mark]!.tokens >= least);
      const read = hit < 0 ? 0 : places[hit]!.tokens;
      let written = 0;
      let writtenForAnHour = 0;
      let from = read;
      for (const mark of kept) {
        const hour = pieces[mark]!.mark!.ttl === '1h';
        const seconds = (hour ? 60 : 5) * MINUTES;
        entries.set(places[mark]!.sign, { until: at + seconds, seconds });
        const added = Math.max(0, places[mark]!.tokens - from);
        from += added;
        if (hour) writtenForAnHour += added;
        else written += added;
      }
      const all = places.at(-1)?.tokens ?? 0;
      return { read, written, writtenForAnHour, fresh: all - read - written - writtenForAnHour };
    },
  };
}

/**
 * OpenAI from GPT-5.6 on (https://developers.openai.com/api/docs/guides/prompt-caching): nothing is found again without a
 * key, and only at breakpoints: those of the request, and the ends of messages of the user and of tools, on the newest of
 * which stands the implicit one. At most three explicit ones are written beside it.
 */
export function keyedCache(least = 1024): VendorCache {
  const entries = new Map<string, Entry>();
  return {
    prices: KEYED_PRICES,
    ask({ pieces, key }, at) {
      const places = prefixes(pieces);
      const signAt = (place: number) => `${key} ${places[place]!.sign}`;
      const implicit = pieces.findLastIndex(({ turn }) => turn === true);
      let hit = -1;
      if (key !== undefined) {
        for (let place = pieces.length - 1; place >= 0 && hit < 0; place--) {
          if (pieces[place]!.mark === undefined && pieces[place]!.turn !== true) continue;
          const entry = entries.get(signAt(place));
          if (entry === undefined || entry.until < at) continue;
          entry.until = at + entry.seconds;
          hit = place;
        }
      }
      const explicit = pieces.flatMap(({ mark }, i) => (mark === undefined ? [] : [i])).slice(-3);
      const read = hit < 0 ? 0 : places[hit]!.tokens;
      let end = read;
      for (const place of new Set([...explicit, implicit])) {
        if (place < 0 || places[place]!.tokens < least) continue;
        const seconds = 30 * MINUTES;
        entries.set(signAt(place), { until: at + seconds, seconds });
        end = Math.max(end, places[place]!.tokens);
      }
      const all = places.at(-1)?.tokens ?? 0;
      return { read, written: end - read, writtenForAnHour: 0, fresh: all - end };
    },
  };
}

/** DeepSeek, Kimi, GLM, Gemini, earlier models of OpenAI: the longest equal beginning, in steps of tokens. */
export function implicitCache(least = 1024, step = 64): VendorCache {
  const entries = new Map<string, Entry>();
  return {
    prices: IMPLICIT_PRICES,
    ask({ pieces }, at) {
      const places = prefixes(pieces);
      const hit = places.findLastIndex(({ sign }) => (entries.get(sign)?.until ?? -1) >= at);
      const seconds = 5 * MINUTES;
      for (const { sign } of places) entries.set(sign, { until: at + seconds, seconds });
      const found = hit < 0 || places[hit]!.tokens < least ? 0 : places[hit]!.tokens;
      const read = found - (found % step);
      const all = places.at(-1)?.tokens ?? 0;
      return { read, written: 0, writtenForAnHour: 0, fresh: all - read };
    },
  };
}

/**
 * The least that these prompts can cost: each reads all that an earlier one held, and writes exactly what a later one
 * reads.
 */
export function bestCost(
  asked: readonly { readonly prompt: Prompt; readonly at: number }[],
  prices: Prices,
  { least, seconds }: { readonly least: number; readonly seconds: number },
): number {
  const held = asked.map(({ prompt, at }) => {
    const places = prefixes(prompt.pieces);
    return { at, places, signs: new Set(places.map(({ sign }) => sign)) };
  });
  const shared = (one: number, other: number) => {
    const { signs } = held[one]!;
    const tokens = held[other]!.places.findLast(({ sign }) => signs.has(sign))?.tokens ?? 0;
    return tokens < least ? 0 : tokens;
  };
  let cost = 0;
  for (let i = 0; i < held.length; i++) {
    const near = (j: number) => Math.abs(held[i]!.at - held[j]!.at) <= seconds;
    let read = 0;
    for (let j = 0; j < i; j++) if (near(j)) read = Math.max(read, shared(j, i));
    let later = read;
    for (let j = i + 1; j < held.length; j++) {
      if (near(j)) later = Math.max(later, shared(i, j));
    }
    const all = held[i]!.places.at(-1)?.tokens ?? 0;
    cost += read * prices.read + (later - read) * prices.write + (all - later);
  }
  return cost;
}
