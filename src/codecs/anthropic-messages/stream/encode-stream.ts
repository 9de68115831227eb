/** Events as a Messages stream; delta frames are put together from strings around the escaped text. */

import type { GatewayError } from '../../../conversation/errors.ts';
import type {
  BlockHead,
  DeltaEvent,
  FinishEvent,
  StartEvent,
  StreamEvent,
} from '../../../conversation/events.ts';
import type { TextTemplate } from '../../../conversation/fast-text.ts';
import { toolEventWire } from '../../../conversation/tools/tool-events.ts';
import type { Block, Sealed, ToolResultBlock } from '../../../conversation/types.ts';
import type { Usage } from '../../../conversation/usage.ts';
import { sseEvent } from '../../../lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import type { ClientContext, StreamEncoder } from '../../codec.ts';
import {
  type AwaitedResult,
  callHead,
  callView,
  clientSignature,
  isSealed,
  mediaText,
  messageId,
  ownBlock,
  servedBy,
  toldResultBlock,
} from '../reply/encode-reply-blocks.ts';
import { errorObject } from '../reply/errors.ts';
import { encodeStopReason } from '../reply/stop-reasons.ts';
import { encodeStartUsage, encodeUsage } from '../reply/usage.ts';
import { encodeCitation, hostedInput } from '../server-tools.ts';
import { PROTOCOL } from '../wire.ts';

/** The block that is open on the client's side. */
type Open =
  /** Opened when there is something to say: an empty text block may not be sent back later. */
  | { readonly kind: 'text'; opened: boolean; template?: TextTemplate }
  | { readonly kind: 'thinking'; opened: boolean; sealed: Sealed | undefined }
  | { readonly kind: 'call'; said: boolean }
  /** Freeform text inside `{"input":"…"}`. */
  | { readonly kind: 'freeform' }
  /** A hosted call told in this wire's words: its input is known only when it is whole. */
  | {
      readonly kind: 'hosted';
      readonly callId: string;
      readonly awaited: AwaitedResult;
      input: string;
    }
  /** Given out whole, or not at all: deltas have no place. */
  | { readonly kind: 'closed' };

const PING = sseEvent('ping', '{"type":"ping"}');
const CLOSED: Open = { kind: 'closed' };

const frame = (type: string, fields: JsonObject) =>
  sseEvent(type, JSON.stringify({ type, ...fields }));

export function encodeStream(context: ClientContext): StreamEncoder {
  const { notes, provider } = context;
  const view = callView(context);
  let started = false;
  let over = false;
  /** Index of the open block, or of the next one. */
  let index = 0;
  let open: Open = CLOSED;
  let prefix = '';
  let suffix = '';
  let calls = false;
  let refused = false;
  let start: StartEvent | undefined;
  let usage: Usage | undefined;
  let finish: FinishEvent | undefined;
  let beside: JsonObject | undefined;
  /** Hosted calls whose result has not come yet, by call id. */
  const awaited = new Map<string, AwaitedResult>();

  function begin(event: StartEvent | undefined): string {
    if (started) return '';
    started = true;
    start = event;
    usage ??= event?.usage;
    const { service_tier: _tier, inference_geo: _geo, ...rest } = ownFields(event?.rest);
    return frame('message_start', {
      message: {
        id: messageId(event?.id ?? '', context.requestId),
        type: 'message',
        role: 'assistant',
        model: event?.model ?? context.asked.model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        ...rest,
        usage: { ...encodeStartUsage(usage), ...servedBy(event?.rest) },
      },
    });
  }

  const blockStart = (block: JsonObject) =>
    frame('content_block_start', { index, content_block: block });

  /** Frame texts around the deltas of the open block. */
  function deltas(type: string, field: string): void {
    prefix = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${field}":`;
    suffix = '}}\n\n';
  }

  const put = (text: string) => prefix + JSON.stringify(text) + suffix;

  function blockStop(): string {
    const text = `event: content_block_stop\ndata: {"type":"content_block_stop","index":${index}}\n\n`;
    index++;
    open = CLOSED;
    return text;
  }

  /** A complete block: start and stop. */
  const wholeBlock = (block: JsonObject) => blockStart(block) + blockStop();

  /** The start of the open text or thinking block, once. */
  function opening(): string {
    if ((open.kind !== 'text' && open.kind !== 'thinking') || open.opened) return '';
    open.opened = true;
    const text = settle(open);
    if (open.kind === 'text') {
      deltas('text_delta', 'text');
      return text + blockStart({ type: 'text', text: '' });
    }
    deltas('thinking_delta', 'thinking');
    return text + blockStart({ type: 'thinking', thinking: '', signature: '' });
  }

  /** Results that never came: a call of a hosted tool without one would break the next request. */
  function settle(next: Open = CLOSED): string {
    if (awaited.size === 0) return '';
    let text = '';
    for (const call of awaited.values()) text += wholeBlock(toldResultBlock(call, undefined));
    awaited.clear();
    open = next;
    return text;
  }

  function openHead(head: BlockHead): string {
    switch (head.type) {
      case 'text':
      case 'refusal':
        refused ||= head.type === 'refusal';
        open = { kind: 'text', opened: false };
        return '';
      case 'reasoning':
        open = { kind: 'thinking', opened: false, sealed: undefined };
        return '';
      case 'tool-call':
        return settle() + openCall(head);
      case 'whole':
        return openWhole(head.block);
    }
  }

  function openCall(head: Extract<BlockHead, { type: 'tool-call' }>): string {
    const call = callHead(head, view);
    if (call === undefined) {
      notes.add('content_dropped', 'content', `hosted call ${head.name}`);
      open = CLOSED;
      return '';
    }
    calls ||= call.block.type === 'tool_use';
    deltas('input_json_delta', 'partial_json');
    const text = blockStart(call.block);
    if (call.tells !== undefined) {
      const awaiting = { id: String(call.block.id), tool: call.tells };
      open = { kind: 'hosted', callId: head.id, awaited: awaiting, input: '' };
      return text;
    }
    if (head.kind !== 'custom') {
      open = { kind: 'call', said: false };
      return text;
    }
    open = { kind: 'freeform' };
    return text + put('{"input":"');
  }

  function openWhole(block: Block): string {
    if (block.type === 'tool-result') return hostedResult(block);
    const text = settle();
    const own = ownBlock(block);
    if (own !== undefined) return text + wholeBlock(own);
    return text + spellOut(block);
  }

  function hostedResult(block: ToolResultBlock): string {
    const own = ownBlock(block);
    if (own !== undefined) return settle() + wholeBlock(own);
    const call = awaited.get(block.callId);
    if (call === undefined) {
      notes.add('content_dropped', 'content', 'result of a hosted tool');
      return '';
    }
    awaited.delete(block.callId);
    return wholeBlock(toldResultBlock(call, block));
  }

  /** A block of another wire that came whole. */
  function spellOut(block: Block): string {
    switch (block.type) {
      case 'reasoning':
        if (block.sealed?.kind === 'redacted') {
          const data = clientSignature(block.sealed, provider);
          return wholeBlock({ type: 'redacted_thinking', data });
        }
        return whole({ type: 'reasoning' }, block.text, block.sealed);
      case 'text':
      case 'refusal':
        return whole({ type: block.type }, block.text);
      case 'tool-call':
        return whole(block, block.input);
      case 'media':
        notes.add('content_bridged', 'content', `${block.media} as text`);
        return whole({ type: 'text' }, mediaText(block));
      default: {
        const text = block.type === 'opaque' ? block.text : undefined;
        const name = block.type === 'opaque' ? block.name : block.type;
        notes.add(text === undefined ? 'content_dropped' : 'content_bridged', 'content', name);
        return text === undefined ? '' : whole({ type: 'text' }, text);
      }
    }
  }

  function whole(head: BlockHead, text: string, sealed?: Sealed): string {
    const opened = openHead(head);
    if (open.kind === 'thinking') open.sealed = sealed;
    return opened + delta(text) + close();
  }

  function delta(text: string): string {
    if (text === '') return '';
    switch (open.kind) {
      case 'text':
      case 'thinking':
        return open.opened ? put(text) : opening() + put(text);
      case 'call':
        open.said ||= text.trim() !== '';
        return put(text);
      case 'freeform':
        return put(JSON.stringify(text).slice(1, -1));
      case 'hosted':
        open.input += text;
        return '';
      case 'closed':
        return '';
    }
  }

  function close(): string {
    switch (open.kind) {
      case 'text':
        if (open.opened) return blockStop();
        open = CLOSED;
        return '';
      case 'thinking': {
        const { sealed } = open;
        if (!open.opened && !isSealed(sealed)) {
          open = CLOSED;
          return '';
        }
        const text = opening();
        deltas('signature_delta', 'signature');
        return text + put(clientSignature(sealed, provider)) + blockStop();
      }
      case 'call':
        return (open.said ? '' : put('{}')) + blockStop();
      case 'freeform':
        return put('"}') + blockStop();
      case 'hosted': {
        awaited.set(open.callId, open.awaited);
        const input = hostedInput(open.awaited.tool, tryParse(open.input));
        return put(JSON.stringify(input)) + blockStop();
      }
      case 'closed':
        return '';
    }
  }

  function stop(): string {
    let text = begin(undefined) + close() + settle();
    const reason = encodeStopReason(finish?.reason ?? 'stop', { calls, refused });
    const { delta: more, usage: counts, ...fields } = beside ?? {};
    text += frame('message_delta', {
      delta: {
        stop_reason: reason,
        stop_sequence: finish?.stopSequence ?? null,
        ...(finish?.details === undefined ? {} : { stop_details: finish.details }),
        ...(isObject(more) ? more : {}),
      },
      usage: { ...encodeUsage(usage ?? start?.usage), ...(isObject(counts) ? counts : {}) },
      ...fields,
    });
    over = true;
    return `${text}event: message_stop\ndata: {"type":"message_stop"}\n\n`;
  }

  function fail(error: GatewayError): string {
    if (over) return '';
    over = true;
    return frame('error', { error: errorObject(error) });
  }

  /** Another's opaque events mean nothing here; our own go on, at the place where this stream is. */
  function opaque(name: string, value: Json): string {
    if (!isObject(value)) return '';
    if (name === 'message_delta') {
      beside = value;
      return '';
    }
    const text = begin(undefined);
    if (value.index === undefined) return text + sseEvent(name, JSON.stringify(value));
    return open === CLOSED ? text : text + sseEvent(name, JSON.stringify({ ...value, index }));
  }

  function event(event: StreamEvent): string {
    if (over) return '';
    switch (event.type) {
      case 'delta':
        return event.newPart && open.kind === 'thinking' && open.opened
          ? delta(`\n\n${event.text}`)
          : delta(event.text);
      case 'start':
        return begin(event);
      case 'block-start':
        return begin(undefined) + close() + openHead(event.head);
      case 'sealed':
        if (open.kind === 'thinking') open.sealed = event.sealed;
        return '';
      case 'citation':
        return open.kind === 'text' ? citation(encodeCitation(event.citation, notes)) : '';
      case 'block-stop':
        return close();
      case 'usage':
        usage = event.usage;
        return '';
      case 'finish':
        finish = event;
        return '';
      case 'end':
        return stop();
      case 'error':
        return fail(event.error);
      case 'opaque':
        return event.wire.protocol === PROTOCOL ? opaque(event.name, event.wire.value) : '';
      case 'logprobs':
        return '';
      case 'tool-event':
        // Every client skips a ping; an event of another name stops some.
        return (
          begin(undefined) +
          sseEvent('ping', JSON.stringify({ type: 'ping', hopgate: toolEventWire(event) }))
        );
    }
  }

  function citation(value: JsonObject | undefined): string {
    if (value === undefined) return '';
    const said = { type: 'citations_delta', citation: value };
    return opening() + frame('content_block_delta', { index, delta: said });
  }

  function skipText(said: DeltaEvent): void {
    const begun = (open.kind === 'text' || open.kind === 'thinking') && open.opened;
    if (begun || over) return;
    if (open.kind === 'call') open.said ||= said.text.trim() !== '';
    else event(said);
  }

  function textTemplate(): TextTemplate | undefined {
    if (over || open.kind !== 'text' || !open.opened) return undefined;
    open.template ??= { head: `${prefix}"`, foot: `"${suffix}` };
    return open.template;
  }

  const fast = { skipText, textTemplate };
  return { event, ping: () => (over ? '' : PING), fail, fast };
}

/** Of the fields beside a message those that this wire knows. */
function ownFields(rest: JsonObject | undefined): JsonObject {
  const own = ['container', 'context_management', 'input_transformations'];
  return Object.fromEntries(
    own.filter((key) => rest?.[key] !== undefined).map((key) => [key, rest?.[key]]),
  );
}
