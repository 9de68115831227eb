/** Work on answers that may leak calls grows linearly with the answer, whatever its content and chunks. */

import { describe, test } from 'bun:test';
import type { Tool } from '../../src/conversation/types.ts';
import { EVERYTHING } from '../../src/features/leaked-calls/grammars.ts';
import { FAMILIES } from '../../src/features/leaked-calls/index.ts';
import { NativeCall } from '../../src/features/leaked-calls/native-calls.ts';
import { quotationsIn } from '../../src/features/leaked-calls/scan/quotations.ts';
import { toolIndex } from '../../src/features/leaked-calls/tool-index.ts';
import {
  pythonCalls,
  pythonLiteral,
} from '../../src/features/leaked-calls/values/python-literal.ts';
import { Repairs } from '../../src/features/leaked-calls/values/repair-json.ts';
import { eventsOf, fn, play } from '../features/leaked-calls/transcript.ts';
import { expectLinear } from '../support/growth.ts';

const TOOLS: readonly Tool[] = [
  fn('run', {
    cmd: { type: 'string' },
    n: { type: 'number' },
    i: { type: 'integer' },
    any: { anyOf: [{ type: 'number' }, { type: 'object' }] },
  }),
];
const HERMES = '<tool_call>{"name":"run","arguments":{"cmd":"x"}}</tool_call>';
const GLM = '<tool_call>run<arg_key>cmd</arg_key><arg_value>x</arg_value></tool_call>';
const DSML =
  '<｜DSML｜invoke name="run"><｜DSML｜parameter name="cmd">x</｜DSML｜parameter></｜DSML｜invoke>';

/** Pieces that fill a whole reply. */
const PIECES: readonly string[] = [
  '{', '{"', '[{', '[', ']', ']<]minimax[>[', ']<]minimax[>[<a>', '<', '</', '<|', '<｜', '<think>', '</think>', ' </think>',
  '<tool_call>', '</tool_call>', '<tool_call></tool_call>', '<tool_call>{', '<tool_call>run', '<function=', '<function=run>',
  '<invoke ', '<invoke name="', '<invoke name="run">', '<parameter name="cmd">', '<function_calls>', '<calls>',
  '<｜DSML｜function_calls>', '<｜DSML｜', '</｜DSML｜invoke>', '<｜tool▁calls▁begin｜>', '<|tool_call_begin|>', '<|tool_calls_section_end|>',
  '<|open|>tools', '<|open|>tools<|sep|>', '<|close|>tools<|sep|>', '<|channel|>', '<|channel|>analysis<|message|>', '<|start|>assistant', '<|end|>',
  '<|python_tag|>', '<|python_tag|>{', '<|python_tag|>[run(', '<|python_start|>[', '[TOOL_CALLS]', '[TOOL_CALLS][{', '[TOOL_CALLS]run[ARGS]{', '[ARGS]',
  'commentary to=', '\ncommentary to=functions.run json{', '{"tool_calls":[{', '{"name":"', '{"name":"run"', '{"version":"rcc.tool.v1"',
  `${HERMES}\n`, HERMES, `${HERMES} x\n`, GLM, `${GLM}x\n`, DSML, `${DSML}\n\n`, `\n- ${HERMES}`, `\n    ${HERMES}`, `the ${HERMES}`,
  '<tool_call>{"name":"gone","arguments":{}}</tool_call>', '<arg_key>', '<arg_value>', '`', '```\n', '~', '"', '\\', '\n', ' ', '\t', '<<EOF\n', '<< ', '1. ', '- ', '| ', '>', '\n> ',
  '=', '"\n', '{"a":"<|python_tag|>', '◁think▷', '(', '))', ';', 'a', '｜', '▁',
]; // biome-ignore format: a list of pieces

/** Openers that are followed by endless copies of one piece. */
const OPENERS: readonly string[] = [
  '<tool_call>', '<tool_call>run', '<tool_call>run<arg_key>', '<tool_call>run<arg_key>cmd</arg_key><arg_value>',
  '<tool_call>{"name":"run","arguments":{"cmd":"', '<tool_call>{"name":"run","arguments":{"n":', '<tool_call>{"name": "run", "arguments": {',
  '<tool_call><function=run><parameter=cmd>', '<tool_call><function=run><parameter=n>', '<invoke name="run">', '<invoke name="run"><parameter name="cmd">',
  '<｜DSML｜invoke name="run"><｜DSML｜parameter name="cmd">', '<｜DSML｜invoke name="run"><｜DSML｜parameter name="cmd">x</parameter>',
  '<｜DSML｜function_calls>', '[TOOL_CALLS]', '[TOOL_CALLS]run[ARGS]', '[TOOL_CALLS]run[CALL_ID]', '[{"name":"run","arguments":', '[run(', '{"tool_calls":[{',
  '<|python_tag|>', '<|channel|>commentary to=functions.run<|message|>', '<|channel|>', ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="run">',
  ']<]minimax[>[<invoke name="run">]<]minimax[>[<cmd>', '<|open|>call tool="run"<|sep|><|open|>argument key="cmd" type="string"<|sep|>', '<think>', '<|tool_call_begin|>run:0<|tool_call_argument_begin|>',
  '{"version":"rcc.tool.v1"', `${HERMES}`, `${HERMES}\n\n`, `\n`, 'a ',
]; // biome-ignore format: a list of openers
const BEHIND: readonly string[] = [
  '{', '{"a":', '[', '"', '" ', '\\', '\\"', '\'', '1', '0', '-', '1.', ' ', '\t', '\n', '<', '</', '<a>', '</parameter> ', ']', ']<', '`', '``` ', 'a', 'a ', ',', ';', ':', '(', 'run(', '\\n',
  '</arg_value>', '</arg_key>', '<tool_call>', '<｜DSML｜', '<|', '<|sep|>', ']<]minimax[>[', ']<]minimax[>[<a>', 'é', '{"a":1,}', "'a':", 'True,',
]; // biome-ignore format: a list of pieces

const PROFILE = { leakFamilies: FAMILIES };
const run = (text: string, chunks: readonly string[] = [text]) =>
  play(eventsOf([{ text: chunks }]), { tools: TOOLS, profile: PROFILE });
const slowly = (text: string) => run(text, [...text]);

const WHOLE = 512 * 1024;
const STREAMED = 64 * 1024;
const repeated = (piece: string) => (size: number) => piece.repeat(Math.ceil(size / piece.length));

describe('replies of one repeated piece', () => {
  PIECES.forEach((piece, i) => {
    const name = JSON.stringify(piece);
    const input = repeated(piece);
    test(`${name}, whole`, () => expectLinear({ name, input, run, most: WHOLE }));
    if (i % 3 > 0) return;
    test(`${name}, a character at a time`, () =>
      expectLinear({ name, input, run: slowly, most: STREAMED }));
  });
});

/** Every opener with some of the pieces: all pairs would take minutes. */
const pairs = OPENERS.flatMap((opener, i) =>
  BEHIND.flatMap((piece, j) => ((i + j) % 41 === 0 ? [[opener, piece] as const] : [])),
);
describe('an opener followed by repeated pieces', () => {
  for (const [opener, piece] of pairs) {
    const name = JSON.stringify(opener + piece);
    const input = (size: number) => opener + repeated(piece)(size);
    test(`${name}, whole`, () => expectLinear({ name, input, run, most: WHOLE }));
    test(`${name}, a character at a time`, () =>
      expectLinear({ name, input, run: slowly, most: STREAMED }));
  }
});

describe('arguments of leaked calls', () => {
  const glm = (value: string, key = 'n') =>
    `<tool_call>run<arg_key>${key}</arg_key><arg_value>${value}</arg_value></tool_call>`;
  const VALUES: Readonly<Record<string, (size: number) => string>> = {
    digits: repeated('1'),
    'digits and a letter': (size) => `${'1'.repeat(size)}x`,
    zeros: (size) => `${'0'.repeat(size)}x`,
    'digits and dots': repeated('1.'),
    'an exponent': (size) => `1e${'1'.repeat(size)}x`,
    brackets: repeated('['),
    'Python brackets': (size) => `[${'('.repeat(size)}`,
    quotes: repeated('" '),
    'single quotes': (size) => `{${"'a' ".repeat(size / 4)}`,
    blanks: (size) => `${' '.repeat(size)}x`,
  };
  for (const [what, value] of Object.entries(VALUES)) {
    for (const key of ['n', 'any']) {
      test(`${what} for ${key}`, () =>
        expectLinear({ name: what, input: (size) => glm(value(size), key), run, most: WHOLE }));
    }
    test(`${what} in Python`, () =>
      expectLinear({ name: what, input: value, run: pythonLiteral, most: WHOLE }));
    test(`${what} in a repair`, () =>
      expectLinear({
        name: what,
        input: (size) => `{"a":${value(size)}}`,
        run: (text) => new Repairs().text(text),
        most: WHOLE,
      }));
  }

  test('schemas that refer to each other take linear time', () =>
    expectLinear({
      name: 'references',
      input: (size) => {
        const anyOf = Array.from({ length: size / 40 }, () => ({ $ref: '#/properties/a' }));
        return [fn('run', { a: { anyOf }, n: { type: 'number' } })];
      },
      run: (tools) => play(eventsOf([{ text: [glm('5', 'a')] }]), { tools }),
    }));

  test('many repairs in one reply take linear time', () =>
    expectLinear({
      name: 'repairs',
      input: repeated(
        `<tool_call>{"name":"run","arguments":{"cmd":${'" '.repeat(4000)}}}</tool_call>`,
      ),
      run,
      most: 4 * 1024 * 1024,
    }));
});

describe('tools, structured calls, quotations', () => {
  const named = (size: number) => Array.from({ length: size / 100 }, (_, i) => fn(`tool_${i}`));
  test('ten thousand tools take linear time', () =>
    expectLinear({
      name: 'tools',
      input: named,
      run: (tools) => toolIndex(tools).resolve('functions.tool_7:3'),
      most: 1024 * 1024,
    }));

  for (const piece of ['a', '.', ':', '1', ':1', '"', ' ', 'functions.', '<', '|']) {
    test(`a name of ${JSON.stringify(piece)}`, () => {
      const index = toolIndex(TOOLS);
      return expectLinear({
        name: piece,
        input: repeated(piece),
        run: (name) => index.resolve(name),
      });
    });
    test(`a structured call whose name and arguments are ${JSON.stringify(piece)}`, () =>
      expectLinear({
        name: piece,
        input: repeated(piece),
        run: (name) => {
          const head = {
            type: 'tool-call',
            id: 'a',
            name,
            kind: 'function',
            by: 'client',
          } as const;
          const call = new NativeCall(head, toolIndex(TOOLS), EVERYTHING, new Repairs());
          call.push('{"a":');
          call.push(name);
          return call.end();
        },
      }));
  }

  test('many arguments in Python take linear time', () =>
    expectLinear({
      name: 'python',
      input: (size) => `[${'run(a=1, b="x"), '.repeat(size / 17)}]`,
      run: pythonCalls,
    }));

  for (const piece of [
    'tool_call',
    `${HERMES}`,
    HERMES.slice(0, -20),
    '&lt;tool_call&gt;',
    '\\u003ctool_call',
    'tool_call>{"name":',
  ]) {
    test(`results of ${JSON.stringify(piece)}`, () =>
      expectLinear({
        name: piece,
        input: (size) => [
          {
            role: 'user' as const,
            blocks: [{ type: 'text' as const, text: repeated(piece)(size) }],
          },
        ],
        run: (turns) => quotationsIn(turns)(`${HERMES.slice(0, -20)}y"}}</tool_call>`),
      }));
  }
});
