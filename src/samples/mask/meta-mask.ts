/** Masks the texts of a meta file one by one; names that the recorder sets itself stay. */

import { put } from '../../lib/json/json-members.ts';
import type { SampleMeta } from '../sample.ts';
import { countMasked, latin1Of, maskText } from './body-mask.ts';

/** Members by which samples are found and read: a client cannot hide them by naming its secret the same. */
const OWN = new Set([
  'id',
  'entry',
  'state',
  'run',
  'provider_protocol',
  'owner',
  'stage',
  'file',
  'protocol',
  'pace',
  'kind',
  'redacted',
]);

/** A memory space whose name must be masked is stored as its digest, so that it can still be erased. */
export const hashedSpace = (space: string) =>
  `sha256:${new Bun.CryptoHasher('sha256').update(space).digest('hex')}`;

export class MetaMask {
  /** Credentials masked so far. */
  count = 0;
  readonly #literals: readonly string[];

  /** @param literals known secrets, as of `spellings` */
  constructor(literals: readonly string[]) {
    this.#literals = literals;
  }

  whole(meta: SampleMeta): SampleMeta {
    const shown = this.#value(meta, '') as SampleMeta;
    const space = meta.memory_space;
    if (space === undefined || shown.memory_space === space) return shown;
    return { ...shown, memory_space: hashedSpace(space) };
  }

  #value(value: unknown, name: string): unknown {
    if (typeof value === 'string') return this.#text(value, name);
    if (Array.isArray(value)) return value.map((one) => this.#value(one, name));
    if (typeof value !== 'object' || value === null) return value;
    const out: Record<string, unknown> = {};
    for (const [key, member] of Object.entries(value)) {
      put(out, this.#text(key, ''), this.#value(member, key));
    }
    return out;
  }

  /** @param name of the member: `x-api-key-2` shows that the value is a key */
  #text(text: string, name: string): string {
    const before = latin1Of(`${name}":"`);
    const raw = before + latin1Of(text);
    const masked = maskText(raw, OWN.has(name) ? [] : this.#literals);
    if (masked === raw) return text;
    this.count += countMasked(raw, masked, before.length);
    const shown = masked.slice(before.length);
    return Buffer.from(shown, 'latin1').toString('utf8');
  }
}
