/** Text that mentions markup, or only looks like it, passes as unchanged events. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { characters, eventsOf, play } from './transcript.ts';

const PROSE: readonly string[] = [
  'The answer is 3 <',
  'a < b and c > d, so x << y and list[0] = {1: 2}.',
  'Use `<tool_call>` and `</tool_call>` around the JSON.',
  'The tag <tool_call> is what Hermes models write; they close it with </tool_call> afterwards.',
  'DSML stands for a markup language; its blocks open with <｜DSML｜function_calls> as you can read in the docs.',
  'In DSML, `<｜DSML｜invoke name="exec_command">` starts a call.',
  'Mistral puts [TOOL_CALLS] in front of its calls. Why?',
  'What does [TOOL_CALLS] mean, and what is <|python_tag|> for?',
  '<function>not a call</function> and <parameter name="x">html-like</parameter> in a doc.',
  'Array<string>, Map<K, V>, Promise<invoke>, std::function<void()>',
  'An XML file:\n<calls>\n  <call id="1"/>\n</calls>\nThat is all.',
  '<tool_call>\nis the tag that opens a call; JSON follows it.',
  '<tool_calls>\n  <tool_call_count>3</tool_call_count>\n</tool_calls>',
  'A WSDL has <invoke> tags, and so does BPEL: <invoke partnerLink="a"/>.',
  '{"name": "Alice", "arguments": [1, 2]}',
  '{"name": "exec_command", "description": "Runs a command"}',
  '{"name": "exec_command", "arguments": {"cmd": "pwd"}}\n\nis how a call would look.',
  '{"type": "function", "title": "a chart"}',
  '{"tool_calls": "none so far"}',
  '[{"name": "Bob"}, {"name": "Alice"}]',
  '[exec_command](docs/exec.md) is a link, [1] a note.',
  '[x] done\n[ ] open',
  '```json\n{"name":"exec_command","arguments":{"cmd":"rm -rf /"}}\n```',
  'Text\n\n    ```\n    <tool_call>{"name":"exec_command","arguments":{"cmd":"pwd"}}</tool_call>\n    ```\n',
  '1. Like this:\n   ```xml\n   <function_calls><invoke name="exec_command"></invoke></function_calls>\n   ```\n2. Next.',
  '````md\n```\n<tool_call>{"name":"exec_command","arguments":{}}</tool_call>\n```\n````\n',
  '> <tool_call>\n> {"name":"exec_command","arguments":{"cmd":"pwd"}}\n> </tool_call>\n\nYou pasted this.',
  "He said \"<tool_call>{'name': 'exec_command'}</tool_call>\" and left.",
  'The commentary to this film is good; a commentary to=nothing.',
  'assistant, assistants, analysis, commentary',
  'the </think> tag closes thinking, <think> opens it.',
  'I think <think> is odd.',
  'Wrap it in <think>...</think> tags.',
  'Between <think> and\nthe end: a</think>.',
  '   \n\n  ',
  '',
  'Ein Pfeil → und <3, 写代码 ｜ ok ▁',
  "cat <<'EOF'\n<tool_call>{}</tool_call>\nEOF",
  '<details><summary>More</summary>\n\n<table><tr><td>1</td></tr></table></details>',
  '<|',
  ']<',
  '[TOOL',
];

describe('prose', () => {
  for (const text of PROSE) {
    test(JSON.stringify(text).slice(0, 70), () => {
      for (const chunks of [[text], characters(text), text.split(/(?<=\s)/)]) {
        const events = eventsOf([{ text: chunks }]);
        const played = play(events);
        expect([played.text, played.calls]).toEqual([text, []]);
        expect(played.same).toBe(true);
        expect(play(eventsOf([{ reasoning: chunks }])).same).toBe(true);
      }
    });
  }

  test('text of any suspicious pieces passes unchanged, or a note names the removed part', () => {
    const piece = fc.constantFrom(
      '<', '>', '</', '<|', '|>', '｜', 'DSML', 'tool_call', 'tool_calls', 'function_calls', 'invoke',
      ' name="', '"', '[', ']', '[TOOL_CALLS]', '{', '}', '{"name": "', 'exec_command', '\n', ' ', '`',
      '```', '~~~', 'arg_key', 'arg_value', '<think>', '</think>', ']<]minimax[>[', '<|open|>', '<|sep|>',
      'commentary to=', '<<EOF', 'text', '=', '(', ')', ';', '\\n', '<|channel|>', '<|message|>', "'",
    ); // biome-ignore format: a list of words
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 25 }), fc.boolean(), (pieces, inReasoning) => {
        const events = eventsOf([inReasoning ? { reasoning: pieces } : { text: pieces }]);
        const whole = [pieces.join('')];
        const once = play(eventsOf([inReasoning ? { reasoning: whole } : { text: whole }]));
        const played = play(events);
        expect(played.calls).toEqual(once.calls);
        if (!played.same) return;
        // A whole call that is only quoted is reported.
        expect(played.notes.replace(/leaked_call_quoted(?:=\d+)?/, '')).toBe('');
        expect(played.text + played.reasoning).toBe(whole[0]!);
      }),
      { numRuns: 3000 },
    );
  });
});
