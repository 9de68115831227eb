/** Batch results: reads the usage of each answer, line by line, and settles the batch with it. */

import type { Codec } from '../../codecs/codec.ts';
import type { Payer, TryAccount } from '../../conversation/account/payer.ts';
import { NO_PROFILE } from '../../conversation/profile-facts.ts';
import type { Usage } from '../../conversation/usage.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { usageOf } from '../usage.ts';
import type { DueTry, VendorApi, VendorObject } from './vendor-objects.ts';

/** Of one request. */
export interface Used {
  readonly usage: Usage;
  /** As the answer names it. */
  readonly model: string | undefined;
}

/** Usage in one line of results; undefined: its request was not answered. */
export function usedIn(line: string, api: VendorApi, codec: Codec): Used | undefined {
  const value = tryParse(line);
  if (!isObject(value)) return undefined;
  const answer =
    api === 'anthropic' ? inside(value, 'result', 'message') : inside(value, 'response', 'body');
  if (answer === undefined) return undefined;
  const told = isObject(answer.usage) ? answer.usage : undefined;
  const usage =
    api === 'anthropic' || Array.isArray(answer.choices)
      ? codec.digestReply(answer).usage
      : told && usageOf(told);
  if (usage === undefined) return undefined;
  return { usage, model: typeof answer.model === 'string' ? answer.model : undefined };
}

function inside(value: JsonObject, outer: string, inner: string): JsonObject | undefined {
  const first: Json | undefined = value[outer];
  const second = isObject(first) ? first[inner] : undefined;
  return isObject(second) ? second : undefined;
}

interface SettledTry {
  readonly due: DueTry;
  readonly account: TryAccount;
  isAnswered: boolean;
}

export class BatchSettlement {
  private constructor(private readonly tries: readonly SettledTry[]) {}

  static async begin(
    { provider, upstreamKey }: VendorObject,
    protocol: Codec['name'],
    due: readonly DueTry[],
    payer: Payer,
  ): Promise<BatchSettlement> {
    const tries: SettledTry[] = [];
    for (const one of due) {
      const { model, asked, requests, request, session, spent, countedAt } = one;
      const account = await payer.beginTry({
        target: { provider, model, protocol, profile: NO_PROFILE },
        model: asked,
        upstreamKey,
        hop: 1,
        attempt: 1,
        stream: false,
        inputTokens: 0,
        maxOutputTokens: 0,
        serviceTier: undefined,
        batch: requests,
        settles: { request, session, spent, countedAt },
      });
      account.answered(200);
      tries.push({ due: one, account, isAnswered: false });
    }
    return new BatchSettlement(tries);
  }

  /** An answer, at the price of the model that it names. */
  add({ usage, model }: Used): void {
    const own = this.tries.find(({ due }) => due.model === model || due.asked === model);
    const near = own ?? this.tries.find(({ due }) => model?.startsWith(due.model));
    const found = near ?? this.tries[0];
    if (found === undefined) return;
    found.isAnswered = true;
    found.account.count?.(usage, model);
  }

  end(): void {
    // Requests that were not answered cost nothing.
    for (const { account, isAnswered } of this.tries)
      account.end({
        ended: isAnswered ? 'done' : 'error',
        usage: undefined,
        final: isAnswered,
        content: false,
        bytes: 0,
      });
  }
}
