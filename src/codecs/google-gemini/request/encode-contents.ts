/** Encodes turns as Gemini contents. Unchanged turns of the same protocol go out as they came. */

import type { Notes } from '../../../conversation/notes.ts';
import { type KnownNodes, KnownUnits } from '../../../conversation/session/known-nodes.ts';
import type { Target } from '../../../conversation/target.ts';
import type { Block, Conversation, Turn } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { field, geminiNames, list, ownResidue, ownWire, PROTOCOL, without } from '../wire.ts';
import {
  answerParts,
  inputParts,
  noteOnce,
  type PartContext,
  resultParts,
  signatureFor,
  verbatim,
} from './encode-parts.ts';

/** The parts of the body that say what was said. */
export interface EncodedContents {
  readonly contents: Json;
  readonly systemInstruction?: Json | undefined;
}

/** What Google's model reads where the history does not begin with the user. */
const OPENING = 'Continue.';

/** The `contents` and `systemInstruction` of a request for this target. Never throws. */
export function encodeContents(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  known: KnownNodes,
): EncodedContents {
  const { origin, turns, system, tools } = conversation;
  const own = origin?.protocol === PROTOCOL;
  const names = geminiNames(tools);
  const callNames = new Map<string, string>();
  const flat = (name: string, namespace?: string) =>
    own && namespace === undefined ? name : names.flat(name, namespace);
  for (const { blocks } of turns) {
    for (const block of blocks) {
      if (block.type === 'tool-call') callNames.set(block.id, flat(block.name, block.namespace));
    }
  }
  const context: PartContext = { target, notes, flat, callNames };
  const { provider, model, profile } = target;
  const shape = [PROTOCOL, provider, model, profile, own, names];
  const nodes = new KnownUnits(context, known, shape);
  const lead = turns.findIndex(({ role }) => role === 'user' || role === 'assistant');
  const spoken = lead < 0 ? [] : turns.slice(lead);
  const instructions = [
    ...system,
    ...turns.slice(0, lead < 0 ? turns.length : lead).flatMap(({ blocks }) => blocks),
  ];
  const sameSystem = own && lead === 0 && system === origin.parts.system;
  return {
    contents:
      own && turns === origin.parts.turns && isVerbatim(turns, context)
        ? field(origin.value, 'contents')!
        : writeContents(spoken, context, nodes, own),
    systemInstruction: sameSystem
      ? field(origin.value, 'systemInstruction')
      : encodeSystem(instructions, conversation, context),
  };
}

/** May all turns go out as they came? Not if a part carries an envelope or another provider's seal. */
const isVerbatim = (turns: readonly Turn[], context: PartContext): boolean =>
  turns.every(({ blocks }) =>
    blocks.every((block) =>
      block.wire === undefined
        ? isReadable(block, context)
        : verbatim(block, context) === block.wire.value,
    ),
  );

/** A block that was joined from several parts has no wire to ask: another maker's seal in it is an error at Google. */
const isReadable = (block: Block, context: PartContext): boolean =>
  block.type !== 'reasoning' ||
  block.sealed === undefined ||
  signatureFor(block.sealed, context) !== undefined;

function encodeSystem(
  blocks: readonly Block[],
  { origin }: Conversation,
  context: PartContext,
): JsonObject | undefined {
  const parts = blocks.flatMap((block) => inputParts(block, context));
  if (parts.length === 0) return undefined;
  const before =
    origin?.protocol === PROTOCOL ? field(origin.value, 'systemInstruction') : undefined;
  return { ...(isObject(before) ? without(before, ['parts']) : {}), parts };
}

function writeContents(
  turns: readonly Turn[],
  context: PartContext,
  nodes: KnownUnits<PartContext>,
  own: boolean,
): readonly Json[] {
  const writer = new ContentWriter(context, nodes);
  for (const turn of turns) writer.turn(turn, own);
  return writer.done();
}

/** Collects contents: neighbours of one role become one, results follow their calls in the calls' order. */
class ContentWriter {
  readonly #out: Json[] = [];
  #role: 'user' | 'model' | undefined;
  #parts: JsonObject[] = [];
  /** The responses of an input, held until it is complete, by the place of their call. */
  #responses: { readonly at: number; readonly part: JsonObject }[] = [];
  /** The places of the calls of the last answer, by id. */
  #calls = new Map<string, number>();
  /** A call of the open answer has been written: only the first one of a step is signed. */
  #called = false;
  #residue: JsonObject = {};

  constructor(
    private readonly context: PartContext,
    private readonly nodes: KnownUnits<PartContext>,
  ) {}

  turn(turn: Turn, own: boolean): void {
    const whole = own ? this.#asItCame(turn) : undefined;
    if (whole !== undefined) {
      this.#flush();
      this.#remember(turn);
      this.#out.push(whole);
      return;
    }
    if (turn.role === 'assistant') this.#answer(turn);
    else this.#input(turn);
  }

  #asItCame(turn: Turn): JsonObject | undefined {
    const content = ownWire(turn);
    if (!isObject(content)) return undefined;
    const parts = list(content.parts) ?? [];
    const same =
      parts.length === turn.blocks.length &&
      turn.blocks.every((block, i) => verbatim(block, this.context) === parts[i]);
    // Calls without a signature get one where the model wants it.
    const signs = this.context.target.profile.callSignatures === true && turn.role === 'assistant';
    return same && !(signs && turn.blocks.some(isCall)) ? content : undefined;
  }

  /** Notes the calls of an answer that goes out as it came: results in turns behind it may be built anew. */
  #remember(turn: Turn): void {
    if (turn.role !== 'assistant') return;
    this.#calls = new Map();
    for (const block of turn.blocks) {
      if (block.type === 'tool-call') this.#calls.set(block.id, this.#calls.size);
    }
  }

  #answer(turn: Turn): void {
    if (this.#role !== 'model') {
      this.#flush();
      this.#role = 'model';
      this.#calls = new Map();
      this.#called = false;
      this.#residue = without(ownResidue(turn), ['role', 'parts']);
    }
    for (const block of turn.blocks) {
      if (block.type === 'tool-result' && block.by !== 'provider') {
        this.#response(block);
        continue;
      }
      const isClients = isCall(block);
      const first = isClients && !this.#called;
      const parts = this.nodes.of(block, [first], (context) => answerParts(block, context, first));
      for (const part of parts) this.#parts.push(part);
      if (isClients && parts.length > 0) {
        this.#called = true;
        this.#calls.set(block.id, this.#calls.size);
      }
    }
  }

  #input(turn: Turn): void {
    if (this.#role !== 'user') {
      const responses = this.#responses;
      this.#responses = [];
      this.#flush();
      this.#responses = responses;
      this.#role = 'user';
      this.#residue = without(ownResidue(turn), ['role', 'parts']);
    }
    if (turn.role !== 'user')
      noteOnce(this.context, 'content_bridged', `${turn.role} turn as user text`);
    for (const block of turn.blocks) {
      if (block.type === 'tool-result' && block.by !== 'provider') this.#response(block);
      else {
        const parts = this.nodes.of(block, [], (context) => inputParts(block, context));
        for (const part of parts) this.#parts.push(part);
      }
    }
  }

  #response(block: Block & { type: 'tool-result' }): void {
    const name = this.context.callNames.get(block.callId);
    const { part, media } = this.nodes.of(block, [name], (context) => resultParts(block, context));
    const at = this.#calls.get(block.callId) ?? Number.MAX_SAFE_INTEGER;
    this.#responses.push({ at, part });
    for (const one of media) this.#parts.push(one);
  }

  #flush(): void {
    const responses = this.#responses.sort((a, b) => a.at - b.at).map(({ part }) => part);
    if (this.#role === 'model' && responses.length > 0) {
      this.#write('model', this.#parts);
      this.#write('user', responses);
    } else if (this.#role !== undefined) this.#write(this.#role, [...responses, ...this.#parts]);
    this.#responses = [];
    this.#parts = [];
    this.#role = undefined;
  }

  #write(role: 'user' | 'model', parts: readonly JsonObject[]): void {
    if (parts.length > 0) this.#out.push({ ...this.#residue, role, parts });
  }

  done(): readonly Json[] {
    this.#flush();
    const first = this.#out[0];
    // "Please ensure that function call turn comes immediately after a user turn".
    if (first === undefined || (isObject(first) && first.role === 'model')) {
      noteOnce(this.context, 'user_turn_added', 'before the first answer');
      return [{ role: 'user', parts: [{ text: OPENING }] }, ...this.#out];
    }
    return this.#out;
  }
}

const isCall = (block: Block): block is Block & { type: 'tool-call' } =>
  block.type === 'tool-call' && block.by !== 'provider';
