/** Decodes a Messages stream into events: one JSON.parse for each frame, none for plain text deltas. */

import { brokenAnswer } from '../../../conversation/errors.ts';
import { type BlockHead, emptyFrame, type StreamEvent } from '../../../conversation/events.ts';
import {
  type DecodedTextTemplate,
  type FastDecoder,
  plainRun,
  type TextRun,
} from '../../../conversation/fast-text.ts';
import { unwrapFreeform } from '../../../conversation/tools/tool-names.ts';
import type { Usage } from '../../../conversation/usage.ts';
import { isSilent, type SseFrame } from '../../../lib/bytes/sse.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import type { StreamDecoder, UpstreamContext } from '../../codec.ts';
import { decodeCitation } from '../hosted-tools.ts';
import { upstreamReader } from '../reply/decode-reply.ts';
import { countsOutput, mergeUsage } from '../reply/digest.ts';
import { decodeErrorBody } from '../reply/errors.ts';
import { isClientCall } from '../reply/finish-reason.ts';
import { decodeUsage } from '../reply/usage.ts';
import { type BlockReader, decodeBlock } from '../request/decode-blocks.ts';
import { number, object, PROTOCOL, text, wireOf } from '../wire.ts';
import {
  finishEvent,
  opaqueEvent,
  parseFrame,
  plainText,
  restOfDelta,
  startEvent,
  withoutType,
} from './decode-stream-frames.ts';

const NOTHING: readonly StreamEvent[] = [];
/** Events before which all blocks end. */
const ENDS: ReadonlySet<unknown> = new Set(['message_delta', 'message_stop']);
/** Maximum characters that wait for the end of a call. */
const MAX_HELD = 8 * 1024 * 1024;

interface OpenBlock {
  readonly index: number;
  readonly wireIndex: number;
  readonly kind: 'text' | 'thinking' | 'call' | 'whole';
  /** How a text delta of this block begins, up to the text. Such frames need no parse. */
  readonly textPrefix: string;
  readonly textTemplate?: DecodedTextTemplate;
  /** Input of a freeform tool, held until its JSON is complete. */
  readonly heldInput?: string[];
  /** Input in the block's start, where some relays send it. */
  readonly startInput?: string;
  /** A block without deltas of its own: it is emitted when it is complete. */
  whole?: JsonObject;
  signature?: string;
  hasDeltas: boolean;
}

/** Decodes one stream. Frames after its end are skipped. */
export function decodeStream(context: UpstreamContext): StreamDecoder {
  return new MessagesStreamDecoder(context);
}

class MessagesStreamDecoder implements StreamDecoder, FastDecoder {
  readonly #reader: BlockReader;
  /** Index of the next block. */
  #next = 0;
  #open: OpenBlock | undefined;
  #usage: JsonObject = {};
  /** The output of `message_start` is a placeholder: only a later count is paid for. */
  #counted = false;
  #started = false;
  /** How many blocks the vendor has begun. */
  #starts = 0;
  /** An event had a form that clients cannot use. From the first such event on, all are written anew. */
  #isOdd = false;
  /** Events of blocks that began before the open call has ended, by index. */
  #waiting: Map<number, JsonObject[]> | undefined;
  #heldChars = 0;
  #hasCalls = false;
  #finished = false;
  #over = false;

  constructor(private readonly context: UpstreamContext) {
    this.#reader = upstreamReader(context);
  }

  push(frame: SseFrame): readonly StreamEvent[] {
    const { data } = frame;
    if (this.#over) return NOTHING;
    if (data === undefined) return isSilent(frame) ? [emptyFrame(PROTOCOL)] : NOTHING;
    if (this.#open?.kind === 'text') {
      const text = plainText(data, this.#open.textPrefix);
      if (text !== undefined) return this.#delta(text);
    }
    if (data === '[DONE]') return NOTHING;
    if (data === '') return [emptyFrame(PROTOCOL)];
    const event = parseFrame(data);
    if (event === undefined) return [emptyFrame(PROTOCOL)];
    if (this.#waits(event, data.length)) return NOTHING;
    const isOdd = !this.#isOdd && this.#isOddEvent(event, frame.event);
    if (event.type === 'content_block_start') this.#starts++;
    const events =
      this.#waiting === undefined
        ? this.#event(event, frame.event)
        : this.#inOrder(event, frame.event);
    return isOdd ? this.#marked(events) : events;
  }

  #inOrder(event: JsonObject, name: string): readonly StreamEvent[] {
    const events = ENDS.has(event.type) ? this.#closeAll() : [];
    events.push(...this.#event(event, name));
    this.#release(events);
    return events;
  }

  /** A frame that clients cannot use and that says nothing else is left out. */
  #marked(events: readonly StreamEvent[]): readonly StreamEvent[] {
    const at = events.findIndex(({ type }) => type !== 'opaque');
    if (at < 0) return [emptyFrame(PROTOCOL)];
    this.#isOdd = true;
    return events.with(at, { ...events[at]!, odd: 'form' });
  }

  /**
   * Blocks that begin before a call has ended wait for it: SDKs put blocks together by their index, whatever stands between
   * their events. Text waits for none, since relays lose the ends of blocks.
   */
  #waits(event: JsonObject, size: number): boolean {
    const { type, index } = event;
    if (this.#open?.kind !== 'call' || typeof index !== 'number') return false;
    if (index === this.#open.wireIndex) return false;
    if (type === 'content_block_start' && index === this.#starts) {
      this.#starts++;
      this.#waiting ??= new Map();
      this.#waiting.set(index, []);
    }
    const waiting = this.#waiting?.get(index);
    if (waiting === undefined) return false;
    this.#heldChars += size;
    if (this.#heldChars > MAX_HELD) throw brokenAnswer('The upstream never ended a call.');
    waiting.push(event);
    return true;
  }

  /** The events of blocks that waited, up to the first that is still open. */
  #release(events: StreamEvent[]): void {
    while (this.#open === undefined && this.#waiting !== undefined) {
      const [next] = this.#waiting;
      if (next === undefined) return;
      this.#waiting.delete(next[0]);
      for (const event of next[1]) events.push(...this.#event(event, ''));
    }
  }

  #closeAll(): StreamEvent[] {
    const events: StreamEvent[] = [];
    do {
      events.push(...this.#closeBlock());
      this.#release(events);
    } while (this.#open !== undefined);
    return events;
  }

  get holds(): boolean {
    return this.#waiting !== undefined && this.#waiting.size > 0;
  }

  /**
   * Anthropic's clients go by names of events and by the index of each block, and throw where the start, its usage or
   * that of the end is missing (github.com/justlovemaki/AIClient2API/issues/71, github.com/decolua/9router/issues/1779).
   */
  #isOddEvent(event: JsonObject, name: string): boolean {
    const { type, index, message, usage } = event;
    if (type === 'ping' || type === 'error') return false;
    if (name !== type) return true;
    switch (type) {
      case 'message_start': {
        const { usage, content } = object(message) ?? {};
        return this.#started || !isObject(usage) || !Array.isArray(content);
      }
      case 'content_block_start': {
        const block = object(event.content_block);
        if (block?.type === 'tool_use' && !text(block.id)) return true;
        return !this.#started || index !== this.#starts;
      }
      case 'content_block_delta':
        return !isObject(event.delta) || index === undefined || this.#open?.wireIndex !== index;
      case 'content_block_stop':
        return index === undefined;
      case 'message_delta':
        return !this.#started || !isObject(usage) || !isObject(event.delta);
      default:
        return !this.#started;
    }
  }

  end(): readonly StreamEvent[] {
    if (this.#over) return NOTHING;
    this.#over = true;
    const events = this.#closeAll();
    // With a stop reason only the terminal event is missing, so the answer is complete.
    if (this.#finished) events.push({ type: 'end', odd: 'form' });
    return events;
  }

  #event(event: JsonObject, name: string): readonly StreamEvent[] {
    // Relays write errors of other protocols, and bare JSON.
    const type = text(event.type) ?? (isObject(event.error) ? 'error' : name);
    switch (type) {
      case 'ping':
        return NOTHING;
      case 'message_start': {
        // Relays may repeat it or insert another one: the first counts.
        if (this.#started || !isObject(event.message)) return NOTHING;
        this.#started = true;
        this.#usage = mergeUsage({}, event.message.usage);
        return [startEvent(event.message, this.#usage, this.context)];
      }
      case 'content_block_start':
        return isObject(event.content_block)
          ? this.#openBlock(event.content_block, number(event.index) ?? this.#next)
          : NOTHING;
      case 'content_block_delta':
        return this.#blockDelta(event);
      case 'content_block_stop': {
        const wireIndex = this.#open?.wireIndex;
        return wireIndex !== undefined && (number(event.index) ?? wireIndex) === wireIndex
          ? this.#closeBlock()
          : NOTHING;
      }
      case 'message_delta':
        return this.#messageDelta(event);
      case 'message_stop':
        return this.#messageStop();
      case 'error': {
        this.#over = true;
        const events = this.#closeBlock();
        events.push({
          type: 'error',
          error: decodeErrorBody(event, { status: undefined }),
          // Anthropic's clients go by the name of the event.
          ...(name === 'error' ? {} : { unsaid: true }),
        });
        return events;
      }
      default:
        return isObject(event.error)
          ? this.#event({ ...event, type: 'error' }, name)
          : [opaqueEvent(type, event)];
    }
  }

  #openBlock(block: JsonObject, wireIndex: number): StreamEvent[] {
    const events = this.#closeBlock();
    const type = text(block.type) ?? 'text';
    const base = { index: this.#next++, wireIndex, hasDeltas: false };
    const start = (head: BlockHead): StreamEvent => ({
      type: 'block-start',
      index: base.index,
      head,
    });
    switch (type) {
      case 'text': {
        const prefix = `{"type":"content_block_delta","index":${wireIndex},"delta":{"type":"text_delta","text":"`;
        const textTemplate = {
          head: `event: content_block_delta\ndata: ${prefix}`,
          foot: '"}}\n\n',
          index: base.index,
        };
        this.#open = { ...base, kind: 'text', textPrefix: prefix, textTemplate };
        events.push(start({ type: 'text' }));
        if (typeof block.text === 'string') events.push(...this.#delta(block.text));
        return events;
      }
      case 'thinking': {
        const signature = text(block.signature);
        this.#open = { ...base, kind: 'thinking', textPrefix: '', signature };
        events.push(start({ type: 'reasoning' }));
        if (typeof block.thinking === 'string') events.push(...this.#delta(block.thinking));
        return events;
      }
      case 'tool_use':
      case 'server_tool_use':
      case 'mcp_tool_use': {
        const call = decodeBlock(block, 'content', this.#reader);
        if (call?.type !== 'tool-call') return events;
        const { id, name, namespace, kind, by } = call;
        this.#hasCalls ||= isClientCall(call);
        const hasInput = isObject(block.input) && Object.keys(block.input).length > 0;
        this.#open = {
          ...base,
          kind: 'call',
          textPrefix: '',
          ...(kind === 'custom' ? { heldInput: [] } : {}),
          ...(hasInput ? { startInput: JSON.stringify(block.input) } : {}),
        };
        // Claude Code and Anthropic's own clients take the input from deltas alone.
        const isOdd = hasInput && block.type === 'tool_use';
        const residue = wireOf(isOdd ? { ...block, input: {} } : block);
        const odd = isOdd ? ({ odd: true } as const) : {};
        events.push(start({ type: 'tool-call', id, name, namespace, kind, by, ...odd, residue }));
        return events;
      }
      default:
        this.#open = { ...base, kind: 'whole', textPrefix: '', whole: block };
        return events;
    }
  }

  #blockDelta(event: JsonObject): readonly StreamEvent[] {
    const delta = isObject(event.delta) ? event.delta : {};
    const wireIndex = number(event.index) ?? this.#open?.wireIndex ?? 0;
    if (this.#open?.wireIndex === wireIndex) return this.#applyDelta(delta, event);
    const events = this.#reopenBlock(delta, wireIndex);
    return [...events, ...this.#applyDelta(delta, event)];
  }

  /** Opens a block for a delta without one: relays lose starts. */
  #reopenBlock(delta: JsonObject, wireIndex: number): StreamEvent[] {
    switch (delta.type) {
      case 'text_delta':
      case 'citations_delta':
        return this.#openBlock({ type: 'text' }, wireIndex);
      case 'thinking_delta':
      case 'signature_delta':
        return this.#openBlock({ type: 'thinking' }, wireIndex);
      default:
        throw brokenAnswer('The upstream sent a delta of a block that was never opened.');
    }
  }

  #applyDelta(delta: JsonObject, event: JsonObject): readonly StreamEvent[] {
    const open = this.#open;
    if (open === undefined) return NOTHING;
    switch (delta.type) {
      case 'text_delta':
        return this.#delta(text(delta.text) ?? '');
      case 'thinking_delta':
        return this.#delta(text(delta.thinking) ?? '');
      case 'input_json_delta':
        return this.#delta(text(delta.partial_json) ?? '');
      case 'signature_delta':
        open.signature = text(delta.signature);
        return NOTHING;
      case 'citations_delta':
        return isObject(delta.citation)
          ? [{ type: 'citation', index: open.index, citation: decodeCitation(delta.citation) }]
          : NOTHING;
      default:
        if (open.whole === undefined) return [opaqueEvent('content_block_delta', event)];
        // compaction_delta and similar deltas carry final values of the block's fields.
        open.whole = { ...open.whole, ...withoutType(delta) };
        return NOTHING;
    }
  }

  #delta(text: string): readonly StreamEvent[] {
    const open = this.#open;
    if (open === undefined || text === '') return NOTHING;
    open.hasDeltas = true;
    if (open.heldInput !== undefined) {
      open.heldInput.push(text);
      return NOTHING;
    }
    return [{ type: 'delta', index: open.index, text }];
  }

  #closeBlock(): StreamEvent[] {
    const open = this.#open;
    if (open === undefined) return [];
    this.#open = undefined;
    const { index } = open;
    const events: StreamEvent[] = [];
    switch (open.kind) {
      case 'text':
        break;
      case 'thinking': {
        // The signature comes once, at the end. An empty one of a vendor that does not sign is stored too,
        // because that vendor wants its thinking back unchanged.
        const sealed = {
          protocol: PROTOCOL,
          provider: this.context.target.provider,
          kind: 'signature',
          value: open.signature ?? '',
        } as const;
        events.push({ type: 'sealed', index, sealed });
        break;
      }
      case 'call': {
        const text = remainingInput(open);
        if (text !== '') events.push({ type: 'delta', index, text });
        break;
      }
      case 'whole': {
        const block = open.whole && decodeBlock(open.whole, 'content', this.#reader);
        if (block === undefined) {
          this.#next--;
          return events;
        }
        events.push({ type: 'block-start', index, head: { type: 'whole', block } });
      }
    }
    events.push({ type: 'block-stop', index });
    return events;
  }

  #messageDelta(event: JsonObject): StreamEvent[] {
    const events = this.#closeBlock();
    const delta = isObject(event.delta) ? event.delta : {};
    if (isObject(event.usage)) {
      this.#usage = mergeUsage(this.#usage, event.usage, this.#counted);
      const usage = decodeUsage(this.#usage);
      this.#counted ||= countsOutput(event.usage);
      if (usage !== undefined) {
        const told: Usage = this.#counted ? usage : { ...usage, unknown: 'output' };
        events.push({ type: 'usage', usage: told });
      }
    }
    const rest = restOfDelta(event, delta);
    if (rest !== undefined) events.push(opaqueEvent('message_delta', rest));
    if (typeof delta.stop_reason === 'string' && !this.#finished) {
      this.#finished = true;
      events.push(finishEvent(delta, this.#hasCalls));
    }
    return events;
  }

  #messageStop(): StreamEvent[] {
    const events = this.#closeBlock();
    if (!this.#finished) events.push(finishEvent({}, this.#hasCalls));
    this.#finished = true;
    this.#over = true;
    events.push({ type: 'end' });
    return events;
  }

  get fast(): FastDecoder {
    return this;
  }

  textRun(frames: string, at: number): TextRun | undefined {
    const template = this.textTemplate();
    return template && plainRun(frames, at, template);
  }

  textTemplate(): DecodedTextTemplate | undefined {
    return this.#over || this.#open?.hasDeltas !== true ? undefined : this.#open.textTemplate;
  }
}

/** The input of a call that no delta carried: held freeform input, or the input of the block's start. */
function remainingInput({ hasDeltas, heldInput, startInput = '' }: OpenBlock): string {
  if (heldInput === undefined) return hasDeltas ? '' : startInput;
  return unwrapFreeform(hasDeltas ? heldInput : startInput);
}
