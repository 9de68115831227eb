/** The official clients as judges: what they read from a stream, and the history they would send back. */

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';

export interface Read {
  readonly text: string;
  /** Ids of calls that the client would run. */
  readonly calls: readonly string[];
  /** Pages that the text cites. */
  readonly cited: readonly string[];
  /** Web searches shown to the client. */
  readonly searches: number;
  /** The answer as history of the next request, followed by the results of its calls. */
  readonly history: readonly JsonObject[];
}

const answering = (sse: string) => () =>
  Promise.resolve(
    new Response(sse, { status: 200, headers: { 'content-type': 'text/event-stream' } }),
  );

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

/** Rejects if the official client does. */
export async function readBySdk(client: ProtocolName, sse: string): Promise<Read> {
  switch (client) {
    case 'openai-chat':
      return readChat(sse);
    case 'openai-responses':
      return readResponses(sse);
    case 'anthropic-messages':
      return readMessages(sse);
  }
}

async function readChat(sse: string): Promise<Read> {
  const openai = new OpenAI({ apiKey: 'sk-test', maxRetries: 0, fetch: answering(sse) });
  const stream = await openai.chat.completions.create({ model: 'm', messages: [], stream: true });
  const runner = ChatCompletionStream.fromReadableStream(stream.toReadableStream());
  const { message } = (await runner.finalChatCompletion()).choices[0]!;
  const calls = (message.tool_calls ?? []).map(({ id }) => id);
  const { annotations } = plain(message);
  return {
    text: message.content ?? '',
    calls,
    cited: (annotations ?? []).map((a: { url_citation: { url: string } }) => a.url_citation.url),
    searches: 0,
    history: [
      plain({
        role: 'assistant',
        content: message.content,
        ...(calls.length > 0 ? { tool_calls: message.tool_calls } : {}),
      }),
      ...calls.map((id) => ({ role: 'tool', tool_call_id: id, content: `ran ${id}` })),
    ],
  };
}

async function readResponses(sse: string): Promise<Read> {
  const openai = new OpenAI({ apiKey: 'sk-test', maxRetries: 0, fetch: answering(sse) });
  const response = await openai.responses.stream({ model: 'm', input: 'i' }).finalResponse();
  const calls: string[] = [];
  const cited: string[] = [];
  let text = '';
  let searches = 0;
  for (const item of response.output) {
    if (item.type === 'function_call') calls.push(item.call_id);
    if (item.type === 'web_search_call') searches++;
    if (item.type !== 'message') continue;
    for (const part of item.content) {
      if (part.type !== 'output_text') continue;
      text += part.text;
      for (const note of part.annotations) {
        if (note.type !== 'url_citation') continue;
        cited.push(note.url);
        if (!/^\[[\d, ]+\]$/.test(part.text.slice(note.start_index, note.end_index))) {
          throw new Error('an annotation that points at no mark');
        }
      }
    }
  }
  const results = calls.map((id) => ({
    type: 'function_call_output',
    call_id: id,
    output: `ran ${id}`,
  }));
  return { text, calls, cited, searches, history: [...plain(response.output), ...results] };
}

async function readMessages(sse: string): Promise<Read> {
  const anthropic = new Anthropic({ apiKey: 'sk-test', maxRetries: 0, fetch: answering(sse) });
  const message = await anthropic.messages
    .stream({ model: 'm', max_tokens: 1, messages: [] })
    .finalMessage();
  const calls: string[] = [];
  const cited: string[] = [];
  let text = '';
  let searches = 0;
  for (const block of message.content) {
    if (block.type === 'tool_use') calls.push(block.id);
    if (block.type === 'server_tool_use') searches++;
    if (block.type !== 'text') continue;
    text += block.text;
    for (const citation of block.citations ?? []) {
      if (citation.type === 'web_search_result_location') cited.push(citation.url);
    }
  }
  const results = calls.map((id) => ({
    type: 'tool_result',
    tool_use_id: id,
    content: `ran ${id}`,
  }));
  return {
    text,
    calls,
    cited,
    searches,
    history: [
      { role: 'assistant', content: plain(message.content) },
      ...(results.length > 0 ? [{ role: 'user', content: results }] : []),
    ],
  };
}
