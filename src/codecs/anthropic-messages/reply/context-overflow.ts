/** Recognizes "prompt is too long" errors of vendors and rewrites them into the form that Claude Code parses. */

/** Anthropic's own two messages, which clients parse. They stay as they are. */
const OWN =
  /prompt is too long: [\d,]+ tokens > [\d,]+|exceed context limit: [\d,]+ \+ [\d,]+ > [\d,]+/i;

const OVERFLOW =
  /prompt is too long|exceeds? (?:the )?(?:model'?s? )?(?:available |maximum )?context|maximum context length|context (?:length|window|size|limit)[^.]*exceed/i;

/** How many characters of a message are read: limits are named at its beginning. */
const READ = 2000;

/** Does an upstream's message say that the prompt is too long? */
export const saysOverflow = (message: string): boolean => OVERFLOW.test(message.slice(0, READ));

const count = (text: string) => Number(text.replace(/[,_]/g, ''));

/**
 * `prompt is too long: N tokens > M maximum`, with the numbers of the upstream's message: M is what it calls a
 * maximum, limit or size, and N the largest number above M. Without numbers, the upstream's message follows.
 */
export function overflowMessage(words: string): string {
  const message = words.slice(0, READ);
  if (OWN.test(message)) return words;
  const numbers = [...message.matchAll(/\d[\d,_]{2,}/g)].map(([text]) => count(text));
  const named = message.match(
    /(?:maximum|max|limit|context size|context window|allowed)[^\d]{0,60}?(\d[\d,_]{2,})/i,
  )?.[1];
  const largest = Math.max(...numbers, 0);
  const maximum =
    named !== undefined && count(named) < largest
      ? count(named)
      : Math.max(...numbers.filter((number) => number < largest), 0);
  if (maximum > 0) return `prompt is too long: ${largest} tokens > ${maximum} maximum`;
  return /^prompt is too long/i.test(message) ? words : `prompt is too long: ${words}`;
}
