/** Every recorded JSON answer of every vendor is the same after decoding and encoding. */

import { describe, expect, test } from 'bun:test';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { GatewayError } from '../../../src/conversation/errors.ts';
import { replyEvents } from '../../../src/conversation/reply-builder.ts';
import { totalInput, totalOutput } from '../../../src/conversation/usage.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { fixtureBytes, haveFixtures } from '../../support/fixtures.ts';
import { expectPlain } from '../../support/plain-reply.ts';
import { client, jsonOf, NOTHING_SENT, rows, upstream } from './recorded.ts';
import { accumulate, encodeAll } from './streams.ts';

/** A page of a test server, not a completion. */
const NO_COMPLETION = /test_invalid_response/;
const answers = rows.filter(
  (row) => row.kind === 'json' && (row.status ?? 200) < 400 && !NO_COMPLETION.test(row.file),
);
const refused = rows.filter((row) => row.kind === 'json' && (row.status ?? 200) >= 400);

interface Message {
  readonly content?: string | null | readonly { type: string; text?: string }[];
  readonly tool_calls?: readonly { id: string; function: { name: string; arguments: string } }[];
  readonly refusal?: string | null;
  readonly reasoning?: string | null;
  readonly reasoning_content?: string | null;
}
interface Completion extends JsonObject {
  readonly choices: readonly [{ readonly message: Message & JsonObject; finish_reason: string }];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly total_tokens: number;
    readonly prompt_audio_seconds?: number | null;
    readonly prompt_tokens_details?: {
      readonly cached_tokens?: number;
      readonly audio_tokens?: number;
    } | null;
    readonly completion_tokens_details?: { readonly reasoning_tokens?: number } | null;
  };
}

const textOf = ({ content }: Message = {}) =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('');

if (!haveFixtures) test.skip('SKIPPED: recorded replies are not available', () => {});
else {
  describe('recorded replies', () => {
    test('a decoded reply goes out unchanged to a client of this protocol', () => {
      expect(answers.length).toBeGreaterThan(500);
      for (const { file } of answers) {
        const body = jsonOf(file);
        const reply = openaiChat.decodeReply(body, upstream());
        expect({ file, out: openaiChat.encodeReply(reply, client()) }).toEqual({
          file,
          out: body as JsonObject,
        });
      }
    });

    test('a re-encoded reply has the same content', () => {
      for (const { file } of answers) {
        const body = jsonOf(file) as Completion;
        const { wire, ...reply } = openaiChat.decodeReply(body, upstream());
        const out = openaiChat.encodeReply(reply, client()) as Completion;
        const before = body.choices[0].message ?? {};
        const after = out.choices[0].message;
        expect({ file, text: textOf(after) }).toEqual({ file, text: textOf(before) });
        expect(after.refusal ?? '').toBe(before.refusal ?? '');
        const content = before.reasoning_content || before.reasoning;
        if (content)
          expect({ file, said: after.reasoning_content }).toEqual({ file, said: content });
        const calls = (message: Message) =>
          (message.tool_calls ?? []).map(({ function: f }) => [f.name, f.arguments || '{}']);
        if (before.function_call === undefined || before.function_call === null) {
          expect({ file, calls: calls(after) }).toEqual({ file, calls: calls(before) });
        }
        for (const [i, call] of (before.tool_calls ?? []).entries()) {
          if (call.id !== '') expect(after.tool_calls?.[i]?.id).toBe(call.id);
          expect(after.tool_calls?.[i]?.id).toBeTruthy();
        }
        if ((before.tool_calls ?? []).length > 0)
          expect(out.choices[0].finish_reason).toBe('tool_calls');
        // Some vendors count cached or reasoning tokens outside the total, so the total grows by them.
        const cached = Number(body.usage.prompt_tokens_details?.cached_tokens ?? 0);
        const beside = cached > body.usage.prompt_tokens ? cached : 0;
        // Mistral counts what it heard in the total alone.
        const { prompt_audio_seconds: isHeard } = body.usage;
        const heard = isHeard ? Number(body.usage.prompt_tokens_details?.audio_tokens) : 0;
        expect({ file, prompt: out.usage.prompt_tokens }).toEqual({
          file,
          prompt: body.usage.prompt_tokens + beside + heard,
        });
        const thought = Number(body.usage.completion_tokens_details?.reasoning_tokens ?? 0);
        const completion = body.usage.completion_tokens;
        const rest = body.usage.total_tokens - body.usage.prompt_tokens - heard - completion;
        // Gemini's thoughts are in the total alone.
        const unlisted = thought === 0 ? Math.max(0, rest) : 0;
        const listed = thought > completion || rest === thought ? thought : 0;
        expect({ file, completion: out.usage.completion_tokens }).toEqual({
          file,
          completion: completion + listed + unlisted,
        });
        expect(totalInput(reply.usage!) + totalOutput(reply.usage!)).toBe(out.usage.total_tokens);
        for (const count of Object.values(reply.usage!)) {
          if (typeof count === 'number') expect(count).toBeGreaterThanOrEqual(0);
        }
      }
    });

    test('the official SDK reads the same message from the reply as a stream', async () => {
      for (const { file } of answers) {
        const body = jsonOf(file) as Completion;
        const reply = openaiChat.decodeReply(body, upstream());
        const request = { ...NOTHING_SENT, settings: { stream: true, streamUsage: true } };
        const completion = await accumulate(encodeAll([...replyEvents(reply)], request));
        const { message } = completion.choices[0]!;
        expect({ file, text: message.content ?? '' }).toEqual({
          file,
          text: textOf(body.choices[0].message),
        });
        expect(message.tool_calls?.length ?? 0).toBe(
          reply.blocks.filter((block) => block.type === 'tool-call').length,
        );
      }
    });

    test('a digest agrees with the decoded reply', () => {
      let plain = 0;
      for (const { file } of answers) {
        const body = jsonOf(file);
        const reply = openaiChat.decodeReply(body, upstream());
        const response = openaiChat.digestReply(body);
        if (expectPlain(response, reply, file)) plain++;
        const { texts: _, ...digest } = response;
        expect({ file, ...digest }).toEqual({
          file,
          complete: true,
          semantic: reply.blocks.length > 0,
          answered: reply.blocks.some((block) => block.type !== 'reasoning'),
          finish: reply.finish,
          model: reply.model,
          ...(reply.usage === undefined ? {} : { usage: reply.usage }),
        });
      }
      expect(plain).toBeGreaterThan(0);
    });

    test('a JSON body that is not a completion is an upstream error', () => {
      const page = rows.find((row) => NO_COMPLETION.test(row.file) && row.kind === 'json')!;
      expect(() => openaiChat.decodeReply(jsonOf(page.file), upstream())).toThrow(GatewayError);
    });

    test('recorded error bodies keep the vendor message and get their kind', () => {
      const kinds: Record<string, string> = {};
      for (const { file, status } of refused) {
        const body = new TextDecoder().decode(fixtureBytes(file));
        const error = openaiChat.decodeError(status!, body, new Headers());
        const message = body.match(/"(?:message|detail)":\s*"([^"\\]+)/)?.[1] ?? '';
        expect(error.message).toContain(message);
        expect(error.fromUpstream).toBe(true);
        expect(error.status).toBe(status!);
        kinds[file.replace(/\/.*/, '')] = error.kind;
        expect({ file, kind: error.kind }).toEqual({
          file,
          kind: {
            400: 'invalid_request',
            401: 'authentication',
            404: 'not_found',
            429: 'rate_limit',
          }[status!]!,
        } as never);
      }
      expect(Object.keys(kinds).length).toBeGreaterThan(5);
    });
  });
}
