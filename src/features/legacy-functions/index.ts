/** Asks vendors of Chat that have tools alone in their form, for clients that know `functions` and `function_call` alone. */

import { wireNodes, withParts } from '../../conversation/edit.ts';
import type { StreamEvent } from '../../conversation/events.ts';
import { IGNORES_TEXT } from '../../conversation/fast-text.ts';
import type { Tool, Turn } from '../../conversation/types.ts';
import { isObject, type JsonObject } from '../../lib/json/json.ts';
import type { Feature, FeatureContext, Interceptor } from '../feature.ts';

const { wireOf, ownResidue } = wireNodes('openai-chat');

const concerns = ({ client, target }: FeatureContext): boolean =>
  target.protocol === client && target.profile.legacyFunctions !== true;

/** Place it before every feature that knows tools, calls or results. */
export const legacyFunctions: Feature = {
  name: 'legacy-functions',
  mayApply: (_body, context) => concerns(context),
  request(conversation, context) {
    if (!concerns(context)) return conversation;
    const { settings } = conversation;
    const turns = withTools(conversation.turns);
    const { functions, function_call: choice } = conversation.origin?.value ?? {};
    if (turns === conversation.turns && !Array.isArray(functions)) return conversation;
    context.notes.add('parameter_mapped', 'functions', 'as tools');
    const { toolChoice } = settings;
    // New references, so that the codec writes them.
    return withParts(conversation, {
      turns,
      tools: conversation.tools.map(asTool),
      settings:
        choice === undefined
          ? settings
          : { ...settings, toolChoice: toolChoice && { ...toolChoice } },
    });
  },
  intercept: ({ origin }, context) =>
    concerns(context) && Array.isArray(origin?.value.functions) ? new LegacyAnswer() : undefined,
};

function asTool(tool: Tool): Tool {
  const value = ownResidue(tool);
  const isLegacy = tool.type === 'function' && typeof value.name === 'string';
  if (!isLegacy || value.type !== undefined) return tool;
  return { ...tool, wire: wireOf({ type: 'function', function: value }) };
}

/** The history with calls and results that have ids; the same list where it has no functions. */
function withTools(turns: readonly Turn[]): readonly Turn[] {
  /** The id of the call that waits for its result, by the function's name. */
  const open = new Map<string, string>();
  let calls = 0;
  let changed = false;
  const out = turns.map((turn) => {
    const message = ownResidue(turn);
    const isResult = message.role === 'function';
    const called = isResult ? undefined : calledIn(message);
    if (called === undefined && !isResult) return turn;
    changed = true;
    if (called === undefined) {
      const name = String(message.name);
      return resultTurn(turn, message, open.get(name) ?? name);
    }
    const id = `call_${calls++}`;
    open.set(String(called.name), id);
    return callTurn(turn, message, called, id);
  });
  return changed ? out : turns;
}

/** Some vendors send an empty `function_call` beside calls of tools, and clients send it back. */
function calledIn({ function_call: called, tool_calls: calls }: JsonObject) {
  const isCall = isObject(called) && typeof called.name === 'string' && called.name !== '';
  return isCall && !Array.isArray(calls) ? called : undefined;
}

function callTurn(turn: Turn, message: JsonObject, called: JsonObject, id: string): Turn {
  const { function_call: _, ...rest } = message;
  // Servers that put calls into a template parse their arguments.
  const input = { ...called, arguments: called.arguments || '{}' };
  const call = { id, type: 'function', function: input };
  const blocks = turn.blocks.map((block) =>
    block.type === 'tool-call' ? { ...block, id, wire: wireOf(call) } : block,
  );
  return { ...turn, blocks, wire: wireOf({ ...rest, tool_calls: [call] }) };
}

function resultTurn(turn: Turn, message: JsonObject, id: string): Turn {
  const { role: _, name: __, ...rest } = message;
  const wire = wireOf({ ...rest, role: 'tool', tool_call_id: id });
  const blocks = turn.blocks.map((block) =>
    block.type === 'tool-result' ? { ...block, callId: id, wire } : block,
  );
  return { ...turn, blocks, wire };
}

/** Has calls, and the reason to finish, written anew: the encoder knows which form the client reads. */
class LegacyAnswer implements Interceptor {
  readonly fast = IGNORES_TEXT;
  #called = false;

  event(event: StreamEvent): StreamEvent {
    this.#called ||= event.type === 'block-start' && event.head.type === 'tool-call';
    return this.#called ? { ...event } : event;
  }

  end(): readonly StreamEvent[] {
    return [];
  }
}
