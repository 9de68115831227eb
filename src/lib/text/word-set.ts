/** The words of a list that is written as one text, with blanks between them. */
export const wordSet = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));
