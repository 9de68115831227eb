/** Every grammar in every situation: single and repeated calls, hostile values, surrounding prose, cuts, quotations, unknown tools. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Tool } from '../../../src/conversation/types.ts';
import { type Call, GRAMMARS, PYTHONIC, WHOLE_REPLIES, type Write } from './grammars.ts';
import { characters, eventsOf, fn, play } from './transcript.ts';

const TOOLS: readonly Tool[] = [
  fn('run', {
    cmd: { type: 'string' },
    timeout: { type: 'integer' },
    login: { type: 'boolean' },
    ratio: { type: 'number' },
    env: { type: 'object', properties: { A: { type: 'string' }, n: { type: 'integer' } } },
    argv: { type: 'array', items: { type: 'string' } },
    limit: { type: ['integer', 'null'] },
  }),
  fn('mcp__files__read-file', { path: { type: 'string' } }),
  fn('nothing'),
];

const LS: Call = { name: 'run', arguments: { cmd: 'ls -la' } };
const TYPED: Call = {
  name: 'run',
  arguments: {
    cmd: '00123',
    timeout: 5000,
    login: false,
    ratio: 0.5,
    env: { A: 'x y', n: 1 },
    argv: ['a', 'b c'],
    limit: null,
  },
};
const HOSTILE: Call = {
  name: 'run',
  arguments: {
    cmd: 'cat <<\'EOF\' > /tmp/a.html\n<div class="x">a && b < c > d</div> `tick` [x] {y} 写代码\nEOF\necho "done" 2>/dev/null || true',
  },
};
const READ: Call = { name: 'mcp__files__read-file', arguments: { path: 'src/a.ts' } };
const NOTHING: Call = { name: 'nothing', arguments: {} };

/** The ways in which a text is split. */
function* arrivals(text: string): Generator<readonly [string, readonly string[]]> {
  yield ['whole', [text]];
  yield ['characters', characters(text)];
  yield ['words', text.split(/(?<=[\s<>|｜"])/)];
  for (let at = 1; at < text.length; at += 3) {
    yield [`cut at ${at}`, [text.slice(0, at), text.slice(at)]];
  }
}

const playText = (chunks: readonly string[]) =>
  play(eventsOf([{ text: chunks }]), { tools: TOOLS });

function expectCalls(text: string, calls: readonly Call[], content: string): void {
  for (const [how, chunks] of arrivals(text)) {
    const played = playText(chunks);
    expect({ how, calls: played.calls, text: played.text.trim() }).toEqual({
      how,
      calls: [...calls],
      text: content,
    });
    expect(played.finish).toBe('tool-calls');
  }
}

const every = (
  situation: string,
  table: Readonly<Record<string, Write>>,
  check: (write: Write, name: string) => void,
) =>
  describe(situation, () => {
    for (const [name, write] of Object.entries(table)) test(name, () => check(write, name));
  });

every('one call', GRAMMARS, (write) => expectCalls(write([LS]), [LS], ''));
every('one call that is the whole reply', WHOLE_REPLIES, (write) =>
  expectCalls(write([LS]), [LS], ''),
);
every('several calls', GRAMMARS, (write) => {
  expectCalls(write([LS, READ, NOTHING]), [LS, READ, NOTHING], '');
});
every('several calls that are the whole reply', WHOLE_REPLIES, (write) => {
  // A Python name holds no hyphen.
  expectCalls(write([LS, TYPED]), [LS, TYPED], '');
});
every('types', GRAMMARS, (write) => expectCalls(write([TYPED]), [TYPED], ''));
every('hostile values', GRAMMARS, (write) => expectCalls(write([HOSTILE]), [HOSTILE], ''));
every('no arguments', GRAMMARS, (write) => expectCalls(write([NOTHING]), [NOTHING], ''));
every('prose in front', GRAMMARS, (write) => {
  expectCalls(`I will look first.\n\n${write([LS])}`, [LS], 'I will look first.');
});
every('prose behind', GRAMMARS, (write) => {
  expectCalls(`${write([LS])}\n\nWaiting.`, [LS], 'Waiting.');
});
every('in the reasoning', GRAMMARS, (write) => {
  const text = `I should call it.\n\n${write([LS])}`;
  for (const [, chunks] of arrivals(text)) {
    const played = play(eventsOf([{ reasoning: chunks }]), { tools: TOOLS });
    expect([played.calls, played.reasoning.trim()]).toEqual([[LS], 'I should call it.']);
    expect(played.blocks).toEqual(['reasoning', 'tool-call']);
  }
});

every('cut off anywhere', GRAMMARS, (write) => {
  const text = `Looking.\n\n${write([{ name: 'run', arguments: { cmd: 'ls -la' } }])}`;
  for (let end = 12; end < text.length; end++) {
    const played = playText(characters(text.slice(0, end)));
    // A call never gets other arguments than those in the text.
    expect(played.calls.length === 0 || Bun.deepEquals(played.calls, [LS])).toBe(true);
  }
});

const SHOWN =
  /DSML|<\/?(?:invoke|function_calls|tool_calls?|function|parameter|arg_)|<[|｜]\w|\]<\]|TOOL_|tool_calls"/;
every('cut off within a value: no call, no markup shown', GRAMMARS, (write) => {
  const whole = write([{ name: 'run', arguments: { cmd: 'src/server/index.ts' } }]);
  const text = `Looking.\n\n${whole.slice(0, whole.indexOf('server') + 3)}`;
  for (const [, chunks] of arrivals(text)) {
    const played = playText(chunks);
    expect([played.calls, played.text.trim(), played.finish]).toEqual([[], 'Looking.', 'length']);
  }
});

every(
  'a tool that the request does not have: no call, no markup shown',
  GRAMMARS,
  (write, name) => {
    // Other XML has `<function name="…">`, so only a tool's name proves it.
    if (name.startsWith('minicpm5')) return;
    const text = `See:\n${write([{ name: 'not_a_tool', arguments: { x: '1' } }])}`;
    for (const [, chunks] of arrivals(text)) {
      const played = playText(chunks);
      expect(played.calls).toEqual([]);
      expect(played.text).not.toMatch(SHOWN);
      expect(played.finish).toBe('stop');
    }
  },
);

const QUOTES: Readonly<Record<string, (text: string) => string>> = {
  'in a fence': (text) => `Like this:\n\n\`\`\`text\n${text}\n\`\`\`\n\nIt is no call.`,
  'in a fence of tildes': (text) => `Like this:\n~~~\n${text}\n~~~\nIt is no call.`,
  'in a fence that is never closed': (text) => `Like this:\n\`\`\`\n${text}`,
  'in a block quote': (text) => `You wrote:\n${text.replace(/^/gm, '> ')}\n\nIs that so?`,
  'in a heredoc': (text) => `cat > a <<'EOF'\n${text}\nEOF\n`,
};
for (const [where, quote] of Object.entries(QUOTES)) {
  every(`${where}: nothing changes`, GRAMMARS, (write, name) => {
    // R1 writes its own fence, which ends the surrounding one.
    if (name === 'deepseek r1' && where.includes('fence') && !where.includes('tildes')) return;
    const text = quote(write([LS]));
    for (const [how, chunks] of arrivals(text)) {
      expect([how, playText(chunks).same]).toEqual([how, true]);
    }
  });
}

test('markup in inline code and in quotation marks stays unchanged', () => {
  for (const write of Object.values(GRAMMARS)) {
    const line = write([LS]).replaceAll('\n', ' ').replaceAll('`', '');
    for (const text of [`Use \`${line}\` here.`, `He wrote '${line}' here.`]) {
      for (const chunks of [[text], characters(text)]) {
        expect([text, playText(chunks).same]).toEqual([text, true]);
      }
    }
  }
});

every('calls whose names are Python’s', PYTHONIC, (write) => {
  const text = write([LS, TYPED, NOTHING]);
  expectCalls(text, [LS, TYPED, NOTHING], '');
  expectCalls(`I will look first.\n\n${text}`, [LS, TYPED, NOTHING], 'I will look first.');
});

test('words that LFM writes right behind its calls are no reason to take those for a quotation', () => {
  const text = `${PYTHONIC['lfm 2']!([LS, NOTHING])}Checking the files, then the rest.`;
  expectCalls(text, [LS, NOTHING], 'Checking the files, then the rest.');
});

test('a tag of HTML that MiniCPM has too ends no argument of others', () => {
  const cmd = '<object><param name="a" value="b"></param><param name="c"></param></object>';
  const call: Call = { name: 'run', arguments: { cmd } };
  for (const name of ['qwen', 'anthropic', 'glm 4.7', 'dsml v4']) {
    expectCalls(GRAMMARS[name]!([call]), [call], '');
  }
});

test('any two calls in any grammar, cut anywhere', () => {
  const text = fc
    .string({ unit: 'grapheme', maxLength: 30 })
    .filter((s) => !/[<>|｜[\]]/.test(s) && s === s.trim() && s !== '');
  const call = fc.record({
    name: fc.constant('run'),
    arguments: fc.record({ cmd: text, timeout: fc.integer() }),
  });
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.keys(GRAMMARS)),
      fc.array(call, { minLength: 1, maxLength: 2 }),
      fc.array(fc.nat({ max: 400 }), { maxLength: 6 }),
      (name, calls, cuts) => {
        const whole = `Now.\n${GRAMMARS[name]!(calls)}`;
        const at = [...new Set(cuts.map((cut) => cut % whole.length))].sort((a, b) => a - b);
        const chunks = [0, ...at].map((from, i) => whole.slice(from, at[i] ?? whole.length));
        const played = playText(chunks);
        expect([name, played.calls]).toEqual([name, calls]);
        expect(played.text).toBe('Now.');
      },
    ),
    { numRuns: 300 },
  );
});

describe('Gemma, whose marks have a bar on one side', () => {
  const call = (text: string) => `<|tool_call>call:${text}`;
  const text = (value: string) => `<|"|>${value}<|"|>`;
  test.each<[string, string, Call[]]>([
    ['without the mark at the end', call(`run{cmd:${text('ls -la')}}`), [LS]],
    ['in round brackets', `${call(`run(cmd: ${text('ls -la')})`)}<tool_call|>`, [LS]],
    ['with quotes of JSON', `${call('run{"cmd": "ls -la"}')}<tool_call|>`, [LS]],
    ['without arguments', `${call('nothing{}')}<tool_call|>`, [NOTHING]],
    [
      'before the mark of results',
      `${call(`run{cmd:${text('ls -la')}}`)}<tool_call|><|tool_response>`,
      [LS],
    ],
    [
      'with brackets and marks of others in a text',
      `${call(`run{cmd:${text('a } "b" [c] </tool_call> \\ <|im_end|>')}}`)}<tool_call|>`,
      [{ name: 'run', arguments: { cmd: 'a } "b" [c] </tool_call> \\ <|im_end|>' } }],
    ],
  ])('%s', (_, written, calls) => expectCalls(`Looking.\n${written}`, calls, 'Looking.'));

  test.each([`call:run{cmd:${text('ls')}}`, 'The mark <|tool_call> begins a call.'])(
    '%s stays text',
    (written) => {
      const played = playText([written]);
      expect([played.calls, played.text]).toEqual([[], written]);
    },
  );
});
