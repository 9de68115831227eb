/** A helper process that reads the text of one PDF, so that a hostile file costs this process nothing. */

// As a file: as code, its bytecode would add megabytes to the executable, for a helper process alone.
// @ts-expect-error The types are those of its code; this is its path.
import pdfjs from '../../../node_modules/unpdf/dist/pdfjs.mjs' with { type: 'file' };

/** What the helper writes to stdout, as JSON. */
export type PdfResult =
  | {
      readonly title: string;
      readonly text: string;
      readonly pages: number;
      /** Pages whose text is in `text`. */
      readonly read: number;
    }
  | { readonly error: 'password' | 'broken' };

/**
 * Reads a PDF from stdin and writes a {@link PdfResult} to stdout.
 * @param maxPages pages that are read at most
 * @param maxText characters after which no further page is read
 * @returns the exit code
 */
export async function readPdf(maxPages: number, maxText: number): Promise<number> {
  // pdf.js warns on stdout.
  console.log = () => {};
  console.warn = () => {};
  const result = await textOf(await Bun.stdin.bytes(), maxPages, maxText);
  await Bun.write(Bun.stdout, JSON.stringify(result));
  return 0;
}

async function textOf(bytes: Uint8Array, maxPages: number, maxText: number): Promise<PdfResult> {
  const { getDocument }: typeof import('unpdf/pdfjs') = await import(pdfjs);
  try {
    const document = await getDocument({ data: bytes, useSystemFonts: true, stopAtErrors: false })
      .promise;
    const metadata = await document.getMetadata().catch(() => undefined);
    const info = metadata?.info as { readonly Title?: unknown } | undefined;
    const pages = document.numPages;
    const texts: string[] = [];
    let length = 0;
    while (texts.length < Math.min(pages, maxPages) && length < maxText) {
      const page = await document.getPage(texts.length + 1);
      const { items } = await page.getTextContent();
      page.cleanup();
      const lines = items.map((item) =>
        'str' in item ? `${item.str}${item.hasEOL ? '\n' : ''}` : '',
      );
      const text = lines.join('').trim();
      texts.push(text);
      length += text.length;
    }
    const title = typeof info?.Title === 'string' ? info.Title.trim() : '';
    return {
      title,
      text: texts.filter((text) => text !== '').join('\n\n'),
      pages,
      read: texts.length,
    };
  } catch (thrown) {
    const name = thrown instanceof Error ? thrown.name : '';
    return { error: name === 'PasswordException' ? 'password' : 'broken' };
  }
}
