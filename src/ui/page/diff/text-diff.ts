/** Compares two texts word by word: equal, removed and added parts. */

export interface TextPart {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** Most pairs of words that are compared; larger texts only get their common beginning and end. */
const MOST = 1_000_000;

const wordsOf = (text: string): readonly string[] =>
  text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

/** The parts in reading order; neighbours of one kind are one part. */
export function diffText(a: string, b: string): readonly TextPart[] {
  const x = wordsOf(a);
  const y = wordsOf(b);
  let head = 0;
  while (head < x.length && head < y.length && x[head] === y[head]) head++;
  let tail = 0;
  const most = Math.min(x.length, y.length) - head;
  while (tail < most && x[x.length - 1 - tail] === y[y.length - 1 - tail]) tail++;
  const parts: TextPart[] = [{ kind: 'same', text: x.slice(0, head).join('') }];
  const left = x.slice(head, x.length - tail);
  const right = y.slice(head, y.length - tail);
  if (left.length * right.length > MOST) {
    parts.push({ kind: 'removed', text: left.join('') }, { kind: 'added', text: right.join('') });
  } else parts.push(...middle(left, right));
  parts.push({ kind: 'same', text: x.slice(x.length - tail).join('') });
  return joined(parts);
}

/** By a longest common subsequence. */
function middle(x: readonly string[], y: readonly string[]): readonly TextPart[] {
  const width = y.length + 1;
  const table = new Uint32Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      table[i * width + j] =
        x[i] === y[j]
          ? table[(i + 1) * width + j + 1]! + 1
          : Math.max(table[(i + 1) * width + j]!, table[i * width + j + 1]!);
    }
  }
  const parts: TextPart[] = [];
  let i = 0;
  let j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      parts.push({ kind: 'same', text: x[i]! });
      i++;
      j++;
    } else if (
      j >= y.length ||
      (i < x.length && table[(i + 1) * width + j]! >= table[i * width + j + 1]!)
    ) {
      parts.push({ kind: 'removed', text: x[i++]! });
    } else parts.push({ kind: 'added', text: y[j++]! });
  }
  return parts;
}

function joined(parts: readonly TextPart[]): readonly TextPart[] {
  const all: TextPart[] = [];
  for (const part of parts) {
    if (part.text === '') continue;
    const last = all.at(-1);
    if (last?.kind === part.kind) all[all.length - 1] = { ...last, text: last.text + part.text };
    else all.push(part);
  }
  return all;
}
