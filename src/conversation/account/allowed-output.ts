/** How much output a request allows, for what is reserved: the most that any vendor may read in it. */

import type { Json, JsonObject } from '../../lib/json/json.ts';

export interface AllowedOutput {
  /** Of one answer; undefined: the request sets no limit. */
  readonly tokens: number | undefined;
  /** Answers at once, at least one. */
  readonly choices: number;
}

/** A body may have several of them, and which one counts is up to the vendor. */
const CAPS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];
const CHOICES = ['n', 'best_of'];
export const ALLOWING: readonly string[] = [...CAPS, ...CHOICES];

/** @param body as OpenAI's APIs and Messages have it */
export function allowedOutput(body: JsonObject, prompts = promptsIn(body.prompt)): AllowedOutput {
  let tokens: number | undefined;
  let isUnlimited = false;
  for (const name of CAPS) {
    const cap = numberOf(body[name]);
    if (cap === undefined) continue;
    // Below 0 is no limit to some (llama.cpp).
    if (cap < 0) isUnlimited = true;
    tokens = Math.max(tokens ?? 0, cap);
  }
  let each = 1;
  for (const name of CHOICES) each = Math.max(each, numberOf(body[name]) ?? 1);
  return { tokens: isUnlimited ? undefined : tokens, choices: each * prompts };
}

/** Completions answer each text, or each list of tokens, of a list. */
function promptsIn(prompt: Json | undefined): number {
  return Array.isArray(prompt) && typeof prompt[0] !== 'number' ? Math.max(1, prompt.length) : 1;
}

/** Vendors written in Python take a number as text, too (https://docs.pydantic.dev/latest/concepts/conversion_table). */
function numberOf(value: Json | undefined): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && !Number.isNaN(number) ? number : undefined;
}
