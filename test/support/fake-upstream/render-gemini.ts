/** Renders an answer for Gemini: the body, and the chunks in the form of the vendor's streams. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { type Answer, type Part, pieces, usageOf } from './answer.ts';
import { signedCall } from './check-gemini.ts';
import type { Render } from './render.ts';
import { signatureFor } from './seals.ts';

/** Zero counts are left out, as proto3 JSON does. */
function usageBody(answer: Answer): JsonObject {
  const { input, cached, output, reasoning } = usageOf(answer);
  return {
    promptTokenCount: input,
    candidatesTokenCount: output - reasoning,
    totalTokenCount: input + output,
    ...(cached > 0 ? { cachedContentTokenCount: cached } : {}),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: input }],
    ...(reasoning > 0 ? { thoughtsTokenCount: reasoning } : {}),
  };
}

const FINISH: Readonly<Record<string, string>> = { length: 'MAX_TOKENS', filter: 'SAFETY' };

function argumentsOf(text: string): Json {
  return text === '' ? {} : (JSON.parse(text) as Json);
}

/** The parts of the answer; texts in pieces where `size` is given. */
function partsOf(
  answer: Answer,
  signs: boolean,
  thinks: boolean,
  id: (p: string) => string,
  size?: number,
) {
  let called = false;
  const cut = (text: string) => (size === undefined ? [text] : pieces(text, size));
  return answer.parts.flatMap((part: Part): JsonObject[] => {
    switch (part.kind) {
      case 'text':
        return cut(part.text).map((text) => ({ text }));
      case 'refusal':
        return cut(part.text).map((text) => ({ text }));
      case 'reasoning':
        return thinks ? cut(part.text).map((text) => ({ text, thought: true })) : [];
      case 'call': {
        const args = argumentsOf(part.arguments);
        const first = !called;
        called = true;
        const functionCall = { name: part.name, args, ...(signs ? { id: part.id ?? id('') } : {}) };
        // Of parallel calls only the first one is signed.
        if (!signs || !first) return [{ functionCall }];
        return [{ functionCall, thoughtSignature: signatureFor(signedCall(part.name, args)) }];
      }
      case 'wire':
        return [part.value];
      default:
        return [];
    }
  });
}

export const renderGemini: Render = (answer, { model, body, id }) => {
  const signs = model.startsWith('gemini-3');
  const config = body.generationConfig as
    | { thinkingConfig?: { includeThoughts?: boolean } }
    | undefined;
  const thinks = config?.thinkingConfig?.includeThoughts === true;
  const tail = { modelVersion: model, responseId: id('resp') };
  const usage = usageBody(answer);
  const finishReason = FINISH[answer.finish ?? ''] ?? 'STOP';
  const size = answer.delivery?.piece ?? 12;
  const parts = partsOf(answer, signs, thinks, id, size);
  const early = {
    promptTokenCount: usage.promptTokenCount!,
    totalTokenCount: usage.promptTokenCount!,
  };
  const chunk = (chunkParts: JsonObject[], more: JsonObject, counts: JsonObject): JsonObject => ({
    candidates: [{ content: { parts: chunkParts, role: 'model' }, ...more, index: 0 }],
    usageMetadata: counts,
    ...tail,
  });
  const frames = parts.map((part) => ({ event: '', data: chunk([part], {}, early) }));
  frames.push({ event: '', data: chunk([{ text: '' }], { finishReason }, usage) });
  const whole = partsOf(answer, signs, thinks, id);
  return {
    frames,
    terminal: frames.length - 1,
    errorFrames: [
      {
        event: '',
        data: {
          error: {
            code: 503,
            message: 'The model is overloaded. Please try again later.',
            status: 'UNAVAILABLE',
          },
        },
      },
    ],
    json: chunk(whole.length > 0 ? whole : [{ text: '' }], { finishReason }, usage),
  };
};
