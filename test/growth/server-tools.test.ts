/** Server tools read the output of models, vendors, servers and histories in linear time. */

import { describe, test } from 'bun:test';
import { Notes } from '../../src/conversation/notes.ts';
import type { Block, ToolCallBlock, ToolResultBlock, Turn } from '../../src/conversation/types.ts';
import { CitationMarks } from '../../src/features/server-tools/citations/cited-text.ts';
import {
  readSource,
  renderHits,
  Sources,
} from '../../src/features/server-tools/citations/sources.ts';
import { restoreHistory } from '../../src/features/server-tools/history.ts';
import { answerKeys, HOPS } from '../../src/features/server-tools/hop-ledger.ts';
import { latestUserText, offerFor } from '../../src/features/server-tools/offer.ts';
import { toolRegistry } from '../../src/features/server-tools/registry.ts';
import { buildRequest } from '../../src/features/server-tools/tools/http/index.ts';
import {
  isAllowed,
  mcpOutcome,
  mcpToolName,
  readTools,
} from '../../src/features/server-tools/tools/mcp/result.ts';
import { filterHits } from '../../src/features/server-tools/tools/web-search/index.ts';
import { modelResults } from '../../src/features/server-tools/tools/web-search/model-search.ts';
import { HTTP_ENGINES } from '../../src/features/server-tools/tools/web-search/run-engine.ts';
import { wantsSearch } from '../../src/features/server-tools/tools/web-search/wants-search.ts';
import { isObject, type Json, type JsonObject } from '../../src/lib/json/json.ts';
import { violation } from '../../src/lib/json/json-schema.ts';
import { schemaProblems } from '../../src/lib/json/json-schema-problems.ts';
import { linearPattern } from '../../src/lib/text/linear-pattern.ts';
import { fakeSearch, target } from '../features/server-tools/script.ts';
import { memoryRoom } from '../support/entries.ts';
import { expectLinear } from '../support/growth.ts';

const repeated =
  (unit: string, before = '', after = '') =>
  (size: number) =>
    before + unit.repeat(Math.ceil(size / unit.length)) + after;
const MAX = 128 * 1024;

const TEXTS: Readonly<Record<string, (size: number) => string>> = {
  'open brackets': repeated('['),
  'begun marks': repeated('[1, '),
  'marks of nothing': repeated('[1] '),
  'wide brackets': repeated('【1'),
  backticks: repeated('`x'),
  'backticks in a row': repeated('`'),
  blanks: repeated(' '),
  'blanks before brackets': repeated(' '.repeat(1000), '', '[1]'),
  tabs: repeated('\t['),
  'line ends': repeated('\n'),
  commas: repeated('1,', '['),
  'open reminders': repeated('<system-reminder>'),
  reminders: repeated('<system-reminder>x</system-reminder>'),
  fences: repeated('```x'),
  'words of a search': repeated('latest news '),
  'words of time': repeated('today '),
  'who won': repeated('won '),
  google: repeated('google '),
  letters: repeated('a'),
  digits: repeated('1'),
};

describe('citation marks in', () => {
  for (const [name, input] of Object.entries(TEXTS)) {
    test(`${name}, whole and in pieces`, async () => {
      const sources = new Sources();
      sources.add([{ url: 'https://a.example', title: 'A' }]);
      for (const length of [Infinity, 7]) {
        const run = (text: string) => {
          const marks = new CitationMarks((n) => sources.get(n));
          for (let at = 0; at < text.length; at += length) marks.push(text.slice(at, at + length));
          return marks.end();
        };
        await expectLinear({ name, input, run, most: MAX });
      }
    });
  }
});

describe('user text', () => {
  for (const [name, input] of Object.entries(TEXTS)) {
    test(name, () => expectLinear({ name, input, run: wantsSearch, most: MAX }));
  }
});

describe('keys of answers', () => {
  for (const [name, input] of Object.entries(TEXTS)) {
    test(name, async () => {
      const run = (text: string) => {
        const before: Turn = { role: 'user', blocks: [{ type: 'text', text }] };
        answerKeys('', { clientIds: [text], shownIds: [], text }, before);
        answerKeys('', { clientIds: [], shownIds: [text], text }, before);
      };
      await expectLinear({ name, input, run, most: MAX });
    });
  }
});

const call = (id: string): ToolCallBlock => ({
  type: 'tool-call',
  id,
  name: 'web_search',
  kind: 'function',
  input: '{"query":"x"}',
  by: 'provider',
});
const result = (callId: string): ToolResultBlock => ({
  type: 'tool-result',
  callId,
  kind: 'function',
  content: [{ type: 'text', text: 'found' }],
  isError: false,
  by: 'provider',
});
const many = (size: number, make: (at: number) => readonly Block[]) =>
  Array.from({ length: Math.ceil(size / 64) }, (_, at) => make(at)).flat();

const HISTORIES: Readonly<Record<string, (size: number) => readonly Turn[]>> = {
  'calls and results in one turn': (size) => [
    {
      role: 'assistant',
      blocks: many(size, (at) => [call(`srvtoolu_${at}`), result(`srvtoolu_${at}`)]),
    },
  ],
  'calls first, then results': (size) => [
    {
      role: 'assistant',
      blocks: [...many(size, (at) => [call(`c${at}`)]), ...many(size, (at) => [result(`c${at}`)])],
    },
  ],
  'calls without results': (size) => [
    { role: 'assistant', blocks: many(size, (at) => [call(`c${at}`)]) },
  ],
  'calls of one id': (size) => [
    { role: 'assistant', blocks: many(size, () => [call('c'), result('c')]) },
  ],
  'one answer in many turns': (size) =>
    many(size, (at) => [call(`c${at}`)]).map((block) => ({ role: 'assistant', blocks: [block] })),
  'many answers': (size) =>
    many(size, (at) => [call(`c${at}`)]).flatMap((block): readonly Turn[] => [
      { role: 'user', blocks: [{ type: 'text', text: 'go on' }] },
      { role: 'assistant', blocks: [{ type: 'text', text: 'Done.' }, block] },
    ]),
  'texts of a user': (size) => [
    { role: 'user', blocks: many(size, () => [{ type: 'text', text: 'x' }]) },
  ],
};

describe('a history of', () => {
  const registry = toolRegistry([
    fakeSearch(),
    {
      ...fakeSearch(),
      name: 'other',
      hosted: undefined,
      inject: 'selective',
      wanted: () => false,
    } as never,
  ]);
  for (const [name, input] of Object.entries(HISTORIES)) {
    test(name, async () => {
      const ledger = memoryRoom(HOPS);
      ledger.put(['x'], { turns: [], sources: [], clientCalls: [] });
      const run = (turns: readonly Turn[]) => {
        const at = target('openai-chat');
        const notes = new Notes();
        const sources = new Sources();
        const all = restoreHistory(turns, {
          ledger,
          owner: '',
          registry,
          target: at,
          declared: { tools: [], origin: undefined },
          sources,
          notes,
        });
        latestUserText(all);
        const request = {
          model: 'm',
          system: [],
          turns: all,
          tools: [],
          settings: { stream: true },
        };
        return offerFor(request, at, registry);
      };
      await expectLinear({ name, input, run, most: MAX });
    });
  }
});

const RESULTS: Readonly<Record<string, (size: number) => JsonObject>> = {
  'one text': (size) => ({ content: [{ type: 'text', text: 'x'.repeat(size) }] }),
  'many texts': (size) => ({ content: many(size, () => [{ type: 'text', text: 'x' }]) as never }),
  'unknown blocks': (size) => ({
    content: Array.from({ length: size / 32 }, () => ({ type: 'novelty' })),
  }),
  links: (size) => ({
    content: Array.from({ length: size / 32 }, () => ({ type: 'resource_link', uri: 'f:/' })),
  }),
  'no objects': (size) => ({ content: Array.from({ length: size / 8 }, () => null) }),
  'structured content': (size) => ({
    structuredContent: { list: Array.from({ length: size / 8 }, () => 1) },
  }),
  'one image': (size) => ({
    content: [{ type: 'image', mimeType: 'image/png', data: 'A'.repeat(size) }],
  }),
};

describe('a result of an MCP server of', () => {
  for (const [name, input] of Object.entries(RESULTS)) {
    test(name, () =>
      expectLinear({ name, input, run: (one) => mcpOutcome('t', one), most: 4 * MAX }),
    );
  }
});

describe('a list of tools of', () => {
  const lists: Readonly<Record<string, (size: number) => Json>> = {
    'bad ones': (size) => Array.from({ length: size / 8 }, () => null),
    'good ones': (size) =>
      Array.from({ length: size / 64 }, (_, at) => ({
        name: `t${at}`,
        inputSchema: { type: 'object' },
      })),
    'long names': (size) => [{ name: 'a'.repeat(size), inputSchema: { type: 'object' } }],
  };
  for (const [name, input] of Object.entries(lists)) {
    test(name, async () => {
      const run = (list: Json) => {
        const tools = readTools(list, () => {});
        for (const tool of tools) isAllowed(tool.name, ['*a*a*a*b', 't*']);
        return tools.map((tool) => mcpToolName('s', tool.name));
      };
      await expectLinear({ name, input, run, most: MAX });
    });
  }
});

const PAGES: Readonly<Record<string, (size: number) => string>> = {
  'open divisions': repeated('<div'),
  'results without links': repeated('<div class="result">'),
  'classes without end': repeated('<div class="'),
  'links without end': repeated('<a class="result__a" href="', '<div class="result">'),
  'links without text': repeated('<a class="result__a" href="x">', '<div class="result">'),
  'anchors without end': repeated('<a ', '<div class="result">'),
  'anchors that are no links': repeated('<a href="x">', '<div class="result">'),
  'snippets without end': repeated(
    'class="result__snippet">',
    '<div class="result"><a class="result__a" href="//x.example">y</a>',
  ),
  'angle brackets': repeated('<', '<div class="result">'),
  quotes: repeated('"', '<div class="result" class="'),
  classes: repeated(' class="result', '<div'),
  'links in text': repeated('[a](https://b.example/c) '),
  'titles of links': repeated('[a'),
  'addresses of links': repeated('[a](https://b'),
};

describe("a search engine's answer of", () => {
  for (const [name, input] of Object.entries(PAGES)) {
    test(name, async () => {
      const query = { query: 'q', count: 10, now: '2026-01-01T00:00:00Z' };
      const run = (text: string) => {
        for (const engine of HTTP_ENGINES) {
          if (engine.html === true) engine.read(text, query);
          else {
            const hit = { title: text, url: 'https://a.example', link: 'https://a.example' };
            const more = {
              description: text,
              content: text,
              text,
              snippet: text,
              highlights: [text],
            };
            const list = [{ ...hit, ...more, extra_snippets: [text] }];
            engine.read(
              {
                results: list,
                web: { results: list },
                organic: list,
                data: list,
                search_result: list,
              },
              query,
            );
          }
        }
        return modelResults({ text, citations: [] });
      };
      await expectLinear({ name, input, run, most: MAX });
    });
  }
});

describe('hits', () => {
  test('many pages and many rules take linear time', async () => {
    const input = (size: number) =>
      Array.from({ length: size / 32 }, (_, at) => ({
        title: 't',
        url: `https://a${at}.example/${'/'.repeat(8)}`,
        snippet: 's',
      }));
    const query = { query: 'q', count: 1e9, blockedDomains: ['b.example'], now: '' };
    await expectLinear({
      name: 'pages',
      input,
      run: (hits) => filterHits(hits, query),
      most: MAX,
    });
  });

  for (const [name, input] of Object.entries(TEXTS)) {
    test(`addresses and texts of ${name}`, async () => {
      const run = (text: string) => {
        const url = `https://a.example/${text}`;
        const query = { query: 'q', count: 10, blockedDomains: [text, url], now: '' };
        filterHits(
          [
            { title: text, url, snippet: text },
            { title: text, url: text, snippet: text },
          ],
          query,
        );
        const source = readSource(
          { url, title: text, encrypted_content: `hopgate-hit1.${text}` },
          1,
        );
        return renderHits({ query: text, sources: source === undefined ? [] : [source] });
      };
      await expectLinear({ name, input, run, most: MAX });
    });
  }
});

describe('arguments of an HTTP tool of', () => {
  const schema: JsonObject = {
    type: 'object',
    properties: { a: { type: 'string' }, list: { uniqueItems: true, items: { type: 'integer' } } },
    additionalProperties: true,
  };
  const ARGUMENTS: Readonly<Record<string, (size: number) => JsonObject>> = {
    'one text': (size) => ({ a: '../'.repeat(size / 3) }),
    'percent signs': (size) => ({ a: '%2e'.repeat(size / 3) }),
    'many names': (size) =>
      Object.fromEntries(Array.from({ length: size / 16 }, (_, at) => [`k${at}`, 1])),
    'many nulls': (size) =>
      Object.fromEntries(Array.from({ length: size / 16 }, (_, at) => [`k${at}`, null])),
    'items that differ': (size) => ({ list: Array.from({ length: size / 8 }, (_, at) => at) }),
  };
  for (const [name, input] of Object.entries(ARGUMENTS)) {
    test(name, async () => {
      const run = (args: JsonObject) => {
        for (const url of ['https://a.example/{+a}/x', 'https://a.example/?q={a}']) {
          try {
            buildRequest({ method: 'POST', url, schema }, { a: 'x', ...args });
          } catch {
            // Some of them are refused.
          }
        }
      };
      await expectLinear({ name, input, run, most: MAX });
    });
  }
});

describe('a pattern', () => {
  const PATTERNS = ['^(a+)+$', '^(a|a)*$', '(x+x+)+y', '^(?:a?){30}a{30}$', '\\s+$', '(.*)*b'];
  for (const source of PATTERNS) {
    test(source, () => {
      const pattern = linearPattern(source);
      const input = repeated('a', '', '!');
      return expectLinear({
        name: source,
        input,
        run: (text) => pattern.test(text),
        most: 128 * 1024,
      });
    });
  }

  test('schemas with many members take linear time', () => {
    const input = (size: number): JsonObject => ({
      type: 'object',
      properties: Object.fromEntries(
        Array.from({ length: size / 32 }, (_, at) => [
          `k${at}`,
          { type: 'string', enum: ['a', 'b'] },
        ]),
      ),
    });
    const run = (schema: JsonObject) => {
      schemaProblems(schema);
      const value = Object.fromEntries(
        Object.keys(isObject(schema.properties) ? schema.properties : {}).map((key) => [key, 'a']),
      );
      return violation(value, schema);
    };
    return expectLinear({ name: 'members', input, run, most: MAX });
  });
});
