/** Routing: rules, names, aliases and weights. */

import { describe, expect, test } from 'bun:test';
import { type Fact, type RouteRequest, route } from '../../src/routing/index.ts';
import { PROVIDERS, places, request, table } from './support.ts';

/** Whether a rule with this `when` matches the request. */
const takes = (when: string, changes: Partial<RouteRequest>) =>
  places(changes, table(`${PROVIDERS}routes: [{ when: ${when}, to: [glm/hit] }]`))[0] === 'glm/hit';

describe('a condition', () => {
  const noon = Date.UTC(2026, 10, 18, 12, 0);
  const night = Date.UTC(2026, 10, 18, 23, 30);
  const early = Date.UTC(2026, 10, 19, 5, 59);
  const cases: [string, Partial<RouteRequest>, boolean][] = [
    ['{ model: "claude-*" }', { model: 'claude-opus-4-7' }, true],
    ['{ model: "claude-*" }', { model: 'CLAUDE-OPUS' }, true],
    ['{ model: "claude-*" }', { model: 'xclaude-opus' }, false],
    ['{ model: [a, b?] }', { model: 'bx' }, true],
    ['{ model: [a, b?] }', { model: 'b' }, false],
    ['{ model: "/^o[134](-|$)/" }', { model: 'o3-mini' }, true],
    ['{ model: "/^o[134](-|$)/" }', { model: 'o3x' }, false],
    ['{ model: "/HAIKU/i" }', { model: 'claude-haiku' }, true],
    ['{ protocol: openai-chat }', { protocol: 'openai-chat' }, true],
    ['{ protocol: [openai-chat, openai-responses] }', { protocol: 'anthropic-messages' }, false],
    ['{ tokens: ">60000" }', { tokens: 60_001 }, true],
    ['{ tokens: ">60000" }', { tokens: 60_000 }, false],
    ['{ tokens: ">=60k" }', { tokens: 60_000 }, true],
    ['{ tokens: "<1.5k" }', { tokens: 1499 }, true],
    ['{ tokens: "<1.5k" }', { tokens: 1500 }, false],
    ['{ tokens: "1k..2k" }', { tokens: 2000 }, true],
    ['{ tokens: "1k..2k" }', { tokens: 2001 }, false],
    ['{ stream: false }', { stream: true }, false],
    ['{ images: true }', { images: 2 }, true],
    ['{ images: false }', { images: 1 }, false],
    ['{ documents: ">1" }', { documents: 2 }, true],
    ['{ tools: false }', {}, true],
    ['{ tools: ">1" }', { toolNames: ['a'], hostedTools: ['web_search'] }, true],
    ['{ tool_names: [Edit, "mcp__*"] }', { toolNames: ['x', 'mcp__a__b'] }, true],
    ['{ tool_names: Edit }', { toolNames: [] }, false],
    ['{ hosted_tools: web_search }', { hostedTools: ['web_search'] }, true],
    ['{ thinking: true }', { thinking: true }, true],
    ['{ effort: [high, xhigh] }', { effort: 'xhigh' }, true],
    ['{ effort: high }', { effort: undefined }, false],
    ['{ background: true }', { background: true }, true],
    ['{ headers: { X-App: "cli*" } }', { headers: new Headers({ 'x-app': 'cli-2' }) }, true],
    ['{ headers: { x-app: true } }', {}, false],
    ['{ headers: { x-app: false } }', {}, true],
    ['{ text: "*urgent*" }', { lastUserText: 'This is URGENT!\nnow' }, true],
    ['{ time: "22:00-06:00" }', { time: noon }, takesNow('22:00-06:00', noon)],
    ['{ time: { hours: "11:00-13:00", zone: UTC } }', { time: noon }, true],
    ['{ time: { hours: "11:00-12:00", zone: UTC } }', { time: noon }, false],
    ['{ time: { hours: "13:00-14:00", zone: Europe/Berlin } }', { time: noon }, true],
    ['{ time: { hours: "22:00-06:00", zone: UTC } }', { time: early }, true],
    ['{ time: { hours: "22:00-06:00", zone: UTC, days: wed } }', { time: night }, true],
    ['{ time: { hours: "22:00-06:00", zone: UTC, days: wed } }', { time: early }, true],
    ['{ time: { hours: "22:00-06:00", zone: UTC, days: thu } }', { time: early }, false],
    ['{ time: { zone: UTC, days: [sat, sun] } }', { time: noon }, false],
    ['{ model: "claude-*", thinking: true }', { model: 'claude-x', thinking: false }, false],
    ['{}', { model: 'anything' }, true],
  ];
  test.each(cases)('%s of %j: %p', (when, changes, wanted) => {
    expect(takes(when, changes)).toBe(wanted);
  });

  function takesNow(window: string, time: number): boolean {
    const [from, to] = window.split('-').map((text) => Number(text.slice(0, 2)));
    const hour = new Date(time).getHours();
    return hour >= from! || hour < to!;
  }
});

describe('the order of decisions', () => {
  const of = table(`${PROVIDERS}
aliases: { fast: local/qwen3, sonnet: claude-sonnet, glm/glm-4.7: local/qwen3 }
routes:
  - { name: first, when: { model: "claude-*", tokens: "<100" }, to: [glm/small, local/*] }
  - { name: second, when: { model: "claude-*" }, to: [glm/glm-4.7, glm/glm-4.7, "claude/*"] }
`);

  test.each([
    [
      'the first rule that matches wins',
      { model: 'claude-x', tokens: 5 },
      ['glm/small', 'local/claude-x'],
    ],
    [
      'a target is tried once, and * keeps the name',
      { model: 'claude-x' },
      ['glm/glm-4.7', 'claude/claude-x'],
    ],
    [
      'provider/model addresses the provider whatever the rules say',
      { model: 'local/claude-x' },
      ['local/claude-x'],
    ],
    ['an unlisted model can be addressed too, slashes included', { model: 'glm/a/b' }, ['glm/a/b']],
    ['an alias is followed to a place', { model: 'fast' }, ['local/qwen3']],
    [
      'an alias is followed to a name that the rules then see',
      { model: 'sonnet' },
      ['glm/glm-4.7', 'claude/claude-sonnet'],
    ],
    ['an alias cannot hide a place', { model: 'glm/glm-4.7' }, ['glm/glm-4.7']],
    [
      'a name that no rule takes goes to those who list it',
      { model: 'glm-4.7' },
      ['glm/glm-4.7', 'local/glm-4.7'],
    ],
    ['an unknown name is not found', { model: 'nope' }, ['model_not_found']],
    ['no name is not found', { model: '' }, ['model_not_found']],
    ['half a place is not found', { model: 'glm/' }, ['model_not_found']],
  ])('%s', (_, changes, wanted) => {
    expect(places(changes, of)).toEqual(wanted);
  });

  test('the reason names the rule and the conditions that held', () => {
    const decision = route(request({ model: 'sonnet', tokens: 5 }), of);
    expect(decision.reason).toEqual({
      kind: 'rule',
      name: 'first',
      index: 0,
      matched: ['model claude-* = claude-sonnet', 'tokens 99 or less = 5'],
      aliases: ['claude-sonnet'],
    });
  });

  test('the error suggests the nearest name, and does not repeat a very long one', () => {
    const near = route(request({ model: 'qwen-3' }), of);
    if (near.ok) throw new Error('found');
    expect(near.error).toMatchObject({ kind: 'not_found', status: 404, param: 'model' });
    expect(near.error.message).toContain('Did you mean "qwen3"?');
    const long = route(request({ model: 'x'.repeat(1e6) }), of);
    if (!long.ok) expect(long.error.message.length).toBeLessThan(400);
    expect(long.ok).toBe(false);
  });
});

describe('without rules', () => {
  const of = table(`
providers:
  a: { protocol: openai-chat, base_url: "http://127.0.0.1:1", models: ["*"] }
  b: { protocol: openai-chat, base_url: "http://127.0.0.1:2", models: ["gpt-*"] }
  c: { protocol: openai-chat, base_url: "http://127.0.0.1:3", models: [gpt-5] }
`);
  test('an exact name comes before a pattern, and a pattern before "*"', () => {
    expect(places({ model: 'gpt-5' }, of)).toEqual(['c/gpt-5', 'b/gpt-5', 'a/gpt-5']);
    expect(places({ model: 'gpt-6' }, of)).toEqual(['b/gpt-6', 'a/gpt-6']);
    expect(places({ model: 'whatever' }, of)).toEqual(['a/whatever']);
  });

  test('with rules, "*" takes only what a rule sends', () => {
    const ruled = table(`
providers:
  a: { protocol: openai-chat, base_url: "http://127.0.0.1:1", models: ["*"] }
routes: [{ when: { model: "x*" }, to: ["a/*"] }]
`);
    expect(places({ model: 'xy' }, ruled)).toEqual(['a/xy']);
    expect(places({ model: 'y' }, ruled)).toEqual(['model_not_found']);
  });
});

describe('the profile of a target', () => {
  const of = table(`${PROVIDERS}
profiles: { glm: { models: { "glm-9*": { jsonSchema: true, toolChoices: [auto, required] } } } }
`);
  const profile = (model: string) => {
    const decision = route(request({ model }), of);
    if (!decision.ok) throw decision.error;
    return decision.targets[0]!.target.profile;
  };

  test('facts of single models replace those of the vendor, and the profiles are shared', () => {
    expect(profile('glm/glm-4.7')).toMatchObject({ name: 'glm', images: false });
    expect(profile('glm/glm-4.5v')).toMatchObject({ name: 'glm', images: true, documents: false });
    expect(profile('glm/glm-9')).toMatchObject({
      jsonSchema: true,
      toolChoices: ['auto', 'required'],
    });
    expect(profile('glm/glm-7v')).toBe(profile('glm/glm-8v'));
    expect(profile('glm/glm-4.7')).not.toHaveProperty('models');
    expect(profile('local/x')).toEqual({ name: 'none' });
  });
});

describe('weights', () => {
  const of = table(`${PROVIDERS}
routes: [{ to: [{ target: glm/a, weight: 3 }, { target: local/b, weight: 1 }, { target: claude/c, weight: 0 }] }]
`);
  const counts = new Map<string, number>();
  for (let i = 0; i < 4000; i++) {
    const first = places({ affinity: `session-${i}` }, of)[0]!;
    counts.set(first, (counts.get(first) ?? 0) + 1);
  }

  test('requests are shared in proportion to the weights', () => {
    expect(counts.get('glm/a')! / 4000).toBeCloseTo(0.75, 1);
    expect(counts.get('local/b')! / 4000).toBeCloseTo(0.25, 1);
    expect(counts.get('claude/c')).toBeUndefined();
  });

  test('a session keeps its first target, and the others follow in their order', () => {
    const first = places({ affinity: 's' }, of);
    for (let i = 0; i < 20; i++) expect(places({ affinity: 's' }, of)).toEqual(first);
    const rest = ['glm/a', 'local/b', 'claude/c'].filter((place) => place !== first[0]);
    expect(first.slice(1)).toEqual(rest);
  });
});

describe('facts', () => {
  const watched = (of: ReturnType<typeof table>, changes: Partial<RouteRequest>) => {
    const read = new Set<string>();
    const plain = request(changes);
    route(
      new Proxy(plain, {
        get: (target, key) => {
          read.add(String(key));
          return Reflect.get(target, key);
        },
      }),
      of,
    );
    return read;
  };

  test('a fact that no rule reads is never computed', () => {
    const of = table(`${PROVIDERS}routes: [{ when: { model: "x*" }, to: [glm/a] }]`);
    expect([...of.needs]).toEqual(['model']);
    expect([...watched(of, { model: 'xy' })]).toEqual(['model']);
  });

  test('a costly fact is not computed when a cheap one has decided', () => {
    const of = table(`${PROVIDERS}routes: [{ when: { images: true, model: "x*" }, to: [glm/a] }]`);
    expect(of.needs).toEqual(new Set<Fact>(['model', 'images']));
    expect(watched(of, { model: 'y' }).has('images')).toBe(false);
    expect(watched(of, { model: 'x' }).has('images')).toBe(true);
  });
});

describe('a share of a window', () => {
  // glm-4.7 has 204,800 tokens, the local server's own model is not known.
  const shares = table(`${PROVIDERS}
routes:
  - when: { model: long, tokens: "< 80%" }
    to: [glm/glm-4.7, local/qwen3]
  - when: { model: "own*", tokens: "<=50%" }
    to: ["local/*"]
  - to: [claude/claude-opus-4-6]
`);

  test.each([
    ['long', 1000, 'glm/glm-4.7'],
    ['long', 163_839, 'glm/glm-4.7'],
    ['long', 163_840, 'claude/claude-opus-4-6'],
    ['long', 5_000_000, 'claude/claude-opus-4-6'],
    // A window that is not known keeps nothing out.
    ['own-model', 5_000_000, 'local/own-model'],
  ] as const)('%s with %d tokens goes to %s', (model, tokens, place) => {
    expect(places({ model, tokens }, shares)[0]).toBe(place);
  });

  test('the reason names the prompt and the window', () => {
    const { reason } = route(request({ model: 'long', tokens: 1000 }), shares);
    expect(reason.matched).toContain('tokens less than 80% of the window = 1000 of 204800');
  });

  test.each(['>80%', '80%', '10%..80%', '<%'])('%s is no share', (tokens) => {
    const yaml = `${PROVIDERS}routes: [{ when: { tokens: "${tokens}" }, to: [glm/glm-4.7] }]\n`;
    expect(() => table(yaml)).toThrow('tokens');
  });
});
