/** `memory` and the spaces of gateway keys: defaults, secrets and problems. */

import { describe, expect, test } from 'bun:test';
import { describeProblem } from '../../../src/config/file/problem.ts';
import { secretsIn } from '../../../src/config/secret.ts';
import { bad, good, PROVIDER, parse } from '../support.ts';

describe('memory', () => {
  test('is enabled by default', () => {
    expect(good(PROVIDER).memory).toEqual({
      enabled: true,
      path: '/home/u/.hopgate/memory.db',
      dedupeMs: 86_400_000,
      maxTokens: 1200,
      limits: { text: 8000, tags: 32, events: 100_000, bytes: 2 ** 30, keyBytes: 2 ** 28 },
    });
  });

  test('embeddings name a provider of the file', () => {
    const { memory } = good(
      `${PROVIDER}memory: { embeddings: { provider: p, model: e5, dimensions: 256, timeout: 0.5, query_prefix: "query: ", passage_prefix: "passage: " } }`,
    );
    expect(memory.embeddings).toEqual({
      provider: 'p',
      model: 'e5',
      dimensions: 256,
      queryPrefix: 'query: ',
      passagePrefix: 'passage: ',
      timeoutMs: 500,
    });
    const [problem] = bad(`${PROVIDER}memory: { embeddings: { provider: q, model: e5 } }`);
    expect(describeProblem(problem!)).toContain('there is no provider "q"');
    const messages = PROVIDER.replace('openai-chat', 'anthropic-messages');
    const [other] = bad(`${messages}memory: { embeddings: { provider: p, model: e5 } }`);
    expect(describeProblem(other!)).toContain('OpenAI');
  });

  test('the key of an external store is never shown, and masked everywhere', () => {
    const config = good(`${PROVIDER}memory: { url: "https://m.test/x", key: "\${K}" }`, {
      K: 'memo-secret-1',
    });
    expect(config.memory.external).toMatchObject({
      url: 'https://m.test/x',
      captureUrl: 'https://m.test/x',
      timeoutMs: 5000,
    });
    expect(secretsIn(config)).toContain('memo-secret-1');
    expect(JSON.stringify(config)).not.toContain('memo-secret-1');
  });

  test('keys without effect are reported', () => {
    expect(
      bad(`${PROVIDER}memory: { key: x, capture_url: "http://m/" }`).map(({ path }) => path),
    ).toEqual(['memory.key', 'memory.capture_url']);
    expect(bad(`${PROVIDER}memory: { url: "ftp://m/" }`)).toHaveLength(1);
    const result = parse(
      `${PROVIDER}memory: { url: "http://m/", embeddings: { provider: p, model: e } }`,
    );
    expect(result.ok && result.warnings.map(({ path }) => path)).toEqual(['memory.embeddings']);
  });
});

test('a key may be limited to spaces; without a limit it names none', () => {
  const { auth } = good(
    `${PROVIDER}auth: { keys: [k0, { name: a, key: k1, spaces: ["a", "b-*"] }, { name: b, key: k2 }] }`,
  );
  expect(auth.keys.map(({ spaces }) => spaces)).toEqual([undefined, ['a', 'b-*'], undefined]);
});
