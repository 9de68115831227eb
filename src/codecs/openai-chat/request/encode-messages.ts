/** Turns to Chat messages: untouched ones verbatim, the rest built from their meaning. */

import type { Notes } from '../../../conversation/notes.ts';
import type { Target } from '../../../conversation/target.ts';
import { toolNames } from '../../../conversation/tools/tool-names.ts';
import type { Block, Conversation, ToolResultBlock, Turn } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { hasEnvelope } from '../reasoning.ts';
import {
  compact,
  isOwn,
  NAME_LIMIT,
  ownResidue,
  ownWire,
  PROTOCOL,
  text,
  without,
} from '../wire.ts';
import { assistantMessage } from './encode-assistant.ts';
import { inputParts, joinedText, type MessageContext, resultMessage } from './encode-content.ts';

/** The `messages` of a request for this target. Never throws. */
export function encodeMessages(
  conversation: Conversation,
  target: Target,
  notes: Notes,
): readonly Json[] {
  const { origin, turns, system } = conversation;
  const own = origin?.protocol === PROTOCOL;
  const carriers = turns.some(holdsEnvelope);
  if (own && turns === origin.parts.turns && system === origin.parts.system && !carriers) {
    return origin.value.messages as readonly Json[];
  }
  const names = toolNames(conversation.tools, NAME_LIMIT);
  const context: MessageContext = {
    target,
    notes,
    own,
    noted: new Set(),
    // Declarations of this protocol go out with the client's own names, however odd.
    flat: (name, namespace) =>
      own && namespace === undefined ? name : names.flat(name, namespace),
  };
  const writer = new MessageWriter(context);
  const lead = leadingInstructions(conversation, context);
  if (lead.text !== '') writer.lead(lead.text);
  const rest = turns.slice(lead.turns);
  for (let i = 0; i < rest.length; ) {
    const turn = rest[i]!;
    if (turn.role === 'assistant') {
      const run = assistantRun(rest, i);
      writer.assistant(run);
      i += run.length;
    } else {
      writer.input(turn);
      i++;
    }
  }
  return lead.text === '' ? writer.done() : mergeSystem(writer.done());
}

/**
 * Instructions that were added to a conversation of this protocol go into the client's own system
 * message: chat templates of local models take one.
 */
function mergeSystem(messages: readonly Json[]): readonly Json[] {
  const [lead, own, ...rest] = messages;
  if (!isObject(lead) || !isObject(own) || own.role !== 'system') return messages;
  if (typeof own.content !== 'string') return messages;
  return [{ ...own, content: `${String(lead.content)}\n\n${own.content}` }, ...rest];
}

/** A message that holds a carrier of ours: only this gateway can read it, so it is built anew. */
function holdsEnvelope(turn: Turn): boolean {
  const own = turn.role === 'assistant' ? ownWire(turn) : undefined;
  return isObject(own) && own.reasoning_details !== undefined && hasEnvelope(own);
}

const verbatim = (turn: Turn): Json | undefined =>
  holdsEnvelope(turn) ? undefined : ownWire(turn);

/** Instructions and the system turns before the first other turn, as one text. */
function leadingInstructions(conversation: Conversation, context: MessageContext) {
  const texts = [joinedText(conversation.system, context, '\n\n')];
  let turns = 0;
  for (const turn of conversation.turns) {
    const leads =
      turn.role === 'system' ||
      (turn.role === 'developer' && !context.target.profile.developerRole);
    if (!leads || isOwn(turn)) break;
    texts.push(joinedText(turn.blocks, context, '\n\n'));
    turns++;
  }
  return { text: texts.filter((t) => t !== '').join('\n\n'), turns };
}

/**
 * Neighbouring assistant turns that are one answer: Responses splits reasoning, message and calls
 * into items. Messages of this protocol stand for themselves.
 */
function assistantRun(turns: readonly Turn[], from: number): readonly Turn[] {
  if (isOwn(turns[from]!)) return [turns[from]!];
  let to = from + 1;
  while (to < turns.length && turns[to]!.role === 'assistant' && !isOwn(turns[to]!)) to++;
  return turns.slice(from, to);
}

/** Collects messages; keeps tool messages together behind the calls that they answer. */
class MessageWriter {
  readonly #context: MessageContext;
  readonly #out: Json[] = [];
  /** Media of tool results, which wait until the tool messages are through. */
  #media: JsonObject[] = [];
  /** What stands between the calls and their results in other protocols, and follows them here. */
  #later: Json[] = [];

  constructor(context: MessageContext) {
    this.#context = context;
  }

  lead(said: string): void {
    this.#out.push({ role: 'system', content: said });
  }

  assistant(run: readonly Turn[]): void {
    this.#flush();
    const own = run.length === 1 ? verbatim(run[0]!) : undefined;
    if (own !== undefined) {
      this.#out.push(own);
      return;
    }
    const { message, results } = assistantMessage(run, this.#context);
    if (message !== undefined) this.#out.push(message);
    for (const result of results) this.#result(result);
  }

  /** A turn that is not the model's: system, developer or user, tool results among its blocks. */
  input(turn: Turn): void {
    const own = verbatim(turn);
    if (own !== undefined) {
      if (isObject(own) && (own.role === 'tool' || own.role === 'function')) this.#out.push(own);
      else this.#other(own);
      return;
    }
    const others: Block[] = [];
    for (const block of turn.blocks) {
      if (block.type === 'tool-result' && block.by !== 'provider') this.#result(block);
      else others.push(block);
    }
    const message = inputMessage(turn, others, this.#context);
    if (message !== undefined) this.#other(message);
  }

  #result(block: ToolResultBlock): void {
    const { message, media } = resultMessage(block, this.#context);
    this.#out.push(message);
    if (media.length > 0) {
      this.#media.push(
        { type: 'text', text: `Attached to the result of ${block.callId}:` },
        ...media,
      );
    }
  }

  /** Order is the client's in its own protocol; elsewhere results go first. */
  #other(message: Json): void {
    if (this.#context.own) {
      this.#flush();
      this.#out.push(message);
    } else this.#later.push(message);
  }

  #flush(): void {
    if (this.#media.length > 0) this.#out.push({ role: 'user', content: this.#media });
    for (const message of this.#later) this.#out.push(message);
    this.#media = [];
    this.#later = [];
  }

  done(): readonly Json[] {
    this.#flush();
    // An empty prompt is for the vendor to judge; an empty list is malformed.
    return this.#out.length > 0 ? this.#out : [{ role: 'user', content: '' }];
  }
}

/** A system, developer or user message; undefined when nothing of it can be said. */
function inputMessage(
  turn: Turn,
  blocks: readonly Block[],
  context: MessageContext,
): JsonObject | undefined {
  const from = ownResidue(turn);
  const keep = without(from, ['role', 'content', 'tool_call_id']);
  if (turn.role !== 'user') {
    const developer =
      turn.role === 'developer' && (isOwn(turn) || context.target.profile.developerRole);
    const role = developer ? 'developer' : 'system';
    const asArray = Array.isArray(from.content);
    const content = asArray ? inputParts(blocks, context) : joinedText(blocks, context, '\n\n');
    return content.length === 0 && !isOwn(turn) ? undefined : { ...keep, role, content };
  }
  const parts = inputParts(blocks, context);
  const only =
    parts.length === 1 && Object.keys(parts[0]!).length === 2 ? text(parts[0]!.text) : undefined;
  if (parts.length === 0) {
    // What the client sent empty stays empty; a turn of which nothing is left says nothing.
    return turn.blocks.length === 0 && isOwn(turn)
      ? { ...keep, role: 'user', content: '' }
      : undefined;
  }
  const array = Array.isArray(from.content) || only === undefined;
  return compact({ ...keep, role: 'user', content: array ? parts : only });
}
