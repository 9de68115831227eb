/** Vectors of a real model: paraphrases are found, and what words find still is. Needs an endpoint (test/README.md). */

import { describe, expect, test } from 'bun:test';
import { embedder } from '../../../src/features/memory/index.ts';
import type { Json } from '../../../src/lib/json/json.ts';
import { PARAPHRASES } from './paraphrases.ts';
import { EVENTS, QUESTIONS } from './recall-set.ts';
import { inList, memories } from './support.ts';

const URL_OF_MODEL = process.env.HOPGATE_EMBEDDINGS;
if (URL_OF_MODEL === undefined) {
  console.warn('Not tested: memory with a real model (HOPGATE_EMBEDDINGS names no endpoint).');
}

const NOW = Date.parse('2026-11-20T12:00:00Z');
const HALF_DAY = 43_200_000;

describe.skipIf(URL_OF_MODEL === undefined)('a real model', () => {
  const files = memories('embedded');
  const model = () =>
    embedder({
      name: 'real',
      model: process.env.HOPGATE_EMBEDDINGS_MODEL ?? 'default',
      queryPrefix: process.env.HOPGATE_EMBEDDINGS_QUERY_PREFIX,
      passagePrefix: process.env.HOPGATE_EMBEDDINGS_PASSAGE_PREFIX,
      timeoutMs: 60_000,
      async post(body) {
        const answer = await fetch(URL_OF_MODEL!, { method: 'POST', body: JSON.stringify(body) });
        return (await answer.json()) as Json;
      },
      onFailure: (thrown) => {
        throw thrown;
      },
    });

  /** Of the questions: those with an answer among the first eight, and those with one in the first place. */
  async function found(withVectors: boolean) {
    const path = files.path();
    const { memory, book } = files.open({
      path,
      now: () => NOW,
      ...(withVectors && { embedder: model() }),
    });
    const said = [...EVENTS, ...PARAPHRASES];
    const events = said.map(([source, text], at) => ({
      source,
      text,
      time: NOW - (said.length - at) * HALF_DAY,
    }));
    await book.add('s', events, inList);
    while (withVectors && (await files.vectors(path)) < said.length) await Bun.sleep(100);
    const placesOf = async (asked: readonly (readonly [string, readonly string[]])[]) => {
      const places: number[] = [];
      for (const [query, texts] of asked) {
        const recalled = await memory.recall('s', { query, limit: 8 });
        places.push(recalled.findIndex(({ text }) => texts.includes(text)));
      }
      const of = (is: (place: number) => boolean) => places.filter(is).length;
      return { first: of((place) => place === 0), eight: of((place) => place >= 0) };
    };
    const named = new Map(EVENTS.map(([, text, name]) => [name, text]));
    return {
      paraphrases: await placesOf(PARAPHRASES.map(([, fact, question]) => [question, [fact]])),
      labelled: await placesOf(
        QUESTIONS.map(([question, ...names]) => [question, names.map((name) => named.get(name)!)]),
      ),
    };
  }

  test('finds most of twenty paraphrases, where words find few, and loses nothing else', async () => {
    const words = await found(false);
    const both = await found(true);
    console.log(JSON.stringify({ words, both }));
    expect(words.paraphrases.eight).toBeLessThanOrEqual(6);
    expect(both.paraphrases.eight).toBeGreaterThanOrEqual(14);
    expect(both.labelled.eight).toBeGreaterThanOrEqual(words.labelled.eight);
    expect(both.labelled.first).toBeGreaterThanOrEqual(words.labelled.first);
  }, 600_000);
});
