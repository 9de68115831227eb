/** Text made safe for HTML, in content and in quoted attributes. */

/** `&`, `<`, `>` and both quotes become entities. */
export const escapeHtml = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
