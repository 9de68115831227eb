/** Takes one character away from the end of a text, however often it stands there, in linear time. */

/** `withoutTrailing('a//', '/')` is `a`. A pattern such as `\/+$` looks at every run of the text instead. */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return end === text.length ? text : text.slice(0, end);
}
