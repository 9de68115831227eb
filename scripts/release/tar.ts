/** Archives that depend on nothing but their content: ustar, gzip and the ar format of Debian packages. */

export interface Entry {
  /** Relative, with forward slashes; a folder ends in one. */
  readonly path: string;
  /** Permissions, e.g. 0o755. */
  readonly mode: number;
  readonly data: Uint8Array;
}

const NOTHING = new Uint8Array(0);
const encoder = new TextEncoder();

/** A file; text is written as UTF-8. */
export const file = (path: string, data: Uint8Array | string, mode = 0o644): Entry => ({
  path,
  mode,
  data: typeof data === 'string' ? encoder.encode(data) : data,
});

/** Every folder above the entries and the entries themselves, sorted, each once. */
export function withFolders(
  entries: readonly Entry[],
  modes: Record<string, number> = {},
): Entry[] {
  const folders = new Set<string>();
  for (const { path } of entries) {
    for (
      let at = path.indexOf('/');
      at >= 0 && at < path.length - 1;
      at = path.indexOf('/', at + 1)
    ) {
      folders.add(path.slice(0, at + 1));
    }
  }
  for (const { path } of entries) folders.delete(path);
  const made = [...folders].map((path) => ({ path, mode: modes[path] ?? 0o755, data: NOTHING }));
  return [...entries, ...made].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** One header of 512 bytes (POSIX.1-1988 ustar): root's, at the given time. */
function header({ path, mode, data }: Entry, seconds: number): Uint8Array {
  if (encoder.encode(path).length > 100) throw new Error(`too long for ustar: ${path}`);
  const block = new Uint8Array(512);
  const put = (at: number, text: string) => block.set(encoder.encode(text), at);
  const octal = (at: number, value: number, digits: number) =>
    put(at, `${value.toString(8).padStart(digits, '0')}\0`);
  put(0, path);
  octal(100, mode, 7);
  octal(108, 0, 7);
  octal(116, 0, 7);
  octal(124, data.length, 11);
  octal(136, seconds, 11);
  put(148, '        ');
  put(156, path.endsWith('/') ? '5' : '0');
  put(257, 'ustar\x0000');
  put(265, 'root');
  put(297, 'root');
  octal(
    148,
    block.reduce((sum, byte) => sum + byte, 0),
    6,
  );
  put(155, ' ');
  return block;
}

/** The entries in their order. `seconds`: their time, since 1970. */
export function tar(entries: readonly Entry[], seconds: number): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const entry of entries) {
    parts.push(header(entry, seconds), entry.data);
    parts.push(new Uint8Array((512 - (entry.data.length % 512)) % 512));
  }
  parts.push(new Uint8Array(1024));
  return concat(parts);
}

/** 1 is fast, 9 makes the smallest file. */
export type Level = 1 | 9;

/** Deterministic for a version of Bun: no name and no time in the header. */
export const gzip = (data: Uint8Array, level: Level = 9): Uint8Array =>
  Bun.gzipSync(data as Uint8Array<ArrayBuffer>, { level, library: 'libdeflate' });

/** The ar format as deb(5) wants it. */
export function ar(
  members: readonly (readonly [name: string, data: Uint8Array])[],
  seconds: number,
): Uint8Array {
  const parts: Uint8Array[] = [encoder.encode('!<arch>\n')];
  for (const [name, data] of members) {
    const fields = [
      name.padEnd(16),
      String(seconds).padEnd(12),
      '0'.padEnd(6),
      '0'.padEnd(6),
      '100644'.padEnd(8),
      String(data.length).padEnd(10),
    ];
    parts.push(encoder.encode(`${fields.join('')}\`\n`), data);
    if (data.length % 2 === 1) parts.push(encoder.encode('\n'));
  }
  return concat(parts);
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
