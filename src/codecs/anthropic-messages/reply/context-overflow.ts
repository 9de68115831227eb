/** Rewrites "prompt is too long" errors of vendors into the two forms that Claude Code parses. */

import { overflowCounts } from '../../../vendors/errors/overflow-counts.ts';

/** Anthropic's own two messages, which clients parse. They stay as they are. */
const OWN =
  /prompt is too long: [\d,]+ tokens > [\d,]+|exceed context limit: [\d,]+ \+ [\d,]+ > [\d,]+/i;

/** How many characters of a message are read: limits are named at its beginning. */
const READ = 2000;

/**
 * With the numbers of the upstream's message: where the prompt alone fits, the sentence by which Claude Code
 * lowers `max_tokens` (``input length and `max_tokens` exceed context limit: A + B > C``), else the one by which it
 * compacts (`prompt is too long: N tokens > M maximum`). Without numbers, the upstream's message follows.
 */
export function overflowMessage(words: string): string {
  const message = words.slice(0, READ);
  if (OWN.test(message)) return words;
  const { limit, input, output, total } = overflowCounts(message);
  if (limit !== undefined && input !== undefined && output !== undefined && input < limit) {
    const sum = `${input} + ${output} > ${limit}`;
    return `input length and \`max_tokens\` exceed context limit: ${sum}, decrease input length or \`max_tokens\` and try again`;
  }
  // A prompt that is too long by itself is reported with the vendor's counts.
  const counted = total === (input ?? 0) + (output ?? 0) ? total : input;
  const prompt = counted ?? total;
  if (limit !== undefined && prompt !== undefined && prompt > limit) {
    return `prompt is too long: ${prompt} tokens > ${limit} maximum`;
  }
  return /^prompt is too long/i.test(message) ? words : `prompt is too long: ${words}`;
}
