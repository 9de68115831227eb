/** Decodes Chat Completions chunks into events, including the known deviations of vendors. */

import { brokenAnswer, type GatewayError } from '../../../conversation/errors.ts';
import { emptyFrame, type StreamEvent } from '../../../conversation/events.ts';
import type { DecodedTextTemplate, FastDecoder, TextRun } from '../../../conversation/fast-text.ts';
import { toolNames } from '../../../conversation/tools/tool-names.ts';
import { isKeepAlive, isSilent, type SseFrame } from '../../../lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import type { StreamDecoder, UpstreamContext } from '../../codec.ts';
import {
  decodeAnnotations,
  decodeImages,
  decodeSources,
  isInParts,
  reasoningOf,
} from '../parts.ts';
import {
  DetailsCollector,
  detailsText,
  hasSeal,
  onlySummaries,
  signatureSeal,
} from '../reasoning.ts';
import { CopiedThoughts } from '../reply/copied-thoughts.ts';
import { inBandError, isSaid } from '../reply/errors.ts';
import { decodeFinish, finishFailure, isOddFinish } from '../reply/finish-reason.ts';
import { servedUsage } from '../reply/usage.ts';
import {
  list,
  NAME_LIMIT,
  newCallId,
  number,
  object,
  PROTOCOL,
  text,
  wireOf,
  without,
} from '../wire.ts';
import { BlockQueue, type QueuedCall } from './block-queue.ts';
import { textTemplate } from './text-template.ts';

const DONE = '[DONE]';
const NOTHING: readonly StreamEvent[] = [];
/** Members of a chunk that are decoded, or that are noise (OpenAI pads chunks with random text). */
const CHUNK_KEYS = ['id', 'object', 'created', 'model', 'choices', 'usage', 'obfuscation', 'p'];

/** Decodes one stream. Frames after an error or `[DONE]` are skipped. */
export function decodeStream(context: UpstreamContext): StreamDecoder {
  return new ChatStreamDecoder(context);
}

interface StreamedCall {
  readonly block: QueuedCall;
  readonly id: string;
}

/** A call whose name is not whole yet. */
interface NamelessCall {
  readonly call: JsonObject;
  readonly freeform: boolean;
  name: string;
  args: string;
}

/**
 * Does a later fragment have another type or an empty name? OpenAI's client takes that for another call where a tool is strict
 * (github.com/openai/openai-node/blob/v7.59.0/src/lib/ChatCompletionStream.ts); Qwen's vendors send `name: ""`.
 */
const unsays = ({ type }: JsonObject, target: JsonObject | undefined): boolean =>
  (type !== undefined && type !== 'function' && type !== 'custom') ||
  target?.name === '' ||
  target?.name === null;

const keyOf = (call: JsonObject): number | string => number(call.index) ?? text(call.id) ?? '';

class ChatStreamDecoder implements StreamDecoder, FastDecoder {
  readonly #blocks = new BlockQueue();
  readonly #template = textTemplate();
  /** The last call of each index and of each id. */
  readonly #byIndex = new Map<number, StreamedCall>();
  readonly #byId = new Map<string, StreamedCall>();
  #lastCall: StreamedCall | undefined;
  /** By index, or by id where there is no index. */
  readonly #nameless = new Map<number | string, NamelessCall>();
  #legacy: QueuedCall | undefined;
  #details: DetailsCollector | undefined;
  readonly #copied: CopiedThoughts;
  /** The last chunk with sources beside `choices`. Perplexity and GLM repeat them in many chunks. */
  #sources: JsonObject | undefined;
  #started = false;
  /** Content has come in pieces. */
  #hasPieces = false;
  #over = false;
  #finish: string | undefined;
  #hasOddFinish = false;
  /** A chunk had a form that clients cannot use. From the first such chunk on, all are written anew. */
  #isOdd = false;
  #refused = false;

  constructor(private readonly context: UpstreamContext) {
    this.#copied = new CopiedThoughts(context.notes);
  }

  push(frame: SseFrame): readonly StreamEvent[] {
    const { data } = frame;
    if (this.#over) return NOTHING;
    if (data === undefined) return isSilent(frame) ? [emptyFrame(PROTOCOL)] : NOTHING;
    if (data === '') return [emptyFrame(PROTOCOL)];
    const read = this.#template.read(data, frame.event);
    if (read !== undefined) return this.#onlyText(read);
    if (data === DONE || data.trim() === DONE) return this.#complete();
    let chunk: unknown;
    try {
      chunk = JSON.parse(data);
    } catch (cause) {
      if (isKeepAlive(data)) return [emptyFrame(PROTOCOL)];
      throw brokenAnswer('The upstream sent a stream chunk that is not JSON.', cause);
    }
    // Google's errors come in a list.
    const listed = Array.isArray(chunk);
    if (listed) [chunk] = chunk as readonly unknown[];
    if (!isObject(chunk)) return [emptyFrame(PROTOCOL)];
    const error = inBandError(chunk, frame.event);
    if (error !== undefined) return this.#fail(error, !listed && isSaid(chunk, frame.event));
    const out = this.#chunk(chunk);
    this.#template.learn(data, frame.event, chunk);
    return out;
  }

  /** What `#chunk` makes of a chunk that says only this. */
  #onlyText(value: string): readonly StreamEvent[] {
    if (value === '') return NOTHING;
    const out: StreamEvent[] = [];
    this.#text(value, out);
    if (this.#leftCopy && out.length > 0) this.#mark(out);
    return out;
  }

  /** Copied thoughts have been left out, and clients would still get its frames. */
  get #leftCopy(): boolean {
    return this.#copied.hasLeftOut && !this.#isOdd;
  }

  #text(value: string, out: StreamEvent[]): void {
    const text = this.#copied.isOver ? value : this.#copied.text(value);
    if (text !== '') this.#blocks.text('text', text, out);
  }

  end(): readonly StreamEvent[] {
    if (this.#over) return NOTHING;
    if (this.#finish !== undefined) return this.#complete();
    this.#over = true;
    const out: StreamEvent[] = [];
    this.#endText(out);
    this.#blocks.close(out);
    return out;
  }

  #endText(out: StreamEvent[]): void {
    const rest = this.#copied.rest();
    if (rest !== '') this.#blocks.text('text', rest, out);
  }

  #fail(error: GatewayError, said: boolean): readonly StreamEvent[] {
    this.#over = true;
    const out: StreamEvent[] = [];
    this.#blocks.close(out);
    out.push({ type: 'error', error, ...(said ? {} : { unsaid: true }) });
    return out;
  }

  #complete(): readonly StreamEvent[] {
    this.#over = true;
    const out: StreamEvent[] = [];
    // `[DONE]` alone is not an answer: nothing was started.
    if (!this.#started) return NOTHING;
    const failure = finishFailure(this.#finish ?? '');
    this.#closeBlocks(out);
    if (failure !== undefined) {
      out.push({ type: 'error', error: failure, unsaid: true });
      return out;
    }
    const calls = this.#hasCalls;
    const reason = decodeFinish(this.#finish ?? '', { calls, refusal: this.#refused });
    const odd = this.#hasOddFinish ? ('finish_reason' as const) : undefined;
    out.push({ type: 'finish', reason, odd }, { type: 'end' });
    return out;
  }

  get #hasCalls(): boolean {
    return this.#lastCall !== undefined || this.#legacy !== undefined;
  }

  #closeBlocks(out: StreamEvent[]): void {
    this.#endText(out);
    // A call that never got a name is shown as it came.
    for (const { call, freeform, name, args } of this.#nameless.values()) {
      const block = this.#open(call, name, freeform, out);
      if (args !== '') this.#blocks.args(block, args, out);
    }
    this.#nameless.clear();
    if (this.#sources !== undefined && this.#blocks.openType === 'text') {
      this.#blocks.cite(decodeSources(this.#sources), out);
      this.#sources = undefined;
    }
    this.#blocks.close(out);
  }

  #chunk(chunk: JsonObject): readonly StreamEvent[] {
    const out: StreamEvent[] = [];
    const choices = list(chunk.choices) ?? [];
    let isOdd = !this.#isOdd && this.#isOddChunk(chunk);
    // Azure's first chunk holds only filter results: no id, no model, no choices.
    if (!this.#started && (choices.length > 0 || chunk.id)) this.#start(chunk, out);
    if (chunk.citations || chunk.search_results || chunk.web_search) this.#sources = chunk;
    for (const value of choices) {
      const choice = object(value);
      if (choice === undefined) continue;
      if ((number(choice.index) ?? 0) > 0) {
        const wire = wireOf({ ...chunk, choices: [choice] });
        out.push({ type: 'opaque', name: 'choice', wire });
      } else this.#choice(choice, chunk, out);
    }
    const usage = chunk.usage ?? object(chunk.x_groq)?.usage;
    if (usage) this.#usage(usage, chunk, out);
    isOdd ||= this.#leftCopy && out.length > 0;
    if (isOdd) this.#mark(out);
    return out;
  }

  /** A frame that clients cannot use and that has no event is left out; an end in it is written anew. */
  #mark(out: StreamEvent[]): void {
    this.#isOdd = out.length > 0;
    this.#hasOddFinish ||= !this.#isOdd && this.#finish !== undefined;
    out[0] = this.#isOdd ? { ...out[0]!, odd: 'form' } : emptyFrame(PROTOCOL);
  }

  /**
   * Clients read the choices and deltas of every chunk (github.com/earendil-works/pi/pull/1671,
   * github.com/smallmain/vscode-unify-chat-provider/pull/29), refuse other roles
   * (github.com/MiniMax-AI/MiniMax-M2.5/issues/2), and find no calls in answers that do not begin with one
   * (github.com/langchain-ai/langchainjs/pull/11157). Content is a text.
   */
  #isOddChunk({ choices }: JsonObject): boolean {
    if (!Array.isArray(choices)) return true;
    const choice = object((choices as readonly Json[])[0]);
    if (choice === undefined) return false;
    const role = object(choice.delta)?.role;
    if (choice.index === undefined || !isObject(choice.delta)) return true;
    if (isInParts(choice.delta.content)) return true;
    if (role !== undefined && role !== null) return role !== 'assistant';
    return !this.#started && this.context.sent.tools.length > 0;
  }

  #start(chunk: JsonObject, out: StreamEvent[]): void {
    this.#started = true;
    const rest = without(chunk, CHUNK_KEYS);
    out.push({
      type: 'start',
      id: text(chunk.id) ?? '',
      model: text(chunk.model) ?? '',
      created: number(chunk.created) || undefined,
      rest: Object.keys(rest).length > 0 ? rest : undefined,
    });
  }

  #usage(value: Json, chunk: JsonObject, out: StreamEvent[]): void {
    const usage = servedUsage(value, chunk);
    if (usage === undefined) return;
    if (!this.#started) this.#start(chunk, out);
    out.push({ type: 'usage', usage });
  }

  #choice(choice: JsonObject, chunk: JsonObject, out: StreamEvent[]): void {
    const delta = object(choice.delta);
    // Relays of servers that cannot stream send a whole message; others repeat it behind its pieces
    // (abundantbeing/hermes-browser-extension#11).
    const message = delta ?? (this.#hasPieces ? undefined : object(choice.message));
    if (message !== undefined) this.#delta(message, choice, chunk, out);
    if (delta !== undefined) this.#hasPieces ||= this.#blocks.hasBegun || this.#nameless.size > 0;
    const reason = choice.finish_reason;
    if (typeof reason === 'string' && reason !== '') {
      this.#finish ??= reason;
      this.#closeBlocks(out);
      this.#hasOddFinish = isOddFinish(this.#finish, this.#hasCalls, this.context);
    }
    // Moonshot puts usage into the finished choice.
    if (choice.usage) this.#usage(choice.usage, chunk, out);
  }

  #delta(delta: JsonObject, choice: JsonObject, chunk: JsonObject, out: StreamEvent[]): void {
    this.#reasoning(delta, out);
    const { content } = delta;
    if (typeof content === 'string') {
      if (content !== '') this.#text(content, out);
    } else if (Array.isArray(content)) this.#parts(content as readonly Json[], out);
    const logprobs = choice.logprobs ? list(object(choice.logprobs)?.content) : undefined;
    if (logprobs !== undefined && logprobs.length > 0) this.#blocks.logprobs(logprobs, out);
    if (delta.annotations) this.#blocks.cite(decodeAnnotations(delta.annotations), out);
    if (typeof delta.refusal === 'string' && delta.refusal !== '') {
      this.#refused = true;
      this.#blocks.text('refusal', delta.refusal, out);
    }
    if (delta.images) {
      for (const image of decodeImages(delta.images)) this.#blocks.whole(image, out);
    }
    if (delta.tool_calls) {
      for (const call of list(delta.tool_calls) ?? []) if (isObject(call)) this.#call(call, out);
    }
    if (delta.function_call) {
      const legacy = object(delta.function_call);
      if (legacy !== undefined) this.#legacyCall(legacy, out);
    }
    if (delta.extra_content) this.#signText(delta, chunk, out);
    if (delta.audio) {
      out.push({
        type: 'opaque',
        name: 'audio',
        wire: wireOf({ ...chunk, choices: [{ ...choice, delta: { audio: delta.audio } }] }),
      });
    }
  }

  #reasoning(delta: JsonObject, out: StreamEvent[]): void {
    const details = delta.reasoning_details ? list(delta.reasoning_details) : undefined;
    let reasoning = delta.reasoning_content || delta.reasoning || delta.reasoning_text;
    if (details !== undefined && details.length > 0) {
      if (!reasoning) reasoning = detailsText(details);
      const summary = onlySummaries(details);
      if (typeof reasoning === 'string' && reasoning !== '') {
        reasoning = this.#copied.thought(reasoning);
        if (this.#blocks.openType !== 'reasoning') this.#details = undefined;
        if (reasoning !== '') this.#blocks.text('reasoning', reasoning, out, summary);
      } else if (this.#blocks.openType !== 'reasoning') this.#details = undefined;
      this.#details ??= new DetailsCollector();
      this.#details.push(details);
      // The seal is built only if a fragment is signed or encrypted, which is rare.
      if (hasSeal(details)) {
        const collected = this.#details;
        this.#blocks.seal(() => collected.seal(this.context.target.provider), out);
      }
      return;
    }
    if (typeof reasoning === 'string' && reasoning !== '') {
      reasoning = this.#copied.thought(reasoning);
      if (reasoning !== '') this.#blocks.text('reasoning', reasoning, out);
    }
  }

  /**
   * Gemini's signature of the text before it, in a delta without content (https://github.com/mozilla-ai/any-llm/pull/1320):
   * remembered for the next request.
   */
  #signText({ extra_content }: JsonObject, chunk: JsonObject, out: StreamEvent[]): void {
    const { sealed } = signatureSeal({ extra_content }, this.context.target.provider);
    if (sealed === undefined) return;
    const { usage: _, ...rest } = chunk;
    const choice = { index: 0, delta: { extra_content: extra_content! }, finish_reason: null };
    const wire = wireOf({ ...rest, choices: [choice] });
    out.push({ type: 'opaque', name: 'signature', wire, textSeal: { sealed, text: '' } });
  }

  /** Content arrays (Mistral, Databricks). */
  #parts(parts: readonly Json[], out: StreamEvent[]): void {
    for (const value of parts) {
      const part = object(value);
      if (part === undefined) continue;
      const reasoning = reasoningOf(part);
      const partText = reasoning ?? text(part.text);
      if (partText)
        this.#blocks.text(reasoning === undefined ? 'text' : 'reasoning', partText, out);
    }
  }

  #call(call: JsonObject, out: StreamEvent[]): void {
    const custom = object(call.custom);
    const fn = object(call.function);
    // Snowflake sends an empty `custom` beside the function.
    const freeform = custom !== undefined && (fn === undefined || call.type === 'custom');
    const target = freeform ? custom : fn;
    const name = text(target?.name) ?? '';
    const raw = freeform ? target?.input : target?.arguments;
    const args = isObject(raw) ? JSON.stringify(raw) : (text(raw) ?? '');
    const known = this.#find(call, name, args)?.block;
    const whole = known === undefined ? this.#nameSoFar(call, name) : name;
    if (
      known === undefined &&
      (whole === '' || (args === '' && (name === '' || this.#goesOn(whole))))
    ) {
      this.#keepNameless(call, freeform, whole, args);
      return;
    }
    const block = known ?? this.#openNamed(call, whole, freeform, out);
    if (known !== undefined && call.extra_content !== undefined) this.#sign(known, call);
    const repeats =
      known !== undefined &&
      (name !== '' || Boolean(text(call.id)) || (unsays(call, target) && this.#hasStrictTools));
    if (args !== '' || repeats) this.#blocks.args(block, args, out, repeats);
  }

  /** Relays of Gemini send a signature behind its call, too, or in pieces (https://github.com/vertesia/llumiverse/pull/470). */
  #sign(block: QueuedCall, call: JsonObject): void {
    const { sealed } = signatureSeal(call, this.context.target.provider);
    if (sealed === undefined || block.head.type !== 'tool-call') return;
    const before = block.sealed?.()?.value ?? block.head.sealed?.value ?? '';
    // It may repeat what came before; behind the name of its signer.
    const more = before === '' ? sealed.value : sealed.value.slice(sealed.value.indexOf(':') + 1);
    const value = sealed.value.startsWith(before) ? sealed.value : before + more;
    if (value !== before) block.sealed = () => ({ ...sealed, value });
  }

  get #hasStrictTools(): boolean {
    return this.context.sent.tools.some((tool) => tool.type === 'function' && tool.strict === true);
  }

  /** Some vendors send the id first and the name in a later fragment. */
  #keepNameless(call: JsonObject, freeform: boolean, name: string, args: string): void {
    const key = keyOf(call);
    const before = this.#nameless.get(key);
    if (before === undefined) this.#nameless.set(key, { call, freeform, name, args });
    else {
      before.name = name;
      before.args += args;
    }
  }

  /** The call without its whole name that this fragment continues. */
  #before(call: JsonObject): NamelessCall | undefined {
    const before = this.#nameless.get(keyOf(call));
    const id = text(call.id) || text(before?.call.id);
    return (text(before?.call.id) || id) === id ? before : undefined;
  }

  /** The name with this fragment; one that repeats the name begins none anew. */
  #nameSoFar(call: JsonObject, name: string): string {
    const before = this.#before(call)?.name ?? '';
    return name === before ? name : before + name;
  }

  /** Is it the beginning of a tool's name, and no tool's name itself? Gemini behind relays streams names in pieces. */
  #goesOn(name: string): boolean {
    const { tools } = this.context.sent;
    const names = tools.map((tool) => ('name' in tool ? tool.name : ''));
    return !names.includes(name) && names.some((each) => each.startsWith(name));
  }

  #openNamed(call: JsonObject, name: string, freeform: boolean, out: StreamEvent[]): QueuedCall {
    const before = this.#before(call);
    if (before === undefined) return this.#open(call, name, freeform, out);
    this.#nameless.delete(keyOf(call));
    const id = text(call.id) || text(before.call.id);
    const repeatsId = before.name !== '' && Boolean(text(call.id));
    const type = call.type ?? before.call.type;
    const first = before.call.extra_content;
    const signed = first === undefined ? {} : { extra_content: first };
    const block = this.#open({ ...call, ...signed, type, id }, name, freeform, out, repeatsId);
    if (first !== undefined) this.#sign(block, call);
    if (before.args !== '') this.#blocks.args(block, before.args, out);
    return block;
  }

  /**
   * The call that a fragment continues: by index if there is one (Mistral sends none; Anthropic's endpoint
   * counts from 1). A new id together with a name begins a new call even with a known index, because some
   * vendors give every call the index 0. Arguments alone under a new index or id continue the last call while
   * that is not whole: LM Studio counts its pieces (NousResearch/hermes-agent#5254).
   */
  #find(call: JsonObject, name: string, args: string): StreamedCall | undefined {
    const index = number(call.index);
    const id = text(call.id) ?? '';
    if (index === undefined && id === '') return name === '' ? this.#lastCall : undefined;
    const found = index === undefined ? this.#byId.get(id) : this.#byIndex.get(index);
    if (found !== undefined) {
      const isOther = index !== undefined && name !== '' && id !== '' && found.id !== id;
      return isOther ? undefined : found;
    }
    if (name !== '' || args === '' || this.#nameless.has(keyOf(call))) return undefined;
    return this.#lastCall?.block.input?.whole === false ? this.#lastCall : undefined;
  }

  #open(
    call: JsonObject,
    name: string,
    freeform: boolean,
    out: StreamEvent[],
    repeatsId = false,
  ): QueuedCall {
    const { sent, target } = this.context;
    const original = toolNames(sent.tools, NAME_LIMIT).original(name);
    const id = text(call.id) ?? '';
    // A second call with the id of another one could not be told from it in the history.
    const own = id === '' || this.#byId.has(id) ? newCallId() : id;
    const index = number(call.index);
    // Numbers that begin at 1 (Anthropic's endpoint) are no trouble: clients use them as keys.
    const isOdd =
      repeatsId ||
      own !== id ||
      // Mistral says none, and OpenAI's client wants it at the end.
      !text(call.type) ||
      index === undefined ||
      this.#byIndex.has(index) ||
      isObject(object(call.function)?.arguments);
    const block = this.#blocks.call(
      {
        type: 'tool-call',
        id: own,
        ...original,
        kind: freeform ? 'custom' : original.kind,
        by: 'client',
        odd: isOdd || undefined,
        ...signatureSeal(call, target.provider),
      },
      original.kind === 'custom' && !freeform,
      out,
    );
    const opened: StreamedCall = { block, id };
    this.#lastCall = opened;
    this.#byId.set(id, opened);
    if (index !== undefined) this.#byIndex.set(index, opened);
    return block;
  }

  #legacyCall(call: JsonObject, out: StreamEvent[]): void {
    const name = text(call.name);
    if (this.#legacy === undefined) {
      // Snowflake sends an empty one beside real calls.
      if (!name) return;
      const original = toolNames(this.context.sent.tools, NAME_LIMIT).original(name);
      this.#legacy = this.#blocks.call(
        { type: 'tool-call', id: newCallId(), ...original, by: 'client' },
        original.kind === 'custom',
        out,
      );
    }
    const args = text(call.arguments);
    if (args) this.#blocks.args(this.#legacy, args, out);
  }

  get holds(): boolean {
    const hasOddFinish = this.#hasOddFinish && !this.#over;
    const holdsCalls = this.#blocks.holds || this.#nameless.size > 0;
    return holdsCalls || hasOddFinish || this.#copied.holds || this.#leftCopy;
  }

  get fast(): FastDecoder {
    return this;
  }

  textRun(frames: string, at: number): TextRun | undefined {
    const run = this.#isPlain ? this.#template.run(frames, at) : undefined;
    return run && { event: this.#blocks.piece(run.text), to: run.to };
  }

  textTemplate(): DecodedTextTemplate | undefined {
    return this.#isPlain ? this.#template.frame(this.#blocks.index) : undefined;
  }

  get isFinished(): boolean {
    return this.#finish !== undefined;
  }

  get #isPlain(): boolean {
    return !this.#over && this.#blocks.isOpen('text');
  }
}
