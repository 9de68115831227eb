/** The tries that pay for a batch: one for each model, reserved when it is made. */

import type { TryAccount, TryResult } from '../../conversation/account/payer.ts';
import { estimatedTokens } from '../../conversation/usage.ts';
import type { Account } from '../../gateway/types.ts';
import type { RoutedTarget } from '../../routing/index.ts';
import type { BatchModel, DueTry } from './vendor-objects.ts';

export class BatchTries {
  #due: readonly DueTry[] | undefined;
  #all: readonly TryAccount[] = [];

  constructor(
    private readonly account: Account | undefined,
    private readonly session: string,
    private readonly request: string,
  ) {}

  async begin(
    target: RoutedTarget['target'],
    upstreamKey: string | undefined,
    attempt: number,
    models: readonly BatchModel[],
  ): Promise<TryAccount | undefined> {
    if (this.account === undefined) return undefined;
    const all: TryAccount[] = [];
    const end = (result: TryResult) => {
      for (const one of all) one.end(result);
    };
    this.#all = all;
    const countedAt = Date.now();
    this.#due = models.map((one) => ({
      ...one,
      countedAt,
      request: this.request,
      ...(this.session !== '' && { session: this.session }),
    }));
    try {
      for (const { asked, model, requests, bytes, maxTokens, answers } of models) {
        const one = await this.account.beginTry({
          target: { ...target, model },
          model: asked,
          upstreamKey,
          hop: 1,
          attempt,
          stream: false,
          inputTokens: estimatedTokens(bytes),
          maxOutputTokens: maxTokens,
          choices: answers,
          serviceTier: undefined,
          batch: requests,
        });
        all.push(one);
      }
    } catch (thrown) {
      end({ ended: 'error', usage: undefined, final: false, content: false, bytes: 0 });
      throw thrown;
    }
    return {
      answered(status) {
        for (const one of all) one.answered(status);
      },
      end,
    };
  }

  /** The batch is made: what was reserved counts until its results are read. */
  reserved(): readonly DueTry[] | undefined {
    return this.#due?.map((due, i) => {
      this.#all[i]!.end({
        ended: 'done',
        usage: undefined,
        final: false,
        content: false,
        pending: true,
        bytes: 0,
      });
      const spent = this.account?.spent;
      return spent === undefined ? due : { ...due, spent };
    });
  }
}
