/** Types of the data files that are bundled as text. */

declare module '*.jsonl' {
  const text: string;
  export default text;
}
