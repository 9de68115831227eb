/** Measures, inside the browser, whether lines of prose are short enough to read. */

/** The members of the browser's elements that this file needs; the tests do not include the browser's types. */
interface Box {
  readonly className: unknown;
  closest(selector: string): Box | null;
}
interface Text {
  readonly parentElement: Box | null;
  readonly textContent: string;
}
interface Body extends Box {
  readonly ownerDocument: {
    createTreeWalker(root: Box, what: number): { nextNode(): Text | null };
    createRange(): {
      selectNodeContents(node: Text): void;
      getClientRects(): Iterable<{ readonly top: number }>;
    };
  };
}

/**
 * Texts with more than 110 characters on a line. Bodies, code, results of tools and rows of tables are no prose. The
 * function uses no outside variables, since it runs in the browser.
 */
export function longLines(body: Body): string[] {
  const doc = body.ownerDocument;
  const range = doc.createRange();
  const long: string[] = [];
  const walker = doc.createTreeWalker(body, 4);
  for (let text = walker.nextNode(); text !== null; text = walker.nextNode()) {
    const box = text.parentElement;
    const { length } = text.textContent.trim();
    if (box === null || length < 120) continue;
    if (
      box.closest('pre,code,script,style,.row,.tree,.changelist,.result,.begins,table,[hidden]') !==
      null
    ) {
      continue;
    }
    range.selectNodeContents(text);
    const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
    if (lines === 0 || length / lines <= 110) continue;
    long.push(
      `${Math.round(length / lines)} in ${box.className}: ${text.textContent.slice(0, 60)}`,
    );
  }
  return long;
}
