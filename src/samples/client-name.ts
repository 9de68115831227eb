/** The name of a client, by the user agent that it sends. */

/** Beginnings of user agents, in lower case. The first that fits counts. */
const KNOWN: readonly (readonly [begins: string, name: string])[] = [
  ['claude-cli/', 'Claude Code'],
  ['claude-code/', 'Claude Code'],
  ['codex', 'Codex'],
  ['opencode', 'opencode'],
  ['openai/', 'OpenAI SDK'],
  ['asyncopenai/', 'OpenAI SDK'],
  ['anthropic/', 'Anthropic SDK'],
  ['asyncanthropic/', 'Anthropic SDK'],
  ['ai-sdk/', 'AI SDK'],
];

const MAX_CHARACTERS = 30;

/** `Claude Code`, `OpenAI SDK`, or the product that a user agent names first; '' for none. */
export function clientName(userAgent: string): string {
  const lower = userAgent.toLowerCase();
  const known = KNOWN.find(([begins]) => lower.startsWith(begins));
  if (known !== undefined) return known[1];
  return userAgent.split(/[/\s(]/, 1)[0]!.slice(0, MAX_CHARACTERS);
}
