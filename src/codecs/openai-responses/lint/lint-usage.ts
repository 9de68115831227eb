/** Checks the token counts of a Responses answer: whole numbers that add up. */

import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import { lintCounts, type Report } from '../../lint.ts';

const COUNTS = ['input_tokens', 'output_tokens', 'total_tokens'];

export function lintUsage(usage: JsonObject, at: string, report: Report): void {
  if (!lintCounts(usage, COUNTS, at, report)) return;
  const input = Number(usage.input_tokens);
  const output = Number(usage.output_tokens);
  if (input + output !== usage.total_tokens) {
    const words = `total_tokens is ${String(usage.total_tokens)}, input and output are ${input} + ${output}`;
    report(`${at}/total_tokens`, 'usage-total', words);
  }
  const part = (details: string, key: string, of: number) => {
    const value = isObject(usage[details]) ? usage[details][key] : undefined;
    if (typeof value !== 'number' || value <= of) return;
    report(`${at}/${details}/${key}`, 'usage-part', `${key} is ${value}, more than all ${of}`);
  };
  part('input_tokens_details', 'cached_tokens', input);
  part('output_tokens_details', 'reasoning_tokens', output);
}
