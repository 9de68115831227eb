/** Blanked bodies: no content, the same length and structure, also for JSON within JSON. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { type Json, parseJson } from '../../../src/lib/json/json.ts';
import { blankBody } from '../../support/blank-body.ts';
import { chatHistory, messagesHistory, responsesHistory } from '../record/histories.ts';

const blank = (value: unknown, sse = false, what?: readonly ('texts' | 'images')[]) => {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const out = Buffer.from(blankBody(Buffer.from(text), sse, what));
  expect(out.length).toBe(Buffer.byteLength(text));
  return out.toString();
};

/** Keys, kinds and lengths of a value. */
function shape(value: Json): unknown {
  if (Array.isArray(value)) return (value as Json[]).map(shape);
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, shape(member as Json)]),
  );
}

describe('requests', () => {
  test.each([
    ['chat', chatHistory(12), 'openai-chat'],
    ['messages', messagesHistory(3, 'Ada lives in Zürich.'), 'anthropic-messages'],
    ['responses', responsesHistory(3, 'Ada lives in Zürich.'), 'openai-responses'],
  ])('%s: structure and lengths stay, texts are blanked', (_name, body) => {
    const text = blank(body);
    const value = parseJson(text);
    expect(shape(value)).toEqual(shape(body));
    for (const word of ['Ada', 'Zürich', 'coding', 'file-1', 'Please'])
      expect(text).not.toContain(word);
    for (const word of ['"role"', '"user"', 'shell']) expect(text).toContain(word);
  });

  test('arguments stay JSON, with their literals and numbers as such', () => {
    const args = JSON.stringify({
      path: 'C:\\secret\\"x"',
      deep: { on: true, no: null, n: -1.5e3 },
      list: ['ä\n', 7],
    });
    const text = blank({
      messages: [{ tool_calls: [{ id: 'call_1', function: { name: 'shell', arguments: args } }] }],
    });
    const message = (
      JSON.parse(text) as {
        messages: { tool_calls: { id: string; function: { arguments: string } }[] }[];
      }
    ).messages[0]!;
    const inner = JSON.parse(message.tool_calls[0]!.function.arguments) as Record<string, unknown>;
    expect(shape(inner as Json)).toEqual(
      shape({ ...JSON.parse(args), deep: { on: true, no: null, n: -1111 }, list: ['ä\n', 1] }),
    );
    expect(text).not.toContain('secret');
    expect(message.tool_calls[0]!.id).toBe('call_1');
  });

  test.each([
    '[root] Ada says [hello] to null',
    '{Ada} and nullAda, true2',
    "{'name': 'Ada', 'on': True}",
    '[see](https://x/Ada) Ada',
    '\n[Ada] 1e5 \\"Ada\\" rest of Ada',
  ])('a text that only begins like JSON is blanked: %j', (text) => {
    const out = blank({ messages: [{ role: 'user', content: text }] });
    expect(out).not.toMatch(/Ada|says|hello|see|name|rest/);
  });

  test('a document of plain text is a text, and one in base64 a file', () => {
    const source = (data: string) => ({ content: [{ source: { type: 'text', data } }] });
    expect(blank(source('Ada lives here.\nTruly'), false, ['texts'])).not.toContain('Ada');
    expect(blank(source('Ada lives here.\nTruly'), false, ['images'])).toContain('Ada');
    expect(blank(source('QWRhIGxpdmVz'), false, ['texts'])).toContain('QWRhIGxpdmVz');
  });

  test('JSON inside a text keeps its length and stays JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), (value) => {
        const inner = JSON.stringify({ value });
        const out = JSON.parse(blank({ messages: [{ role: 'tool', content: inner }] })) as {
          messages: { content: string }[];
        };
        expect(() => JSON.parse(out.messages[0]!.content)).not.toThrow();
      }),
    );
  });

  test('an image becomes an image of one pixel with the same length', () => {
    const data = `iVBORw0KGgo${'Ab1/'.repeat(500)}==`;
    const body = {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
          ],
        },
      ],
    };
    const out = JSON.parse(blank(body)) as typeof body;
    const [messages, chat] = out.messages[0]!.content;
    expect(messages!.source!.data).toStartWith('iVBORw0KGgoAAAANSUhEUg');
    expect(messages!.source!.data).not.toContain('Ab1/');
    expect(chat!.image_url!.url).toStartWith('data:image/png;base64,iVBORw0KGgoAAAANSUhEUg');
    // Only texts are compared: the picture stays.
    expect(blank(body, false, ['texts'])).toContain('Ab1/Ab1/');
  });

  test.each<[string, object]>([
    [
      'arguments and results of Gemini’s functions',
      {
        contents: [
          { parts: [{ functionCall: { name: 'call', args: { path: 'Ada', deep: ['Ada'] } } }] },
          { parts: [{ functionResponse: { name: 'call', response: { rows: [{ a: 'Ada' }] } } }] },
          { parts: [{ executableCode: { language: 'PYTHON', code: 'print("Ada")' } }] },
          { parts: [{ fileData: { mimeType: 'text/plain', fileUri: 'https://files/Ada' } }] },
        ],
      },
    ],
    [
      'items of vendors’ own tools in Responses',
      {
        input: [
          { type: 'local_shell_call', action: { type: 'exec', command: ['cat', 'Ada.txt'] } },
          { type: 'shell_call', action: { commands: ['cat Ada.txt'] } },
          { type: 'apply_patch_call', operation: { type: 'update_file', diff: '+Ada' } },
          { type: 'file_search_call', queries: ['who is Ada?'], results: [{ text: 'Ada' }] },
          {
            type: 'code_interpreter_call',
            code: 'x = "Ada"',
            outputs: [{ type: 'logs', logs: 'Ada' }],
          },
        ],
      },
    ],
    [
      'what was said and heard',
      { choices: [{ message: { audio: { id: 'a', data: '', transcript: 'Ada' } } }] },
    ],
  ])('%s are texts', (_what, body) => {
    const text = blank(body);
    expect(JSON.stringify(body)).toContain('Ada');
    expect(text).not.toContain('Ada');
    expect(shape(JSON.parse(text) as Json)).toEqual(shape(body as Json));
    for (const word of ['"exec"', '"update_file"', '"name":"call"', '"PYTHON"', '"logs"']) {
      if (JSON.stringify(body).includes(word)) expect(text).toContain(word);
    }
  });

  test('tokens beside a text are blanked with their bytes, and the probabilities stay', () => {
    const token = { token: 'Ada', logprob: -0.25, bytes: [65, 100, 97] };
    const body = {
      choices: [{ logprobs: { content: [{ ...token, top_logprobs: [token, token] }] } }],
    };
    const text = blank(body);
    expect(text).not.toMatch(/Ada|65|100|97/);
    expect(text.match(/-0.25/g)).toHaveLength(3);
    expect(JSON.parse(text)).toMatchObject({
      choices: [{ logprobs: { content: [{ token: 'xxx', bytes: [11, 111, 11] }] } }],
    });
    expect(blank(`data: ${JSON.stringify(body)}\n\n`, true)).toBe(`data: ${text}\n\n`);
    // Of audio and files, `bytes` is a number.
    expect(blank({ input: [{ bytes: 1234, list: [7] }] })).toBe(
      '{"input":[{"bytes":1234,"list":[7]}]}',
    );
  });

  test('the code of an error stays, so that a refusal can be told from another', () => {
    const error = { error: { code: 'context_length_exceeded', type: 'invalid_request_error' } };
    expect(blank(error)).toBe(JSON.stringify(error));
  });

  test('names in schemas are not texts', () => {
    const body = {
      tools: [
        {
          name: 'f',
          description: 'Reads Ada',
          input_schema: {
            type: 'object',
            properties: { text: { type: 'string', description: 'of Ada', enum: ['one'] } },
          },
        },
      ],
    };
    const out = blank(body);
    expect(out).toContain('"enum":["one"]');
    expect(out).not.toContain('Ada');
  });
});

test('streams: every data line is blanked, the frames stay', () => {
  const sse =
    'event: delta\ndata: {"choices":[{"delta":{"content":"Ada"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  expect(blank(sse, true)).toBe(sse.replace('Ada', 'xxx'));
});
