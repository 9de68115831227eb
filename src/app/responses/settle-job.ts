/** Settles a vendor's job when its answer is seen: what the key was counted at its beginning gives way to what it used. */

import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import { outputItems } from '../../codecs/openai-responses/stored-items.ts';
import type { Payer } from '../../conversation/account/payer.ts';
import { NO_PROFILE } from '../../conversation/profile-facts.ts';
import {
  finishJob,
  isUnderWay,
  type ResponseStore,
  withDue,
} from '../../features/response-store/index.ts';
import { SseParser } from '../../lib/bytes/sse.ts';
import { isObject, type Json, tryParse } from '../../lib/json/json.ts';

/** Whose job it is, and who asks for it. */
export interface AskedJob {
  readonly id: string;
  readonly owner: string;
  /** The provider that works on it. */
  readonly keeper: string;
  readonly payer: Payer;
}

/**
 * The first reader of the answer counts it, once.
 * @returns whether it is over, and settled if it says what it used
 * @throws GatewayError 503: it is not certain that it is counted
 */
export async function settleJob(
  store: ResponseStore,
  { id, owner, keeper, payer }: AskedJob,
  value: Json | undefined,
): Promise<boolean> {
  if (!isObject(value)) return false;
  if (value.id !== id || typeof value.status !== 'string' || isUnderWay(value)) return false;
  const { usage, model } = openaiResponses.digestReply(value);
  const answer = { response: value, reportsUsage: usage !== undefined };
  const job = await finishJob(store, { id, owner }, answer, outputItems);
  if (job === undefined || usage === undefined) return true;
  const { row, due } = job;
  const target = {
    provider: keeper,
    model: due?.model || row.model,
    protocol: openaiResponses.name,
    profile: NO_PROFILE,
  };
  try {
    const one = await payer.beginTry({
      target,
      model: due?.asked ?? row.model,
      upstreamKey: undefined,
      hop: 1,
      attempt: 1,
      stream: false,
      inputTokens: 0,
      maxOutputTokens: 0,
      serviceTier: undefined,
      settles: due ?? { request: id, session: undefined, spent: undefined },
    });
    one.answered(200);
    one.end({ ended: 'done', usage, model, final: true, content: true, bytes: 0 });
  } catch (thrown) {
    // It is still to be settled.
    await store.change(id, owner, (now) => ({ ...now, response: withDue(row.response, due) }));
    throw thrown;
  }
  return true;
}

/** The last frame may come without its empty line. */
const FRAME_END = Buffer.from('\n\n');
const OVER = ['response.completed', 'response.incomplete', 'response.failed', 'response.cancelled'];

/**
 * The stream of a job: its last event goes to the client when `settle` is done with it.
 * @param onLeft it ended without a last event, or the client left before
 */
export function settledStream(
  body: ReadableStream<Uint8Array>,
  settle: (response: Json | undefined) => Promise<unknown>,
  onLeft: () => void,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const parser = new SseParser();
  let isOver = false;
  const look = async (bytes: Uint8Array) => {
    for (const { event, data } of parser.push(bytes)) {
      if (data === undefined || !OVER.some((type) => event === type || data.includes(type)))
        continue;
      const value = tryParse(data);
      if (!isObject(value) || !OVER.includes(String(value.type ?? event))) continue;
      isOver = true;
      await settle(value.response);
    }
  };
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) {
          await look(value);
          controller.enqueue(value);
          return;
        }
        await look(FRAME_END);
        controller.close();
      } catch (thrown) {
        controller.error(thrown);
        void reader.cancel().catch(() => {});
      }
      if (!isOver) onLeft();
    },
    async cancel(reason) {
      if (!isOver) onLeft();
      await reader.cancel(reason);
    },
  });
}
