/** Reading the environment: homes, empty variables and the limit of tool texts. */

import { describe, expect, test } from 'bun:test';
import { environmentFrom, expandHome } from '../../src/config/environment.ts';
import { parse } from './support.ts';

describe('environment', () => {
  test('has default homes, and those that variables name', () => {
    expect(environmentFrom({ HOME: '/h' })).toMatchObject({
      userHome: '/h',
      home: '/h/.hopgate',
      configHome: '/h/.config',
      configPath: undefined,
    });
    expect(
      environmentFrom({
        HOME: '/h',
        HOPGATE_HOME: '~/x',
        XDG_CONFIG_HOME: '/c',
        HOPGATE_CONFIG: 'f',
      }),
    ).toMatchObject({ home: '/h/x', configHome: '/c', configPath: 'f' });
  });

  test('an empty variable counts as unset, and no variable comes from the prototype', () => {
    const environment = environmentFrom({ HOME: '/h', A: '', B: 'b' });
    expect(environment.variable('A')).toBeUndefined();
    expect(environment.variable('B')).toBe('b');
    expect(environment.variable('constructor')).toBeUndefined();
  });

  test.each([
    ['4096', 4096],
    [' 10 ', 10],
    ['0', 0],
    ['-5', undefined],
    ['1e3', undefined],
    ['', undefined],
  ])('RCC_TOOL_TEXT_LIMIT=%p is %p', (written, wanted) => {
    expect(environmentFrom({ HOME: '/h', RCC_TOOL_TEXT_LIMIT: written }).toolTextLimit).toBe(
      wanted as number,
    );
  });

  test.each([
    [{}, true],
    [{ NO_COLOR: '1' }, false],
    [{ TERM: 'dumb' }, false],
    [{ NO_COLOR: '1', FORCE_COLOR: '1' }, true],
    [{ FORCE_COLOR: '0' }, false],
  ])('colour with %j: %p', (variables, wanted) => {
    expect(environmentFrom({ HOME: '/h', ...variables }).color).toBe(wanted);
  });

  test.each([
    ['', 0],
    ['*', 1],
    ['llm.example', 1],
    ['.example, other', 1],
    ['*.example', 1],
    ['LLM.Example', 1],
    ['other llm.example', 1],
    ['other', 0],
    ['m.example', 0],
  ])('no_proxy=%p: check warns of a proxy that is not used: %p', (list, wanted) => {
    const text =
      'providers: { p: { protocol: openai-chat, base_url: "https://llm.example/v1", keys: [x], proxy: "http://proxy:3128" } }';
    for (const name of ['no_proxy', 'NO_PROXY']) {
      const result = parse(text, { [name]: list });
      if (!result.ok) throw new Error(JSON.stringify(result.problems));
      expect(result.warnings.filter(({ path }) => path === 'providers.p.proxy')).toHaveLength(
        wanted,
      );
    }
  });

  test.each([
    [{}, undefined],
    [{ https_proxy: 'http://a' }, 'http://a'],
    [{ HTTPS_PROXY: 'http://a', ALL_PROXY: 'http://b' }, 'http://a'],
    [{ http_proxy: 'http://a' }, undefined],
    [{ ALL_PROXY: 'http://b' }, 'http://b'],
    [{ all_proxy: 'http://b', ALL_PROXY: 'http://c' }, 'http://b'],
    // What many have in their shells, beside the two others; fetch passes over it.
    [{ all_proxy: 'socks5://127.0.0.1:1080' }, undefined],
  ])('%j: the proxy for https is %p', (variables, proxy) => {
    const environment = environmentFrom({ HOME: '/h', ...variables });
    expect(environment.proxyFor('https:')).toBe(proxy);
    expect(environment.proxies('https:')).toBe(proxy !== undefined);
  });

  test('only a leading ~ is the home', () => {
    expect(expandHome('~', '/h')).toBe('/h');
    expect(expandHome('~/a', '/h')).toBe('/h/a');
    expect(expandHome('~other/a', '/h')).toBe('~other/a');
    expect(expandHome('/a/~/b', '/h')).toBe('/a/~/b');
  });
});

test('the limit of tool texts has its own variable, and an older one as fallback', () => {
  const of = (variables: Record<string, string>) =>
    environmentFrom({ HOME: '/h', ...variables }).toolTextLimit;
  expect(of({ HOPGATE_TOOL_TEXT_LIMIT: '100' })).toBe(100);
  expect(of({ HOPGATE_TOOL_TEXT_LIMIT: '100', RCC_TOOL_TEXT_LIMIT: '7' })).toBe(100);
  expect(of({ HOPGATE_TOOL_TEXT_LIMIT: '', RCC_TOOL_TEXT_LIMIT: '7' })).toBe(7);
});
