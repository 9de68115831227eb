/** Compares two stages of an exchange by meaning: both bodies are decoded with the codecs of their protocols. */

import { pointersIn } from '../../lib/json/pointer.ts';
import type { Steps } from '../../lib/loop/steps.ts';
import {
  contextOf,
  EMPTY,
  type ReadingParts,
  readReply,
  readRequest,
} from '../decode/decode-body.ts';
import { readableBody } from '../decode/readable-body.ts';
import type { SampleMeta, SampleStore } from '../sample.ts';
import { compareMeaning, type Side } from './meaning.ts';
import type { MeaningDiff } from './types.ts';

/** Greatest depth of a node of a conversation in its body. */
const MAX_DEPTH = 12;

const isRequest = (stage: string) => stage.endsWith('request');

/** Undefined where a body cannot be decoded, or one is a request and the other an answer. */
export function* stageMeaning(
  store: SampleStore,
  meta: SampleMeta,
  a: string,
  b: string,
  parts: ReadingParts,
): Steps<MeaningDiff | undefined> {
  if (isRequest(a) !== isRequest(b)) return undefined;
  const left = yield* sideOf(store, meta, a, parts);
  const right = yield* sideOf(store, meta, b, parts);
  if (left === undefined || right === undefined) return undefined;
  return yield* compareMeaning(left, right, meta.notes, !isRequest(a));
}

function* sideOf(
  store: SampleStore,
  meta: SampleMeta,
  stage: string,
  parts: ReadingParts,
): Steps<Side | undefined> {
  try {
    const body = readableBody(store, meta, stage);
    const { protocol } = body;
    if (isRequest(stage)) {
      const { conversation, value, problem } = yield* readRequest(body, parts);
      if (value === undefined || (problem !== undefined && conversation === EMPTY))
        return undefined;
      return { protocol, conversation, places: yield* pointersIn(value, MAX_DEPTH) };
    }
    const context = yield* contextOf(store, meta, body, parts);
    const { reply, problem } = yield* readReply(body, context, parts);
    if (problem !== undefined) return undefined;
    const turns = [{ role: 'assistant', blocks: reply.blocks }] as const;
    const conversation = { ...EMPTY, model: reply.model, turns };
    return { protocol, conversation, places: new Map(), finish: reply.finish };
  } catch {
    // A body that no codec reads is compared as JSON only.
    return undefined;
  }
}
