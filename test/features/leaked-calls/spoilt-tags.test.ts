/** Calls whose tags are spoilt or taken from another grammar become calls; what is quoted or cut stays none. */

import { describe, expect, test } from 'bun:test';
import type { FinishReason } from '../../../src/conversation/events.ts';
import type { Tool } from '../../../src/conversation/types.ts';
import { characters, eventsOf, fn, play } from './transcript.ts';

const TOOLS: readonly Tool[] = [fn('run', { cmd: { type: 'string' }, limit: { type: 'integer' } })];
const CALL = { name: 'run', arguments: { cmd: 'ls -la' } };

/** DeepSeek's mark as it comes out of tokenizers, templates and relays; `''` where it is lost. */
const MARKS = ['', '｜DSML｜', '｜｜DSML｜｜', '|DSML|', '||DSML||', 'DSML｜', '｜DSML', '｜'];
const WRAPPERS = [
  ['', ''],
  ['<function_calls>', '</function_calls>'],
  ['<｜DSML｜tool_calls>\n', '\n</｜DSML｜tool_calls>'],
  ['<tool_call>\n', '\n</tool_call>'],
  ['<tool_calls>', '</tool_calls>'],
  ['<tool_call>', '</function_calls>'],
  ['<function_calls>', '</tool_call>'],
  ['<function_calls>', '</｜｜DSML｜｜tool_calls>'],
  ['<｜DSML｜function_calls>', ''],
] as const;
const HEADS = [
  '<function><name>run</name>',
  '<function>\n<name>run</name>\n',
  '<function name="run">',
  '<function=run>',
  '<invoke name="run">',
  '<invoke=run>',
  '<invoke><name>run</name>',
  '<｜DSML｜invoke name="run">',
  '<｜DSML｜function><name>run</name>',
  '<｜DSML｜function><｜DSML｜name>run</｜DSML｜name>',
  '<function><｜DSML｜name>run</｜DSML｜name>',
  '<function><name>run</｜｜DSML｜｜name>',
];
const OPENERS = [
  '<parameter name="cmd" string="true">',
  '<｜DSML｜parameter name="cmd" string="true">',
  '<｜｜DSML｜｜parameter name="cmd">',
  '<｜parameter name="cmd">',
  '<parameter=cmd>',
];
const CLOSERS = [
  ...MARKS.map((mark) => `</${mark}parameter>`),
  ...['<｜DSML｜/parameter>', '</arg_value>', ''],
];
const ENDS = [
  ...MARKS.map((mark) => `</${mark}invoke>`),
  ...['</function>', '</｜DSML｜function>', '</tool_call>', ''],
];

function* texts(closers = CLOSERS, ends = ENDS): Generator<string> {
  for (const [before, behind] of WRAPPERS) {
    for (const head of HEADS) {
      for (const opener of OPENERS) {
        for (const closer of closers) {
          for (const end of ends) {
            // Without any closer the value would go on.
            if (closer === '' && end === '') continue;
            yield `${before}${head}${opener}ls -la${closer}${end}${behind}`;
          }
        }
      }
    }
  }
}

const played = (chunks: readonly string[], finish?: FinishReason, tools = TOOLS) =>
  play(eventsOf([{ text: chunks }], finish), { tools });

test('every opening with every closer of every grammar is a call', () => {
  const failures: string[] = [];
  for (const text of texts()) {
    const { calls, text: shown, finish } = played([`Now.\n${text}`]);
    if (Bun.deepEquals(calls, [CALL]) && shown === 'Now.' && finish === 'tool-calls') continue;
    failures.push(`${text}: ${JSON.stringify([calls, shown, finish])}`);
  }
  expect([failures.length, ...failures.slice(0, 10)]).toEqual([0]);
});

/** Some of them, spread over the table. */
const SAMPLE = [...texts()].filter((_, i) => i % 211 === 0);

describe('however it arrives', () => {
  test('cut at every position', () => {
    for (const markup of SAMPLE) {
      const text = `Now.\n${markup}`;
      for (let at = 1; at < text.length; at++) {
        const { calls, text: shown } = played([text.slice(0, at), text.slice(at)]);
        expect([text, at, calls, shown]).toEqual([text, at, [CALL], 'Now.']);
      }
    }
  });

  test('character by character, also several calls in a row', () => {
    for (const markup of SAMPLE) {
      const { calls, text: shown } = played(characters(`Now.\n${markup}\n`));
      expect([markup, calls, shown]).toEqual([markup, [CALL], 'Now.']);
    }
    const twice =
      '<function><name>run</name><parameter name="cmd" string="true">ls -la</｜｜DSML｜｜parameter></function>\n';
    const { calls } = played(characters(`Now.\n${twice}${twice.replace('ls -la', 'pwd')}`));
    expect(calls).toEqual([CALL, { name: 'run', arguments: { cmd: 'pwd' } }]);
  });
});

describe('stays text', () => {
  /** Calls that are closed, so that it shows where they end. */
  const CLOSED = [...texts(CLOSERS.slice(0, -1), ENDS.slice(0, -1))].filter(
    (_, i) => i % 211 === 0,
  );
  const QUOTES: Readonly<Record<string, (markup: string) => string>> = {
    'in a fence': (m) => `Like this:\n\`\`\`xml\n${m}\n\`\`\`\nIt is no call.`,
    'in a fence at the end': (m) => `Like this:\n\`\`\`xml\n${m}\n\`\`\``,
    'in a sentence': (m) => `The page says ${m} which is odd.`,
    'at the end of a sentence': (m) => `The page says ${m}`,
    'in front of more text': (m) => `The page says:\n${m}\nI did not do that.`,
    'in inline code': (m) => `Use \`${m}\` here.`,
    'in a list': (m) => `- one\n- ${m}\n`,
    'in quotation marks': (m) => `He wrote "${m}" here.`,
  };
  for (const [where, quote] of Object.entries(QUOTES)) {
    test(where, () => {
      for (const markup of CLOSED) {
        const text = quote(where.includes('fence') ? markup : markup.replaceAll('\n', ' '));
        for (const chunks of [[text], characters(text)]) {
          const { calls, text: shown } = played(chunks);
          expect([calls, shown]).toEqual([[], text]);
        }
      }
    });
  }

  const OTHER_XML = [
    'The build file:\n<function>not a call</function>',
    'The build file:\n<function name="main"><parameter name="cmd">x</parameter></function>',
    'The build file:\n<function>\n  <name>main</name>\n  <parameter name="cmd">x</parameter>\n</function>',
    'Add this tag:\n<function>',
    'Add this tag:\n<invoke>\n',
    'Add it:\n<invoke><name>main</name></invoke>',
    'Add it:\n<function><body>run</body></function>',
    'Add it:\n<function></function>',
  ];
  for (const text of OTHER_XML) {
    test(JSON.stringify(text), () => {
      for (const chunks of [[text], characters(text)]) {
        const { calls, text: shown, finish } = played(chunks);
        expect([calls, shown.trimEnd(), finish]).toEqual([[], text.trimEnd(), 'stop']);
      }
    });
  }
});

describe('an answer that ends behind an argument', () => {
  const strict: readonly Tool[] = [
    {
      type: 'function',
      name: 'run',
      schema: {
        type: 'object',
        properties: { cmd: { type: 'string' }, dir: { type: 'string' } },
        required: ['cmd', 'dir'],
      },
    },
  ];
  const OPEN = [
    '<invoke name="run"><parameter name="cmd">ls -la</parameter>',
    '<｜DSML｜tool_calls><｜DSML｜invoke name="run"><｜DSML｜parameter name="cmd" string="true">ls -la</｜DSML｜parameter></｜DSML｜inv',
    '<tool_call>run<arg_key>cmd</arg_key><arg_value>ls -la</arg_value>',
    '<tool_call>\n<function=run>\n<parameter=cmd>\nls -la\n</parameter>\n</func',
  ];
  for (const text of OPEN) {
    test(JSON.stringify(text), () => {
      for (const chunks of [[text], characters(text)]) {
        expect(played(chunks).calls).toEqual([CALL]);
        const cut = played(chunks, 'length');
        expect([cut.calls, cut.text, cut.finish]).toEqual([[], '', 'length']);
        expect(played(chunks, 'stop', strict).calls).toEqual([]);
        expect(played([...chunks, '<param']).calls).toEqual([]);
      }
    });
  }
});

test("Mistral's list without its last bracket is the calls that it holds, and half a call is none", () => {
  const text = '[TOOL_CALLS] [{"name": "run", "arguments": {"cmd": "ls -la"}}';
  const made = (said: string) =>
    play(eventsOf([{ text: characters(said) }]), { tools: TOOLS }).calls;
  expect(made(text)).toEqual([CALL]);
  for (let end = 20; end < text.length; end++) expect(made(text.slice(0, end))).toEqual([]);
});
