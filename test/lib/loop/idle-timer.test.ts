/** Idle timers: which ones fire, and when. */

import { describe, expect, test } from 'bun:test';
import { startIdleTimer } from '../../../src/lib/loop/idle-timer.ts';

const wait = (ms: number) => Bun.sleep(ms);

describe('silence', () => {
  test('fires after its time, again after the same time, and not once it is stopped', async () => {
    let told = 0;
    const watch = startIdleTimer(150, () => told++);
    await wait(500);
    expect(told).toBeGreaterThanOrEqual(1);
    const before = told;
    await wait(400);
    expect(told).toBeGreaterThan(before);
    watch.stop();
    watch.stop();
    const after = told;
    await wait(400);
    expect(told).toBe(after);
  });

  test('a timer that is touched all the time never fires', async () => {
    let told = 0;
    const watch = startIdleTimer(300, () => told++);
    for (let i = 0; i < 12; i++) {
      await wait(50);
      watch.touch();
    }
    watch.stop();
    expect(told).toBe(0);
  });

  test('with a callback for activity: idle only when it reports none', async () => {
    let told = 0;
    let happened = true;
    const stirring = {
      takeActivity() {
        const was = happened;
        happened = false;
        return was;
      },
    };
    const watch = startIdleTimer(600, () => told++, stirring);
    for (let i = 0; i < 16; i++) {
      await wait(50);
      happened = true;
    }
    expect(told).toBe(0);
    await wait(1_500);
    watch.stop();
    expect(told).toBeGreaterThanOrEqual(1);
  });

  test('no limit never fires', async () => {
    let told = 0;
    for (const ms of [0, -1, Number.POSITIVE_INFINITY]) startIdleTimer(ms, () => told++).touch();
    await wait(250);
    expect(told).toBe(0);
  });

  test('a callback may stop any timer: that one does not fire, all others do', async () => {
    const told: number[] = [];
    const stopped = new Set<number>();
    const wrong: number[] = [];
    const watches = Array.from({ length: 40 }, (_, i) =>
      startIdleTimer(100, () => {
        told.push(i);
        if (stopped.has(i)) wrong.push(i);
        for (const other of [i, (i * 7 + 3) % 40, (i + 1) % 40]) {
          if (other % 4 === 0) continue;
          stopped.add(other);
          watches[other]!.stop();
        }
      }),
    );
    await wait(1_000);
    for (const watch of watches) watch.stop();
    expect(wrong).toEqual([]);
    for (let i = 0; i < 40; i += 4) expect(told).toContain(i);
  });
});
