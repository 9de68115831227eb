/** Structured calls: markup in names and arguments, broken JSON, wrapper tools; valid calls stay unchanged. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { FinishReason } from '../../../src/conversation/events.ts';
import { JsonCheck } from '../../../src/features/leaked-calls/values/json-check.ts';
import { characters, eventsOf, play } from './transcript.ts';

const call = (name: string, args: readonly string[], finish: FinishReason = 'tool-calls') =>
  play(eventsOf([{ call: name, args }], finish));

describe('valid calls', () => {
  test('valid calls pass as the same events', () => {
    for (const args of [
      '{"cmd":"<tool_call>ls</tool_call>"}',
      '',
      '{}',
      ' { "a" : [1, -2.5e3, null, "\\u00e9"] } ',
    ]) {
      expect(call('exec_command', characters(args)).same).toBe(true);
      expect(call('unknown_tool', [args]).same).toBe(true);
    }
  });

  test('any JSON object is valid, in any pieces', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.nat(),
        fc.boolean(),
        (value, cut, pretty) => {
          const text = pretty ? JSON.stringify(value, null, 1) : JSON.stringify(value);
          const at = cut % text.length;
          const check = new JsonCheck();
          expect([check.push(text.slice(0, at)), check.push(text.slice(at))]).toEqual([true, true]);
          expect(check.complete).toBe(true);
        },
      ),
    );
  });

  test('the validity check agrees with JSON.parse', () => {
    const char = fc.constantFrom(...'{}[]",:\\ntruefalsu0123.-eE \n'.split(''));
    fc.assert(
      fc.property(fc.array(char, { maxLength: 14 }), (chars) => {
        const text = `{${chars.join('')}`;
        const check = new JsonCheck();
        check.push(text);
        let sound = true;
        try {
          JSON.parse(text);
        } catch {
          sound = false;
        }
        expect([text, check.complete]).toEqual([text, sound]);
      }),
      { numRuns: 5000 },
    );
  });
});

describe('broken JSON', () => {
  const repaired: Readonly<Record<string, string>> = {
    'single quotes': "{'cmd': 'ls'}",
    'a trailing comma': '{"cmd": "ls",}',
    'a missing brace': '{"cmd": "ls"',
    'a missing brace behind white space': '{"cmd": "ls" \n',
    'a raw line break in a string': '{"cmd": "l\ns"}',
    'JSON as a JSON string': '"{\\"cmd\\": \\"ls\\"}"',
    'arguments in GLM tags': '<arg_key>cmd</arg_key><arg_value>ls</arg_value>',
    'arguments in parameter tags': '<parameter name="cmd">ls</parameter>',
  };
  for (const [name, args] of Object.entries(repaired)) {
    test(`${name} is repaired, with a note`, () => {
      for (const pieces of [[args], characters(args)]) {
        const played = call('exec_command', pieces);
        const cmd = args.includes('l\ns') ? 'l\ns' : 'ls';
        expect(played.calls).toEqual([{ name: 'exec_command', arguments: { cmd } }]);
        expect(played.notes).toBe('tool_arguments_repaired');
        expect(played.raw[0]!.id).toBe('n0');
      }
    });
  }

  test('arguments of null are none', () => {
    for (const pieces of [['null'], characters('null')]) {
      expect(call('exec_command', pieces).calls).toEqual([{ name: 'exec_command', arguments: {} }]);
    }
  });

  test('the part sent before the fault stays unchanged', () => {
    const { events } = call('exec_command', ['{"cmd": "ls"', ", 'a'", ': 1}']);
    const texts = events.flatMap((event) => (event.type === 'delta' ? [event.text] : []));
    expect(texts[0]).toBe('{"cmd": "ls"');
  });

  test('arguments that the length limit cut stay as they are', () => {
    expect(call('exec_command', ['{"cmd": "ls -'], 'length').same).toBe(true);
  });

  test('a string that breaks off is never completed: the turn fails with a reason', () => {
    for (const args of [
      '{"cmd": "rm -rf /tm',
      'no JSON at all',
      '[1, 2',
      '{"timeout_ms": 50',
      '{"cmd":',
      '{"cmd": "ls",',
    ]) {
      expect(() => call('exec_command', [args])).toThrow(
        /Provider vendor .* exec_command .* not JSON and cannot be repaired/,
      );
    }
  });

  test('a following call shows that no limit cut the previous one', () => {
    const played = play(
      eventsOf(
        [
          { call: 'exec_command', args: ['{"cmd": "ls"'] },
          { call: 'read_file', args: ['{"path": "a"}'] },
        ],
        'tool-calls',
      ),
    );
    expect(played.calls.map(({ arguments: args }) => args)).toEqual([{ cmd: 'ls' }, { path: 'a' }]);
  });
});

describe('call names', () => {
  test('a whole GLM call in the name', () => {
    const name = 'read_file<arg_key>path</arg_key><arg_value>src/a.ts</arg_value>';
    for (const args of ['{}', '']) {
      const played = call(name, [args]);
      expect(played.calls).toEqual([{ name: 'read_file', arguments: { path: 'src/a.ts' } }]);
      expect(played.notes).toBe('leaked_call_recovered');
    }
  });

  test('a name followed by a channel keeps its arguments', () => {
    const played = call('exec_command<|channel|>commentary', ['{"cmd":', '"ls"}']);
    expect(played.calls).toEqual([{ name: 'exec_command', arguments: { cmd: 'ls' } }]);
  });

  test('an addition of a call format to the name of a declared tool is taken off, with a note', () => {
    for (const name of [
      'functions.read_file',
      'function.read_file',
      'functions.read_file:3',
      'default_api:read_file',
    ]) {
      const played = call(name, ['{"path":', '"a"}']);
      expect(played.calls).toEqual([{ name: 'read_file', arguments: { path: 'a' } }]);
      expect(played.raw[0]!.id).toBe('n0');
      expect(played.notes).toBe('tool_name_corrected');
    }
  });

  test('any other name that is not declared stays as it is', () => {
    for (const name of ['functions.nothing', 'fs.read_file', 'Read_File', 'read_file:x']) {
      expect(call(name, ['{}']).same).toBe(true);
    }
  });

  test('unreadable argument tags in a name fail the turn', () => {
    expect(() => call('read_file<arg_key>path', ['{}'])).toThrow(/cannot be repaired/);
  });

  test('the parallel wrapper becomes the calls inside it', () => {
    const uses = [
      '{"tool_uses": [{"recipient_name": "functions.read_file", "parameters": {"path": "a"}},',
      '{"recipient_name": "functions.exec_command", "parameters": {"cmd": "ls"}}]}',
    ];
    for (const name of ['multi_tool_use.parallel', 'parallel', 'multi_tool_use_parallel']) {
      expect(call(name, uses).calls).toEqual([
        { name: 'read_file', arguments: { path: 'a' } },
        { name: 'exec_command', arguments: { cmd: 'ls' } },
      ]);
    }
  });

  test('a wrapper of undeclared calls stays', () => {
    const uses = '{"tool_uses": [{"recipient_name": "functions.other", "parameters": {}}]}';
    expect(call('parallel', [uses]).same).toBe(true);
  });
});
