/** The worked example: one command of the binary plays a group chat whose members remember. */

import { expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runBinary } from '../support/binary.ts';

setDefaultTimeout(120_000);

for (const [lang, facts] of [
  [
    'zh',
    {
      teahouse: '听雨轩',
      birthday: '你说过：“大家好！我的生日在下周三',
      sunrise: '洱海边拍到了最美的日出',
    },
  ],
  [
    'en',
    {
      teahouse: 'Blue Kettle',
      birthday: 'You said: “Hello all! My birthday is on Wed',
      sunrise: 'photographed the sunrise',
    },
  ],
] as const) {
  test(`${lang}: a member answers from its own memory of earlier chats and of this one`, async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'hopgate-e2e-demo-'));
    const { code, stdout, stderr } = await runBinary(
      ['demo', 'group-chat', '--lang', lang, '--script'],
      {
        env: { TMPDIR: scratch },
      },
    );
    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout.split('\n');
    const contentOf = (who: string, what: string) =>
      lines.some((line) => line.startsWith(`${who}  `) && line.includes(what));
    const [ben, momo, ada] = lang === 'zh' ? ['老陈', 'Momo', '小雨'] : ['Ben', 'Momo', 'Ada'];
    expect(contentOf(ben, facts.teahouse)).toBe(true);
    // Spoken in the first round, captured, recalled in the third.
    expect(contentOf(momo, facts.birthday)).toBe(true);
    expect(contentOf(ada, facts.sunrise)).toBe(true);
    // Four rounds of three turns, each with three forced calls; four of the turns recall once more.
    const events = lines.filter((line) => line.startsWith('  ⚙ '));
    expect(events).toHaveLength(12);
    for (const name of ['is_mentioned', 'get_other_members_messages', 'recall_memory']) {
      expect(events.filter((line) => line.includes(name))).toHaveLength(12);
    }
    expect(events.filter((line) => line.includes('recall_memory ×2'))).toHaveLength(3);
    // What one member remembers from earlier chats never reaches the others.
    for (const line of events) {
      if (line.includes(facts.teahouse) && line.includes('recall_memory')) {
        const speaker = lines.slice(lines.indexOf(line)).find((next) => !next.startsWith('  ⚙ '));
        expect([ben, ada, momo].some((name) => speaker?.startsWith(name))).toBe(true);
      }
    }
    expect(stdout).not.toMatch(/DSML|function_calls|undefined|\[object/);
    // The demo leaves no files behind.
    expect(readdirSync(scratch)).toEqual([]);
    rmSync(scratch, { recursive: true });
  });
}

test('an unknown scenario and a missing configuration are refused', async () => {
  const wrong = await runBinary(['demo', 'opera']);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('group-chat')]);
  const args = ['demo', '--model', 'm', '--config', '/nowhere/hopgate.yaml', '--script'];
  const scratch = mkdtempSync(join(tmpdir(), 'hopgate-e2e-demo-'));
  const lost = await runBinary(args, { env: { TMPDIR: scratch } });
  expect([lost.code, lost.stderr]).toEqual([1, expect.stringContaining('/nowhere/hopgate.yaml')]);
  expect(readdirSync(scratch)).toEqual([]);
  rmSync(scratch, { recursive: true });
});
