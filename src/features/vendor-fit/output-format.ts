/** Fits the form of the answer: JSON mode and schemas, each where the vendor has it, said in the prompt where it has not. */

import { editNode, withParts } from '../../conversation/edit.ts';
import type { Block, Conversation, OutputFormat, Turn } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import type { FitContext, FitRule } from './rule.ts';

/** Any object: what JSON mode promises. */
const ANY_OBJECT: OutputFormat = { type: 'schema', name: 'answer', schema: { type: 'object' } };

const ONE_OBJECT = 'Answer with one JSON object and nothing else.';

/**
 * For vendors that have JSON mode but no JSON schema: the schema goes into the instructions, since a
 * client that parses the answer needs that shape. For those that have schemas and no JSON mode: a schema.
 */
export const fitFormat: FitRule = (conversation, context) => {
  const { profile, notes } = context;
  const { format } = conversation.settings;
  if (format?.type === 'json') {
    if (profile.jsonObject !== false) return fitJsonMode(conversation, context);
    notes.add('parameter_mapped', 'response_format', 'json_object as json_schema');
    return withParts(conversation, { settings: { ...conversation.settings, format: ANY_OBJECT } });
  }
  if (format?.type !== 'schema' || takesSchema(format.schema, context)) return conversation;
  notes.add('content_bridged', 'response_format', 'the schema is said in the prompt');
  // Messages has no JSON mode; the instruction has to be enough.
  const mode: OutputFormat | undefined =
    context.protocol === 'anthropic-messages' ? undefined : { type: 'json' };
  const told = withInstruction(conversation, schemaInstruction(format), context);
  const fitted = withParts(told, { settings: { ...conversation.settings, format: mode } });
  return mode === undefined ? fitted : fitJsonMode(fitted, context);
};

/** Behind the instructions. Where only the first message may hold any, it is in that one. */
function withInstruction(
  conversation: Conversation,
  text: string,
  { profile }: FitContext,
): Conversation {
  const { system, turns } = conversation;
  const block = { type: 'text', text } as const;
  const first = turns[0];
  if (profile.systemTurns !== false || first === undefined || isNoInstruction(first)) {
    return withParts(conversation, { system: [...system, block] });
  }
  return withParts(conversation, {
    turns: turns.with(0, editNode(first, { blocks: [...first.blocks, block] })),
  });
}

function schemaInstruction(format: OutputFormat & { type: 'schema' }): string {
  const about = format.description === undefined ? '' : ` It is: ${format.description}`;
  return `${ONE_OBJECT}${about} It must be valid against this JSON Schema:\n${JSON.stringify(format.schema)}`;
}

/**
 * JSON mode of a client of another protocol. Messages has none. OpenAI, and vendors after it, refuse it where the prompt
 * does not say "json", which clients of Gemini need not do; Responses reads only the input for it, not the instructions
 * (https://github.com/BigDawnGhost/wenyi/pull/66).
 */
function fitJsonMode(conversation: Conversation, context: FitContext): Conversation {
  const { profile, protocol, sameProtocol, notes } = context;
  if (sameProtocol || protocol === 'google-gemini') return conversation;
  const { settings, system, turns } = conversation;
  if (protocol === 'anthropic-messages') {
    notes.add('content_bridged', 'response_format', 'JSON mode is said in the prompt');
    const told = withInstruction(conversation, ONE_OBJECT, context);
    return withParts(told, { settings: { ...settings, format: undefined } });
  }
  // With breakpoints, instructions are part of the input.
  const isApart = protocol === 'openai-responses' && !profile.breakpointsAt;
  const said = isApart ? turns.filter(isNoInstruction) : [{ blocks: system }, ...turns];
  if (said.some(({ blocks }) => saysJson(blocks))) return conversation;
  notes.add('content_bridged', 'response_format', 'the prompt says JSON');
  if (!isApart) return withInstruction(conversation, ONE_OBJECT, context);
  // In the first message of the user, which later requests repeat: they find what was cached of this one.
  const at = turns.findIndex(({ role }) => role === 'user');
  const first = turns[at];
  const instruction = { type: 'text', text: ONE_OBJECT } as const;
  const told: readonly Turn[] =
    first === undefined
      ? [...turns, { role: 'user', blocks: [instruction] }]
      : turns.with(at, editNode(first, { blocks: [...first.blocks, instruction] }));
  return withParts(conversation, { turns: told });
}

const isNoInstruction = ({ role }: Turn): boolean => role !== 'system' && role !== 'developer';

const saysJson = (blocks: readonly Block[]): boolean =>
  blocks.some((block) => block.type === 'text' && /json/i.test(block.text));

/** Messages of Anthropic refuses some schemas that clients of other protocols may use. Its own clients know them. */
function takesSchema(schema: JsonObject, { profile, protocol, sameProtocol }: FitContext): boolean {
  if (profile.jsonSchema === false) return false;
  return protocol !== 'anthropic-messages' || sameProtocol || isClosed(schema);
}

/** Larger and deeper schemas are refused in any case. */
const MAX_NODES = 20_000;
const MAX_DEPTH = 64;

/**
 * Can structured outputs of Anthropic express it? "Circular reference detected in schema definitions", and each object
 * must be closed, so one with keys of any name would always be empty
 * (https://platform.claude.com/docs/en/build-with-claude/structured-outputs).
 */
function isClosed(schema: JsonObject): boolean {
  const walk = new SchemaWalk();
  return walk.isClosed(schema, '', 0) && !walk.isCircular();
}

const DEFINITION = /^#\/(?:\$defs|definitions)\/([^/]+)$/;

class SchemaWalk {
  /** The definitions that each definition names; '' is the rest of the schema. */
  readonly #named = new Map<string, Set<string>>();
  #nodes = 0;

  /** Looks through a schema that belongs to this definition. */
  isClosed(schema: Json | undefined, definition: string, depth: number): boolean {
    if (depth > MAX_DEPTH) return false;
    if (Array.isArray(schema)) {
      return schema.every((one) => this.isClosed(one, definition, depth + 1));
    }
    if (!isObject(schema)) return true;
    if (++this.#nodes > MAX_NODES || hasAnyKeys(schema)) return false;
    if (typeof schema.$ref === 'string' && !this.#refer(schema.$ref, definition)) return false;
    for (const key of SCHEMAS) {
      if (!this.isClosed(schema[key], definition, depth + 1)) return false;
    }
    for (const key of MAPS) {
      const map = schema[key];
      if (!isObject(map)) continue;
      const own = key !== 'properties' && depth === 0;
      for (const name of Object.keys(map)) {
        if (!this.isClosed(map[name], own ? name : definition, depth + 1)) return false;
      }
    }
    return true;
  }

  #refer(reference: string, from: string): boolean {
    const name = DEFINITION.exec(reference)?.[1];
    if (name === undefined) return false;
    const named = this.#named.get(from) ?? new Set();
    this.#named.set(from, named.add(decodeName(name)));
    return true;
  }

  /** Does a definition come back to itself? Each one is entered once. */
  isCircular(): boolean {
    const open = new Set<string>();
    const done = new Set<string>();
    const enter = (name: string): boolean => {
      if (open.has(name) || open.size > MAX_DEPTH) return true;
      if (done.has(name)) return false;
      open.add(name);
      for (const next of this.#named.get(name) ?? []) if (enter(next)) return true;
      open.delete(name);
      done.add(name);
      return false;
    };
    return [...this.#named.keys()].some(enter);
  }
}

const SCHEMAS = ['items', 'prefixItems', 'anyOf', 'oneOf', 'allOf'] as const;
const MAPS = ['properties', '$defs', 'definitions'] as const;

const decodeName = (name: string): string => name.replaceAll('~1', '/').replaceAll('~0', '~');

/** An object whose keys are not named: a map, or any object. */
function hasAnyKeys({ type, properties, additionalProperties, patternProperties }: JsonObject) {
  const isMap = type === 'object' || (Array.isArray(type) && type.includes('object'));
  const isNamed = isObject(properties) && Object.keys(properties).length > 0;
  return (isMap && !isNamed && additionalProperties !== false) || isObject(patternProperties);
}
