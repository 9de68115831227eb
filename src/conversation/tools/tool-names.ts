/** Flat tool names for protocols without namespaces, and their mapping back to namespace, name and kind. */

import { isObject, type Json, tryParse } from '../../lib/json/json.ts';
import { withLiteralBackslashes } from '../../lib/json/literal-backslashes.ts';
import type { Notes } from '../notes.ts';
import { flatToolFormat } from '../openai-fields.ts';
import type { Tool, ToolKind } from '../types.ts';
import { repeatedArguments } from './argument-pieces.ts';

export interface ToolName {
  readonly name: string;
  readonly namespace?: string;
  readonly kind: ToolKind;
}

export interface ToolNames {
  /** The name on the flat wire, for a declaration, a choice, or a call in the history. */
  flat(name: string, namespace?: string): string;
  /** The declared tool behind a flat name that the vendor called; an undeclared name stands for itself. */
  original(flat: string): ToolName;
}

const cache = new WeakMap<readonly Tool[], Map<number, ToolNames>>();

/**
 * Names for a protocol without namespaces. `ns` + `name` become `ns__name`; characters outside
 * `[a-zA-Z0-9_-]` become `_`; a name longer than `limit` (64 Chat, 128 Messages) becomes a hash and its tail.
 * Deterministic, so that a tool has the same name in every request of a session. Two tools never share a name.
 */
export function toolNames(tools: readonly Tool[], limit: number): ToolNames {
  const key = tools.length === 0 ? NO_TOOLS : tools;
  const byLimit = cache.get(key) ?? new Map<number, ToolNames>();
  cache.set(key, byLimit);
  const names = byLimit.get(limit) ?? build(tools, limit);
  byLimit.set(limit, names);
  return names;
}

const NO_TOOLS: readonly Tool[] = [];

function build(tools: readonly Tool[], limit: number): ToolNames {
  const originals = new Map<string, ToolName>();
  const flats = new Map<string, string>();
  for (const tool of tools) {
    const namespace = tool.type === 'hosted' ? undefined : tool.namespace;
    const kind = kindOf(tool);
    const key = join(tool.name, namespace);
    let flat = legal(key, limit);
    if (originals.has(flat) && !flats.has(key)) flat = hashed(`${key}\0${kind}`, flat, limit);
    flats.set(key, flat);
    if (!originals.has(flat)) originals.set(flat, { name: tool.name, namespace, kind });
  }
  return {
    flat: (name, namespace) => {
      const key = join(name, namespace);
      return flats.get(key) ?? legal(key, limit);
    },
    original: (flat) => originals.get(flat) ?? { name: flat, kind: 'function' },
  };
}

function kindOf(tool: Tool): ToolKind {
  if (tool.type === 'custom') return 'custom';
  if (tool.type === 'function') return tool.callKind ?? 'function';
  return tool.name === 'tool_search' ? 'tool-search' : 'function';
}

const join = (name: string, namespace?: string) =>
  namespace === undefined ? name : `${namespace}__${name}`;

function legal(name: string, limit: number): string {
  const clean = name.replace(/[^a-zA-Z0-9_-]/g, '_');
  if (clean === name && name.length <= limit && name !== '') return name;
  return hashed(name, clean, limit);
}

/** `<8 hex digits>_<tail of the name>`. */
function hashed(identity: string, readable: string, limit: number): string {
  const hash = Bun.hash.xxHash32(identity).toString(16).padStart(8, '0');
  return `${hash}_${readable.slice(-(limit - 9))}`;
}

/** Notes that a declared tool goes out under a name that its client would not know. */
export function noteRenamed(
  { name, namespace }: Pick<Tool & { namespace?: string }, 'name' | 'namespace'>,
  flat: string,
  where: string,
  notes: Notes,
): void {
  if (flat !== join(name, namespace)) notes.add('tool_renamed', where, `${name} as ${flat}`);
}

/** Claude Code's placeholder for tools that are not loaded yet (seen in 2.1.330). It means nothing to other vendors. */
export const DEFERRED_PLACEHOLDER = 'DeferredToolPlaceholder';

/** The input schema of a freeform tool for a protocol without freeform tools. */
export const FREEFORM_SCHEMA = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
  additionalProperties: false,
} as const;

/** The description with the grammar, because a function has no other field that the model can read. */
export function withGrammar(
  description: string | undefined,
  format: Json | undefined,
): string | undefined {
  const grammar = flatToolFormat(format);
  if (!isObject(grammar) || typeof grammar.definition !== 'string') return description;
  const syntax = typeof grammar.syntax === 'string' ? grammar.syntax : 'given';
  const words = `The value of "input" must follow this ${syntax} grammar:\n${grammar.definition}`;
  return description ? `${description}\n\n${words}` : words;
}

/** Freeform text as the arguments of the function that replaces the freeform tool. */
export const wrapFreeform = (text: string): string => JSON.stringify({ input: text });

/**
 * The freeform text inside such arguments, given in one piece or in several. A model may choose another name for the
 * member, or none: one string is the text. Other arguments stay as they are.
 */
export function unwrapFreeform(given: string | readonly string[]): string {
  const pieces = typeof given === 'string' ? [given] : given;
  const args = pieces.join('');
  const value = tryParse(args) ?? tryParse(repeatedArguments(pieces) ?? '') ?? brokenMember(args);
  if (typeof value === 'string') return inputOf(tryParse(value)) ?? value;
  const named = inputOf(value);
  if (named !== undefined || !isObject(value)) return named ?? args;
  const members = Object.values(value);
  const only = members.length === 1 ? members[0] : undefined;
  return typeof only === 'string' ? only : args;
}

/** One member with a string, in which backslashes or line breaks are not escaped, or which lacks the last bracket. */
const BROKEN_MEMBER = /^\s*\{\s*"([A-Za-z_]{1,64})"\s*:\s*"((?:[^"\\]|\\[\s\S])*)"\s*(?:\}\s*)?$/;

/** Undefined: it is something else, or what the backslashes mean is not certain. */
function brokenMember(args: string): Json | undefined {
  const [, name, text] = BROKEN_MEMBER.exec(withLiteralBackslashes(args) ?? '') ?? [];
  if (name === undefined || text === undefined) return undefined;
  const escaped = text.replace(/\p{Cc}/gu, (char) => JSON.stringify(char).slice(1, -1));
  return tryParse(`{"${name}":"${escaped}"}`);
}

const inputOf = (value: Json | undefined): string | undefined =>
  isObject(value) && typeof value.input === 'string' ? value.input : undefined;

/**
 * Was a tool declared under this name before? Anthropic ("Tool names must be unique"), Gemini ("Duplicate function
 * declaration found") and DeepSeek refuse the second one; OpenAI's clients may send it. Notes it.
 * @param seen names so far
 */
export function declaredBefore(
  name: string,
  seen: Set<string>,
  where: string,
  notes: Notes,
): boolean {
  if (!seen.has(name)) {
    seen.add(name);
    return false;
  }
  notes.add('tool_dropped', where, `${name} is declared twice`);
  return true;
}
