/** Encodes turns as Chat messages. Unchanged turns of the same protocol go out as they came. */

import type { Notes } from '../../../conversation/notes.ts';
import { markedPrefill } from '../../../conversation/prefill.ts';
import { type KnownNodes, KnownUnits } from '../../../conversation/session/known-nodes.ts';
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
import {
  blockText,
  inputParts,
  joinedText,
  type MessageContext,
  markField,
  resultMessage,
} from './encode-content.ts';

/** The `messages` of a request for this target. Never throws. */
export function encodeMessages(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  known: KnownNodes,
): readonly Json[] {
  const { origin, turns, system } = conversation;
  const own = origin?.protocol === PROTOCOL;
  const envelopes = turns.some(holdsEnvelope);
  if (own && turns === origin.parts.turns && system === origin.parts.system && !envelopes) {
    return origin.value.messages as readonly Json[];
  }
  const names = toolNames(conversation.tools, NAME_LIMIT);
  const context: MessageContext = {
    target,
    notes,
    own,
    // Tools of a Chat client keep their names, even names that the API would refuse.
    flat: (name, namespace) =>
      own && namespace === undefined ? name : names.flat(name, namespace),
  };
  const { provider, model, profile } = target;
  const nodes = new KnownUnits(context, known, [PROTOCOL, provider, model, profile, own, names]);
  const writer = new MessageWriter(context, nodes);
  const leading = leadingInstructions(conversation, context);
  if (leading.content !== '') writer.lead(leading.content);
  const rest = turns.slice(leading.turns);
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
  const messages = leading.content === '' ? writer.done() : mergeSystem(writer.done());
  const last = messages.at(-1);
  const isMarked =
    profile.prefill !== 'continue' && markedPrefill(conversation, target) !== undefined;
  if (!isMarked || !isObject(last)) return messages;
  return [...messages.slice(0, -1), { ...last, [profile.prefill!]: true }];
}

/**
 * Merges added instructions into the client's own system message, because chat templates of local models
 * accept only one.
 */
function mergeSystem(messages: readonly Json[]): readonly Json[] {
  const [lead, own, ...rest] = messages;
  if (!isObject(lead) || !isObject(own) || own.role !== 'system') return messages;
  if (typeof own.content !== 'string' || typeof lead.content !== 'string') return messages;
  return [{ ...own, content: `${String(lead.content)}\n\n${own.content}` }, ...rest];
}

/** Does the message hold an envelope? Only the gateway can read it, so the message is built anew. */
function holdsEnvelope(turn: Turn): boolean {
  const own = turn.role === 'assistant' ? ownWire(turn) : undefined;
  return isObject(own) && own.reasoning_details !== undefined && hasEnvelope(own);
}

const verbatim = (turn: Turn): Json | undefined =>
  holdsEnvelope(turn) ? undefined : ownWire(turn);

/** The instructions and leading system turns as one text, and how many turns they are. */
function leadingInstructions(conversation: Conversation, context: MessageContext) {
  const lists = [conversation.system];
  let turns = 0;
  for (const turn of conversation.turns) {
    const leads =
      turn.role === 'system' ||
      (turn.role === 'developer' && !context.target.profile.developerRole);
    if (!leads || isOwn(turn)) break;
    lists.push(turn.blocks);
    turns++;
  }
  return { content: instructions(lists.flat(), context), turns };
}

/** Instructions as one text; where a cache mark is carried, in parts that end with a mark. */
function instructions(blocks: readonly Block[], context: MessageContext): string | JsonObject[] {
  const parts: JsonObject[] = [];
  let texts: string[] = [];
  const close = (field: JsonObject) => {
    if (texts.length > 0) parts.push({ type: 'text', text: texts.join('\n\n'), ...field });
    texts = [];
  };
  for (const block of blocks) {
    const value = blockText(block, context);
    if (value !== '') texts.push(value);
    const field = markField(block, context);
    if (Object.keys(field).length > 0) close(field);
  }
  if (parts.length === 0) return texts.join('\n\n');
  close({});
  return parts;
}

/**
 * Consecutive assistant turns that form one answer: Responses splits reasoning, message and calls into items.
 * A Chat message is always an answer of its own.
 */
function assistantRun(turns: readonly Turn[], from: number): readonly Turn[] {
  if (isOwn(turns[from]!)) return [turns[from]!];
  let to = from + 1;
  while (to < turns.length && turns[to]!.role === 'assistant' && !isOwn(turns[to]!)) to++;
  return turns.slice(from, to);
}

/** Collects messages, and keeps tool messages together after the calls that they answer. */
class MessageWriter {
  readonly #out: Json[] = [];
  /** Media of tool results, held until all tool messages are written. */
  #media: JsonObject[] = [];
  /** Messages of other protocols from between calls and results, which follow the results in Chat. */
  #later: Json[] = [];

  constructor(
    private readonly context: MessageContext,
    private readonly nodes: KnownUnits<MessageContext>,
  ) {}

  lead(content: string | JsonObject[]): void {
    const { breakpointsAt, developerRole } = this.context.target.profile;
    const role = breakpointsAt && developerRole && !this.context.own ? 'developer' : 'system';
    this.#out.push({ role, content });
  }

  assistant(run: readonly Turn[]): void {
    this.#flush();
    const own = run.length === 1 ? verbatim(run[0]!) : undefined;
    if (own !== undefined) {
      this.#out.push(own);
      return;
    }
    const { message, results } = this.nodes.of(run[0]!, run.slice(1), (context) =>
      assistantMessage(run, context),
    );
    if (message !== undefined) this.#out.push(message);
    for (const result of results) this.#result(result);
  }

  /** A system, developer or user turn. Tool results are among its blocks. */
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
    const message = this.nodes.of(turn, [], (context) => inputMessage(turn, others, context));
    if (message !== undefined) this.#other(message);
  }

  #result(block: ToolResultBlock): void {
    const { message, media } = this.nodes.of(block, [], (context) => resultMessage(block, context));
    this.#out.push(message);
    if (media.length > 0) {
      this.#media.push(
        { type: 'text', text: `Attached to the result of ${block.callId}:` },
        ...media,
      );
    }
  }

  /** Keeps the client's order in the same protocol; otherwise results go first. */
  #other(message: Json): void {
    if (this.context.own) {
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
    // An empty list is malformed, and an empty prompt is the vendor's to judge.
    return this.#out.length > 0 ? this.#out : [{ role: 'user', content: '' }];
  }
}

/** A system, developer or user message; undefined if Chat can express nothing of it. */
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
    const content =
      asArray || blocks.some((block) => Object.keys(markField(block, context)).length > 0)
        ? inputParts(blocks, context)
        : joinedText(blocks, context, '\n\n');
    return content.length === 0 && !isOwn(turn) ? undefined : { ...keep, role, content };
  }
  const parts = inputParts(blocks, context);
  const only =
    parts.length === 1 && Object.keys(parts[0]!).length === 2 ? text(parts[0]!.text) : undefined;
  if (parts.length === 0) {
    // A message that the client sent empty is kept; a turn that became empty is dropped.
    return turn.blocks.length === 0 && isOwn(turn)
      ? { ...keep, role: 'user', content: '' }
      : undefined;
  }
  const array = Array.isArray(from.content) || only === undefined;
  return compact({ ...keep, role: 'user', content: array ? parts : only });
}
