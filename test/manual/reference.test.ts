/** The reference pages say what the sources do: nothing is undocumented, nothing documented has vanished. */

import { describe, expect, test } from 'bun:test';
import { chineseConfigurationPage, configurationPage } from '../../scripts/docs.ts';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { ERROR_KINDS, type ErrorKind, GatewayError } from '../../src/conversation/errors.ts';
import { createGatewayMetrics } from '../../src/telemetry/gateway-metrics.ts';
import { firstCells, prose, ROOT, read } from './files.ts';
import { codesInSources, eventsInSources, notesInSources } from './source-words.ts';

const sorted = (names: Iterable<string>) => [...new Set(names)].sort();

test('docs/configuration.md is what the schema says (else: bun scripts/docs.ts)', () => {
  expect(read('docs/configuration.md')).toBe(configurationPage());
});

test('docs/configuration.zh-CN.md is what the schema says, each text translated (else: bun scripts/docs.ts)', () => {
  expect(read('docs/configuration.zh-CN.md')).toBe(chineseConfigurationPage());
});

describe('docs/notes.md', () => {
  const sources = notesInSources();
  const page = read('docs/notes.md');
  const sections = [...page.matchAll(/^### (\S+)\n\n([\s\S]*?)(?=^##|(?![\s\S]))/gm)];

  test('every note in the sources could be read', () => {
    expect(sources.unread).toEqual([]);
    expect(sources.names.size).toBeGreaterThan(30);
  });

  test('every note has its entry, and every entry its note', () => {
    expect(sorted(sections.map(([, name]) => name!))).toEqual(sorted(sources.names));
  });

  test('every entry says something', () => {
    const thin = sections.filter(([, , text]) => text!.trim().length < 40);
    expect(thin.map(([, name]) => name)).toEqual([]);
  });
});

test('docs/log-events.md names every event, and no other', () => {
  const page = read('docs/log-events.md');
  const tables = page.replace(/^## exchange\n[\s\S]*?(?=^## )/m, '');
  expect(sorted([...firstCells(tables), 'exchange'])).toEqual(sorted(eventsInSources()));
});

test('docs/metrics.md names every metric with its kind and labels, and no other', () => {
  const rendered = createGatewayMetrics('1').render();
  const kinds = [...rendered.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, kind]) => [
    name,
    kind,
  ]);
  const page = [...read('docs/metrics.md').matchAll(/^\| `(\w+)` \| (\w+) \|/gm)];
  const told = page.map(([, name, kind]) => [name, kind]);
  expect(told.toSorted()).toEqual(kinds.toSorted());
});

test('docs/telemetry.md names every alert of the release, in their order', () => {
  const alerts = [...read('deploy/prometheus/alerts.yml').matchAll(/- alert: (\w+)/g)];
  const page = [...read('docs/telemetry.md').matchAll(/^\| `(Hopgate\w+)` \|/gm)];
  expect(page.map(([, name]) => name)).toEqual(alerts.map(([, name]) => name));
});

describe('docs/errors.md', () => {
  const page = read('docs/errors.md');

  const words = (protocol: Codec, kind: ErrorKind): string => {
    const { status, body } = protocol.encodeError(new GatewayError(kind, 'x'), 'req_1');
    const { type, code } = body.error as { type: string; code?: string | null };
    return `${status} \`${type}\`${code ? `, \`${code}\`` : ''}`;
  };

  test.each(ERROR_KINDS)('%s is on the page as each protocol words it', (kind) => {
    const cells = [openaiChat, openaiResponses, anthropicMessages].map((one) => words(one, kind));
    expect(page).toContain(`| \`${kind}\` | ${cells.join(' | ')} |`);
  });

  test('every kind is explained once, and no other', () => {
    const explained = firstCells(page.slice(page.indexOf('## Kinds of errors')));
    expect(explained.toSorted()).toEqual(ERROR_KINDS.toSorted());
  });

  test('no code of the gateway’s own errors is left for the reader to guess', () => {
    const codes = [...codesInSources()];
    expect(codes.length).toBeGreaterThan(20);
    const pages = [...new Bun.Glob('docs/*[!N].md').scanSync({ cwd: ROOT })].map(read).join('');
    expect(codes.filter((code) => !pages.includes(`\`${code}\``))).toEqual([]);
  });
});

test('both READMEs have the same sections, commands and links', () => {
  const [english, chinese] = [read('README.md'), read('README.zh-CN.md')];
  const shape = (text: string) => ({
    headings: [...prose(text).matchAll(/^(#+) /gm)].map(([, level]) => level),
    commands: firstCells(text),
    // A page counts as the same in both languages; a link to the other language beside it counts once.
    links: [...prose(text).matchAll(/\]\((?!README)([^)]+)\)/g)]
      .map(([, to]) => to!.replace('.zh-CN.md', '.md'))
      .filter((to, at, all) => to !== all[at - 1]),
    code: [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, body]) => [
      language,
      body!.replace(/\s*#.*$/gm, ''),
    ]),
    names: sorted(
      [...prose(text).matchAll(/`([\x20-\x5f\x61-\x7e]+)`/g)].map(([, name]) => name!),
    ).filter((name) => !/^(hopgate <|--explain|provider\/model)/.test(name)),
  });
  expect(shape(chinese)).toEqual(shape(english));
  expect(english).toContain('(README.zh-CN.md)');
  expect(chinese).toContain('(README.md)');
});
