/** Events as tables hold them: in Postgres, texts are sealed, and words, tags and fingerprints are hashed with the secret. */

import type { MemoryEvent } from '../../../conversation/memory.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';
import { prefixedId } from '../../../lib/text/ids.ts';
import { nameHash } from '../../../state/erasures.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import { type CheckedEvent, fingerprint, indexedText } from '../event.ts';
import { digestOf } from '../ranking/digest.ts';
import { termsOf } from '../ranking/terms.ts';

/** An event as a row of `memory_events` holds it. */
export interface StoredEvent extends Omit<MemoryEvent, 'text' | 'source'> {
  readonly body: Uint8Array;
  readonly print: string;
  /** UTF-8 bytes of the text. */
  readonly bytes: number;
  readonly length: number;
  readonly terms: readonly string[];
  readonly digest: Uint8Array;
}

/** The fields of a row that are read. */
export type ReadEvent = Pick<StoredEvent, 'id' | 'time' | 'body' | 'importance'>;

/** The event with an id of its own, so that a second write of it is known. */
export const withId = (event: CheckedEvent): CheckedEvent & { readonly id: string } => ({
  ...event,
  id: event.id ?? prefixedId('mem_'),
});

/** For a file, which holds bytes as they are, without the head that a seal puts before them. */
export const UNSEALED: TextSeal = {
  seal: (plain) => plain,
  open: (stored) => stored,
  blind: (word) => word,
};

export class SealedEvents {
  constructor(private readonly seal: TextSeal) {}

  sealed(space: string, event: CheckedEvent): StoredEvent {
    const { id, time, text, source, tags, importance } = withId(event);
    const body = Buffer.from(JSON.stringify({ text, source, tags }));
    const terms = termsOf(indexedText(event));
    const { counts, length } = terms;
    return {
      id,
      time,
      body: this.seal.seal(body, bodyPlace(space, id)),
      tags: tags.map((tag) => this.tag(space, tag)),
      importance,
      print: this.print(space, Buffer.from(fingerprint(event)).toString('hex')),
      bytes: Buffer.byteLength(text),
      length,
      terms: [...counts.keys()].map((term) => this.term(space, term)),
      digest: this.sealedDigest(space, id, digestOf(event, terms)),
    };
  }

  /** @param print in hexadecimal */
  print(space: string, print: string): string {
    return this.seal.blind(print, `${space}\nprint`);
  }

  turn(space: string, name: string): string {
    return this.seal.blind(name, `${space}\nturn`);
  }

  /** Undefined: it was sealed with a secret that is not configured any more. */
  opened(space: string, { id, time, body, importance }: ReadEvent): MemoryEvent | undefined {
    const plain = this.seal.open(body, bodyPlace(space, id));
    const value = plain && tryParse(Buffer.from(plain).toString());
    if (!isObject(value)) return undefined;
    const { text, source, tags } = value as unknown as Pick<
      CheckedEvent,
      'text' | 'source' | 'tags'
    >;
    return { id, time, text, ...(source !== '' && { source }), tags, importance };
  }

  sealedDigest(space: string, id: string, digest: Uint8Array): Uint8Array {
    return this.seal.seal(digest, digestPlace(space, id));
  }

  /** Undefined as for {@link opened}. */
  openedDigest(space: string, id: string, digest: Uint8Array): Uint8Array | undefined {
    return this.seal.open(digest, digestPlace(space, id));
  }

  /** A term as it is searched for. */
  term(space: string, term: string): string {
    return this.seal.blind(term, space);
  }

  /** Hashed in any case: a tag can hold what Postgres takes in no text (U+0000). */
  tag(space: string, tag: string): string {
    return this.seal === UNSEALED ? tag : this.seal.blind(nameHash(tag), `${space}\ntag`);
  }

  /** @param part `signs` or `vector` */
  sealedPart(part: string, space: number, seq: number, bytes: Uint8Array): Uint8Array {
    return this.seal.seal(bytes, vectorPlace(part, space, seq));
  }

  openedPart(part: string, space: number, seq: number, bytes: Uint8Array): Uint8Array {
    const plain = this.seal.open(bytes, vectorPlace(part, space, seq));
    // A copy: views on it need an even start.
    return plain === undefined ? new Uint8Array(0) : new Uint8Array(plain);
  }
}

// Names of spaces have no control characters, so places of one kind are none of another.
const bodyPlace = (space: string, id: string) => `memory_events\n${space}\n${id}`;
const digestPlace = (space: string, id: string) => `memory_events\ndigest\n${space}\n${id}`;
const vectorPlace = (part: string, space: number, seq: number) =>
  `memory_vectors\n${part}\n${space}\n${seq}`;
