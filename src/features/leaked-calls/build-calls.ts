/** Builds structured calls from calls read in markup. */

import { unwrapFreeform } from '../../conversation/tools/tool-names.ts';
import type { ToolCallBlock } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { memberOf, put } from '../../lib/json/json-members.ts';
import type { KnownTool, ToolIndex } from './tool-index.ts';
import { coerceValue, dialectOf, jsonValue } from './values/coerce-value.ts';
import { type Repairs, repairedValue } from './values/repair-json.ts';

/** A node of M3's nested arguments. */
export interface TreeNode {
  readonly name: string;
  readonly children: TreeNode[];
  text: string;
}

/** One argument. `as`: the markup declares a string or JSON, or the schema decides. */
export type ArgumentPair =
  | { readonly key: string; readonly text: string; readonly as: 'string' | 'json' | 'schema' }
  | { readonly key: string; readonly tree: TreeNode };

export interface RawCall {
  readonly name: string | undefined;
  readonly family: string;
  readonly input:
    | { readonly type: 'json'; readonly text: string }
    | { readonly type: 'value'; readonly value: Json | undefined }
    | { readonly type: 'pairs'; readonly pairs: readonly ArgumentPair[] };
  /** The markup was broken, so the arguments are uncertain. */
  readonly malformed: boolean;
  /** Only the end of the text ended it: there may have been more arguments. */
  readonly unclosed?: true;
}

export interface RecoveredCall
  extends Pick<ToolCallBlock, 'name' | 'namespace' | 'kind' | 'input'> {
  readonly family: string;
  /** Its JSON was repaired. */
  readonly repaired: boolean;
  /** See {@link RawCall.unclosed}. */
  readonly unclosed?: true;
}

export const PARALLEL = /^(?:functions\.)?(?:multi_tool_use[._])?parallel$/;

/**
 * The structured calls for a raw call: one; several for OpenAI's `multi_tool_use.parallel`; none if the
 * request has no such tool, or if the arguments are uncertain.
 */
export function buildCalls(
  raw: RawCall,
  tools: ToolIndex,
  repairs: Repairs,
): readonly RecoveredCall[] {
  try {
    return callsOf(raw, tools, repairs);
  } catch (thrown) {
    // Arguments nested deeper than the stack allows.
    if (thrown instanceof RangeError) return [];
    throw thrown;
  }
}

function callsOf(raw: RawCall, tools: ToolIndex, repairs: Repairs): readonly RecoveredCall[] {
  if (raw.malformed || raw.name === undefined) return [];
  const tool = tools.resolve(raw.name);
  if (tool === undefined) {
    if (!PARALLEL.test(raw.name.trim()) || raw.input.type === 'pairs') return [];
    const value = raw.input.type === 'json' ? jsonValue(raw.input.text) : raw.input.value;
    return parallelCalls(value, raw.family)?.flatMap((each) => callsOf(each, tools, repairs)) ?? [];
  }
  const found = argumentsOf(raw, tool, repairs);
  if (found === undefined) return [];
  const { text, repaired } = found;
  const { unclosed } = raw;
  if (unclosed && !hasRequired(text, tool.schema)) return [];
  return [
    {
      name: tool.name,
      namespace: tool.namespace,
      kind: tool.kind,
      input: tool.kind === 'custom' ? unwrapFreeform(text) : text,
      family: raw.family,
      repaired,
      unclosed,
    },
  ];
}

/** Does an object have all members that its schema requires? */
function hasRequired(text: string, { required }: JsonObject): boolean {
  const value = jsonValue(text);
  if (!Array.isArray(required)) return true;
  return isObject(value) && required.every((key) => Object.hasOwn(value, String(key)));
}

/** The calls in the arguments of `multi_tool_use.parallel`; undefined if the arguments have another form. */
export function parallelCalls(
  value: Json | undefined,
  family: string,
): readonly RawCall[] | undefined {
  if (!isObject(value) || !Array.isArray(value.tool_uses)) return undefined;
  return (value.tool_uses as readonly Json[]).map((use) => ({
    name: isObject(use) && typeof use.recipient_name === 'string' ? use.recipient_name : undefined,
    family,
    input: { type: 'value', value: isObject(use) ? use.parameters : undefined },
    malformed: false,
  }));
}

interface ParsedArguments {
  readonly text: string;
  readonly repaired: boolean;
}

function argumentsOf(raw: RawCall, tool: KnownTool, repairs: Repairs): ParsedArguments | undefined {
  const { input, family } = raw;
  if (input.type === 'pairs') {
    const value = fromPairs(input.pairs, tool.schema, family);
    if (family === 'glm' && hasLeftoverTags(value)) return undefined;
    return { text: JSON.stringify(unwrapped(value, tool.schema)), repaired: false };
  }
  let text = input.type === 'json' ? input.text.trim() : undefined;
  let value = text === undefined ? (input as { value?: Json }).value : jsonValue(text);
  // The arguments may be a JSON string that contains JSON.
  if (typeof value === 'string') {
    text = value.trim();
    value = text === '' ? {} : jsonValue(text);
    if (text === '') text = '{}';
  }
  let repaired = false;
  if (value === undefined && text !== undefined) {
    value = repairedValue(text, repairs);
    text = undefined;
    repaired = true;
  }
  if (!isObject(value)) return undefined;
  const plain = unwrapped(value, tool.schema);
  return { text: plain === value && text !== undefined ? text : JSON.stringify(plain), repaired };
}

const propertiesOf = (schema: Json | undefined): JsonObject =>
  isObject(schema) && isObject(schema.properties) ? schema.properties : {};

function fromPairs(pairs: readonly ArgumentPair[], schema: JsonObject, family: string): JsonObject {
  const properties = propertiesOf(schema);
  const dialect = dialectOf(family);
  const out: { [key: string]: Json } = {};
  for (const pair of pairs) {
    const property = memberOf(properties, pair.key);
    let value: Json;
    if ('tree' in pair) value = fromTree(pair.tree, property, schema);
    else if (pair.as === 'string') value = pair.text;
    else {
      // Declared JSON is parsed; if that fails, the schema decides.
      const given = pair.as === 'json' ? jsonValue(pair.text) : undefined;
      value = given ?? coerceValue(pair.text, property, schema, dialect);
    }
    put(out, pair.key, value);
  }
  return out;
}

function fromTree(node: TreeNode, schema: Json | undefined, root: JsonObject): Json {
  const { children } = node;
  if (children.length === 0) return coerceValue(node.text, schema, root, dialectOf('minimax-m3'));
  if (children.every(({ name }) => name === 'item')) {
    const items = isObject(schema) ? schema.items : undefined;
    return children.map((child) => fromTree(child, items, root));
  }
  const properties = propertiesOf(schema);
  return Object.fromEntries(
    children.map((child) => [child.name, fromTree(child, memberOf(properties, child.name), root)]),
  );
}

/** Unwraps a sole `arguments` or `input` that the schema does not know, if the schema knows its members (vLLM's rule). */
function unwrapped(value: JsonObject, schema: JsonObject): JsonObject {
  const keys = Object.keys(value);
  const key = keys[0];
  if (keys.length !== 1 || (key !== 'arguments' && key !== 'input')) return value;
  const properties = propertiesOf(schema);
  const given = value[key];
  const inner = typeof given === 'string' ? jsonValue(given) : given;
  if (Object.hasOwn(properties, key) || !isObject(inner)) return value;
  return Object.keys(inner).every((name) => Object.hasOwn(properties, name)) ? inner : value;
}

const ARG_TAG = /<\/?arg_(?:key|value)\b/;

/** GLM's tags inside keys or values mean that two arguments were merged. */
const hasLeftoverTags = (value: JsonObject): boolean =>
  Object.entries(value).some(
    ([key, text]) => ARG_TAG.test(key) || (typeof text === 'string' && ARG_TAG.test(text)),
  );
