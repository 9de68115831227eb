/** The linked list holds what a plain array would hold, in its order, and keeps nothing that was removed. */

import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { type Linked, LinkedList } from '../../../src/lib/loop/linked-list.ts';

interface Entry extends Linked<Entry> {
  readonly id: number;
}

const entry = (id: number): Entry => ({ id, before: undefined, next: undefined });
function ids(list: LinkedList<Entry>): number[] {
  const found: number[] = [];
  for (let one = list.first; one !== undefined; one = one.next) found.push(one.id);
  return found;
}

test('it is an array to which entries are added and from which any is removed', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constant(undefined), fc.nat(20))), (steps) => {
      const list = new LinkedList<Entry>();
      const model: Entry[] = [];
      let next = 0;
      for (const at of steps) {
        if (at === undefined) {
          const one = entry(next++);
          list.add(one);
          model.push(one);
        } else if (model.length > 0) {
          const [one] = model.splice(at % model.length, 1);
          list.remove(one!);
          expect([one!.before, one!.next]).toEqual([undefined, undefined]);
        }
        expect(ids(list)).toEqual(model.map(({ id }) => id));
        expect(list.size).toBe(model.length);
      }
    }),
  );
});

test('an entry that was removed can be added again', () => {
  const list = new LinkedList<Entry>();
  const one = entry(1);
  for (let round = 0; round < 3; round++) {
    list.add(one);
    expect(ids(list)).toEqual([1]);
    list.remove(one);
    expect(ids(list)).toEqual([]);
  }
});

test('the entry that is looked at may be removed, and the others are still found', () => {
  const list = new LinkedList<Entry>();
  for (let id = 0; id < 6; id++) list.add(entry(id));
  const seen: number[] = [];
  for (const one of list.all()) {
    seen.push(one.id);
    if (one.id % 2 === 0) list.remove(one);
  }
  expect(seen).toEqual([0, 1, 2, 3, 4, 5]);
  expect(ids(list)).toEqual([1, 3, 5]);
});
