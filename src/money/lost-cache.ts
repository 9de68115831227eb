/** The extra cost of a prompt whose cached prefix the vendor did not find again. */

import { firstMessages } from '../conversation/session/first-messages.ts';
import type { ProtocolName } from '../conversation/types.ts';
import { totalInput, type Usage } from '../conversation/usage.ts';
import { NewestMap } from '../lib/loop/newest-map.ts';
import { hashOf } from '../lib/text/rendezvous.ts';
import type { PicoRates } from './cost.ts';

/** All vendors keep a prompt for so long at least. */
export const KEPT_MS = 5 * 60_000;
/** Less is no loss: caches go by steps, and do not keep what is shorter. */
export const MIN_LOST = 2048;

/** Whose prompt it is. */
export interface Prompting {
  /** '' where the client sends none. */
  readonly sessionId: string;
  readonly protocol: { readonly name: string };
  readonly body: Uint8Array;
}

interface Prompt {
  readonly tokens: number;
  readonly time: number;
}

export interface Lost {
  readonly tokens: number;
  readonly nanoUsd: number;
}

const MAX_PROMPTS = 8192;

/** The last prompts of conversations, those that were asked last. */
export class LastPrompts {
  readonly #prompts = new NewestMap<string, Prompt>(MAX_PROMPTS);

  /**
   * Undefined: nothing is lost, or it cannot be known. A prompt that has become shorter was made anew by its client.
   * @param key of who asks
   */
  lost(
    asked: Prompting,
    key: string,
    target: string,
    usage: Usage,
    rates: PicoRates | undefined,
  ): Lost | undefined {
    const tokens = totalInput(usage);
    // A vendor that reports nothing of a cache may have one all the same.
    if (usage.cacheRead === undefined || tokens < MIN_LOST) return undefined;
    const time = Date.now();
    // Agents ask beside their main conversation under one session id.
    const first = hashOf(firstMessages(asked.protocol.name as ProtocolName, asked.body));
    const name = JSON.stringify([key, asked.sessionId.slice(0, 100), first, target]);
    const before = this.#prompts.get(name);
    this.#prompts.set(name, { tokens, time });
    if (before === undefined || time - before.time > KEPT_MS || tokens < before.tokens) {
      return undefined;
    }
    const missed = before.tokens - usage.cacheRead;
    if (missed < MIN_LOST || rates === undefined) return undefined;
    const written = Math.min(missed, usage.cacheWrite ?? 0);
    const pico =
      written * rates.cacheWrite + (missed - written) * rates.input - missed * rates.cached;
    return { tokens: missed, nanoUsd: Math.max(0, Math.round(pico / 1000)) };
  }
}
