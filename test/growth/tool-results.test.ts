/** Work on tool results and on records in a model's text grows linearly with their size, whatever they contain. */

import { describe, test } from 'bun:test';
import type { StreamEvent } from '../../src/conversation/events.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { readEnvelope, shortText } from '../../src/features/tool-results/envelope.ts';
import { withoutResidue } from '../../src/features/tool-results/residue.ts';
import { residueInterceptor } from '../../src/features/tool-results/residue-interceptor.ts';
import { SHORT_RESULTS } from '../../src/features/tool-results/short-result-ledger.ts';
import { shortenResults } from '../../src/features/tool-results/shorten.ts';
import { memoryRoom } from '../support/entries.ts';
import { expectLinear } from '../support/growth.ts';

const RECORD = '{"version":"rcc.tool.v1","tool":{"name":"x"},"result":{"stdout":"a"}}';
const VERSION = '"version":"rcc.tool.v1"';

const BLANKS: Readonly<Record<string, (size: number) => string>> = {
  tabs: (size) => '\t'.repeat(size),
  'tabs and a word': (size) => `${'\t'.repeat(size)}x`,
  'tabs within words': (size) => `a${'\t'.repeat(size)}b`,
  'line breaks': (size) => `\n${'\n'.repeat(size)}x`,
  'blank lines with blanks': (size) => `x${' \n'.repeat(size / 2)}x`,
  'carriage returns': (size) => `x${'\r'.repeat(size)}x`,
  'short lines': (size) => 'a\n'.repeat(size / 2),
};

describe('envelopes', () => {
  const shapes: Readonly<Record<string, (text: string) => object>> = {
    'the output of a shell': (text) => ({ stdout: text, stderr: '', exit_code: 0 }),
    'a failure': (text) => ({ stdout: '', stderr: text, exit_code: 1 }),
    "Codex's record": (text) => ({ output: text, metadata: { exit_code: 0 } }),
    'a record in a record': (text) => ({
      version: 'rcc.tool.v1',
      result: { success: true, output: JSON.stringify({ stdout: text, exit_code: 0 }) },
    }),
    'an error': (text) => ({ success: false, error: { message: text } }),
  };
  for (const [what, shape] of Object.entries(shapes)) {
    for (const [how, blank] of Object.entries(BLANKS)) {
      test(`${what}: ${how}`, () =>
        expectLinear({
          name: `${what}: ${how}`,
          input: (size) => JSON.stringify(shape(blank(size))),
          run: (text) => {
            const outcome = readEnvelope(text);
            if (outcome !== undefined) shortText(outcome);
          },
        }));
    }
  }
});

const ECHOES: Readonly<Record<string, string>> = {
  braces: '{',
  'braces and quotes': '{"',
  'lists of braces': '[{',
  'heads of records': '{ "version"',
  'heads with an escaped quote': '{\\"tool\\":',
  executed: '"executed":{',
  'closing braces': '"executed":}',
  records: RECORD,
  'records in fences': `\`\`\`json\n${RECORD}\n\`\`\`\n`,
  'records and blanks': `${RECORD}   \n\n`,
  'begun records': '{"version":"rcc.tool.v1",',
  'marks without braces': `${VERSION},`,
  'marks behind closing braces': `${VERSION}}`,
  marks: 'rcc.tool.v1',
  'marks in strings': `"{${VERSION}`,
  fences: '```',
  'fences of records': '```json\n{"tool":',
  tildes: '~~~\n',
  backslashes: '\\',
  'escaped quotes': '\\"',
  quotes: '"result":"',
  'braces with blanks': '{          ',
};
const SHAPES: Readonly<Record<string, (size: number) => string>> = {
  ...Object.fromEntries(
    Object.entries(ECHOES).map(([name, piece]) => [
      name,
      (size: number) => piece.repeat(size / piece.length),
    ]),
  ),
  // An object is held at first: the work begins after that.
  'heads of tools': (size) => '{"tool":'.repeat((size + 256 * 1024) / 8),
  'records in records': (size) => `{"tool":`.repeat(size / 40) + `,${VERSION}}`.repeat(size / 40),
  'records in records, their marks first': (size) =>
    `{${VERSION},"tool":`.repeat(size / 40) + '}'.repeat(size / 40),
  'a record that is long': (size) => `{${VERSION},"result":{"stdout":"${'x{'.repeat(size / 2)}"}}`,
  'a record that never ends': (size) => `{${VERSION},"stdout":"${'}'.repeat(size)}`,
  'an object that never ends': (size) => `{"tool":"${'}'.repeat(size)}`,
  'whitespace in front of a record': (size) => `${' '.repeat(size)}${RECORD}`,
  'whitespace behind a brace': (size) => `{${' '.repeat(size)}"tool"`,
};

const answer = (deltas: Iterable<string>) => {
  const interceptor = residueInterceptor(new Notes());
  interceptor.event({ type: 'block-start', index: 0, head: { type: 'text' } });
  for (const text of deltas) interceptor.event({ type: 'delta', index: 0, text } as StreamEvent);
  interceptor.event({ type: 'block-stop', index: 0 });
  interceptor.end();
};

for (const [name, input] of Object.entries(SHAPES)) {
  describe(name, () => {
    test('records in the history take linear time', () =>
      expectLinear({ name, input, run: withoutResidue }));
    test('records in a whole reply take linear time', () =>
      expectLinear({ name, input, run: (text) => answer([text]) }));
    test('records in a stream of characters take linear time', () =>
      expectLinear({ name, input, run: (text) => answer(text), most: 512 * 1024 }));
  });
}

test('many results of one round are shortened in linear time', () =>
  expectLinear({
    name: 'results',
    input: (size) => {
      const ids = Array.from({ length: size / 100 }, (_, i) => `call_${i}`);
      const call = (id: string) =>
        ({
          type: 'tool-call',
          id,
          name: 'x',
          kind: 'function',
          input: '{}',
          by: 'client',
        }) as const;
      const result = (callId: string) => ({
        type: 'tool-result' as const,
        callId,
        content: [{ type: 'text' as const, text: 'x'.repeat(60) }],
        isError: false,
        by: 'client' as const,
      });
      return [
        { role: 'assistant' as const, blocks: ids.map(call) },
        { role: 'user' as const, blocks: ids.map(result) },
      ];
    },
    run: (turns) =>
      shortenResults(turns as never, {
        limit: 20,
        ledger: memoryRoom(SHORT_RESULTS),
        errorsAsText: true,
        notes: new Notes(),
      }),
  }));
