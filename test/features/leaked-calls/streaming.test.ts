/** Streaming: which text is held and for how long, what replaces a leak, and leaks beside native calls. */

import { describe, expect, test } from 'bun:test';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { leakedCalls } from '../../../src/features/leaked-calls/index.ts';
import { characters, eventsOf, play, TOOLS, targetWith } from './transcript.ts';

const SENT: Conversation = {
  model: 'm',
  system: [],
  turns: [],
  tools: TOOLS,
  settings: { stream: true },
};

/** Pushes a text and returns the events that come out at once. */
function pipe() {
  const context = {
    target: targetWith(),
    client: 'openai-chat',
    notes: new Notes(),
    hop: 1,
  } as const;
  const interceptor = leakedCalls(() => {}).intercept!(SENT, context)!;
  const put = (event: StreamEvent): readonly StreamEvent[] => {
    const out = interceptor.event(event);
    return Array.isArray(out) ? (out as readonly StreamEvent[]) : [out as StreamEvent];
  };
  put({ type: 'start', id: 'r', model: 'm' });
  put({ type: 'block-start', index: 0, head: { type: 'text' } });
  return (text: string): string =>
    put({ type: 'delta', index: 0, text })
      .map((event) => (event.type === 'delta' ? event.text : ''))
      .join('');
}

describe('held text', () => {
  test('plain text passes at once, including the first delta', () => {
    const push = pipe();
    for (const text of ['Hello', ' there', ', how', ' are you?', ' 1 > 0', ' `x`']) {
      expect(push(text)).toBe(text);
    }
  });

  test('text waits only while it may still be an opener', () => {
    const push = pipe();
    expect(push('if a <')).toBe('');
    expect(push(' b')).toBe('if a < b');
    expect(push(' or <ta')).toBe(' or <ta');
    expect(push(' or <tool')).toBe('');
    expect(push('s>')).toBe(' or <tools>');
    expect(push('a line\n')).toBe('');
    expect(push('another')).toBe('a line\nanother');
  });

  test('the first text never waits longer than the longest opener', () => {
    for (const opener of [
      '<｜DSML｜function_calls',
      '<|tool_calls_section_begi',
      ']<]minimax[>[<tool_cal',
    ]) {
      const push = pipe();
      let out = '';
      for (const char of characters(`${opener}X and so on`)) out += push(char);
      expect(out).toBe(`${opener}X and so on`);
    }
  });

  test('once a call is certain, the prose before it goes out', () => {
    const push = pipe();
    expect(push('Looking.\n\n<tool_call>')).toBe('');
    expect(push('{"name": "exec_command"')).toBe('Looking.');
    expect(push(', "arguments": {"cmd": "pwd"}}</tool_call>')).toBe('');
  });

  test('a call waits for the text after it; prose turns it into text and flows on', () => {
    const push = pipe();
    const call = '<tool_call>{"name": "exec_command", "arguments": {"cmd": "pwd"}}</tool_call>';
    expect(push('So:\n')).toBe('');
    expect(push(call)).toBe('');
    expect(push('\n\n')).toBe('');
    expect(push('That')).toBe(`So:\n${call}\n\nThat`);
    expect(push(' was it')).toBe(' was it');
  });
});

const LEAK =
  '<tool_call>{"name": "exec_command", "arguments": {"cmd": "pwd", "timeout_ms": 5}}</tool_call>';
const CALL = { name: 'exec_command', arguments: { cmd: 'pwd', timeout_ms: 5 } };

describe('the order of events', () => {
  test('whitespace before a call is dropped, and a blank block disappears', () => {
    const played = play(eventsOf([{ text: ['\n', '\n', LEAK, '\n'] }]));
    expect([played.blocks, played.calls]).toEqual([['tool-call'], [CALL]]);
  });

  test('a blank answer after a call in the reasoning disappears', () => {
    const played = play(eventsOf([{ reasoning: ['Hm.\n', LEAK] }, { text: ['\n\n'] }]));
    expect([played.blocks, played.reasoning]).toEqual([['reasoning', 'tool-call'], 'Hm.']);
  });

  test('a call between two paragraphs is a quotation and stays', () => {
    const text = `One.\n\n${LEAK}\n\nTwo.`;
    const played = play(eventsOf([{ text: characters(text) }]));
    expect([played.text, played.calls, played.notes]).toEqual([text, [], 'leaked_call_quoted']);
  });

  test('usage and unknown events keep flowing', () => {
    const events = eventsOf([{ text: ['a ', LEAK] }]);
    events.splice(3, 0, {
      type: 'opaque',
      name: 'x',
      wire: { protocol: 'openai-chat', value: {} },
    });
    expect(play(events).events.filter(({ type }) => type === 'opaque')).toHaveLength(1);
  });

  test('a signature is dropped together with its text', () => {
    const events = eventsOf([{ reasoning: [`Hm. ${LEAK}`] }]);
    const sealed = { protocol: 'anthropic-messages', kind: 'signature', value: 's' } as const;
    events.splice(3, 0, { type: 'sealed', index: 0, sealed });
    const played = play(events);
    expect(played.calls).toEqual([CALL]);
    expect(played.events.some(({ type }) => type === 'sealed')).toBe(false);
  });

  test('on Messages, reasoning keeps its text and signature, and its call is still made', () => {
    const events = eventsOf([{ reasoning: ['Hm. ', LEAK] }]);
    const sealed = { protocol: 'anthropic-messages', kind: 'signature', value: 's' } as const;
    events.splice(4, 0, { type: 'sealed', index: 0, sealed });
    const played = play(events, { protocol: 'anthropic-messages' });
    expect([played.reasoning, played.calls]).toEqual([`Hm. ${LEAK}`, [CALL]]);
    expect(played.events.slice(0, 6).every((event, at) => event === events[at])).toBe(true);
  });

  test('on Messages, a drafted call in signed reasoning changes nothing', () => {
    const native = { call: 'read_file', args: ['{"path":"a"}'] };
    const events = eventsOf([{ reasoning: ['Hm. ', LEAK, ' No.'] }, native], 'tool-calls');
    expect(play(events, { protocol: 'anthropic-messages' }).same).toBe(true);
  });

  test('a stream that is cut sends its text and no finish', () => {
    const events = eventsOf([{ text: ['One.\n', LEAK] }]).slice(0, -3);
    const { calls, text, events: out } = play(events);
    expect([calls, text]).toEqual([[CALL], 'One.']);
    expect(out.some(({ type }) => type === 'finish' || type === 'end')).toBe(false);
  });
});

describe('leaks beside native calls', () => {
  const args = ['{"timeout_ms":5,', '"cmd":"pwd"}'];

  test('a leaked copy before its native call is dropped', () => {
    const played = play(
      eventsOf([{ text: ['Now.', LEAK] }, { call: 'exec_command', args }], 'tool-calls'),
    );
    expect([played.text, played.calls]).toEqual(['Now.', [CALL]]);
    expect(played.raw[0]!.id).toBe('n1');
  });

  test('a leaked copy after its native call is dropped', () => {
    const played = play(eventsOf([{ call: 'exec_command', args }, { text: [LEAK] }], 'tool-calls'));
    expect(played.calls).toEqual([CALL]);
  });

  test('a different leaked call is also made', () => {
    const played = play(
      eventsOf([{ text: [LEAK] }, { call: 'read_file', args: ['{"path":"a"}'] }], 'tool-calls'),
    );
    expect(played.calls.map(({ name }) => name)).toEqual(['read_file', 'exec_command']);
  });

  test('a call drafted in the thinking is not made when the answer makes another', () => {
    const played = play(
      eventsOf(
        [{ reasoning: [LEAK] }, { call: 'read_file', args: ['{"path":"a"}'] }],
        'tool-calls',
      ),
    );
    expect(played.calls.map(({ name }) => name)).toEqual(['read_file']);
  });

  test('a call in the thinking and again in the answer is one call', () => {
    const played = play(eventsOf([{ reasoning: [LEAK] }, { text: [LEAK] }]));
    expect(played.calls).toEqual([CALL]);
  });
});

describe('refusals', () => {
  test('a finish of refusal stays', () => {
    expect(play(eventsOf([{ text: [LEAK] }], 'content-filter')).finish).toBe('content-filter');
  });
});
