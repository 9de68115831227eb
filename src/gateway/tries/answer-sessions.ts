/** Which session an answer belongs to: a request that continues it (`previous_response_id`) says nothing else of its session. */

import { asBuffer } from '../../lib/bytes/bytes.ts';
import { tryParse } from '../../lib/json/json.ts';
import { memberStart, valueEnd } from '../../lib/json/scan-values.ts';
import { NewestMap } from '../../lib/loop/newest-map.ts';
import type { Exchange } from '../types.ts';
import type { ExchangeSession } from './exchange-session.ts';

/** A few megabytes at most; a conversation whose last answer is further back gets a place anew. */
const MAX = 20_000;
const MAX_ID = 200;

/** A session by what tells it from others. */
export type AnswerSession = Pick<ExchangeSession, 'affinity'>;

/** Remembers the sessions of the last answers. Another process does not know them. */
export class AnswerSessions {
  /** By owner and id of the answer. */
  readonly #known = new NewestMap<string, string>(MAX);

  /** An answer that may be continued belongs to this session. */
  learn(id: string, owner: string, { affinity }: AnswerSession): void {
    if (id.length > MAX_ID) return;
    this.#known.set(keyOf(owner, id), affinity);
  }

  /** The session of the answer that a request continues; undefined where it is not known. */
  continuedBy({ owner, protocol }: Exchange, body: Uint8Array): string | undefined {
    if (this.#known.size === 0 || protocol.name !== 'openai-responses') return undefined;
    const bytes = asBuffer(body);
    const start = memberStart(bytes, 'previous_response_id');
    if (start < 0) return undefined;
    const end = Math.min(valueEnd(bytes, start), start + MAX_ID * 2);
    const id = tryParse(bytes.toString('utf8', start, end));
    return typeof id === 'string' ? this.#known.get(keyOf(owner, id)) : undefined;
  }
}

const keyOf = (owner: string, id: string): string => `${owner}\n${id}`;
