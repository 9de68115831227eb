/** A profile names the functions that cost, and counts native code and the kernel with those that called them. */

import { describe, expect, test } from 'bun:test';
import { CompiledCode, callTree, samplesOf, treeLines } from '../../bench/profile-samples.ts';

/** A dump in the jitdump format with code of these names at these addresses. */
function dump(...loads: readonly (readonly [name: string, start: number, size: number])[]): Buffer {
  const header = Buffer.alloc(40);
  header.writeUInt32LE(0x4a695444, 0);
  header.writeUInt32LE(40, 8);
  const records = loads.map(([name, start, size]) => {
    const text = Buffer.from(`${name}\0`);
    const record = Buffer.alloc(56 + text.length + size);
    record.writeUInt32LE(record.length, 4);
    record.writeBigUInt64LE(BigInt(start), 32);
    record.writeBigUInt64LE(BigInt(size), 40);
    text.copy(record, 56);
    return record;
  });
  const other = Buffer.alloc(24);
  other.writeUInt32LE(2, 0);
  other.writeUInt32LE(24, 4);
  return Buffer.concat([header, other, ...records]);
}

const CODE = dump(
  ['JSC-DFG: old#AAAAAA', 0x1000, 0x100],
  ['JSC-FTL: read#BBBBBB', 0x1000, 0x80],
  ['JSC-Baseline: #CCCCCC', 0x2000, 0x10],
  ['JSC-Thunk: CallTrampoline', 0x3000, 0x10],
);

describe('compiled code', () => {
  const code = new CompiledCode(CODE);

  test('an address inside a function has its name, whatever compiled it', () => {
    expect(code.at(0x1000)).toBe('read');
    expect(code.at(0x107f)).toBe('read');
    expect(code.at(0x2008)).toBe('(anonymous CCCCCC)');
  });

  test('code of the engine, and an address outside of all code, has none', () => {
    expect(code.at(0x3001)).toBeUndefined();
    expect(code.at(0x0fff)).toBeUndefined();
    expect(code.at(0x2010)).toBeUndefined();
    expect(code.at(Number.NaN)).toBeUndefined();
  });

  test('a dump that is cut anywhere is read as far as it goes', () => {
    for (let end = 0; end <= CODE.length; end++) {
      expect(() => new CompiledCode(CODE.subarray(0, end)).at(0x1000)).not.toThrow();
    }
  });
});

const SCRIPT = `hopgate
\tffffffff81 __send ([kernel.kallsyms])
\t    555500 [unknown] (/opt/hopgate)
\t      1010 [unknown] ([JIT] tid 7)
\t      2004 [unknown] ([JIT] tid 7)

hopgate
\t      1020 [unknown] ([JIT] tid 7)
\t      3004 [unknown] ([JIT] tid 7)
\t      2004 [unknown] ([JIT] tid 7)

hopgate
\t    555700 malloc (libc.so.6)

HeapHelper
\t    555800 [unknown] (/opt/hopgate)
`;

test('samples become a tree: what has no name counts with its caller, threads stay apart', () => {
  const samples = [...samplesOf(SCRIPT, new CompiledCode(CODE))];
  expect(samples.map(({ thread }) => thread)).toEqual([
    'hopgate',
    'hopgate',
    'hopgate',
    'HeapHelper',
  ]);
  const root = callTree(samples.filter(({ thread }) => thread === 'hopgate'));
  expect(root.total).toBe(3);
  expect(root.spent).toEqual({ function: 0, native: 1, kernel: 0 });
  const outer = root.callees.get('(anonymous CCCCCC)')!;
  expect(outer.total).toBe(2);
  const inner = outer.callees.get('read')!;
  expect(inner.spent).toEqual({ function: 1, native: 0, kernel: 1 });
  expect(treeLines(root, 10, 2)).toEqual([
    '   total     own  native  kernel',
    '    30.0     0.0    10.0     0.0  event loop',
    '    20.0     0.0     0.0     0.0    (anonymous CCCCCC)',
    '    20.0    10.0     0.0    10.0      read',
  ]);
});
