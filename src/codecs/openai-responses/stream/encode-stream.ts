/** Events to a Responses stream: the whole skeleton once, every item strictly after the other. */

import type { GatewayError } from '../../../conversation/errors.ts';
import type { FinishReason, StartEvent, StreamEvent } from '../../../conversation/events.ts';
import { toolEventWire } from '../../../conversation/tools/tool-events.ts';
import type { Usage } from '../../../conversation/usage.ts';
import { sseComment } from '../../../lib/bytes/sse.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { isObject } from '../../../lib/json/json.ts';
import type { ClientContext, StreamEncoder } from '../../codec.ts';
import { errorEvent } from '../reply/errors.ts';
import { encodeFinish, type ResponseStatus } from '../reply/finish-reason.ts';
import {
  echoRequest,
  head,
  type ResponseIdentity,
  responseIdentity,
  tail,
} from '../reply/response-object.ts';
import { PROTOCOL } from '../wire.ts';
import { CallWriter } from './encode-stream-call.ts';
import { HostedWriter } from './encode-stream-hosted.ts';
import { MessageWriter } from './encode-stream-message.ts';
import { ReasoningWriter } from './encode-stream-reasoning.ts';
import type { ItemStream, ItemWriter } from './item-writer.ts';

// A name goes onto a line of its own: nothing may break out of it.
const EVENT_NAME = /^[\w.-]+$/;

/** A stream encoder that can also tell the response object it ended with. */
export interface ResponseEncoder extends StreamEncoder {
  /** The response object so far; of a finished stream, the one in its last event. */
  response(): JsonObject;
}

export function encodeStream(context: ClientContext): ResponseEncoder {
  let out = '';
  let sequence = 0;
  let identity: ResponseIdentity | undefined;
  let echoed: JsonObject = {};
  let echoText = '';
  let usage: Usage | undefined;
  let finish: FinishReason | undefined;
  let outcome: ResponseStatus = { status: 'in_progress' };
  let open: ItemWriter | undefined;
  let refused = false;
  let over = false;
  let places = 0;
  const output: JsonObject[] = [];

  const writer: ItemStream = {
    context,
    send(type, members) {
      out += `event: ${type}\ndata: {"type":"${type}","sequence_number":${sequence++},${members}}\n\n`;
    },
    nextItem(prefix) {
      const index = places++;
      return { index, id: `${prefix}_${identity?.stem ?? ''}_${index}` };
    },
    done(index, item) {
      output.push(item);
      writer.send(
        'response.output_item.done',
        `"output_index":${index},"item":${JSON.stringify(item)}`,
      );
    },
  };

  function start(event?: StartEvent): ResponseIdentity {
    if (identity !== undefined) return identity;
    identity = responseIdentity(event, context);
    usage = event?.usage ?? usage;
    echoed = echoRequest(context, event?.rest);
    echoText = JSON.stringify(echoed).slice(1, -1);
    state('response.created', undefined);
    state('response.in_progress', undefined);
    return identity;
  }

  function state(type: string, used: Usage | undefined): void {
    const now = identity ?? start();
    const before = JSON.stringify(head(now, outcome)).slice(0, -1);
    const after = JSON.stringify(tail(output, used)).slice(1);
    writer.send(type, `"response":${before},${echoText},${after}`);
  }

  function closeItem(): void {
    const item = open;
    open = undefined;
    // Before the end has come no item is cut: another follows it.
    item?.close(encodeFinish(finish, refused).status === 'incomplete');
  }

  function openBlock(event: StreamEvent & { type: 'block-start' }): void {
    const { head: opened } = event;
    switch (opened.type) {
      case 'text':
      case 'refusal':
        if (opened.type === 'refusal') refused = true;
        // Neighbouring texts are parts of one message: a cited text of Messages is many blocks.
        if (!(open instanceof MessageWriter)) {
          closeItem();
          open = new MessageWriter(writer);
        }
        break;
      case 'reasoning':
        closeItem();
        open = new ReasoningWriter(writer);
        break;
      case 'tool-call':
        closeItem();
        open = opened.by === 'client' ? new CallWriter(writer, opened) : new HostedWriter(writer);
        break;
      case 'whole':
        if (opened.block.type === 'reasoning') {
          closeItem();
          open = new ReasoningWriter(writer);
        } else if (!(open instanceof HostedWriter) || !open.accepts(opened.block)) {
          closeItem();
          open = new HostedWriter(writer);
        }
        break;
    }
    open?.event(event);
  }

  function end(): void {
    closeItem();
    over = true;
    outcome = encodeFinish(finish, refused);
    state(`response.${outcome.status}`, usage);
  }

  function take(): string {
    const text = out;
    out = '';
    return text;
  }

  function event(event: StreamEvent): string {
    if (over) return '';
    switch (event.type) {
      case 'start':
        start(event);
        break;
      case 'block-start':
        start();
        openBlock(event);
        break;
      case 'delta':
      case 'sealed':
      case 'citation':
      case 'logprobs':
      case 'block-stop':
        open?.event(event);
        break;
      case 'usage':
        usage = event.usage;
        break;
      case 'finish':
        start();
        finish = event.reason;
        closeItem();
        break;
      case 'end':
        start();
        end();
        break;
      case 'error':
        return fail(event.error);
      case 'opaque':
        if (identity !== undefined) passOn(event.name, event.wire.value, event.wire.protocol);
        break;
      case 'tool-event':
        start();
        // Official clients replace what they have with any response object, and throw at events of other names.
        writer.send('keepalive', `"hopgate":${JSON.stringify(toolEventWire(event))}`);
        break;
    }
    return take();
  }

  /** An event of a Responses upstream that speaks of the response as a whole. */
  function passOn(name: string, value: unknown, protocol: string): void {
    if (protocol !== PROTOCOL || !isObject(value) || !EVENT_NAME.test(name)) return;
    if (value.output_index !== undefined || value.response !== undefined) return;
    const { type: _, sequence_number: __, ...members } = value;
    const text = JSON.stringify(members).slice(1, -1);
    if (text !== '') writer.send(name, text);
  }

  function fail(error: GatewayError): string {
    if (over) return '';
    start();
    over = true;
    open = undefined;
    outcome = { status: 'failed', error };
    const data = JSON.stringify(errorEvent(error, sequence++));
    out += `event: error\ndata: ${data}\n\n`;
    state('response.failed', usage);
    return take();
  }

  return {
    event,
    ping: () => sseComment('keep-alive'),
    fail,
    response() {
      const now = start();
      return { ...head(now, outcome), ...echoed, ...tail(output, usage) };
    },
  };
}
