/** Amounts as people write them, `5 minutes` or `50MB`, in the unit in which a number is wanted; and sizes for people. */

export type Unit = 'seconds' | 'bytes';

const FACTORS: Readonly<Record<Unit, Readonly<Record<string, number>>>> = {
  seconds: {
    ms: 0.001,
    s: 1,
    sec: 1,
    second: 1,
    m: 60,
    min: 60,
    minute: 60,
    h: 3600,
    hour: 3600,
    d: 86_400,
    day: 86_400,
  },
  bytes: {
    b: 1,
    byte: 1,
    k: 1024,
    kb: 1024,
    kib: 1024,
    m: 2 ** 20,
    mb: 2 ** 20,
    mib: 2 ** 20,
    g: 2 ** 30,
    gb: 2 ** 30,
    gib: 2 ** 30,
  },
};

/** The number that a text means; undefined where it is no amount, or one of something else. */
export function amountIn(text: string, unit: Unit | undefined): number | undefined {
  const found = /^\s{0,9}(\d{1,15}(?:\.\d{1,9})?)[ _]?([a-z]{0,12})\s{0,9}$/i.exec(text);
  if (found === null) return undefined;
  const [, digits = '', word = ''] = found;
  if (word === '') return Number(digits);
  if (unit === undefined) return undefined;
  const name = word.toLowerCase();
  const factors = FACTORS[unit];
  const single = name.length > 1 && name.endsWith('s') ? name.slice(0, -1) : name;
  const factor = Object.hasOwn(factors, name)
    ? factors[name]
    : Object.hasOwn(factors, single)
      ? factors[single]
      : undefined;
  // Thousandths are as fine as any of them is read.
  return factor === undefined ? undefined : Math.round(Number(digits) * factor * 1000) / 1000;
}

/** `312 B`, `41 KB`, `5.2 MB`. */
export function bytesText(count: number): string {
  if (count < 1000) return `${count} B`;
  const [value, unit] = count < 1e6 ? [count / 1e3, 'KB'] : [count / 1e6, 'MB'];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}
