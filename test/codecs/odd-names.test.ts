/** Names that every object inherits (`__proto__`, `constructor`) are ordinary names in every position. */

import { describe, expect, test } from 'bun:test';
import { LINT } from '../../src/app/linters.ts';
import { withParts } from '../../src/conversation/edit.ts';
import { GatewayError } from '../../src/conversation/errors.ts';
import { Notes } from '../../src/conversation/notes.ts';
import type { Target } from '../../src/conversation/target.ts';
import { repairBody, toolPairing } from '../../src/features/tool-pairing/index.ts';
import { vendorFit } from '../../src/features/vendor-fit/index.ts';
import { SseParser } from '../../src/lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject } from '../../src/lib/json/json.ts';
import { profileFor } from '../../src/routing/index.ts';
import { PROFILES } from '../../src/vendors/index.ts';
import { PROTOCOLS } from '../gateway/scripted.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';
import { BODIES, mutants, REPLIES, STREAMS } from './odd-names.ts';

const NAMES = Object.keys(PROTOCOLS) as ProtocolName[];
const VENDORS: Readonly<Record<ProtocolName, readonly string[]>> = {
  'openai-chat': ['none', 'glm', 'deepseek', 'mistral'],
  'openai-responses': ['none', 'openai'],
  'anthropic-messages': ['none', 'anthropic'],
};

const targetOf = (protocol: ProtocolName, vendor = 'none'): Target => ({
  provider: 'up',
  model: 'm',
  protocol,
  profile: profileFor(PROFILES[vendor]!, 'm'),
});

/** Traces that JSON.stringify would not show: inherited functions, changed prototypes. */
function unsound(value: unknown, at = ''): readonly string[] {
  if (typeof value === 'function') return [`${at} is a function`];
  if (typeof value === 'string') return value.includes('[native code]') ? [`${at}: ${value}`] : [];
  if (Array.isArray(value)) return value.flatMap((one, i) => unsound(one, `${at}/${i}`));
  if (typeof value !== 'object' || value === null || !isObject(value)) return [];
  const own = Object.entries(value).flatMap(([key, one]) => unsound(one, `${at}/${key}`));
  const plain = Object.getPrototypeOf(value) === Object.prototype || value instanceof Error;
  return plain ? own : [...own, `${at} has another prototype`];
}

/** Runs the function; it may throw a client or upstream error, and nothing else. */
function attempt(what: string, run: () => unknown): readonly string[] {
  try {
    return unsound(run()).map((found) => `${what}: ${found}`);
  } catch (thrown) {
    return thrown instanceof GatewayError ? [] : [`${what}: threw ${String(thrown)}`];
  }
}

describe('a request with an inherited name', () => {
  for (const from of NAMES) {
    test(`${from}: the request is encoded for every target, or refused with a message`, () => {
      const wrong = mutants(BODIES[from]).flatMap(([what, body]) =>
        NAMES.flatMap((to) =>
          VENDORS[to].flatMap((vendor) =>
            attempt(`${what}, for ${vendor} (${to})`, () => {
              const notes = new Notes();
              const request = PROTOCOLS[from].decodeRequest(repairBody(body, from, notes));
              const target = targetOf(to, vendor);
              const context = { target, client: from, notes, hop: 1 };
              const paired = toolPairing.request!(request, context);
              const fitted = vendorFit().request!(paired, context);
              return PROTOCOLS[to].encodeRequest(fitted, target, notes);
            }),
          ),
        ),
      );
      expect(wrong).toEqual([]);
    });

    test(`${from}: unknown members survive a change of another one`, () => {
      const body = JSON.parse(
        `${JSON.stringify(BODIES[from]).slice(0, -1)},"__proto__":{"a":1},"constructor":2}`,
      );
      const request = PROTOCOLS[from].decodeRequest(body);
      const rest = { ...request.settings.rest };
      const settings = { ...request.settings, temperature: 0.5, rest };
      const sent = PROTOCOLS[from].encodeRequest(
        withParts(request, { settings }),
        targetOf(from),
        new Notes(),
      );
      expect(JSON.stringify(sent)).toContain('"__proto__":{"a":1}');
      expect(JSON.stringify(sent)).toContain('"constructor":2');
      expect(sent.temperature).toBe(0.5);
    });

    test(`${from}: the linter accepts it as input`, () => {
      const wrong = mutants(BODIES[from]).flatMap(([what, body]) => [
        ...attempt(what, () => LINT.linters[from].request(body)),
        ...attempt(what, () => LINT.vendor(body, targetOf(from, VENDORS[from][1]))),
      ]);
      expect(wrong).toEqual([]);
    });
  }
});

describe('an answer with an inherited name', () => {
  for (const from of NAMES) {
    const context = () => {
      const sent = PROTOCOLS[from].decodeRequest(BODIES[from]);
      return { sent, target: targetOf(from), notes: new Notes() };
    };
    const client = (to: ProtocolName) => ({
      request: PROTOCOLS[to].decodeRequest(BODIES[to]),
      requestId: 'req_1',
      provider: 'up',
      notes: new Notes(),
    });

    test(`${from}: the stream is encoded for every client, or fails with a message`, () => {
      const frames = STREAMS[from];
      const wrong = frames.flatMap((frame, i) =>
        mutants(frame).flatMap(([what, mutant]) =>
          NAMES.flatMap((to) =>
            attempt(`frame ${i}${what}, for ${to}`, () => {
              const all = frames.map((one, j) => (i === j ? (mutant as JsonObject) : one));
              const decoder = PROTOCOLS[from].decodeStream(context());
              const encoder = PROTOCOLS[to].encodeStream(client(to));
              const events = [
                ...parsed(all, from).flatMap((one) => decoder.push(one)),
                ...decoder.end(),
              ];
              const text = events.map((event) => encoder.event(event)).join('');
              return [events, text, PROTOCOLS[from].digestStream(parsed(all, from))] as unknown;
            }),
          ),
        ),
      );
      expect(wrong).toEqual([]);
    });

    test(`${from}: the error is encoded for every client`, () => {
      const wrong = mutants(ERROR).flatMap(([what, body]) =>
        NAMES.flatMap((to) =>
          attempt(`${what}, for ${to}`, () => {
            const error = PROTOCOLS[from].decodeError(400, JSON.stringify(body), new Headers());
            return [error.kind, PROTOCOLS[to].encodeError(error, 'req_1')];
          }),
        ),
      );
      expect(wrong).toEqual([]);
    });

    test(`${from}: the linter accepts the stream as input`, () => {
      const frames = STREAMS[from];
      const wrong = frames.flatMap((frame, i) =>
        mutants(frame).flatMap(([what, mutant]) =>
          attempt(`frame ${i}${what}`, () => {
            const linter = LINT.linters[from].stream();
            const all = frames.map((one, j) => (i === j ? (mutant as JsonObject) : one));
            return [...parsed(all, from).flatMap((one) => linter.push(one)), ...linter.end()];
          }),
        ),
      );
      expect(wrong).toEqual([]);
    });

    test(`${from}: a whole reply is encoded for every client, or fails with a message`, () => {
      const wrong = mutants(REPLIES[from]).flatMap(([what, body]) =>
        NAMES.flatMap((to) =>
          attempt(`${what}, for ${to}`, () => {
            const { wire: _, ...reply } = PROTOCOLS[from].decodeReply(body as Json, context());
            return [
              PROTOCOLS[to].encodeReply(reply, client(to)),
              PROTOCOLS[from].digestReply(body),
            ];
          }),
        ),
      );
      expect(wrong).toEqual([]);
    });
  }
});

const ERROR = {
  type: 'error',
  error: { type: 'rate_limit_error', code: 'rate_limit', message: 'slow down', param: 'model' },
};

const parsed = (frames: readonly JsonObject[], from: ProtocolName) =>
  new SseParser().push(
    new TextEncoder().encode(
      frames
        .map((frame) => {
          const head = from === 'openai-chat' ? '' : `event: ${String(frame.type)}\n`;
          return `${head}data: ${JSON.stringify(frame)}\n\n`;
        })
        .join(''),
    ),
  );
