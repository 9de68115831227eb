import { closed, count, number, type ProgramForm, seconds, secondsFrom } from '../file/schema.ts';

const DEFAULT_BODY_BYTES = 52_428_800;
const DEFAULT_TOOL_TEXT = 8192;
// Decoding, repair and encoding of so many are one step of the event loop each. The longest agent sessions have some thousands.
const DEFAULT_BLOCKS = 20_000;

// The runtime's own timer of a connection holds no more.
const connectionSeconds = (description: string) => secondsFrom(0, 255, description);

export const limits = closed('Limits on sizes, concurrency and waiting times.', {
  tool_rounds: count(
    'The largest number of follow-up hops of server tools; the last one is sent without them.',
  ).byDefault(8),
  body_bytes: count('The largest request body.', 1024).byDefault(DEFAULT_BODY_BYTES),
  form_bytes: count(
    'The largest form (multipart/form-data), for audio and images.',
    1024,
  ).byDefault(536_870_912),
  form_spool_bytes: count(
    'A form up to this size is read and checked before anything is sent, and can be sent again; in a larger one, the field model must be within these bytes.',
    1024,
  ).byDefault(33_554_432),
  blocks: count(
    'The most messages, content blocks and tools in a request that the gateway has to decode; with more, a 400. 0 = no limit.',
  ).byDefault(DEFAULT_BLOCKS),
  answer_bytes: count(
    'The largest upstream response that is read as a whole, and the most text of a translated stream, after decompression. A larger one is an error.',
    1024,
  ).byDefault(DEFAULT_BODY_BYTES),
  frame_bytes: count(
    "The largest single event of an upstream's stream, and the most bytes of a stream without content (comments, pings, empty frames).",
    1024,
  ).byDefault(33_554_432),
  header_bytes: count("The largest size of an upstream's headers in bytes.", 1024).byDefault(
    65_536,
  ),
  headers: count("The largest number of header lines in an upstream's response.", 16).byDefault(
    256,
  ),
  tool_text: count(
    "Characters of a tool result's text, for vendors that need it short; 0 = no limit.",
  ).orElse(
    `$HOPGATE_TOOL_TEXT_LIMIT (or its older name $RCC_TOOL_TEXT_LIMIT), else ${DEFAULT_TOOL_TEXT}`,
    ({ environment }) => environment.toolTextLimit ?? DEFAULT_TOOL_TEXT,
  ),
  concurrency: count('Requests at the same time over all providers; 0 = no limit.').byDefault(0),
  idle_connection: connectionSeconds(
    'Seconds after which an idle connection of a client is closed, or up to eight later; 0 = never.',
  ).byDefault(75),
  idle_body: connectionSeconds(
    'Seconds within which the next 64 KB of a request body (or its end) must arrive, or the connection is closed, up to eight later; 0 = no limit.',
  ).byDefault(30),
  unfinished_bytes: count(
    'Bytes of request bodies that have come in part or are being decompressed, of all clients; beyond that, or an eighth of the memory, a 503. 0 = no limit.',
  ).byDefault(268_435_456),
  running_bytes: count(
    'The same for bodies of 256 KB or more whose requests are in progress, with a quarter.',
  ).byDefault(1_073_741_824),
  history_bytes: count(
    'Memory for the last turn of sessions with requests of 64 KB or more, which makes the next turn cheaper. At most an eighth of all memory; a body larger than an eighth of this is not kept. 0 = nothing is kept.',
  ).byDefault(268_435_456),
  websocket_minutes: number(
    'Minutes after which a WebSocket of the Responses API is closed, after an error frame; 0 = never.',
    { minimum: 0, maximum: 10_000 },
  ).byDefault(60),
  drain_delay: seconds(
    'Seconds for which a stopping server still takes requests while /readyz answers 503.',
  ).byDefault(0),
  drain: seconds('Seconds that a stopping server waits for open streams.').byDefault(30),
});

export type LimitsConfig = ProgramForm<typeof limits>;
