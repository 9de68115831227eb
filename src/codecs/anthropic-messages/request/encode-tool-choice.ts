/** Encodes a tool choice as `tool_choice`. */

import type { ToolNames } from '../../../conversation/tools/tool-names.ts';
import type { Conversation, ToolChoice } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { ownWire } from '../wire.ts';
import type { BlockWriter } from './encode-blocks.ts';

export interface EncodedChoice {
  readonly [key: string]: Json | undefined;
  readonly tool_choice?: JsonObject;
  /** Set only if the choice narrows the list of tools. */
  readonly tools?: readonly Json[];
}

/** `tool_choice` for these encoded tools; empty without tools, because the API refuses it then. */
export function encodeToolChoice(
  conversation: Conversation,
  tools: readonly Json[],
  writer: BlockWriter,
): EncodedChoice {
  const { settings } = conversation;
  const { profile } = writer.target;
  const { notes } = writer;
  if (tools.length === 0) {
    if (settings.toolChoice !== undefined && settings.toolChoice.type !== 'none') {
      notes.add('parameter_dropped', 'tool_choice', 'there are no tools');
    }
    return {};
  }
  const wanted = settings.toolChoice && mapChoice(settings.toolChoice, conversation, tools, writer);
  const taken = wanted?.tool_choice && nearestAccepted(wanted.tool_choice, writer);
  const single =
    settings.parallelTools === false &&
    profile.parallelToolsParam !== false &&
    taken?.type !== 'none';
  if (settings.parallelTools === false && profile.parallelToolsParam === false) {
    notes.add('parameter_dropped', 'parallel_tool_calls');
  }
  const choice = single
    ? { ...(taken ?? { type: 'auto' }), disable_parallel_tool_use: true }
    : taken;
  return {
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(wanted?.tools === undefined ? {} : { tools: wanted.tools }),
  };
}

const nameOf = (tool: Json) => (isObject(tool) ? tool.name : undefined);

function mapChoice(
  choice: ToolChoice,
  conversation: Conversation,
  tools: readonly Json[],
  { names, notes }: BlockWriter,
): EncodedChoice {
  switch (choice.type) {
    case 'auto':
    case 'none':
      return { tool_choice: { type: choice.type } };
    case 'required':
      return { tool_choice: { type: 'any' } };
    case 'tool': {
      const name =
        choice.kind === 'hosted'
          ? hostedName(choice.name, conversation)
          : names.flat(choice.name, choice.namespace);
      if (tools.some((tool) => nameOf(tool) === name))
        return { tool_choice: { type: 'tool', name } };
      notes.add('parameter_dropped', 'tool_choice', `${name} is not among the tools`);
      return {};
    }
    case 'allowed': {
      const allowed = flatNames(choice.names, conversation, names);
      const left = tools.filter((tool) => allowed.has(String(nameOf(tool))));
      notes.add('parameter_mapped', 'tool_choice', 'the tools that are not allowed are left out');
      const type = choice.mode === 'required' ? 'any' : 'auto';
      return left.length > 0
        ? { tool_choice: { type }, tools: left }
        : { tool_choice: { type: 'none' } };
    }
  }
}

/**
 * The wire names of the tools that a choice allows. The choice has no namespaces, so it allows every tool of
 * that name.
 */
function flatNames(
  allowed: readonly string[],
  conversation: Conversation,
  names: ToolNames,
): ReadonlySet<string> {
  const flat = new Set(allowed.map((name) => names.flat(name)));
  const known = new Set(allowed);
  for (const tool of conversation.tools) {
    if (!known.has(tool.name)) continue;
    flat.add(
      tool.type === 'hosted'
        ? hostedName(tool.name, conversation)
        : names.flat(tool.name, tool.namespace),
    );
  }
  return flat;
}

/** The wire name of a hosted tool. */
function hostedName(name: string, conversation: Conversation): string {
  for (const tool of conversation.tools) {
    if (tool.type !== 'hosted' || tool.name !== name) continue;
    const wire = ownWire(tool);
    if (isObject(wire) && typeof wire.name === 'string') return wire.name;
  }
  return name;
}

const NAMES: Readonly<Record<string, 'auto' | 'none' | 'required' | 'tool'>> = {
  auto: 'auto',
  none: 'none',
  any: 'required',
  tool: 'tool',
};

/** The nearest choice that the vendor accepts. */
function nearestAccepted(
  choice: JsonObject,
  { target, notes }: BlockWriter,
): JsonObject | undefined {
  const choices = target.profile.toolChoices;
  const kind = NAMES[String(choice.type)] ?? 'auto';
  if (choices === undefined || choices.includes(kind)) return choice;
  const other = kind === 'tool' && choices.includes('required') ? 'any' : 'auto';
  notes.add('parameter_mapped', 'tool_choice', `${kind} is not accepted: ${other}`);
  return other === 'auto' && !choices.includes('auto') ? undefined : { type: other };
}
