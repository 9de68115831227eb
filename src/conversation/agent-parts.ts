/** Tells what a user wrote from what an agent put beside it, in tags of its own. */

/** Claude Code's reminders, and Codex' surroundings and instructions. */
export type AgentTag = 'system-reminder' | 'environment_context' | 'user_instructions';

const OPENS = /<(system-reminder|environment_context|user_instructions)>/g;

export interface AgentPart {
  /** Without its tag. */
  readonly text: string;
  /** Undefined: the user's own words. */
  readonly tag?: AgentTag;
}

/**
 * The parts of a text in order, in linear time; blank ones between tags are left out. A tag that does not end is text.
 * @param isCut the text goes on: a tag may end in what is missing, and the last part is there even if it is blank
 */
export function agentParts(text: string, isCut = false): readonly AgentPart[] {
  const parts: AgentPart[] = [];
  const endless = new Set<string>();
  let from = 0;
  const own = (until: number, isLast = false) => {
    const words = text.slice(from, until);
    if (words.trim() !== '' || (isLast && isCut)) parts.push({ text: words });
  };
  for (const match of text.matchAll(OPENS)) {
    const [open, tag] = match as unknown as readonly [string, AgentTag];
    if (match.index < from || endless.has(tag)) continue;
    const close = `</${tag}>`;
    const inner = match.index + open.length;
    const end = text.indexOf(close, inner);
    if (end < 0 && !isCut) {
      endless.add(tag);
      continue;
    }
    own(match.index);
    if (end < 0) return [...parts, { text: text.slice(inner), tag }];
    parts.push({ text: text.slice(inner, end), tag });
    from = end + close.length;
  }
  own(text.length, true);
  return parts;
}

/** Claude Code 2.1.332 writes this beside the result of its search for tools. The pattern is its own. */
const TOOL_LOADED = /^Tool loaded\.(?:\n\[id:[^\]\n]+\])*\n?$/;

/** The user's own words; '' if an agent wrote the whole text. */
export const ownWords = (text: string): string =>
  TOOL_LOADED.test(text)
    ? ''
    : agentParts(text)
        .filter(({ tag }) => tag === undefined)
        .map((part) => part.text)
        .join('');
