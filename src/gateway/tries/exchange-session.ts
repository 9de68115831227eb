/** The session of an exchange, by which a target and a key are chosen; read from the body only when it is needed. */

import { firstMessages } from '../../conversation/session/first-messages.ts';
import { hashOf } from '../../lib/text/rendezvous.ts';
import type { Session } from '../../upstream/key-ring.ts';
import type { Exchange } from '../types.ts';

/** What is known of the answers that requests continue. */
export interface ContinuedSessions {
  /** The session of the answer that a request continues; undefined where it is not known. */
  continuedBy(exchange: Exchange, body: Uint8Array): string | undefined;
}

export class ExchangeSession implements Session {
  #affinity: string | undefined;
  #hash: number | undefined;

  /** @param bytes the client's body */
  constructor(
    private readonly exchange: Exchange,
    private readonly bytes: Uint8Array,
    private readonly continued?: ContinuedSessions,
  ) {}

  get owner(): string {
    return this.exchange.owner;
  }

  /** The client's session id, else that of the answer it continues, else its first messages, else the id of the exchange. */
  get affinity(): string {
    this.#affinity ??= this.#find();
    return this.#affinity;
  }

  get hash(): number {
    this.#hash ??= hashOf(this.affinity);
    return this.#hash;
  }

  #find(): string {
    const { id, sessionId, protocol } = this.exchange;
    if (sessionId !== '') return sessionId;
    const continued = this.continued?.continuedBy(this.exchange, this.bytes);
    if (continued !== undefined) return continued;
    const first = firstMessages(protocol.name, this.bytes);
    return first === '' ? id : `first ${hashOf(first)}`;
  }
}
