/** Web searches and other hosted tools in the stream of a Responses client that declared them. */

import { describe, expect, test } from 'bun:test';
import type { BlockHead } from '../../../src/conversation/events.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { block, finish, PLAIN, start, write } from './builders.ts';
import { checkSkeleton, eventsOfText } from './skeleton.ts';

const TEXT: BlockHead = { type: 'text' };
const types = (sse: string) => eventsOfText(sse).map((e) => e.type.replace('response.', ''));
const output = (sse: string) => checkSkeleton(sse).output as readonly JsonObject[];

describe('hosted tools', () => {
  const search: BlockHead = {
    type: 'tool-call',
    id: 'srvtoolu_1',
    name: 'web_search',
    kind: 'function',
    by: 'provider',
  };
  const result = (isError: boolean): BlockHead => ({
    type: 'whole',
    block: {
      type: 'tool-result',
      callId: 'srvtoolu_1',
      kind: 'function',
      content: [],
      isError,
      by: 'provider',
      wire: {
        protocol: 'anthropic-messages',
        value: { content: [{ type: 'web_search_result', url: 'https://a', title: 'A' }] },
      },
    },
  });
  const events = (isError = false) => [
    start,
    ...block(0, search, '{"query":"q"}'),
    ...block(1, result(isError)),
    ...block(2, TEXT, 'found'),
    ...finish('stop'),
  ];
  const declaring = { ...PLAIN, tools: [{ type: 'web_search' }] };

  test('another protocol’s search is a web_search_call if the client declared the tool', () => {
    const sse = write(events(), { ...declaring, include: ['web_search_call.action.sources'] });
    expect(types(sse).filter((type) => type.startsWith('web_search'))).toEqual([
      'web_search_call.in_progress',
      'web_search_call.searching',
      'web_search_call.completed',
    ]);
    expect(output(sse)).toMatchObject([
      {
        type: 'web_search_call',
        status: 'completed',
        action: { type: 'search', query: 'q', sources: [{ type: 'url', url: 'https://a' }] },
      },
      { type: 'message' },
    ]);
  });

  test('a failed search has the status failed', () => {
    expect(output(write(events(true), declaring))[0]).toMatchObject({ status: 'failed' });
  });

  test('other vendors do not get it', () => {
    expect(output(write(events())).map((item) => item.type)).toEqual(['message']);
  });

  test('an item of a Responses upstream keeps its form and id', () => {
    const item = { id: 'ci_1', type: 'code_interpreter_call', status: 'completed', code: '1+1' };
    const opaque: BlockHead = {
      type: 'whole',
      block: {
        type: 'opaque',
        name: item.type,
        wire: { protocol: 'openai-responses', value: item },
      },
    };
    expect(output(write([start, ...block(0, opaque), ...finish('stop')]))).toEqual([item]);
  });
});
