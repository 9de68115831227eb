/** Every recorded JSON answer is the same after decoding and encoding; recorded errors keep their kind. */

import { describe, expect, test } from 'bun:test';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { GatewayError } from '../../../src/conversation/errors.ts';
import type { Reply } from '../../../src/conversation/events.ts';
import type { Block } from '../../../src/conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../src/lib/json/json.ts';
import { haveFixtures } from '../../support/fixtures.ts';
import { expectPlain } from '../../support/plain-reply.ts';
import { bodyOf, client, conversation, plain, recorded, requestOf, upstream } from './material.ts';

if (!haveFixtures) test.skip('recorded replies: SKIPPED, ../shared/fixtures is absent', () => {});

const answers = recorded
  .filter((row) => row.kind === 'json')
  .map((row) => ({ row, body: JSON.parse(bodyOf(row)) as Json }))
  .filter(({ body }) => isObject(body) && body.object === 'response' && body.status !== 'queued');

const SEALING = { model: 'm', input: 'i', include: ['reasoning.encrypted_content'] };

function contentOf(block: Block): Json {
  const { wire: _, residue: __, ...rest } = block as Block & { residue?: unknown };
  // Unsealed reasoning comes back with a seal that holds only its maker.
  if (rest.type === 'reasoning' && rest.sealed?.value === '') {
    const { sealed: ___, ...unsealed } = rest;
    return plain(unsealed);
  }
  if (rest.type !== 'text') return plain(rest);
  return plain({ ...rest, citations: rest.citations?.map(({ wire: ___, ...c }) => c) });
}

describe.skipIf(!haveFixtures)('recorded replies', () => {
  test('hundreds of recorded replies are available', () => {
    expect(answers.length).toBeGreaterThan(300);
  });

  test('an unchanged reply goes out as it came', () => {
    for (const { row, body } of answers) {
      const request = conversation(requestOf(row));
      const reply = openaiResponses.decodeReply(body, upstream(request));
      expect(openaiResponses.encodeReply(reply, client(request)) as Json, row.file).toBe(body);
    }
  });

  test('a reply has the same content after encoding and decoding', () => {
    for (const { row, body } of answers) {
      const request = conversation(requestOf(row));
      const { wire: _, ...reply } = openaiResponses.decodeReply(body, upstream(request));
      const encoded = openaiResponses.encodeReply(reply, client(conversation(SEALING)));
      const again = openaiResponses.decodeReply(encoded, upstream(request));
      expect(again.blocks.map(contentOf), row.file).toEqual(reply.blocks.map(contentOf));
      expect([again.finish, again.model, again.created, again.usage], row.file).toEqual([
        reply.finish,
        reply.model,
        reply.created,
        // The details are required on the wire, so missing counts become 0. A cost is no part of the protocol.
        reply.usage && { cacheRead: 0, reasoning: 0, ...reply.usage, nanoUsd: undefined },
      ]);
    }
  });

  test('usage survives decoding and encoding with the same counts', () => {
    let compared = 0;
    for (const { row, body } of answers) {
      const usage = isObject(body) ? body.usage : undefined;
      if (!isObject(usage)) continue;
      const request = conversation(requestOf(row));
      const { wire: _, ...reply } = openaiResponses.decodeReply(body, upstream(request));
      const encoded = openaiResponses.encodeReply(reply, client(request)).usage as JsonObject;
      expect(encoded.input_tokens, row.file).toBe(usage.input_tokens);
      expect(encoded.output_tokens, row.file).toBe(usage.output_tokens);
      compared++;
    }
    expect(compared).toBeGreaterThan(300);
  });

  test('the digest of a reply agrees with its decoding', () => {
    for (const { row, body } of answers) {
      const request = conversation(requestOf(row));
      const reply: Reply = openaiResponses.decodeReply(body, upstream(request));
      const digest = openaiResponses.digestReply(body);
      expectPlain(digest, reply, row.file);
      expect(
        { complete: digest.complete, finish: digest.finish, usage: digest.usage },
        row.file,
      ).toEqual({ complete: true, finish: reply.finish, usage: reply.usage });
      const spoken = reply.blocks.some(
        (block) =>
          !('text' in block && (block.text === '' || block.text === undefined)) ||
          block.type === 'opaque',
      );
      expect(digest.semantic, row.file).toBe(spoken);
    }
  });

  test('recorded errors get the right kind', () => {
    const kinds = new Map<string, string>();
    for (const row of recorded) {
      if (row.kind !== 'json' || (row.status ?? 200) < 400) continue;
      const error = openaiResponses.decodeError(row.status ?? 500, bodyOf(row), new Headers());
      expect(error).toBeInstanceOf(GatewayError);
      expect(error.fromUpstream, row.file).toBe(true);
      expect(error.message.length, row.file).toBeGreaterThan(10);
      kinds.set(error.code ?? '', error.kind);
    }
    expect(Object.fromEntries(kinds)).toMatchObject({
      invalid_api_key: 'authentication',
      model_not_found: 'not_found',
      context_length_exceeded: 'context_overflow',
      unsupported_value: 'invalid_request',
    });
  });
});
