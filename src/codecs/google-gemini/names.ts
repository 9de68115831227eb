/** Tool names as Gemini takes them, and their mapping back. */

import { type ToolName, toolNames } from '../../conversation/tools/tool-names.ts';
import type { Tool } from '../../conversation/types.ts';

/** Google: "Must start with a letter or an underscore … maximum length of 64"; one character is for that start. */
const NAME_LIMIT = 63;
const START = /^[a-zA-Z_]/;

export interface GeminiNames {
  /** The name on the wire, for a declaration, a choice, a call or a result. */
  flat(name: string, namespace?: string): string;
  /** The declared tool behind a name that the model called; an undeclared name stands for itself. */
  original(flat: string): ToolName;
}

const cache = new WeakMap<readonly Tool[], GeminiNames>();

/** The names of these tools; the same object for the same list. */
export function geminiNames(tools: readonly Tool[]): GeminiNames {
  const known = cache.get(tools);
  if (known !== undefined) return known;
  const names = toolNames(tools, NAME_LIMIT);
  const declared = new Set<string>();
  const flat = (name: string, namespace?: string) => {
    const plain = names.flat(name, namespace);
    return START.test(plain) ? plain : `_${plain}`;
  };
  // A tool of this protocol keeps its name, which may hold dots and colons.
  for (const tool of tools) declared.add(tool.name);
  const made: GeminiNames = {
    flat,
    original: (name) => {
      if (declared.has(name)) return names.original(name);
      const bare = name.startsWith('_') && !START.test(name.slice(1)) ? name.slice(1) : name;
      return names.original(bare);
    },
  };
  cache.set(tools, made);
  return made;
}
