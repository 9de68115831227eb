/** A session in the list and on its page: both name the same conversation as the main one. */

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import type { SessionRow, SessionView } from '../../../src/ui/api/api.ts';
import { say } from '../../support/fake-upstream/index.ts';
import { until } from '../../support/until.ts';
import { type ApiSetup, startApiSetup } from '../api-setup.ts';

setDefaultTimeout(60_000);

let world: ApiSetup;
beforeAll(async () => {
  world = await startApiSetup();
});
afterAll(() => world.stop());

const LONG = 'Fix the login bug in the parser. '.repeat(200);
const user = (content: string) => ({ role: 'user', content });
const answer = { role: 'assistant', content: 'Done.' };
/** A conversation of so many exchanges. */
const turns = (first: string, count: number) =>
  Array.from({ length: count }, (_, i) => [
    user(first),
    ...Array.from({ length: i }, (_, j) => [answer, user(`Step ${j}`)]).flat(),
  ]);

test.each([
  ['a small job comes first', [...turns('Write a title.', 1), ...turns(LONG, 2)], LONG],
  ['a subagent has more exchanges', [...turns(LONG, 1), ...turns('Look for it.', 4)], LONG],
  ['there is one conversation', turns('Hello.', 2), 'Hello.'],
])(
  'the list and the page of a session name the same main conversation: %s',
  async (name, all, main) => {
    const session = name.replaceAll(' ', '-');
    for (const messages of all) {
      // Of the vendor's own count: an exchange with tool runs has large bodies without a large prompt.
      const input = JSON.stringify(messages).length;
      world.upstream.enqueue(say('Done.', { usage: { input, output: 2 } }));
      await world.post(
        '/v1/messages',
        { model: 'via-chat', max_tokens: 99, messages },
        { 'x-claude-code-session-id': session },
      );
    }
    const view = () => world.json<SessionView>(`sessions/${session}`);
    await until(async () => {
      const { steps = [] } = (await view().catch(() => undefined)) ?? {};
      return steps.filter(({ row }) => row.state === 'done').length === all.length;
    });
    const { sessions } = await world.json<{ sessions: readonly SessionRow[] }>('sessions');
    const first = sessions.find(({ id }) => id === session)!.first;
    const { steps, threads } = await view();
    expect(threads[0]!.title).toStartWith(main.slice(0, 20));
    expect(steps.find(({ row }) => row.id === first)!.thread).toBe(0);
  },
);
