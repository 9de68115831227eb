/** Calls that an exchange makes besides its own (images, searches, vectors), as spans of its trace. */

import type { Payer, TryAccount, TryResult, TryStart } from '../../conversation/account/payer.ts';
import { targetName } from '../../conversation/target.ts';
import { totalInput } from '../../conversation/usage.ts';
import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import { type ExchangeTrace, newSpanId, type TracedCall } from '../../telemetry/trace.ts';

/** The payer for calls besides an exchange's own: where the exchange is sampled, each try is a span of it. */
export function sidePayer(
  payer: Payer | undefined,
  trace: ExchangeTrace | undefined,
): Payer | undefined {
  if (payer === undefined || trace?.sampled !== true) return payer;
  return new TracedPayer(payer, trace);
}

class TracedPayer implements Payer {
  constructor(
    private readonly payer: Payer,
    private readonly trace: ExchangeTrace,
  ) {}

  async beginTry(start: TryStart): Promise<TryAccount> {
    const account = await this.payer.beginTry(start);
    const { target, maxOutputTokens } = start;
    const call: TracedCall = {
      spanId: newSpanId(),
      provider: target.provider,
      model: target.model,
      target: targetName(target),
      kind: maxOutputTokens === 0 ? 'embeddings' : target.protocol,
      attempt: start.attempt,
      started: performance.now(),
    };
    this.trace.addCall(call);
    return new TracedAccount(account, call);
  }
}

class TracedAccount implements TryAccount {
  constructor(
    private readonly account: TryAccount,
    private readonly call: TracedCall,
  ) {}

  answered(status: number, headers?: ReadonlyHeaders): void {
    this.call.status = status;
    this.account.answered(status, headers);
  }

  end(result: TryResult): void {
    const call = this.call;
    if (call.ended === undefined) {
      const { ended, usage } = result;
      call.ended = performance.now();
      if (ended !== 'done') call.error = ended;
      if (usage !== undefined) {
        call.inputTokens = totalInput(usage);
        call.outputTokens = usage.output + (usage.reasoning ?? 0);
      }
    }
    this.account.end(result);
  }
}
