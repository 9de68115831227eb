/** Explanations of routing, the list of models, categories and globs. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { globTest } from '../../src/lib/text/glob.ts';
import {
  explain,
  explainText,
  models,
  plainRequest,
  type RouteRequest,
  route,
  routingTable,
} from '../../src/routing/index.ts';
import { good, PROVIDER } from '../config/support.ts';
import { expectCpuBelow } from '../support/cpu-time.ts';
import { PROVIDERS, request, table } from './support.ts';

describe('explain', () => {
  const of = table(`${PROVIDERS}
aliases: { opus: claude-opus }
routes:
  - { name: big, when: { model: "claude-*", tokens: ">60000" }, to: [glm/glm-4.7] }
  - { name: all claude, when: { model: "claude-*" }, to: [glm/glm-4.7, "claude/*"] }
  - { name: rest, to: [local/*] }
`);

  test('every rule shows which conditions held, and which rule decided', () => {
    const { rules, category, model } = explain(request({ model: 'opus', tokens: 10 }), of);
    expect({ category, model }).toEqual({ category: 'default', model: 'claude-opus' });
    expect(rules.map(({ matched, used }) => [matched, used])).toEqual([
      [false, false],
      [true, true],
      [true, false],
    ]);
    expect(rules[0]!.conditions).toEqual([
      { key: 'model', wanted: 'claude-*', got: 'claude-opus', holds: true },
      { key: 'tokens', wanted: '60001 or more', got: '10', holds: false },
    ]);
  });

  test('the explanation is readable as text', () => {
    expect(explainText(explain(request({ model: 'opus', tokens: 10 }), of))).toBe(
      `model     opus → claude-opus
category  default
routes
  1. big: no → glm/glm-4.7
     ✓ model claude-* (is: claude-opus)
     ✗ tokens 60001 or more (is: 10)
  2. all claude: decides → glm/glm-4.7, claude/*
     ✓ model claude-* (is: claude-opus)
  3. rest: matches → local/*
why       route "all claude" is the first that matches
target    glm/glm-4.7 (openai-chat, profile glm)
then      claude/claude-opus (anthropic-messages, profile anthropic)`,
    );
  });

  test('a header is shown as present, never with its value', () => {
    const secret = table(
      `${PROVIDERS}routes: [{ when: { headers: { x-key: "s*" } }, to: [glm/a] }]`,
    );
    const keyed = request({ headers: new Headers({ 'x-key': 'sk-live' }) });
    expect(explainText(explain(keyed, secret))).not.toContain('sk-live');
    expect(JSON.stringify(route(keyed, secret).reason)).not.toContain('sk-live');
  });

  test('an unknown name is explained too', () => {
    const none = explain(request({ model: 'glm-4.8' }), table(PROVIDERS));
    expect(explainText(none)).toContain('does not exist');
  });
});

describe('models', () => {
  const config = (more: string) => table(`${PROVIDERS}${more}`).config;
  const ids = (more = '') => models(config(more)).map(({ id }) => id);

  test('plain names, then provider/model; no patterns, and no name twice', () => {
    expect(ids()).toEqual([
      'glm-4.7',
      'glm-4.5v',
      'qwen3',
      'glm/glm-4.7',
      'glm/glm-4.5v',
      'local/qwen3',
      'local/glm-4.7',
    ]);
  });

  test('aliases, and names and targets in rules, are listed', () => {
    const all = ids(`
aliases: { fast: local/qwen3 }
routes:
  - { when: { model: [gpt-5, "gpt-*", "/x/"] }, to: [claude/claude-opus-4-7, "glm/*"] }
`);
    expect(all.slice(0, 2)).toEqual(['fast', 'gpt-5']);
    expect(all.at(-1)).toBe('claude/claude-opus-4-7');
    expect(all.join()).not.toContain('*');
  });

  test('every provider/model also has a name that begins with claude', () => {
    const of = table(`${PROVIDERS}model_list: { claude_aliases: true }`);
    const named = models(of.config).filter(({ kind }) => kind === 'claude');
    expect(named.map(({ id }) => id)).toContain('claude-local/qwen3');
    for (const { id, target } of named) {
      const decision = route(request({ model: id }), of);
      expect(decision).toMatchObject({ ok: true, targets: [{ target }] });
    }
  });

  test('every listed name can be requested', () => {
    const of = table(`${PROVIDERS}
aliases: { fast: local/qwen3, other: glm-4.7 }
routes: [{ when: { model: gpt-5 }, to: [claude/claude-opus-4-7] }]
`);
    for (const { id } of models(of.config)) {
      expect([id, route(request({ model: id }), of).ok]).toEqual([id, true]);
    }
  });
});

describe('categories', () => {
  const of = table(PROVIDERS);
  const cases: [Partial<RouteRequest>, string][] = [
    [{}, 'default'],
    [{ toolNames: ['get_weather'] }, 'tools'],
    [{ toolNames: ['Read', 'Edit'] }, 'coding'],
    [{ toolNames: ['Edit'], thinking: true }, 'thinking'],
    [{ model: 'claude-haiku-4-5', thinking: true }, 'background'],
    [{ background: true }, 'background'],
    [{ tokens: 60_001, background: true }, 'longcontext'],
    [{ hostedTools: ['web_search'], tokens: 90_000 }, 'websearch'],
    [{ hostedTools: ['web_search'], toolNames: ['apply_patch'] }, 'coding'],
    [{ hostedTools: ['code_execution'] }, 'tools'],
    [{ images: 1, hostedTools: ['web_search'] }, 'vision'],
  ];
  test.each(cases)('%j is %s', (changes, wanted) => {
    expect(of.classify(request(changes))).toBe(wanted as never);
  });

  test('a rule for each category routes every category', () => {
    const ready = table(`
providers: { glm: { keys: [k] }, deepseek: { keys: [k] }, gemini: { keys: [k] }, ollama: {} }
routes:
  - { name: vision,      when: { category: vision },      to: [glm/glm-4.5v] }
  - { name: websearch,   when: { category: websearch },   to: [glm/glm-4.7] }
  - { name: longcontext, when: { category: longcontext }, to: [gemini/gemini-3.8-flash] }
  - { name: background,  when: { category: background },  to: [ollama/qwen3] }
  - { name: thinking,    when: { category: thinking },    to: [deepseek/deepseek-v4-pro] }
  - { name: coding,      when: { category: coding },      to: [glm/glm-4.7, deepseek/deepseek-v4-flash] }
  - { name: tools,       when: { category: tools },       to: [glm/glm-4.7] }
  - { name: default,                                      to: [deepseek/deepseek-v4-flash] }
categories:
  longcontext_tokens: 60000
  background_models: ["*haiku*", "*-nano*", "*-flash-lite*"]
`);
    for (const [changes, category] of cases) {
      const decision = route(request(changes), ready);
      expect(decision.reason).toMatchObject({ kind: 'rule', name: category });
    }
  });
});

describe('globs', () => {
  test('globs match the same texts as the equivalent regular expressions', () => {
    const pattern = fc.stringMatching(/^[ab*?.]{0,8}$/);
    fc.assert(
      fc.property(pattern, fc.stringMatching(/^[ab.\n]{0,10}$/), (glob, text) => {
        const source = glob.replaceAll('.', '\\.').replaceAll('*', '.*').replaceAll('?', '.');
        expect(globTest(glob)(text)).toBe(new RegExp(`^${source}$`, 's').test(text));
      }),
      { numRuns: 1000 },
    );
  });

  test('hostile names take no long time', async () => {
    await expectCpuBelow(500, () =>
      expect(globTest(`${'*a'.repeat(20)}b`)('a'.repeat(20_000))).toBe(false),
    );
  });
});

test('a weighted target shows its share of the requests', () => {
  const config = good(
    `${PROVIDER}routes:\n  - to: [{ target: p/a, weight: 3 }, p/b, { target: p/c, weight: 0 }]\n`,
  );
  const request = plainRequest('x', 'openai-chat', 0);
  const text = explainText(explain(request, routingTable(config)));
  expect(text).toContain('p/a (weight 3, 75 % of the requests begin here)');
  expect(text).toContain('p/b (weight 1, 25 % of the requests begin here)');
  expect(text).toContain('p/c (weight 0, 0 % of the requests begin here)');
});
