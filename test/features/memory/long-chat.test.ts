/** A chat of 200 turns through the whole gateway: each is captured once, with the app's times, and recalled before the next. */

import { expect, test } from 'bun:test';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { threeProviders } from '../../support/binary.ts';
import { say, startFakeUpstream } from '../../support/fake-upstream/index.ts';
import { startInProcess } from '../../support/in-process.ts';
import { until } from '../../support/until.ts';

const TURNS = 200;
const BEGAN = Date.parse('2026-01-01T08:00:00Z');
const DAY = 86_400_000;
const shipOf = (turn: number) => `ship${turn * 7919}`;
const timeOf = (turn: number) => new Date(BEGAN + turn * DAY).toISOString();

test('two hundred turns with capture and forced recall', async () => {
  const upstream = await startFakeUpstream();
  upstream.answerWith(() => say('I see.'));
  const gateway = await startInProcess(threeProviders(upstream));
  try {
    const ask = async (turn: number, question: string) => {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'via-chat',
          messages: [{ role: 'user', content: question }],
          hopgate: {
            conversation: {
              mode: 'group',
              self: { id: 'a', name: 'Ann' },
              others: [
                { from: 'Bob', text: `Today I saw the ${shipOf(turn)}.`, time: timeOf(turn) },
              ],
            },
            memory: { space: 's', recall: 'always', capture: true },
          },
        }),
      });
      expect(response.status).toBe(200);
      await response.text();
    };
    const seen = async () => {
      const response = await fetch(`${gateway.url}/v1/memory/s/events?order=asc&limit=1000`);
      if (!response.ok) return [];
      const { events } = (await response.json()) as { events: readonly JsonObject[] };
      return events.filter(({ source }) => source === 'Bob');
    };
    for (let turn = 0; turn < TURNS; turn++) {
      await ask(turn, `Question ${turn}: what about the ${shipOf(Math.floor(turn / 2))}?`);
    }
    await until(async () => (await seen()).length >= TURNS);
    const events = await seen();
    expect(events.map(({ text }) => text)).toEqual(
      Array.from({ length: TURNS }, (_, turn) => `Today I saw the ${shipOf(turn)}.`),
    );
    expect(events.map(({ time }) => new Date(time as string).toISOString())).toEqual(
      Array.from({ length: TURNS }, (_, turn) => timeOf(turn)),
    );
    await ask(TURNS, `When did Bob see the ${shipOf(3)}?`);
    const sent = JSON.stringify(upstream.modelRequests.at(-1)!.body);
    expect(sent).toContain(`saw the ${shipOf(3)}.`);
    expect(sent).toContain(timeOf(3).slice(0, 10));
    expect(upstream.refusals).toEqual([]);
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
}, 120_000);
