/** A quoted call never runs: every way to quote, in every grammar, however the reply is split. */

import { describe, expect, test } from 'bun:test';
import { type Call, GRAMMARS, WHOLE_REPLIES, type Write } from './grammars.ts';
import { characters, eventsOf, fn, type Part, play } from './transcript.ts';

const TOOLS = [fn('run', { cmd: { type: 'string' } })];
const EVIL: Call = { name: 'run', arguments: { cmd: 'rm -rf /' } };
const GOOD: Call = { name: 'run', arguments: { cmd: 'ls' } };

/** Ways to mention markup: the reply continues after it, or a call cannot appear there. */
const WAYS: Readonly<Record<string, (markup: string) => string>> = {
  'in a sentence': (m) => `The page says ${m} which is odd.`,
  'at the end of a sentence': (m) => `The page says ${m}.`,
  'at the end of a sentence, without a full stop': (m) => `The page says ${m}`,
  'in brackets': (m) => `Nothing else (${m}) was there.`,
  'behind a colon': (m) => `The page says: ${m} and then it ends.`,
  'glued to a word': (m) => `The page says${m}and ends.`,
  'at the beginning of a sentence': (m) => `${m} is what the page says.`,
  'on the first line': (m) => `${m}\nis what the page says.`,
  'in the first paragraph': (m) => `${m}\n\nThat is what the page says.`,
  'in the first paragraph, before talk of waiting': (m) =>
    `${m}\n\nThis is on the page; I will wait for your decision.`,
  'on a line of its own': (m) => `The page says:\n${m}\nI did not do that.`,
  'in a paragraph of its own': (m) => `The page says:\n\n${m}\n\nI did not do that.`,
  'in a paragraph of its own, before talk of waiting': (m) =>
    `The page says:\n\n${m}\n\nWaiting for the result.`,
  'far in front of the prose': (m) => `The page says:\n${m}\n\n\n \n\n\nI did not do that.`,
  'in front of a Chinese sentence': (m) => `页面上写着：\n${m}\n我没有执行它。`,
  'in a Chinese sentence': (m) => `页面上写着${m}，很奇怪。`,
  'in front of one character': (m) => `It says\n${m}\n.`,
  'in bold': (m) => `It says **${m}** there.`,
  'in bold at the end': (m) => `It says **${m}**`,
  'in indented code': (m) => `Like this:\n\n${indented(m)}\n\nThat is all.`,
  'in indented code at the end': (m) => `Like this:\n\n${indented(m)}`,
  'behind a tab': (m) => `Like this:\n\n\t${m}`,
  'in a list': (m) => `- one\n- ${m}\n- three`,
  'in a list with stars': (m) => `* ${m}\n* two`,
  'at the end of a list': (m) => `Found:\n- one\n- ${m}`,
  'in a numbered list': (m) => `1. ${m}\n2. two`,
  'at the end of a numbered list': (m) => `Found:\n1) one\n12) ${m}`,
  'in a table': (m) => `| a | b |\n|---|---|\n| ${m} | x |\n`,
  'in the last cell of a table': (m) => `| a | b |\n|---|---|\n| x | ${m}`,
  'in HTML': (m) => `<p>${m}</p>`,
  'in HTML on its own lines': (m) => `<pre>\n${m}\n</pre>`,
  'in a list of HTML': (m) => `<ul>\n<li>${m}</li>\n</ul>`,
  'in front of a fence': (m) => `Compare\n${m}\n\`\`\`\nwith this\n\`\`\``,
  'in front of a heading': (m) => `It says\n${m}\n\n## And then`,
  'in front of inline code': (m) => `${m}\n\`that\` is it`,
  'in front of a markup that is none': (m) => `${m}\n<b>x</b>`,
  'in a fence': (m) => `Like this:\n~~~\n${m}\n~~~\nIt is no call.`,
  'in a block quote': (m) => `You wrote:\n${m.replace(/^/gm, '> ')}\n\nIs that so?`,
  'in quotation marks': (m) => `He wrote '${m.replaceAll('\n', ' ')}' here.`,
  'twice, with words between': (m) => `First ${m}\nand then\n${m}\nand no more.`,
  'twice in a row': (m) => `It says:\n${m}\n${m}\nI did not do that.`,
};
const indented = (markup: string) => markup.replace(/^/gm, '    ');

function* arrivals(text: string): Generator<readonly string[]> {
  yield [text];
  yield characters(text);
  yield text.split(/(?<=[\s<>|｜"])/);
  for (let at = 1; at < text.length; at += 5) yield [text.slice(0, at), text.slice(at)];
}

/** R1 and JSON-style DSML share their markup with code samples; only the call's own grammar counts here. */
const skipped = (grammar: string, way: string) =>
  grammar === 'deepseek r1' && /fence|quotation|block quote/.test(way);

for (const [way, quote] of Object.entries(WAYS)) {
  describe(way, () => {
    for (const [name, write] of Object.entries({ ...GRAMMARS, ...WHOLE_REPLIES })) {
      if (skipped(name, way)) continue;
      test(name, () => {
        const text = quote(write([EVIL]));
        for (const chunks of arrivals(text)) {
          const played = play(eventsOf([{ text: chunks }]), { tools: TOOLS });
          expect([played.calls, played.text, played.finish]).toEqual([[], text, 'stop']);
        }
      });
    }
  });
}

/** Every grammar, with the three facts that decide how a reply is built from it. */
const each = (situation: string, check: (write: Write, name: string) => void) =>
  describe(situation, () => {
    for (const [name, write] of Object.entries(GRAMMARS)) test(name, () => check(write, name));
  });

const played = (parts: readonly Part[], playing: Parameters<typeof play>[1] = {}) =>
  play(eventsOf(parts), { tools: TOOLS, ...playing });

each('quoted first, called at the end: the last one is made', (write) => {
  const quoted = `The page says:\n${write([EVIL])}\nI do something else:\n`;
  for (const chunks of arrivals(quoted + write([GOOD]))) {
    const { calls, text, notes } = played([{ text: chunks }]);
    expect([calls, text]).toEqual([[GOOD], quoted.trimEnd()]);
    expect(notes).toContain('leaked_call_quoted');
    expect(notes).toContain('leaked_call_recovered');
  }
});

each('a call that thinking weighs and drops', (write) => {
  for (const chunks of arrivals(`The page says ${write([EVIL])}\nI will not do that.`)) {
    expect(played([{ reasoning: chunks }, { text: ['Done.'] }]).calls).toEqual([]);
  }
});

each('a call at the end of thinking, and then an answer', (write) => {
  const thought = `The page says:\n${write([EVIL])}`;
  for (const chunks of [[thought], characters(thought)]) {
    const { calls, text, reasoning, blocks } = played([
      { reasoning: chunks },
      { text: ['I ', 'did not.'] },
    ]);
    expect([calls, text, reasoning]).toEqual([[], 'I did not.', thought]);
    expect(blocks).toEqual(['reasoning', 'text']);
  }
});

each('a call at the end of a block of text, and then another block', (write) => {
  const first = `It says:\n${write([EVIL])}`;
  for (const chunks of [[first], characters(first)]) {
    const { calls, text } = played([{ text: chunks }, { text: ['\n', 'That is odd.'] }]);
    expect([calls, text]).toEqual([[], `${first}\nThat is odd.`]);
  }
});

each('a call at the end, and then a blank block: it is made', (write) => {
  const { calls, text } = played([{ text: [`I look:\n${write([GOOD])}`] }, { text: ['\n\n'] }]);
  expect([calls, text.trim()]).toEqual([[GOOD], 'I look:']);
});

each('a call at the end, and then a structured one: both are made', (write) => {
  const other = { call: 'run', args: ['{"cmd":"pwd"}'] };
  for (const chunks of [[write([GOOD])], characters(write([GOOD]))]) {
    const { calls } = played([{ text: ['I look:\n', ...chunks] }, other]);
    expect(calls).toEqual([{ name: 'run', arguments: { cmd: 'pwd' } }, GOOD]);
  }
});

each('a reply that begins with a call and then says that it waits: the call is made', (write) => {
  for (const message of ['Done, waiting for the result.', 'Let me wait for the output.']) {
    for (const chunks of arrivals(`${write([GOOD])}\n\n${message}`)) {
      const { calls, text } = played([{ text: chunks }]);
      expect([calls, text.trim()]).toEqual([[GOOD], message]);
    }
  }
});

const turnsOf = (result: string) =>
  [
    { role: 'user', blocks: [{ type: 'text', text: 'What does the page say?' }] },
    {
      role: 'assistant',
      blocks: [
        { type: 'tool-call', id: 'c', name: 'run', kind: 'function', input: '{}', by: 'client' },
      ],
    },
    {
      role: 'user',
      blocks: [
        {
          type: 'tool-result',
          callId: 'c',
          content: [{ type: 'text', text: result }],
          isError: false,
          by: 'client',
        },
      ],
    },
  ] as never;

const html = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

each('what a tool gave word for word is a quotation, even at the end of the reply', (write) => {
  const text = `The page says:\n${write([EVIL])}`;
  const page = `Welcome.\n\n${write([EVIL])}\n\nGoodbye.`;
  const results = [
    page,
    page.replaceAll('\n', '\r\n  '),
    JSON.stringify({ page }),
    JSON.stringify({ page: JSON.stringify({ page }) }),
    html(page),
  ];
  for (const result of results) {
    for (const chunks of [[text], characters(text)]) {
      const { calls, text: shown, notes } = played([{ text: chunks }], { turns: turnsOf(result) });
      expect([calls, shown]).toEqual([[], text]);
      expect(notes).toBe('leaked_call_quoted');
    }
  }
  // A second call in the same grammar is not a quotation.
  const { calls } = played([{ text: [`So:\n${write([GOOD])}`] }], { turns: turnsOf(page) });
  expect(calls).toEqual([GOOD]);
});

each('what the user wrote word for word is a quotation', (write) => {
  const text = write([EVIL]);
  const turns = [{ role: 'user', blocks: [{ type: 'text', text: `What is ${text}?` }] }] as const;
  expect(played([{ text: [text] }], { turns })).toMatchObject({ calls: [], text });
});

describe('markup without a call', () => {
  const STAYS: readonly string[] = [
    'The calls stand within <tool_call></tool_call> XML tags.',
    'Write them within <tool_call></tool_call>',
    'The pair\n<tool_call>\n</tool_call>\nis empty.',
    'The pair <｜DSML｜function_calls></｜DSML｜function_calls> is empty.',
    'A block ends with </｜DSML｜function_calls> and nothing else.',
    '</｜DSML｜function_calls> ends a block.',
    'The token <|tool_calls_section_end|> ends a section.',
    'A block opens with <｜DSML｜function_calls>',
    'It thinks in <|channel|>analysis<|message|> and says so.',
    'It ends with\n</think> on a line.',
  ];
  for (const text of STAYS) {
    test(text.slice(0, 60), () => {
      for (const chunks of arrivals(text)) {
        const { text: shown, reasoning, calls, notes } = played([{ text: chunks }]);
        expect([shown, reasoning, calls, notes]).toEqual([text, '', [], '']);
      }
    });
  }
});
