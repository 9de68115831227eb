/** The client's request: its bytes, what a quick scan of them shows, and the conversation, decoded once and late. */

import type { Codec } from '../codecs/codec.ts';
import {
  checkNames,
  checkNamesOf,
  checkNested,
  hasRepeatedNames,
  type Members,
} from '../conversation/body-names.ts';
import { GatewayError, invalid } from '../conversation/errors.ts';
import { type Note, Notes } from '../conversation/notes.ts';
import { hasForeignTools } from '../conversation/tools/chat-form.ts';
import type { Conversation, ProtocolName, Settings } from '../conversation/types.ts';
import { ByteList, wholeBytes } from '../lib/bytes/byte-list.ts';
import { asBuffer, containsAny, needles, splice } from '../lib/bytes/bytes.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  type Member,
  parseJson,
  topLevel,
} from '../lib/json/json.ts';
import { topLevelInSlices } from '../lib/json/large-json.ts';
import { holdsMoreValues, PLAIN_VALUES, TEXTS } from '../lib/json/many-values.ts';
import { wholeCharacters } from '../lib/json/whole-characters.ts';
import { runInSlices } from '../lib/loop/steps.ts';
import { containsControl } from '../lib/text/printable-text.ts';
import { messageOf } from '../lib/text/thrown.ts';
import { type Asker, type Histories, type History, MIN_BYTES } from './histories/histories.ts';

// Below this size a parse costs less than it could save, and it catches malformed bodies right here.
const PARSE_AT_ONCE = MIN_BYTES;
/** A body that is larger is looked through in slices first. */
const LARGE = 2 * 1024 * 1024;
/** Members, objects, lists and long numbers of a body: more than twice what `limits.blocks` blocks have. Names take the most time. */
const MAX_VALUES = 300_000;

const utf8 = new TextDecoder('utf-8', { fatal: true });
const EXTENSION = needles('"hopgate"');
const HISTORY = needles(
  '"tool_use',
  '"tool_calls',
  '"function_call',
  '"tool_result',
  '"custom_tool_call',
  '"functionCall',
  '"functionResponse',
  '"function_response',
);

/** Members that only another API's request has. */
const FOREIGN = needles('"input"', '"custom"');

const NONE: readonly Note[] = [];
const HALVES: readonly Note[] = [
  { name: 'malformed_content_mended', what: 'half of a surrogate pair as U+FFFD' },
];

/** A body whose tool history the decoder can read; the same reference where nothing can be done. */
export type RepairBody = (body: Json, protocol: ProtocolName, notes: Notes) => Json;

/** What the reading of a body depends on. */
export interface ReadOptions {
  readonly mend?: RepairBody | undefined;
  /** `limits.blocks`: a body with more is not decoded; 0 = no limit. */
  readonly mostBlocks?: number;
  /** What sessions held before; undefined: every turn is read in full. */
  readonly histories?: Histories | undefined;
  /** Whose session it is; needed with `histories`. */
  readonly asker?: Asker;
}

/**
 * The request of a body of whatever size; only a large one is waited for.
 * @throws GatewayError as the constructor of {@link ClientRequest} does, and for a body that is blank for a megabyte
 */
export function clientRequest(
  protocol: Codec,
  body: Uint8Array,
  options: ReadOptions = {},
): ClientRequest | Promise<ClientRequest> {
  return body.length < MIN_BYTES
    ? new ClientRequest(protocol, asBuffer(body), options)
    : largeClientRequest(protocol, asBuffer(body), options);
}

async function largeClientRequest(
  protocol: Codec,
  body: Buffer,
  options: ReadOptions,
): Promise<ClientRequest> {
  const { histories, asker } = options;
  const known = asker && histories?.read(asker, body);
  const history = known instanceof Promise ? await known : known;
  // What the session's last turn held was looked at then, and is not parsed again.
  await checkValues(body, history?.pieces.fresh);
  if (history !== undefined) {
    const { members } = history.pieces;
    // With the extension cut out the bytes are others.
    const own = members.has('hopgate') ? undefined : history;
    return new ClientRequest(protocol, body, options, members, own);
  }
  if (body.length <= LARGE) return new ClientRequest(protocol, body, options);
  const members = await topLevelInSlices(body);
  if (members === 'blank') {
    throw invalid('The request body holds more than a megabyte of white space in one place.');
  }
  if (members === undefined) throw notAnObject(body);
  return new ClientRequest(protocol, body, options, members);
}

/**
 * Parsing is one step of the event loop, so a body must not hold too much to parse. A small one cannot.
 * @param ranges of bytes that are new: start, end, start, end …; left out: all of them
 * @throws GatewayError invalid_request
 */
export async function checkValues(
  body: Buffer,
  ranges: readonly number[] = [0, body.length],
): Promise<void> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for (let i = 0; i < ranges.length; i += 2) {
    const part = body.subarray(ranges[i], ranges[i + 1]);
    bytes += part.length;
    parts.push(part);
  }
  if (bytes <= LARGE || !(await runInSlices(holdsMoreValues(parts, MAX_VALUES)))) return;
  throw invalid(
    `The request body holds more than ${MAX_VALUES} members, objects, lists and numbers of 16 digits, more than ${TEXTS * MAX_VALUES} texts, or more than ${PLAIN_VALUES * MAX_VALUES} values, all levels together.`,
  );
}

/** The request of one exchange. Immutable but for what it remembers of its own decoding. */
export class ClientRequest {
  readonly protocol: Codec;
  /** The body as it may be forwarded: the client's bytes, without the `hopgate` extension. */
  readonly bytes: Buffer;
  /** The `hopgate: {…}` extension of the body, where there was one. */
  readonly extension: JsonObject | undefined;
  readonly model: string;
  readonly stream: boolean;
  /** What the session's last turn held; undefined: nothing is known, or kept. */
  readonly history: History | undefined;
  #value: Json | undefined;
  #conversation: Conversation | undefined;
  readonly #mend: RepairBody | undefined;
  #mended: Notes | undefined;
  readonly #halves: readonly Note[];
  #modelAt: readonly [number, number] | undefined;
  /** All members of `bytes`, where they are known. */
  readonly #members: Members | undefined;
  /** Of a body that was not parsed at once. */
  readonly #glance: Members | undefined;
  readonly #mostBlocks: number;

  /**
   * @param members those of the body, where they are known
   * @param history of its session, with the pieces of this body
   * @throws GatewayError invalid_request: not UTF-8, not JSON, not an object, model missing, …
   */
  constructor(
    protocol: Codec,
    body: Uint8Array,
    { mend, mostBlocks = 0 }: ReadOptions = {},
    members?: Members,
    history?: History,
  ) {
    this.protocol = protocol;
    this.#mend = mend;
    this.#mostBlocks = mostBlocks;
    const sent = asBuffer(body);
    const whole = wholeCharacters(sent);
    this.#halves = whole === sent ? NONE : HALVES;
    // The history comes from the body as it was sent, halves included.
    this.history = whole === sent ? history : undefined;
    if (members !== undefined) checkNames(members);
    const cut = containsAny(whole, EXTENSION) ? cutExtension(whole, members) : undefined;
    this.#members = cut === undefined ? members : undefined;
    this.bytes = cut === undefined ? whole : asBuffer(cut.bytes);
    this.extension = cut?.extension;
    if (this.bytes.length < PARSE_AT_ONCE) {
      const { model, settings } = this.conversation;
      checkNamesOf(this.#parsed, this.bytes);
      this.model = checkedModel(model);
      this.stream = settings.stream;
      return;
    }
    const glance = this.#members ?? topLevel(this.bytes);
    if (glance === undefined) throw notAnObject(this.bytes);
    this.#glance = glance;
    checkNames(glance);
    const named = glance.get('model');
    if (named !== undefined) this.#modelAt = [named.valueStart, named.valueEnd];
    const model = this.#valueOf(named);
    if (typeof model !== 'string' || model === '') {
      throw invalid("Missing or invalid required parameter: 'model'.", 'model');
    }
    this.model = checkedModel(model);
    this.stream = this.#valueOf(glance.get('stream')) === true;
    // Bytes of another API's form are not forwarded, so it must be known now.
    if (mend === undefined || protocol.name !== 'openai-chat') return;
    const choice = glance.get('tool_choice');
    const isNamed = choice !== undefined && this.bytes[choice.valueStart] === BRACE;
    const isOthers = isNamed && hasForeignTools({ tool_choice: this.#valueOf(choice) });
    if (isOthers || isForeign(this.bytes, glance)) this.conversation;
  }

  #valueOf(member: Member | undefined): Json | undefined {
    return member && decodeJson(this.bytes.subarray(member.valueStart, member.valueEnd));
  }

  /** Has the body a member of this name at its top? */
  has(name: string): boolean {
    if (this.#glance !== undefined) return this.#glance.has(name);
    const value = this.#parsed;
    return isObject(value) && Object.hasOwn(value, name);
  }

  /** Where its members stand in `bytes`, where that is known already. */
  get members(): Members | undefined {
    return this.#members;
  }

  /** As of {@link checkNested}. */
  checkNested(): void {
    // A small body is parsed already, and mostly no object in it has a name twice: its members need not be found.
    if (this.#glance === undefined && !hasRepeatedNames(this.bytes, this.#parsed)) return;
    checkNested(this.bytes, this.#members ?? this.#glance);
  }

  get #parsed(): Json {
    this.#value ??= this.#valueOfPieces() ?? decodeJson(this.bytes);
    return this.#value;
  }

  /** Reads what is new of a large body in slices, so that {@link conversation} has less to do in one go. */
  async readAhead(): Promise<void> {
    if (this.#value !== undefined || this.history === undefined) return;
    try {
      await runInSlices(this.history.pieces.valueSteps());
    } catch {
      // The decoder says what is wrong with it.
    }
  }

  /** Undefined where there are no pieces, and where one cannot be read: the whole says why. */
  #valueOfPieces(): Json | undefined {
    try {
      return this.history?.pieces.value;
    } catch {
      return undefined;
    }
  }

  /** The frozen original of the whole exchange. Decoded on first use. */
  get conversation(): Conversation {
    this.#conversation ??= this.#decode();
    return this.#conversation;
  }

  /** The conversation; undefined where nothing has needed that of a large body so far. */
  get decoded(): Conversation | undefined {
    return this.#conversation;
  }

  /** What the client asked for; undefined where nothing has needed the conversation of a large body so far. */
  get settings(): Settings | undefined {
    return this.#conversation?.settings;
  }

  /** What had to be mended before the body could be read; its bytes are not to be forwarded then. */
  get repairs(): readonly Note[] {
    return this.#mended === undefined ? this.#halves : [...this.#halves, ...this.#mended.all];
  }

  #decode(): Conversation {
    // Decoding and repair are linear, but each is one step of the event loop.
    if (this.#mostBlocks > 0 && countBlocks(this.#parsed) > this.#mostBlocks) {
      throw invalid(
        `The request has more than ${this.#mostBlocks} messages, content blocks and tools (limits.blocks).`,
      );
    }
    try {
      const conversation = this.protocol.decodeRequest(this.#parsed, this.history?.known);
      const isOwn = this.protocol.name !== 'openai-chat' || !hasForeignTools(this.#parsed);
      return isOwn ? conversation : (this.#decodeMended() ?? conversation);
    } catch (thrown) {
      // Damage of a tool history bricks a session for good if it is not mended; any other malformed
      // field is the client's to put right, and the error says which.
      if (!containsAny(this.bytes, HISTORY) && !this.#mayBeForeign) throw thrown;
      const conversation = this.#decodeMended();
      if (conversation === undefined) throw thrown;
      return conversation;
    }
  }

  /** Undefined where nothing can be mended, or not all. */
  #decodeMended(): Conversation | undefined {
    const notes = new Notes();
    const value = this.#mend?.(this.#parsed, this.protocol.name, notes) ?? this.#parsed;
    if (value === this.#parsed) return undefined;
    try {
      const conversation = this.protocol.decodeRequest(value);
      this.#mended = notes;
      return conversation;
    } catch {
      return undefined;
    }
  }

  /** Only Chat gets bodies of another API, of Responses. */
  get #mayBeForeign(): boolean {
    return this.protocol.name === 'openai-chat' && containsAny(this.bytes, FOREIGN);
  }

  /** The client reads another form of answers than its protocol's own, so that they are not forwarded as they come. */
  get readsOther(): boolean {
    return (
      this.#mended !== undefined &&
      this.conversation.tools.some((tool) => tool.type === 'custom' && tool.asFunction === true)
    );
  }

  /** The body as JSON. @throws GatewayError invalid_request: not UTF-8, not JSON, nested too deeply */
  get value(): Json {
    return this.#parsed;
  }

  /** The client's bytes with another model name, or the very bytes when it is the same. */
  bytesFor(model: string): Uint8Array | ByteList {
    if (model === this.model) return this.bytes;
    if (this.#modelAt === undefined) {
      const member = topLevel(this.bytes)?.get('model');
      if (member === undefined) throw notAnObject(this.bytes);
      this.#modelAt = [member.valueStart, member.valueEnd];
    }
    const [from, to] = this.#modelAt;
    const name = Buffer.from(JSON.stringify(model));
    const list = new ByteList([this.bytes.subarray(0, from), name, this.bytes.subarray(to)]);
    return this.bytes.length < PARSE_AT_ONCE ? wholeBytes(list) : list;
  }
}

/** May a large body be a request of Responses at Chat Completions, or hold tools of another API's form? */
function isForeign(bytes: Buffer, members: Members): boolean {
  if (!members.has('messages')) return members.has('input');
  const { valueStart, valueEnd } = members.get('tools') ?? {};
  if (valueStart === undefined) return false;
  const tools = bytes.subarray(valueStart, valueEnd);
  return !containsAny(tools, NESTED) || containsAny(tools, FREEFORM);
}

const BRACE = 0x7b;
const FREEFORM = needles('"custom"');
/** Of functions in Chat's form. In Responses' form the word is a value. */
const NESTED = needles('"function":', '"function" :');

// Longer than any name, and short enough to stand in logs, labels and headers.
const MAX_PER_NAME = 512;

/** @throws GatewayError invalid_request for what cannot be the name of a model, in whatever script */
export function checkedModel(model: string): string {
  if (model.length > MAX_PER_NAME) {
    throw invalid(`'model' is longer than ${MAX_PER_NAME} characters.`, 'model');
  }
  // Some vendors trim names: then another model's answer would be priced and counted under this one.
  if (model.trim() !== model) throw invalid("'model' begins or ends with white space.", 'model');
  // Half a character has become U+FFFD.
  if (containsControl(model) || model.includes('\ufffd')) {
    throw invalid("'model' holds a control character, a line break or half a character.", 'model');
  }
  return model;
}

/** @throws GatewayError invalid_request: empty, not UTF-8, not JSON, nested too deeply */
export function decodeJson(bytes: Uint8Array): Json {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw invalid('The request body is not valid UTF-8.');
  }
  if (text.trim() === '') throw invalid('The request body is empty.');
  try {
    return parseJson(text);
  } catch (thrown) {
    if (thrown instanceof RangeError) throw invalid('The request body is nested too deeply.');
    const detail = messageOf(thrown);
    const reason = detail.replace('JSON Parse error: ', '').slice(0, 200);
    throw invalid(`The request body is not valid JSON: ${reason}`);
  }
}

/** The precise complaint about a body that the byte scan could not follow. */
export function notAnObject(bytes: Uint8Array): GatewayError {
  try {
    decodeJson(bytes);
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown;
  }
  return invalid('The request body must be a JSON object.');
}

/** Takes the top-level member `hopgate` out of a body that may hold it, commas included. */
function cutExtension(
  body: Buffer,
  members: Members | undefined = topLevel(body),
): { bytes: Uint8Array; extension: JsonObject } | undefined {
  const own = members?.get('hopgate');
  if (members === undefined || own === undefined) return undefined;
  const value = decodeJson(body.subarray(own.valueStart, own.valueEnd));
  if (!isObject(value)) throw invalid("'hopgate' must be an object.", 'hopgate');
  const order = [...members.values()].sort((a, b) => a.keyStart - b.keyStart);
  const at = order.indexOf(own);
  const next = order[at + 1];
  const previous = order[at - 1];
  // The first member goes with the comma behind it, any other with the comma before it.
  const start = previous === undefined ? own.keyStart : previous.valueEnd;
  const end = previous === undefined && next !== undefined ? next.keyStart : own.valueEnd;
  return { bytes: splice(body, start, end, ''), extension: value };
}

const BACKGROUND_MARK = needles('"background"');
const BACKGROUND: ReadonlySet<string> = new Set(['background']);

/** Responses: `background: true`. Bodies without the word cost one look. */
export function asksForJob(request: ClientRequest): boolean {
  const { bytes } = request;
  if (!containsAny(bytes, BACKGROUND_MARK)) return false;
  const member = (request.members ?? topLevel(bytes, BACKGROUND))?.get('background');
  return (
    member !== undefined && bytes.toString('latin1', member.valueStart, member.valueEnd) === 'true'
  );
}

/** Members of a body that hold lists, in all protocols, each with the members of its items that do. */
const LISTS: readonly (readonly [name: string, inner: readonly string[]])[] = [
  ['messages', ['content', 'tool_calls']],
  ['input', ['content', 'output', 'summary']],
  ['contents', ['parts']],
  ['system', []],
  ['tools', ['functionDeclarations', 'function_declarations']],
];

/** Messages, input items, content blocks, tool calls and tools of a request body. Lists below a block are not looked at. */
export function countBlocks(body: Json): number {
  if (!isObject(body)) return 0;
  let count = 0;
  for (const [name, inner] of LISTS) {
    const list = body[name];
    if (!Array.isArray(list)) continue;
    count += list.length;
    if (inner.length === 0) continue;
    for (const item of list as readonly Json[]) {
      if (!isObject(item)) continue;
      for (const member of inner) {
        const parts = item[member];
        if (Array.isArray(parts)) count += parts.length;
      }
    }
  }
  return count;
}
