/** Checks the token counts of a Chat answer: whole numbers that add up. */

import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import { lintCounts, type Report } from '../../lint.ts';

const COUNTS = ['prompt_tokens', 'completion_tokens', 'total_tokens'];

export function lintUsage(usage: JsonObject, at: string, report: Report): void {
  if (!lintCounts(usage, COUNTS, at, report)) return;
  const [prompt, completion, total] = [
    Number(usage.prompt_tokens),
    Number(usage.completion_tokens),
    Number(usage.total_tokens),
  ];
  // Some vendors (xAI) do not include reasoning in the completion.
  const details = usage.completion_tokens_details;
  const reasoning = isObject(details) ? Number(details.reasoning_tokens ?? 0) : 0;
  if (prompt + completion !== total && prompt + completion + reasoning !== total) {
    const words = `total_tokens is ${total}, prompt and completion are ${prompt} + ${completion}`;
    report(`${at}/total_tokens`, 'usage-total', words);
  }
  const cached = isObject(usage.prompt_tokens_details)
    ? usage.prompt_tokens_details.cached_tokens
    : undefined;
  if (typeof cached === 'number' && cached > prompt) {
    const words = `cached_tokens is ${cached}, more than all ${prompt} of the prompt`;
    report(`${at}/prompt_tokens_details/cached_tokens`, 'usage-part', words);
  }
}
