/** Sessions of answers: what continues one belongs to its session, for its owner alone and within a bound. */

import { expect, test } from 'bun:test';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { AnswerSessions } from '../../src/gateway/tries/answer-sessions.ts';
import { ExchangeSession } from '../../src/gateway/tries/exchange-session.ts';
import type { Exchange } from '../../src/gateway/types.ts';

const exchange = (owner: string, sessionId = '') =>
  ({ id: 'req_1', owner, sessionId, protocol: openaiResponses }) as unknown as Exchange;
const bodyOf = (body: object) => Buffer.from(JSON.stringify({ model: 'm', ...body }));
const FIRST = bodyOf({ input: 'The first question.' });
const next = (id: unknown) => bodyOf({ input: 'Go on.', previous_response_id: id });

test('a chain of any length is one session, and a fork of it too', () => {
  const sessions = new AnswerSessions();
  const session = (body: Uint8Array) => new ExchangeSession(exchange('a'), body, sessions);
  const of = (body: Uint8Array) => session(body).affinity;
  sessions.learn('resp_0', 'a', session(FIRST));
  for (let turn = 1; turn < 50; turn++) {
    sessions.learn(`resp_${turn}`, 'a', session(next(`resp_${turn - 1}`)));
  }
  expect(of(next('resp_49'))).toBe(of(FIRST));
  expect(of(next('resp_7'))).toBe(of(FIRST));
  expect(of(bodyOf({ input: 'Another question.' }))).not.toBe(of(FIRST));
});

test('another owner, an unknown id and what is no id say nothing', () => {
  const sessions = new AnswerSessions();
  sessions.learn('resp_0', 'a', { affinity: 'a session of a' });
  expect(sessions.continuedBy(exchange('a'), next('resp_0'))).toBe('a session of a');
  expect(sessions.continuedBy(exchange('b'), next('resp_0'))).toBeUndefined();
  for (const id of ['resp_1', '', 7, null, {}, 'x'.repeat(100_000)]) {
    expect(sessions.continuedBy(exchange('a'), next(id))).toBeUndefined();
  }
  expect(sessions.continuedBy(exchange('a'), Buffer.from('no JSON'))).toBeUndefined();
});

test('the client’s own sign comes first', () => {
  const sessions = new AnswerSessions();
  sessions.learn('resp_0', 'a', { affinity: 'that of the answer' });
  const told = new ExchangeSession(exchange('a', 'mine'), next('resp_0'), sessions);
  expect(told.affinity).toBe('mine');
});

test('the oldest answers are forgotten', () => {
  const sessions = new AnswerSessions();
  for (let i = 0; i <= 20_000; i++) sessions.learn(`resp_${i}`, 'a', { affinity: `s${i}` });
  expect(sessions.continuedBy(exchange('a'), next('resp_0'))).toBeUndefined();
  expect(sessions.continuedBy(exchange('a'), next('resp_1'))).toBe('s1');
});
