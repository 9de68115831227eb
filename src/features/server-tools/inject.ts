/** Writes the offer into a request: hosted declarations become functions, tool choices name them. */

import { mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import type {
  CacheMark,
  Conversation,
  FunctionTool,
  Settings,
  Tool,
  ToolChoice,
} from '../../conversation/types.ts';
import { isObject } from '../../lib/json/json.ts';
import type { Offer, OfferedTool } from './offer.ts';

export interface InjectOptions {
  /** This hop must answer: it is sent without server tools. */
  readonly last: boolean;
  /** A server tool has already run, so a choice that forces a call is satisfied. */
  readonly followUp: boolean;
  readonly notes: Notes;
}

/** The conversation with the offer in its tools; the same reference where that changes nothing. */
export function inject(
  conversation: Conversation,
  offer: Offer,
  options: InjectOptions,
): Conversation {
  if (offer.tools.length === 0) return conversation;
  const tools = injectTools(conversation.tools, offer, options);
  const settings = injectChoice(conversation.settings, offer, options);
  if (tools === conversation.tools && settings === conversation.settings) return conversation;
  return withParts(conversation, { tools, settings });
}

function injectTools(
  tools: readonly Tool[],
  offer: Offer,
  { last, notes }: InjectOptions,
): readonly Tool[] {
  const placed = new Set<OfferedTool>();
  const replaced = mapUnchanged(tools, (tool) => {
    if (tool.type !== 'hosted') return tool;
    const offered = offer.tools.find(({ declared }) => declared?.name === tool.name);
    if (offered === undefined) return tool;
    const again = placed.has(offered);
    placed.add(offered);
    if (last || again) return undefined;
    notes.add('hosted_tool_emulated', '/tools', tool.kind);
    return functionOf(offered);
  });
  if (last) return replaced;
  const added = offer.tools.filter((offered) => !placed.has(offered));
  for (const { name } of added) notes.add('server_tool_offered', '/tools', name);
  return added.length === 0 ? replaced : [...replaced, ...added.map(functionOf)];
}

function functionOf({ tool, name, options }: OfferedTool): FunctionTool {
  const { description, schema } = tool;
  const mark = options.cache_control;
  const cache: CacheMark | undefined = isObject(mark)
    ? typeof mark.ttl === 'string'
      ? { ttl: mark.ttl }
      : {}
    : undefined;
  const runsHere = [name, tool.name, ...(tool.aliases ?? [])];
  return { type: 'function', name, description, schema, runsHere, ...(cache ? { cache } : {}) };
}

function injectChoice(
  settings: Settings,
  offer: Offer,
  { last, followUp, notes }: InjectOptions,
): Settings {
  const choice = settings.toolChoice;
  if (choice === undefined) return settings;
  const mapped = mapChoice(choice, offer, last || followUp);
  if (mapped === choice) return settings;
  notes.add('parameter_mapped', 'tool_choice', mapped.type === 'auto' ? 'auto' : 'server tool');
  return { ...settings, toolChoice: mapped };
}

const AUTO: ToolChoice = { type: 'auto' };

/** @param done the forced call has been made, or cannot be made any more, so the model may answer */
function mapChoice(choice: ToolChoice, offer: Offer, done: boolean): ToolChoice {
  const standIn = (name: string) => offer.tools.find(({ declared }) => declared?.name === name);
  switch (choice.type) {
    case 'tool': {
      const offered =
        choice.kind === 'hosted'
          ? standIn(choice.name)
          : choice.namespace === undefined
            ? offer.tools.find(({ name }) => name === choice.name)
            : undefined;
      if (offered === undefined) return choice;
      return done ? AUTO : { type: 'tool', name: offered.name, kind: 'function' };
    }
    case 'required':
      return done ? AUTO : choice;
    case 'allowed': {
      const names = mapUnchanged(choice.names, (name) => {
        const offered = standIn(name);
        return offered === undefined ? name : offered.name;
      });
      if (done && choice.mode === 'required') return { ...choice, mode: 'auto', names };
      return names === choice.names ? choice : { ...choice, names };
    }
    default:
      return choice;
  }
}
