/** Finds the usage in an answer that passes: in JSON, or in the last frames of an event stream. */

import {
  bothCounts,
  heardBeside,
  partsOf,
  tokenCount,
  toldCost,
  type Usage,
} from '../conversation/usage.ts';
import { asBuffer } from '../lib/bytes/bytes.ts';
import { isObject, type JsonObject, tryParse } from '../lib/json/json.ts';
import { object } from '../lib/json/typed-reads.ts';

/** Vendors write it before the data or behind it. */
const HEAD_BYTES = 16 * 1024;
const TAIL_BYTES = 64 * 1024;
/** No usage is longer. */
const USAGE_CHARS = 4096;
const KEY = '"usage"';
const MAX_TRIES = 64;

/** Sees every chunk of an answer; keeps its ends. */
export class UsageScan {
  #head = '';
  /** The last bytes, in a buffer of twice their number: what is old goes out half a buffer at a time. */
  #tail: Buffer | undefined;
  #length = 0;
  /** What was read of a whole answer. */
  told: Usage | undefined;

  /** @param isTranscript its length tells what it costs where there is no usage */
  constructor(private readonly isTranscript = false) {}

  push(chunk: Uint8Array): void {
    const bytes = asBuffer(chunk);
    const room = HEAD_BYTES - this.#head.length;
    if (room > 0) this.#head += bytes.toString('latin1', 0, Math.min(room, bytes.length));
    this.#tail ??= Buffer.allocUnsafe(2 * TAIL_BYTES);
    const last = bytes.subarray(-TAIL_BYTES);
    if (this.#length + last.length > this.#tail.length) {
      this.#tail.copyWithin(0, this.#length - TAIL_BYTES, this.#length);
      this.#length = TAIL_BYTES;
    }
    this.#length += last.copy(this.#tail, this.#length);
  }

  /** The last usage that the vendor reported; undefined where there is none. */
  get found(): Usage | undefined {
    if (this.told !== undefined) return this.told;
    const tail = this.#tail?.toString('latin1', 0, this.#length) ?? '';
    const found = lastUsage(tail) ?? lastUsage(this.#head);
    return found ?? (this.isTranscript ? lengthOf(this.#head, tail) : undefined);
  }
}

const DURATION = /"duration"\s{0,8}:\s{0,8}"?(\d{1,9}(?:\.\d{1,20})?)/;
const CUE = '-->';
const CUE_END = /^\s{0,8}(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[,.](\d{3})/;

/**
 * The length that a transcript tells: `duration` of `verbose_json` (Groq reports no usage:
 * https://console.groq.com/docs/speech-to-text), or the end of the last cue of subtitles.
 */
function lengthOf(head: string, tail: string): Usage | undefined {
  const told = head.startsWith('{') ? DURATION.exec(head)?.[1] : undefined;
  const seconds = told === undefined ? lastCue(tail) : Number(told);
  return seconds === undefined ? undefined : { input: 0, output: 0, unknown: 'output', seconds };
}

function lastCue(text: string): number | undefined {
  const at = text.lastIndexOf(CUE);
  const end = at < 0 ? null : CUE_END.exec(text.slice(at + CUE.length, at + CUE.length + 32));
  if (end === null) return undefined;
  const [, hours = '0', minutes, seconds, milliseconds] = end;
  return (
    Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) + Number(milliseconds) / 1000
  );
}

/** What stands between the key and its object. */
const OBJECT = /^\s{0,8}:\s{0,8}\{/;

function lastUsage(text: string): Usage | undefined {
  let at = text.lastIndexOf(KEY);
  // A stream has `"usage":null` in all frames but one.
  for (let tries = 0; at >= 0 && tries < MAX_TRIES; tries++) {
    const behind = at + KEY.length;
    const opening = OBJECT.exec(text.slice(behind, behind + 20));
    const value = opening && objectAt(text, behind + opening[0].length - 1);
    const usage = value && usageOf(value);
    if (usage) return usage;
    at = at === 0 ? -1 : text.lastIndexOf(KEY, at - 1);
  }
  return undefined;
}

/** The object that begins here. Counts braces: no text in a usage holds one. */
function objectAt(text: string, start: number): JsonObject | undefined {
  let depth = 0;
  for (let at = start; at < text.length && at - start < USAGE_CHARS; at++) {
    const char = text[at];
    if (char === '{') depth++;
    else if (char === '}' && --depth === 0) {
      const value = tryParse(text.slice(start, at + 1));
      return isObject(value) ? value : undefined;
    }
  }
  return undefined;
}

/**
 * The counts of these APIs: `prompt_tokens` and `completion_tokens`, or `input_tokens` and `output_tokens`; a cost, or the
 * length of what was heard (openai-node, transcriptions.ts: Duration; Mistral's `prompt_audio_seconds`), may be all.
 */
export function usageOf(usage: JsonObject): Usage | undefined {
  const total = tokenCount(usage.total_tokens);
  const made = tokenCount(usage.completion_tokens) ?? tokenCount(usage.output_tokens);
  const prompt = tokenCount(usage.prompt_tokens) ?? tokenCount(usage.input_tokens);
  const nanoUsd = toldCost(usage);
  const heard = tokenCount(usage.prompt_audio_seconds);
  const seconds = heard ?? (usage.type === 'duration' ? tokenCount(usage.seconds) : undefined);
  const beside = {
    ...(seconds !== undefined && { seconds }),
    ...(nanoUsd !== undefined && { nanoUsd }),
  };
  if ((prompt ?? made ?? total) === undefined) {
    return nanoUsd === undefined && seconds === undefined
      ? undefined
      : { input: 0, output: 0, unknown: 'output', ...beside };
  }
  const both = bothCounts(
    made === undefined ? (prompt ?? total) : prompt,
    made,
    prompt === undefined && made === undefined ? undefined : total,
  );
  const input = both.input + heardBeside(usage, both);
  const details =
    object(usage.prompt_tokens_details) ??
    object(usage.input_tokens_details) ??
    object(usage.input_token_details);
  const cached = tokenCount(details?.cached_tokens);
  const cacheRead = cached === undefined ? undefined : Math.min(cached, input);
  const madeDetails =
    object(usage.completion_tokens_details) ?? object(usage.output_tokens_details);
  const parts = partsOf(details ?? {}, madeDetails ?? {}, both.output);
  return {
    ...both,
    input: input - (cacheRead ?? 0),
    ...(cacheRead !== undefined && { cacheRead }),
    ...(parts !== undefined && { parts }),
    ...beside,
  };
}
