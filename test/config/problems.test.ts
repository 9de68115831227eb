/** Problems of a file: position, message and suggestion. */

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file
import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { describeProblem, type Problem } from '../../src/config/file/problem.ts';
import { bad, PROVIDER, parse } from './support.ts';

describe('a file with a mistake', () => {
  const cases: [string, string, Partial<Problem>][] = [
    [
      'an unknown key stands at the key, with the right one',
      'providers:\n  glm:\n    protocl: openai-chat\n',
      { path: 'providers.glm.protocl', line: 3, column: 5, suggestion: 'protocol' },
    ],
    [
      'an unknown key at the top',
      `${PROVIDER}routs: []\n`,
      { path: 'routs', line: 3, column: 1, message: 'unknown key', suggestion: 'routes' },
    ],
    [
      'a wrong word stands at the value, with the right one',
      'providers:\n  x: { protocol: openai-cht, base_url: "http://a.test" }',
      { path: 'providers.x.protocol', line: 2, column: 18, suggestion: 'openai-chat' },
    ],
    [
      'a wrong kind',
      `${PROVIDER}limits:\n  tool_rounds: many\n`,
      {
        path: 'limits.tool_rounds',
        line: 4,
        column: 16,
        message: 'must be a whole number, not text',
      },
    ],
    [
      'a number where text belongs',
      `${PROVIDER}auth:\n  keys:\n    - 12345\n`,
      { path: 'auth.keys[0]', line: 5, column: 7 },
    ],
    [
      'a number out of bounds',
      `${PROVIDER}workers: 0\n`,
      { path: 'workers', line: 3, column: 10, message: 'must be 1 or more' },
    ],
    [
      'a missing key',
      `${PROVIDER}routes:\n  - name: x\n`,
      { path: 'routes[0]', line: 4, column: 5, message: 'needs the key "to"' },
    ],
    [
      'a target without its provider',
      `${PROVIDER}routes:\n  - to: [q/m]\n`,
      { path: 'routes[0].to[0]', line: 4, column: 10, message: 'there is no provider "q"' },
    ],
    [
      'a target with a slip in its provider',
      'providers: { deepseek: {} }\nroutes:\n  - to: [deepsek/m]\n',
      { path: 'routes[0].to[0]', line: 3, column: 10, suggestion: 'deepseek/m' },
    ],
    [
      'a provider that is neither described nor known',
      'providers:\n  deepsek: {}\n',
      { path: 'providers.deepsek', line: 2, column: 3, suggestion: 'preset: deepseek' },
    ],
    [
      'an unknown profile',
      'providers:\n  x: { preset: glm, profile: gml }\n',
      { path: 'providers.x.profile', line: 2, column: 30, suggestion: 'glm' },
    ],
    [
      'a range with nothing in it',
      `${PROVIDER}routes:\n  - { when: { tokens: "5..3" }, to: [p/m] }\n`,
      { path: 'routes[0].when.tokens', line: 4, column: 23 },
    ],
    [
      'a broken regular expression',
      `${PROVIDER}routes:\n  - { when: { model: "/a(/" }, to: [p/m] }\n`,
      { path: 'routes[0].when.model', line: 4, column: 22 },
    ],
    [
      'a time zone with a slip',
      `${PROVIDER}routes:\n  - { when: { time: { zone: Europe/Belin, hours: "1:00-2:00" } }, to: [p/m] }\n`,
      { path: 'routes[0].when.time.zone', line: 4, suggestion: 'Europe/Berlin' },
    ],
    [
      'aliases in a circle',
      `${PROVIDER}aliases: { a: b, b: a }\n`,
      { path: 'aliases.a', line: 3, message: 'goes round in a circle' },
    ],
    [
      'a duplicate key',
      `${PROVIDER}log: {}\nlog: {}\n`,
      { line: 4, column: 1, message: 'the key "log" is there already, in line 3' },
    ],
    [
      'one name in two spellings',
      `${PROVIDER}aliases:\n  1: p/m\n  "1": p/n\n`,
      { line: 5, column: 3, message: 'the key "1" is there already, in line 4' },
    ],
    [
      'a list as a name',
      `${PROVIDER}aliases:\n  ? [a, b]\n  : p/m\n`,
      { line: 4, column: 5, message: 'a list or a mapping is no key' },
    ],
    [
      'a second document',
      `${PROVIDER}---\nlog: {}\n`,
      { line: 3, message: 'a second document begins here: a file has one' },
    ],
    [
      'a number without end',
      `${PROVIDER}limits: { drain: .inf }\n`,
      { path: 'limits.drain', message: 'must be a number, not Infinity: it counts seconds' },
    ],
    [
      'another scheme',
      'providers:\n  p: { protocol: openai-chat, base_url: "ws://127.0.0.1:1/v1" }\n',
      { path: 'providers.p.base_url', suggestion: undefined },
    ],
    ['broken YAML', 'a: [1, 2\nb: 3\n', { line: 2 }],
    ['a list instead of a mapping', '- a\n', { line: 1, column: 1 }],
    [
      'a preset with a slip',
      'providers:\n  x: { preset: deepsek }\n',
      { path: 'providers.x.preset', line: 2, column: 16, suggestion: 'deepseek' },
    ],
    [
      "a preset's name with an address of its own",
      'providers:\n  glm: { base_url: "http://127.0.0.1:9/v1" }\n',
      {
        path: 'providers.glm',
        message:
          'needs the key "protocol"; the name "glm" does not choose its preset where base_url is set',
        suggestion: 'preset: glm',
      },
    ],
    [
      'a vendor without a common address',
      'providers:\n  azure:\n',
      { path: 'providers.azure', line: 2, column: 3 },
    ],
    [
      'a protocol that the preset has no address for',
      'providers:\n  x: { preset: gemini, protocol: anthropic-messages }\n',
      { path: 'providers.x', line: 2, column: 3 },
    ],
    [
      'profiles that extend each other',
      `${PROVIDER}profiles:\n  a: { extends: b }\n  b: { extends: a }\n`,
      { path: 'profiles.a.extends', line: 4, message: 'goes round in a circle' },
    ],
    [
      'a profile that extends nothing there is',
      `${PROVIDER}profiles:\n  a: { extends: gml }\n`,
      { path: 'profiles.a.extends', line: 4, column: 17, suggestion: 'glm' },
    ],
    [
      'weights that leave no target',
      `${PROVIDER}routes:\n  - to: [{ target: p/a, weight: 0 }, { target: p/b, weight: 0 }]\n`,
      { path: 'routes[0].to', line: 4 },
    ],
    [
      'an hour that no clock shows',
      `${PROVIDER}routes:\n  - { when: { time: "25:00-26:00" }, to: p/m }\n`,
      { path: 'routes[0].when.time', line: 4, column: 21 },
    ],
    ['an address that is none', `${PROVIDER}listen: "a b"\n`, { path: 'listen', line: 3 }],
    [
      'a name that no provider may have',
      'providers:\n  a/b: {}\n',
      { path: 'providers.a/b', line: 2, column: 3, message: 'is not a legal name here' },
    ],
    [
      'a searching model without its name',
      `${PROVIDER}server_tools: { web_search: { engines: [{ type: model }] } }\n`,
      { path: 'server_tools.web_search.engines[0]', line: 3 },
    ],
    [
      'eyes at a provider that is not there',
      `${PROVIDER}server_tools: { vision: { target: pp/m } }\n`,
      { path: 'server_tools.vision.target', line: 3, suggestion: 'p/m' },
    ],
    [
      'searxng without an address',
      `${PROVIDER}server_tools:\n  web_search:\n    engines: [{ type: searxng }]\n`,
      { line: 5, column: 15 },
    ],
  ];
  test.each(cases)('%s', (_, text, wanted) => {
    expect(bad(text)[0]).toMatchObject(wanted as Problem);
  });

  test('a circle is reported once for each profile in it', () => {
    const text = `${PROVIDER}profiles: { a: { extends: b }, b: { extends: a }, c: { extends: a }, d: { extends: glm } }`;
    expect(bad(text).map(({ path }) => path)).toEqual(['profiles.a.extends', 'profiles.b.extends']);
  });

  test('as text: file, line, column, path, message and suggestion', () => {
    const [problem] = bad(`${PROVIDER}routs: []`);
    expect(describeProblem(problem!, 'h.yaml')).toBe(
      'h.yaml:3:1: routs: unknown key (did you mean "routes"?)',
    );
    const nowhere = { path: '', line: 0, column: 0, message: 'there is no such file' };
    expect(describeProblem(nowhere, 'h.yaml')).toBe('h.yaml: there is no such file');
    expect(describeProblem(nowhere)).toBe('there is no such file');
  });

  test('several problems are reported at once, in the order of the file', () => {
    const problems = bad(
      'log: { level: debg }\nworkers: x\nprovidrs: {}\nproviders: { glm: {} }\n',
    );
    expect(problems.map(({ line }) => line)).toEqual([1, 2, 3]);
  });

  test('any text gives a result, and nothing is thrown', () => {
    const tokens = fc.constantFrom(
      ...'providers routes : - { } [ ] , "glm" & * ! \n \t # ${X} | > null 1 to when a/b'.split(
        ' ',
      ),
      '\n  ',
      ': ',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(tokens).map((a) => a.join(' ')),
        ),
        (text) => {
          const result = parse(text);
          if (!result.ok) {
            expect(result.problems.length).toBeGreaterThan(0);
            for (const { line, column } of result.problems) {
              expect(line).toBeGreaterThan(0);
              expect(column).toBeGreaterThan(0);
            }
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('dates', () => {
  test.each(['2027-02-31', '2027-13-01', '2027-00-10', '2026-02-29', '2027-04-31'])(
    '%s is no day, wherever a date is wanted',
    (day) => {
      const price = `p: { protocol: openai-chat, base_url: "http://x/v1", keys: [k], prices: { m: { input: 1, output: 1, effective_from: ${day} } } }`;
      for (const [text, path] of [
        [`providers:\n  ${price}\n`, 'providers.p.prices.m.effective_from'],
        [
          `${PROVIDER}auth: { keys: [{ name: a, key: long-enough-key, expires: ${day} }] }\n`,
          'auth.keys[0].expires',
        ],
      ] as const) {
        const result = parse(text);
        expect(result.ok ? [] : result.problems.map((one) => one.path)).toEqual([path]);
      }
    },
  );

  test.each(['2027-02-28', '2028-02-29', '2027-12-31'])('%s is one', (day) => {
    const keys = `auth: { keys: [{ name: a, key: long-enough-key, expires: ${day} }] }\n`;
    expect(parse(`${PROVIDER}${keys}`).ok).toBe(true);
  });
});

describe('a file that works but may surprise', () => {
  test.each([
    [
      'a rule behind one that takes everything',
      'routes: [{ to: [p/a] }, { to: [p/b] }]',
      'routes[1]',
    ],
    ['an address that others reach, without keys', 'listen: 0.0.0.0:2', 'listen'],
    ['an alias that a place hides', 'aliases: { p/x: p/y }', 'aliases.p/x'],
    [
      'a paid search engine without a key',
      'server_tools: { web_search: { engines: [{ type: tavily }] } }',
      'server_tools.web_search.engines[0]',
    ],
  ])('%s is told of', (_, line, path) => {
    const result = parse(`${PROVIDER}${line}\n`);
    expect(result.ok).toBe(true);
    expect(result.warnings).toMatchObject([{ path, line: 3 }]);
  });

  test.each([
    'listen: 127.0.0.1:2',
    'listen: localhost:2',
    'auth: { keys: [a-key-of-some-length] }\nlisten: 0.0.0.0:2',
  ])('%j warns of nothing', (line) => {
    expect(parse(`${PROVIDER}${line}`).warnings).toEqual([]);
  });
});
