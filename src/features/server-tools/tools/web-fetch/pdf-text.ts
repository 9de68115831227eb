/** The text of a PDF, read by a helper process that is ended when it takes too long or too much memory. */

import { readFileSync } from 'node:fs';
import { readUpTo } from '../../../../lib/http/read-up-to.ts';
import { tryParse } from '../../../../lib/json/json.ts';
import { limitParallel } from '../../../../lib/loop/limit-parallel.ts';
import { ownProgram } from '../../../../lib/process/own-program.ts';
import { PDF_READER, type PdfResult } from '../../../../lib/process/pdf-reader.ts';
import { ToolError } from '../../tool.ts';
import type { FetchedPage } from './messages-result.ts';

type PdfText = Omit<FetchedPage, 'url'>;

/** Pages of one document that are read at most. */
const MAX_PAGES = 300;
/** Milliseconds that one document may take. */
const MAX_MS = 15_000;
/** Resident bytes of a helper. A compressed page can unfold to gigabytes. */
const MAX_RSS_BYTES = 768 * 1024 * 1024;
const LOOK_MS = 50;
const PAGE_BYTES = 4096;

/** Each helper takes about a core and 100 MB. */
const limited = limitParallel(2);

/**
 * @param enough characters after which no further page is read
 * @throws ToolError for a document that cannot be read, the signal's reason
 */
export function pdfText(bytes: Uint8Array, enough: number, cutOff: boolean, signal: AbortSignal) {
  return limited(() => read(bytes, enough, cutOff, signal));
}

async function read(
  bytes: Uint8Array,
  enough: number,
  cutOff: boolean,
  signal: AbortSignal,
): Promise<PdfText> {
  signal.throwIfAborted();
  const child = Bun.spawn([...ownProgram(PDF_READER), String(MAX_PAGES), String(enough)], {
    stdin: bytes,
    stdout: 'pipe',
    stderr: 'ignore',
    env: {},
    timeout: MAX_MS,
    killSignal: 'SIGKILL',
    signal,
  });
  let tooLarge = false;
  const looking = setInterval(() => {
    if (residentBytes(child.pid) <= MAX_RSS_BYTES) return;
    tooLarge = true;
    child.kill('SIGKILL');
  }, LOOK_MS);
  try {
    const { bytes: out } = await readUpTo(child.stdout, enough * 8 + 1_000_000);
    child.kill('SIGKILL');
    await child.exited;
    signal.throwIfAborted();
    return textOf(tryParse(Buffer.from(out).toString()) as PdfResult | undefined, cutOff, tooLarge);
  } finally {
    clearInterval(looking);
  }
}

function textOf(found: PdfResult | undefined, cutOff: boolean, tooLarge: boolean): PdfText {
  if (found === undefined) {
    throw unreadable(tooLarge ? 'needs too much memory' : 'takes too long to read');
  }
  if ('error' in found) {
    if (found.error === 'password') throw unreadable('needs a password');
    throw unreadable(cutOff ? 'is larger than what is read of a page' : 'is broken');
  }
  const { title, text, pages, read: done } = found;
  const remark =
    text === ''
      ? 'The document has no text; its pages may be pictures.'
      : done < pages && done === MAX_PAGES
        ? `Only the first ${MAX_PAGES} of ${pages} pages are read.`
        : undefined;
  return { title, text, truncated: done < pages && done < MAX_PAGES, remark };
}

const unreadable = (why: string) =>
  new ToolError(`The PDF document ${why}.`, { code: 'unsupported_content_type' });

/** 0 where the system does not say; the time limit alone holds there. */
function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}
