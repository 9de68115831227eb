/** Removes all repetitions of a character from the end of a text, in linear time. */

/** `withoutTrailing('a//', '/')` is `a`. A pattern such as `\/+$` would try every run in the text. */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return end === text.length ? text : text.slice(0, end);
}
