/** The section `limits`: sizes, numbers and times that no request, response or stop may exceed. */

import { type Static, Type } from '@sinclair/typebox';
import type { Environment } from '../environment.ts';
import { byDefault, closed, count, ms, optional, seconds } from '../file/schema-types.ts';

const DEFAULT_BODY_BYTES = 52_428_800;
const DEFAULT_TOOL_TEXT = 8192;
// Decoding, repair and encoding of so many are one step of the event loop each. The longest agent sessions have some thousands.
const DEFAULT_BLOCKS = 20_000;

// The runtime's own timer of a connection holds no more.
const connectionSeconds = (description: string) =>
  Type.Number({ minimum: 0, maximum: 255, description });

export const limits = closed(
  {
    tool_rounds: byDefault(
      count(
        'The largest number of follow-up hops of server tools; the last one is sent without them.',
      ),
      8,
    ),
    body_bytes: byDefault(count('The largest request body.', 1024), DEFAULT_BODY_BYTES),
    form_bytes: byDefault(
      count('The largest form (multipart/form-data), for audio and images.', 1024),
      536_870_912,
    ),
    form_spool_bytes: byDefault(
      count(
        'Bytes of a form that are kept until the request is over, in a temporary file if necessary. A form up to this size is read and checked before anything is sent, and can be sent again; in a larger form, the field model must be within these bytes.',
        1024,
      ),
      33_554_432,
    ),
    blocks: byDefault(
      count(
        'The largest number of messages, content blocks and tools in a request that the gateway has to decode. A request with more gets a 400; 0 = no limit.',
      ),
      DEFAULT_BLOCKS,
    ),
    answer_bytes: byDefault(
      count(
        'The largest upstream response that is read as a whole, and the most text of a stream that is translated. Counted after decompression. A larger one is cut off, and the client gets an error.',
        1024,
      ),
      DEFAULT_BODY_BYTES,
    ),
    frame_bytes: byDefault(
      count(
        "The largest single event of an upstream's stream, and the most bytes of a stream without content (comments, pings, empty frames).",
        1024,
      ),
      33_554_432,
    ),
    header_bytes: byDefault(
      count("The largest size of an upstream's headers in bytes.", 1024),
      65_536,
    ),
    headers: byDefault(
      count("The largest number of header lines in an upstream's response.", 16),
      256,
    ),
    tool_text: optional(
      count("Characters of a tool result's text, for vendors that need it short; 0 = no limit."),
      `$HOPGATE_TOOL_TEXT_LIMIT (or its older name $RCC_TOOL_TEXT_LIMIT), else ${DEFAULT_TOOL_TEXT}`,
    ),
    concurrency: byDefault(count('Requests at the same time over all providers; 0 = no limit.'), 0),
    idle_connection: byDefault(
      connectionSeconds(
        'Seconds after which an idle connection of a client is closed; it can take up to eight seconds longer. 0 = never.',
      ),
      75,
    ),
    idle_body: byDefault(
      connectionSeconds(
        'Seconds within which the next 64 KB of a request body (or its end) must arrive. Otherwise the connection is closed, up to eight seconds later; 0 = no limit.',
      ),
      30,
    ),
    unfinished_bytes: byDefault(
      count(
        'Bytes of request bodies that have come in part or are being decompressed, of all clients together. One key, or without keys one address, may hold three times what is free for others. A request beyond that gets a 503; 0 = no limit.',
      ),
      268_435_456,
    ),
    running_bytes: byDefault(
      count(
        'Bytes of request bodies of 256 KB or more whose requests are in progress, of all clients together. One key, or without keys one address, may hold three times what is free for others. A request beyond that gets a 503; 0 = no limit.',
      ),
      1_073_741_824,
    ),
    history_bytes: byDefault(
      count(
        'Memory for the last turn of each session whose requests have 64 KB or more, so that only what the next turn adds has to be processed. The oldest are removed first. A body larger than an eighth of this is not kept; 0 = nothing is kept.',
      ),
      268_435_456,
    ),
    websocket_minutes: byDefault(
      Type.Number({
        minimum: 0,
        maximum: 10_000,
        description:
          'Minutes after which a WebSocket of the Responses API is closed, after an error frame; 0 = never.',
      }),
      60,
    ),
    drain_delay: byDefault(
      seconds(
        'Seconds for which a stopping server still takes requests while /readyz answers 503, so that a load balancer notices it.',
      ),
      0,
    ),
    drain: byDefault(seconds('Seconds that a stopping server waits for open streams.'), 30),
  },
  'Limits on sizes, concurrency and waiting times.',
);

export interface LimitsConfig {
  /** Follow-up hops of server tools. */
  readonly toolRounds: number;
  readonly bodyBytes: number;
  /** Of a form. */
  readonly formBytes: number;
  /** Of a form that are kept until the request is over. */
  readonly formSpoolBytes: number;
  /** Messages, content blocks and tools of a request that is decoded; 0 = no limit. */
  readonly blocks: number;
  /** Characters of a tool result's text, for vendors that need it short; 0 = no limit. */
  readonly toolText: number;
  /** Requests at the same time over all providers; 0 = no limit. */
  readonly concurrency: number;
  /** A client's connection without a request; 0 = no limit. */
  readonly idleConnectionMs: number;
  /** Until the next 64 KB of a request's body; 0 = no limit. */
  readonly idleBodyMs: number;
  /** Of bodies that are still arriving or being decompressed, of all clients together; 0 = no limit. */
  readonly unfinishedBytes: number;
  /** Of large bodies whose requests run, of all clients together; 0 = no limit. */
  readonly runningBytes: number;
  /** For the last turns of sessions; 0 = nothing is kept. */
  readonly historyBytes: number;
  /** A WebSocket, whatever happens on it; 0 = no limit. */
  readonly websocketMs: number;
  /** How long a server that got SIGTERM still takes requests, as one that is not ready. */
  readonly drainDelayMs: number;
  /** How long SIGTERM waits for open streams. */
  readonly drainMs: number;
}

/** How large an upstream's response may be. */
export interface AnswerLimits {
  /** Of a response that is read as a whole, and of the text of one that is translated; decompressed. */
  readonly bytes: number;
  /** Of one event of a stream, and of everything in a stream that is no content. */
  readonly frameBytes: number;
  /** Of all header lines, those of informational responses included. */
  readonly headerBytes: number;
  /** How many header lines there may be. */
  readonly headers: number;
}

export const resolveLimits = (
  own: Static<typeof limits>,
  { toolTextLimit }: Environment,
): LimitsConfig => ({
  toolRounds: own.tool_rounds,
  bodyBytes: own.body_bytes,
  formBytes: own.form_bytes,
  formSpoolBytes: own.form_spool_bytes,
  blocks: own.blocks,
  historyBytes: own.history_bytes,
  toolText: own.tool_text ?? toolTextLimit ?? DEFAULT_TOOL_TEXT,
  concurrency: own.concurrency,
  idleConnectionMs: ms(own.idle_connection),
  idleBodyMs: ms(own.idle_body),
  unfinishedBytes: own.unfinished_bytes,
  runningBytes: own.running_bytes,
  websocketMs: ms(own.websocket_minutes * 60),
  drainDelayMs: ms(own.drain_delay),
  drainMs: ms(own.drain),
});

export const resolveAnswerLimits = (own: Static<typeof limits>): AnswerLimits => ({
  bytes: own.answer_bytes,
  frameBytes: own.frame_bytes,
  headerBytes: own.header_bytes,
  headers: own.headers,
});
