/** Reads an encoded stream with the official OpenAI client. */

import OpenAI from 'openai';
import type { Response as SdkResponse } from 'openai/resources/responses/responses';

/** The response that the SDK's own accumulator reads from an SSE text; rejects where the SDK does. */
export async function readBySdk(sse: string): Promise<SdkResponse> {
  const client = new OpenAI({
    apiKey: 'sk-test',
    baseURL: 'http://127.0.0.1:9/v1',
    maxRetries: 0,
    fetch: () =>
      Promise.resolve(
        new Response(sse, { status: 200, headers: { 'content-type': 'text/event-stream' } }),
      ),
  });
  return await client.responses.stream({ model: 'm', input: 'i' }).finalResponse();
}
