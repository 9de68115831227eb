/** A conversation of Responses with the types of tools that a vendor knows: most vendors know functions alone. */

import { isObject } from '../../lib/json/json.ts';
import { mapUnchanged, withParts } from '../edit.ts';
import type { Notes } from '../notes.ts';
import type { Block, Conversation, Tool, ToolChoice, ToolKind, Turn } from '../types.ts';
import {
  FREEFORM_SCHEMA,
  type ToolNames,
  toolNames,
  withGrammar,
  wrapFreeform,
} from './tool-names.ts';

/** Types of `tools` by the kind of a call. */
const TYPE_OF: Readonly<Record<ToolKind, string>> = {
  function: 'function',
  custom: 'custom',
  'tool-search': 'tool_search',
  shell: 'shell',
  'local-shell': 'local_shell',
  'apply-patch': 'apply_patch',
};

/** The limit of names in Responses. */
const NAME_LIMIT = 64;

/**
 * Namespaces go into the names, freeform tools and a search that the client runs become functions, in declarations and
 * in the history, and tools that the input declares stand with the others. Answers are read back by the names of the
 * tools as they were declared. The same reference if there is nothing to change.
 * @param types that the vendor knows (`profile.toolTypes`)
 */
export function withToolTypes(
  conversation: Conversation,
  types: readonly string[],
  notes: Notes,
): Conversation {
  const fit = new Fit(types, toolNames(conversation.tools, NAME_LIMIT), notes);
  const { settings } = conversation;
  const toolChoice = fit.choice(settings.toolChoice);
  return withParts(conversation, {
    tools: mapUnchanged(conversation.tools, (tool) => fit.tool(tool)),
    turns: mapUnchanged(conversation.turns, (turn) => fit.turn(turn)),
    settings: toolChoice === settings.toolChoice ? settings : { ...settings, toolChoice },
  });
}

/** A tool, a call or a choice. */
interface Named {
  readonly name: string;
  readonly namespace?: string;
}

class Fit {
  readonly #types: ReadonlySet<string>;

  constructor(
    types: readonly string[],
    private readonly names: ToolNames,
    private readonly notes: Notes,
  ) {
    this.#types = new Set(types);
  }

  tool(tool: Tool): Tool | undefined {
    const where = `tools.${tool.name}`;
    if (tool.type === 'hosted') {
      if (this.#types.has(tool.kind) || this.#types.has(tool.name)) return tool;
      const { parameters: schema, description } = tool.options;
      if (tool.name !== 'tool_search' || !isObject(schema)) {
        this.notes.add('hosted_tool_dropped', where, tool.kind);
        return undefined;
      }
      this.notes.add('content_bridged', where, 'client-run tool search offered as a function');
      const words = typeof description === 'string' ? { description } : {};
      return { type: 'function', name: tool.name, ...words, schema };
    }
    const isCustom = tool.type === 'custom' && !this.#types.has('custom');
    if (!isCustom && !this.#isFlattened(tool) && !this.#isDeferred(tool)) return tool;
    const { wire: _, residue: __, ...rest } = tool;
    const named = { ...rest, ...this.#flat(tool) };
    if (!isCustom) return named.type === 'function' ? { ...named, deferred: undefined } : named;
    this.notes.add('content_bridged', where, 'freeform tool offered as a function with one string');
    const description = withGrammar(tool.description, tool.format);
    return { ...this.#flat(tool), type: 'function', description, schema: FREEFORM_SCHEMA };
  }

  turn(turn: Turn): Turn | undefined {
    const { role, wire } = turn;
    const type = isObject(wire?.value) ? wire.value.type : undefined;
    if (type === 'additional_tools' && !this.#types.has('namespace')) return undefined;
    const blocks = mapUnchanged(turn.blocks, (block) => this.#block(block));
    // Codex' name for what another agent of the session says.
    const isMessage = type === 'agent_message' && !this.#types.has('namespace');
    return blocks === turn.blocks && !isMessage ? turn : { role, blocks };
  }

  #block(block: Block): Block {
    if (block.type !== 'tool-call' && block.type !== 'tool-result') return block;
    if (block.by === 'provider') return block;
    const kind = this.#kind(block.kind);
    if (kind === block.kind && !(block.type === 'tool-call' && this.#isFlattened(block))) {
      return block;
    }
    const { wire: _, residue: __, ...rest } = block;
    if (rest.type === 'tool-result') return { ...rest, kind };
    const isWrapped = block.kind === 'custom' && kind === 'function';
    const input = isWrapped ? wrapFreeform(rest.input) : rest.input;
    return { ...rest, ...this.#flat(rest), kind, input };
  }

  choice(choice: ToolChoice | undefined): ToolChoice | undefined {
    if (choice?.type === 'allowed') {
      const names = mapUnchanged(choice.names, (name) => this.#flat({ name }).name);
      return names === choice.names ? choice : { ...choice, names };
    }
    if (choice?.type !== 'tool' || choice.kind === 'hosted') return choice;
    const kind = this.#kind(choice.kind);
    return kind === choice.kind && !this.#isFlattened(choice)
      ? choice
      : { ...choice, ...this.#flat(choice), kind };
  }

  #kind(kind: ToolKind): ToolKind {
    return this.#types.has(TYPE_OF[kind]) ? kind : 'function';
  }

  /** Without a search nothing is loaded later. */
  #isDeferred({ wire }: Tool): boolean {
    const isSaid = isObject(wire?.value) && wire.value.defer_loading !== undefined;
    return isSaid && !this.#types.has('tool_search');
  }

  #isFlattened({ namespace }: Named): boolean {
    return namespace !== undefined && !this.#types.has('namespace');
  }

  #flat({ name, namespace }: Named): Named {
    return this.#types.has('namespace')
      ? { name, namespace }
      : { name: this.names.flat(name, namespace), namespace: undefined };
  }
}
