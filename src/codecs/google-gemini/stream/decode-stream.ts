/** Decodes Gemini chunks into events; a whole answer is one chunk. */

import { brokenAnswer, type GatewayError } from '../../../conversation/errors.ts';
import { type BlockHead, emptyFrame, type StreamEvent } from '../../../conversation/events.ts';
import { unwrapFreeform } from '../../../conversation/tools/tool-names.ts';
import type { Block, Sealed } from '../../../conversation/types.ts';
import { ERROR_LINE, isKeepAlive, isSilent, type SseFrame } from '../../../lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import type { StreamDecoder, UpstreamContext } from '../../codec.ts';
import { inBandError } from '../reply/errors.ts';
import { AnswerCallIds } from '../request/call-ids.ts';
import { otherBlock, sealOf } from '../request/decode-parts.ts';
import {
  field,
  flag,
  geminiNames,
  list,
  number,
  object,
  objects,
  PROTOCOL,
  text,
  wireOf,
  without,
} from '../wire.ts';
import { AnswerEnd } from './answer-end.ts';
import { PartialArguments } from './partial-arguments.ts';
import { textTemplate } from './text-template.ts';

const NOTHING: readonly StreamEvent[] = [];
/** Members of a chunk that are decoded. */
const CHUNK_KEYS = [
  'candidates',
  'usageMetadata',
  'modelVersion',
  'responseId',
  'promptFeedback',
  'createTime',
];

/** Decodes one stream. Frames after an error are skipped. */
export function decodeStream(context: UpstreamContext): GeminiStreamDecoder {
  return new GeminiStreamDecoder(context);
}

/** The call whose arguments come in pieces. */
interface PartialCall {
  readonly name: string;
  readonly id: string | undefined;
  readonly part: JsonObject;
  readonly args: PartialArguments;
}

export class GeminiStreamDecoder implements StreamDecoder {
  readonly #ids = new AnswerCallIds();
  #started = false;
  #over = false;
  #index = 0;
  #open: 'text' | 'reasoning' | undefined;
  #calls = false;
  #partial: PartialCall | undefined;
  readonly #end = new AnswerEnd();
  readonly #template = textTemplate();
  /** A frame had a form that clients cannot use. From the first such frame on, all are written anew. */
  #isOdd = false;
  /** The text of the open block, kept where sources may refer to it. */
  #written: string[] | undefined;

  constructor(private readonly context: UpstreamContext) {}

  push(frame: SseFrame): readonly StreamEvent[] {
    const { data } = frame;
    if (this.#over) return NOTHING;
    if (data === undefined) return isSilent(frame) ? [emptyFrame(PROTOCOL)] : NOTHING;
    // Relays that turn other protocols into this one end with OpenAI's mark.
    if (data === '' || data === '[DONE]') return [emptyFrame(PROTOCOL)];
    const read = this.#template.read(data, frame.event);
    if (read !== undefined) return this.#onlyText(read);
    let chunk: unknown;
    try {
      chunk = JSON.parse(data);
    } catch (cause) {
      if (isKeepAlive(data)) return [emptyFrame(PROTOCOL)];
      throw brokenAnswer('The upstream sent a stream chunk that is not JSON.', cause);
    }
    // An error comes in a list, as in an answer that is no stream.
    const listed = Array.isArray(chunk);
    if (listed) [chunk] = chunk as readonly unknown[];
    if (!isObject(chunk)) return [emptyFrame(PROTOCOL)];
    const isSaid = !listed && frame.event !== ERROR_LINE;
    const out = this.chunk(chunk, isSaid);
    this.#template.learn(data, frame.event, chunk);
    if (this.#isOdd || !isSaid || !(this.#end.isOdd || hasOtherLines(frame))) return out;
    this.#isOdd = out.length > 0;
    return this.#isOdd ? [{ ...out[0]!, odd: 'form' }, ...out.slice(1)] : [emptyFrame(PROTOCOL)];
  }

  /** What `chunk` makes of a chunk that says only this. */
  #onlyText(value: string): readonly StreamEvent[] {
    const out: StreamEvent[] = [];
    this.#text(value, undefined, {}, out);
    return out;
  }

  /** The usage of the last chunk that was not parsed. */
  #settle(): void {
    const last = this.#template.takeLast();
    if (last !== undefined) this.#end.chunk(last, false);
  }

  /**
   * The events of one `GenerateContentResponse`.
   * @param framed it stood in a frame of the stream
   */
  chunk(chunk: JsonObject, framed = true): readonly StreamEvent[] {
    this.#settle();
    const error = inBandError(chunk);
    const out: StreamEvent[] = [];
    if (error !== undefined) {
      this.#fail(error, out, framed);
      return out;
    }
    const candidates = objects(chunk.candidates);
    this.#end.chunk(chunk, candidates.length === 0);
    if (!this.#started) this.#start(chunk, out);
    for (const candidate of candidates) {
      if ((number(candidate.index) ?? 0) > 0) {
        out.push({
          type: 'opaque',
          name: 'candidate',
          wire: wireOf({ ...chunk, candidates: [candidate] }),
        });
      } else this.#candidate(candidate, out);
      if (this.#over) return out;
    }
    return out;
  }

  end(): readonly StreamEvent[] {
    if (this.#over) return NOTHING;
    this.#over = true;
    this.#settle();
    const out: StreamEvent[] = [];
    this.#close(out);
    if (this.#started) out.push(...this.#end.counts());
    out.push(...this.#end.events(this.#calls));
    return out;
  }

  #fail(error: GatewayError, out: StreamEvent[], said = true): void {
    this.#over = true;
    this.#close(out);
    if (this.#started) out.push(...this.#end.counts());
    out.push({ type: 'error', error, ...(said ? {} : { unsaid: true }) });
  }

  #start(chunk: JsonObject, out: StreamEvent[]): void {
    this.#started = true;
    const rest = without(chunk, CHUNK_KEYS);
    const { usage } = this.#end;
    out.push({
      type: 'start',
      id: text(field(chunk, 'responseId')) ?? '',
      model: text(field(chunk, 'modelVersion')) ?? '',
      usage,
      rest: Object.keys(rest).length > 0 ? rest : undefined,
    });
  }

  #candidate(candidate: JsonObject, out: StreamEvent[]): void {
    this.#end.sources(candidate);
    const content = object(candidate.content);
    for (const part of objects(content?.parts)) this.#part(part, out);
    if (this.#open === 'text') {
      const tokens = decodeLogprobs(candidate);
      if (tokens.length > 0) out.push({ type: 'logprobs', index: this.#index, content: tokens });
    }
    this.#end.finish(candidate);
  }

  #part(part: JsonObject, out: StreamEvent[]): void {
    const value = text(part.text);
    const call = object(field(part, 'functionCall'));
    // Some relays put an empty text beside a call.
    if (value !== undefined && (value !== '' || call === undefined)) {
      const sealed = sealOf(part, this.context.target.provider);
      if (flag(part.thought) === true) this.#thought(value, sealed, out);
      else this.#text(value, sealed, part, out);
      return;
    }
    if (call !== undefined) {
      this.#call(call, part, out);
      return;
    }
    const block = otherBlock(part, this.#ids);
    this.#close(out);
    if (block.type === 'tool-call') {
      const { input, ...head } = block;
      this.#whole({ ...head, residue: wireOf(part) }, input, out);
    } else this.#whole({ type: 'whole', block: block as Block }, '', out);
  }

  #thought(value: string, sealed: Sealed | undefined, out: StreamEvent[]): void {
    if (value === '' && sealed === undefined) return;
    if (this.#open !== 'reasoning') {
      this.#close(out);
      out.push({ type: 'block-start', index: this.#index, head: { type: 'reasoning' } });
      this.#open = 'reasoning';
    }
    if (value !== '') out.push({ type: 'delta', index: this.#index, text: value });
    if (sealed === undefined) return;
    out.push({ type: 'sealed', index: this.#index, sealed });
    // What follows is another thought.
    this.#close(out);
  }

  /** Clients of this protocol get the signature of a text as a part of its own; for others it is remembered. */
  #text(value: string, sealed: Sealed | undefined, part: JsonObject, out: StreamEvent[]): void {
    if (value !== '') {
      if (this.#open !== 'text') {
        this.#close(out);
        out.push({ type: 'block-start', index: this.#index, head: { type: 'text' } });
        this.#open = 'text';
        this.#written = this.context.sent.tools.some(({ type }) => type === 'hosted')
          ? []
          : undefined;
      }
      out.push({ type: 'delta', index: this.#index, text: value });
      this.#written?.push(value);
    }
    if (sealed === undefined) return;
    out.push({
      type: 'opaque',
      name: 'thoughtSignature',
      wire: wireOf({ ...part, text: '' }),
      textSeal: { sealed, text: value },
    });
  }

  #call(call: JsonObject, part: JsonObject, out: StreamEvent[]): void {
    const partial = this.#partial;
    const pieces = list(field(call, 'partialArgs'));
    const continues = flag(field(call, 'willContinue')) === true;
    const named = text(call.name);
    if (pieces === undefined && !continues && (partial === undefined || named)) {
      this.#endPartial(out);
      this.#wholeCall(
        named ?? '',
        text(call.id),
        argsOf(call.args),
        part,
        out,
        call.args === null || isText(call.args),
      );
      return;
    }
    if (named && partial !== undefined) this.#endPartial(out);
    this.#partial ??= { name: named ?? '', id: text(call.id), part, args: new PartialArguments() };
    this.#partial.args.push(call);
    // An empty piece without `willContinue` ends the call.
    if (!continues) this.#endPartial(out);
  }

  #endPartial(out: StreamEvent[]): void {
    const partial = this.#partial;
    this.#partial = undefined;
    if (partial === undefined) return;
    this.#wholeCall(partial.name, partial.id, partial.args.json, partial.part, out);
  }

  #wholeCall(
    name: string,
    id: string | undefined,
    input: string,
    part: JsonObject,
    out: StreamEvent[],
    isOdd = false,
  ) {
    this.#close(out);
    this.#calls = true;
    const { sent, target } = this.context;
    const original = geminiNames(sent.tools).original(name);
    const head = {
      type: 'tool-call',
      id: this.#ids.ofCall(id, name),
      ...original,
      by: 'client',
      odd: isOdd || undefined,
      sealed: sealOf(part, target.provider),
    } as const;
    this.#whole(head, original.kind === 'custom' ? unwrapFreeform(input) : input, out);
  }

  #whole(head: BlockHead, input: string, out: StreamEvent[]): void {
    const index = this.#index++;
    out.push({ type: 'block-start', index, head });
    if (input !== '') out.push({ type: 'delta', index, text: input });
    out.push({ type: 'block-stop', index });
  }

  #close(out: StreamEvent[]): void {
    if (this.#partial !== undefined && this.#open === undefined) this.#endPartial(out);
    if (this.#open === undefined) return;
    if (this.#open === 'text') out.push(...this.#end.citations(this.#index, this.#written));
    out.push({ type: 'block-stop', index: this.#index });
    this.#index++;
    this.#open = undefined;
    this.#written = undefined;
  }

  get holds(): boolean {
    return this.#partial !== undefined;
  }

  get isFinished(): boolean {
    return this.#end.isReached;
  }

  get fast(): StreamDecoder['fast'] {
    return this;
  }

  /** Of an open text whose pieces nothing but its place in the answer tells apart. */
  get #isPlain(): boolean {
    return !this.#over && this.#open === 'text' && this.#written === undefined;
  }

  textRun(frames: string, at: number) {
    const run = this.#isPlain ? this.#template.run(frames, at) : undefined;
    if (run === undefined) return undefined;
    return { event: { type: 'delta', index: this.#index, text: run.text } as const, to: run.to };
  }

  textTemplate() {
    return this.#isPlain ? this.#template.frame(this.#index) : undefined;
  }
}

/** Relays of OpenAI's protocols send arguments as text. */
const isText = (args: Json | undefined): boolean => isObject(tryParse(text(args) ?? ''));

const argsOf = (args: Json | undefined): string =>
  isText(args) ? text(args)! : JSON.stringify(object(args) ?? {});

const SPACE = 0x20;
const DATA = 0x64;
/** A byte order mark begins with one of these. */
const UTF8 = 0x80;

/** Google's SDK reads frames of one `data:` line alone, and loses others (js-genai src/_api_client.ts). */
const hasOtherLines = ({ event, bytes, from, to }: SseFrame): boolean =>
  event !== '' ||
  (to > from && bytes[from]! > SPACE && bytes[from]! < UTF8 && bytes[from] !== DATA);

/** `logprobsResult` of a candidate (https://ai.google.dev/api/generate-content#LogprobsResult); []: it has none. */
function decodeLogprobs(candidate: JsonObject): readonly Json[] {
  const result = object(field(candidate, 'logprobsResult'));
  if (result === undefined) return [];
  const top = objects(field(result, 'topCandidates'));
  return objects(field(result, 'chosenCandidates')).map((chosen, at) => ({
    ...tokenOf(chosen),
    top_logprobs: objects(top[at]?.candidates).map(tokenOf),
  }));
}

function tokenOf(candidate: JsonObject): JsonObject {
  const token = text(candidate.token) ?? '';
  const logprob = number(field(candidate, 'logProbability')) ?? 0;
  return { token, logprob, bytes: [...Buffer.from(token)] };
}
