/** Turns the events of an answer into Gemini parts, for whole answers and for streams. */

import type { BlockHead, StreamEvent } from '../../../conversation/events.ts';
import { wrapSeal } from '../../../conversation/seal.ts';
import type { Block, Citation, Sealed } from '../../../conversation/types.ts';
import { isObject, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import type { ClientContext } from '../../codec.ts';
import { argumentsOf } from '../request/encode-parts.ts';
import {
  compact,
  field,
  flag,
  geminiNames,
  newCallId,
  object,
  ownWire,
  PROTOCOL,
} from '../wire.ts';
import { encodeGrounding, type PlacedCitation } from './grounding.ts';

const NONE: readonly JsonObject[] = [];

/** Reads the events of one answer in their order. */
export class AnswerParts {
  /** Google shows thoughts only to those who ask for them. */
  readonly #showsThoughts: boolean;
  /** Sources refer to places in the text; it is kept only where sources may come. */
  readonly #text: string[] | undefined;
  #length = 0;
  #blockAt = 0;
  /** The open text is a paragraph of its own, which its first piece begins. */
  #paragraph = false;
  #head: BlockHead | undefined;
  #sealed: Sealed | undefined;
  #input: string[] = [];
  #open: Citation[] = [];
  #citations: PlacedCitation[] = [];
  #queries: string[] = [];
  #noted = false;

  constructor(private readonly context: ClientContext) {
    this.#showsThoughts = asksForThoughts(context);
    this.#text = context.request.tools.some(({ type }) => type === 'hosted') ? [] : undefined;
  }

  /** Is the open block a text, whose pieces are a part each and nothing else? */
  get inText(): boolean {
    return this.#head?.type === 'text' && !this.#paragraph;
  }

  /** As for a delta of a text that goes out in another way. */
  skipText(text: string): void {
    if (!this.inText) return;
    this.#length += text.length;
    this.#text?.push(text);
  }

  event(event: StreamEvent): readonly JsonObject[] {
    switch (event.type) {
      case 'block-start':
        return this.#start(event.head);
      case 'delta':
        return this.#delta(event.newPart === true ? `\n\n${event.text}` : event.text);
      case 'sealed':
        this.#sealed = event.sealed;
        return NONE;
      case 'citation':
        if (this.#head?.type === 'text') this.#open.push(event.citation);
        return NONE;
      case 'block-stop':
        return this.#stop();
      case 'opaque': {
        const { protocol, value } = event.wire;
        return event.name === 'thoughtSignature' && protocol === PROTOCOL && isObject(value)
          ? [value]
          : NONE;
      }
      default:
        return NONE;
    }
  }

  #start(head: BlockHead): readonly JsonObject[] {
    this.#head = head;
    this.#sealed = undefined;
    this.#input = [];
    this.#blockAt = this.#length;
    this.#paragraph = head.type === 'text' && head.paragraph === true && this.#length > 0;
    if (head.type !== 'whole') return NONE;
    const { block } = head;
    if (block.type === 'text') {
      this.#head = { type: 'text' };
      return this.#delta(block.text);
    }
    if (block.type === 'reasoning') {
      this.#head = { type: 'reasoning' };
      this.#sealed = block.sealed;
      return this.#delta(block.text);
    }
    return this.#whole(block);
  }

  #delta(text: string): readonly JsonObject[] {
    if (text === '') return NONE;
    switch (this.#head?.type) {
      case 'text': {
        const piece = this.#paragraph ? `\n\n${text}` : text;
        if (this.#paragraph) this.#blockAt += 2;
        this.#paragraph = false;
        this.#length += piece.length;
        this.#text?.push(piece);
        return [{ text: piece }];
      }
      case 'refusal':
        this.#length += text.length;
        this.#text?.push(text);
        return [{ text }];
      case 'reasoning':
        if (this.#showsThoughts) return [{ text, thought: true }];
        this.#noteHidden();
        return NONE;
      case 'tool-call':
        this.#input.push(text);
        return NONE;
      default:
        return NONE;
    }
  }

  #noteHidden(): void {
    if (this.#noted) return;
    this.#noted = true;
    this.context.notes.add('reasoning_dropped', 'candidates/0', 'includeThoughts is not set');
  }

  #stop(): readonly JsonObject[] {
    const head = this.#head;
    this.#head = undefined;
    if (head?.type === 'text') this.#settle();
    if (head?.type === 'reasoning') return this.#signed();
    if (head?.type !== 'tool-call') return NONE;
    return this.#call(head);
  }

  /** A thought's seal, on a part without text behind it: Google's own, or another's in an envelope. */
  #signed(): readonly JsonObject[] {
    const sealed = this.#sealed;
    if (sealed === undefined || sealed.value === '' || !this.#showsThoughts) return NONE;
    return [{ text: '', thought: true, thoughtSignature: signatureOf(sealed) }];
  }

  #call(head: BlockHead & { type: 'tool-call' }): readonly JsonObject[] {
    const input = this.#input.join('');
    if (head.by !== 'client') {
      // A search that the gateway or a vendor ran shows in the sources.
      const query = head.name === 'web_search' ? object(tryParse(input))?.query : undefined;
      if (typeof query === 'string') this.#queries.push(query);
      const own = head.residue?.protocol === PROTOCOL ? object(head.residue.value) : undefined;
      if (own !== undefined) return [own];
      if (head.by === 'provider' && typeof query !== 'string') {
        this.context.notes.add('provider_call_dropped', 'candidates/0', head.name);
      }
      return NONE;
    }
    const { request, notes } = this.context;
    if (head.kind !== 'custom' && input.trim() !== '' && tryParse(input) === undefined) {
      // Google has no call that was cut off: as an object of its text it would be run.
      notes.add('content_dropped', 'candidates/0', `call of ${head.name}, cut off`);
      return NONE;
    }
    const sealed = this.#sealed ?? head.sealed;
    const functionCall = {
      id: head.id || newCallId(),
      name:
        head.namespace === undefined
          ? head.name
          : geminiNames(request.tools).flat(head.name, head.namespace),
      args: argumentsOf({ kind: head.kind, input }),
    };
    const isGoogles = sealed?.protocol === PROTOCOL && sealed.value !== '';
    return [compact({ functionCall, thoughtSignature: isGoogles ? sealed.value : undefined })];
  }

  #whole(block: Block): readonly JsonObject[] {
    const own = ownWire(block);
    if (isObject(own)) return [own];
    if (block.type === 'media' && block.source.type === 'base64') {
      return [{ inlineData: { mimeType: block.source.mediaType, data: block.source.data } }];
    }
    if (block.type === 'tool-result') return NONE;
    const { notes } = this.context;
    if (block.type === 'opaque' && block.text) {
      notes.add('content_bridged', 'candidates/0', block.name);
      return [{ text: block.text }];
    }
    notes.add('content_dropped', 'candidates/0', block.type === 'opaque' ? block.name : block.type);
    return NONE;
  }

  #settle(): void {
    for (const citation of this.#open) {
      if (citation.url === undefined && citation.title === undefined) {
        this.context.notes.add('citation_dropped', 'groundingMetadata');
        continue;
      }
      const { start, end } = citation;
      const from = start === undefined ? this.#blockAt : this.#blockAt + start;
      const to = end === undefined ? this.#length : this.#blockAt + end;
      this.#citations.push({ citation, from, to });
    }
    this.#open = [];
  }

  /** The sources of the whole answer; read it at the end. */
  get grounding(): JsonObject | undefined {
    return encodeGrounding(this.#citations, this.#queries, this.#text?.join(''));
  }
}

const signatureOf = (sealed: Sealed): string =>
  sealed.protocol === PROTOCOL ? sealed.value : Buffer.from(wrapSeal(sealed)).toString('base64');

function asksForThoughts({ request }: ClientContext): boolean {
  const value = request.origin?.protocol === PROTOCOL ? request.origin.value : undefined;
  if (value === undefined) return true;
  const config = object(field(value, 'generationConfig'));
  const thinking = config && object(field(config, 'thinkingConfig'));
  return thinking !== undefined && flag(field(thinking, 'includeThoughts')) === true;
}
