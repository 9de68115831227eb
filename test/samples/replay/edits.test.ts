/** Edits of a request: what fits is applied, what does not is refused in words that name the place. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../../src/app/codecs.ts';
import { checkEdited, withEdits } from '../../../src/samples/replay/edits.ts';

const BODY = {
  model: 'm',
  temperature: 1,
  messages: [{ role: 'user', content: 'old' }],
};
const edit = (at: string, value: unknown) => withEdits(BODY, [{ at, value: value as never }]);

describe('edits of a request', () => {
  test('texts and parameters change, others are added and left out, and the recorded body stays as it is', () => {
    const before = structuredClone(BODY);
    expect(edit('/messages/0/content', 'new')).toMatchObject({ messages: [{ content: 'new' }] });
    expect(edit('/max_tokens', 7)).toEqual({ ...BODY, max_tokens: 7 });
    expect(edit('/temperature', null)).toEqual({ model: 'm', messages: BODY.messages });
    expect(BODY).toEqual(before);
  });

  test.each([
    ['/temperature', 'hot', 'temperature must be a number from 0 to 2, not "hot".'],
    ['/temperature', 3, 'temperature must be a number from 0 to 2, not 3.'],
    ['/max_tokens', 1.5, 'max_tokens must be a whole number of at least 1, not 1.5.'],
    ['/model', '', 'model must be a name, not "".'],
    ['/messages/4/content', 'x', 'The request has no messages[4].content.'],
    ['/messages', 'x', 'messages is a list; a text cannot take its place.'],
    ['/model', null, 'model cannot be left out.'],
    ['/seed', null, 'The request has no seed to remove.'],
    ['temperature', 1, '"temperature" is not a place in the request.'],
  ])('%s = %p is refused in words', (at, value, words) => {
    expect(() => edit(at, value)).toThrow(words);
  });

  test('an edit that leaves no valid request is refused before it is sent', () => {
    const edits = [{ at: '/messages/0/role', value: 'nobody' }];
    expect(() => checkEdited(BODY, edits, CODECS['openai-chat'])).toThrow('cannot be sent');
  });

  test('a name like that of a prototype is a member like any other', () => {
    const edited = edit('/__proto__', { polluted: true });
    expect(Object.hasOwn(edited, '__proto__')).toBe(true);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});
