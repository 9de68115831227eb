/** A Messages stream as events; one JSON.parse a frame, none for plain text deltas. */

import type { BlockHead, StreamEvent } from '../../../conversation/events.ts';
import type { DecodedTextTemplate } from '../../../conversation/fast-text.ts';
import { unwrapFreeform } from '../../../conversation/tools/tool-names.ts';
import type { Block } from '../../../conversation/types.ts';
import type { SseFrame } from '../../../lib/bytes/sse.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import type { StreamDecoder, UpstreamContext } from '../../codec.ts';
import { merged } from '../reply/digest.ts';
import { decodeErrorBody } from '../reply/errors.ts';
import { upstreamReader } from '../reply/reply.ts';
import { decodeUsage } from '../reply/usage.ts';
import { decodeBlock } from '../request/decode-blocks.ts';
import { decodeCitation } from '../server-tools.ts';
import { number, PROTOCOL, string, wireOf } from '../wire.ts';
import {
  broken,
  finish,
  opaque,
  parse,
  plainText,
  restOfDelta,
  startEvent,
  withoutType,
} from './stream-frames.ts';

const NOTHING: readonly StreamEvent[] = [];

/** The block that is open, and what is known of it. */
interface Open {
  readonly index: number;
  readonly wireIndex: number;
  readonly kind: 'text' | 'thinking' | 'call' | 'whole';
  /** How a text delta of this block begins, up to the text: such frames need no parse. */
  readonly textPrefix: string;
  readonly textTemplate?: DecodedTextTemplate;
  /** Input of a freeform tool, held until its JSON is whole. */
  readonly held?: string[];
  /** Input that stood in the block's start, for relays that send it there. */
  readonly startInput?: string;
  /** A block with no deltas of its own: it is given out when it is complete. */
  whole?: JsonObject;
  signature?: string;
  said: boolean;
}

export function decodeStream(context: UpstreamContext): StreamDecoder {
  const reader = upstreamReader(context);
  const provider = context.target.provider;
  let next = 0;
  let open: Open | undefined;
  let usage: JsonObject = {};
  let started = false;
  let finished = false;
  let over = false;

  function openBlock(block: JsonObject, wireIndex: number): StreamEvent[] {
    const events = closeBlock();
    const type = string(block.type) ?? 'text';
    const base = { index: next, wireIndex, said: false };
    const start = (head: BlockHead): StreamEvent => ({
      type: 'block-start',
      index: base.index,
      head,
    });
    next++;
    switch (type) {
      case 'text': {
        const prefix = `{"type":"content_block_delta","index":${wireIndex},"delta":{"type":"text_delta","text":"`;
        const textTemplate = {
          head: `event: content_block_delta\ndata: ${prefix}`,
          foot: '"}}\n\n',
          index: base.index,
        };
        open = { ...base, kind: 'text', textPrefix: prefix, textTemplate };
        events.push(start({ type: 'text' }));
        if (typeof block.text === 'string') events.push(...delta(block.text));
        return events;
      }
      case 'thinking':
        open = { ...base, kind: 'thinking', textPrefix: '', signature: string(block.signature) };
        events.push(start({ type: 'reasoning' }));
        if (typeof block.thinking === 'string') events.push(...delta(block.thinking));
        return events;
      case 'tool_use':
      case 'server_tool_use':
      case 'mcp_tool_use': {
        const call = decodeBlock(block, 'content', reader);
        if (call?.type !== 'tool-call') return events;
        const { id, name, namespace, kind, by } = call;
        const given = isObject(block.input) && Object.keys(block.input).length > 0;
        open = {
          ...base,
          kind: 'call',
          textPrefix: '',
          ...(kind === 'custom' ? { held: [] } : {}),
          ...(given ? { startInput: JSON.stringify(block.input) } : {}),
        };
        const ns = namespace === undefined ? {} : { namespace };
        events.push(
          start({ type: 'tool-call', id, name, ...ns, kind, by, residue: wireOf(block) }),
        );
        return events;
      }
      default:
        open = { ...base, kind: 'whole', textPrefix: '', whole: block };
        return events;
    }
  }

  function delta(text: string): readonly StreamEvent[] {
    if (open === undefined || text === '') return NOTHING;
    open.said = true;
    if (open.held !== undefined) {
      open.held.push(text);
      return NOTHING;
    }
    return [{ type: 'delta', index: open.index, text }];
  }

  function closeBlock(): StreamEvent[] {
    if (open === undefined) return [];
    const { index, kind, held, startInput, whole, signature, said } = open;
    const events: StreamEvent[] = [];
    if (kind === 'whole') {
      const block: Block | undefined = whole && decodeBlock(whole, 'content', reader);
      if (block !== undefined)
        events.push({ type: 'block-start', index, head: { type: 'whole', block } });
      else {
        open = undefined;
        next--;
        return events;
      }
    } else if (kind === 'thinking') {
      // A signature comes once and last; the empty one of vendors that do not sign is remembered too,
      // for they want their thinking back as it was.
      const sealed = {
        protocol: PROTOCOL,
        provider,
        kind: 'signature',
        value: signature ?? '',
      } as const;
      events.push({ type: 'sealed', index, sealed });
    } else if (kind === 'call') {
      const input = said ? (held?.join('') ?? '') : (startInput ?? '');
      const text = held === undefined ? (said ? '' : input) : unwrapFreeform(input);
      if (text !== '') events.push({ type: 'delta', index, text });
    }
    events.push({ type: 'block-stop', index });
    open = undefined;
    return events;
  }

  /** A delta whose block was never opened, or was closed already: relays lose starts. */
  function reopen(change: JsonObject, wireIndex: number): StreamEvent[] {
    switch (change.type) {
      case 'text_delta':
      case 'citations_delta':
        return openBlock({ type: 'text' }, wireIndex);
      case 'thinking_delta':
      case 'signature_delta':
        return openBlock({ type: 'thinking' }, wireIndex);
      default:
        throw broken('a delta of a block that was never opened');
    }
  }

  function onDelta(event: JsonObject): readonly StreamEvent[] {
    const change = isObject(event.delta) ? event.delta : {};
    const wireIndex = number(event.index) ?? open?.wireIndex ?? 0;
    if (open === undefined || open.wireIndex !== wireIndex) {
      const events = reopen(change, wireIndex);
      return [...events, ...apply(change, event)];
    }
    return apply(change, event);
  }

  function apply(change: JsonObject, event: JsonObject): readonly StreamEvent[] {
    if (open === undefined) return NOTHING;
    switch (change.type) {
      case 'text_delta':
        return delta(string(change.text) ?? '');
      case 'thinking_delta':
        return delta(string(change.thinking) ?? '');
      case 'input_json_delta':
        return delta(string(change.partial_json) ?? '');
      case 'signature_delta':
        open.signature = string(change.signature);
        return NOTHING;
      case 'citations_delta':
        return isObject(change.citation)
          ? [{ type: 'citation', index: open.index, citation: decodeCitation(change.citation) }]
          : NOTHING;
      default:
        if (open.whole === undefined) return [opaque('content_block_delta', event)];
        // compaction_delta and its like carry final values of the block's fields.
        open.whole = { ...open.whole, ...withoutType(change) };
        return NOTHING;
    }
  }

  function onMessageDelta(event: JsonObject): StreamEvent[] {
    const events = closeBlock();
    const change = isObject(event.delta) ? event.delta : {};
    if (isObject(event.usage)) {
      usage = merged(usage, event.usage);
      const counts = decodeUsage(usage);
      if (counts !== undefined) events.push({ type: 'usage', usage: counts });
    }
    const rest = restOfDelta(event, change);
    if (rest !== undefined) events.push(opaque('message_delta', rest));
    if (typeof change.stop_reason === 'string' && !finished) {
      finished = true;
      events.push(finish(change));
    }
    return events;
  }

  function onStop(): StreamEvent[] {
    const events = closeBlock();
    if (!finished) events.push({ type: 'finish', reason: 'stop' });
    finished = true;
    over = true;
    events.push({ type: 'end' });
    return events;
  }

  function onEvent(event: JsonObject, name: string): readonly StreamEvent[] {
    const type = string(event.type) ?? name;
    switch (type) {
      case 'ping':
        return NOTHING;
      case 'message_start': {
        // Relays repeat it, or splice one in: the first counts.
        if (started || !isObject(event.message)) return NOTHING;
        started = true;
        usage = merged({}, event.message.usage);
        return [startEvent(event.message, usage, context)];
      }
      case 'content_block_start':
        return isObject(event.content_block)
          ? openBlock(event.content_block, number(event.index) ?? next)
          : NOTHING;
      case 'content_block_delta':
        return onDelta(event);
      case 'content_block_stop':
        return open !== undefined && (number(event.index) ?? open.wireIndex) === open.wireIndex
          ? closeBlock()
          : NOTHING;
      case 'message_delta':
        return onMessageDelta(event);
      case 'message_stop':
        return onStop();
      case 'error': {
        over = true;
        const events = closeBlock();
        events.push({ type: 'error', error: decodeErrorBody(event, { status: undefined }) });
        return events;
      }
      default:
        return isObject(event.error)
          ? onEvent({ ...event, type: 'error' }, name)
          : [opaque(type, event)];
    }
  }

  return {
    push(frame: SseFrame) {
      const { data } = frame;
      if (data === undefined || over) return NOTHING;
      if (open?.kind === 'text') {
        const text = plainText(data, open.textPrefix);
        if (text !== undefined) return delta(text);
      }
      if (data === '[DONE]' || data === '') return NOTHING;
      return onEvent(parse(data), frame.event);
    },
    end() {
      if (over) return NOTHING;
      over = true;
      const events = closeBlock();
      // The stop reason was said: only the terminal is missing, and nothing more can come.
      if (finished) events.push({ type: 'end' });
      return events;
    },
    fast: {
      textTemplate: () => (over || open?.said !== true ? undefined : open.textTemplate),
    },
  };
}
