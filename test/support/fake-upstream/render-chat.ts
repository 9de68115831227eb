/** Renders an answer for Chat Completions: the body, and the chunks in the order of the vendor's streams. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { type Answer, type Part, pieces, usageOf } from './answer.ts';
import type { Render, Rendered } from './render.ts';

function usageBody(answer: Answer): JsonObject {
  const usage = usageOf(answer);
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

function finishOf(answer: Answer): string {
  if (answer.finish === 'length') return 'length';
  if (answer.finish === 'filter') return 'content_filter';
  return answer.parts.some((part) => part.kind === 'call' || part.kind === 'custom')
    ? 'tool_calls'
    : 'stop';
}

const logprobsOf = (text: string): Json[] =>
  pieces(text, 4).map((token) => ({
    token,
    logprob: -0.25,
    bytes: [...Buffer.from(token)],
    top_logprobs: [{ token, logprob: -0.25, bytes: [...Buffer.from(token)] }],
  }));

const isTool = (part: Part): part is Extract<Part, { kind: 'call' | 'custom' }> =>
  part.kind === 'call' || part.kind === 'custom';
const textOf = (answer: Answer, kind: 'text' | 'reasoning' | 'refusal') =>
  answer.parts.flatMap((part) => (part.kind === kind ? [part.text] : [])).join('');

function toolCall(part: Extract<Part, { kind: 'call' | 'custom' }>, id: string): JsonObject {
  if (part.kind === 'custom')
    return { id, type: 'custom', custom: { name: part.name, input: part.input } };
  return { id, type: 'function', function: { name: part.name, arguments: part.arguments } };
}

/** The deltas of one part; tool calls have their `index`. */
function deltas(part: Part, index: number, id: string, size?: number): JsonObject[] {
  if (part.kind === 'text') return pieces(part.text, size).map((content) => ({ content }));
  if (part.kind === 'refusal') return pieces(part.text, size).map((refusal) => ({ refusal }));
  if (part.kind === 'reasoning') {
    return pieces(part.text, size).map((text) => ({ reasoning_content: text }));
  }
  if (part.kind === 'call') {
    const head = { index, id, type: 'function', function: { name: part.name, arguments: '' } };
    const rest = pieces(part.arguments, size).map((text) => ({
      index,
      function: { arguments: text },
    }));
    return [head, ...rest].map((one) => ({ tool_calls: [one] }));
  }
  if (part.kind === 'custom') {
    const head = { index, id, type: 'custom', custom: { name: part.name, input: '' } };
    const rest = pieces(part.input, size).map((text) => ({ index, custom: { input: text } }));
    return [head, ...rest].map((one) => ({ tool_calls: [one] }));
  }
  return [];
}

export const renderChat: Render = (answer, request) => {
  const { body, id } = request;
  const head = {
    id: id('chatcmpl-'),
    created: 1_790_000_000,
    model: request.model,
    service_tier: 'default',
    system_fingerprint: 'fp_fake',
  };
  const wantsUsage =
    (body.stream_options as { include_usage?: boolean } | undefined)?.include_usage === true;
  const tools = answer.parts.filter(isTool);
  const ids = new Map<Part, string>(tools.map((part) => [part, part.id ?? id('call_')] as const));
  const withLogprobs = body.logprobs === true;

  const message: Record<string, Json> = {
    role: 'assistant',
    content: textOf(answer, 'text') || (tools.length > 0 ? null : ''),
    refusal: textOf(answer, 'refusal') || null,
    annotations: [],
  };
  const reasoning = textOf(answer, 'reasoning');
  if (reasoning !== '') message.reasoning_content = reasoning;
  if (tools.length > 0) message.tool_calls = tools.map((part) => toolCall(part, ids.get(part)!));

  const chunk = (delta: JsonObject, finish: string | null, logprobs: Json = null): JsonObject => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs, finish_reason: finish }],
    ...(wantsUsage ? { usage: null } : {}),
  });
  const frames: Rendered['frames'] = [
    { event: '', data: chunk({ role: 'assistant', content: '', refusal: null }, null) },
  ];
  for (const part of answer.parts) {
    const size = answer.delivery?.piece;
    for (const delta of deltas(
      part,
      isTool(part) ? tools.indexOf(part) : 0,
      ids.get(part) ?? '',
      size,
    )) {
      const logprobs =
        withLogprobs && typeof delta.content === 'string'
          ? { content: logprobsOf(delta.content), refusal: null }
          : null;
      frames.push({ event: '', data: chunk(delta, null, logprobs) });
    }
  }
  frames.push({ event: '', data: chunk({}, finishOf(answer)) });
  if (wantsUsage) {
    frames.push({
      event: '',
      data: { ...head, object: 'chat.completion.chunk', choices: [], usage: usageBody(answer) },
    });
  }
  frames.push({ event: '', data: '[DONE]' });

  return {
    frames,
    terminal: frames.length - (wantsUsage ? 3 : 2),
    errorFrames: [
      {
        event: '',
        data: {
          error: {
            message: 'The server had an error while processing your request. Sorry about that!',
            type: 'server_error',
            param: null,
            code: null,
          },
        },
      },
    ],
    json: {
      ...head,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message,
          logprobs: withLogprobs
            ? { content: logprobsOf(textOf(answer, 'text')), refusal: null }
            : null,
          finish_reason: finishOf(answer),
        },
      ],
      usage: usageBody(answer),
    },
  };
};
