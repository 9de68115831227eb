/** Finds the fields that a vendor's error message rejects as unknown, and removes them from a body. */

import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';

/** The path of a field. `*` stands for any member of a list, `**` for any path. */
export type FieldPath = readonly string[];

/** Fields without which no request works, or the answer is one to another question. */
const REQUIRED = new Set([
  ...['model', 'messages', 'input', 'contents', 'role', 'content', 'parts', 'type', 'max_tokens'],
  ...['tools', 'functions', 'tool_calls', 'image_url'],
  ...['system', 'instructions', 'systemInstruction', 'system_instruction'],
]);

/** Each pattern finds a path, or with two groups a path and a field below it. */
const PATTERNS: readonly RegExp[] = [
  // OpenAI: Unknown parameter: 'input[2].status'.
  /unknown parameter: ['"`]([\w.[\]-]+)['"`]/gi,
  // Fireworks: Extra inputs are not permitted, field: 'tools[0].eager_input_streaming', value: True
  /extra inputs are not permitted, field: ['"`]([\w.[\]-]+)['"`]/gi,
  // Groq, Cerebras: 'messages.1' : property 'reasoning_content' is unsupported
  /['"`]([\w.[\]-]+)['"`] ?: property ['"`]([\w.[\]-]+)['"`] is unsupported/gi,
  // OpenAI before that: Additional properties are not allowed ('x' was unexpected) - 'messages.1'
  /additional properties are not allowed \(['"`]([\w-]+)['"`] was unexpected\)/gi,
  // serde: unknown field `x`, expected one of …
  /unknown field ['"`]([\w-]+)['"`]/gi,
];
/** Patterns (by index) that name a field without its path. */
const ANYWHERE = new Set([3, 4]);
// Anthropic and other users of pydantic: messages.1.content.0.text.index: Extra inputs are not permitted
const EXTRA = /: extra inputs are not permitted/gi;
const IN_PATH = /[\w.-]/;
// Unrecognized request arguments supplied: a, b
const ARGUMENTS = /unrecognized request arguments? supplied: ([\w-]+(?:, ?[\w-]+)*)/i;

// Google: Unknown name "thoughtSignature" at 'contents[1].parts[0]': Cannot find field.
const GOOGLES =
  /unknown name ["'\\]{0,4}([\w$.-]{1,64})["'\\]{1,4}(?: at ["'\\]{0,4}([\w.[\]-]{1,300})["'\\]{1,4})?: cannot find field/gi;
/** Their keywords are of the meaning of a request; see refused-settings.ts. */
const SCHEMA = /(?:^|\.)(?:parameters(?:_?json_?schema)?|response_?(?:json_?)?schema)(?:\.|$)/i;

/** Google's API names fields as they came, and where they stand in its own spelling; both spellings are taken. */
function googlesPaths(name: string, place: string): readonly FieldPath[] {
  const above = segments(place.replace(/^request\./, ''));
  const camel = above.map((part) => part.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()));
  return camel.join() === above.join()
    ? [[...above, name]]
    : [
        [...camel, name],
        [...above, name],
      ];
}

/** The fields that an error message names, each once. Reads only the beginning of the message. */
export function refusedFields(message: string): readonly FieldPath[] {
  const text = message.slice(0, 16_384);
  const found = new Map<string, FieldPath>();
  const add = (path: FieldPath) => {
    const name = path.at(-1);
    if (name !== undefined && name !== '*' && !REQUIRED.has(name)) found.set(path.join('.'), path);
  };
  let end = 0;
  for (const { index } of text.matchAll(EXTRA)) {
    // Backwards from the match: a pattern would try every start of a long path.
    let from = index;
    while (from > end && IN_PATH.test(text.charAt(from - 1))) from--;
    add(segments(text.slice(from, index)));
    end = index;
  }
  PATTERNS.forEach((pattern, i) => {
    for (const [, place = '', field] of text.matchAll(pattern)) {
      const path = segments(
        field === undefined || field.startsWith(place) ? (field ?? place) : `${place}.${field}`,
      );
      add(ANYWHERE.has(i) ? ['**', ...path] : path);
    }
  });
  for (const [, name = '', place = ''] of text.matchAll(GOOGLES)) {
    if (!SCHEMA.test(`${place}.${name}`)) googlesPaths(name, place).forEach(add);
  }
  for (const name of ARGUMENTS.exec(text)?.[1]?.split(/, ?/) ?? []) add([name]);
  return [...found.values()];
}

/** `messages[1].content.0.text.index` and `body.messages.1…` as segments, with `*` for list indexes. */
function segments(place: string): FieldPath {
  const parts = place.split(/[.[\]]+/).filter((part) => part !== '');
  // FastAPI puts `body` first.
  if (parts[0] === 'body' && parts.length > 1) parts.shift();
  return parts.map((part) => (/^\d+$/.test(part) ? '*' : part));
}

/**
 * The body without these fields; the same object if it has none of them. A field that is refused in one
 * message is removed from all. Segments that name a kind (pydantic puts `text` or `assistant` into its
 * paths) and match no member are skipped.
 * @param report gets the path of each field and how often it was removed
 */
export function withoutFields(
  body: JsonObject,
  paths: readonly FieldPath[],
  report: (path: string, count: number) => void,
): JsonObject {
  let out = body;
  for (const path of paths) {
    const removal = new FieldRemoval();
    const next = path[0] === '**' ? removal.anywhere(out, path.at(-1)!) : removal.at(out, path, 0);
    if (removal.count > 0) report(path.join('.'), removal.count);
    out = next as JsonObject;
  }
  return out;
}

/** No protocol has fields below this depth. The members in `DATA` hold user data, which must not change. */
const MAX_DEPTH = 12;
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
    // The segment names the kind of a block or of a union's member.
    return this.at(value, path, from + 1);
  }

  anywhere(value: Json, name: string, depth = 0): Json {
    if (depth > MAX_DEPTH) return value;
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
