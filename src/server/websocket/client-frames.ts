/** Reads what a client sends on a WebSocket of the Responses API. */

import { checkNames } from '../../conversation/body-names.ts';
import { asGatewayError, GatewayError, invalid } from '../../conversation/errors.ts';
import { takeTurnState } from '../../conversation/session/turn-state.ts';
import { checkValues } from '../../gateway/client-request.ts';
import {
  isObject,
  type Member,
  type Members,
  parseJson,
  topLevel,
  tryParse,
} from '../../lib/json/json.ts';
import { topLevelInSlices } from '../../lib/json/large-json.ts';
import { printableLine } from '../../lib/text/printable-text.ts';
import { messageOf } from '../../lib/text/thrown.ts';

/** The client asks for a response. */
export interface Creation {
  readonly kind: 'create';
  /** The named lane; undefined for the default one. */
  readonly streamId: string | undefined;
  /** The body of the same request by POST, streamed. */
  readonly body: Uint8Array;
  /** The response that it continues, if that can be read. */
  readonly previous: string | undefined;
  /** False: only the input is to be remembered, under an id to continue from. */
  readonly generate: boolean;
  /** `x-codex-turn-state` of its `client_metadata`; the body is without it. */
  readonly turnState: string | undefined;
}

/** The client wants to change the course of a response under way. */
export interface Steering {
  readonly kind: 'steer';
  readonly streamId: string | undefined;
  readonly previous: string | undefined;
}

/** `skip`: it needs no answer. */
export type ClientFrame = Creation | Steering | { readonly kind: 'skip' };

/** A frame that cannot be read, and the lane that it names, where that can be read. */
export class UnreadableFrame {
  readonly lane: { readonly streamId: string | undefined } | undefined;

  constructor(
    readonly error: GatewayError,
    lane?: UnreadableFrame['lane'],
  ) {
    this.lane = lane;
  }
}

/** Up to this size a frame is parsed to see whether it is JSON: a fraction of a millisecond. */
const SMALL = 64 * 1024;
/** What is larger is looked through in slices. */
const LARGE = 2 * 1024 * 1024;
const STREAM_ID = /^[A-Za-z0-9_.-]{1,256}$/;
// Members of the frame that are not the body's, and those that a socket decides by itself.
const OF_THE_FRAME = new Set(['type', 'stream_id', 'generate', 'stream', 'background']);
// No name of an event and no id is longer.
const MAX_PER_NAME = 1024;
const MAX_OF_METADATA = 256 * 1024;

const COMMA = Buffer.from(',');
const OPEN = Buffer.from('{');
const LAST = Buffer.from('"stream":true}');

/** One text frame. Only a large one is waited for. */
export function readFrame(
  text: string,
): ClientFrame | UnreadableFrame | Promise<ClientFrame | UnreadableFrame> {
  const bytes = Buffer.from(text);
  if (bytes.length <= LARGE) return frameOf(bytes, topLevel(bytes));
  return readLarge(bytes);
}

async function readLarge(bytes: Buffer): Promise<ClientFrame | UnreadableFrame> {
  try {
    // Before its members are listed: they may be millions.
    await checkValues(bytes);
  } catch (thrown) {
    return new UnreadableFrame(asGatewayError(thrown));
  }
  const members = await topLevelInSlices(bytes);
  return members === 'blank'
    ? new UnreadableFrame(invalid('The frame holds more than a megabyte of white space.'))
    : frameOf(bytes, members);
}

function frameOf(bytes: Buffer, members: Members | undefined): ClientFrame | UnreadableFrame {
  // The scan takes anything between two commas for a value. What is larger is read by the gateway alone.
  const isRead =
    members !== undefined && (bytes.length > SMALL || tryParse(bytes.toString()) !== undefined);
  if (!isRead) return new UnreadableFrame(notAnObject(bytes));
  try {
    checkNames(members);
  } catch (thrown) {
    return new UnreadableFrame(asGatewayError(thrown));
  }
  const name = (key: string) => nameIn(bytes, members.get(key));
  const streamId = members.has('stream_id') ? name('stream_id') : undefined;
  if (members.has('stream_id') && (streamId === undefined || !STREAM_ID.test(streamId))) {
    return new UnreadableFrame(
      new GatewayError(
        'invalid_request',
        "Invalid 'stream_id': expected 1 to 256 characters of A-Z, a-z, 0-9, '_', '.' and '-'.",
        { param: 'stream_id', code: 'invalid_stream_id', retryable: false },
      ),
    );
  }
  const type = name('type');
  const previous = name('previous_response_id');
  if (type === 'response.create') {
    const wrong = complaint(bytes, members);
    if (wrong !== undefined) return new UnreadableFrame(wrong, { streamId });
    const generate = textOf(bytes, members.get('generate')) !== 'false';
    const metadata = members.get('client_metadata');
    const state =
      metadata && metadata.valueEnd - metadata.valueStart <= MAX_OF_METADATA
        ? takeTurnState(bytes.toString('utf8', metadata.valueStart, metadata.valueEnd))
        : undefined;
    const body = bodyOf(bytes, members, state?.rest);
    return { kind: 'create', streamId, body, previous, generate, turnState: state?.value };
  }
  if (type === 'response.steer') return { kind: 'steer', streamId, previous };
  // Codex says that it has read a response.
  if (type === 'response.processed') return { kind: 'skip' };
  const words =
    type === undefined
      ? "Missing or invalid 'type' of this frame: expected 'response.create'."
      : `Unknown type of frame '${printableLine(type, 60)}': expected 'response.create'.`;
  return new UnreadableFrame(invalid(words, 'type'), { streamId });
}

/** What is wrong with the members by which a socket goes. */
function complaint(bytes: Buffer, members: Members): GatewayError | undefined {
  const generate = textOf(bytes, members.get('generate'));
  if (generate !== undefined && generate !== 'true' && generate !== 'false') {
    return invalid("Invalid type for 'generate': expected true or false.", 'generate');
  }
  if (textOf(bytes, members.get('background')) === 'true') {
    return invalid("'background' is not offered on a WebSocket; use POST.", 'background');
  }
  return undefined;
}

/** The request without what belongs to the frame; everything else keeps its bytes. */
function bodyOf(bytes: Buffer, members: Members, metadata: string | undefined): Uint8Array {
  const pieces: Buffer[] = [OPEN];
  const order = [...members].sort(([, a], [, b]) => a.keyStart - b.keyStart);
  for (const [key, { keyStart, valueEnd }] of order) {
    if (key === 'client_metadata' && metadata !== undefined) {
      pieces.push(Buffer.from(`"client_metadata":${metadata}`), COMMA);
    } else if (!OF_THE_FRAME.has(key)) pieces.push(bytes.subarray(keyStart, valueEnd), COMMA);
  }
  pieces.push(LAST);
  return Buffer.concat(pieces);
}

const textOf = (bytes: Buffer, member: Member | undefined): string | undefined =>
  member &&
  bytes.toString('latin1', member.valueStart, Math.min(member.valueEnd, member.valueStart + 8));

/** A string of the length of a name. */
function nameIn(bytes: Buffer, member: Member | undefined): string | undefined {
  if (member === undefined || member.valueEnd - member.valueStart > MAX_PER_NAME) return undefined;
  const value = tryParse(bytes.toString('utf8', member.valueStart, member.valueEnd));
  return typeof value === 'string' ? value : undefined;
}

/** The precise complaint about a frame whose members could not be found. */
function notAnObject(bytes: Buffer): GatewayError {
  try {
    if (isObject(parseJson(bytes.toString()))) return invalid('The frame cannot be read.');
  } catch (thrown) {
    if (thrown instanceof RangeError) return invalid('The frame is nested too deeply.');
    const detail = messageOf(thrown);
    return invalid(`The frame is not valid JSON: ${detail.slice(0, 200)}`);
  }
  return invalid('The frame must be a JSON object.');
}
