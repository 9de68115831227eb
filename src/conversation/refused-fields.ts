/** Fields that a vendor says it does not know: which its words name, and a body without them. */

import { isObject, type Json, type JsonObject } from '../lib/json/json.ts';

/** A field by the way to it; `*` stands for any member of a list, `**` for any way at all. */
export type FieldPath = readonly string[];

/** What no request is one without. */
const REQUIRED = new Set(['model', 'messages', 'input', 'role', 'content', 'type', 'max_tokens']);

/** Each pattern finds a path, or (two groups) what holds a field and the field. */
const PATTERNS: readonly RegExp[] = [
  // OpenAI: Unknown parameter: 'input[2].status'.
  /unknown parameter: ['"`]([\w.[\]-]+)['"`]/gi,
  // Groq, Cerebras: 'messages.1' : property 'reasoning_content' is unsupported
  /['"`]([\w.[\]-]+)['"`] ?: property ['"`]([\w.[\]-]+)['"`] is unsupported/gi,
  // OpenAI before that: Additional properties are not allowed ('x' was unexpected) - 'messages.1'
  /additional properties are not allowed \(['"`]([\w-]+)['"`] was unexpected\)/gi,
  // serde: unknown field `x`, expected one of …
  /unknown field ['"`]([\w-]+)['"`]/gi,
];
/** Their match may stand anywhere in the body. */
const ANYWHERE = new Set([2, 3]);
// Anthropic and whoever checks with pydantic: messages.1.content.0.text.index: Extra inputs are not permitted
const EXTRA = /: extra inputs are not permitted/gi;
const IN_PATH = /[\w.-]/;
// Unrecognized request arguments supplied: a, b
const ARGUMENTS = /unrecognized request arguments? supplied: ([\w-]+(?:, ?[\w-]+)*)/i;

/** The fields that a refusal names, each once. Reads the beginning of the words: what is named stands there. */
export function refusedFields(words: string): readonly FieldPath[] {
  const said = words.slice(0, 16_384);
  const found = new Map<string, FieldPath>();
  const add = (path: FieldPath) => {
    const name = path.at(-1);
    if (name !== undefined && name !== '*' && !REQUIRED.has(name)) found.set(path.join('.'), path);
  };
  let end = 0;
  for (const { index } of said.matchAll(EXTRA)) {
    // Backwards from the words: a pattern would try every beginning of a long path.
    let from = index;
    while (from > end && IN_PATH.test(said.charAt(from - 1))) from--;
    add(segments(said.slice(from, index)));
    end = index;
  }
  PATTERNS.forEach((pattern, i) => {
    for (const [, place = '', field] of said.matchAll(pattern)) {
      const path = segments(
        field === undefined || field.startsWith(place) ? (field ?? place) : `${place}.${field}`,
      );
      add(ANYWHERE.has(i) ? ['**', ...path] : path);
    }
  });
  for (const name of ARGUMENTS.exec(said)?.[1]?.split(/, ?/) ?? []) add([name]);
  return [...found.values()];
}

/** `messages[1].content.0.text.index` and `body.messages.1…` as segments; all members of a list alike. */
function segments(place: string): FieldPath {
  const parts = place.split(/[.[\]]+/).filter((part) => part !== '');
  // FastAPI tells that the body is meant.
  if (parts[0] === 'body' && parts.length > 1) parts.shift();
  return parts.map((part) => (/^\d+$/.test(part) ? '*' : part));
}

/**
 * The body without these fields; itself where it has none of them. What is refused in one message is
 * refused in all: a place stands for every place like it. Segments that name a kind (`text`,
 * `assistant`, as pydantic puts them into its paths) and are no members are passed over.
 * @param told is given the name of each field and how often it was taken out
 */
export function withoutFields(
  body: JsonObject,
  paths: readonly FieldPath[],
  told: (path: string, count: number) => void,
): JsonObject {
  let out = body;
  for (const path of paths) {
    const cut = new FieldRemoval();
    const next = path[0] === '**' ? cut.anywhere(out, path.at(-1)!) : cut.at(out, path, 0);
    if (cut.count > 0) told(path.join('.'), cut.count);
    out = next as JsonObject;
  }
  return out;
}

/** Beyond this depth no protocol has fields of its own; what a tool was called with is nobody's to change. */
const DEEPEST = 12;
const DATA = new Set(['arguments', 'input_schema', 'parameters', 'schema']);

class FieldRemoval {
  count = 0;

  at(value: Json, path: FieldPath, from: number): Json {
    const segment = path[from]!;
    if (Array.isArray(value)) {
      const rest = segment === '*' ? from + 1 : from;
      return rest < path.length ? this.#each(value, (item) => this.at(item, path, rest)) : value;
    }
    if (!isObject(value)) return value;
    if (from === path.length - 1) {
      if (value[segment] === undefined) return value;
      this.count++;
      const { [segment]: _, ...rest } = value;
      return rest;
    }
    const member = segment === '*' ? undefined : value[segment];
    if (typeof member === 'object' && member !== null) {
      const inner = this.at(member, path, from + 1);
      if (inner !== member) return { ...value, [segment]: inner };
    }
    // The kind of the block, or of the union's member: a member of no block, or its text.
    return this.at(value, path, from + 1);
  }

  anywhere(value: Json, name: string, depth = 0): Json {
    if (depth > DEEPEST) return value;
    if (Array.isArray(value))
      return this.#each(value, (item) => this.anywhere(item, name, depth + 1));
    if (!isObject(value)) return value;
    let out: Record<string, Json | undefined> | undefined;
    for (const key of Object.keys(value)) {
      const member = value[key];
      if (member === undefined || DATA.has(key) || (key === 'input' && depth > 0)) continue;
      if (key === name) {
        this.count++;
        out ??= { ...value };
        delete out[key];
        continue;
      }
      const inner = this.anywhere(member, name, depth + 1);
      if (inner === member) continue;
      out ??= { ...value };
      out[key] = inner;
    }
    return out ?? value;
  }

  #each(list: readonly Json[], change: (item: Json) => Json): readonly Json[] {
    let out: Json[] | undefined;
    list.forEach((item, i) => {
      const next = change(item);
      if (next === item) return;
      out ??= [...list];
      out[i] = next;
    });
    return out ?? list;
  }
}
