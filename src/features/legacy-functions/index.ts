/** Asks vendors of Chat that have tools alone in their form, for clients that know `functions` and `function_call` alone. */

import { wireNodes, withParts } from '../../conversation/edit.ts';
import type { StreamEvent } from '../../conversation/events.ts';
import { IGNORES_TEXT } from '../../conversation/fast-text.ts';
import { targetAfterRefusals } from '../../conversation/refusal/refusal.ts';
import type { Tool, Turn } from '../../conversation/types.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import type { Feature, FeatureContext, Interceptor } from '../feature.ts';

const { wireOf, ownResidue } = wireNodes('openai-chat');

const concerns = ({ client, target }: FeatureContext): boolean =>
  target.protocol === client && target.profile.legacyFunctions !== true;

const FUNCTION_CALL = needles('"function_call"');

/** @param certain the request has functions; otherwise they are looked for in its history once the vendor has refused some */
const functionsAsTools = (certain: boolean): Feature => ({
  name: 'legacy-functions',
  mayApply: (body, context) =>
    concerns(context) &&
    (certain ||
      (isRefused(context) && (context.refusals !== undefined || containsAny(body, FUNCTION_CALL)))),
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
});

const isRefused = ({ target, refusals }: FeatureContext): boolean =>
  targetAfterRefusals(target, refusals).profile.legacyFunctions === false;

function asTool(tool: Tool): Tool {
  const value = ownResidue(tool);
  const isLegacy = tool.type === 'function' && typeof value.name === 'string';
  if (!isLegacy || value.type !== undefined) return tool;
  return { ...tool, wire: wireOf({ type: 'function', function: value }) };
}

/** The history with calls and results that have ids; the same list where it has no functions. */
function withTools(turns: readonly Turn[]): readonly Turn[] {
  if (!turns.some(isLegacy)) return turns;
  const taken = new Set(turns.flatMap(({ blocks }) => blocks.map(idOf)));
  const waiting = new WaitingCalls();
  let calls = 0;
  return turns.map((given) => {
    const turn = withoutSecondForm(given);
    const message = ownResidue(turn);
    const called = calledIn(message);
    if (called !== undefined) {
      while (taken.has(`call_${calls}`)) calls++;
      const id = `call_${calls++}`;
      waiting.add(String(called.name), id);
      return callTurn(turn, message, called, id);
    }
    for (const block of turn.blocks) {
      if (block.type === 'tool-call') waiting.add(block.name, block.id);
    }
    const { role, name, tool_call_id: answered } = message;
    if (role !== 'function' && role !== 'tool') return turn;
    // A client that has learnt tools in mid-session may have both forms in one pair.
    if (role === 'tool' && waiting.take(answered)) return turn;
    const id = waiting.next(name ?? answered) ?? (role === 'tool' ? answered : name);
    return id === answered ? turn : resultTurn(turn, message, String(id));
  });
}

const isLegacy = (turn: Turn): boolean => {
  const { role, function_call: called } = ownResidue(turn);
  return role === 'function' || isObject(called);
};

const idOf = (block: Turn['blocks'][number]): string | undefined =>
  block.type === 'tool-call' ? block.id : undefined;

/** Calls without their results so far; those of a name in their order. */
class WaitingCalls {
  readonly #nameOf = new Map<string, string>();
  readonly #byName = new Map<string, Set<string>>();

  add(name: string, id: string): void {
    this.#nameOf.set(id, name);
    const ids = this.#byName.get(name);
    if (ids === undefined) this.#byName.set(name, new Set([id]));
    else ids.add(id);
  }

  /** Is the call of this id one of them? It has its result then. */
  take(id: Json | undefined): boolean {
    const name = this.#nameOf.get(id as string);
    return name !== undefined && this.#byName.get(name)!.delete(id as string);
  }

  /** The id of the first call of this name, which has its result then. */
  next(name: Json | undefined): string | undefined {
    const ids = this.#byName.get(name as string);
    const [first] = ids ?? [];
    if (first !== undefined) ids!.delete(first);
    return first;
  }
}

/** Some vendors send a `function_call` beside the same call of a tool, or an empty one, and clients send it back. */
function withoutSecondForm(turn: Turn): Turn {
  const { function_call: called, ...rest } = ownResidue(turn);
  if (called === undefined || !Array.isArray(rest.tool_calls)) return turn;
  const blocks = turn.blocks.filter(
    ({ type, ...block }) => type !== 'tool-call' || 'wire' in block,
  );
  return { ...turn, blocks, wire: wireOf(rest) };
}

function calledIn({ function_call: called }: JsonObject) {
  const isCall = isObject(called) && typeof called.name === 'string' && called.name !== '';
  return isCall ? called : undefined;
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

/** Place it before every feature that knows tools, calls or results. */
export const legacyFunctions = functionsAsTools(true);
/** The same for a request with tools, whose history may have calls of functions. */
export const legacyHistory = functionsAsTools(false);

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
