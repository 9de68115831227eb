/** The session of an exchange, by which a target and a key are chosen; read from the body only when it is needed. */

import { firstMessages } from '../../conversation/session/first-messages.ts';
import { hashOf } from '../../lib/text/rendezvous.ts';
import type { Session } from '../../upstream/key-ring.ts';
import type { Exchange } from '../types.ts';

export class ExchangeSession implements Session {
  readonly #exchange: Exchange;
  readonly #bytes: Uint8Array;
  #affinity: string | undefined;
  #hash: number | undefined;

  /** @param bytes the client's body */
  constructor(exchange: Exchange, bytes: Uint8Array) {
    this.#exchange = exchange;
    this.#bytes = bytes;
  }

  /** The client's session id, else its first messages, else the id of the exchange. */
  get affinity(): string {
    this.#affinity ??= this.#find();
    return this.#affinity;
  }

  get hash(): number {
    this.#hash ??= hashOf(this.affinity);
    return this.#hash;
  }

  #find(): string {
    const { id, sessionId, protocol } = this.#exchange;
    if (sessionId !== '') return sessionId;
    const first = firstMessages(protocol.name, this.#bytes);
    return first === '' ? id : first;
  }
}
