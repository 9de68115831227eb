/** Properties of routing that hold for every table and every request. */

import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import { type RouteRequest, route } from '../../src/routing/index.ts';
import { PROVIDERS, table } from './support.ts';

// Hundreds of tables and requests take more than five seconds on a busy machine.
setDefaultTimeout(60_000);

describe('laws', () => {
  const model = fc.oneof(
    fc.string(),
    fc.constantFrom(
      'claude-x',
      'glm-4.7',
      'fast',
      '__proto__',
      'constructor',
      'glm/x',
      '/',
      '*',
      'glm/*',
    ),
  );
  const anyRequest: fc.Arbitrary<RouteRequest> = fc
    .record({
      model,
      protocol: fc.constantFrom('anthropic-messages', 'openai-chat', 'openai-responses'),
      affinity: fc.string(),
      stream: fc.boolean(),
      tokens: fc.oneof(fc.nat(200_000), fc.constant(Number.NaN)),
      images: fc.nat(2),
      documents: fc.nat(2),
      toolNames: fc.array(fc.constantFrom('Edit', 'a', '')),
      hostedTools: fc.array(fc.constantFrom('web_search', 'x')),
      thinking: fc.boolean(),
      effort: fc.constantFrom(undefined, 'low', 'high', ''),
      time: fc.integer({ min: 0, max: 4e12 }),
      lastUserText: fc.string(),
      background: fc.boolean(),
    })
    .map((facts) => ({ ...facts, headers: new Headers() }) as RouteRequest);
  const condition = fc.constantFrom(
    'model: "claude-*"',
    'model: ["/g/i", fast]',
    'tokens: ">60000"',
    'images: true',
    'tools: "1..2"',
    'thinking: true',
    'category: [coding, vision, default]',
    'effort: high',
    'stream: false',
    'time: "08:00-17:00"',
    'text: "*a*"',
    'headers: { x-app: false }',
  );
  const rules = fc.array(
    fc.record({
      when: fc.uniqueArray(condition, { maxLength: 3, selector: (text) => text.split(':')[0] }),
      weighted: fc.boolean(),
    }),
    { maxLength: 5 },
  );
  const compiled = (of: readonly { when: readonly string[]; weighted: boolean }[]) =>
    table(
      `${PROVIDERS}aliases: { fast: claude-fast }\nroutes:${of.length === 0 ? ' []' : ''}\n${of
        .map(({ when, weighted }, i) => {
          const to = weighted
            ? `{ target: glm/r${i}, weight: 2 }, { target: "local/*", weight: 1 }`
            : `glm/r${i}, "local/*"`;
          return `  - { when: { ${when.join(', ')} }, to: [${to}] }\n`;
        })
        .join('')}`,
    );

  test('every request gets one decision, always the same, and no target twice', () => {
    fc.assert(
      fc.property(rules, anyRequest, (some, incoming) => {
        const of = compiled(some);
        const decision = route(incoming, of);
        expect(route(incoming, of)).toEqual(decision);
        if (!decision.ok) return;
        const ids = decision.targets.map(({ target }) => `${target.provider}/${target.model}`);
        expect(ids.length).toBeGreaterThan(0);
        expect(new Set(ids).size).toBe(ids.length);
      }),
      { numRuns: 200 },
    );
  });

  test('earlier requests change nothing', () => {
    fc.assert(
      fc.property(rules, fc.array(anyRequest, { minLength: 2, maxLength: 8 }), (some, all) => {
        const used = compiled(some);
        for (const incoming of [...all, ...all]) {
          const { reason, ...decision } = route(incoming, used);
          const { reason: wanted, ...fresh } = route(incoming, compiled(some));
          expect({ ...decision, reason }).toEqual({ ...fresh, reason: wanted });
        }
      }),
      { numRuns: 100 },
    );
  });

  test('rules after the one that decided change nothing', () => {
    fc.assert(
      fc.property(rules, rules, anyRequest, (some, more, incoming) => {
        const decision = route(incoming, compiled(some));
        fc.pre(decision.reason.kind === 'rule');
        expect(route(incoming, compiled([...some, ...more]))).toEqual(decision);
      }),
      { numRuns: 100 },
    );
  });

  test('the first matching rule decides', () => {
    fc.assert(
      fc.property(rules, anyRequest, (some, incoming) => {
        const decision = route(incoming, compiled(some));
        if (decision.reason.kind === 'direct') return;
        const alone = some.findIndex(
          (rule) => route(incoming, compiled([rule])).reason.kind === 'rule',
        );
        expect(decision.reason.index ?? -1).toBe(alone);
      }),
      { numRuns: 100 },
    );
  });
});
