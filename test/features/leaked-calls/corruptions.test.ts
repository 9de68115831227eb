/** Malformed markup: certain calls are recovered, uncertain ones are removed, and no markup stays visible. */

import { describe, expect, test } from 'bun:test';
import { FAMILIES } from '../../../src/features/leaked-calls/index.ts';
import { characters, eventsOf, type Playing, play, TOOLS } from './transcript.ts';

/** Plays the reply whole and character by character; both must give the same result. */
function playedBothWays(text: string, playing: Playing = {}) {
  const whole = play(eventsOf([{ text: [text] }]), playing);
  const slowly = play(eventsOf([{ text: characters(text) }]), playing);
  const view = ({ calls, text: shown, reasoning, finish, reports }: typeof whole) => ({
    calls,
    text: shown.trim(),
    reasoning: reasoning.trim(),
    finish,
    reports,
  });
  expect(view(slowly)).toEqual(view(whole));
  return view(whole);
}

const PWD = { name: 'exec_command', arguments: { cmd: 'pwd' } };
const D = '｜DSML｜';

describe('recovered', () => {
  const recovered: Readonly<Record<string, string>> = {
    'marked closers on plain openers': `<function_calls><invoke name="exec_command"><parameter name="cmd" string="true">pwd</｜｜DSML｜｜parameter></invoke></function_calls>`,
    'plain closers on marked openers': `<${D}tool_calls><${D}invoke name="exec_command"><${D}parameter name="cmd" string="true">pwd</parameter></invoke></tool_calls>`,
    'a function with its name in a tag': `<${D}tool_calls><${D}function><name>exec_command</name><${D}parameter name="cmd" string="true">pwd</${D}parameter></${D}function></${D}tool_calls>`,
    'a bare block tag around marked calls': `< calls>\n<${D} invoke name="exec_command">\n<${D} parameter name="cmd" string="true">pwd</${D} parameter>\n</${D} invoke>\n</ calls>`,
    'a parameter that is not closed before the next': `<${D}tool_calls><${D}invoke name="exec_command"><${D}parameter name="cmd" string="true">pwd<${D}parameter name="timeout_ms" string="false">5</${D}parameter></${D}invoke></${D}tool_calls>`,
    'a block that closes within its call': `<${D}tool_calls><${D}invoke name="exec_command"><${D}parameter name="cmd" string="true">pwd</${D}parameter></${D}tool_calls>`,
    'a wrapper of arguments': `<${D}tool_calls><${D}invoke name="exec_command"><${D}parameter name="input" string="false">{"cmd":"pwd"}</${D}parameter></${D}invoke></${D}tool_calls>`,
    'a tool call where the first key belongs (GLM)': `<tool_call>exec_command<tool_call>cmd</arg_key><arg_value>pwd</arg_value></tool_call>`,
    'a value whose key is not closed (GLM)': `<tool_call>exec_command<arg_key>cmd<arg_value>pwd</arg_value></tool_call>`,
    'a value that is not closed (GLM)': `<tool_call>exec_command<arg_key>cmd</arg_key><arg_value>pwd</tool_call>`,
    'a python call (GLM)': `<tool_call>exec_command({"cmd": "pwd"})</tool_call>`,
    'no closer at the end (Hermes)': `<tool_call>\n{"name": "exec_command", "arguments": {"cmd": "pwd"}}`,
    'python in place of JSON (Hermes)': `<tool_call>\n{'name': 'exec_command', 'arguments': {'cmd': 'pwd'}}\n</tool_call>`,
    'a trailing comma (Hermes)': `<tool_call>\n{"name": "exec_command", "arguments": {"cmd": "pwd",}}\n</tool_call>`,
    'a brace too many (Hermes)': `<tool_call>\n{"name": "exec_command", "arguments": {"cmd": "pwd"}}}\n</tool_call>`,
    'a brace too few (Hermes)': `<tool_call>\n{"name": "exec_command", "arguments": {"cmd": "pwd"}\n</tool_call>`,
    'a brace too few (Kimi)': `<|tool_calls_section_begin|><|tool_call_begin|>functions.exec_command:0<|tool_call_argument_begin|>{"cmd": "pwd"<|tool_call_end|><|tool_calls_section_end|>`,
    'no closer of the parameter (Qwen)': `<tool_call>\n<function=exec_command>\n<parameter=cmd>\npwd\n</function>\n</tool_call>`,
    'quotes in the tag (Qwen)': `<function="exec_command">\n<parameter="cmd">\npwd\n</parameter>\n</function>`,
    'glued to the sentence (Kimi)': `<|tool_calls_section_begin|><|tool_call_begin|>functions.exec_command:12<|tool_call_argument_begin|> {"cmd": "pwd"} <|tool_call_end|><|tool_calls_section_end|><|im_end|>`,
    'quotes of other kinds (M2)': `<minimax:tool_call>\n<invoke name='exec_command'>\n<parameter name=cmd> pwd </parameter>\n</invoke>\n</minimax:tool_call>`,
    'several calls in a wrapper tool': `<tool_call>{"name": "multi_tool_use.parallel", "arguments": {"tool_uses": [{"recipient_name": "functions.exec_command", "parameters": {"cmd": "pwd"}}]}}</tool_call>`,
  };
  for (const [name, text] of Object.entries(recovered)) {
    test(name, () => {
      const extra = text.includes('timeout_ms') ? { timeout_ms: 5 } : {};
      const { calls, text: shown, finish } = playedBothWays(`Now.${text}`);
      expect(calls).toEqual([{ name: PWD.name, arguments: { ...PWD.arguments, ...extra } }]);
      expect([shown, finish]).toEqual(['Now.', 'tool-calls']);
    });
  }
});

describe('DSML marks broken in each tag', () => {
  const OPENERS = ['<｜DSML｜', '<', '<｜｜DSML｜｜', '<DSML｜', '<｜DSML', '<|DSML|'];
  const CLOSERS = [
    ...[
      '</｜DSML｜',
      '</｜｜DSML｜｜',
      '</DSML｜',
      '</｜DSML',
      '<｜/DSML｜',
      '<｜｜/DSML｜｜',
      '</｜DSML|',
    ],
    ...[
      '</ ｜DSML｜',
      '< /｜DSML｜',
      '</｜DSML｜ ',
      '</｜DSML｜\n',
      '</｜ DSML ｜',
      '</DSML|',
      '</',
    ],
  ];
  for (const open of OPENERS) {
    test(JSON.stringify(open), () => {
      for (const first of CLOSERS) {
        for (const last of CLOSERS) {
          const text = `${open}tool_calls>\n${open}invoke name="exec_command">\n${open}parameter name="cmd" string="true">ls -la${first}parameter>\n${open}parameter name="timeout_ms">5${last}parameter>\n${first}invoke>\n${last}tool_calls>`;
          const { calls, text: shown } = playedBothWays(`Now.\n${text}`);
          const wanted = { name: 'exec_command', arguments: { cmd: 'ls -la', timeout_ms: 5 } };
          expect([first, last, calls, shown]).toEqual([first, last, [wanted], 'Now.']);
        }
      }
    });
  }
});

test('a missing brace does not swallow the next call', () => {
  const first = '<tool_call>\n{"name": "exec_command", "arguments": {"cmd": "pwd"}\n</tool_call>';
  const second = '<tool_call>\n{"name": "list_mailboxes", "arguments": {}}\n</tool_call>';
  const { calls, text } = playedBothWays(`So.\n${first}\n${second}\n`);
  expect([calls, text]).toEqual([[PWD, { name: 'list_mailboxes', arguments: {} }], 'So.']);
});

describe('removed, never called', () => {
  const removed: Readonly<Record<string, string>> = {
    'two arguments that ran into each other (GLM)': `<tool_call>exec_command<arg_key>cmd":"pwd"}<tool_call>read_file<arg_key>path":"a"}</tool_call>`,
    'a key in a value (GLM)': `<tool_call>exec_command<arg_key>cmd</arg_key><arg_value>pwd<arg_key</arg_value></tool_call>`,
    'a lone opener at the end': `<${D}function_calls`,
    'a whole lone opener at the end': `<${D}function_calls>`,
    'a lone closer': `</${D}function_calls>`,
    'a lone closer (Kimi)': `<|tool_calls_section_end|>`,
    'an invoke without a name': `<${D}function_calls><${D}invoke></${D}invoke></${D}function_calls>`,
    'key and value in one (Qwen)': `<tool_call>\n<function=exec_command>\n<parameter=cmd=create</parameter>\n</function>\n</tool_call>`,
    'words where a name belongs': '<tool_call>list mailboxes please</tool_call>',
    'words where calls belong': '<function_calls>\nexec_command pwd\n</function_calls>',
    'a half executed result': `{"version": "rcc.tool.v1", "tool": {"name": "exec_command", "call_id": "c"}, "executed": {"comm`,
  };
  for (const [name, text] of Object.entries(removed)) {
    test(name, () => {
      const { calls, text: shown, reports } = playedBothWays(`Now.\n${text}`);
      expect([calls, shown]).toEqual([[], 'Now.']);
      expect(reports.join()).toContain('removed');
    });
  }

  test('a value that still holds argument tags is not passed on', () => {
    const text = `<tool_call>exec_command<arg_key>cmd</arg_key><arg_value>ls</arg_value x><arg_key>a</arg_key><arg_value>b</arg_value></tool_call>`;
    expect(
      playedBothWays(text).calls.every(
        ({ arguments: args }) => !JSON.stringify(args).includes('arg_'),
      ),
    ).toBe(true);
  });
});

describe('channels', () => {
  test('Harmony: thinking, a preamble, the answer', () => {
    const text =
      '<|channel|>analysis<|message|>Think.<|end|><|start|>assistant<|channel|>commentary<|message|>First.<|end|><|start|>assistant<|channel|>final<|message|>Done.<|return|>';
    const { text: shown, reasoning, calls } = playedBothWays(text);
    expect([reasoning, calls]).toEqual(['Think.', []]);
    expect(shown.replace(/\s/g, '')).toBe('First.Done.');
  });

  test('Kimi K3: thinking and the answer', () => {
    const text =
      '<|open|>think<|sep|>Think.<|close|>think<|sep|><|open|>response<|sep|>Done.<|close|>response<|sep|><|close|>message<|sep|>';
    const { text: shown, reasoning } = playedBothWays(text);
    expect([reasoning, shown]).toEqual(['Think.', 'Done.']);
  });

  test('thinking in tags becomes reasoning; the answer follows it', () => {
    for (const [open, close] of [
      ['<think>', '</think>'],
      ['◁think▷', '◁/think▷'],
      ['[THINK]', '[/THINK]'],
    ]) {
      const { text, reasoning } = playedBothWays(`${open}\nHm.\n\nYes.\n${close}\n\nDone.`);
      expect([reasoning, text]).toEqual(['Hm.\n\nYes.', 'Done.']);
    }
  });

  test('thinking without its opener in a whole reply', () => {
    const { text, reasoning } = play(eventsOf([{ text: ['First.\n</think>\n\nDone.'] }]));
    expect([reasoning.trim(), text.trim()]).toEqual(['First.', 'Done.']);
  });

  test('thinking without its opener, as a profile declares', () => {
    const profile = { leakFamilies: FAMILIES };
    const { text, reasoning } = playedBothWays('First this.\n\nThen that.</think>\n\nDone.', {
      profile,
    });
    expect([reasoning, text]).toEqual(['First this.\n\nThen that.', 'Done.']);
  });

  test('on Messages, thinking in tags stays text because it has no signature', () => {
    for (const text of ['<thinking>Hm.</thinking>Done.', '<think>Hm.</think>Done.']) {
      expect(playedBothWays(text, { protocol: 'anthropic-messages' }).text).toBe(text);
    }
  });
});

describe('families and tools that are switched off', () => {
  const hermes = '<tool_call>\n{"name": "exec_command", "arguments": {"cmd": "pwd"}}\n</tool_call>';

  test('a family that the profile excludes stays text', () => {
    const playing = { profile: { leakFamilies: ['dsml'] } };
    expect(play(eventsOf([{ text: [hermes] }]), playing).same).toBe(true);
  });

  test('an empty list switches the feature off', () => {
    expect(play(eventsOf([{ text: [hermes] }]), { profile: { leakFamilies: [] } }).same).toBe(true);
  });

  test('tool_choice none: leaked calls are neither made nor shown', () => {
    const { calls, text } = playedBothWays(hermes, { settings: { toolChoice: { type: 'none' } } });
    expect([calls, text]).toEqual([[], '']);
  });

  test('no tools and no calls in the history: there is no interceptor', () => {
    expect(play(eventsOf([{ text: [hermes] }]), { tools: [] }).same).toBe(true);
  });

  test('no tools, but calls in the history: leaked calls are neither made nor shown', () => {
    const call = {
      type: 'tool-call',
      id: 'a',
      name: 'x',
      kind: 'function',
      input: '{}',
      by: 'client',
    } as const;
    const turns = [{ role: 'assistant', blocks: [call] }] as const;
    const { calls, text, reports } = playedBothWays(`Well.\n${hermes}`, { tools: [], turns });
    expect([calls, text, reports]).toEqual([[], 'Well.', ['hermes removed']]);
  });

  test('a JSON answer may look like a call', () => {
    const text = '{"name": "exec_command", "arguments": {"cmd": "pwd"}}';
    expect(playedBothWays(text).calls).toEqual([PWD]);
    const settings = { format: { type: 'json' } } as const;
    expect(play(eventsOf([{ text: [text] }]), { settings }).same).toBe(true);
  });

  test('a namespace is restored in a name, and a freeform tool gets its text', () => {
    const tools = [
      { type: 'function', name: 'read', namespace: 'files', schema: {} },
      { type: 'custom', name: 'apply_patch' },
    ] as const;
    const text = `<tool_call>{"name": "files__read", "arguments": {"a": 1}}</tool_call><tool_call>{"name": "apply_patch", "arguments": {"input": "*** Begin"}}</tool_call>`;
    const { raw } = play(eventsOf([{ text: [text] }]), { tools });
    expect(raw.map(({ name, namespace, kind, input }) => [name, namespace, kind, input])).toEqual([
      ['read', 'files', 'function', '{"a":1}'],
      ['apply_patch', undefined, 'custom', '*** Begin'],
    ]);
    expect(raw.every(({ id }) => /^call_[0-9a-f]{24}$/.test(id))).toBe(true);
  });

  test('tools that only the vendor runs cannot be called', () => {
    const tools = [
      ...TOOLS,
      { type: 'hosted', name: 'web_search', kind: 'web_search', options: {} },
    ] as const;
    const text = '<tool_call>{"name": "web_search", "arguments": {"query": "x"}}</tool_call>';
    expect(playedBothWays(text, { tools }).calls).toEqual([]);
  });
});
