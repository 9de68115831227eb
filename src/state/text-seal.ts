/** Seals texts that are stored in shared engines, so that those who can read an engine cannot read them. */

import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

/** Both directions of a seal. Without a secret the bytes are stored as they are. */
export interface TextSeal {
  /**
   * @param place where the bytes are stored (table or room, owner, key): they can be opened for this place only,
   *   so that nobody who can write to an engine moves one owner's text to another
   */
  seal(plain: Uint8Array, place: string): Uint8Array;
  /** Undefined: damaged, of another place, or sealed with a secret that is not configured any more. */
  open(stored: Uint8Array, place: string): Uint8Array | undefined;
  /** A word as it can be searched for without being stored: the same for the same word, place and secret. */
  blind(word: string, place: string): string;
}

/** First byte of what is stored: how the rest is to be read. */
const PLAIN = 0;
const SEALED = 1;
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES;
const BLIND_CHARACTERS = 22;

interface SealKey {
  readonly id: Buffer;
  readonly cipher: Buffer;
  readonly blind: Buffer;
}

/**
 * AES-256-GCM with keys derived from the secrets (HKDF, SHA-256).
 * @param secrets the first one seals, all of them open: a secret is changed by putting the new one first
 */
export function textSeal(secrets: readonly string[]): TextSeal {
  const keys = secrets.map(derived);
  const [first] = keys;
  return {
    seal(plain, place) {
      if (first === undefined) return Buffer.concat([Buffer.of(PLAIN), plain]);
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', first.cipher, nonce);
      cipher.setAAD(Buffer.from(place));
      const body = [cipher.update(plain), cipher.final()];
      return Buffer.concat([Buffer.of(SEALED), first.id, nonce, ...body, cipher.getAuthTag()]);
    },
    open(stored, place) {
      if (stored[0] === PLAIN) return stored.subarray(1);
      if (stored[0] !== SEALED || stored.length < HEAD_BYTES + TAG_BYTES) return undefined;
      const id = stored.subarray(1, 1 + KEY_ID_BYTES);
      const key = keys.find((one) => one.id.equals(id));
      if (key === undefined) return undefined;
      const nonce = stored.subarray(1 + KEY_ID_BYTES, HEAD_BYTES);
      const end = stored.length - TAG_BYTES;
      const decipher = createDecipheriv('aes-256-gcm', key.cipher, nonce);
      decipher.setAAD(Buffer.from(place));
      decipher.setAuthTag(stored.subarray(end));
      try {
        return Buffer.concat([decipher.update(stored.subarray(HEAD_BYTES, end)), decipher.final()]);
      } catch {
        return undefined;
      }
    },
    blind: (word, place) =>
      first === undefined
        ? word
        : createHmac('sha256', first.blind)
            .update(`${place}\0${word}`)
            .digest('base64url')
            .slice(0, BLIND_CHARACTERS),
  };
}

function derived(secret: string): SealKey {
  const part = (use: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', secret, '', `hopgate engines ${use}`, bytes));
  return { id: part('key id', KEY_ID_BYTES), cipher: part('cipher', 32), blind: part('blind', 32) };
}

/** In the files of a machine nothing is sealed. */
export const AS_IT_IS = textSeal([]);
