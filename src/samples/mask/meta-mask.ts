/** Masks the texts of a meta file one by one; names that the recorder sets itself stay. */

import { put } from '../../lib/json/json-members.ts';
import { redactText } from '../../lib/text/redact.ts';
import { maskSecrets } from '../../lib/text/secret-spellings.ts';
import { sha256Hex } from '../../lib/text/sha256.ts';
import { wordSet } from '../../lib/text/words.ts';
import type { SampleMeta } from '../sample.ts';
import { latin1Of, maskText } from './body-mask.ts';
import { countMasked } from './text-mask.ts';

/** Members by which samples are found and read: a client cannot hide them by naming its secret the same. */
const OWN = wordSet(`
  id entry state run provider_protocol owner stage file protocol pace kind redacted
`);

/** A memory space whose name must be masked is stored as its digest, so that it can still be erased. */
export const hashedSpace = (space: string) => `sha256:${sha256Hex(space)}`;

/** A text that is an element of an array, on its own line. */
const ELEMENT = /\n *"[^"\n]*",?\n/;

/**
 * Whether {@link MetaMask} surely changes nothing, by one look at the meta as indented JSON. Without escapes each text
 * stands there as it is, behind its name (elements of an array do not), so whatever is found in one is found there.
 */
export function masksNothing(json: string, literals: readonly string[]): boolean {
  if (json.includes('\\') || Buffer.byteLength(json) !== json.length) return false;
  if (literals.some((literal) => literal.includes('"')) || ELEMENT.test(json)) return false;
  return maskSecrets(json, literals) === json && redactText(json).count === 0;
}

const NONE: readonly string[] = [];

/**
 * Texts in ASCII, with the name of their member, in which the patterns find nothing. The metas of two exchanges differ
 * in a few texts only: without this, their masks cost half of what a small exchange costs.
 */
const plain = new Set<string>();
const MAX_REMEMBERED = 4000;
const MAX_REMEMBERED_CHARACTERS = 200;

function remember(text: string): void {
  if (plain.size >= MAX_REMEMBERED) plain.clear();
  plain.add(text);
}

export class MetaMask {
  /** Credentials masked so far. */
  count = 0;

  /** @param literals known secrets, as of `spellings` */
  constructor(private readonly literals: readonly string[]) {}

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
    const literals = OWN.has(name) ? NONE : this.literals;
    const short = text.length <= MAX_REMEMBERED_CHARACTERS;
    const whole = short ? `${name}":"${text}` : '';
    if (short && plain.has(whole) && maskSecrets(whole, literals) === whole) return text;
    const before = latin1Of(`${name}":"`);
    const raw = before + latin1Of(text);
    const masked = maskText(raw, literals);
    if (masked === raw) {
      if (short && raw === whole) remember(whole);
      return text;
    }
    this.count += countMasked(raw, masked, before.length);
    const shown = masked.slice(before.length);
    return Buffer.from(shown, 'latin1').toString('utf8');
  }
}
