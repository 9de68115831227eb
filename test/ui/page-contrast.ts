/** Measures, inside the browser, whether every text of the page has enough contrast. */

/** The members of the browser's elements that this file needs; the tests do not include the browser's types. */
interface Box {
  readonly className: unknown;
  readonly tagName: string;
  readonly parentElement: Box | null;
  closest(selector: string): Box | null;
  getClientRects(): { readonly length: number };
}
interface Text {
  readonly parentElement: Box | null;
  readonly textContent: string;
}
interface Paint {
  fillStyle: string;
  clearRect(x: number, y: number, width: number, height: number): void;
  fillRect(x: number, y: number, width: number, height: number): void;
  getImageData(x: number, y: number, width: number, height: number): { readonly data: Uint8Array };
}
interface Body extends Box {
  readonly ownerDocument: {
    createElement(name: 'canvas'): { getContext(kind: '2d', options: object): Paint };
    createTreeWalker(root: Box, what: number): { nextNode(): Text | null };
    readonly defaultView: {
      getComputedStyle(box: Box): Readonly<Record<'backgroundColor' | 'fill' | 'color', string>>;
    };
  };
}

/** Texts with a contrast below 4.5 to 1. The function uses no outside variables, since it runs in the browser. */
export function faintTexts(body: Body): string[] {
  const doc = body.ownerDocument;
  const view = doc.defaultView;
  const canvas = doc.createElement('canvas').getContext('2d', { willReadFrequently: true });
  // A canvas parses every colour notation of style sheets.
  const known = new Map<string, readonly number[]>();
  const rgba = (color: string): readonly number[] => {
    const found = known.get(color);
    if (found !== undefined) return found;
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const read = [...canvas.getImageData(0, 0, 1, 1).data];
    known.set(color, read);
    return read;
  };
  const light = ([r, g, b]: readonly number[]) => {
    const part = (value: number) =>
      value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r!) + 0.7152 * part(g!) + 0.0722 * part(b!);
  };
  const groundOf = (inner: Box): readonly number[] => {
    for (let box: Box | null = inner; box !== null; box = box.parentElement) {
      const color = rgba(view.getComputedStyle(box).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  const faint: string[] = [];
  const walker = doc.createTreeWalker(body, 4);
  for (let text = walker.nextNode(); text !== null; text = walker.nextNode()) {
    const box = text.parentElement;
    if (box === null || text.textContent.trim() === '') continue;
    if (box.closest('script,noscript,dialog,[hidden],.sr,option') !== null) continue;
    if (box.getClientRects().length === 0) continue;
    const style = view.getComputedStyle(box);
    const [a, b] = [
      light(rgba(box.tagName === 'text' ? style.fill : style.color)),
      light(groundOf(box)),
    ];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast >= 4.5) continue;
    faint.push(`${contrast.toFixed(2)} ${box.className} ${text.textContent.slice(0, 30)}`);
  }
  return [...new Set(faint)];
}
