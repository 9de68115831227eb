/** Large unused buffers are collected soon, even while memory is plentiful. */

import { test } from 'bun:test';
import { madeLarge } from '../../../src/lib/loop/large-garbage.ts';
import { until } from '../../support/until.ts';

const MB = 1024 * 1024;

function made(count: number): WeakRef<Uint8Array>[] {
  return Array.from({ length: count }, () => {
    const buffer = new Uint8Array(40 * MB);
    madeLarge(buffer.length);
    return new WeakRef(buffer);
  });
}

test('large buffers are collected soon after they are let go', async () => {
  const refs = made(6);
  const left = () => refs.filter((ref) => ref.deref() !== undefined).length;
  // The stack may still show one or two of them.
  await until(() => left() <= 2);
});
