/** The last turn of each session, kept so that a turn costs only what it adds. Everything works without it. */

import { firstMessages } from '../../conversation/session/first-messages.ts';
import { KnownNodes } from '../../conversation/session/known-nodes.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import type { ByteList } from '../../lib/bytes/byte-list.ts';
import { rememberSearches } from '../../lib/bytes/bytes.ts';
import { type BodyPieces, bodyPieces } from '../../lib/json/body-pieces.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { type WrittenBody, writtenBody } from '../../lib/json/written-body.ts';
import { runAtOnce, runInSlices } from '../../lib/loop/steps.ts';
import { hashOf } from '../../lib/text/rendezvous.ts';

/** Whose request it is, and what tells its session. */
export interface Asker {
  readonly owner: string;
  readonly protocol: { readonly name: ProtocolName };
  /** The client's own; '' where it sends none. */
  readonly sessionId: string;
}

/** One turn's body, with what its session knew before. */
export interface History {
  readonly pieces: BodyPieces;
  /** Most of it was in the last turn. */
  readonly goesOn: boolean;
  /** What was decoded from values of the pieces. */
  readonly known: KnownNodes;
  /** The bytes of an encoded body. The bytes of the last one for this protocol are taken where they are the same. */
  write(protocol: ProtocolName, body: JsonObject): ByteList;
}

/** A smaller body costs less than it could save. */
export const MIN_BYTES = 64 * 1024;
/** A larger body is looked through in slices. */
const AT_ONCE_BYTES = 256 * 1024;
/** Histories of one session: agents ask beside their main conversation. */
const MAX_PER_SESSION = 4;
/** About what a piece takes beside its bytes. */
const PIECE_BYTES = 300;

export class Histories {
  readonly #sessions = new Map<string, KeptHistory[]>();
  /** Oldest first. */
  readonly #byAge = new Set<KeptHistory>();
  #held = 0;

  /** @param limit bytes that may be kept, about; 0 = nothing is */
  constructor(private readonly limit: () => number) {}

  /** Bytes that are kept, about. */
  get held(): number {
    return this.#held;
  }

  /** Sessions of which something is kept. */
  get size(): number {
    return this.#sessions.size;
  }

  /**
   * Looks through a body, of which nothing is looked at again that the session's last turn held. The body is kept
   * for the next turn. Undefined where nothing is kept, and for what is no JSON object.
   */
  read(asker: Asker, body: Buffer): History | undefined | Promise<History | undefined> {
    const limit = this.limit();
    // One body must not drive out all others.
    if (body.length < MIN_BYTES || body.length > limit / 8) return undefined;
    const key = keyOf(asker, body);
    const before = this.#nearest(key, body);
    const steps = bodyPieces(body, before?.pieces);
    return body.length <= AT_ONCE_BYTES
      ? this.#kept(key, before, runAtOnce(steps))
      : runInSlices(steps).then((pieces) => this.#kept(key, before, pieces));
  }

  #nearest(key: string, body: Buffer): KeptHistory | undefined {
    const own = this.#sessions.get(key) ?? NONE;
    // One alone is compared piece by piece in any case.
    if (own.length < 2) return own[0];
    let nearest: KeptHistory | undefined;
    let most = -1;
    for (let i = own.length - 1; i >= 0; i--) {
      const history = own[i]!;
      const { pieces } = history;
      const same = pieces.sharedWith(body);
      if (same > most) {
        nearest = history;
        most = same;
      }
      // The body goes on from it.
      if (same === pieces.pieces.length) break;
    }
    return nearest;
  }

  #kept(
    key: string,
    before: KeptHistory | undefined,
    pieces: BodyPieces | undefined,
  ): History | undefined {
    if (pieces === undefined) return undefined;
    rememberSearches(pieces.bytes, before?.pieces.bytes, pieces.fresh);
    const history = new KeptHistory(key, pieces, before, (added) => this.#grown(history, added));
    // A turn takes the place of the one that it goes on from; a conversation beside it has its own.
    if (before !== undefined && pieces.kept * 2 >= before.pieces.bytes.length) this.#drop(before);
    const own = this.#sessions.get(key);
    if (own === undefined) this.#sessions.set(key, [history]);
    else own.push(history);
    this.#byAge.add(history);
    this.#held += history.size;
    if (own !== undefined && own.length > MAX_PER_SESSION) this.#drop(own[0]!);
    this.#shrink();
    return history;
  }

  #grown(history: KeptHistory, added: number): void {
    if (!this.#byAge.has(history)) return;
    this.#held += added;
    this.#shrink();
  }

  #shrink(): void {
    const limit = this.limit();
    for (const oldest of this.#byAge) {
      if (this.#held <= limit) return;
      this.#drop(oldest);
    }
  }

  #drop(history: KeptHistory): void {
    if (!this.#byAge.delete(history)) return;
    this.#held -= history.size;
    const left = (this.#sessions.get(history.key) ?? []).filter((one) => one !== history);
    if (left.length === 0) this.#sessions.delete(history.key);
    else this.#sessions.set(history.key, left);
  }
}

const NONE: readonly KeptHistory[] = [];

/** Histories of different owners, or of different protocols, never meet. */
function keyOf({ owner, protocol, sessionId }: Asker, body: Buffer): string {
  const first = () => `first ${hashOf(firstMessages(protocol.name, body))}`;
  const sign = sessionId === '' ? first() : `id ${sessionId}`;
  return JSON.stringify([owner, protocol.name, sign]);
}

class KeptHistory implements History {
  readonly goesOn: boolean;
  readonly known: KnownNodes;
  readonly #written: Map<ProtocolName, WrittenBody>;
  /** Bytes, about: the body, its values, and what was written of it. */
  size: number;

  constructor(
    readonly key: string,
    readonly pieces: BodyPieces,
    before: KeptHistory | undefined,
    private readonly onGrown: (bytes: number) => void,
  ) {
    this.goesOn = pieces.kept * 2 > pieces.bytes.length;
    this.known = before?.known ?? new KnownNodes();
    this.#written = new Map(before === undefined ? [] : before.#written);
    this.size = 2 * pieces.bytes.length + PIECE_BYTES * pieces.pieces.length;
    for (const { held } of this.#written.values()) this.size += held;
  }

  write(protocol: ProtocolName, body: JsonObject): ByteList {
    const before = this.#written.get(protocol);
    const written = writtenBody(body, before);
    this.#written.set(protocol, written);
    const added = written.held - (before?.held ?? 0);
    this.size += added;
    this.onGrown(added);
    return written.body;
  }
}
