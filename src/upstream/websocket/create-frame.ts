/** A request to create a response, from the body of a POST to the frame of a vendor's WebSocket. */

import { putTurnState } from '../../conversation/session/turn-state.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  type Member,
  topLevel,
  tryParse,
} from '../../lib/json/json.ts';
import { topLevelInSlices } from '../../lib/json/large-json.ts';

/** Larger bodies are looked through in slices. */
const LARGE = 2 * 1024 * 1024;
// A socket streams always, and has no background.
const LEFT_OUT = new Set(['type', 'stream', 'background']);
/** What may differ between two requests of which one continues the other. */
const MAY_DIFFER = new Set(['input', 'client_metadata', 'metadata']);
const METADATA = 'client_metadata';
const PREVIOUS = 'previous_response_id';

/** The request, for as many frames as it takes. */
export class CreateRequest {
  #items: readonly Json[] | undefined;

  constructor(
    /** Name and member as text, `"model":"m"`, in their order. */
    private readonly members: readonly (readonly [string, string])[],
    private readonly input: string | undefined,
  ) {}

  /** With this `x-codex-turn-state`, where there is one. */
  inTurn(state: string | null): CreateRequest {
    if (state === null) return this;
    const before = this.members.find(([name]) => name === METADATA)?.[1];
    const text = putTurnState(before?.slice(before.indexOf(':') + 1), state);
    const others = this.members.filter(([name]) => name !== METADATA);
    return new CreateRequest([...others, [METADATA, `"${METADATA}":${text}`]], this.input);
  }

  /** All that was asked. */
  whole(): string {
    return frame(this.members.map(([, text]) => text));
  }

  /** Only what comes behind the first items, which a response that the vendor knows stands for. */
  behind(count: number, id: string): string {
    const own = this.members.filter(([name]) => name !== 'input').map(([, text]) => text);
    const items = JSON.stringify(this.items.slice(count));
    return frame([...own, `"${PREVIOUS}":${JSON.stringify(id)}`, `"input":${items}`]);
  }

  /** What must be the same for one request to continue the other; undefined where it says itself what it continues. */
  get settings(): string | undefined {
    if (this.members.some(([name]) => name === PREVIOUS)) return undefined;
    const same = this.members.filter(([name]) => !MAY_DIFFER.has(name));
    return same.map(([, text]) => text).join(',');
  }

  /** The items of the input; none where it is a text. */
  get items(): readonly Json[] {
    if (this.#items === undefined) {
      const value = this.input === undefined ? undefined : tryParse(this.input);
      this.#items = Array.isArray(value) ? value : [];
    }
    return this.#items;
  }
}

const frame = (members: readonly string[]) =>
  `{${['"type":"response.create"', ...members].join(',')}}`;

/** The request in this body; undefined where no stream is asked for, or a job in the background. */
export function createRequest(
  body: Uint8Array,
): CreateRequest | undefined | Promise<CreateRequest | undefined> {
  if (body.length <= LARGE) return requestIn(body, topLevel(body));
  return topLevelInSlices(body).then((members) =>
    members === 'blank' ? undefined : requestIn(body, members),
  );
}

function requestIn(
  body: Uint8Array,
  members: ReadonlyMap<string, Member> | undefined,
): CreateRequest | undefined {
  if (members === undefined) return undefined;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const text = (key: string) => {
    const at = members.get(key);
    return at && bytes.toString('utf8', at.valueStart, at.valueEnd);
  };
  if (text('stream') !== 'true' || text('background') === 'true') return undefined;
  const kept = [...members].filter(([key]) => !LEFT_OUT.has(key));
  const parts = kept.map(
    ([key, { keyStart, valueEnd }]) => [key, bytes.toString('utf8', keyStart, valueEnd)] as const,
  );
  return new CreateRequest(parts, text('input'));
}

/** What a vendor knows of the last response on a connection: it may be continued there, stored or not. */
export class LastResponse {
  private constructor(
    readonly id: string,
    private readonly settings: string,
    /** Of each item up to and including the answer. */
    private readonly digests: readonly string[],
  ) {}

  /** Undefined for a response that cannot be continued. */
  static of(request: CreateRequest, response: JsonObject): LastResponse | undefined {
    const { id, output } = response;
    const { settings, items } = request;
    if (typeof id !== 'string' || !Array.isArray(output) || !output.every(isObject))
      return undefined;
    if (settings === undefined || items.length === 0) return undefined;
    return new LastResponse(id, settings, [...items, ...output].map(digest));
  }

  /** The frame that says only what is new; undefined if the request does not continue this response. */
  continuedBy(request: CreateRequest): string | undefined {
    const known = this.digests.length;
    if (request.settings !== this.settings || request.items.length <= known) return undefined;
    const same = this.digests.every((one, i) => one === digest(request.items[i]!));
    return same ? request.behind(known, this.id) : undefined;
  }
}

const digest = (item: Json): string => Bun.SHA256.hash(JSON.stringify(item), 'base64');
