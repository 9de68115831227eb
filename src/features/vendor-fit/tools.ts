/** Fits tool declarations and the tool choice to what the vendor accepts. */

import { editNode, mapBlocks, mapUnchanged, withParts } from '../../conversation/edit.ts';
import { willReason } from '../../conversation/models/will-reason.ts';
import { Notes } from '../../conversation/notes.ts';
import type { Profile } from '../../conversation/profile-facts.ts';
import { choiceInstruction } from '../../conversation/tools/forced-choice.ts';
import { plainRoot, rootSchema, toolSchema } from '../../conversation/tools/root-schema.ts';
import { declaredBefore } from '../../conversation/tools/tool-names.ts';
import { withToolTypes } from '../../conversation/tools/tool-types.ts';
import type { Block, Tool, ToolChoice } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { canBeOff } from './reasoning.ts';
import type { FitRule } from './rule.ts';

/**
 * Drops `strict` and the parallel-calls setting from Messages and Responses requests that would go out
 * unchanged. The Chat codec does this itself when it writes a body; see spelling.ts. Union types at the root
 * of a schema are replaced in every protocol, because codecs write untouched declarations as they are.
 */
export const fitTools: FitRule = (conversation, { profile, protocol, sameProtocol, notes }) => {
  if (!sameProtocol) return conversation;
  let { tools, settings } = conversation;
  if (profile.uniqueTools === true) tools = declaredOnce(tools, notes);
  const { rootUnions, looseSchemas, schemaBounds } = profile;
  if (rootUnions === false || looseSchemas === false || schemaBounds === false) {
    const fitted = looseSchemas === false ? toolSchema : plainRoot;
    tools = mapUnchanged(tools, (tool) => {
      if (tool.type !== 'function') return tool;
      const given = looseSchemas === false ? rootIfNone(tool.schema) : tool.schema;
      const schema = fitted(given, profile, notes, `/tools/${tool.name}`);
      return schema === tool.schema ? tool : editNode(tool, { schema });
    });
  }
  if (protocol === 'openai-chat') {
    return withParts(conversation, { tools });
  }
  if (protocol === 'google-gemini') tools = withOtherSchemas(tools, profile, notes);
  if (profile.strictTools === false) {
    tools = mapUnchanged(tools, (tool) => {
      if (tool.type !== 'function' || tool.strict === undefined) return tool;
      notes.add('parameter_dropped', `/tools/${tool.name}`, 'strict');
      return editNode(tool, { strict: undefined });
    });
  }
  if (profile.parallelToolsParam === false && settings.parallelTools !== undefined) {
    notes.add('parameter_dropped', 'parallel_tool_calls');
    settings = { ...settings, parallelTools: undefined };
  }
  return withParts(conversation, { tools, settings });
};

/**
 * The codec writes the schema of a changed tool as a JSON Schema, or reduced where the vendor has none: of Google's own form
 * it refuses the keywords that this form does not have.
 */
function withOtherSchemas(tools: readonly Tool[], profile: Profile, notes: Notes): readonly Tool[] {
  const wrong = [
    ...(profile.looseSchemas === false ? ['parameters'] : []),
    ...(profile.jsonSchemaTools === false
      ? ['parametersJsonSchema', 'parameters_json_schema']
      : []),
  ];
  if (wrong.length === 0) return tools;
  return mapUnchanged(tools, (tool) => {
    if (tool.type !== 'function' || tool.wire === undefined || !isObject(tool.wire.value))
      return tool;
    const { value } = tool.wire;
    const member =
      wrong.find((name) => value[name] !== undefined) ??
      (profile.jsonSchemaTools === false && refers(value.parameters) ? 'parameters' : undefined);
    if (member === undefined) return tool;
    notes.add('parameter_mapped', `/tools/${tool.name}`, member);
    return editNode(tool, { schema: tool.schema });
  });
}

/** "function parameters is empty" (QwenLM/qwen-code#11834) */
const rootIfNone = (schema: JsonObject | undefined): JsonObject => schema ?? rootSchema(schema);

const refers = (schema: Json | undefined): boolean =>
  schema !== undefined && JSON.stringify(schema).includes('"$ref"');

function declaredOnce(tools: readonly Tool[], notes: Notes): readonly Tool[] {
  const seen = new Set<string>();
  return mapUnchanged(tools, (tool) =>
    tool.type !== 'hosted' && declaredBefore(tool.name, seen, `/tools/${tool.name}`, notes)
      ? undefined
      : tool,
  );
}

/** What Claude Code found by its search for tools, in words for vendors that know no references. */
export const fitToolReferences: FitRule = (conversation, { profile, protocol, notes }) => {
  if (profile.toolReferences !== false || protocol !== 'anthropic-messages') return conversation;
  const inWords = (block: Block): Block => {
    if (block.type !== 'opaque' || block.name !== 'tool_reference') return block;
    notes.addOnce('content_bridged', '/messages', 'tool_reference as text');
    return { type: 'text', text: block.text ?? 'A tool is now available.' };
  };
  const turns = mapUnchanged(conversation.turns, (turn) =>
    mapBlocks(turn, (block) => {
      if (block.type !== 'tool-result') return block;
      const content = mapUnchanged(block.content, inWords);
      return content === block.content ? block : editNode(block, { content });
    }),
  );
  return withParts(conversation, { turns });
};

/** Another object where the codec has to write other types of tools, which it does itself: answers are read by the names of these. */
export const fitToolTypes: FitRule = (conversation, { profile, protocol, sameProtocol }) => {
  const { toolTypes } = profile;
  if (toolTypes === undefined || protocol !== 'openai-responses' || !sameProtocol) {
    return conversation;
  }
  const isOther = withToolTypes(conversation, toolTypes, new Notes()) !== conversation;
  return isOther ? { ...conversation } : conversation;
};

/**
 * Replaces a refused tool choice with the nearest one that the vendor accepts. If only reasoning rules
 * out a forced tool, reasoning is turned off: the client needs the call more. If "none" is refused,
 * the request goes out without tools.
 */
export const fitChoice: FitRule = (conversation, context) => {
  const { settings } = conversation;
  const { profile, notes } = context;
  const choice = settings.toolChoice;
  if (choice === undefined || conversation.tools.length === 0) return conversation;
  const kind = choice.type === 'allowed' ? choice.mode : choice.type;
  const allowed = profile.toolChoices;
  const whileThinking = profile.thinkingToolChoices;
  const isAllowed = !allowed || allowed.includes(kind);
  const excludedByThinking =
    whileThinking !== undefined &&
    !whileThinking.includes(kind) &&
    willReason(conversation, profile);
  if (isAllowed && !excludedByThinking) return conversation;
  if (isAllowed && canBeOff(context) && kind !== 'none') {
    notes.add('parameter_mapped', 'reasoning', 'off: it excludes a forced tool');
    return withParts(conversation, { settings: { ...settings, reasoning: { enabled: false } } });
  }
  if (kind === 'none') {
    notes.add('parameter_mapped', 'tool_choice', 'none: the tools are left out');
    return withParts(conversation, {
      tools: [],
      settings: { ...settings, toolChoice: undefined, parallelTools: undefined },
    });
  }
  const remaining = (excludedByThinking ? whileThinking : allowed) ?? [];
  if (kind === 'auto') return conversation;
  const nearest: ToolChoice =
    kind === 'tool' && remaining.includes('required')
      ? { type: 'required' }
      : { type: 'auto', instead: choice };
  notes.add('parameter_mapped', 'tool_choice', `${kind} as ${nearest.type}`);
  const fitted = { ...settings, toolChoice: nearest };
  if (nearest.type === 'required') return withParts(conversation, { settings: fitted });
  notes.add('content_bridged', 'tool_choice', 'said in the prompt');
  const text = choiceInstruction(choice);
  return withParts(conversation, {
    settings: fitted,
    // Behind the history: what stands before it may be cached.
    turns: [...conversation.turns, { role: 'user', blocks: [{ type: 'text', text }] }],
  });
};
